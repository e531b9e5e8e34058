"""Scopes: no query, link, count or statistic crosses a scope, however similar the names."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.support import LIFE, picture, search_texts
from zettel import Memory, Scope, ZettelError
from zettel.errors import InvalidInput, NotFound
from zettel.testing.reference_store import ReferenceStore

pytestmark = [pytest.mark.over_http, pytest.mark.every_release]

ODD = [
    Scope(user="acme/ann"),
    Scope(user="Acme/Ann"),
    Scope(user="acme ann"),
    Scope(tenant="acme", user="ann"),
    Scope(tenant="acme/ann"),
    Scope(user="ann", agent="acme"),
    Scope(user="None"),
    Scope(user="a' OR '1'='1"),
    Scope(user="Åsa\u0301 你好 🦉"),
]


def test_similar_names_are_separate_scopes(memory: Memory) -> None:
    ids = {scope: memory.add(f"The code of number {n} is {n}{n}{n}.", scope=scope) for n, scope in enumerate(ODD)}
    assert {scope.key for scope in memory.scopes()} == {scope.key for scope in ODD}
    assert set(memory.scopes()) == set(ODD)
    for n, scope in enumerate(ODD):
        assert search_texts(memory, "What is the code?", scope=scope) == [f"The code of number {n} is {n}{n}{n}."]
        for other, id in ids.items():
            if other != scope:
                with pytest.raises(NotFound):
                    memory.get(id, scope=scope)
    assert search_texts(memory, "What is the code?") == []


@pytest.mark.parametrize("part", ["tenant", "user", "agent"])
def test_a_scope_with_an_empty_name_takes_no_events(memory: Memory, part: str) -> None:
    scope = Scope(**{part: ""})
    with pytest.raises(InvalidInput, match=f"the {part} of the scope is empty: write a name, or leave {part}= out"):
        memory.add("Snow fell.", scope=scope)
    assert memory.list(scope=scope).notes == ()
    assert memory.scopes() == []


def test_statistics_come_from_the_scope_alone(memory: Memory) -> None:
    ann, bob = Scope(user="ann"), Scope(user="bob")
    memory.add_many(LIFE, scope=ann, wait=True)
    hits = memory.search("the cello in Oslo", scope=ann)
    before = [(hit.note.content, hit.score, hit.why.local_score) for hit in hits]
    for n in range(40):
        memory.add(f"The cello in Oslo is number {n}.", scope=bob)
    memory.flush()
    hits = memory.search("the cello in Oslo", scope=ann)
    after = [(hit.note.content, hit.score, hit.why.local_score) for hit in hits]
    assert after == before


def test_links_and_deletes_do_not_cross(memory: Memory) -> None:
    ann, bob = Scope(user="ann"), Scope(user="bob")
    for scope in (ann, bob):
        memory.add_many(LIFE, scope=scope)
    memory.flush()
    untouched = picture(memory, bob)
    assert untouched == picture(memory, ann)
    memory.delete(session="a", scope=ann)
    memory.flush()
    assert picture(memory, bob) == untouched
    memory.delete_scope(scope=ann)
    assert memory.scopes() == [bob]
    assert picture(memory, bob) == untouched
    assert search_texts(memory, "cello", scope=ann) == []


def test_the_same_event_in_two_scopes_is_two_events(memory: Memory) -> None:
    ann, bob = Scope(user="ann"), Scope(user="bob")
    first, second = (memory.add("Hello there.", id="x", scope=scope) for scope in (ann, bob))
    assert first != second
    with pytest.raises(ZettelError):
        memory.add("Something else.", id="x", scope=ann)


parts = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=6)


@given(st.lists(st.tuples(parts, parts, parts), min_size=2, max_size=6, unique=True))
@settings(max_examples=100)
def test_keys_are_equal_only_for_equal_scopes(names: list[tuple[str | None, str | None, str | None]]) -> None:
    keys = {Scope(tenant=t, user=u, agent=a).key for t, u, a in names}
    assert len(keys) == len(names)


def test_a_store_never_written_to_is_empty() -> None:
    with Memory(ReferenceStore()) as memory:
        assert memory.scopes() == []
        assert memory.search("anything at all?") == []
        assert memory.list().notes == ()
