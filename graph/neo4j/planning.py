"""From a batch to the statements that write it, in order, worked out before the transaction.

Operations that do not touch what others of the batch wrote are gathered, so that a thousand notes take as many
statements as one. Whatever has to be looked up is looked up by the statements themselves, so that a transaction that is
run again writes the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from zettel.annotate.index import index_note
from zettel.batch import (
    Batch,
    DropMentions,
    EndRestore,
    EraseAnswers,
    EraseEvents,
    EraseNotes,
    EraseRevisions,
    EraseSearches,
    FinishJob,
    NoteIndex,
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
from zettel.graph.keys import Keys
from zettel.graph.neo4j import hashes, rows
from zettel.graph.neo4j.writes import Plan, Step, Tally
from zettel.model import TIME_MIN, Link, LinkType, Note, to_micros


def plan(batch: Batch, scope: str, keys: Keys, token: str, now: int) -> Plan:
    """The statements that write a batch to the nodes of ``scope``. ``now`` is in microseconds, ``token`` tells this
    batch from any other."""
    planner = Planner(scope, keys, token, now)
    for op in batch.ops:
        planner.take(op)
    planner.flush()
    return Plan(scope, tuple(planner.steps), planner.dims, planner.recorded_at, planner.added)


def rebuilding(scope: str, keys: Keys, notes: Sequence[tuple[Note, tuple[Link, ...]]]) -> Plan:
    """The statements that make anew what is derived of notes, after all of it was dropped."""
    planner = Planner(scope, keys, "", 0)
    planner.derive(notes)
    return Plan(scope, tuple(planner.steps), {}, TIME_MIN, planner.added)


class Planner:
    """Gathers operations, and writes them down as steps whenever the next one depends on them."""

    def __init__(self, scope: str, keys: Keys, token: str, now: int) -> None:
        self._scope, self._keys, self._token, self._now = scope, keys, token, now
        self.steps: list[Step] = []
        self.dims: dict[int, int] = {}
        self.recorded_at = TIME_MIN
        self.added = Tally()
        self._jobs = 0
        self._begin()
        self._do: dict[type[Op], Callable[[Any], None]] = {
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

    def _begin(self) -> None:
        self._events: list[PutEvent] = []
        self._notes: list[PutNote] = []
        self._histories: list[RestoreNote] = []
        self._restored: list[tuple[str, Link]] = []
        self._erased: list[dict[str, Any]] = []
        self._revisions: dict[str, PutRevision] = {}
        self._vectors: dict[tuple[str, int], PutVector] = {}
        self._mentions: dict[tuple[str, str], Link] = {}
        self._puts: list[dict[str, Any]] = []
        self._finishes: list[FinishJob] = []
        self._usages: list[dict[str, Any]] = []

    def take(self, op: Op) -> None:
        """Add an operation."""
        self._do[type(op)](op)

    def flush(self) -> None:
        """Write down what was gathered, what others rest on first."""
        self._flush_events()
        self._flush_notes()
        self._flush_histories()
        self._step("revisions_erase", revisions=self._erased)
        self._flush_revisions()
        self._flush_vectors()
        self._decided(self._restored)
        self._mentioned(self._mentions.values())
        self._step("usages_put", usages=self._usages, check=_all("notes", [row["note"] for row in self._usages]))
        self._flush_jobs()
        self._begin()

    def derive(self, notes: Sequence[tuple[Note, tuple[Link, ...]]]) -> None:
        """Places, index and decided links of notes."""
        self._index([(note, index_note(note)) for note, _ in notes])
        self._decided((note.id, link) for note, links in notes for link in links)

    # adding -------------------------------------------------------------------------------------------------

    def _put_event(self, op: PutEvent) -> None:
        self._record(to_micros(op.event.recorded_at))
        self._events.append(op)

    def _put_note(self, op: PutNote) -> None:
        self._record(to_micros(op.note.recorded_at))
        self._notes.append(op)

    def _put_vector(self, op: PutVector) -> None:
        if op.vector.ndim != 1 or self.dims.setdefault(op.space, len(op.vector)) != len(op.vector):
            raise EmbedderMismatch(f"a vector of {op.vector.shape} does not fit vector set {op.space}")
        self._vectors[op.note, op.space] = op

    def _put_mention(self, op: PutMention) -> None:
        self._mentions[op.link.source, op.link.target] = op.link

    def _put_job(self, op: PutJob) -> None:
        if self._finishes:
            self._flush_jobs()
        self._jobs += 1
        self._puts.append(rows.job_row(op.job, self._jobs))

    def _finish_job(self, op: FinishJob) -> None:
        if self._puts:
            self._flush_jobs()
        self._finishes.append(op)

    # changing -----------------------------------------------------------------------------------------------

    def _put_revision(self, op: PutRevision) -> None:
        if op.note.id in self._revisions:
            self.flush()
        self._record(to_micros(op.revision.recorded_at))
        self._revisions[op.note.id] = op

    def _drop_mentions(self, op: DropMentions) -> None:
        self.flush()
        self._step("mentions_drop", ids=list(op.notes))

    def _erase_notes(self, op: EraseNotes) -> None:
        self.flush()
        self._unindex(op.notes)
        self._step("notes_erase", ids=list(op.notes))
        self.added.erased = True

    def _erase_events(self, op: EraseEvents) -> None:
        self.flush()
        self.steps.append(Step("events_erase", {"ids": list(op.events)}, mends=True))

    def _erase_revisions(self, op: EraseRevisions) -> None:
        if op.note in self._revisions:
            self.flush()
        self._erased.append({"note": op.note, "versions": list(op.versions)})

    # what language models said and cost ---------------------------------------------------------------------

    def _put_answer(self, op: PutAnswer) -> None:
        self.flush()
        self._step("answer_put", answer=rows.answer_row(op, self._scope), notes=list(dict.fromkeys(op.notes)))

    def _erase_answers(self, op: EraseAnswers) -> None:
        self._step("answers_erase", ids=list(op.notes))

    def _put_use(self, op: PutUse) -> None:
        self._step("use_put", use=rows.use_row(op.use))

    # what was searched, and what was of use -----------------------------------------------------------------

    def _put_feedback(self, op: PutFeedback) -> None:
        self._step("search_told", search=rows.search_row(op.search, self._scope))

    def _put_note_use(self, op: PutNoteUse) -> None:
        self._usages.append(rows.usage_row(op.note, op.use, self._scope))

    def _erase_searches(self, op: EraseSearches) -> None:
        self._step("searches_erase", ids=list(op.searches))

    # restoring ----------------------------------------------------------------------------------------------

    def _restore_note(self, op: RestoreNote) -> None:
        self._put_note(PutNote(op.note, op.index))
        self._record(to_micros(op.base.recorded_at))
        for revision in op.revisions:
            self._record(to_micros(revision.recorded_at))
        if op.revisions:
            self._histories.append(op)

    def _restore_links(self, op: RestoreLinks) -> None:
        self._restored += [(op.owner, link) for link in op.links]

    def _put_tombstones(self, op: PutTombstones) -> None:
        self._step("tombstones_put", identities=list(op.identities))

    def _end_restore(self, op: EndRestore) -> None:
        self._record(op.recorded_at)

    def _flush_histories(self) -> None:
        told = []
        for op in self._histories:
            rested_on: set[Any] = set(op.base.event_ids)
            rested_on.update(id for revision in op.revisions for id in _as_list(revision.change.get("event_ids")))
            revisions = [
                {"revision": rows.revision_row(revision, self._scope) | {"cited": rows.cited_by(revision)}}
                for revision in op.revisions
            ]
            base = rows.note_row(op.base, self._scope)
            told.append({"id": op.base.id, "base": base, "revisions": revisions, "events": sorted(rested_on)})
        self._step("histories_put", notes=told)

    # steps --------------------------------------------------------------------------------------------------

    def _flush_events(self) -> None:
        if not self._events:
            return
        last: dict[str, str | None] = {}
        leading: dict[str, int] = {}
        told: list[dict[str, Any]] = []
        for op in self._events:
            event = op.event
            at: str | None = None
            if event.occurred_at is not None:
                at = hashes.stands(to_micros(event.occurred_at))
            elif event.session is None:
                at = hashes.NEVER
            elif event.session in last:
                at = last[event.session]
            else:
                leading[event.session] = event.seq
            if event.session is not None:
                last[event.session] = at
            told.append(
                {
                    "event": rows.event_row(event, op.identity, self._scope),
                    "prefix": hashes.session_prefix(self._keys, self._scope, event.session) or "",
                    "stands": at,
                    "arrived": hashes.arrived(event.seq),
                }
            )
        asked = [{"name": name, "seq": seq} for name, seq in leading.items()]
        values = {"events": told, "leading": asked, "never": hashes.NEVER}
        self.steps.append(Step("events_put", values, ("leading",) if asked else (), mends=True))

    def _flush_notes(self) -> None:
        if not self._notes:
            return
        at_once: dict[str, list[PutVector]] = defaultdict(list)
        new = {op.note.id for op in self._notes}
        for key, vector in list(self._vectors.items()):
            if vector.note in new:
                at_once[vector.note].append(self._vectors.pop(key))
        jobs: dict[str, dict[tuple[str, int], dict[str, Any]]] = defaultdict(dict)
        for job in self._puts:  # what is queued already stays as it is, and of a new note that can only be one of these
            if job["note"] in new:
                jobs[job["note"]].setdefault((job["kind"], job["version"]), self._job_of(job))
        self._puts = [job for job in self._puts if job["note"] not in new]
        told, found = self._found([(op.note, op.index) for op in self._notes])
        for row, op in zip(told, self._notes, strict=True):
            row["note"] = rows.note_row(op.note, self._scope)
            row["vectors"] = [self._vector_of(one, op.note) for one in at_once[op.note.id]]
            row["jobs"] = list(jobs[op.note.id].values())
        self._step("notes_put", notes=told, **found, check=_all_rest(told))

    def _vector_of(self, op: PutVector, note: Note) -> dict[str, Any]:
        """All properties of a vector of a new note but for when it changed."""
        row = _vector_row(op)
        told = {"scope": self._scope, "note": note.id, "seq": note.seq}
        return row | told | {"shown": row["embedding"] is not None and not note.archived}

    def _flush_revisions(self) -> None:
        if not self._revisions:
            return
        ops = list(self._revisions.values())
        self._unindex([op.note.id for op in ops if op.index is not None])
        told = [
            {
                "id": op.note.id,
                "note": rows.note_row(op.note, self._scope),
                "revision": rows.revision_row(op.revision, self._scope),
                "cited": rows.cited_by(op.revision),
                "shown": not op.note.archived,
            }
            for op in ops
        ]
        self._step("notes_revise", notes=told, check=_all("notes", [op.note.id for op in ops]))
        self._index([(op.note, op.index) for op in ops])
        self._step("links_drop", ids=[op.note.id for op in ops if op.links is not None])
        self._decided((op.note.id, link) for op in ops for link in op.links or ())

    def _job_of(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """All properties of a job of a new note."""
        told = {name: row[name] for name in ("kind", "note", "version")}
        return {"scope": self._scope, **told, **row["job"], "queued": self._now, "batch": self._token}

    def _index(self, indexed: Sequence[tuple[Note, NoteIndex | None]]) -> None:
        told, found = self._found(indexed)
        self._step("notes_index", notes=told, **found, check=_all_rest(told))

    def _found(
        self, indexed: Sequence[tuple[Note, NoteIndex | None]]
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """What notes are found by; their Terms, which name the notes by their places here, their words and sessions.

        A note without a NoteIndex keeps its words, Terms and titles. An archived one has none.
        """
        told: list[dict[str, Any]] = []
        uses: dict[str, list[dict[str, Any]]] = defaultdict(list)
        titles: dict[str, list[int]] = defaultdict(list)
        words: Counter[str] = Counter()
        sessions: Counter[str] = Counter()
        for place, (note, index) in enumerate(indexed):
            row = hashes.rest_row(note, self._keys, self._scope)
            told.append(row)
            if index is None or note.archived:
                continue
            row["index"] |= hashes.index_row(index, self._keys, self._scope)
            words.update(row["index"]["words"].split())
            if row["prefix"] is not None:
                sessions[hashes.session_in(row["prefix"])] += index.length
            for use in index.terms:
                uses[use.key].append({"note": place, "text": use.text, "kind": use.kind, "count": use.count})
            for title in index.title_keys:
                titles[title].append(place)
            self.added.notes += 1
            self.added.tokens += index.length
        return told, {
            "terms": [
                {"name": name, "uses": uses.get(name, []), "titles": titles.get(name, [])}
                for name in sorted(uses.keys() | titles.keys())
            ],
            "words": [{"name": name, "notes": words[name]} for name in sorted(words)],
            "sessions": [{"name": name, "tokens": sessions[name]} for name in sorted(sessions)],
        }

    def _unindex(self, ids: Iterable[str]) -> None:
        known = list(ids)
        if known:
            self.steps.append(Step("index_drop", {"ids": known}, unindexes=True))

    def _decided(self, links: Iterable[tuple[str, Link]]) -> None:
        """Links, each with the note that decided it, which late news lead to instead of from."""
        by_type: dict[LinkType, list[dict[str, Any]]] = defaultdict(list)
        for owner, link in links:
            by_type[link.type].append(rows.link_row(link) | {"owner": owner})
        self._put_links(by_type, "decided")

    def _mentioned(self, links: Iterable[Link]) -> None:
        self._put_links({LinkType.MENTIONS: [rows.link_row(link) for link in links]})

    def _put_links(self, by_type: Mapping[LinkType, list[dict[str, Any]]], *flags: str) -> None:
        for type, same in by_type.items():
            self._step("links_put", *flags, fill={"type": type.value}, links=same)
        replaced = {link["target"] for link in by_type.get(LinkType.SUPERSEDES, ())}
        self._step("superseded_mark", ids=sorted(replaced))

    def _flush_vectors(self) -> None:
        by_dim: dict[int, list[PutVector]] = defaultdict(list)
        for op in self._vectors.values():
            by_dim[len(op.vector)].append(op)
        for dim, ops in by_dim.items():
            told = [_vector_row(op) for op in ops]
            known = [op.note for op in ops]
            self._step("vectors_put", fill={"dim": dim}, vectors=told, check=_all("vectors", known))

    def _flush_jobs(self) -> None:
        puts, self._puts = self._puts, []
        finishes, self._finishes = self._finishes, []
        self._step("jobs_put", jobs=puts, token=self._token, now=self._now)
        wanted = len({op.job for op in finishes})

        def check(row: Mapping[str, Any]) -> None:
            if row["finished"] != wanted:
                raise StaleLease(f"{wanted - row['finished']} of {wanted} jobs were taken over")

        self._step("jobs_finish", jobs=[{"id": op.job, "token": op.token} for op in finishes], check=check)

    def _step(
        self,
        name: str,
        *flags: str,
        fill: Mapping[str, str | int] | None = None,
        check: Callable[[Mapping[str, Any]], None] | None = None,
        **values: Any,
    ) -> None:
        """A statement, unless it has nothing to do."""
        if next(iter(values.values())):
            self.steps.append(Step(name, values, flags, fill or {}, check))

    def _record(self, recorded_at: int) -> None:
        self.recorded_at = max(self.recorded_at, recorded_at)


def _vector_row(op: PutVector) -> dict[str, Any]:
    """What is kept of a vector; one of zeros has no direction, hence no embedding."""
    row = np.asarray(op.vector, "<f4")
    return {
        "note": op.note,
        "id": f"{op.note}/{op.space}",
        "space": op.space,
        "bytes": row.tobytes(),
        "code": hashes.code(row) if row.any() else None,
        "embedding": row.tolist() if row.any() else None,
    }


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _all(name: str, ids: list[str]) -> Callable[[Mapping[str, Any]], None]:
    """Whether a step found all the notes that it was to change."""

    def check(row: Mapping[str, Any]) -> None:
        if row[name] != len(ids):
            raise StoreError(f"only {row[name]} of {len(ids)} notes that the batch changes are in this scope")

    return check


def _all_rest(told: Sequence[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], None]:
    """Whether a step found all the notes, and all the events that they rest on."""
    found = _all("notes", [note["id"] for note in told])
    events = sum(len(row["events"]) for row in told)

    def check(row: Mapping[str, Any]) -> None:
        found(row)
        if row["events"] != events:
            raise StoreError("a note of the batch rests on an event that this scope does not hold")

    return check
