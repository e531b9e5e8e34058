"""Misspelt arguments and fields, and names of other libraries: each error names what zettel calls them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from zettel import AsyncMemory, Event, Memory, Scope
from zettel.core.own_names import explains_arguments
from zettel.errors import InvalidEvent, InvalidInput

Call = Callable[[Any], Any]


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    with Memory(":memory:") as opened:
        yield opened


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda memory: memory.search("q", top_k=3), r"^Memory\.search\(\) got an .*'top_k': did you mean k\?$"),
        (lambda memory: memory.search("q", limit=3), r"'limit': did you mean k\?$"),
        (lambda memory: memory.search("q", n_results=3), r"'n_results': did you mean k\?$"),
        (lambda memory: memory.search(query="q"), r"'query': did you mean question\?$"),
        (lambda memory: memory.search("q", filters={}), r"'filters': did you mean filter\?$"),
        (lambda memory: memory.search("q", threshold=0.3), r"'threshold': did you mean min_score\?$"),
        (lambda memory: memory.search("q", curent_only=True), r"'curent_only': did you mean current_only\?$"),
        (lambda memory: memory.search("q", colour=1), r"'colour': use one of question, k, .*, scope$"),
        (lambda memory: memory.context("q", limit=3), r"'limit': did you mean k\?$"),
        (lambda memory: memory.context("q", user_id="c-1"), r"'user_id': pass scope=Scope\(user=\.\.\.\)$"),
        (lambda memory: memory.answer_context("q", top_k=3), r"'top_k': did you mean k\?$"),
        (lambda memory: memory.list(top_k=3), r"'top_k': did you mean limit\?$"),
        (lambda memory: memory.add("x", user="c-1"), r"^Memory\.add\(\) .*'user': pass scope=Scope\(user=\.\.\.\)$"),
        (lambda memory: memory.add("x", agent_id="a"), r"pass scope=Scope\(agent=\.\.\.\)$"),
        (lambda memory: memory.add("x", tenant="t"), r"pass scope=Scope\(tenant=\.\.\.\)$"),
        (lambda memory: memory.add("x", run_id="r"), r"did you mean session\?$"),
        (lambda memory: memory.add("x", timestamp="2024-05-01"), r"did you mean occurred_at\?$"),
        (lambda memory: memory.add("x", ocurred_at="2024-05-01"), r"did you mean occurred_at\?$"),
        (lambda memory: memory.add(text="x"), r"did you mean content\?$"),
        (lambda memory: memory.add(messages=[]), r"'messages': call add_messages$"),
        (lambda memory: memory.add("x", infer=False), r"'infer': leave it out, "),
        (lambda memory: memory.delete(memory_id="x"), r"did you mean id\?$"),
        (lambda memory: memory.dump(user="c-1"), r"^Memory\.dump\(\) .*pass scope=Scope"),
        (lambda memory: memory.scopes(user="c-1"), r"'user': it takes no arguments$"),
        (lambda memory: Memory(":memory:", user="c-1"), r"pass scope=Scope\(user=\.\.\.\)$"),
    ],
)
def test_an_unknown_argument_is_answered_with_the_right_one(memory: Memory, call: Call, error: str) -> None:
    with pytest.raises(TypeError, match=error) as raised:
        call(memory)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None, "one error, not two"


@explains_arguments
class Api:
    def work(self, k: int) -> None:
        raise TypeError(f"{k} is not a text")


def test_other_type_errors_are_unchanged() -> None:
    work: Any = Api().work
    with pytest.raises(TypeError, match=r"^3 is not a text$"):
        work(3)
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'k'$"):
        work()
    with pytest.raises(TypeError, match=r"^Api\.work\(\) got an unexpected keyword argument 'kk': did you mean k\?$"):
        work(kk=3)


def test_methods_of_async_memory_stay_coroutine_functions_with_their_signature() -> None:
    assert inspect.iscoroutinefunction(AsyncMemory.search)
    assert list(inspect.signature(AsyncMemory.search).parameters)[:3] == ["self", "question", "k"]

    async def search(**named: Any) -> object:
        async with AsyncMemory(":memory:") as memory:
            return await memory.search("q", **named)

    assert asyncio.run(search(k=3)) == []
    with pytest.raises(TypeError, match=r"^AsyncMemory\.search\(\) got an .*'top_k': did you mean k\?$"):
        asyncio.run(search(top_k=3))


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"text": "x"}, r"^events\[1\] has the field 'text': name it content$"),
        ({"content": "x", "ocurred_at": "2024-05-01"}, r"^events\[1\] has .*'ocurred_at': name it occurred_at$"),
        ({"content": "x", "created_at": "2024-05-01"}, r"'created_at': name it occurred_at$"),
        ({"content": "x", "user_id": "c-1"}, r"'user_id': pass scope=Scope\(user=\.\.\.\) to the method$"),
        ({"content": "x", "colour": "red"}, r"'colour': an event has id, content, .*; metadata may contain"),
    ],
)
def test_an_unknown_field_of_an_event_is_answered_with_the_right_one(
    memory: Memory, fields: dict[str, Any], error: str
) -> None:
    for add in (memory.add_many, memory.add_many_report):
        with pytest.raises(InvalidEvent, match=error):
            add([{"content": "y"}, fields])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda memory: memory.add_messages({"role": "user", "content": "x"}), "a list of messages, not dict: put"),
        (lambda memory: memory.add_messages("x"), "messages must be a list of messages, not str: put"),
        (lambda memory: memory.add_many({"content": "x"}), "events must be a list of events, not dict: put"),
        (lambda memory: memory.add_many(Event(content="x")), "events must be a list of events, not Event: put"),
        (lambda memory: memory.search("q", scopes=Scope(user="c-1")), "scopes must be a list of scopes, not Scope"),
    ],
)  # fmt: skip
def test_a_single_item_is_not_taken_for_a_list(memory: Memory, call: Call, error: str) -> None:
    with pytest.raises(InvalidInput, match=error):
        call(memory)


class Holder(BaseModel):
    scope: Scope


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ({"customer": "c-1001"}, "Scope has no part 'customer': use tenant, user or agent, such as Scope(user="),
        ({"{input}": "c-1001"}, "Scope has no part '{input}': use tenant, user or agent"),
        ({"user": 1001}, "user must be a str, not int: pass Scope(user=str(...))"),
        ({"user": "a\0"}, "contains a NUL character"),
    ],
)
def test_an_error_of_a_scope_names_its_parts(parts: dict[str, Any], error: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Scope(**parts)
    assert error in str(raised.value)
    with pytest.raises(ValidationError) as raised:
        Holder.model_validate({"scope": parts})
    assert (error in str(raised.value), raised.value.errors()[0]["loc"][0]) == (True, "scope")


def test_a_scope_takes_its_parts_by_name() -> None:
    make: Any = Scope
    with pytest.raises(TypeError, match=r"^Scope takes its parts by name: use tenant, user or agent, such as Scope"):
        make("c-1001")
