"""What a write has to know before it can be planned."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from zettel.graph.bodies import read_body
from zettel.graph.columnar.columns import Columns
from zettel.graph.embedded import reads, words
from zettel.graph.embedded.outline import Outline
from zettel.graph.keys import Keys
from zettel.model import EventRecord, Kind, Note
from zettel.ports import Found, Lookup


def nothing(ask: Lookup) -> Found:
    """The answer of a scope that nothing was ever written to."""
    df = dict.fromkeys(ask.tokens, 0)
    return Found(events={}, tombstones=frozenset(), named={}, naming={}, has_titles=False, notes=0, df=df)


def look_up(
    sql: sqlite3.Connection, scope: int, keys: Keys, ask: Lookup, columns: Columns | Outline | None = None
) -> Found:
    """Answer a Lookup. ``df`` counts notes that are not archived, as ``notes`` does.

    With the scope's ``columns`` both are known; the file's words would have to be counted one by one.
    """
    titled = sql.execute("SELECT EXISTS (SELECT 1 FROM notes WHERE scope = ? AND titled)", (scope,)).fetchone()
    notes, df = _counts(sql, scope, keys, ask.tokens, columns) if ask.tokens else (0, {})
    return Found(
        events=_events(sql, scope, ask.identities) if ask.identities else {},
        tombstones=_tombstones(sql, scope, ask.identities) if ask.identities else frozenset(),
        named=_named(sql, scope, keys, ask.names) if ask.names and titled[0] else {},
        naming=_naming(sql, scope, keys, ask.titles) if ask.titles else {},
        has_titles=bool(titled[0]),
        notes=notes,
        df=df,
    )


def _counts(
    sql: sqlite3.Connection, scope: int, keys: Keys, tokens: Sequence[str], columns: Columns | Outline | None
) -> tuple[int, dict[str, int]]:
    """How many notes there are, and hold each token."""
    if columns is not None:
        df = columns.words.counts(list(map(keys.word, tokens)))
        return int(columns.shown().sum()), dict(zip(tokens, df, strict=True))
    # The index holds these notes and no others; left to itself SQLite reads every note of the scope.
    count = "SELECT COUNT(*) FROM notes INDEXED BY notes_by_seq WHERE scope = ? AND NOT archived"
    return sql.execute(count, (scope,)).fetchone()[0], _df(sql, scope, keys, tokens)


def _events(
    sql: sqlite3.Connection, scope: int, identities: Sequence[str]
) -> dict[str, tuple[EventRecord, tuple[str, ...]]]:
    """Per identity its newest event and the notes that were episodic when they were made of it, head first."""
    newest: dict[str, tuple[int, str]] = {}
    rows = sql.execute(
        """SELECT identity, number, body FROM json_each(?) CROSS JOIN events ON scope = ? AND identity = value
        ORDER BY seq""",
        (json.dumps(list(identities)), scope),
    )
    for identity, number, body in rows:
        newest[identity] = (number, body)
    found: dict[str, tuple[EventRecord, tuple[str, ...]]] = {}
    for identity, (number, body) in newest.items():
        notes = sql.execute(
            """SELECT n.id FROM note_events ne JOIN notes n ON n.number = ne.note JOIN texts t ON t.note = ne.note
            WHERE ne.event = ? AND json_extract(COALESCE(t.base, t.body), '$.kind') = ? ORDER BY n.part, n.seq""",
            (number, Kind.EPISODIC.value),
        )
        found[identity] = (read_body(EventRecord, body), tuple(id for (id,) in notes))
    return found


def _tombstones(sql: sqlite3.Connection, scope: int, identities: Sequence[str]) -> frozenset[str]:
    rows = sql.execute(
        "SELECT identity FROM json_each(?) CROSS JOIN tombstones ON scope = ? AND identity = value",
        (json.dumps(list(identities)), scope),
    )
    return frozenset(identity for (identity,) in rows)


def _named(sql: sqlite3.Connection, scope: int, keys: Keys, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    asked = {keys.title(name): name for name in names}
    rows = sql.execute(
        """SELECT p.key, n.id FROM json_each(?) CROSS JOIN facets p ON p.scope = ? AND p.key = value
        JOIN notes n ON n.number = p.note ORDER BY n.seq""",
        (json.dumps(list(asked)), scope),
    )
    found: dict[str, tuple[str, ...]] = {}
    for key, id in rows:
        found[asked[key]] = (*found.get(asked[key], ()), id)
    return found


def _naming(
    sql: sqlite3.Connection, scope: int, keys: Keys, titles: Sequence[tuple[str, tuple[str, ...]]]
) -> dict[str, tuple[Note, ...]]:
    """Per title the notes that hold all of its tokens: its rarest token's notes, as far as the others hold them too."""
    df = _df(sql, scope, keys, sorted({token for _, tokens in titles for token in tokens}))
    stretches = words.stretches(sql, scope)
    found: dict[str, tuple[Note, ...]] = {}
    for title, tokens in titles:
        if not tokens or any(df[token] == 0 for token in tokens):
            continue
        rarest, *others = sorted(tokens, key=lambda token: (df[token], token))
        ids = words.holding_all(sql, scope, stretches, keys.word(rarest), [keys.word(token) for token in others])
        if ids:
            notes = reads.notes(sql, scope, ids)
            found[title] = tuple(notes[id] for id in ids)
    return found


def _df(sql: sqlite3.Connection, scope: int, keys: Keys, tokens: Sequence[str]) -> dict[str, int]:
    return dict(zip(tokens, words.holders(sql, scope, [keys.word(token) for token in tokens]), strict=True))
