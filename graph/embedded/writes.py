"""What each operation of a batch does to the tables.

What could be computed was prepared before (see prepared.py); the transaction holds nothing but SQL and look-ups.
Rows that need nothing read are gathered and written table by table; sorted, they cost half.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from zettel.annotate.extractive import is_question
from zettel.batch import (
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
    PutRevision,
    PutTombstones,
    PutUse,
    PutVector,
    RestoreLinks,
    RestoreNote,
    StaleLease,
)
from zettel.errors import EmbedderMismatch, StoreError
from zettel.graph.bodies import body_of, micros_or_min, note_body
from zettel.graph.embedded import answers, erasing, feedback, words
from zettel.graph.embedded.prepared import Indexed, Prepared
from zettel.graph.keys import FACET, TITLE, Entry, Keys, packed, unpacked
from zettel.model import EventRecord, Link, Note, Revision, to_micros

FIRST_REVISION = 2
"""Version of a note's first revision: 1 is its base."""


class Found(NamedTuple):
    """An event as notes need it."""

    number: int
    seq: int
    source: str | None


_STATEMENTS = {
    "finished": "DELETE FROM jobs WHERE scope = ? AND id = ? AND token = ?",
    "events": """INSERT INTO events (number, scope, id, seq, identity, session, occurred_at, source, body)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
    "notes": """INSERT INTO notes (number, scope, id, event, event_seq, part, kind, role, session, occurred_at,
        valid_from, length, asks, archived, titled, changed, entries, terms, seq, recorded_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
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
    "revisions": """INSERT INTO revisions (number, scope, note, version, seq, recorded_at, body)
        VALUES (?, ?, ?, ?, ?, ?, ?)""",
    "citations": "INSERT INTO citations (scope, cited, revision) VALUES (?, ?, ?)",
    "tombstones": "INSERT OR IGNORE INTO tombstones (scope, identity) VALUES (?, ?)",
    "jobs": """INSERT INTO jobs (scope, id, kind, note, version, priority, run_at, attempts, state, error, lease_until)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT (scope, kind, note, version) DO NOTHING""",
}


class Applying:
    """Applies one batch inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, scope: int, changed: int, keys: Keys) -> None:
        self._sql = connection
        self._scope = scope
        self._changed = changed
        self._keys = keys
        self._rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in _STATEMENTS}
        self._numbers: dict[str, int | None] = {}
        self._events: dict[str, Found] = {}
        self._fresh: set[int] = set()
        self._spaces: dict[int, tuple[int, int]] | None = None
        self._next = {"events": 0, "notes": 0, "revisions": 0}
        self._next.update(
            connection.execute("SELECT name, seq FROM sqlite_sequence WHERE name IN ('events', 'notes', 'revisions')")
        )
        self.touched: set[int] = set()
        """Notes whose columns, vectors or links changed."""
        self.recorded_at: int | None = None
        """The latest recorded time of what was added."""
        self._do: dict[type[Op], Callable[[Prepared], None]] = {
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
            EndRestore: self._end_restore,
        }

    def apply(self, prepared: Iterable[Prepared]) -> None:
        """All operations in order."""
        for one in prepared:
            self._do[type(one.op)](one)
        self._flush()
        old = sorted(self.touched - self._fresh)
        self._sql.executemany("UPDATE notes SET changed = ? WHERE number = ?", ((self._changed, n) for n in old))

    # adding -------------------------------------------------------------------------------------------------

    def _put_event(self, one: Prepared) -> None:
        assert isinstance(one.op, PutEvent)
        event: EventRecord = one.op.event
        number = self._number("events")
        source = event.source.file if event.source else None
        self._events[event.event_id] = Found(number, event.seq, source)
        self._rows["events"].append(
            (number, self._scope, event.event_id, event.seq, one.op.identity, event.session,
             micros_or_min(event.occurred_at), source, one.body)
        )  # fmt: skip
        self._record(to_micros(event.recorded_at))

    def _put_note(self, one: Prepared) -> None:
        assert isinstance(one.op, (PutNote, RestoreNote))
        assert one.indexed is not None
        note, index = one.op.note, one.indexed
        number = self._number("notes")
        self._numbers[note.id] = number
        self._fresh.add(number)
        self.touched.add(number)
        events = [self._event(event, note) for event in note.event_ids]
        entries, terms = self._entries(note, index.entries, events), index.terms
        if note.archived:
            entries, terms = [], []
        columns = self._columns(note, index.length, events[0], entries, terms)
        recorded_at = to_micros(note.recorded_at)
        self._rows["notes"].append((number, self._scope, note.id, *columns, note.seq, recorded_at))
        base = note_body(one.op.base) if isinstance(one.op, RestoreNote) and one.op.revisions else None
        self._rows["texts"].append((number, one.body, index.uses, base))
        self._rows["note_events"].extend((event.number, number) for event in events)
        self._post(number, note.seq, [*entries, *terms], index)
        self._record(recorded_at)

    def _put_vector(self, one: Prepared) -> None:
        assert isinstance(one.op, PutVector)
        if self._spaces is None:
            rows = self._sql.execute("SELECT id, dim, active FROM spaces")
            self._spaces = {id: (dim, active) for id, dim, active in rows}
        space, vector = one.op.space, one.op.vector
        dim, active = self._spaces.get(space, ("been replaced; open the memory anew", False))
        if vector.shape != (dim,):
            raise EmbedderMismatch(f"a vector of {vector.shape} does not fit vector set {space}: it has {dim}")
        number = self._known(one.op.note)
        self.touched.add(number)
        self._rows["vectors"].append((number, space, vector.astype("<f4").tobytes()))
        if active and len(self._spaces) > 1:
            self._rows["outdated"].append((number, space))

    def _put_mention(self, one: Prepared) -> None:
        assert isinstance(one.op, PutMention)
        self._put_link(one.op.link, owner=0)

    def _put_link(self, link: Link, owner: int) -> None:
        source, target = self._find(link.source), self._find(link.target)
        if source is None or target is None:  # an end that is gone takes its links with it
            return
        self.touched.add(source)
        recorded_at = to_micros(link.recorded_at)
        self._rows["links"].append((source, target, link.type.value, owner, link.weight, link.reason, recorded_at))

    def _put_job(self, one: Prepared) -> None:
        assert isinstance(one.op, PutJob)
        job = one.op.job
        self._rows["jobs"].append(
            (self._scope, job.id, job.kind.value, job.note or "", job.version, job.priority, to_micros(job.run_at),
             job.attempts, job.state.value, job.error)
        )  # fmt: skip

    def _add_revision(self, number: int, revision: Revision) -> None:
        row, recorded_at = self._number("revisions"), to_micros(revision.recorded_at)
        self._record(recorded_at)
        self._rows["revisions"].append(
            (row, self._scope, number, revision.version, revision.seq, recorded_at, body_of(revision))
        )
        cited = {read.note for read in revision.inputs} | {link.target for link in revision.links}
        cited |= {link.source for link in revision.links if link.source != revision.note}
        if revision.cause.note is not None:
            cited.add(revision.cause.note)
        self._rows["citations"].extend((self._scope, id, row) for id in sorted(cited))

    # restoring ----------------------------------------------------------------------------------------------

    def _restore_note(self, one: Prepared) -> None:
        assert isinstance(one.op, RestoreNote)
        self._put_note(one)
        number = self._known(one.op.base.id)
        events = set(one.op.base.event_ids)
        for revision in one.op.revisions:
            self._add_revision(number, revision)
            rested_on: Any = revision.change.get("event_ids", ())
            events.update(rested_on)
        found = [self._event(event, one.op.base) for event in sorted(events.difference(one.op.note.event_ids))]
        self._rows["note_events"].extend((event.number, number) for event in found)

    def _restore_links(self, one: Prepared) -> None:
        assert isinstance(one.op, RestoreLinks)
        for link in one.op.links:
            self._put_link(link, owner=self._known(one.op.owner))

    def _put_tombstones(self, one: Prepared) -> None:
        assert isinstance(one.op, PutTombstones)
        self._rows["tombstones"].extend((self._scope, identity) for identity in one.op.identities)

    def _end_restore(self, one: Prepared) -> None:
        assert isinstance(one.op, EndRestore)
        self._record(one.op.recorded_at)

    # changing -----------------------------------------------------------------------------------------------

    def _put_revision(self, one: Prepared) -> None:
        assert isinstance(one.op, PutRevision)
        number = self._known(one.op.note.id)
        self.touched.add(number)
        if one.op.bare:
            self._rows["reworded"].append((one.body, number))
        else:
            self._change(one, one.op.note, number)
        self._add_revision(number, one.op.revision)
        if one.op.links is not None:
            self._decide(one.op.links, number, first=one.op.revision.version == FIRST_REVISION)

    def _change(self, one: Prepared, note: Note, number: int) -> None:
        """Set a note's columns, text and facets to another state."""
        self._flush()
        events = [self._event(event, note) for event in note.event_ids]
        old_entries, old_terms, old_length = self._sql.execute(
            "SELECT entries, terms, length FROM notes WHERE number = ?", (number,)
        ).fetchone()
        former, former_terms = unpacked(old_entries), unpacked(old_terms)
        kept = one.indexed.entries if one.indexed else [entry for entry in former if entry[1] != FACET]
        entries = self._entries(note, kept, events)
        terms = one.indexed.terms if one.indexed else former_terms
        length = one.indexed.length if one.indexed else old_length
        if note.archived:
            entries, terms = [], []
        before, after = {*former, *former_terms}, {*entries, *terms}
        erasing.unpost(self._sql, self._scope, number, note.seq, before - after)
        self._post(number, note.seq, after - before, one.indexed)
        self._flush()
        erasing.forget_terms(self._sql, self._scope, {key for key, _ in former_terms} - {key for key, _ in terms})
        columns = self._columns(note, length, events[0], entries, terms)
        self._sql.execute(
            """UPDATE notes SET event = ?, event_seq = ?, part = ?, kind = ?, role = ?, session = ?,
            occurred_at = ?, valid_from = ?, length = ?, asks = ?, archived = ?, titled = ?, changed = ?, entries = ?,
            terms = ? WHERE number = ?""",
            (*columns, number),
        )
        self._sql.execute(
            "UPDATE texts SET base = COALESCE(base, body), body = ?, terms = COALESCE(?, terms) WHERE note = ?",
            (one.body, one.indexed.uses if one.indexed else None, number),
        )
        self._rows["note_events"].extend((event.number, number) for event in events)

    def _decide(self, links: Sequence[Link], owner: int, first: bool) -> None:
        """Replace the links that a note's revisions decided; before its first one there are none."""
        if not first:
            self._flush()
            former = self._sql.execute("SELECT source FROM links WHERE owner = ? AND owner != 0", (owner,)).fetchall()
            self.touched.update(source for (source,) in former)
            self._sql.execute("DELETE FROM links WHERE owner = ? AND owner != 0", (owner,))
        for link in links:
            self._put_link(link, owner)

    def _drop_mentions(self, one: Prepared) -> None:
        assert isinstance(one.op, DropMentions)
        self._flush()
        for number in self._present(one.op.notes):
            self.touched |= erasing.drop_mentions(self._sql, number)

    def _erase_notes(self, one: Prepared) -> None:
        assert isinstance(one.op, EraseNotes)
        self._flush()
        for id in one.op.notes:
            number = self._find(id)
            if number is not None:
                self.touched |= erasing.erase_note(self._sql, self._scope, self._changed, number, id)
                self._numbers[id] = None

    def _erase_events(self, one: Prepared) -> None:
        assert isinstance(one.op, EraseEvents)
        self._flush()
        for id in one.op.events:
            erasing.erase_event(self._sql, self._scope, self._changed, id)
            self._events.pop(id, None)

    def _erase_revisions(self, one: Prepared) -> None:
        assert isinstance(one.op, EraseRevisions)
        self._flush()
        for number in self._present((one.op.note,)):
            for version in one.op.versions:
                erasing.erase_revision(self._sql, number, version)

    def _finish_job(self, one: Prepared) -> None:
        assert isinstance(one.op, FinishJob)
        self._rows["finished"].append((self._scope, one.op.job, one.op.token))

    # what language models said and cost -----------------------------------------------------------------------

    def _put_answer(self, one: Prepared) -> None:
        assert isinstance(one.op, PutAnswer)
        asked = list(dict.fromkeys(one.op.notes))
        numbers = self._present(asked)
        if len(numbers) == len(asked):
            answers.put(self._sql, self._scope, one.op.key, one.op.text, numbers)

    def _erase_answers(self, one: Prepared) -> None:
        assert isinstance(one.op, EraseAnswers)
        answers.erase(self._sql, self._present(one.op.notes))

    def _put_use(self, one: Prepared) -> None:
        assert isinstance(one.op, PutUse)
        answers.add_use(self._sql, self._scope, one.op.use)

    # what was searched, and what was of use -------------------------------------------------------------------

    def _put_feedback(self, one: Prepared) -> None:
        assert isinstance(one.op, PutFeedback)
        feedback.tell(self._sql, self._scope, one.op.search)

    def _put_note_use(self, one: Prepared) -> None:
        assert isinstance(one.op, PutNoteUse)
        feedback.put_use(self._sql, self._scope, self._known(one.op.note), one.op.use)

    def _erase_searches(self, one: Prepared) -> None:
        assert isinstance(one.op, EraseSearches)
        feedback.erase(self._sql, self._scope, one.op.searches)

    # rows ---------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        for table, rows in self._rows.items():
            if rows:
                if table in ("facets", "words", "terms"):
                    rows.sort()
                done = self._sql.executemany(_STATEMENTS[table], rows)
                if table == "finished" and done.rowcount < len(rows):
                    raise StaleLease(f"{len(rows) - done.rowcount} of {len(rows)} jobs were taken over")
                rows.clear()

    def _columns(
        self, note: Note, length: int, event: Found, entries: Sequence[Entry], terms: Sequence[Entry]
    ) -> tuple[Any, ...]:
        titled = any(count == TITLE for _, count in entries)
        return (
            event.number, event.seq, note.part, note.kind.value, note.role, note.session,
            micros_or_min(note.occurred_at), micros_or_min(note.valid_from), length,
            is_question(note.content), note.archived, titled, self._changed,
            packed(entries), packed(terms),
        )  # fmt: skip

    def _entries(self, note: Note, words: list[Entry], events: Sequence[Found]) -> list[Entry]:
        sources = {event.source for event in events if event.source is not None}
        return words + self._keys.facets(note, sources)

    def _post(self, number: int, seq: int, entries: Iterable[Entry], index: Indexed | None) -> None:
        """Put what a note is found by into the tables."""
        held, others = words.split(entries)
        stretch = words.stretch_of(seq)
        self._rows["words"].extend((self._scope, stretch, key, number) for key in held)
        self._rows["facets"].extend((self._scope, key, number, count) for key, count in others)
        if index is not None and held:
            self._rows["terms"].extend((self._scope, key, name) for key, name in index.names)

    def _number(self, table: str) -> int:
        self._next[table] += 1
        return self._next[table]

    def _find(self, id: str) -> int | None:
        if id not in self._numbers:
            row = self._sql.execute("SELECT number FROM notes WHERE scope = ? AND id = ?", (self._scope, id)).fetchone()
            self._numbers[id] = row[0] if row else None
        return self._numbers[id]

    def _present(self, ids: Iterable[str]) -> list[int]:
        return [number for id in ids if (number := self._find(id)) is not None]

    def _known(self, id: str) -> int:
        number = self._find(id)
        if number is None:
            raise StoreError(f"the batch changes note {id}, which this scope does not hold")
        return number

    def _event(self, id: str, note: Note) -> Found:
        if id not in self._events:
            row = self._sql.execute(
                "SELECT number, seq, source FROM events WHERE scope = ? AND id = ?", (self._scope, id)
            ).fetchone()
            if row is None:
                raise StoreError(f"note {note.id} rests on event {id}, which this scope does not hold")
            self._events[id] = Found(*row)
        return self._events[id]

    def _record(self, recorded_at: int) -> None:
        self.recorded_at = recorded_at if self.recorded_at is None else max(self.recorded_at, recorded_at)
