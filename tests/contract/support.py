"""Shared helpers of contract tests: sample events, low-level writes, and store comparison."""

from __future__ import annotations

from functools import partial
from typing import Any

from zettel import AsyncMemory, Link, LinkType, Memory, Note, Scope
from zettel.core.commit import Clock, Commits
from zettel.core.revise import revised
from zettel.model import Cause, Input
from zettel.ports import ScopeState
from zettel.ports.operations import Op, PutAnswer

_TURNS = [
    ("1", "Ann", "a", "2024-01-10T09:00Z", "I live in Bergen, above a bakery."),
    ("2", "Bob", "a", "2024-01-10T09:01Z", "Do you still play the cello?"),
    ("3", "Ann", "a", "2024-01-10T09:02Z", "Every evening. Kestrel, my dog, howls along."),
    ("4", "Ann", "b", "2024-05-01T18:00Z", "I moved to Oslo on Monday!"),
    ("5", "Bob", "b", "2024-05-01T18:01Z", "Congratulations. What about the cello?"),
    ("6", "Ann", "b", "2024-05-01T18:02Z", "It came along, and so did Kestrel."),
    ("7", "Bob", "b", None, "My sister Ida studies glaciers on Svalbard."),
]
LIFE: list[dict[str, Any]] = [
    dict(zip(("id", "speaker", "session", "occurred_at", "content"), turn, strict=True)) for turn in _TURNS
]
"""Seven turns in two sessions, the last one undated."""


def noted(memory: Memory, id: str) -> Note:
    """Return a note by its id."""
    note = memory.get(id)
    assert isinstance(note, Note)
    return note


def search_texts(memory: Memory, question: str, **search: Any) -> list[str]:
    """Return the contents of the hits of a search, best first."""
    return [hit.note.content for hit in memory.search(question, **search)]


def decide(memory: Memory, source: str, target: str, kind: LinkType, **change: Any) -> None:
    """Record a link between two notes, and changes of the source note, as a job would."""
    inner: AsyncMemory = memory._bridge.inner
    memory._bridge.call(partial(_decide, inner, source, target, kind, change))


async def _decide(memory: AsyncMemory, source: str, target: str, kind: LinkType, change: dict[str, Any]) -> None:
    assert memory._backend.memory.engine is not None
    store = memory._backend.memory.engine.store

    async def plan(state: ScopeState, clock: Clock) -> list[Op]:
        histories = await store.histories(memory.scope, [source])
        notes = await store.notes(memory.scope, [source, target])
        link = Link(source=source, target=target, type=kind, reason="test", recorded_at=clock.recorded_at)
        inputs = tuple(Input(note.id, note.version) for note in notes.values())
        return [revised(histories[source], clock, Cause(by="import"), change, links=(link,), inputs=inputs)]

    await Commits(store).commit(memory.scope, plan)


def write(memory: Memory, *ops: Op, scope: Scope | None = None) -> None:
    """Write operations unchanged, in one batch."""
    memory._bridge.call(partial(_write, memory._bridge.inner, ops, scope))


async def _write(memory: AsyncMemory, ops: tuple[Op, ...], scope: Scope | None) -> None:
    assert memory._backend.memory.engine is not None

    async def plan(state: ScopeState, clock: Clock) -> list[Op]:
        return [*ops]

    await Commits(memory._backend.memory.engine.store).commit(scope or memory.scope, plan)


def cache_answer(memory: Memory, key: str, text: str, *notes: str, scope: Scope | None = None) -> None:
    """Cache a model answer to a request that contained text of these notes."""
    write(memory, PutAnswer(key, text, notes), scope=scope)


def picture(memory: Memory, scope: Scope | None = None) -> dict[str, Any]:
    """Return the contents of a scope without ids, so that equal memories compare equal."""
    notes: dict[str, Note] = {}
    for _, event_notes in memory.dump(scope=scope):
        notes.update({note.id: note for note in event_notes})
    texts = {note.id: f"{note.session}/{note.speaker}/{note.content}/{note.part}" for note in notes.values()}
    links = sorted(
        (texts[link.source], link.type.value, texts[link.target], link.weight)
        for id in notes
        for link in memory.links(id, scope=scope)
        if link.source == id
    )
    terms = {texts[id]: sorted((t.key, t.kind, t.notes) for t in memory.terms(id, scope=scope)) for id in notes}
    return {"notes": sorted(texts.values()), "links": links, "terms": terms}
