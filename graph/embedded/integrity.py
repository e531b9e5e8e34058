"""Consistency check and repair of derived data.

The record consists of events, each note's base, its revisions and MENTIONS. Everything else is derived: the note's
state and decided links by the fold, its index by ``zettel.text.index``, words and facets from the index.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from zettel.core.fold import fold, state_of
from zettel.errors import StoreError, StoreTooNew
from zettel.graph.bodies import body_of, micros_or_max, micros_or_min, micros_or_none, read_note, uses_body
from zettel.graph.embedded import maintenance, reads, snapshots, words
from zettel.graph.embedded.connections import Connections
from zettel.graph.embedded.scopes import RESTORING
from zettel.graph.keys import TITLE, Keys, packed, unpacked
from zettel.model import JobKind, Link, Note, to_micros
from zettel.text.extraction import is_question
from zettel.text.index import index_note
from zettel.text.tokens import TOKENS_VERSION

_ORPHANS = {
    "texts": "note NOT IN (SELECT number FROM notes)",
    "note_events": "note NOT IN (SELECT number FROM notes) OR event NOT IN (SELECT number FROM events)",
    "vectors": "note NOT IN (SELECT number FROM notes) OR space NOT IN (SELECT id FROM spaces)",
    "links": "source NOT IN (SELECT number FROM notes) OR target NOT IN (SELECT number FROM notes)",
    "revisions": "note NOT IN (SELECT number FROM notes)",
    "checkpoints": "note NOT IN (SELECT number FROM notes)",
    "citations": "revision NOT IN (SELECT number FROM revisions)",
    "facets": "note NOT IN (SELECT number FROM notes)",
    "words": "note NOT IN (SELECT number FROM notes)",
    "terms": "(scope, key) NOT IN (SELECT scope, key FROM words)",
    "jobs": "scope NOT IN (SELECT number FROM scopes)",
    "snapshots": "scope NOT IN (SELECT number FROM scopes) OR space NOT IN (SELECT id FROM spaces)",
    "answers": """scope NOT IN (SELECT number FROM scopes)
        OR number IN (SELECT answer FROM answer_notes WHERE note NOT IN (SELECT number FROM notes))""",
    "answer_notes": "answer NOT IN (SELECT number FROM answers) OR note NOT IN (SELECT number FROM notes)",
    "model_use": "scope NOT IN (SELECT number FROM scopes)",
    "searches": """scope NOT IN (SELECT number FROM scopes)
        OR number IN (SELECT search FROM search_notes WHERE note NOT IN (SELECT number FROM notes))""",
    "search_notes": "search NOT IN (SELECT number FROM searches) OR note NOT IN (SELECT number FROM notes)",
    "note_uses": "note NOT IN (SELECT number FROM notes)",
}
"""Conditions for rows that refer to missing rows, by table."""
_POSTINGS = {"facets": "key, count", "words": "stretch, key"}
"""The tables of index entries, with their columns beside scope and note."""
Posting = tuple[str, int, int]
"""Table and values of one index entry."""
Problem = tuple[str, Callable[[], Any]]
"""A line of the report, and its repair."""


def check(sql: sqlite3.Connection, repair: bool, now: int) -> list[str]:
    """Return one line per inconsistency; ``repair`` fixes them in this transaction."""
    (damage,) = sql.execute("PRAGMA quick_check(1)").fetchone()
    if damage != "ok":
        return [f"the file is damaged: {damage}; restore it from a copy"]
    lines = []
    if repair:  # snapshots may contain the same inconsistencies
        snapshots.drop(sql, "TRUE")
    for table, condition in _ORPHANS.items():
        (count,) = sql.execute(f"SELECT COUNT(*) FROM {table} WHERE {condition}").fetchone()
        if count:
            lines.append(f"{table}: {count} rows refer to a row that does not exist")
            if repair:
                sql.execute(f"DELETE FROM {table} WHERE {condition}")
    rows = sql.execute("SELECT number, name, secret, key FROM scopes ORDER BY number").fetchall()
    for number, name, secret, key in rows:
        if key.startswith(RESTORING):
            lines.append(f"{name}: an import of a whole memory is unfinished or was interrupted")
            if repair:
                maintenance.drop_scope(sql, number)
            continue
        scope_lines = list(_ScopeCheck(sql, number, Keys(secret), repair, now).check())
        lines += [f"{name}: {line}" for line in scope_lines]
        if scope_lines and repair:  # makes every process reload the scope
            sql.execute("UPDATE scopes SET changed = changed + 1, floor = changed + 1 WHERE number = ?", (number,))
    return lines


def require_tokens(connections: Connections, now: int) -> None:
    """Rebuild the index in one transaction if another tokenizer version made it. Raises ``StoreTooNew``."""
    with connections.read() as sql:
        if _tokens_version(sql) == TOKENS_VERSION:
            return
    with connections.write() as sql:
        version = _tokens_version(sql)
        if version is None:
            sql.execute("INSERT INTO tokens (version) VALUES (?)", (TOKENS_VERSION,))
        elif version > TOKENS_VERSION:
            raise StoreTooNew(
                f"{connections.path} was indexed by a newer zettel (tokens version {version}; this one knows "
                f"{TOKENS_VERSION}): upgrade zettel"
            )
        elif version < TOKENS_VERSION:
            check(sql, True, now)
            sql.execute("UPDATE tokens SET version = ?", (TOKENS_VERSION,))


def _tokens_version(sql: sqlite3.Connection) -> int | None:
    row = sql.execute("SELECT version FROM tokens").fetchone()
    return None if row is None else int(row[0])


class _ScopeCheck:
    """The check of one scope."""

    def __init__(self, sql: sqlite3.Connection, number: int, keys: Keys, repair: bool, now: int) -> None:
        self._sql, self._number, self._keys, self._repair, self._now = sql, number, keys, repair, now

    def check(self) -> Iterator[str]:
        """Yield one line per inconsistency of the scope, and repair it on request."""
        notes = self._sql.execute(
            "SELECT number, id FROM notes WHERE scope = ? ORDER BY number", (self._number,)
        ).fetchall()
        posted: dict[int, set[Posting]] = defaultdict(set)
        for table, columns in _POSTINGS.items():
            rows = self._sql.execute(f"SELECT note, {columns} FROM {table} WHERE scope = ?", (self._number,))
            for note, *posting in rows:
                posted[note].add((table, *posting))
        named = {key for (key,) in self._sql.execute("SELECT key FROM terms WHERE scope = ?", (self._number,))}
        for number, id in notes:
            for problem, repair in self._check_note(number, id, posted[number], named):
                yield f"note {id}: {problem}"
                if self._repair:
                    repair()
        yield from self._unembedded()
        (seq,) = self._sql.execute("SELECT seq FROM scopes WHERE number = ?", (self._number,)).fetchone()
        (last,) = self._sql.execute(
            """SELECT MAX(seq) FROM (SELECT seq FROM events WHERE scope = :scope UNION ALL
            SELECT seq FROM notes WHERE scope = :scope UNION ALL SELECT seq FROM revisions WHERE scope = :scope)""",
            {"scope": self._number},
        ).fetchone()
        if last is not None and last > seq:
            yield f"its seq is {seq}, but {last} is in use"
            if self._repair:
                self._do("UPDATE scopes SET seq = ? WHERE number = ?", last, self._number)

    def _check_note(self, number: int, id: str, posted: set[Posting], named: set[int]) -> Iterator[Problem]:
        row = self._sql.execute(
            "SELECT body, COALESCE(base, body), terms FROM texts WHERE note = ?", (number,)
        ).fetchone()
        if row is None:
            yield "it has no text", lambda: None
            return
        body, base, uses = row
        try:
            note, links = fold(read_note(base), reads.revisions_of(self._sql, number))
        except StoreError:
            yield "its text or a revision is damaged: restore a copy", lambda: None
            return
        if not _is_state(body, note):
            yield (
                "its state differs from its history",
                lambda: self._do("UPDATE texts SET body = ? WHERE note = ?", body_of(note), number),
            )
        history = reads.recent(self._sql, self._number, [id])[id]
        if state_of(history) != (note, links):
            yield (
                "its checkpoint differs from its history",
                lambda: self._do("DELETE FROM checkpoints WHERE note = ?", number),
            )
        events = [
            self._sql.execute(
                "SELECT number, seq, source FROM events WHERE scope = ? AND id = ?", (self._number, event)
            ).fetchone()
            for event in note.event_ids
        ]
        if events[0] is None:
            yield f"its event {note.event_ids[0]} is missing", lambda: None
            return
        yield from self._check_index(number, note, uses, [event for event in events if event], posted, named)
        if self._stored_links(number) != self._link_rows(links):
            yield "its links differ from its history", lambda: self._relink(number, links)

    def _check_index(
        self,
        number: int,
        note: Note,
        uses: str,
        events: list[tuple[int, int, str | None]],
        posted: set[Posting],
        named: set[int],
    ) -> Iterator[Problem]:
        index = index_note(note)
        entries = self._keys.entries(index)
        entries += self._keys.facets(note, {source for _, _, source in events if source is not None})
        names = {self._keys.term(use.key): use.key for use in index.terms}
        terms = [(self._keys.term(use.key), use.count) for use in index.terms]
        if note.archived:
            entries, terms, names = [], [], {}
        *columns, stored_entries, stored_terms = self._sql.execute(
            """SELECT event, event_seq, part, kind, speaker, role, session, occurred_at, valid_from, valid_to,
            expires_at, recorded_at, length, asks, archived, titled, entries, terms FROM notes WHERE number = ?""",
            (number,),
        ).fetchone()
        wanted = [
            events[0][0], events[0][1], note.part, note.kind.value, note.speaker, note.role, note.session,
            micros_or_min(note.occurred_at), micros_or_min(note.valid_from), micros_or_max(note.valid_to),
            micros_or_none(note.expires_at), to_micros(note.recorded_at),
            index.length, int(is_question(note.content)), int(note.archived),
            int(any(count == TITLE for _, count in entries)),
        ]  # fmt: skip
        if columns != wanted:
            yield (
                "its columns differ from its text",
                lambda: self._do(
                    """UPDATE notes SET event = ?, event_seq = ?, part = ?, kind = ?, speaker = ?, role = ?,
                session = ?, occurred_at = ?, valid_from = ?, valid_to = ?, expires_at = ?, recorded_at = ?,
                length = ?, asks = ?, archived = ?, titled = ? WHERE number = ?""",
                    *wanted,
                    number,
                ),
            )
        stored = (set(unpacked(stored_entries)), set(unpacked(stored_terms)))
        if stored != (set(entries), set(terms)) or uses != uses_body(index.terms):
            yield (
                "its index differs from its text",
                lambda: self._reindex(number, packed(entries), packed(terms), uses_body(index.terms)),
            )
        keys, others = words.split([*entries, *terms])
        stretch = words.stretch_of(note.seq)
        wanted_posts: set[Posting] = {("words", stretch, key) for key in keys}
        wanted_posts |= {("facets", *entry) for entry in others}
        if posted != wanted_posts or not names.keys() <= named:
            yield "its words or facets differ from its index", lambda: self._repost(number, posted, wanted_posts, names)

    def _unembedded(self) -> Iterator[str]:
        """Yield notes without a vector in the active set and without a job that embeds them."""
        rows = self._sql.execute(
            """SELECT n.id, t.body FROM notes n JOIN texts t ON t.note = n.number JOIN spaces s ON s.active
            WHERE n.scope = :scope AND NOT n.archived
            AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.note = n.number AND v.space = s.id)
            AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.scope = :scope AND (j.kind = 'reembed'
                OR (j.kind = 'embed' AND j.note = n.id AND j.state != 'failed'))) ORDER BY n.number""",
            {"scope": self._number},
        ).fetchall()
        for id, body in rows:
            yield f"note {id}: it has no vector and no embed job"
            if self._repair:
                version = read_note(body).version
                self._do(
                    "DELETE FROM jobs WHERE scope = ? AND kind = 'embed' AND note = ? AND version = ?",
                    self._number, id, version,
                )  # fmt: skip
                self._do(
                    """INSERT INTO jobs (scope, id, kind, note, version, priority, run_at, attempts, state, lease_until)
                    VALUES (?, ?, ?, ?, ?, 0, ?, 0, 'queued', 0)""",
                    self._number, f"j_{secrets.token_hex(10)}", JobKind.EMBED.value, id, version, self._now,
                )  # fmt: skip

    def _stored_links(self, number: int) -> set[tuple[Any, ...]]:
        rows = self._sql.execute(
            "SELECT source, target, type, weight, reason, recorded_at FROM links WHERE owner = ?", (number,)
        )
        return set(rows)

    def _link_rows(self, links: tuple[Link, ...]) -> set[tuple[Any, ...]]:
        rows = set()
        for link in links:
            ends = [
                self._sql.execute("SELECT number FROM notes WHERE scope = ? AND id = ?", (self._number, id)).fetchone()
                for id in (link.source, link.target)
            ]
            if None not in ends:
                recorded_at = to_micros(link.recorded_at)
                rows.add((ends[0][0], ends[1][0], link.type.value, link.weight, link.reason, recorded_at))
        return rows

    def _relink(self, number: int, links: tuple[Link, ...]) -> None:
        self._do("DELETE FROM links WHERE owner = ?", number)
        self._sql.executemany(
            "INSERT INTO links (source, target, type, weight, reason, recorded_at, owner) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(*row, number) for row in sorted(self._link_rows(links))],
        )

    def _reindex(self, number: int, entries: bytes, terms: bytes, uses: str) -> None:
        self._do("UPDATE notes SET entries = ?, terms = ? WHERE number = ?", entries, terms, number)
        self._do("UPDATE texts SET terms = ? WHERE note = ?", uses, number)

    def _repost(self, number: int, posted: set[Posting], wanted: set[Posting], names: dict[int, str]) -> None:
        for table, *posting in sorted(posted - wanted):
            which = f"(scope, note, {_POSTINGS[table]}) = (?, ?, ?, ?)"
            self._do(f"DELETE FROM {table} WHERE {which}", self._number, number, *posting)
        for table, *posting in sorted(wanted - posted):
            into = f"{table} (scope, note, {_POSTINGS[table]})"
            self._do(f"INSERT INTO {into} VALUES (?, ?, ?, ?)", self._number, number, *posting)
        self._sql.executemany(
            "INSERT OR IGNORE INTO terms (scope, key, name) VALUES (?, ?, ?)",
            [(self._number, key, name) for key, name in sorted(names.items())],
        )

    def _do(self, statement: str, *values: Any) -> None:
        self._sql.execute(statement, values)


def _is_state(body: str, note: Note) -> bool:
    try:
        return read_note(body) == note
    except StoreError:  # damaged, but its history is not
        return False
