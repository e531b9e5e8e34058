"""Decisions of people that two names are one entity, or two.

A decision is an event of its own, whose note a revision turns into an insight: ``revert(id, 1)`` undoes it, and exports
contain it. Later decisions overrule earlier ones. ``delete`` destroys a decision together with the last note that
contains one of its names. The reflect job writes decisions of a model as derived notes with the same tag and metadata.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from zettel.core.authority import is_on_probation
from zettel.core.commit import Clock
from zettel.core.edit import NoteEditor
from zettel.core.entity_notes import SAME, SOURCE, decided_names, statement_of
from zettel.core.fold import fold, live_revisions
from zettel.core.revise import revised
from zettel.model import CallKind, Cause, JobKind, Kind, Note, Scope
from zettel.model.tags import ENTITY
from zettel.ports import GraphStore, NoteHistory
from zettel.ports.operations import PutRevision
from zettel.ports.query import Filter, Selection
from zettel.text.index import searchable_text
from zettel.text.tokens import phrase_key, tokenize

MOST = 10_000
"""The most decisions that are read."""
_EVIDENCE = tuple(kind.value for kind in Kind if kind is not Kind.INSIGHT)


class EntityDecision(NamedTuple):
    """A decision about two names: its note, the deciding call or job, its reason and the notes that it is based on."""

    names: tuple[str, str]
    same: bool
    note: str
    by: str
    reason: str
    sources: tuple[str, ...]
    seq: int

    @property
    def keys(self) -> tuple[str, str]:
        """The normal forms of the names."""
        return phrase_key(self.names[0]), phrase_key(self.names[1])


class EntityDecider:
    """Writes decisions of people about names."""

    def __init__(self, editing: NoteEditor) -> None:
        self._editing = editing

    async def decide(self, scope: Scope, note_id: str, name: str, other: str, same: bool, reason: str) -> Note:
        """Turn the note of a decision event into the decision."""

        async def revise(history: NoteHistory, clock: Clock) -> PutRevision:
            content = statement_of(name, other, same)
            change = {"kind": Kind.INSIGHT, "content": content, "tags": (ENTITY,)}
            return revised(history, clock, Cause(by=CallKind.PERSON, reason=reason), change)

        return await self._editing.revise(scope, note_id, revise)


async def decisions_of(store: GraphStore, scope: Scope) -> list[EntityDecision]:
    """Return the live decisions in order of arrival, without those that wait for a person to confirm them."""
    notes = await store.page(scope, Filter(kinds=(Kind.INSIGHT.value,), tags=(ENTITY,)), -1, MOST)
    named = {note.id: (note, names) for note in notes if (names := decided_names(note)) and not is_on_probation(note)}
    histories = await store.histories(scope, list(named)) if named else {}
    return [_decision(*named[id], histories[id]) for id in named if id in histories]


def _decision(note: Note, names: tuple[str, str], history: NoteHistory) -> EntityDecision:
    last = live_revisions(history.revisions)[-1] if history.revisions else None
    by_model = last is not None and any(r.cause.by is JobKind.REFLECT for r in history.revisions)
    return EntityDecision(
        names=names,
        same=bool(note.metadata[SAME]),
        note=note.id,
        by="reflect" if by_model else "user",
        reason=note.caption if by_model else _reason(history),
        sources=tuple(dict.fromkeys(read.note for read in last.inputs)) if last is not None else (),
        seq=note.seq,
    )


def _reason(history: NoteHistory) -> str:
    reasons = (r.cause.reason for r in live_revisions(history.revisions, CallKind.PERSON) if "kind" in r.change)
    return next(reasons, "")


async def unsupported(
    store: GraphStore, scope: Scope, erased: Collection[str], revisions: Mapping[str, Collection[int]]
) -> set[str]:
    """Return the notes of decisions with a name that no note contains once these notes and revisions are erased."""
    events = await store.events_from(scope, SOURCE, None, MOST)
    if not events:
        return set()
    own = await store.notes(scope, await store.notes_of(scope, events))
    decisions = [note for note in own.values() if decided_names(note) and note.id not in erased]
    if not decisions:
        return set()
    before = await store.notes(scope, sorted({*erased, *revisions} - own.keys()))
    histories = await store.histories(scope, sorted(revisions))
    after = [
        fold(history.base, [revision for revision in history.revisions if revision.version not in revisions[id]])[0]
        for id, history in histories.items()
    ]
    lost = {}
    for name in {name for note in decisions for name in _tokens_of(note)}:
        named = [note for note in (*before.values(), *own.values()) if _contains(note, name)]
        (all_named,) = await store.tally(scope, Selection(Filter(kinds=_EVIDENCE), (tuple(sorted(name)),)), ())
        others = all_named.count - sum(not note.archived and note.kind is not Kind.INSIGHT for note in named)
        is_affected = any(note.id in before for note in named)
        lost[name] = is_affected and not others and not any(_contains(note, name) for note in after)
    return {note.id for note in decisions if any(lost[name] for name in _tokens_of(note))}


def _contains(note: Note, name: frozenset[str]) -> bool:
    return name.issubset(tokenize(searchable_text(note)))


def _tokens_of(note: Note) -> set[frozenset[str]]:
    return {tokens for name in decided_names(note) or () if (tokens := frozenset(tokenize(name)))}
