"""Reads by id or in order: events, notes, histories, links and terms."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from zettel.core.checkpoints import is_valid
from zettel.core.fold import live_versions
from zettel.graph.bodies import read_body, read_note, read_uses
from zettel.graph.embedded import words
from zettel.graph.embedded.conditions import clause
from zettel.graph.keys import Keys
from zettel.model import (
    TIME_MAX,
    TIME_MIN,
    Checkpoint,
    EventRecord,
    Link,
    LinkType,
    Note,
    Revision,
    Term,
    TermUse,
    from_micros,
)
from zettel.ports import NoteHistory, Written
from zettel.ports.query import Filter

DUMP_PAGE = 256
"""Events fetched at once while streaming."""
FEW = 500
"""Below this number of notes with a facet, a page reads those notes rather than the scope in order."""

VALID_TO = f"""(SELECT MIN(CASE WHEN s.valid_from = {TIME_MIN} THEN l.recorded_at ELSE s.valid_from END)
    FROM links l JOIN notes s ON s.number = l.source WHERE l.target = n.number AND l.type = 'SUPERSEDES')"""
"""Earliest ``valid_from`` of the notes that supersede ``n``; an unknown one counts as the link's ``recorded_at``."""

FILTER = """n.scope = :scope AND NOT n.archived
    AND (:kinds = '[]' OR n.kind IN (SELECT value FROM json_each(:kinds)))
    AND (:session IS NULL OR n.session = :session) AND (:speaker IS NULL OR n.speaker = :speaker)
    AND (:role IS NULL OR n.role = :role)
    AND (:since IS NULL OR (n.occurred_at >= :since AND n.occurred_at != :unknown))
    AND (:until IS NULL OR (n.occurred_at < :until AND n.occurred_at != :unknown))
    AND (:unexpired_at IS NULL OR n.expires_at IS NULL OR n.expires_at > :unexpired_at)
    AND (:tags = '[]' OR EXISTS (SELECT 1 FROM json_each(:tags) CROSS JOIN facets p
        ON p.scope = :scope AND p.key = value AND p.note = n.number))
    AND (:every = '[]' OR NOT EXISTS (SELECT 1 FROM json_each(:every) WHERE NOT EXISTS (SELECT 1 FROM facets p
        WHERE p.scope = :scope AND p.key = value AND p.note = n.number)))"""
"""Condition that the note ``n`` of a scope is unarchived and passes a filter."""


def events(sql: sqlite3.Connection, scope: int, ids: Iterable[str]) -> dict[str, EventRecord]:
    """Return the events that exist, by id."""
    rows = sql.execute(
        "SELECT e.id, e.body FROM json_each(?) CROSS JOIN events e ON e.scope = ? AND e.id = value",
        (json.dumps(list(ids)), scope),
    )
    return {id: read_body(EventRecord, body) for id, body in rows}


def events_like(sql: sqlite3.Connection, scope: int, ids: Iterable[str]) -> tuple[str, ...]:
    """Return the ids of events that share an identity with one of these, by ``seq``."""
    rows = sql.execute(
        """SELECT DISTINCT o.id FROM json_each(:ids) CROSS JOIN events e ON e.scope = :scope AND e.id = value
        CROSS JOIN events o ON o.scope = :scope AND o.identity = e.identity ORDER BY o.seq""",
        {"scope": scope, "ids": json.dumps(list(ids))},
    )
    return tuple(id for (id,) in rows)


def events_from(
    sql: sqlite3.Connection, scope: int, source: str | None, session: str | None, limit: int
) -> tuple[str, ...]:
    """Return the ids of the first ``limit`` events of a file or a session, by ``seq``."""
    of_session = "" if session is None else "AND session = :session"  # a plain condition, so that SQLite uses its index
    rows = sql.execute(
        f"""SELECT id FROM events WHERE scope = :scope {of_session} AND (:source IS NULL OR source = :source)
        ORDER BY seq LIMIT :limit""",
        {"scope": scope, "source": source, "session": session, "limit": limit},
    )
    return tuple(id for (id,) in rows)


def notes(sql: sqlite3.Connection, scope: int, ids: Iterable[str]) -> dict[str, Note]:
    """Return the notes that exist, by id."""
    rows = sql.execute(
        f"""SELECT n.id, t.body, {VALID_TO} FROM json_each(?)
        CROSS JOIN notes n ON n.scope = ? AND n.id = value JOIN texts t ON t.note = n.number""",
        (json.dumps(list(ids)), scope),
    )
    return {id: read_note(body, TIME_MAX if end is None else end) for id, body, end in rows}


def notes_of(sql: sqlite3.Connection, scope: int, events: Iterable[str]) -> tuple[str, ...]:
    """Return the ids of notes with one of these events in any version, by ``seq``."""
    rows = sql.execute(
        """SELECT id FROM notes WHERE number IN (SELECT ne.note FROM json_each(?)
        CROSS JOIN events e ON e.scope = ? AND e.id = value JOIN note_events ne ON ne.event = e.number)
        ORDER BY seq, number""",
        (json.dumps(list(events)), scope),
    )
    return tuple(id for (id,) in rows)


def filter_values(scope: int, keys: Keys, filter: Filter) -> dict[str, Any]:
    """Return the values of ``FILTER``."""
    tags, every = keys.filter_facets(filter)
    return {
        "scope": scope, "kinds": json.dumps(list(filter.kinds)), "session": filter.session, "speaker": filter.speaker,
        "role": filter.role, "since": filter.since, "until": filter.until, "unknown": TIME_MIN,
        "tags": json.dumps(tags), "every": json.dumps(every), "unexpired_at": filter.unexpired_at,
    }  # fmt: skip


def page(sql: sqlite3.Connection, scope: int, keys: Keys, filter: Filter, after: int, limit: int) -> list[Note]:
    """Return unarchived notes of higher ``seq`` than ``after`` that pass the filter."""
    _, every = keys.filter_facets(filter)
    rare = next((key for key in every if is_rare(sql, scope, key)), None)
    from_facets = "" if rare is None else "facets f CROSS JOIN"
    with_facet = "" if rare is None else "AND f.scope = :scope AND f.key = :rare AND n.number = f.note"
    rows = sql.execute(
        f"""SELECT t.body, {VALID_TO} FROM {from_facets} notes n JOIN texts t ON t.note = n.number
        WHERE {FILTER} {clause(sql, filter.where)} AND n.seq > :after {with_facet}
        ORDER BY n.seq, n.number LIMIT :limit""",
        filter_values(scope, keys, filter) | {"after": after, "limit": limit, "rare": rare},
    )
    return [read_note(body, TIME_MAX if end is None else end) for body, end in rows]


def expired(
    sql: sqlite3.Connection, scope: int, until: int, after: tuple[int, int], limit: int, archived: bool
) -> list[Note]:
    """Return the notes that expire up to ``until``, after a position, by (``expires_at``, ``seq``)."""
    rows = sql.execute(
        """SELECT t.body FROM notes n JOIN texts t ON t.note = n.number
        WHERE n.scope = ? AND n.archived = ? AND n.expires_at <= ? AND (n.expires_at, n.seq) > (?, ?)
        ORDER BY n.expires_at, n.seq LIMIT ?""",
        (scope, archived, until, *after, limit),
    )
    return [read_note(body) for (body,) in rows]


def is_rare(sql: sqlite3.Connection, scope: int, key: int) -> bool:
    """Return whether fewer than FEW notes have a facet."""
    first = "SELECT 1 FROM facets WHERE scope = ? AND key = ? LIMIT ?"
    (count,) = sql.execute(f"SELECT count(*) FROM ({first})", (scope, key, FEW)).fetchone()
    return bool(count < FEW)


def archived(sql: sqlite3.Connection, scope: int, before: int, limit: int) -> list[Note]:
    """Return archived notes of lower ``seq`` than ``before``, newest first."""
    rows = sql.execute(
        f"""SELECT t.body, {VALID_TO} FROM notes n INDEXED BY notes_archived JOIN texts t ON t.note = n.number
        WHERE n.scope = ? AND n.seq < ? AND n.archived ORDER BY n.seq DESC LIMIT ?""",
        (scope, before, limit),
    )
    return [read_note(body, TIME_MAX if end is None else end) for body, end in rows]


def any_archived(sql: sqlite3.Connection, scope: int) -> bool:
    """Return if any note of the scope is archived."""
    (has_archived,) = sql.execute(
        "SELECT EXISTS (SELECT 1 FROM notes INDEXED BY notes_archived WHERE scope = ? AND archived)", (scope,)
    ).fetchone()
    return bool(has_archived)


def histories(sql: sqlite3.Connection, scope: int, ids: Iterable[str]) -> dict[str, NoteHistory]:
    """Return base and revisions of the notes that exist, by id."""
    rows = sql.execute(
        """SELECT n.id, n.number, COALESCE(t.base, t.body) FROM json_each(?)
        CROSS JOIN notes n ON n.scope = ? AND n.id = value JOIN texts t ON t.note = n.number""",
        (json.dumps(list(ids)), scope),
    ).fetchall()
    return {id: NoteHistory(read_note(base), revisions_of(sql, number)) for id, number, base in rows}


def recent(sql: sqlite3.Connection, scope: int, ids: Iterable[str]) -> dict[str, NoteHistory]:
    """Return base, checkpoint and later revisions of the notes that exist, by id."""
    rows = sql.execute(
        """SELECT n.id, n.number, COALESCE(t.base, t.body), c.body FROM json_each(?)
        CROSS JOIN notes n ON n.scope = ? AND n.id = value JOIN texts t ON t.note = n.number
        LEFT JOIN checkpoints c ON c.note = n.number""",
        (json.dumps(list(ids)), scope),
    ).fetchall()
    return {id: _recent(sql, number, read_note(base), checkpoint) for id, number, base, checkpoint in rows}


def _recent(sql: sqlite3.Connection, number: int, base: Note, body: str | None) -> NoteHistory:
    if body is not None:
        checkpoint = read_body(Checkpoint, body)
        later = _revisions(sql, number, checkpoint.version)
        if is_valid(checkpoint.version, later):
            return NoteHistory(base, _with_liveness([*checkpoint.revisions, *later]), checkpoint)
    return NoteHistory(base, revisions_of(sql, number))


def revisions_of(sql: sqlite3.Connection, number: int) -> tuple[Revision, ...]:
    """Return a note's revisions in ``seq`` order, with ``live`` set."""
    return _with_liveness(_revisions(sql, number, 0))


def _revisions(sql: sqlite3.Connection, number: int, after: int) -> list[Revision]:
    rows = sql.execute("SELECT body FROM revisions WHERE note = ? AND version > ? ORDER BY version", (number, after))
    return [read_body(Revision, body) for (body,) in rows]


def _with_liveness(revisions: Sequence[Revision]) -> tuple[Revision, ...]:
    live = live_versions(revisions)
    return tuple(
        r if r.live == (r.version in live) else r.model_copy(update={"live": r.version in live}) for r in revisions
    )


def written_by(sql: sqlite3.Connection, scope: int, principal: str) -> Written:
    """Return the ids of the events and the changed notes of a principal, by ``seq``, with the changed versions."""
    events = sql.execute("SELECT id FROM events WHERE scope = ? AND principal = ? ORDER BY seq", (scope, principal))
    changes = sql.execute(
        """SELECT n.id, r.version FROM revisions r JOIN notes n ON n.number = r.note
        WHERE r.scope = ? AND r.principal = ? ORDER BY r.seq""",
        (scope, principal),
    )
    return Written(tuple(id for (id,) in events), tuple(changes))


def citing(sql: sqlite3.Connection, scope: int, notes: Sequence[str]) -> tuple[Revision, ...]:
    """Return the revisions with one of these notes as input, cause or end of a link, by ``seq``."""
    rows = sql.execute(
        """SELECT DISTINCT r.note, r.number FROM json_each(?) CROSS JOIN citations c ON c.scope = ? AND c.cited = value
        JOIN revisions r ON r.number = c.revision""",
        (json.dumps(list(notes)), scope),
    ).fetchall()
    wanted = {number for _, number in rows}
    revisions: list[Revision] = []
    for note in sorted({note for note, _ in rows}):
        numbers = sql.execute("SELECT number FROM revisions WHERE note = ? ORDER BY seq", (note,)).fetchall()
        history = revisions_of(sql, note)
        revisions.extend(r for (number,), r in zip(numbers, history, strict=True) if number in wanted)
    return tuple(sorted(revisions, key=lambda revision: revision.seq))


def links(sql: sqlite3.Connection, scope: int, notes: Sequence[str]) -> list[Link]:
    """Return the links that start or end at one of these notes, by (source, type, target)."""
    rows = sql.execute(
        """WITH ends AS (SELECT n.number FROM json_each(?) CROSS JOIN notes n ON n.scope = ? AND n.id = value),
        ids AS (SELECT rowid FROM links WHERE source IN ends UNION SELECT rowid FROM links WHERE target IN ends)
        SELECT s.id, t.id, l.type, l.weight, l.reason, l.recorded_at FROM ids JOIN links l ON l.rowid = ids.rowid
        JOIN notes s ON s.number = l.source JOIN notes t ON t.number = l.target ORDER BY s.id, l.type, t.id""",
        (json.dumps(list(notes)), scope),
    )
    return [link_of(*row) for row in rows]


def link_of(source: str, target: str, type: str, weight: float, reason: str, recorded_at: int) -> Link:
    """Return the link of a row."""
    return Link(
        source=source,
        target=target,
        type=LinkType(type),
        weight=weight,
        reason=reason,
        recorded_at=from_micros(recorded_at),
    )


def term_names(sql: sqlite3.Connection, scope: int, keys: Sequence[int]) -> list[str]:
    """Return the names of terms by key, "" for unknown ones."""
    rows = sql.execute(
        "SELECT terms.key, name FROM json_each(?) CROSS JOIN terms ON scope = ? AND terms.key = value",
        (json.dumps(list(keys)), scope),
    )
    names: dict[int, str] = dict(rows.fetchall())
    return [names.get(key, "") for key in keys]


def terms(sql: sqlite3.Connection, scope: int, keys: Keys, note: str) -> list[Term]:
    """Return a note's terms by key, each with its number of notes; an archived note has none."""
    note_uses = sorted(uses(sql, scope, [note]).get(note, ()))
    counts = words.note_counts(sql, scope, [keys.term(use.key) for use in note_uses])
    return [
        Term(key=use.key, text=use.text, kind=use.kind, notes=notes)
        for use, notes in zip(note_uses, counts, strict=True)
    ]


def uses(sql: sqlite3.Connection, scope: int, notes: Iterable[str]) -> dict[str, tuple[TermUse, ...]]:
    """Return the term uses of the notes that exist and are not archived."""
    rows = sql.execute(
        """SELECT n.id, t.terms FROM json_each(?) CROSS JOIN notes n ON n.scope = ? AND n.id = value
        JOIN texts t ON t.note = n.number WHERE NOT n.archived""",
        (json.dumps(list(notes)), scope),
    )
    return {id: read_uses(body) for id, body in rows}


def dump_page(sql: sqlite3.Connection, scope: int, after: int) -> Iterator[tuple[EventRecord, tuple[Note, ...]]]:
    """Yield the next events of higher ``seq`` than ``after``, each with its present notes, by ``seq``."""
    rows = sql.execute(
        "SELECT number, body FROM events WHERE scope = ? AND seq > ? ORDER BY seq LIMIT ?", (scope, after, DUMP_PAGE)
    ).fetchall()
    for number, body in rows:
        event = read_body(EventRecord, body)
        note_rows = sql.execute(
            f"""SELECT t.body, {VALID_TO} FROM note_events ne JOIN notes n ON n.number = ne.note
            JOIN texts t ON t.note = n.number WHERE ne.event = ? ORDER BY n.seq, n.number""",
            (number,),
        )
        notes = [read_note(note, TIME_MAX if end is None else end) for note, end in note_rows]
        yield event, tuple(note for note in notes if event.event_id in note.event_ids)
