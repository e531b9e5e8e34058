"""Idempotence: an event is stored once, by its id or its content, and the effect of a job is written once."""

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
from tests.contract.support import LIFE, picture, search_texts
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


def test_without_id_content_speaker_and_time_are_the_identity(memory: Memory) -> None:
    equal_events = [Event(content="Yes.", speaker="Ann", occurred_at="2024-01-01")] * 2
    first = memory.add_many(equal_events)
    assert len(set(first)) == 2  # twice in one call are two events
    assert memory.add_many(equal_events) == first
    assert memory.add("Yes.", speaker="Ann", occurred_at="2024-01-01") == first[0]
    assert memory.add("Yes.", speaker="Bob", occurred_at="2024-01-01") not in first
    assert memory.add("Yes.", speaker="Ann", occurred_at="2024-01-01", source="elsewhere.txt") == first[0]


def test_revising_a_note_reads_its_history_once(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The history grows with every revision, and reading it dominates the cost of the next one."""
    remembering = memory._bridge.inner._backend.memory.engine.remembering
    read: list[list[str]] = []

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def histories(self, scope: Scope, ids: list[str]) -> Any:
            raise AssertionError("the whole history was read")

        async def recent(self, scope: Scope, ids: list[str]) -> Any:
            read.append([*ids])
            return await store.recent(scope, ids)

    store = remembering._store
    id = memory.add("The counter is at 1.", id="counter", wait=True)
    monkeypatch.setattr(remembering, "_store", Watched())
    assert memory.add("The counter is at 2.", id="counter", on_conflict="revise") == id
    assert read == [[id]]


def test_without_id_and_time_an_event_is_always_new(memory: Memory) -> None:
    assert memory.add("Hello.") != memory.add("Hello.")


def test_on_conflict_decides_about_other_content_for_the_same_id(memory: Memory) -> None:
    id = memory.add("The gate code is 1234.", id="code")
    with pytest.raises(IdentityConflict, match="'code'"):
        memory.add("The gate code is 9999.", id="code")
    assert memory.add("The gate code is 9999.", id="code", on_conflict="skip") == id
    assert memory.get(id).content == "The gate code is 1234."
    assert memory.add("The gate code is 9999.", id="code", on_conflict="revise") == id
    note = memory.get(id)
    assert note.content == "The gate code is 9999."
    assert memory.get(note.event_ids[0]).revises is not None
    assert search_texts(memory, "gate code") == ["The gate code is 9999."]
    assert memory.add("The gate code is 9999.", id="code") == id  # unchanged
    memory.revert(id, 1)
    assert search_texts(memory, "gate code") == ["The gate code is 1234."]
    with pytest.raises(InvalidInput, match="on_conflict"):
        memory.add("x", id="code", on_conflict="overwrite")


def test_a_conflict_in_a_batch_stores_no_event(memory: Memory) -> None:
    with pytest.raises(IdentityConflict):
        memory.add_many([Event(id="a", content="one"), Event(id="b", content="two"), Event(id="a", content="three")])
    assert memory.list().notes == ()


def test_the_last_wording_in_a_call_wins_with_revise(memory: Memory) -> None:
    wordings = [Event(id="a", content="first words"), Event(id="a", content="second words")]
    first, second = memory.add_many(wordings, on_conflict="revise")
    assert first == second
    assert memory.get(first).content == "second words"
    assert [r.version for r in memory.history(first)] == [1, 2]


def test_a_longer_or_shorter_wording_adds_or_archives_parts(memory: Memory) -> None:
    long = " ".join(f"Sentence number {n} about the harbour." for n in range(120))
    id = memory.add(long, id="report")
    parts = memory.get(id).parts
    assert parts >= 3
    memory.add("Short after all.", id="report", on_conflict="revise")
    assert search_texts(memory, "harbour sentence") in ([], ["Short after all."])
    assert [note.id for note in memory.list().notes] == [id]
    memory.add(long + " And one more.", id="report", on_conflict="revise")
    notes = memory.list().notes
    assert len(notes) >= parts
    assert "".join(note.content for note in sorted(notes, key=lambda note: note.part)) == long + " And one more."


def test_reverted_and_changed_notes_still_belong_to_their_event(memory: Memory) -> None:
    id = memory.add("The gate code is 1234.", id="code")
    memory.add("The gate code is 9999.", id="code", on_conflict="revise")
    memory.revert(id, 1)
    assert memory.add("The gate code is 9999.", id="code") == id
    memory.update(id, kind="semantic")
    assert memory.add("The gate code is 9999.", id="code") == id
    assert memory.add("The gate code is 5555.", id="code", on_conflict="revise") == id
    assert search_texts(memory, "gate code") == ["The gate code is 5555."]
    long = " ".join(f"Sentence number {n} about the harbour." for n in range(120))
    report = memory.add(long, id="report")
    memory.add("Short after all.", id="report", on_conflict="revise")
    memory.revert(report, 1)
    assert memory.add("Short after all.", id="report") == report
    assert memory.add(long, id="report", on_conflict="revise") == report
    notes = [note for note in memory.list().notes if note.id != id]
    assert "".join(note.content for note in sorted(notes, key=lambda note: note.part)) == long
    assert memory.check() == []


def test_deleted_events_are_not_revived(memory: Memory) -> None:
    id = memory.add_many(LIFE)[2]
    memory.delete(id)
    outcome = memory.add_many_report([Event(**event) for event in LIFE])
    assert [done.status for done in outcome] == ["existing"] * 2 + ["deleted"] + ["existing"] * 4
    with pytest.raises(EventDeleted, match=r"'3'.* give it another id"):
        memory.add(**LIFE[2])
    memory.delete(memory.add("No id.", occurred_at="2024-05-01"))
    with pytest.raises(EventDeleted, match=r"^this event was deleted .* give it an id$"):
        memory.add("No id.", occurred_at="2024-05-01")
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
def test_any_repeated_import_changes_nothing(
    backend: str, tmp_path_factory: pytest.TempPathFactory, soak_scale: object
) -> None:
    @given(st.lists(events, max_size=8))
    @settings(max_examples=soak_scale(400))  # type: ignore[operator]
    def run(batch: list[Event]) -> None:
        with Memory(BACKENDS[backend](tmp_path_factory.mktemp("again"))) as memory:
            memory.add_many_report(batch, on_conflict="skip")
            memory.flush()
            before = picture(memory)
            repeated = memory.add_many_report(batch, on_conflict="skip")
            memory.flush()
            assert {done.status for done in repeated} <= {"existing", "skipped"}
            assert picture(memory) == before

    run()


def howls(count: int) -> list[Event]:
    return [Event(content=f"Kestrel the dog howls at the moon, {n} times.", id=str(n)) for n in range(count)]


def test_a_job_done_by_two_workers_is_written_once(url: Any) -> None:
    """The second worker takes over an expired lease; the late worker writes nothing."""
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
    late = await store.claim(list(JobKind), 100, 0.0, scope)  # a lease that expires at once
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


def test_a_scope_deleted_during_its_first_event_recognises_that_event(url: Any) -> None:
    """Identities depend on the scope's secret: each must be written with the secret that made it."""

    async def add_and_delete(memory: AsyncMemory, scope: Scope) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(memory.add, "Ann moved to Oslo.", id="D1", scope=scope))
            tasks.start_soon(partial(memory.delete_scope, scope=scope))

    with Memory(url) as memory:
        for number in range(6):
            scope = Scope(user=f"user {number}")
            memory._bridge.call(partial(add_and_delete, memory._bridge.inner, scope))
            memory.add("Ann moved to Oslo.", id="D1", scope=scope)
            assert len(memory.list(scope=scope).notes) == 1


@pytest.mark.soak_only("neo4j")
@pytest.mark.slow
def test_several_processes_share_the_jobs(url: Any) -> None:
    """Four processes share one queue: no job is lost or written twice."""
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
