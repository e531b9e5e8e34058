"""Translation of a batch into statements, before its transaction.

Operations that do not depend on each other share a statement, so a thousand notes take as many statements as one.
All lookups happen inside the statements, so a transaction that runs twice writes the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from zettel.errors import EmbedderMismatch, StoreError
from zettel.graph.bodies import body_of
from zettel.graph.keys import Keys
from zettel.graph.neo4j import hashes, rows
from zettel.graph.neo4j.writes import BatchPlan, IndexCounts, StatementCall
from zettel.model import TIME_MIN, Link, LinkType, Note, NoteIndex, to_micros
from zettel.ports import operations as ops
from zettel.text.index import index_note


def plan(batch: ops.Batch, scope: str, keys: Keys, token: str, now: int) -> BatchPlan:
    """Return the statements that write a batch to the nodes of the key ``scope``.

    ``now`` is in microseconds; ``token`` identifies the batch.
    """
    planner = Planner(scope, keys, token, now)
    for op in batch.ops:
        planner.take(op)
    planner.flush()
    return planner.plan()


def plan_rebuild(scope: str, keys: Keys, notes: Sequence[tuple[Note, tuple[Link, ...]]]) -> BatchPlan:
    """Return the statements that create the index and the decided links of notes without any."""
    planner = Planner(scope, keys, "", 0)
    planner.derive(notes)
    return planner.plan()


class Planner:
    """Collects operations, and flushes them as statement calls before an operation that depends on them."""

    def __init__(self, scope: str, keys: Keys, token: str, now: int) -> None:
        self._scope, self._keys, self._token, self._now = scope, keys, token, now
        self._calls: list[StatementCall] = []
        self._dims: dict[int, int] = {}
        self._recorded_at = TIME_MIN
        self._added = IndexCounts()
        self._jobs = 0
        self._clear()
        self._handlers: dict[type[ops.Op], Callable[[Any], None]] = {
            ops.PutEvent: self._put_event,
            ops.PutNote: self._put_note,
            ops.PutRevision: self._put_revision,
            ops.PutVector: self._put_vector,
            ops.PutMention: self._put_mention,
            ops.DropMentions: self._drop_mentions,
            ops.EraseNotes: self._erase_notes,
            ops.EraseEvents: self._erase_events,
            ops.EraseRevisions: self._erase_revisions,
            ops.PutJob: self._put_job,
            ops.FinishJob: self._finish_job,
            ops.PutAnswer: self._put_answer,
            ops.EraseAnswers: lambda op: self._call("answers_erase", ids=list(op.notes)),
            ops.PutUse: lambda op: self._call("model_use_add", use=rows.use_row(op.use)),
            ops.PutFeedback: lambda op: self._call("search_update", search=rows.search_row(op.search, scope)),
            ops.PutNoteUse: lambda op: self._usages.append(rows.usage_row(op.note, op.use, scope)),
            ops.EraseSearches: lambda op: self._call("searches_erase", ids=list(op.searches)),
            ops.RestoreNote: self._restore_note,
            ops.RestoreLinks: lambda op: self._restored.extend((op.owner, link) for link in op.links),
            ops.PutRetention: self._put_retention,
            ops.PutTombstones: lambda op: self._call("tombstones_put", identities=list(op.identities)),
            ops.EndRestore: lambda op: self._record(op.recorded_at),
        }

    def _clear(self) -> None:
        self._events: list[ops.PutEvent] = []
        self._notes: list[ops.PutNote] = []
        self._histories: list[ops.RestoreNote] = []
        self._restored: list[tuple[str, Link]] = []
        self._erased: list[dict[str, Any]] = []
        self._revisions: dict[str, ops.PutRevision] = {}
        self._vectors: dict[tuple[str, int], ops.PutVector] = {}
        self._mentions: dict[tuple[str, str], Link] = {}
        self._puts: list[dict[str, Any]] = []
        self._finishes: list[ops.FinishJob] = []
        self._usages: list[dict[str, Any]] = []

    def plan(self) -> BatchPlan:
        """Return the flushed calls as a plan."""
        return BatchPlan(self._scope, tuple(self._calls), self._dims, self._recorded_at, self._added)

    def take(self, op: ops.Op) -> None:
        """Collect an operation."""
        self._handlers[type(op)](op)

    def flush(self) -> None:
        """Append the calls of the collected operations, in order of dependency."""
        self._flush_events()
        self._flush_notes()
        self._flush_histories()
        self._call("revisions_erase", revisions=self._erased)
        self._flush_revisions()
        self._flush_vectors()
        self._put_decided_links(self._restored)
        self._put_links({LinkType.MENTIONS: [rows.link_row(link) for link in self._mentions.values()]})
        self._call("usages_put", usages=self._usages, check=_require_all("notes", len(self._usages)))
        self._flush_jobs()
        self._clear()

    def derive(self, notes: Sequence[tuple[Note, tuple[Link, ...]]]) -> None:
        """Append the calls that create the index and the decided links of notes."""
        self._index([(note, index_note(note)) for note, _ in notes])
        self._put_decided_links((note.id, link) for note, links in notes for link in links)

    # operations ---------------------------------------------------------------------------------------------

    def _put_event(self, op: ops.PutEvent) -> None:
        self._record(to_micros(op.event.recorded_at))
        self._events.append(op)

    def _put_note(self, op: ops.PutNote) -> None:
        self._record(to_micros(op.note.recorded_at))
        self._notes.append(op)

    def _put_vector(self, op: ops.PutVector) -> None:
        if op.vector.ndim != 1 or self._dims.setdefault(op.space, len(op.vector)) != len(op.vector):
            raise EmbedderMismatch(f"a vector of {op.vector.shape} does not fit vector set {op.space}")
        self._vectors[op.note, op.space] = op

    def _put_mention(self, op: ops.PutMention) -> None:
        self._mentions[op.link.source, op.link.target] = op.link

    def _put_job(self, op: ops.PutJob) -> None:
        if self._finishes:
            self._flush_jobs()
        self._jobs += 1
        self._puts.append(rows.job_row(op.job, self._jobs))

    def _finish_job(self, op: ops.FinishJob) -> None:
        if self._puts:
            self._flush_jobs()
        self._finishes.append(op)

    def _put_revision(self, op: ops.PutRevision) -> None:
        if op.note.id in self._revisions:
            self.flush()
        self._record(to_micros(op.revision.recorded_at))
        self._revisions[op.note.id] = op

    def _drop_mentions(self, op: ops.DropMentions) -> None:
        self.flush()
        self._call("mentions_drop", ids=list(op.notes))

    def _erase_notes(self, op: ops.EraseNotes) -> None:
        self.flush()
        self._unindex(op.notes)
        self._call("notes_erase", ids=list(op.notes))
        self._added.erased = True

    def _erase_events(self, op: ops.EraseEvents) -> None:
        self.flush()
        self._calls.append(StatementCall("events_erase", {"ids": list(op.events)}, reorders=True))

    def _erase_revisions(self, op: ops.EraseRevisions) -> None:
        if op.note in self._revisions:
            self.flush()
        self._erased.append({"note": op.note, "versions": list(op.versions)})

    def _put_answer(self, op: ops.PutAnswer) -> None:
        self.flush()
        self._call("answer_put", answer=rows.answer_row(op, self._scope), notes=list(dict.fromkeys(op.notes)))

    def _put_retention(self, op: ops.PutRetention) -> None:
        text = None if op.retention is None else body_of(op.retention)
        self._calls.append(StatementCall("retention_put", {"retention": text}))

    def _restore_note(self, op: ops.RestoreNote) -> None:
        self._put_note(ops.PutNote(op.note, op.index))
        self._record(to_micros(op.base.recorded_at))
        for revision in op.revisions:
            self._record(to_micros(revision.recorded_at))
        if op.revisions:
            self._histories.append(op)

    # calls --------------------------------------------------------------------------------------------------

    def _flush_events(self) -> None:
        if not self._events:
            return
        last: dict[str, str | None] = {}
        undated: list[dict[str, Any]] = []  # the sessions of which this batch's first event is undated
        events: list[dict[str, Any]] = []
        for op in self._events:
            event = op.event
            time: str | None = None
            if event.occurred_at is not None:
                time = hashes.time_digits(to_micros(event.occurred_at))
            elif event.session is None:
                time = hashes.NO_TIME
            elif event.session in last:
                time = last[event.session]
            else:
                undated.append({"name": event.session, "seq": event.seq})
            if event.session is not None:
                last[event.session] = time
            events.append(
                {
                    "event": rows.event_row(event, op.identity, self._scope),
                    "prefix": hashes.place_prefix(self._keys, self._scope, event.session) or "",
                    "time": time,
                    "arrival": hashes.seq_digits(event.seq),
                }
            )
        values = {"events": events, "undated": undated, "never": hashes.NO_TIME}
        self._calls.append(StatementCall("events_put", values, ("undated",) if undated else (), reorders=True))

    def _flush_notes(self) -> None:
        if not self._notes:
            return
        new = {op.note.id for op in self._notes}
        vectors: dict[str, list[ops.PutVector]] = defaultdict(list)
        for key, vector in list(self._vectors.items()):
            if vector.note in new:
                vectors[vector.note].append(self._vectors.pop(key))
        jobs: dict[str, dict[tuple[str, int], dict[str, Any]]] = defaultdict(dict)
        for job in self._puts:  # the first job of a kind stays queued; a new note has no earlier ones
            if job["note"] in new:
                jobs[job["note"]].setdefault((job["kind"], job["version"]), self._new_job(job))
        self._puts = [job for job in self._puts if job["note"] not in new]
        notes, entries = self._index_entries([(op.note, op.index) for op in self._notes])
        for row, op in zip(notes, self._notes, strict=True):
            row["note"] = rows.note_row(op.note, self._scope)
            row["vectors"] = [self._new_vector(vector, op.note) for vector in vectors[op.note.id]]
            row["jobs"] = list(jobs[op.note.id].values())
        self._call("notes_put", notes=notes, **entries, check=_require_notes_and_events(notes))

    def _new_vector(self, op: ops.PutVector, note: Note) -> dict[str, Any]:
        """Return the properties of a new note's vector, except ``changed``."""
        row = _vector_row(op)
        shown = row["embedding"] is not None and not note.archived
        return row | {"scope": self._scope, "note": note.id, "seq": note.seq, "shown": shown}

    def _new_job(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the properties of a new note's job."""
        key = {name: row[name] for name in ("kind", "note", "version")}
        return {"scope": self._scope, **key, **row["job"], "queued": self._now, "batch": self._token}

    def _flush_histories(self) -> None:
        histories = []
        for op in self._histories:
            events: set[Any] = set(op.base.event_ids)
            for revision in op.revisions:
                ids = revision.change.get("event_ids")
                events.update(ids if isinstance(ids, (list, tuple)) else ())
            revisions = [
                {"revision": rows.revision_row(revision, self._scope) | {"cited": rows.cited_notes(revision)}}
                for revision in op.revisions
            ]
            base = rows.note_row(op.base, self._scope)
            histories.append({"id": op.base.id, "base": base, "revisions": revisions, "events": sorted(events)})
        self._call("histories_put", notes=histories)

    def _flush_revisions(self) -> None:
        if not self._revisions:
            return
        revised = list(self._revisions.values())
        self._unindex([op.note.id for op in revised if op.index is not None])
        notes = [
            {
                "id": op.note.id,
                "note": rows.note_row(op.note, self._scope),
                "revision": rows.revision_row(op.revision, self._scope),
                "cited": rows.cited_notes(op.revision),
                "shown": not op.note.archived,
                "checkpoint": op.checkpoint and body_of(op.checkpoint),
                "checkpoint_version": op.checkpoint and op.checkpoint.version,
            }
            for op in revised
        ]
        self._call("notes_revise", notes=notes, check=_require_all("notes", len(notes)))
        self._index([(op.note, op.index) for op in revised])
        self._call("links_drop", ids=[op.note.id for op in revised if op.links is not None])
        self._put_decided_links((op.note.id, link) for op in revised for link in op.links or ())

    def _index(self, indexed: Sequence[tuple[Note, NoteIndex | None]]) -> None:
        notes, entries = self._index_entries(indexed)
        self._call("notes_index", notes=notes, **entries, check=_require_notes_and_events(notes))

    def _index_entries(
        self, indexed: Sequence[tuple[Note, NoteIndex | None]]
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Return the index rows of notes, and the terms, words and sessions to add. Terms refer to notes by position.

        A note without a NoteIndex keeps its words, terms and titles. An archived note has none.
        """
        notes: list[dict[str, Any]] = []
        uses: dict[str, list[dict[str, Any]]] = defaultdict(list)
        titles: dict[str, list[int]] = defaultdict(list)
        words: Counter[str] = Counter()
        sessions: Counter[str] = Counter()
        for place, (note, index) in enumerate(indexed):
            row = hashes.index_row(note, self._keys, self._scope)
            notes.append(row)
            if index is None or note.archived:
                continue
            row["index"] |= hashes.words_row(index, self._keys, self._scope)
            words.update(row["index"]["words"].split())
            if row["prefix"] is not None:
                sessions[hashes.session_of(row["prefix"])] += index.length
            for use in index.terms:
                uses[use.key].append({"note": place, "text": use.text, "kind": use.kind, "count": use.count})
            for title in index.title_keys:
                titles[title].append(place)
            self._added.notes += 1
            self._added.tokens += index.length
        return notes, {
            "terms": [
                {"name": name, "uses": uses.get(name, []), "titles": titles.get(name, [])}
                for name in sorted(uses.keys() | titles.keys())
            ],
            "words": [{"name": name, "notes": words[name]} for name in sorted(words)],
            "sessions": [{"name": name, "tokens": sessions[name]} for name in sorted(sessions)],
        }

    def _unindex(self, ids: Iterable[str]) -> None:
        if listed := list(ids):
            self._calls.append(StatementCall("index_drop", {"ids": listed}, unindexes=True))

    def _put_decided_links(self, links: Iterable[tuple[str, Link]]) -> None:
        """Append calls for links, each with the note that decided it: the source, or the target of a late source."""
        by_type: dict[LinkType, list[dict[str, Any]]] = defaultdict(list)
        for owner, link in links:
            by_type[link.type].append(rows.link_row(link) | {"owner": owner})
        self._put_links(by_type, "decided")

    def _put_links(self, by_type: Mapping[LinkType, list[dict[str, Any]]], *flags: str) -> None:
        for type, links in by_type.items():
            self._call("links_put", *flags, fill={"type": type.value}, links=links)
        superseded = {link["target"] for link in by_type.get(LinkType.SUPERSEDES, ())}
        self._call("superseded_mark", ids=sorted(superseded))

    def _flush_vectors(self) -> None:
        by_dim: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for op in self._vectors.values():
            by_dim[len(op.vector)].append(_vector_row(op))
        for dim, vectors in by_dim.items():
            self._call("vectors_put", fill={"dim": dim}, vectors=vectors, check=_require_all("vectors", len(vectors)))

    def _flush_jobs(self) -> None:
        puts, self._puts = self._puts, []
        finishes, self._finishes = self._finishes, []
        self._call("jobs_put", jobs=puts, token=self._token, now=self._now)
        expected = len({op.job for op in finishes})

        def check(row: Mapping[str, Any]) -> None:
            if row["finished"] != expected:
                raise ops.StaleLease(f"{expected - row['finished']} of {expected} jobs were taken over")

        self._call("jobs_finish", jobs=[{"id": op.job, "token": op.token} for op in finishes], check=check)

    def _call(
        self,
        name: str,
        *flags: str,
        fill: Mapping[str, str | int] | None = None,
        check: Callable[[Mapping[str, Any]], None] | None = None,
        **values: Any,
    ) -> None:
        """Append a call unless its first value is empty."""
        if next(iter(values.values())):
            self._calls.append(StatementCall(name, values, flags, fill or {}, check))

    def _record(self, recorded_at: int) -> None:
        self._recorded_at = max(self._recorded_at, recorded_at)


def _vector_row(op: ops.PutVector) -> dict[str, Any]:
    """Return a vector's properties; a zero vector has no direction, so it has no embedding."""
    row = np.asarray(op.vector, "<f4")
    return {
        "note": op.note,
        "id": f"{op.note}/{op.space}",
        "space": op.space,
        "bytes": row.tobytes(),
        "code": hashes.half_floats(row) if row.any() else None,
        "embedding": row.tolist() if row.any() else None,
    }


def _require_all(name: str, expected: int) -> Callable[[Mapping[str, Any]], None]:
    """Return a check that a statement matched all its notes."""

    def check(row: Mapping[str, Any]) -> None:
        if row[name] != expected:
            raise StoreError(f"only {row[name]} of {expected} notes that the batch changes are in this scope")

    return check


def _require_notes_and_events(notes: Sequence[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], None]:
    """Return a check that a statement matched all its notes and all events that they cite."""
    check_notes = _require_all("notes", len(notes))
    events = sum(len(note["events"]) for note in notes)

    def check(row: Mapping[str, Any]) -> None:
        check_notes(row)
        if row["events"] != events:
            raise StoreError("a note of the batch cites an event that this scope does not contain")

    return check
