"""From a batch to the statements that write it, in order, worked out before the transaction.

Operations that do not touch what others of the batch wrote are gathered, so that a thousand notes take as many
statements as one. Whatever has to be looked up is looked up by the statements themselves, so that a transaction that is
run again writes the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zettel.annotate.extractive import is_question
from zettel.annotate.index import index_note
from zettel.batch import (
    Batch,
    DropMentions,
    EndRestore,
    EraseEvents,
    EraseNotes,
    EraseRevisions,
    FinishJob,
    NoteIndex,
    Op,
    PutEvent,
    PutJob,
    PutMention,
    PutNote,
    PutRevision,
    PutTombstones,
    PutVector,
    RestoreLinks,
    RestoreNote,
    StaleLease,
)
from zettel.errors import EmbedderMismatch, StoreError
from zettel.graph.embedded.keys import Keys
from zettel.graph.neo4j import hashes, rows
from zettel.graph.neo4j.connection import Transaction
from zettel.model import TIME_MIN, Link, LinkType, Note, to_micros

NEVER = hashes.stands(TIME_MIN)
"""Where an undated event stands that nothing dated came before."""


@dataclass
class Tally:
    """What a batch changes about its scope as a whole."""

    notes: int = 0
    tokens: int = 0
    erased: bool = False


@dataclass(frozen=True)
class Step:
    """One statement, with what its answer must be and what it tells."""

    name: str
    values: Mapping[str, Any]
    fill: Mapping[str, str | int] = field(default_factory=dict)
    check: Callable[[Mapping[str, Any]], None] | None = None
    sign: int = 0
    """How the notes and tokens that it tells of change the scope's: -1, or 0 for not at all."""
    mends: bool = False
    """Whether it tells of sessions whose order must be mended."""


@dataclass(frozen=True)
class Plan:
    """The statements of one batch."""

    scope: str
    steps: tuple[Step, ...]
    dims: Mapping[int, int]
    """Which vector sets must be there, and how many numbers a vector of each has."""
    recorded_at: int
    added: Tally


async def run(transaction: Transaction, plan: Plan, changes: int) -> Tally:
    """Run the statements of a batch; what they change about the scope."""
    tally = Tally(plan.added.notes, plan.added.tokens, plan.added.erased)
    for step in plan.steps:
        told = await transaction.run(step.name, fill=step.fill, scope=plan.scope, changes=changes, **step.values)
        row: Mapping[str, Any] = dict(told[0]) if told else {}
        if step.check is not None:
            step.check(row)
        if step.sign:
            tally.notes += step.sign * row["notes"]
            tally.tokens += step.sign * row["tokens"]
        if step.mends and row["sessions"]:
            await transaction.run("sessions_mend", scope=plan.scope, sessions=row["sessions"], never=NEVER)
    return tally


def plan(batch: Batch, scope: str, keys: Keys, token: str, now: int) -> Plan:
    """The statements that write a batch to the nodes of ``scope``. ``now`` is in microseconds, ``token`` tells this
    batch from any other."""
    planner = _Planner(scope, keys, token, now)
    for op in batch.ops:
        planner.take(op)
    planner.flush()
    return Plan(scope, tuple(planner.steps), planner.dims, planner.recorded_at, planner.added)


def rebuilding(scope: str, keys: Keys, notes: Sequence[tuple[Note, tuple[Link, ...]]]) -> Plan:
    """The statements that make anew what is derived of notes, after all of it was dropped."""
    planner = _Planner(scope, keys, "", 0)
    planner.derive(notes)
    return Plan(scope, tuple(planner.steps), {}, TIME_MIN, planner.added)


class _Planner:
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
            RestoreNote: self._restore_note,
            RestoreLinks: self._restore_links,
            PutTombstones: self._put_tombstones,
            EndRestore: self._end_restore,
        }

    def _begin(self) -> None:
        self._events: list[PutEvent] = []
        self._notes: list[PutNote] = []
        self._histories: list[RestoreNote] = []
        self._revisions: dict[str, PutRevision] = {}
        self._vectors: dict[tuple[str, int], PutVector] = {}
        self._mentions: dict[tuple[str, str], Link] = {}
        self._puts: list[dict[str, Any]] = []
        self._finishes: list[FinishJob] = []

    def take(self, op: Op) -> None:
        """Add an operation."""
        self._do[type(op)](op)

    def flush(self) -> None:
        """Write down what was gathered, what others rest on first."""
        self._flush_events()
        self._flush_notes()
        self._flush_histories()
        self._flush_revisions()
        self._flush_vectors()
        self._links([rows.link_row(link, decided=False) | {"type": link.type} for link in self._mentions.values()])
        self._flush_jobs()
        self._begin()

    def derive(self, notes: Sequence[tuple[Note, tuple[Link, ...]]]) -> None:
        """Places, index and decided links of notes."""
        self._rest([note for note, _ in notes])
        self._index([(note, index_note(note)) for note, _ in notes])
        self._links([rows.link_row(link, decided=True) | {"type": link.type} for _, links in notes for link in links])

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
        self.flush()
        self._step("revisions_erase", revisions=[{"note": op.note, "versions": list(op.versions)}])

    # restoring ----------------------------------------------------------------------------------------------

    def _restore_note(self, op: RestoreNote) -> None:
        self._put_note(PutNote(op.note, op.index))
        self._record(to_micros(op.base.recorded_at))
        for revision in op.revisions:
            self._record(to_micros(revision.recorded_at))
        if op.revisions:
            self._histories.append(op)

    def _restore_links(self, op: RestoreLinks) -> None:
        self.flush()
        self._links([rows.link_row(link, decided=True) | {"type": link.type} for link in op.links])

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
                at = NEVER
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
        self._step("events_put", events=told, leading=asked, never=NEVER)
        in_sessions = [op.event.event_id for op in self._events if op.event.session is not None]
        if in_sessions:
            self._step("next_put", ids=in_sessions)

    def _flush_notes(self) -> None:
        if not self._notes:
            return
        key = self._scope
        told = [
            {
                "note": rows.note_row(op.note, self._scope),
                "index": {"scope": key, "id": op.note.id, "seq": op.note.seq},
            }
            for op in self._notes
        ]
        self._step("notes_put", notes=told)
        self._rest([op.note for op in self._notes])
        self._index([(op.note, op.index) for op in self._notes])

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
        self._rest([op.note for op in ops])
        self._index([(op.note, op.index) for op in ops if op.index is not None])
        self._step("links_drop", ids=[op.note.id for op in ops if op.links is not None])
        self._links(
            [rows.link_row(link, decided=True) | {"type": link.type} for op in ops for link in op.links or ()]
        )

    def _rest(self, notes: list[Note]) -> None:
        told = [hashes.rest_row(note, self._keys, self._scope, asks=is_question(note.content)) for note in notes]
        events = sum(len(note.event_ids) for note in notes)

        def check(row: Mapping[str, Any]) -> None:
            _all("notes", [note.id for note in notes])(row)
            if row["events"] != events:
                raise StoreError("a note of the batch rests on an event that this scope does not hold")

        self._step("notes_rest", notes=told, check=check)

    def _index(self, indexed: list[tuple[Note, NoteIndex]]) -> None:
        told: list[dict[str, Any]] = []
        words: Counter[str] = Counter()
        for note, index in indexed:
            if note.archived:
                continue
            row = hashes.index_row(index, self._keys, self._scope)
            words.update(row["words"].split())
            told.append({"id": note.id} | row)
            self.added.notes += 1
            self.added.tokens += index.length
        names = {term["name"] for row in told for term in row["terms"]} | {t for row in told for t in row["titles"]}
        self._step("terms_put", names=sorted(names))
        self._step("words_count", words=[{"name": name, "notes": words[name]} for name in sorted(words)])
        self._step("index_put", notes=told)

    def _unindex(self, ids: Iterable[str]) -> None:
        known = list(ids)
        if known:
            self.steps.append(Step("index_drop", {"ids": known}, sign=-1))

    def _links(self, links: list[dict[str, Any]]) -> None:
        by_type: dict[LinkType, list[dict[str, Any]]] = defaultdict(list)
        for link in links:
            by_type[link.pop("type")].append(link)
        for type, same in by_type.items():
            self._step("links_put", fill={"type": type.value}, links=same)
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
        *,
        fill: Mapping[str, str | int] | None = None,
        check: Callable[[Mapping[str, Any]], None] | None = None,
        **values: Any,
    ) -> None:
        """A statement, unless it has nothing to do."""
        if next(iter(values.values())):
            self.steps.append(Step(name, values, fill or {}, check))

    def _record(self, recorded_at: int) -> None:
        self.recorded_at = max(self.recorded_at, recorded_at)


def _vector_row(op: PutVector) -> dict[str, Any]:
    row = np.asarray(op.vector, "<f4")
    return {
        "note": op.note,
        "id": f"{op.note}/{op.space}",
        "space": op.space,
        "bytes": row.tobytes(),
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
