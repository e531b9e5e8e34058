"""Idempotent: the same event is remembered once, by its id or by what it says, and a job's effect is written once."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.conftest import BACKENDS, EVERY_STORE
from tests.contract.support import LIFE, picture, said
from zettel import AsyncMemory, Event, Memory, Scope
from zettel.errors import EventDeleted, IdentityConflict, InvalidInput
from zettel.model import JobKind
from zettel.ports.operations import StaleLease

ROOT = Path(__file__).parents[2]


def test_a_second_import_adds_nothing(memory: Memory) -> None:
    first = memory.add_many(LIFE, wait=True)
    before = picture(memory)
    assert memory.add_many(LIFE, wait=True) == first
    assert picture(memory) == before


def test_without_id_the_words_and_their_time_are_the_identity(memory: Memory) -> None:
    said_twice = [Event(content="Yes.", speaker="Ann", occurred_at="2024-01-01")] * 2
    first = memory.add_many(said_twice)
    assert len(set(first)) == 2  # two times in one call: said twice
    assert memory.add_many(said_twice) == first
    assert memory.add("Yes.", speaker="Ann", occurred_at="2024-01-01") == first[0]
    assert memory.add("Yes.", speaker="Bob", occurred_at="2024-01-01") not in first
    assert memory.add("Yes.", speaker="Ann", occurred_at="2024-01-01", source="elsewhere.txt") == first[0]


def test_to_revise_a_note_reads_its_history_once(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is as long as the note was revised often, and reading it is most of what a further one costs."""
    remembering = memory._bridge.inner._backend.memory.engine.remembering
    read: list[list[str]] = []

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def histories(self, scope: Scope, ids: list[str]) -> Any:
            read.append([*ids])
            return await store.histories(scope, ids)

    store = remembering._store
    id = memory.add("The counter is at 1.", id="counter", wait=True)
    monkeypatch.setattr(remembering, "_store", Watched())
    assert memory.add("The counter is at 2.", id="counter", on_conflict="revise") == id
    assert read == [[id]]


def test_with_neither_id_nor_time_an_event_is_always_new(memory: Memory) -> None:
    assert memory.add("Hello.") != memory.add("Hello.")


def test_other_content_for_the_same_id_is_decided_by_the_caller(memory: Memory) -> None:
    id = memory.add("The gate code is 1234.", id="code")
    with pytest.raises(IdentityConflict, match="'code'"):
        memory.add("The gate code is 9999.", id="code")
    assert memory.add("The gate code is 9999.", id="code", on_conflict="skip") == id
    assert memory.get(id).content == "The gate code is 1234."
    assert memory.add("The gate code is 9999.", id="code", on_conflict="revise") == id
    note = memory.get(id)
    assert note.content == "The gate code is 9999."
    assert memory.get(note.event_ids[0]).revises is not None
    assert said(memory, "gate code") == ["The gate code is 9999."]
    assert memory.add("The gate code is 9999.", id="code") == id  # no news
    memory.revert(id, 1)
    assert said(memory, "gate code") == ["The gate code is 1234."]
    with pytest.raises(InvalidInput, match="on_conflict"):
        memory.add("x", id="code", on_conflict="overwrite")


def test_a_conflict_in_a_batch_stores_none_of_it(memory: Memory) -> None:
    with pytest.raises(IdentityConflict):
        memory.add_many([Event(id="a", content="one"), Event(id="b", content="two"), Event(id="a", content="three")])
    assert memory.list().notes == ()


def test_the_last_of_several_wordings_in_one_call_wins_under_revise(memory: Memory) -> None:
    wordings = [Event(id="a", content="first words"), Event(id="a", content="second words")]
    one, two = memory.add_many(wordings, on_conflict="revise")
    assert one == two
    assert memory.get(one).content == "second words"
    assert [r.version for r in memory.history(one)] == [1, 2]


def test_a_longer_or_shorter_wording_adds_or_archives_parts(memory: Memory) -> None:
    long = " ".join(f"Sentence number {n} about the harbour." for n in range(120))
    id = memory.add(long, id="report")
    parts = memory.get(id).parts
    assert parts >= 3
    memory.add("Short after all.", id="report", on_conflict="revise")
    assert said(memory, "harbour sentence") in ([], ["Short after all."])
    assert [note.id for note in memory.list().notes] == [id]
    memory.add(long + " And one more.", id="report", on_conflict="revise")
    notes = memory.list().notes
    assert len(notes) >= parts
    assert "".join(note.content for note in sorted(notes, key=lambda note: note.part)) == long + " And one more."


def test_a_note_that_was_taken_back_or_called_otherwise_is_still_its_events(memory: Memory) -> None:
    id = memory.add("The gate code is 1234.", id="code")
    memory.add("The gate code is 9999.", id="code", on_conflict="revise")
    memory.revert(id, 1)
    assert memory.add("The gate code is 9999.", id="code") == id
    memory.update(id, kind="semantic")
    assert memory.add("The gate code is 9999.", id="code") == id
    assert memory.add("The gate code is 5555.", id="code", on_conflict="revise") == id
    assert said(memory, "gate code") == ["The gate code is 5555."]
    long = " ".join(f"Sentence number {n} about the harbour." for n in range(120))
    report = memory.add(long, id="report")
    memory.add("Short after all.", id="report", on_conflict="revise")
    memory.revert(report, 1)
    assert memory.add("Short after all.", id="report") == report
    assert memory.add(long, id="report", on_conflict="revise") == report
    notes = [note for note in memory.list().notes if note.id != id]
    assert "".join(note.content for note in sorted(notes, key=lambda note: note.part)) == long
    assert memory.check() == []


def test_what_was_deleted_is_not_revived(memory: Memory) -> None:
    id = memory.add_many(LIFE)[2]
    memory.delete(id)
    outcome = memory.add_many_report([Event(**event) for event in LIFE])
    assert [done.status for done in outcome] == ["existing"] * 2 + ["deleted"] + ["existing"] * 4
    with pytest.raises(EventDeleted, match="'3'"):
        memory.add(**LIFE[2])
    memory.delete_scope()
    assert len(memory.add_many(LIFE)) == 7


words = st.sampled_from(["yes", "no", "maybe"])
events = st.builds(
    Event,
    content=words,
    id=st.none() | st.sampled_from(["a", "b"]),
    speaker=st.none() | st.sampled_from(["Ann", "Bob"]),
    occurred_at=st.sampled_from(["2024-01-01", "2024-01-02"]),
    session=st.none() | st.just("s"),
)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("backend", EVERY_STORE)
def test_any_import_run_again_changes_nothing(
    backend: str, tmp_path_factory: pytest.TempPathFactory, soak_scale: object
) -> None:
    @given(st.lists(events, max_size=8))
    @settings(max_examples=soak_scale(400))  # type: ignore[operator]
    def run(batch: list[Event]) -> None:
        with Memory(BACKENDS[backend](tmp_path_factory.mktemp("again"))) as memory:
            memory.add_many_report(batch, on_conflict="skip")
            memory.flush()
            before = picture(memory)
            again = memory.add_many_report(batch, on_conflict="skip")
            memory.flush()
            assert {done.status for done in again} <= {"existing", "skipped"}
            assert picture(memory) == before

    run()


def howls(count: int) -> list[Event]:
    return [Event(content=f"Kestrel the dog howls at the moon, {n} times.", id=str(n)) for n in range(count)]


def test_a_job_that_two_workers_do_is_written_once(url: Any) -> None:
    """The second worker takes over a lease that ran out; whoever is late writes nothing."""
    with Memory(url) as memory:
        memory.add_many(howls(9))
        memory.flush()
        ids = [note.id for note in memory.list().notes]
        memory._bridge.call(memory._bridge.inner._backend.memory.engine.loop.close)
        memory._bridge.call(partial(_two_workers, memory._bridge.inner, ids[0]))
        decided = [r.cause.by for r in memory.history(ids[0]) if r.cause.by == "link" and r.live]
        assert len(decided) <= 1
        for id in ids[1:]:
            assert [r.cause.by for r in memory.history(id)] == ["add", "link"]
        assert memory.check() == []


async def _two_workers(memory: AsyncMemory, note: str) -> None:
    assert memory._backend.memory.engine is not None
    store, scope = memory._backend.memory.engine.store, memory.scope
    work = memory._backend.memory.engine.loop._work
    await memory.update(note, content="Kestrel the dog howls at the sun.")
    late = await store.claim(list(JobKind), 100, 0.0, scope)  # a lease that has run out when it begins
    early = await store.claim(list(JobKind), 100, 60.0, scope)
    assert [job.id for job in early] == [job.id for job in late]
    assert all(job.attempts == 2 for job in early)
    assert {job.token for job in early}.isdisjoint({job.token for job in late})
    seq = (await store.state(scope)).seq
    with pytest.raises(StaleLease):
        await work.do(late)
    assert (await store.state(scope)).seq == seq
    await work.do(early)
    assert await store.jobs(scope) == []


def test_a_scope_dropped_beside_its_first_event_knows_that_event(url: Any) -> None:
    """Identities hang on the scope's secret: none may be written under another than they were made with."""

    async def both(memory: AsyncMemory, scope: Scope) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(memory.add, "Ann moved to Oslo.", id="D1", scope=scope))
            tasks.start_soon(partial(memory.delete_scope, scope=scope))

    with Memory(url) as memory:
        for number in range(6):
            scope = Scope(user=f"user {number}")
            memory._bridge.call(partial(both, memory._bridge.inner, scope))
            memory.add("Ann moved to Oslo.", id="D1", scope=scope)
            assert len(memory.list(scope=scope).notes) == 1


@pytest.mark.soak_only("neo4j")
@pytest.mark.slow
def test_several_processes_share_the_jobs(url: Any) -> None:
    """Four processes work one queue off: nothing is lost and nothing written twice."""
    with Memory(url) as memory:
        memory._bridge.call(memory._bridge.inner._backend.memory.engine.loop.close)
        memory.add_many(
            [{"content": f"Kestrel the dog howls at the moon, {n} times.", "id": str(n)} for n in range(900)]
        )
        assert len(memory.jobs()) == 900
    code = "import sys; from zettel import Memory; m = Memory(sys.argv[1]); m.flush(); m.close()"
    command = [sys.executable, "-c", code, str(url)]
    workers = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) for _ in range(4)]
    errors = [worker.communicate(timeout=100)[1].decode() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4, errors
    with Memory(url) as memory:
        assert memory.jobs() == []
        assert memory.check() == []
        for note in memory.list(limit=1000).notes[1:]:
            assert [r.cause.by for r in memory.history(note.id)] == ["add", "link"]
