"""A whole memory moves between any two stores without loss."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import zettel.core.restore
from tests.contract.conftest import BACKENDS, EVERY_STORE, PERSISTENT
from tests.contract.support import LIFE
from tests.contract.test_reembed import Letters
from tests.contract.transfer_helpers import BOB, PAYLOAD, Remote, found, leave_jobs, live, records, store_of, told
from zettel import Event, Memory, Scope
from zettel.errors import InvalidInput, JobFailed, StoreBusy
from zettel.jobs import reembed_job
from zettel.model import JobKind, JobState
from zettel.ports import NoteRecord


class Lived(NamedTuple):
    """A memory with a life behind it: all of it in a file, the same with jobs that wait, and what it said of itself."""

    file: Path
    with_jobs: Path
    told: dict[Scope, dict[str, Any]]
    counts: dict[Scope, dict[str, Any]]
    answers: list[tuple[dict[str, Any], list[list[tuple[str, float]]]]]


@pytest.fixture(scope="module", params=EVERY_STORE)
def lived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """One life on each store."""
    folder = tmp_path_factory.mktemp("lived")
    (folder / "source").mkdir()
    with Memory(BACKENDS[request.param](folder / "source")) as memory:
        live(memory)
        memory.export(folder / "all.zettel", "zettel", all_scopes=True)
        times = [step.recorded_at for note in memory.list().notes for step in memory.history(note.id)]
        searches: list[dict[str, Any]] = [
            {}, {"as_of": "2024-02-01"}, {"known_at": min(times)}, {"known_at": max(times)}, {"scope": BOB},
        ]  # fmt: skip
        answers = [(search, found(memory, **search)) for search in searches]
        leave_jobs(memory)
        memory.export(folder / "jobs.zettel", "zettel", all_scopes=True)
        all_told = {scope: told(memory, scope) for scope in memory.scopes()}
        counts = {scope: memory.stats(scope=scope) for scope in all_told}
    return Lived(folder / "all.zettel", folder / "jobs.zettel", all_told, counts, answers)


@pytest.fixture
def moved(lived: Lived) -> Path:
    """All of it in a file."""
    return lived.file


@pytest.mark.parametrize("target", EVERY_STORE)
class TestThereAndBack:
    def test_everything_is_as_it_was(self, lived: Lived, target: str, tmp_path: Path) -> None:
        events = sum(len(one["dump"]) for one in lived.told.values())
        with Memory(BACKENDS[target](tmp_path)) as memory:
            report = memory.import_transcript(lived.with_jobs)
            assert (report.format, report.added, report.rejected_records) == ("zettel", events, [])
            assert set(memory.scopes()) == {Scope(), BOB} == set(lived.told)
            for scope, expected in lived.told.items():
                assert told(memory, scope) == expected
                here, there = memory.stats(scope=scope), lived.counts[scope]
                assert here["notes"] == there["notes"]
                assert here == there or here["store"] != there["store"]
            assert {job.state for job in memory.jobs()} == {JobState.FAILED, JobState.QUEUED}
            assert memory.check() == []
            memory.export(tmp_path / "again.zettel", "zettel", all_scopes=True)
            assert records(tmp_path / "again.zettel") == records(lived.with_jobs)

    def test_the_same_answers(self, lived: Lived, target: str, tmp_path: Path) -> None:
        # A server sends vectors in half precision.
        with Memory(BACKENDS[target](tmp_path)) as memory:
            memory.import_transcript(lived.file)
            for search, wanted in lived.answers:
                for one, other in zip(wanted, found(memory, **search), strict=True):
                    assert [id for id, _ in one] == [id for id, _ in other]
                    assert [score for _, score in one] == pytest.approx([score for _, score in other], abs=5e-4)


@pytest.fixture
def copy(moved: Path, url: Any) -> Iterator[Memory]:
    with Memory(url) as memory:
        memory.import_transcript(moved)
        yield memory


class TestItLivesOn:
    """What was brought in is a memory like any other."""

    def test_the_transcript_adds_nothing_and_revives_nothing(self, copy: Memory) -> None:
        outcome = copy._bridge.call(partial(copy._bridge.inner.add_many_report, [_event(one) for one in LIFE]))
        assert [one.status for one in outcome] == ["existing"] * len(LIFE)
        (gone,) = copy._bridge.call(
            partial(
                copy._bridge.inner.add_many_report,
                [_event({"id": "24", "content": "To be deleted.", "session": "c"})],
            )
        )
        assert gone.status == "deleted"

    def test_it_can_be_taken_back_and_deleted(self, copy: Memory) -> None:
        ids = {event.external_id: notes[0].id for event, notes in copy.dump() if notes}
        assert copy.revert(ids["1"], 1).content == "I live in Bergen, above a bakery."
        assert copy.delete(ids["3"]) == 1
        added = copy.add("Something new.")
        copy.flush()
        left = [note.id for note in copy.list().notes]
        assert ids["3"] not in left
        assert (left[-1], copy.history(added)[0].seq) == (added, max(note.seq for note in copy.list().notes))
        assert copy.check() == []

    def test_payloads_are_exact(self, copy: Memory) -> None:
        (event,) = (event for event, _ in copy.dump() if event.external_id == "23")
        assert event.payload == PAYLOAD

    def test_it_lasts(self, moved: Path, url: Any) -> None:
        with Memory(url) as memory:
            memory.import_transcript(moved)
            before = told(memory)
        with Memory(url) as memory:
            assert told(memory) == before

    def test_nothing_is_embedded_again(self, moved: Path, url: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        with Memory(url) as memory:
            monkeypatch.setattr(type(memory._bridge.inner._backend.memory.engine.vectors.embedder), "embed", _never)
            memory.import_transcript(moved)
            assert memory.stats(scope=Scope())["notes"] == len({n.id for _, notes in memory.dump() for n in notes})


async def _never(self: Any, texts: Sequence[str]) -> Any:
    raise AssertionError(f"asked to embed {texts}")


def _event(fields: dict[str, Any]) -> Any:
    return Event.model_validate(fields)


class TestAnotherEmbedder:
    def test_a_local_one_embeds_at_once(self, tmp_path: Path, url: Any) -> None:
        with Memory(tmp_path / "far.db", embedder=Remote()) as memory:
            live(memory)
            memory.export(tmp_path / "far.zettel", "zettel")
        with Memory(url) as memory:
            memory.import_transcript(tmp_path / "far.zettel")
            assert memory.check() == []
            assert memory.search("Where does Ann live?")[0].note.content

    def test_a_remote_one_embeds_by_jobs(self, exported: Path, url: Any) -> None:
        embedder = Remote()
        embedder.down = True
        with Memory(url, embedder=embedder) as memory:
            memory.import_transcript(exported)
            shown = memory.list(limit=1000).notes
            assert {job.note for job in memory.jobs() if job.kind is JobKind.EMBED} == {note.id for note in shown}
            embedder.down = False
            memory.retry_jobs()
            memory.flush()
            assert memory.check() == []

    def test_a_remote_one_keeps_its_vectors(self, tmp_path: Path, url: Any) -> None:
        with Memory(tmp_path / "far.db", embedder=Remote()) as memory:
            live(memory)
            memory.export(tmp_path / "far.zettel", "zettel")
        embedder = Remote()
        embedder.down = True
        with Memory(url, embedder=embedder) as memory:
            memory.import_transcript(tmp_path / "far.zettel")
            assert memory.jobs() == []
            assert memory.check() == []

    @pytest.mark.parametrize("remote", [False, True])
    def test_half_way_to_another_embedder_what_lacks_a_vector_gets_one(
        self, tmp_path: Path, url: Any, remote: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Letters, "remote", remote)
        monkeypatch.setattr(reembed_job, "REEMBED_BATCH", 3)
        with Memory(tmp_path / "half.db") as memory:
            memory.add_many(LIFE)
            memory.flush()
        with Memory(tmp_path / "half.db", embedder=Letters(breaks_after=5)) as memory, pytest.raises(JobFailed):
            memory.reembed()
        with Memory(tmp_path / "half.db") as memory:
            memory.export(tmp_path / "half.zettel", "zettel")
        letters = Letters()
        with Memory(url, embedder=letters) as memory:
            memory.import_transcript(tmp_path / "half.zettel")
            memory.flush()
            assert letters.embedded == len(LIFE) - 3
            assert memory.check() == []


class TestWhereTo:
    def test_one_scope_under_another_name(self, exported: Path, url: Any) -> None:
        with Memory(url) as memory:
            memory.add("Bob was here first.", scope=BOB)
            memory.import_transcript(exported, scope=Scope(user="eve"))
            memory.import_transcript(exported, scope=Scope(user="eva"))  # a copy within one store
            memory.flush()
            assert set(memory.scopes()) == {BOB, Scope(user="eve"), Scope(user="eva")}
            assert told(memory, Scope(user="eve")) == told(memory, Scope(user="eva"))
            assert memory.check() == []

    def test_it_is_there_already(self, exported: Path, url: Any) -> None:
        with Memory(url) as memory:
            first, second = memory.import_transcript(exported), memory.import_transcript(exported, "zettel")
            assert (first.added, first.existing) == (second.existing, second.added) == (first.records, 0)

    def test_a_scope_that_is_not_empty(self, exported: Path, url: Any) -> None:
        with Memory(url) as memory:
            memory.add("Ann was here first.")
            memory.flush()
            before = told(memory)
            with pytest.raises(InvalidInput, match=r"the default scope is not empty: name an empty scope .*delete"):
                memory.import_transcript(exported)
            assert told(memory) == before
            memory.delete_scope()
            assert memory.import_transcript(exported).added > 1

    def test_it_went_on_since(self, exported: Path, url: Any) -> None:
        with Memory(url) as memory:
            memory.import_transcript(exported)
            memory.add("One thing more.")
            with pytest.raises(InvalidInput, match="as it was at another time"):
                memory.import_transcript(exported)

    def test_several_scopes_and_one_name(self, moved: Path, url: Any) -> None:
        with Memory(url) as memory, pytest.raises(InvalidInput, match="holds 2 scopes"):
            memory.import_transcript(moved, scope=BOB)

    def test_one_of_several_is_taken(self, moved: Path, url: Any) -> None:
        with Memory(url) as memory:
            memory.add("Bob was here first.", scope=BOB)
            with pytest.raises(InvalidInput, match="user='bob' is not empty"):
                memory.import_transcript(moved)
            assert memory.scopes() == [BOB]


def test_an_export_is_one_state(url: Any, tmp_path: Path) -> None:
    """Whoever writes while a memory is exported is in it with all of a write, or not at all."""
    with Memory(url) as memory:
        memory.add_many({"id": str(number), "content": f"Boat {number} left."} for number in range(600))
        memory.flush()
        before = {note.id for note in memory.list(limit=1000).notes}
        store = store_of(memory)

        async def disturbed() -> list[Any]:
            kept: list[Any] = []
            async for page in store.whole(Scope()):
                if not kept:
                    await memory._bridge.inner.add("One boat more.")
                    await memory._bridge.inner.delete(min(before))
                kept += page
            return kept

        try:
            seen: list[Any] = memory._bridge.call(disturbed)
        except StoreBusy:  # it tells that it could not keep one state in view
            return
        assert {one.base.id for one in seen if isinstance(one, NoteRecord)} == before


@pytest.mark.timeout(300)
@pytest.mark.parametrize("url", PERSISTENT[:2], indirect=True)  # both release lines of a server are read in one way
@pytest.mark.soak_only("neo4j")
@pytest.mark.slow
def test_flat_memory(tmp_path: Path, url: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the notes take no more memory, on the way out and in."""
    monkeypatch.setattr(zettel.core.restore, "BATCH", 100)
    local = isinstance(url, Path)
    few, turns = (400, (2, 1, 2, 1, 2)) if local else (200, (2, 1, 2))
    peaks: dict[int, list[tuple[int, int]]] = {few: [], 2 * few: []}
    with Memory(url) as memory:
        for turn, count in enumerate(few * times for times in turns):  # the first fills what caches hold of any memory
            path, scope = tmp_path / f"{turn}.zettel", Scope(user=str(turn))
            boats = [{"id": str(n), "content": f"Boat {n % 5} left for port {n % 7}."} for n in range(count)]
            memory.add_many(boats, scope=scope)
            memory.flush()
            out = peak(partial(memory.export, path, "zettel", scope=scope))
            back = peak(partial(memory.import_transcript, path, scope=Scope(user=f"again {turn}")))
            memory.flush()
            if turn:
                peaks[count].append((out, back))
    for way in (0, 1):  # the least of each: what was garbage at a peak is chance
        assert min(one[way] for one in peaks[2 * few]) < 1.5 * min(one[way] for one in peaks[few]), peaks


def peak(work: Callable[[], Any]) -> int:
    """Most bytes of Python objects at once while it works."""
    tracemalloc.start()
    work()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most
