"""The fields of a scope that the reflect job reads, and their division into topics and sessions.

The view keeps a few fields of each note, its vector and its words. So a scope of a million notes takes a few gigabytes.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.core.authority import is_on_probation
from zettel.core.present import has_ended, has_expired
from zettel.evolve.lessons import MAX_BEFORE, may_report_outcome
from zettel.evolve.profile import Statement, statements
from zettel.evolve.segments import Borders, Turn, segments, unit
from zettel.evolve.topics import MIN_EVENTS, Segment, topics
from zettel.jobs.derived_notes import DerivedNote
from zettel.model import Kind, Note
from zettel.model.tags import SESSION, THEME
from zettel.text.index import vector_text
from zettel.text.tokens import tokenize

if TYPE_CHECKING:
    from zettel.ports.query import Floats

SOURCE_KINDS = frozenset({Kind.EPISODIC, Kind.SEMANTIC})
"""The kinds of source notes: other kinds are derived. Notes that look like instructions are skipped, too."""
SESSION_EVENTS = 100
"""The most events of a summary of a session. A longer session has several, of which only the last one changes."""
_REPLIES = ("assistant", "tool")
"""The roles of messages that belong to the message before."""


class Group(NamedTuple):
    """The events of a topic or a part of a session, the tag of its text, and its existing text."""

    tag: str
    existing: DerivedNote | None
    events: Sequence[str]


@dataclass(slots=True)
class ScopeView:
    """The fields of a scope that the job needs.

    ``least``: the lowest weight of statements. ``dim``: the length of vectors. ``spoken``: the note, speaker and time
    of each event. ``turns``: the turns of each session, in order; ``tasks``: those of users. ``reports``: notes that
    may report outcomes. ``links``: the linked notes, with the lowest similarity. ``doubted``: the trust of notes
    without full trust.
    """

    least: float
    dim: int
    event_of: dict[str, str] = field(default_factory=dict)
    notes_of: dict[str, list[str]] = field(default_factory=dict)
    keys: dict[str, bytes] = field(default_factory=dict)
    derived: set[str] = field(default_factory=set)
    speakers: set[str] = field(default_factory=set)
    spoken: dict[str, tuple[str, str, datetime | None]] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    turns: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    tasks: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    reports: list[Note] = field(default_factory=list)
    links: dict[tuple[str, str], float] = field(default_factory=dict)
    events: dict[str, EventView] = field(default_factory=dict)
    doubted: dict[str, float] = field(default_factory=dict)

    def add(self, note: Note, vector: Floats | None) -> None:
        """Add a note with its vector, if it has one."""
        if note.kind not in SOURCE_KINDS:
            self.derived.add(note.id)
            return
        if has_ended(note) or has_expired(note) or is_on_probation(note):
            return
        if note.trust < 1:
            self.doubted[note.id] = note.trust
        event = note.event_ids[0]
        self.event_of[note.id] = event
        self.notes_of.setdefault(event, []).append(note.id)
        self.keys.setdefault(event, _key(note))
        known = self.events.setdefault(event, EventView(note.role in _REPLIES, note.occurred_at))
        known.words += tuple(map(sys.intern, dict.fromkeys(tokenize(note.content))))
        if vector is not None:
            known.vector = vector if known.vector is None else known.vector + vector
        if note.speaker:
            self.speakers.add(note.speaker)
            self.spoken[event] = note.id, note.speaker, note.occurred_at
        if note.session:
            self.turns.setdefault(note.session, []).append((note.seq, note.id))
            if note.role == "user":
                self.tasks.setdefault(note.session, []).append((note.seq, note.id))
        self.statements += statements(note, self.least)
        if may_report_outcome(note):
            self.reports.append(note)

    def trust(self, notes: Iterable[str]) -> float:
        """Return the lowest trust in some notes."""
        return min(self.doubted.get(id, 1.0) for id in notes)

    def before(self, note: Note) -> list[str]:
        """Return the ids of the turns just before a note in its session, the latest last.

        Before the result of a tool, these are the task and the turn just before.
        """
        turns = self.turns.get(note.session or "", [])
        at = bisect_left(turns, (note.seq, ""))
        if note.role == "tool":
            tasks = self.tasks.get(note.session or "", [])
            place = bisect_left(tasks, (note.seq, ""))
            return [tasks[place - 1][1], turns[at - 1][1]] if place else []
        return [id for _, id in turns[max(0, at - MAX_BEFORE) : at]]

    def finish(self) -> None:
        """Sort the turns."""
        for turns in (*self.turns.values(), *self.tasks.values()):
            turns.sort()

    def notes(self, events: Iterable[str]) -> tuple[str, ...]:
        """Return the ids of the notes of some events."""
        return tuple(id for event in events for id in self.notes_of[event])

    def sessions(self) -> list[list[str]]:
        """Return the events of each session, in order."""
        return [[*dict.fromkeys(self.event_of[id] for _, id in turns)] for turns in self.turns.values()]

    def vector(self, events: Iterable[str]) -> Floats:
        """Return the mean direction of some events; zeros without vectors."""
        vectors = [vector for event in events if (vector := self.events[event].vector) is not None]
        return unit(np.sum(vectors, axis=0)) if vectors else np.zeros(self.dim, np.float32)

    def centrality(self, notes: Iterable[str]) -> dict[str, float]:
        """Return for each event of these notes the cosine of its vector with that of all of them, at least 0."""
        events = sorted({self.event_of[id] for id in notes})
        center = self.vector(events)
        return {event: max(0.0, round(float(self.vector([event]) @ center), 4)) for event in events}


@dataclass(slots=True)
class EventView:
    """The fields of an event: whether it answers, its time, the sum of its notes' vectors, and its words."""

    is_reply: bool
    occurred_at: datetime | None
    vector: Floats | None = None
    words: tuple[str, ...] = ()


def grouped(view: ScopeView, derived: Sequence[DerivedNote], borders: Borders) -> list[Group]:
    """Return the topics and the sessions of a scope, those with an existing text first."""
    return [*_topics(view, [own for own in derived if own.tag == THEME], borders),
            *_sessions(view, [own for own in derived if own.tag == SESSION])]  # fmt: skip


def _topics(view: ScopeView, derived: Sequence[DerivedNote], borders: Borders) -> list[Group]:
    """Return the topics: the existing ones with added segments, then new ones."""
    runs = _runs(view, borders)
    found = [
        Segment(
            min(view.keys[event] for event in run),
            tuple(run),
            view.vector(run),
            Counter(word for event in run for word in view.events[event].words),
        )
        for run in runs
    ]
    place_of = {event: place for place, run in enumerate(runs) for event in run}
    ties: dict[tuple[int, int], float] = {}
    for (source, target), least in view.links.items():
        if source in view.event_of and target in view.event_of:
            first, last = sorted((place_of[view.event_of[source]], place_of[view.event_of[target]]))
            if first != last:
                ties[first, last] = max(least, ties.get((first, last), 0.0))
    former = [_former(own, view, place_of, runs) for own in derived]
    groups = topics(found, ties, former)
    return [
        Group(THEME, own, [event for place in group for event in runs[place]])
        for own, group in zip([*derived, *[None] * (len(groups) - len(derived))], groups, strict=True)
    ]


def _runs(view: ScopeView, borders: Borders) -> list[list[str]]:
    """Return the events of each segment; an event without a session is a segment of its own."""
    runs: list[list[str]] = []
    for events in view.sessions():
        known = [view.events[event] for event in events]
        turns = [Turn(unit_of(own, view.dim), own.is_reply, own.occurred_at) for own in known]
        runs += [events[start:end] for start, end in segments(turns, borders)]
    in_session = {event for run in runs for event in run}
    return runs + [[event] for event in view.events if event not in in_session]


def _former(own: DerivedNote, view: ScopeView, place_of: Mapping[str, int], runs: Sequence[Sequence[str]]) -> list[int]:
    """Return the segments of an existing topic: at least half of their events are its sources."""
    places = Counter(place_of[event] for event in {view.event_of[id] for id in own.source_ids if id in view.event_of})
    return [place for place, count in places.items() if 2 * count >= len(runs[place])]


def _sessions(view: ScopeView, derived: Sequence[DerivedNote]) -> list[Group]:
    """Return the sessions in parts of at most SESSION_EVENTS events: with an existing summary, or large enough."""
    parts = [
        events[start : start + SESSION_EVENTS]
        for events in view.sessions()
        for start in range(0, len(events), SESSION_EVENTS)
    ]
    part_of = {event: at for at, part in enumerate(parts) for event in part}
    existing: dict[int, DerivedNote] = {}
    without: list[DerivedNote] = []
    for own in derived:
        overlap = Counter(part_of[event] for id in own.source_ids if (event := view.event_of.get(id)) in part_of)
        at = max(overlap, key=lambda at: (overlap[at], -at), default=None)
        if at is None or at in existing:
            without.append(own)
        else:
            existing[at] = own
    large = [at for at, part in enumerate(parts) if at in existing or len(part) >= MIN_EVENTS]
    return [Group(SESSION, existing.get(at), parts[at]) for at in large] + [Group(SESSION, own, []) for own in without]


def unit_of(event: EventView, dim: int) -> Floats:
    """Return the direction of an event's vector; zeros without a vector."""
    return np.zeros(dim, np.float32) if event.vector is None else unit(event.vector)


def _key(note: Note) -> bytes:
    """Return a 16-byte key that orders an event by its content."""
    text = f"{note.occurred_at}\0{note.session}\0{note.part}\0{vector_text(note)}"
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
