"""The scope of a run: who names the user, and what happens if nobody or two places do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from zettel import Memory, Scope
from zettel.errors import InvalidInput
from zettel.integrations.run_scope import RunScope, ScopedTools, user_field

ANN = Scope(tenant="acme", user="ann", agent="cook")
ID = UUID("12345678123456781234567812345678")


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    with Memory(":memory:", embedder="static") as instance:
        yield instance


@pytest.mark.parametrize(
    ("base", "users", "scope"),
    [
        (Scope(tenant="acme"), {"deps.user_id": "ann"}, Scope(tenant="acme", user="ann")),
        (Scope(agent="cook"), {"deps.user_id": 7}, Scope(agent="cook", user="7")),
        (Scope(), {"config": None, "context.user_id": ID}, Scope(user=str(ID))),
        (Scope(), {"config": "ann", "context.user_id": "ann"}, Scope(user="ann")),
        (Scope(), {}, Scope()),
        (ANN, {}, ANN),
        (ANN, {"deps.user_id": None}, ANN),
        (ANN, {"deps.user_id": "ann"}, ANN),
        (lambda run: Scope(user=run), {"deps.user_id": "bob"}, Scope(user="the run")),
    ],
)
def test_the_run_adds_the_user_to_the_scope(base: Any, users: dict[str, Any], scope: Scope) -> None:
    assert base if callable(base) else base.key  # a scope caches its key
    found = RunScope(base).of("the run", users)
    assert (found, found.key) == (scope, scope.key)


@pytest.mark.parametrize(
    ("base", "users", "error_text"),
    [
        (Scope(), {"a": None, "b": None}, "no user: set a or b, or give the memory to one user with scope="),
        (Scope(), {"a": "ann", "b": "bob"}, "two users in one run: a is 'ann', b is 'bob'. Choose one with scope="),
        (ANN, {"a": "bob"}, "two users in one run: a is 'bob', the scope of the memory is 'ann'"),
        (Scope(), {"a": ""}, "a must be the id of a user, a non-empty string, got ''"),
        (ANN, {"a": True}, "a must be the id of a user, a non-empty string, got True"),
        (Scope(), {"a": ["ann"]}, "a must be the id of a user"),
        (Scope(), {"a": "a\0b"}, "a: contains a NUL character"),
        (lambda run: None, {}, "the function scope= returned None: it must return a Scope"),
    ],
)  # fmt: skip
def test_a_missing_or_ambiguous_user_is_an_error(base: Any, users: dict[str, Any], error_text: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(error_text)) as info:
        RunScope(base).of("the run", users)
    assert "\n" not in str(info.value)


def test_a_field_of_an_object_or_a_mapping_names_the_user() -> None:
    assert user_field({"user_id": "ann"}, "deps") == {"deps['user_id']": "ann"}
    assert user_field(SimpleNamespace(user_id=None), "deps") == {"deps.user_id": None}
    assert user_field(None, "deps") == user_field({}, "deps") == user_field("ann", "deps") == {}


def test_an_adapter_requires_a_memory_and_a_scope(memory: Memory) -> None:
    assert RunScope.for_memory(memory, None) == RunScope(memory.scope)
    with pytest.raises(InvalidInput, match="is not a Scope"):
        RunScope.for_memory(memory, "ann")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="got str"):
        RunScope.for_memory("zettel.db", None)  # type: ignore[arg-type]


def test_tools_are_cached_by_scope_and_session_in_all_threads(memory: Memory) -> None:
    scoped = ScopedTools(memory)
    keys = [(Scope(user=f"u{n % 20}"), f"s{n % 3}") for n in range(600)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda key: scoped.of(*key), keys))
    assert len(set(map(id, found))) == len(set(keys)) == 60
    assert scoped.of(*keys[0]) is found[0]
