"""Events that expire, and the retention of scopes, on every store."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.support import noted, search_texts
from tests.waiting import until
from zettel import Event, Kind, Memory, Scope
from zettel.core.retention import PAGE
from zettel.errors import InvalidInput, NotFound, PermissionDenied
from zettel.model import Retention, Swept

pytestmark = pytest.mark.over_http

HOUR = timedelta(hours=1)
CODE, HOME = "The door code of the cabin is 4711.", "Ann lives in Bergen, near the harbour."


class Later:
    """The present time, which a test moves on."""

    def __init__(self) -> None:
        self.passed = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(timezone.utc) + self.passed


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    later = Later()
    monkeypatch.setattr("zettel.core.present._clock", later)
    return later


def reads(memory: Memory) -> dict[str, Any]:
    """Return the answers of the calls that find notes."""
    return {
        "search": search_texts(memory, "What is the door code of the cabin?", restore_decayed=False),
        "current": search_texts(memory, "door code", current_only=True),
        "filtered": search_texts(memory, "door code", session="s"),
        "where": search_texts(memory, "door code", filter={"content": {"contains": "4711"}}),
        "list": [note.content for note in memory.list().notes],
        "listed": [note.content for note in memory.list(filter={"content": {"contains": "4711"}}).notes],
        "query": [note.content for note in memory.query(words=["code", "harbour"]).notes],
        "events": [event.content for event in memory.events("s")],
        "context": memory.context("What is the door code of the cabin?"),
        "session": memory.session_context("s"),
        "graph": [note.content for note in memory.graph().notes],
    }


def test_expired_events_are_found_nowhere(memory: Memory, later: Later) -> None:
    memory.add(HOME, session="s", speaker="Ann")
    id = memory.add(CODE, session="s", speaker="Ann", ttl=HOUR)
    memory.flush()
    before = reads(memory)
    assert all(CODE in answer for answer in before.values())
    assert memory.query(words=["code"]).count == 1
    known_at = datetime.now(timezone.utc)
    later.passed = HOUR
    after = reads(memory)
    assert all(CODE not in answer for answer in after.values()), after
    assert HOME in after["list"]
    assert HOME in after["session"]
    assert memory.query(words=["code"]).count == 0
    assert CODE in search_texts(memory, "door code", known_at=known_at), "it was known then"
    assert CODE not in search_texts(memory, "door code", known_at=known_at + 2 * HOUR)
    assert memory.sweep(dry_run=True) == Swept(deleted=1)
    assert noted(memory, id).content == CODE
    assert memory.sweep() == Swept(deleted=1)
    assert memory.sweep() == Swept()
    with pytest.raises(NotFound):
        memory.get(id)
    assert [note.content for note in memory.list().notes] == [HOME]
    assert memory.check() == []


def test_an_event_has_the_time_at_which_it_expires(memory: Memory) -> None:
    end = datetime(2090, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    first = memory.add(CODE, expires_at="2090-01-02T03:04:05Z", id="a")
    second, third = memory.add_many([Event(content=HOME, expires_at=end), {"content": "It is wet."}])
    assert noted(memory, first).expires_at == noted(memory, second).expires_at == end
    assert noted(memory, third).expires_at is None
    assert memory.get(noted(memory, first).event_ids[0]).expires_at == end  # type: ignore[union-attr]
    assert memory.add(CODE, id="a", ttl=60) == first, "a repetition does not change the expiry"
    assert noted(memory, first).expires_at == end
    (id,) = memory.add_messages([{"role": "user", "content": "Hello there"}], ttl=timedelta(days=2))
    left = noted(memory, id).expires_at - datetime.now(timezone.utc)  # type: ignore[operator]
    assert timedelta(days=1.9) < left < timedelta(days=2)
    assert memory.update("a", expires_at=None).expires_at is None
    memory.revert("a", 1)
    assert noted(memory, first).expires_at == end


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ttl": 0}, "ttl=0 must be"), ({"ttl": timedelta(days=-1)}, "above 0"), ({"ttl": "30d"}, "ttl='30d' must be"),
        ({"ttl": float("nan")}, "must be"), ({"ttl": 60, "expires_at": "2090-01-01"}, "not both"),
        ({"expires_at": "2020-01-01"}, "is in the past"), ({"expires_at": "soon"}, "is not a time"),
    ],
    ids=str,
)  # fmt: skip
def test_faulty_expiries_store_nothing(memory: Memory, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        memory.add(CODE, **arguments)
    assert memory.list().notes == ()


def test_all_parts_of_a_long_event_expire_together(memory: Memory, later: Later) -> None:
    text = " ".join(f"Chapter {n} is about the sea and of the ship number {n}." for n in range(200))
    id = memory.add(text, ttl=HOUR)
    assert noted(memory, id).parts > 2
    memory.update(id, expires_at=datetime.now(timezone.utc) + 3 * HOUR)
    later.passed = 2 * HOUR
    assert len(memory.list().notes) == noted(memory, id).parts
    later.passed = 4 * HOUR
    assert memory.list().notes == ()
    assert memory.sweep() == Swept(deleted=1)


def test_derived_notes_expire_with_their_sources(memory: Memory, later: Later) -> None:
    """The profile with a statement of an expired event is not found, and the next round writes one without it."""
    memory.add_many(
        [{"content": text, "speaker": "Ann"} for text in ("I live in Bergen.", "I work as a nurse.", "I have a dog.")]
    )
    memory.add("I'm allergic to walnuts.", speaker="Ann", ttl=HOUR)
    memory.evolve()
    profile = next(note for note in memory.list(kinds=[Kind.INSIGHT]).notes if "profile" in note.tags)
    assert "walnuts" in profile.content
    later.passed = HOUR
    assert not any("walnuts" in note.content for note in memory.list().notes)
    assert "walnuts" not in memory.context("Tell me about Ann", profile=True)
    memory.sweep()
    later.passed = timedelta()
    memory.evolve()
    rewritten = next(note for note in memory.list(kinds=[Kind.INSIGHT]).notes if "profile" in note.tags)
    assert "Bergen" in rewritten.content
    assert "walnuts" not in json.dumps([note.model_dump(mode="json") for note in memory.list().notes])


def test_a_fact_expires_with_its_sources(memory: Memory) -> None:
    end = datetime.now(timezone.utc) + HOUR
    fact = memory.add_fact("Ann", "home", "Bergen", sources=[memory.add(HOME, expires_at=end)])
    assert noted(memory, fact).expires_at == end


def test_notes_that_expire_are_not_merged(memory: Memory, later: Later) -> None:
    """Else the expiry of one would delete what the other states for good."""
    event = {"content": "The ferry to Bergen leaves at nine.", "speaker": "Ann", "occurred_at": "2024-05-01"}
    memory.add_many([{**event, "id": "a"}, {**event, "id": "b"}, {**event, "id": "c"}])
    memory.update("c", expires_at=datetime.now(timezone.utc) + HOUR)
    memory.evolve()
    assert len(memory.list().notes) == 2
    later.passed = HOUR
    memory.sweep()
    (note,) = memory.list().notes
    assert len(note.event_ids) == 2


def test_archived_on_expiry_can_be_restored(memory: Memory, later: Later) -> None:
    assert memory.set_retention(then="archive") == Retention(then="archive")
    id = memory.add(CODE, ttl=HOUR)
    memory.flush()  # the job after a new retention
    later.passed = HOUR
    assert memory.sweep(dry_run=True) == memory.sweep() == Swept(archived=1)
    assert memory.sweep() == Swept()
    assert noted(memory, id).archived
    assert memory.history(id)[-1].cause.by == "expire"
    assert CODE not in search_texts(memory, "door code")
    assert CODE in search_texts(memory, "door code", archived=True)
    restored = memory.unarchive(id)
    assert restored.expires_at is None, "a person wants it back: it does not expire again"
    assert CODE in search_texts(memory, "door code")
    assert memory.sweep() == Swept()


def test_old_notes_are_removed_without_pinned_ones(memory: Memory, later: Later) -> None:
    old, pinned = memory.add(CODE), memory.add("Call 110 in case of fire.", pinned=True)
    insight = memory.add(HOME)
    retention = memory.set_retention(timedelta(days=30), then="archive")
    assert memory.retention() == retention == Retention(max_age=timedelta(days=30), then="archive")
    assert memory.sweep() == Swept()
    memory.flush()
    later.passed = timedelta(days=31)
    assert memory.sweep() == Swept(archived=2)
    assert [note.id for note in memory.list().notes] == [pinned]
    memory.unarchive(old)
    assert memory.sweep(dry_run=True) == memory.sweep() == Swept(), "a person restored it"
    later.passed = timedelta()
    memory.set_retention(30 * 24 * 3600)
    memory.flush()
    later.passed = timedelta(days=31)
    assert memory.sweep(dry_run=True) == memory.sweep() == Swept(deleted=2)
    for id in (old, insight):
        with pytest.raises(NotFound):
            memory.get(id)
    assert [note.id for note in memory.list().notes] == [pinned]
    assert memory.remove_retention()
    assert not memory.remove_retention()
    assert memory.retention() is None


@pytest.mark.parametrize("arguments", [{"max_age": 0}, {"max_age": "90d"}, {"then": "burn"}], ids=str)
def test_faulty_retentions_change_nothing(memory: Memory, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"(must|should) be"):
        memory.set_retention(**arguments)
    assert memory.retention() is None


def test_a_retention_concerns_one_scope(memory: Memory, later: Later) -> None:
    ann, bob = Scope(user="ann"), Scope(user="bob")
    for scope in (ann, bob):
        memory.add(CODE, scope=scope)
    memory.set_retention(HOUR, scope=ann)
    memory.flush(scope=ann)
    later.passed = 2 * HOUR
    assert memory.retention(scope=bob) is None
    assert memory.sweep(scope=ann) == Swept(deleted=1)
    assert memory.sweep(scope=bob) == Swept()
    memory.delete_scope(scope=ann)
    assert memory.retention(scope=ann) is None


def test_a_sweep_takes_several_pages(memory: Memory, later: Later) -> None:
    events = [{"content": f"Parking ticket number {n} of Tuesday.", "id": str(n)} for n in range(2 * PAGE + 3)]
    memory.add_many([{**event, "expires_at": datetime.now(timezone.utc) + HOUR} for event in events])
    memory.add(HOME)
    later.passed = HOUR
    assert memory.sweep(dry_run=True) == Swept(deleted=len(events))
    assert memory.sweep() == Swept(deleted=len(events))
    assert [note.content for note in memory.list().notes] == [HOME]
    assert memory.check() == []


def test_a_job_removes_what_expired(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zettel.core.follow_ups.SWEEP_EVERY", timedelta(seconds=1))
    id = memory.add(CODE, ttl=0.5)
    home = memory.add(HOME, ttl=HOUR)
    began = time.monotonic()
    memory.flush()
    assert time.monotonic() - began < 20, "nobody waits for a planned sweep"
    assert {job.kind.value for job in memory.jobs()} == {"expire"}
    until(lambda: not has(memory, id))
    assert has(memory, home)
    memory.flush()
    (job,) = memory.jobs()
    with pytest.raises(InvalidInput, match="change the retention"):
        memory.cancel_job(job.id)


def test_a_job_sweeps_each_day(memory: Memory, later: Later) -> None:
    memory.add(CODE)
    memory.set_retention(timedelta(days=30))
    memory.flush()
    later.passed = timedelta(days=31)
    (job,) = memory.jobs()
    assert (job.run_at.hour, job.run_at.minute, job.kind.value) == (0, 0, "expire")
    memory.set_retention(timedelta(days=30))
    until(lambda: not memory.list().notes)


def has(memory: Memory, id: str) -> bool:
    try:
        memory.get(id)
    except NotFound:
        return False
    return True


@pytest.mark.here
def test_a_memory_file_has_retention_and_planned_sweeps(memory: Memory, later: Later, tmp_path: Path) -> None:
    id = memory.add(CODE, ttl=HOUR)
    memory.set_retention(timedelta(days=90), then="archive")
    memory.flush()
    memory.export(tmp_path / "all.zettel", "zettel")
    with Memory(tmp_path / "copy.db") as copy:
        copy.import_transcript(tmp_path / "all.zettel")
        assert copy.retention() == memory.retention() == Retention(max_age=timedelta(days=90), then="archive")
        assert noted(copy, id).expires_at == noted(memory, id).expires_at
        planned = [[(job.kind, job.run_at) for job in each.jobs()] for each in (memory, copy)]
        assert sorted(planned[0]) == sorted(planned[1])
        later.passed = HOUR
        assert copy.list().notes == ()
    memory.export(tmp_path / "events.jsonl", "jsonl")
    assert json.loads((tmp_path / "events.jsonl").read_text())["expires_at"]


@pytest.mark.here
def test_callers_below_full_trust_remove_nothing(memory: Memory) -> None:
    from zettel import acting_as

    with acting_as("key:bob", 0.5):
        for call in (memory.sweep, lambda: memory.set_retention(60), memory.remove_retention):
            with pytest.raises(PermissionDenied):
                call()


@pytest.mark.here
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ends=st.lists(st.none() | st.integers(1, 9), min_size=1, max_size=8), hours=st.integers(0, 10))
def test_a_note_is_visible_unless_it_expired(
    memory: Memory, later: Later, ends: list[int | None], hours: int
) -> None:
    scope = Scope(user=f"{time.monotonic_ns()}")
    later.passed = timedelta()
    start = datetime.now(timezone.utc)
    memory.add_many(
        [
            {"content": f"Ticket {n} is for the ferry.", "expires_at": None if end is None else start + end * HOUR}
            for n, end in enumerate(ends)
        ],
        scope=scope,
    )
    later.passed = hours * HOUR
    visible = {f"Ticket {n} is for the ferry." for n, end in enumerate(ends) if end is None or end > hours}
    assert {note.content for note in memory.list(scope=scope).notes} == visible
    assert set(search_texts(memory, "Which ticket is for the ferry?", scope=scope, k=10)) == visible
    assert memory.sweep(scope=scope) == Swept(deleted=len(ends) - len(visible))
    assert {note.content for note in memory.list(scope=scope).notes} == visible
