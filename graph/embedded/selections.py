"""Exact queries: counts and ids of selected notes or events, from columns and postings.

A query with words or terms reads the notes of the rarest of them, else the notes of the scope. Contents are read only
to group by tag or term, and for events of merged notes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from zettel.graph.embedded import words
from zettel.graph.embedded.conditions import clause
from zettel.graph.embedded.reads import FILTER, VALID_TO, filter_values
from zettel.graph.keys import Keys
from zettel.model import TIME_MAX, TIME_MIN
from zettel.ports.query import DAY, SLOT, Selection, Tally

_BY_WORDS = """(SELECT DISTINCT w.note FROM json_each(:words) choice CROSS JOIN json_each(:stretches) s
    CROSS JOIN words w ON w.scope = :scope AND w.stretch = s.value AND w.key = json_extract(choice.value, '$[0]')
    WHERE NOT EXISTS (SELECT 1 FROM json_each(choice.value) o WHERE NOT EXISTS (SELECT 1 FROM words p
        WHERE p.scope = :scope AND p.stretch = w.stretch AND p.key = o.value AND p.note = w.note))
    ) found CROSS JOIN notes n ON n.number = found.note"""
"""The notes that have all keys of one of the choices, whose first key is their rarest."""
_IS_VALID = f"""AND n.valid_from <= :as_of
    AND CASE WHEN n.valid_to < {TIME_MAX} THEN n.valid_to ELSE COALESCE({VALID_TO}, {TIME_MAX}) END > :as_of"""
_NOTES = "notes n"
_OF_NOTES = "n.number, n.id, n.seq, n.kind, n.speaker, n.role, n.session, n.occurred_at AS time, n.number AS note"
_OF_EVENTS = "e.number, e.id, e.seq, n.kind, n.speaker, n.role, e.session, e.occurred_at AS time, n.number AS note"
_TO_EVENTS = "CROSS JOIN note_events ne ON ne.note = n.number CROSS JOIN events e ON e.number = ne.event"
_FROM_EVENTS = "events e CROSS JOIN note_events ne ON ne.event = e.number CROSS JOIN notes n ON n.number = ne.note"
_IS_EVENT = """AND n.kind = 'episodic' AND e.scope = :scope
    AND (n.event = e.number OR EXISTS (SELECT 1 FROM texts b, json_each(b.body, '$.event_ids') own
        WHERE b.note = n.number AND own.value = e.id))"""
"""Condition that an event is cited by the present version of the note, and not only by an earlier one."""
_OF_EVENT = {
    "of_session": "AND e.session = :of_session",
    "from": "AND e.occurred_at >= :from AND e.occurred_at != :unknown",
    "to": "AND e.occurred_at < :to AND e.occurred_at != :unknown",
}
_LABELS = {
    "tag": "JOIN texts t ON t.note = f.note JOIN json_each(t.body, '$.tags') label",
    "term": "JOIN texts t ON t.note = f.note JOIN json_each(t.terms) label",
}
_FIELDS = {
    "kind": "f.kind",
    "speaker": "f.speaker",
    "role": "f.role",
    "session": "f.session",
    # SQLite divides towards zero, and times before 1970 are negative.
    **{
        field: f"CASE WHEN f.time != {TIME_MIN} THEN (f.time - (f.time % {size} + {size}) % {size}) / {size} END"
        for field, size in (("day", DAY), ("slot", SLOT))
    },
    "tag": "label.value",
    "term": "json_extract(label.value, '$[0]')",
}
_ORDERS = {
    "time": "f.time = :unknown, f.time, f.seq",
    "-time": "f.time = :unknown, f.time DESC, f.seq DESC",
    "arrival": "f.seq",
    "-arrival": "f.seq DESC",
}


def tally(
    sql: sqlite3.Connection, scope: int, keys: Keys, selection: Selection, by: Sequence[str]
) -> list[Tally]:  # fmt: skip
    """Return the counts of ``NoteStore.tally``."""
    found, values = _found(sql, scope, keys, selection)
    fields = [_FIELDS[field] for field in by]
    labels = " ".join(_LABELS[field] for field in by if field in _LABELS)
    known = f"NULLIF(f.time, {TIME_MIN})"
    rows = "DISTINCT f.number" if selection.of_events else "*"
    counts = f"COUNT({rows}), MIN({known}), MAX({known})"
    grouped = f"GROUP BY {', '.join(map(str, range(1, len(by) + 1)))}" if by else ""
    found = f"SELECT {', '.join([*fields, counts])} FROM ({found}) f {labels} {grouped}"
    return [Tally(tuple(key), count, first, last) for *key, count, first, last in sql.execute(found, values)]


def select(
    sql: sqlite3.Connection, scope: int, keys: Keys, selection: Selection, order: str, limit: int
) -> list[str]:  # fmt: skip
    """Return the ids of ``NoteStore.select``."""
    found, values = _found(sql, scope, keys, selection)
    rows = sql.execute(
        f"SELECT f.id FROM ({found}) f GROUP BY f.number ORDER BY {_ORDERS[order]} LIMIT :limit",
        values | {"limit": limit},
    )
    return [id for (id,) in rows]


def _found(
    sql: sqlite3.Connection, scope: int, keys: Keys, selection: Selection
) -> tuple[str, dict[str, Any]]:  # fmt: skip
    """Return the query of the selected rows, and its values. An event may occur twice."""
    filter = selection.filter
    of_note = replace(filter, session=None, since=None, until=None) if selection.of_events else filter
    words_of = [list(map(keys.word, tokens)) for tokens in selection.tokens]
    terms_of = [[keys.term(key)] for key in selection.terms]
    choices = [[*some, *term] for some in words_of or [[]] for term in terms_of or [[]]]
    values: dict[str, Any] = filter_values(scope, keys, of_note) | {
        "unknown": TIME_MIN, "of_session": filter.session, "from": filter.since, "to": filter.until,
        "as_of": selection.as_of,
    }  # fmt: skip
    source, conditions = _NOTES, ""
    if choices != [[]]:
        every = sorted({key for choice in choices for key in choice})
        counts = dict(zip(every, words.note_counts(sql, scope, every), strict=True))
        rarest_first = [sorted(choice, key=counts.__getitem__) for choice in choices]
        source = _BY_WORDS
        values |= {"stretches": words.stretches(sql, scope), "words": json.dumps(rarest_first)}
    if selection.as_of is not None:
        conditions = f"{conditions} {_IS_VALID}"
    if selection.of_events:
        of_event = " ".join(condition for name, condition in _OF_EVENT.items() if values[name] is not None)
        source = _FROM_EVENTS if of_event and source == _NOTES else f"{source} {_TO_EVENTS}"
        conditions = f"{conditions} {_IS_EVENT} {of_event}"
    columns = _OF_EVENTS if selection.of_events else _OF_NOTES
    return f"SELECT {columns} FROM {source} WHERE {FILTER} {clause(sql, filter.where)} {conditions}", values
