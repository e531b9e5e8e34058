"""Reverting a revision also reverts the links, terms and later decisions that it caused."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.contract.support import search_texts
from zettel import AsyncMemory, Link, LinkType, Memory, Note
from zettel.core.commit import Clock, Commits
from zettel.core.identity import new_id
from zettel.core.revise import revised
from zettel.errors import NotFound
from zettel.model import Cause, Input, Kind
from zettel.ports import LookupQuery, NoteHistory, ScopeState
from zettel.ports.operations import Op, PutNote
from zettel.text.index import index_note
from zettel.text.tokens import tokenize


def rewrite(memory: Memory, id: str, because: str, links: tuple[str, ...] = (), **change: Any) -> None:
    """Change a note because of another note, as a job would."""
    memory._bridge.call(partial(_rewrite, memory._bridge.inner, id, because, links, change))


async def _rewrite(memory: AsyncMemory, id: str, because: str, links: tuple[str, ...], change: dict[str, Any]) -> None:
    assert memory._backend.memory.engine is not None
    store = memory._backend.memory.engine.store

    async def plan(state: ScopeState, clock: Clock) -> list[Op]:
        history = (await store.histories(memory.scope, [id]))[id]
        new_links = tuple(
            Link(source=id, target=other, type=LinkType.RELATES, reason="a job says so", recorded_at=clock.recorded_at)
            for other in links
        )
        cause = Cause(by="evolve", note=because)
        return [revised(history, clock, cause, change, links=new_links, inputs=(Input(because, 1),))]

    await Commits(store).commit(memory.scope, plan)


def derive(memory: Memory, content: str, *origins: str) -> str:
    """Write a note derived from others, as an annotation job would."""
    id: str = memory._bridge.call(partial(_derive, memory._bridge.inner, content, origins))
    return id


async def _derive(memory: AsyncMemory, content: str, origins: tuple[str, ...]) -> str:
    assert memory._backend.memory.engine is not None
    store, id = memory._backend.memory.engine.store, new_id("n")

    async def plan(state: ScopeState, clock: Clock) -> list[Op]:
        read = await store.notes(memory.scope, origins)
        events = tuple(event for note in read.values() for event in note.event_ids)
        note = Note(id=id, kind=Kind.SEMANTIC, content=content, event_ids=events, seq=clock.next(),
                    recorded_at=clock.recorded_at)  # fmt: skip
        links = tuple(
            Link(source=id, target=origin, type=LinkType.DERIVED_FROM, recorded_at=clock.recorded_at)
            for origin in origins
        )
        cause = Cause(by="annotate", note=origins[-1])
        inputs = tuple(Input(origin, 1) for origin in origins)
        put = revised(NoteHistory(note, ()), clock, cause, {}, links=links, inputs=inputs)
        return [PutNote(note, index_note(note)), put]

    await Commits(store).commit(memory.scope, plan)
    return id


def holding(memory: Memory, word: str) -> int:
    """Return the number of notes that match a word."""
    inner: AsyncMemory = memory._bridge.inner
    assert inner._backend.memory.engine is not None
    ask = partial(inner._backend.memory.engine.store.lookup, memory.scope, LookupQuery(tokens=tuple(tokenize(word))))
    return sum(memory._bridge.call(ask).df.values())


def note_of(memory: Memory, id: str) -> Note:
    note = memory.get(id)
    assert isinstance(note, Note)
    return note


@pytest.fixture
def ids(memory: Memory) -> list[str]:
    note_ids = memory.add_many(
        [
            {"id": "1", "content": "The harbour froze over in March."},
            {"id": "2", "content": "Ida repaired the telescope."},
            {"id": "3", "content": "Baked rye bread for the whole street."},
        ]
    )
    memory.flush()
    return note_ids


def test_rewrites_and_links_are_reverted_and_can_be_restored(memory: Memory, ids: list[str]) -> None:
    harbour, telescope, bread = ids
    before = note_of(memory, harbour)
    links = memory.links(harbour)
    rewrite(memory, harbour, telescope, (bread,), context="Zeppelins were seen above it.", importance=0.9)
    rewritten = note_of(memory, harbour)
    assert holding(memory, "zeppelins") == 1
    (changed,) = memory.revert_effects(telescope)
    assert (changed.id, changed.version) == (harbour, rewritten.version + 1)
    assert changed == note_of(memory, harbour)
    assert (changed.context, changed.importance) == (before.context, before.importance)
    assert memory.links(harbour) == links
    assert holding(memory, "zeppelins") == 0
    memory.flush()
    assert note_of(memory, telescope).version == 1
    assert memory.check() == []
    memory.revert(harbour, rewritten.version)
    assert note_of(memory, harbour).context == "Zeppelins were seen above it."
    assert [link.target for link in memory.links(harbour) if link.reason == "a job says so"] == [bread]
    assert holding(memory, "zeppelins") == 1


def test_a_second_run_changes_nothing(memory: Memory, ids: list[str]) -> None:
    rewrite(memory, ids[0], ids[1], importance=0.7)
    derive(memory, "Ida owns a telescope.", ids[1])
    assert len(memory.revert_effects(ids[1])) == 2
    memory.flush()
    histories = [memory.history(id) for id in ids]
    assert memory.revert_effects(ids[1]) == []
    assert [memory.history(id) for id in ids] == histories


def test_effects_of_other_notes_stay(memory: Memory, ids: list[str]) -> None:
    harbour, telescope, bread = ids
    rewrite(memory, harbour, bread, importance=0.6)
    rewrite(memory, harbour, telescope, importance=0.9, tags=["ice"])
    memory.update(harbour, title="Ice")
    memory.revert_effects(telescope)
    note = note_of(memory, harbour)
    assert (note.importance, note.title, "ice" in note.tags) == (0.6, "Ice", False)


def test_replaced_effects_do_not_return(memory: Memory, ids: list[str]) -> None:
    harbour, telescope, _ = ids
    before = note_of(memory, harbour)
    rewrite(memory, harbour, telescope, importance=0.7)
    first = note_of(memory, harbour).version
    memory._bridge.call(partial(_replace, memory._bridge.inner, harbour, telescope, first))
    assert note_of(memory, harbour).importance == 0.8
    memory.revert_effects(telescope)
    assert note_of(memory, harbour).importance == before.importance


async def _replace(memory: AsyncMemory, id: str, because: str, former: int) -> None:
    assert memory._backend.memory.engine is not None
    store = memory._backend.memory.engine.store

    async def plan(state: ScopeState, clock: Clock) -> list[Op]:
        history = (await store.histories(memory.scope, [id]))[id]
        cause = Cause(by="evolve", note=because)
        return [revised(history, clock, cause, {"importance": 0.8}, undoes=(former,), inputs=(Input(because, 1),))]

    await Commits(store).commit(memory.scope, plan)


def test_derived_notes_are_archived_and_their_effects_reverted(memory: Memory, ids: list[str]) -> None:
    harbour, telescope, bread = ids
    fact = derive(memory, "Ida owns a telescope.", telescope)
    insight = derive(memory, "On this street people make quixotic things themselves.", fact, bread)
    rewrite(memory, harbour, fact, context="Ida watched it with an astrolabe.")
    assert (holding(memory, "astrolabe"), holding(memory, "quixotic")) == (1, 1)
    changed = memory.revert_effects(telescope)
    assert [note.id for note in changed] == [harbour, fact, insight]
    assert [note.archived for note in changed] == [False, True, True]
    assert (holding(memory, "astrolabe"), holding(memory, "quixotic")) == (0, 0)
    assert search_texts(memory, "Who owns a telescope?")[0] == "Ida repaired the telescope."
    memory.flush()
    assert memory.check() == []
    memory.revert(fact, note_of(memory, fact).version - 1)
    assert "Ida owns a telescope." in search_texts(memory, "Who owns a telescope?")
    memory.flush()
    assert memory.check() == []


def test_a_merge_is_reverted(memory: Memory) -> None:
    ids = [memory.add("The ferry to Bergen leaves at nine.", speaker="Ann", occurred_at=f"2024-05-01T{hour}:00Z")
           for hour in (10, 11)]  # fmt: skip
    memory.flush()
    assert memory.evolve().merged == 1
    assert note_of(memory, ids[1]).merged_into == ids[0]
    changed = memory.revert_effects(ids[1])
    assert ids[0] in [note.id for note in changed]
    notes = [note_of(memory, id) for id in ids]
    assert [(note.archived, note.merged_into, len(note.event_ids)) for note in notes] == [(False, None, 1)] * 2
    memory.flush()
    assert memory.check() == []
    assert memory.evolve().merged == 0  # a person rejected the merge


def test_an_unknown_note_raises(memory: Memory, ids: list[str]) -> None:
    with pytest.raises(NotFound, match="n_nothing"):
        memory.revert_effects("n_nothing")
