"""The rules of exact queries on notes in memory: what a selection contains, how it is counted, and its order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from zettel.model import TIME_MAX, TIME_MIN, EventRecord, Kind, Note, to_micros
from zettel.ports.candidate_rules import passes
from zettel.ports.query import DAY, SLOT, Selection, Tally
from zettel.text.index import index_note


class Selected(NamedTuple):
    """A selected note, or an event with its note; ``time`` in microseconds, TIME_MIN if unknown."""

    id: str
    seq: int
    session: str | None
    time: int
    note: Note


def selected(notes: Iterable[Note], events: Mapping[str, EventRecord], selection: Selection) -> list[Selected]:
    """Return the selected notes, or events, among ``notes``; ``events`` are their events. An event may occur twice."""
    filter = selection.filter
    if not selection.of_events:
        return [
            Selected(note.id, note.seq, note.session, _time(note), note)
            for note in notes
            if passes(note, filter) and _matches(note, selection)
        ]
    of_note = replace(filter, session=None, since=None, until=None)
    chosen = [note for note in notes if note.kind is Kind.EPISODIC and passes(note, of_note)]
    rows = [
        Selected(event.event_id, event.seq, event.session, _time(event), note)
        for note in chosen
        if _matches(note, selection)
        for id in note.event_ids
        if (event := events.get(id)) is not None
    ]
    return [
        row
        for row in rows
        if filter.session in (None, row.session)
        and (filter.since is None or (row.time != TIME_MIN and row.time >= filter.since))
        and (filter.until is None or (row.time != TIME_MIN and row.time < filter.until))
    ]


def _matches(note: Note, selection: Selection) -> bool:
    if selection.tokens and not any(index_note(note).tokens.keys() >= {*tokens} for tokens in selection.tokens):
        return False
    if selection.terms and {term.key for term in index_note(note).terms}.isdisjoint(selection.terms):
        return False
    start = TIME_MIN if note.valid_from is None else to_micros(note.valid_from)
    end = TIME_MAX if note.valid_to is None else to_micros(note.valid_to)
    return selection.as_of is None or start <= selection.as_of < end


def tally(rows: Iterable[Selected], by: Sequence[str]) -> list[Tally]:
    """Count rows as ``NoteStore.tally`` does."""
    groups: dict[tuple[str | int | None, ...], dict[str, int]] = defaultdict(dict)
    if not by:
        groups[()] = {}
    for row in rows:
        for key in _keys(row, by):
            groups[key][row.id] = row.time
    return [Tally(key, len(times), *_span(times.values())) for key, times in groups.items()]


def ordered(rows: Iterable[Selected], order: str) -> list[str]:
    """Return the ids of rows in the order of ``NoteStore.select``."""
    unique = list({row.id: row for row in rows}.values())
    unique.sort(key=lambda row: row.seq, reverse=order.startswith("-"))
    if order.endswith("time"):
        unique.sort(key=lambda row: row.time, reverse=order.startswith("-"))
        unique.sort(key=lambda row: row.time == TIME_MIN)
    return [row.id for row in unique]


def _keys(row: Selected, by: Sequence[str]) -> list[tuple[str | int | None, ...]]:
    keys: list[tuple[str | int | None, ...]] = [()]
    for field in by:
        values: Sequence[str | int | None]
        if field == "tag":
            values = row.note.tags
        elif field == "term":
            values = [term.key for term in index_note(row.note).terms]
        elif field in ("day", "slot"):
            values = [None if row.time == TIME_MIN else row.time // (DAY if field == "day" else SLOT)]
        else:
            of_note = {"kind": row.note.kind.value, "speaker": row.note.speaker, "role": row.note.role}
            values = [row.session if field == "session" else of_note[field]]
        keys = [(*key, value) for key in keys for value in dict.fromkeys(values)]
    return keys


def _span(times: Iterable[int]) -> tuple[int | None, int | None]:
    known = [time for time in times if time != TIME_MIN]
    return (min(known), max(known)) if known else (None, None)


def _time(of: Note | EventRecord) -> int:
    return TIME_MIN if of.occurred_at is None else to_micros(of.occurred_at)
