"""The SQL of each operation of a batch.

``prepared.py`` computes everything else before the transaction. ``BatchWriter`` collects rows that depend on no read
and writes them table by table in sorted order, which halves the cost.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from zettel.errors import EmbedderMismatch, StoreError
from zettel.graph.bodies import body_of, micros_or_max, micros_or_min, micros_or_none
from zettel.graph.embedded import erasing, feedback, llm_answers, words
from zettel.graph.embedded.prepared import Indexed, Prepared
from zettel.graph.keys import FACET, TITLE, Entry, Keys, packed, unpacked
from zettel.model import Link, Note, Revision, to_micros
from zettel.ports.operations import (
    DropMentions,
    EndRestore,
    EraseAnswers,
    EraseEvents,
    EraseNotes,
    EraseRevisions,
    EraseSearches,
    FinishJob,
    Op,
    PutAnswer,
    PutEvent,
    PutFeedback,
    PutJob,
    PutMention,
    PutNote,
    PutNoteUse,
    PutRetention,
    PutRevision,
    PutTombstones,
    PutUse,
    PutVector,
    RestoreLinks,
    RestoreNote,
    StaleLease,
)
from zettel.text.extraction import is_question

FIRST_REVISION = 2
"""Version of a note's first revision: 1 is its base."""


class EventRef(NamedTuple):
    """The fields of an event that its notes require."""

    number: int
    seq: int
    source: str | None


_STATEMENTS = {
    "finished": "DELETE FROM jobs WHERE scope = ? AND id = ? AND token = ?",
    "events": """INSERT INTO events (number, scope, id, seq, identity, session, occurred_at, source, principal, body)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
    "notes": """INSERT INTO notes (number, scope, id, event, event_seq, part, kind, speaker, role, session, occurred_at,
        valid_from, valid_to, expires_at, length, asks, archived, titled, changed, entries, terms, seq, recorded_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
    "texts": "INSERT INTO texts (note, body, terms, base) VALUES (?, ?, ?, ?)",
    "note_events": "INSERT OR IGNORE INTO note_events (event, note) VALUES (?, ?)",
    "facets": "INSERT INTO facets (scope, key, note, count) VALUES (?, ?, ?, ?)",
    "words": "INSERT INTO words (scope, stretch, key, note) VALUES (?, ?, ?, ?)",
    "terms": "INSERT OR IGNORE INTO terms (scope, key, name) VALUES (?, ?, ?)",
    "vectors": """INSERT INTO vectors (note, space, vector) VALUES (?, ?, ?)
        ON CONFLICT (note, space) DO UPDATE SET vector = excluded.vector""",
    "outdated": "DELETE FROM vectors WHERE note = ? AND space != ?",
    "links": """INSERT OR REPLACE INTO links (source, target, type, owner, weight, reason, recorded_at)
        VALUES (?, ?, ?, ?, ?, ?, ?)""",
    "reworded": "UPDATE texts SET base = COALESCE(base, body), body = ? WHERE note = ?",
    "revisions": """INSERT INTO revisions (number, scope, note, version, seq, recorded_at, principal, body)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
    "checkpoints": "INSERT OR REPLACE INTO checkpoints (note, body) VALUES (?, ?)",
    "citations": "INSERT INTO citations (scope, cited, revision) VALUES (?, ?, ?)",
    "tombstones": "INSERT OR IGNORE INTO tombstones (scope, identity) VALUES (?, ?)",
    "jobs": """INSERT INTO jobs (scope, id, kind, note, version, priority, run_at, attempts, state, error, lease_until)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT (scope, kind, note, version) DO NOTHING""",
}


class BatchWriter:
    """Writes one batch inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, scope: int, changed: int, keys: Keys) -> None:
        self._sql = connection
        self._scope = scope
        self._changed = changed
        self._keys = keys
        self._rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in _STATEMENTS}
        self._numbers: dict[str, int | None] = {}
        self._events: dict[str, EventRef] = {}
        self._new_notes: set[int] = set()
        self._spaces: dict[int, tuple[int, int]] | None = None
        self._last_numbers = {"events": 0, "notes": 0, "revisions": 0}
        self._last_numbers.update(
            connection.execute("SELECT name, seq FROM sqlite_sequence WHERE name IN ('events', 'notes', 'revisions')")
        )
        self.touched: set[int] = set()
        """Notes whose columns, vectors or links changed."""
        self.recorded_at: int | None = None
        """Latest ``recorded_at`` of the batch."""
        self._handlers: dict[type[Op], Callable[[Any, Prepared], None]] = {
            PutEvent: self._put_event,
            PutNote: self._put_note,
            PutRevision: self._put_revision,
            PutVector: self._put_vector,
            PutMention: self._put_mention,
            DropMentions: self._drop_mentions,
            EraseNotes: self._erase_notes,
            EraseEvents: self._erase_events,
            EraseRevisions: self._erase_revisions,
            PutJob: self._put_job,
            FinishJob: self._finish_job,
            PutAnswer: self._put_answer,
            EraseAnswers: self._erase_answers,
            PutUse: self._put_use,
            PutFeedback: self._put_feedback,
            PutNoteUse: self._put_note_use,
            EraseSearches: self._erase_searches,
            RestoreNote: self._restore_note,
            RestoreLinks: self._restore_links,
            PutTombstones: self._put_tombstones,
            PutRetention: self._put_retention,
            EndRestore: self._end_restore,
        }

    def write(self, operations: Iterable[Prepared]) -> None:
        """Write all operations in order."""
        for prepared in operations:
            self._handlers[type(prepared.op)](prepared.op, prepared)
        self._flush()
        old = sorted(self.touched - self._new_notes)
        self._sql.executemany("UPDATE notes SET changed = ? WHERE number = ?", ((self._changed, n) for n in old))

    # adding -------------------------------------------------------------------------------------------------

    def _put_event(self, op: PutEvent, prepared: Prepared) -> None:
        event = op.event
        number = self._next_number("events")
        source = event.source.file if event.source else None
        self._events[event.event_id] = EventRef(number, event.seq, source)
        self._rows["events"].append(
            (number, self._scope, event.event_id, event.seq, op.identity, event.session,
             micros_or_min(event.occurred_at), source, event.principal or None, prepared.body)
        )  # fmt: skip
        self._record(to_micros(event.recorded_at))

    def _put_note(self, op: PutNote | RestoreNote, prepared: Prepared) -> None:
        note, index = op.note, prepared.indexed
        assert index is not None
        number = self._next_number("notes")
        self._numbers[note.id] = number
        self._new_notes.add(number)
        self.touched.add(number)
        events = [self._event(event, note) for event in note.event_ids]
        entries, terms = self._entries(note, index.entries, events), index.terms
        if note.archived:
            entries, terms = [], []
        columns = self._columns(note, index.length, events[0], entries, terms)
        recorded_at = to_micros(note.recorded_at)
        self._rows["notes"].append((number, self._scope, note.id, *columns, note.seq, recorded_at))
        base = body_of(op.base) if isinstance(op, RestoreNote) and op.revisions else None
        self._rows["texts"].append((number, prepared.body, index.uses, base))
        self._rows["note_events"].extend((event.number, number) for event in events)
        self._post(number, note.seq, [*entries, *terms], index)
        self._record(recorded_at)

    def _put_vector(self, op: PutVector, _: Prepared) -> None:
        if self._spaces is None:
            rows = self._sql.execute("SELECT id, dim, active FROM spaces")
            self._spaces = {id: (dim, active) for id, dim, active in rows}
        space, vector = op.space, op.vector
        dim, active = self._spaces.get(space, (None, False))
        if dim is None:
            raise EmbedderMismatch(f"vector set {space} was replaced: open the memory again")
        if vector.shape != (dim,):
            raise EmbedderMismatch(f"vector set {space} contains vectors of {dim} numbers, got shape {vector.shape}")
        number = self._require(op.note)
        self.touched.add(number)
        self._rows["vectors"].append((number, space, vector.astype("<f4").tobytes()))
        if active and len(self._spaces) > 1:
            self._rows["outdated"].append((number, space))

    def _put_mention(self, op: PutMention, _: Prepared) -> None:
        self._put_link(op.link, owner=0)

    def _put_link(self, link: Link, owner: int) -> None:
        source, target = self._find(link.source), self._find(link.target)
        if source is None or target is None:  # a note was deleted, and its links with it
            return
        self.touched.add(source)
        recorded_at = to_micros(link.recorded_at)
        self._rows["links"].append((source, target, link.type.value, owner, link.weight, link.reason, recorded_at))

    def _put_job(self, op: PutJob, _: Prepared) -> None:
        job = op.job
        self._rows["jobs"].append(
            (self._scope, job.id, job.kind.value, job.note or "", job.version, job.priority, to_micros(job.run_at),
             job.attempts, job.state.value, job.error)
        )  # fmt: skip

    def _add_revision(self, number: int, revision: Revision) -> None:
        row, recorded_at = self._next_number("revisions"), to_micros(revision.recorded_at)
        self._record(recorded_at)
        self._rows["revisions"].append(
            (row, self._scope, number, revision.version, revision.seq, recorded_at, revision.principal or None,
             body_of(revision))
        )  # fmt: skip
        cited = {source.note for source in revision.inputs} | {link.target for link in revision.links}
        cited |= {link.source for link in revision.links if link.source != revision.note}
        if revision.cause.note is not None:
            cited.add(revision.cause.note)
        self._rows["citations"].extend((self._scope, id, row) for id in sorted(cited))

    # restoring ----------------------------------------------------------------------------------------------

    def _restore_note(self, op: RestoreNote, prepared: Prepared) -> None:
        self._put_note(op, prepared)
        number = self._require(op.base.id)
        events = set(op.base.event_ids)
        for revision in op.revisions:
            self._add_revision(number, revision)
            event_ids: Any = revision.change.get("event_ids", ())
            events.update(event_ids)
        former_events = [self._event(event, op.base) for event in sorted(events.difference(op.note.event_ids))]
        self._rows["note_events"].extend((event.number, number) for event in former_events)

    def _restore_links(self, op: RestoreLinks, _: Prepared) -> None:
        for link in op.links:
            self._put_link(link, owner=self._require(op.owner))

    def _put_tombstones(self, op: PutTombstones, _: Prepared) -> None:
        self._rows["tombstones"].extend((self._scope, identity) for identity in op.identities)

    def _put_retention(self, op: PutRetention, _: Prepared) -> None:
        retention = None if op.retention is None else body_of(op.retention)
        self._sql.execute("UPDATE scopes SET retention = ? WHERE number = ?", (retention, self._scope))

    def _end_restore(self, op: EndRestore, _: Prepared) -> None:
        self._record(op.recorded_at)

    # changing -----------------------------------------------------------------------------------------------

    def _put_revision(self, op: PutRevision, prepared: Prepared) -> None:
        number = self._require(op.note.id)
        self.touched.add(number)
        if op.bare:
            self._rows["reworded"].append((prepared.body, number))
        else:
            self._change_note(op.note, number, prepared)
        self._add_revision(number, op.revision)
        if op.checkpoint is not None:
            self._rows["checkpoints"].append((number, body_of(op.checkpoint)))
        if op.links is not None:
            self._replace_links(op.links, number, first=op.revision.version == FIRST_REVISION)

    def _change_note(self, note: Note, number: int, prepared: Prepared) -> None:
        """Set a note's columns, text and facets to another state."""
        self._flush()
        index = prepared.indexed
        events = [self._event(event, note) for event in note.event_ids]
        old_entries, old_terms, old_length = self._sql.execute(
            "SELECT entries, terms, length FROM notes WHERE number = ?", (number,)
        ).fetchone()
        former, former_terms = unpacked(old_entries), unpacked(old_terms)
        if index is None:
            note_entries, terms, length = [entry for entry in former if entry[1] != FACET], former_terms, old_length
        else:
            note_entries, terms, length = index.entries, index.terms, index.length
        entries = self._entries(note, note_entries, events)
        if note.archived:
            entries, terms = [], []
        before, after = {*former, *former_terms}, {*entries, *terms}
        erasing.delete_entries(self._sql, self._scope, number, note.seq, before - after)
        self._post(number, note.seq, after - before, index)
        self._flush()
        unused = {key for key, _ in former_terms} - {key for key, _ in terms}
        erasing.delete_unused_terms(self._sql, self._scope, unused)
        columns = self._columns(note, length, events[0], entries, terms)
        self._sql.execute(
            """UPDATE notes SET event = ?, event_seq = ?, part = ?, kind = ?, speaker = ?, role = ?, session = ?,
            occurred_at = ?, valid_from = ?, valid_to = ?, expires_at = ?, length = ?, asks = ?, archived = ?,
            titled = ?, changed = ?, entries = ?, terms = ? WHERE number = ?""",
            (*columns, number),
        )
        self._sql.execute(
            "UPDATE texts SET base = COALESCE(base, body), body = ?, terms = COALESCE(?, terms) WHERE note = ?",
            (prepared.body, index.uses if index else None, number),
        )
        self._rows["note_events"].extend((event.number, number) for event in events)

    def _replace_links(self, links: Sequence[Link], owner: int, first: bool) -> None:
        """Replace the links that a note's revisions created; before its ``first`` revision there are none."""
        if not first:
            self._flush()
            former = self._sql.execute("SELECT source FROM links WHERE owner = ? AND owner != 0", (owner,)).fetchall()
            self.touched.update(source for (source,) in former)
            self._sql.execute("DELETE FROM links WHERE owner = ? AND owner != 0", (owner,))
        for link in links:
            self._put_link(link, owner)

    def _drop_mentions(self, op: DropMentions, _: Prepared) -> None:
        self._flush()
        for number in self._existing(op.notes):
            self.touched |= erasing.drop_mentions(self._sql, number)

    def _erase_notes(self, op: EraseNotes, _: Prepared) -> None:
        self._flush()
        for id in op.notes:
            number = self._find(id)
            if number is not None:
                self.touched |= erasing.erase_note(self._sql, self._scope, self._changed, number, id)
                self._numbers[id] = None

    def _erase_events(self, op: EraseEvents, _: Prepared) -> None:
        self._flush()
        for id in op.events:
            erasing.erase_event(self._sql, self._scope, self._changed, id)
            self._events.pop(id, None)

    def _erase_revisions(self, op: EraseRevisions, _: Prepared) -> None:
        self._flush()
        for number in self._existing((op.note,)):
            for version in op.versions:
                erasing.erase_revision(self._sql, number, version)

    def _finish_job(self, op: FinishJob, _: Prepared) -> None:
        self._rows["finished"].append((self._scope, op.job, op.token))

    # LLM answers and costs ------------------------------------------------------------------------------------

    def _put_answer(self, op: PutAnswer, _: Prepared) -> None:
        notes = dict.fromkeys(op.notes)
        numbers = self._existing(notes)
        if len(numbers) == len(notes):
            llm_answers.put(self._sql, self._scope, op.key, op.text, numbers)

    def _erase_answers(self, op: EraseAnswers, _: Prepared) -> None:
        llm_answers.erase(self._sql, self._existing(op.notes))

    def _put_use(self, op: PutUse, _: Prepared) -> None:
        llm_answers.add_use(self._sql, self._scope, op.use)

    # search log and usefulness --------------------------------------------------------------------------------

    def _put_feedback(self, op: PutFeedback, _: Prepared) -> None:
        feedback.update(self._sql, self._scope, op.search)

    def _put_note_use(self, op: PutNoteUse, _: Prepared) -> None:
        feedback.put_use(self._sql, self._scope, self._require(op.note), op.use)

    def _erase_searches(self, op: EraseSearches, _: Prepared) -> None:
        feedback.erase(self._sql, self._scope, op.searches)

    # rows ---------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        for table, rows in self._rows.items():
            if rows:
                if table in ("facets", "words", "terms"):
                    rows.sort()
                done = self._sql.executemany(_STATEMENTS[table], rows)
                if table == "finished" and done.rowcount < len(rows):
                    raise StaleLease(f"another worker leased {len(rows) - done.rowcount} of {len(rows)} jobs")
                rows.clear()

    def _columns(
        self, note: Note, length: int, event: EventRef, entries: Sequence[Entry], terms: Sequence[Entry]
    ) -> tuple[Any, ...]:
        titled = any(count == TITLE for _, count in entries)
        return (
            event.number, event.seq, note.part, note.kind.value, note.speaker, note.role, note.session,
            micros_or_min(note.occurred_at), micros_or_min(note.valid_from), micros_or_max(note.valid_to),
            micros_or_none(note.expires_at), length,
            is_question(note.content), note.archived, titled, self._changed,
            packed(entries), packed(terms),
        )  # fmt: skip

    def _entries(self, note: Note, word_entries: list[Entry], events: Sequence[EventRef]) -> list[Entry]:
        sources = {event.source for event in events if event.source is not None}
        return word_entries + self._keys.facets(note, sources)

    def _post(self, number: int, seq: int, entries: Iterable[Entry], index: Indexed | None) -> None:
        """Add a note's index entries to the tables."""
        keys, others = words.split(entries)
        stretch = words.stretch_of(seq)
        self._rows["words"].extend((self._scope, stretch, key, number) for key in keys)
        self._rows["facets"].extend((self._scope, key, number, count) for key, count in others)
        if index is not None and keys:
            self._rows["terms"].extend((self._scope, key, name) for key, name in index.names)

    def _next_number(self, table: str) -> int:
        self._last_numbers[table] += 1
        return self._last_numbers[table]

    def _find(self, id: str) -> int | None:
        if id not in self._numbers:
            row = self._sql.execute("SELECT number FROM notes WHERE scope = ? AND id = ?", (self._scope, id)).fetchone()
            self._numbers[id] = row[0] if row else None
        return self._numbers[id]

    def _existing(self, ids: Iterable[str]) -> list[int]:
        return [number for id in ids if (number := self._find(id)) is not None]

    def _require(self, id: str) -> int:
        number = self._find(id)
        if number is None:
            raise StoreError(f"the batch changes note {id}, which this scope does not contain")
        return number

    def _event(self, id: str, note: Note) -> EventRef:
        if id not in self._events:
            row = self._sql.execute(
                "SELECT number, seq, source FROM events WHERE scope = ? AND id = ?", (self._scope, id)
            ).fetchone()
            if row is None:
                raise StoreError(f"note {note.id} refers to event {id}, which this scope does not contain")
            self._events[id] = EventRef(*row)
        return self._events[id]

    def _record(self, recorded_at: int) -> None:
        self.recorded_at = recorded_at if self.recorded_at is None else max(self.recorded_at, recorded_at)
