"""Answers to a ``LookupQuery``."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from zettel.graph.bodies import read_body
from zettel.graph.columnar.columns import Columns
from zettel.graph.embedded import reads, words
from zettel.graph.embedded.write_index import WriteIndex
from zettel.graph.keys import Keys
from zettel.model import EventRecord, Kind, Note
from zettel.ports import LookupQuery, LookupResult


def empty_result(query: LookupQuery) -> LookupResult:
    """Return the result for an empty scope."""
    df = dict.fromkeys(query.tokens, 0)
    return LookupResult(events={}, tombstones=frozenset(), named={}, naming={}, has_titles=False, notes=0, df=df)


def look_up(
    sql: sqlite3.Connection, scope: int, keys: Keys, query: LookupQuery, columns: Columns | WriteIndex | None = None
) -> LookupResult:
    """Answer a LookupQuery. ``df`` and ``notes`` count notes that are not archived.

    The scope's ``columns`` contain both counts; without them SQLite counts the words of the file one by one.
    """
    (has_titles,) = sql.execute("SELECT EXISTS (SELECT 1 FROM notes WHERE scope = ? AND titled)", (scope,)).fetchone()
    notes, df = _counts(sql, scope, keys, query.tokens, columns) if query.tokens else (0, {})
    return LookupResult(
        events=_events(sql, scope, query.identities) if query.identities else {},
        tombstones=_tombstones(sql, scope, query.identities) if query.identities else frozenset(),
        named=_named(sql, scope, keys, query.names) if query.names and has_titles else {},
        naming=_naming(sql, scope, keys, query.titles) if query.titles else {},
        has_titles=bool(has_titles),
        notes=notes,
        df=df,
    )


def _counts(
    sql: sqlite3.Connection, scope: int, keys: Keys, tokens: Sequence[str], columns: Columns | WriteIndex | None
) -> tuple[int, dict[str, int]]:
    """Count the notes of the scope, and the notes with each token."""
    if columns is not None:
        df = columns.words.counts(list(map(keys.word, tokens)))
        return int(columns.shown().sum()), dict(zip(tokens, df, strict=True))
    # This index contains exactly these notes; without the hint SQLite reads every note of the scope.
    count = "SELECT COUNT(*) FROM notes INDEXED BY notes_by_seq WHERE scope = ? AND NOT archived"
    return sql.execute(count, (scope,)).fetchone()[0], _df(sql, scope, keys, tokens)


def _events(
    sql: sqlite3.Connection, scope: int, identities: Sequence[str]
) -> dict[str, tuple[EventRecord, tuple[str, ...]]]:
    """Return the newest event of each identity and its originally episodic notes, first part first."""
    rows = sql.execute(
        """SELECT e.identity, e.number, e.body FROM json_each(?) CROSS JOIN events e ON e.number =
        (SELECT MAX(number) FROM events WHERE scope = ? AND identity = value)""",
        (json.dumps(list(identities)), scope),
    ).fetchall()
    events: dict[str, tuple[EventRecord, tuple[str, ...]]] = {}
    for identity, number, body in rows:
        notes = sql.execute(
            """SELECT n.id FROM note_events ne JOIN notes n ON n.number = ne.note JOIN texts t ON t.note = ne.note
            WHERE ne.event = ? AND json_extract(COALESCE(t.base, t.body), '$.kind') = ? ORDER BY n.part, n.seq""",
            (number, Kind.EPISODIC.value),
        )
        events[identity] = (read_body(EventRecord, body), tuple(id for (id,) in notes))
    return events


def _tombstones(sql: sqlite3.Connection, scope: int, identities: Sequence[str]) -> frozenset[str]:
    rows = sql.execute(
        "SELECT identity FROM json_each(?) CROSS JOIN tombstones ON scope = ? AND identity = value",
        (json.dumps(list(identities)), scope),
    )
    return frozenset(identity for (identity,) in rows)


def _named(sql: sqlite3.Connection, scope: int, keys: Keys, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    name_of = {keys.title(name): name for name in names}
    rows = sql.execute(
        """SELECT p.key, n.id FROM json_each(?) CROSS JOIN facets p ON p.scope = ? AND p.key = value
        JOIN notes n ON n.number = p.note ORDER BY n.seq""",
        (json.dumps(list(name_of)), scope),
    )
    named: dict[str, tuple[str, ...]] = {}
    for key, id in rows:
        name = name_of[key]
        named[name] = (*named.get(name, ()), id)
    return named


def _naming(
    sql: sqlite3.Connection, scope: int, keys: Keys, titles: Sequence[tuple[str, tuple[str, ...]]]
) -> dict[str, tuple[Note, ...]]:
    """Return the notes that contain all tokens of each title; the search starts from its rarest token."""
    df = _df(sql, scope, keys, sorted({token for _, tokens in titles for token in tokens}))
    stretches = words.stretches(sql, scope)
    naming: dict[str, tuple[Note, ...]] = {}
    for title, tokens in titles:
        if not tokens or any(df[token] == 0 for token in tokens):
            continue
        rarest, *others = sorted(tokens, key=lambda token: (df[token], token))
        ids = words.notes_with_all(sql, scope, stretches, keys.word(rarest), [keys.word(token) for token in others])
        if ids:
            notes = reads.notes(sql, scope, ids)
            naming[title] = tuple(notes[id] for id in ids)
    return naming


def _df(sql: sqlite3.Connection, scope: int, keys: Keys, tokens: Sequence[str]) -> dict[str, int]:
    return dict(zip(tokens, words.note_counts(sql, scope, [keys.word(token) for token in tokens]), strict=True))
