"""Conformance suite for stores: subclass `StoreConformance` in a pytest module and implement `make_store`.

    from zettel.testing.store_conformance import StoreConformance

    class TestMyStore(StoreConformance):
        def make_store(self, folder):
            return MyStore(folder / "memory")
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from zettel.core.fold import fold
from zettel.core.principals import acting_as
from zettel.model import TIME_MAX, TIME_MIN, JobKind, JobState, Kind, LinkType, Note, Retention, Scope, to_micros
from zettel.ports import GraphStore, LookupQuery, NoteRecord, ScopeState, Written
from zettel.ports.operations import (
    Batch,
    Conflict,
    EndRestore,
    FinishJob,
    Op,
    PutJob,
    PutRetention,
    PutVector,
    Restore,
    RestoreNote,
    StaleLease,
)
from zettel.ports.query import Filter, Selection
from zettel.testing.reference_store import ReferenceStore
from zettel.testing.store_comparison import compare_answers, compare_reads
from zettel.testing.store_writer import ANN, DIM, StoreWriter, a_job, vector
from zettel.text.index import index_note

BOB = Scope(user="bob")
ALL_KINDS = list(JobKind)
MOMENT = datetime(2024, 5, 1, 9, 0, 0, 123456, tzinfo=timezone.utc)
EVERY_FIELD: dict[str, Any] = {
    "kind": Kind.PROCEDURAL, "title": "Harbours", "caption": "A harbour", "context": "Ann: a harbour",
    "keywords": ("harbour", "ferry"), "tags": ("place",), "importance": 0.25, "confidence": 0.75,
    "external_id": "turn/7", "part": 1, "parts": 3, "speaker": "Ann", "role": "user", "session": "s",
    "occurred_at": MOMENT, "occurrences": (MOMENT, MOMENT + timedelta(days=9)),
    "valid_from": MOMENT + timedelta(days=1), "expires_at": MOMENT + timedelta(days=5),
    "metadata": {"team": {"red": [1, None]}},
    "authored": ("context",), "archived": True, "merged_into": "n_9", "faded": True, "quarantined": "spam",
    "flags": ("instruction",), "trust": 0.25, "ceiling": 0.5,
}  # fmt: skip
"""A value other than the default of each field of a note; its id, content and numbers have no default."""


def on_a_store(test: Callable[[Any, GraphStore], Awaitable[None]]) -> Callable[[StoreConformance, Path], None]:
    """Turn an asynchronous test of an open store into a synchronous one that pytest runs with `tmp_path`."""

    def run(self: StoreConformance, tmp_path: Path) -> None:
        self._run(tmp_path, partial(test, self))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


class StoreConformance:
    """The guarantees of a GraphStore, one test each. Every test starts with an empty store."""

    persistent = True
    """False for a store that loses its data on close. Tests that reopen the store then do nothing."""

    cosine_tolerance = 1e-5
    """Largest allowed error of a candidate's cosine."""

    def make_store(self, folder: Path) -> GraphStore:
        """An unopened store in this folder. Another call with this folder opens the same data."""
        raise NotImplementedError

    # writes -----------------------------------------------------------------------------------------------------

    @on_a_store
    async def test_apply_writes_all_or_nothing(self, store: GraphStore) -> None:
        """A batch with a stale lease writes none of its operations."""
        writer = await StoreWriter(store).begin()
        before = await store.state(ANN)
        stale = FinishJob("j_unknown", "unknown token")
        with raises(StaleLease):
            await writer.do(PutJob(a_job("j_1")), stale)
        assert await store.jobs(ANN) == []
        assert (await store.state(ANN)).seq == before.seq

    @on_a_store
    async def test_a_batch_planned_on_an_old_state_conflicts(self, store: GraphStore) -> None:
        writer = await StoreWriter(store).begin()
        await writer.add("The harbour.")
        seq = (await store.state(ANN)).seq
        await writer.add("The ferry.")
        with raises(Conflict):
            await store.apply(Batch(ANN, seq, seq + 1, (PutJob(a_job("j_1")),)))
        assert await store.jobs(ANN) == []

    def test_commits_survive_a_reopen(self, tmp_path: Path) -> None:
        if not self.persistent:
            return

        async def write(store: GraphStore) -> None:
            await (await StoreWriter(store).begin()).add("The harbour.")

        async def read(store: GraphStore) -> None:
            assert [note.content for note in await store.page(ANN, Filter(), 0, 9)] == ["The harbour."]

        self._run(tmp_path, write)
        self._run(tmp_path, read)

    # reads ------------------------------------------------------------------------------------------------------

    @on_a_store
    async def test_notes_keep_every_field(self, store: GraphStore) -> None:
        """A note whose fields all differ from their defaults is read as it was written."""
        undefault = EVERY_FIELD.keys() | {"id", "content", "event_ids", "seq", "recorded_at", "valid_to", "version"}
        missing = Note.model_fields.keys() - undefault
        assert not missing, f"give EVERY_FIELD values of {missing}"
        writer = await StoreWriter(store).begin()
        id = await writer.add("The harbour.", **EVERY_FIELD)
        note = (await store.notes(ANN, [id]))[id]
        assert {name: getattr(note, name) for name in EVERY_FIELD} == EVERY_FIELD
        assert (note.content, note.event_ids, note.version) == ("The harbour.", ("e_1",), 1)

    @on_a_store
    async def test_events_and_changes_keep_their_principal(self, store: GraphStore) -> None:
        writer = await StoreWriter(store).begin()
        await writer.add("The ferry.")
        with acting_as("key:bob", 0.5):
            await writer.add("The harbour.")
        with acting_as("key:bob"):
            await writer.change("n_1", title="Ferries")
            await writer.change("n_2", title="Harbours")
        await writer.change("n_2", title="The harbours")
        assert await store.written_by(ANN, "key:bob") == Written(("e_2",), (("n_1", 2), ("n_2", 2)))
        assert await store.written_by(ANN, "key") == await store.written_by(BOB, "key:bob") == Written((), ())
        event = (await store.events(ANN, ["e_2"]))["e_2"]
        assert (event.principal, event.ceiling) == ("key:bob", 0.5)
        history = (await store.histories(ANN, ["n_2"]))["n_2"]
        assert [revision.principal for revision in history.revisions] == ["key:bob", ""]

    @on_a_store
    async def test_reads_and_candidates_equal_the_reference(self, store: GraphStore) -> None:
        reference = ReferenceStore()
        ours, theirs = await StoreWriter(store).begin(), await StoreWriter(reference).begin()
        for writer in (ours, theirs):
            ids = await self._fill(writer)
        await compare_reads(store, reference, ids, Filter(tags=("pet",)))
        unexpired = Filter(unexpired_at=to_micros(MOMENT))
        assert {note.id for note in await store.page(ANN, unexpired, 0, 9)} == {*ids} - {ids[1]}
        filters = (Filter(), Filter(tags=("pet",)), Filter(session="a"), unexpired, replace(unexpired, session="a"))
        for filter in filters:
            await compare_answers(ours, theirs, ids, filter, None, (None, None), self.cosine_tolerance)

    @on_a_store
    async def test_notes_expire_in_the_order_of_their_times(self, store: GraphStore) -> None:
        writer = await StoreWriter(store).begin()
        assert (await store.state(ANN)).expires == TIME_MAX
        for number in range(6):  # n_1 never expires, n_4 and n_5 together, n_6 first
            days = (None, 3, 2, 1, 1, 0)[number]
            end = None if days is None else MOMENT + timedelta(days=days)
            await writer.add(f"Number {number}.", expires_at=end)
        event = (await store.events(ANN, ["e_2"]))["e_2"]
        assert event.expires_at == MOMENT + timedelta(days=3)
        await writer.change("n_6", archived=True)
        state = await store.state(ANN)
        assert state.expires == to_micros(MOMENT + timedelta(days=1))  # n_6 is archived
        until, start = to_micros(MOMENT + timedelta(days=2)), (TIME_MIN, 0)
        notes = await store.expired(ANN, until, start, 9)
        assert [note.id for note in notes] == ["n_4", "n_5", "n_3"]
        assert await store.expired(ANN, until, start, 2) == notes[:2]
        place = (to_micros(MOMENT + timedelta(days=1)), notes[0].seq)
        assert await store.expired(ANN, until, place, 9) == notes[1:]
        assert [note.id for note in await store.expired(ANN, until, start, 9, archived=True)] == ["n_6"]
        assert await store.expired(BOB, until, start, 9) == []
        await writer.change("n_4", expires_at=None)
        assert [note.id for note in await store.expired(ANN, until, start, 9)] == ["n_5", "n_3"]
        unexpired = Filter(unexpired_at=until)
        assert [note.id for note in await store.page(ANN, unexpired, 0, 9)] == ["n_1", "n_2", "n_4"]
        assert await store.select(ANN, Selection(unexpired), "arrival", 9) == ["n_1", "n_2", "n_4"]
        assert await store.check(repair=False) == []

    @on_a_store
    async def test_expired_notes_take_no_place_among_the_candidates(self, store: GraphStore) -> None:
        writer = await StoreWriter(store).begin()
        for number in range(5):
            await writer.add("The harbour.", vector=vector(1, 0), expires_at=None if number == 4 else MOMENT)
        unexpired = {"filter": Filter(unexpired_at=to_micros(MOMENT)), "pool": 2, "window": 0}
        for query in ({"vector": None}, {"vector": vector(1, 0)}, {"known_at": TIME_MAX}):
            found = await writer.ask("harbour", **unexpired, **query)
            pooled = [id for id, pool in zip(found.ids, found.pool.tolist(), strict=True) if pool]
            assert pooled == ["n_5"]

    @on_a_store
    async def test_a_scope_keeps_its_retention(self, store: GraphStore) -> None:
        writer = await StoreWriter(store).begin()
        retention = Retention(max_age=timedelta(days=90), then="archive")
        await writer.do(PutRetention(retention))
        await writer.add("The harbour.")
        assert (await store.state(ANN)).retention == retention
        assert (await store.state(BOB)).retention is None
        (state,) = [record async for page in store.whole(ANN) for record in page if isinstance(record, ScopeState)]
        assert state.retention == retention
        restore = Restore(state.secret, secrets.token_hex(8))
        await store.apply(Batch(BOB, 0, 1, (PutRetention(retention), EndRestore(state.recorded_at)), restore))
        assert (await store.state(BOB)).retention == retention
        await writer.do(PutRetention(None))
        assert (await store.state(ANN)).retention is None

    @on_a_store
    async def test_lookup_finds_identities_titles_and_counts(self, store: GraphStore) -> None:
        writer = await StoreWriter(store).begin()
        nothing = await store.lookup(ANN, LookupQuery(identities=("x",), tokens=("ferri",)))
        assert (dict(nothing.events), nothing.notes, nothing.has_titles) == ({}, 0, False)
        id = await writer.add("The ferry left.", title="Kestrel", identity="x")
        query = LookupQuery(identities=("x", "y"), names=("kestrel", "ida"), tokens=("ferri", "nobodi"))
        result = await store.lookup(ANN, query)
        assert {identity: parts for identity, (_, parts) in result.events.items()} == {"x": (id,)}
        assert {name: ids for name, ids in result.named.items() if ids} == {"kestrel": (id,)}
        assert (result.notes, result.has_titles, dict(result.df)) == (1, True, {"ferri": 1, "nobodi": 0})
        await writer.erase(id)
        assert (await store.lookup(ANN, query)).tombstones == {"x"}

    @on_a_store
    async def test_pages_are_in_seq_order_without_archived_notes(self, store: GraphStore) -> None:
        writer = await StoreWriter(store).begin()
        ids = [await writer.add(f"Number {number}.") for number in range(5)]
        await writer.change(ids[1], archived=True)
        first = await store.page(ANN, Filter(), 0, 2)
        rest = await store.page(ANN, Filter(), first[-1].seq, 9)
        assert [note.id for note in (*first, *rest)] == [ids[0], *ids[2:]]
        assert [note.id for note in await store.archived(ANN, 2**40, 9)] == [ids[1]]

    @on_a_store
    async def test_scopes_are_separate(self, store: GraphStore) -> None:
        ann, bob = await StoreWriter(store).begin(), await StoreWriter(store, BOB, first=50).begin()
        id = await ann.add("The harbour.")
        other = await bob.add("The harbour.")
        assert list((await ann.ask("harbour", vector=vector(1))).ids) == [id]
        assert list((await bob.ask("harbour", vector=vector(1))).ids) == [other]
        assert await store.notes(BOB, [id]) == {}
        assert await store.drop_scope(ANN) == 1
        assert await store.scopes() == [BOB]
        assert list((await ann.ask("harbour", vector=vector(1))).ids) == []

    # jobs -------------------------------------------------------------------------------------------------------

    @on_a_store
    async def test_jobs_are_claimed_once(self, store: GraphStore) -> None:
        """Only the worker with the lease finishes a job; jobs of equal work are queued once."""
        ann, bob = await StoreWriter(store).begin(), await StoreWriter(store, BOB).begin()
        now = datetime.now(timezone.utc)
        await ann.do(*(PutJob(a_job(f"j_{n}", note=f"n_{n}", version=1)) for n in range(3)))
        await ann.do(PutJob(a_job("j_again", note="n_0", version=1)))
        await ann.do(PutJob(a_job("j_later", run_at=now + timedelta(hours=1), version=2)))
        await ann.do(PutJob(a_job("j_other", kind=JobKind.EMBED, version=3)))
        await bob.do(PutJob(a_job("j_bob", BOB, kind=JobKind.ANNOTATE, priority=5)))
        assert await store.claim([], 9, 60, None) == []
        assert await store.claim([JobKind.PURGE], 9, 60, None) == []
        assert await store.claim(ALL_KINDS, 9, 60, Scope(user="nobody")) == []
        urgent = await store.claim(ALL_KINDS, 9, 60, None)
        assert [job.id for job in urgent] == ["j_bob"]
        assert (urgent[0].scope, urgent[0].state, urgent[0].attempts) == (BOB, JobState.RUNNING, 1)
        first, second = await asyncio.gather(store.claim(ALL_KINDS, 2, 60, ANN), store.claim(ALL_KINDS, 2, 60, ANN))
        claimed = [*second, *first, *await store.claim([JobKind.LINK], 9, 60, ANN)]
        assert sorted(job.id for job in claimed) == ["j_0", "j_1", "j_2"]
        assert len({job.token for job in claimed}) == 3
        assert [job.id for job in await store.claim(ALL_KINDS, 9, 60, ANN)] == ["j_other"]
        assert await store.claim(ALL_KINDS, 9, 60, None) == []
        with raises(StaleLease):
            await ann.do(FinishJob(claimed[0].id, "another token"))
        await ann.do(*(FinishJob(job.id, job.token or "") for job in claimed))
        assert [job.id for job in await store.jobs(ANN)] == ["j_later", "j_other"]
        assert {job.id for job in await store.jobs(None, JobState.RUNNING)} == {"j_other", "j_bob"}

    @on_a_store
    async def test_expired_leases_are_taken_over_and_renewed_ones_are_not(self, store: GraphStore) -> None:
        writer = await StoreWriter(store).begin()
        await writer.do(PutJob(a_job("j_1")))
        (late,) = await store.claim(ALL_KINDS, 9, 0.0, None)
        await asyncio.sleep(0.05)
        (mine,) = await store.claim(ALL_KINDS, 1, 0.0, None)
        assert (mine.id, mine.attempts) == (late.id, 2)
        await store.renew([mine], 60)
        await asyncio.sleep(0.05)
        assert await store.claim(ALL_KINDS, 1, 60, None) == []
        with raises(StaleLease):
            await writer.do(FinishJob(late.id, late.token or ""))
        await store.fail([late], "too late", None)
        assert (await store.jobs(ANN))[0].state is JobState.RUNNING
        await writer.do(FinishJob(mine.id, mine.token or ""))
        assert await store.jobs(None) == []

    @on_a_store
    async def test_failed_jobs_keep_their_error_and_can_be_retried(self, store: GraphStore) -> None:
        writer = await StoreWriter(store).begin()
        await writer.do(PutJob(a_job("j_1")))
        (job,) = await store.claim(ALL_KINDS, 1, 60, None)
        await store.fail([job], "no network", None)
        (failed,) = await store.jobs(ANN, JobState.FAILED)
        assert failed.error == "no network"
        assert await store.claim(ALL_KINDS, 1, 60, None) == []
        assert await store.pending(ANN) == 0
        assert await store.retry(ANN) == 1
        assert await store.pending(ANN) == 1
        assert await store.cancel(ANN, "j_1")
        assert await store.jobs(ANN) == []

    # vector sets ------------------------------------------------------------------------------------------------

    @on_a_store
    async def test_a_vector_set_is_activated_once_it_is_complete(self, store: GraphStore) -> None:
        writer = await StoreWriter(store).begin()
        id = await writer.add("The harbour.", vector=vector(1))
        (first,) = await store.spaces()
        assert first.active
        assert first == await store.add_space(first.name, first.dim, first.fingerprint, first.recipe)
        second = await store.add_space("other", DIM, "sha2", "/1")
        assert not second.active
        assert [note.id for _, note in await store.without_vector(second.id, 9)] == [id]
        assert not await store.activate(second.id)
        await writer.do(PutVector(id, second.id, vector(0, 1)))
        assert await store.activate(second.id)
        assert [(each.id, each.active) for each in await store.spaces()] == [(second.id, True)]
        stored = (await store.vectors(ANN, [id], second.id))[id]
        assert np.allclose(stored, vector(0, 1))

    # maintenance ------------------------------------------------------------------------------------------------

    @on_a_store
    async def test_a_restored_scope_equals_the_streamed_one(self, store: GraphStore) -> None:
        """A restore is invisible until its last batch, and its scope then has the same notes and links."""
        ids = await self._fill(await StoreWriter(store).begin())
        records = [record async for page in store.whole(ANN) for record in page]
        state = records[0]
        assert isinstance(state, ScopeState)
        restore = Restore(state.secret, secrets.token_hex(8))
        ops: list[Op] = []
        for record in records[1:]:
            if isinstance(record, NoteRecord):
                note, _ = fold(record.base, record.revisions)
                ops.append(RestoreNote(record.base, record.revisions, note, index_note(note)))
                ops += [PutVector(note.id, space, each) for space, each in record.vectors]
            elif not isinstance(record, (PutJob, ScopeState)):
                ops.append(record)
        await store.apply(Batch(BOB, 0, len(ops), tuple(ops), restore))
        assert await store.scopes() == [ANN]
        assert await store.notes(BOB, ids) == {}
        await store.apply(Batch(BOB, len(ops), state.seq, (EndRestore(state.recorded_at),), restore))
        assert set(await store.scopes()) == {ANN, BOB}
        assert await store.notes(BOB, ids) == await store.notes(ANN, ids)
        assert await store.links(BOB, ids) == await store.links(ANN, ids)

    @on_a_store
    async def test_an_abandoned_restore_leaves_nothing(self, store: GraphStore) -> None:
        await self._fill(await StoreWriter(store).begin())
        restore = Restore(b"s" * 32, secrets.token_hex(8))
        await store.apply(Batch(BOB, 0, 1, (), restore))
        assert any("import" in line for line in await store.check(repair=False)) or not self.persistent
        await store.abandon_restore(BOB)
        assert not any("import" in line for line in await store.check(repair=False))
        with raises(Conflict):
            await store.apply(Batch(BOB, 1, 2, (EndRestore(0),), restore))

    @on_a_store
    async def test_purge_completes_after_a_delete(self, store: GraphStore) -> None:
        """After `purge` returns True no read returns deleted data; check the files in a test of your own."""
        writer = await StoreWriter(store).begin()
        ids = [await writer.add("The harbour."), await writer.add("The ferry.")]
        await writer.erase(ids[0])
        assert await store.purge()
        assert not await store.purge_due()
        assert set(await store.notes(ANN, ids)) == {ids[1]}
        assert set(await store.histories(ANN, ids)) == {ids[1]}
        assert await store.check(repair=False) == []

    # helpers ----------------------------------------------------------------------------------------------------

    async def _fill(self, writer: StoreWriter) -> list[str]:
        """Write notes with sessions, titles, tags, links, a revision and an erased note; return the note ids."""
        contents = ("The harbour and the cello.", "The ferry to Oslo.", "Kestrel and the ferry.", "The harbour.")
        ids = []
        for number, content in enumerate(contents):
            angle = number * 0.7
            ids.append(
                await writer.add(
                    content,
                    vector=vector(np.cos(angle), np.sin(angle)),
                    session="a" if number < 2 else "b",
                    occurred_at=f"2024-01-0{number + 1}",
                    title="Kestrel" if number == 2 else None,
                    tags=("pet",) if number == 2 else (),
                    source="a.txt" if number else None,
                    identity="x" if number == 1 else None,
                )
            )
        await writer.change(ids[3], links=[(ids[0], LinkType.RELATES)], inputs=[ids[0]])
        await writer.mention(ids[1], ids[2])
        await writer.change(ids[1], content="The ferry to Bergen.", vector=vector(0.2, 1))
        await writer.change(ids[0], valid_to="2024-01-03T00:00:00Z", expires_at=MOMENT + timedelta(days=9))
        await writer.change(ids[1], expires_at=MOMENT)
        erased = await writer.add("To be erased.", identity="y")
        await writer.erase(erased)
        return ids

    def _run(self, folder: Path, work: Callable[[GraphStore], Awaitable[None]]) -> None:
        async def opened() -> None:
            store = self.make_store(folder)
            await store.open()
            try:
                await work(store)
            finally:
                await store.close()

        asyncio.run(opened())


@contextmanager
def raises(error: type[BaseException]) -> Iterator[None]:
    """Require an exception, as `pytest.raises` does."""
    try:
        yield
    except error:
        return
    raise AssertionError(f"{error.__name__} was not raised")
