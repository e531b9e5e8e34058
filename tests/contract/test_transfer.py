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
from tests.contract.transfer_helpers import (
    BOB,
    PAYLOAD,
    Remote,
    leave_jobs,
    live,
    records,
    scope_contents,
    search_scores,
    store_of,
)
from zettel import Event, Memory, Scope
from zettel.errors import InvalidInput, JobFailed, StoreBusy
from zettel.jobs import reembed_job
from zettel.model import JobKind, JobState
from zettel.ports import NoteRecord


class SavedMemory(NamedTuple):
    """An exported memory with history: its file, a file with pending jobs, and its contents."""

    file: Path
    with_jobs: Path
    contents: dict[Scope, dict[str, Any]]
    counts: dict[Scope, dict[str, Any]]
    answers: list[tuple[dict[str, Any], list[list[tuple[str, float]]]]]


@pytest.fixture(scope="module", params=EVERY_STORE)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SavedMemory:
    """Return one memory with history per store."""
    folder = tmp_path_factory.mktemp("saved")
    (folder / "source").mkdir()
    with Memory(BACKENDS[request.param](folder / "source")) as memory:
        live(memory)
        memory.export(folder / "all.zettel", "zettel", all_scopes=True)
        times = [step.recorded_at for note in memory.list().notes for step in memory.history(note.id)]
        searches: list[dict[str, Any]] = [
            {}, {"as_of": "2024-02-01"}, {"known_at": min(times)}, {"known_at": max(times)}, {"scope": BOB},
        ]  # fmt: skip
        answers = [(search, search_scores(memory, **search)) for search in searches]
        leave_jobs(memory)
        memory.export(folder / "jobs.zettel", "zettel", all_scopes=True)
        by_scope = {scope: scope_contents(memory, scope) for scope in memory.scopes()}
        counts = {scope: memory.stats(scope=scope) for scope in by_scope}
    return SavedMemory(folder / "all.zettel", folder / "jobs.zettel", by_scope, counts, answers)


@pytest.fixture
def saved_file(saved: SavedMemory) -> Path:
    """Return the file with the whole memory."""
    return saved.file


@pytest.mark.parametrize("target", EVERY_STORE)
class TestRoundTrip:
    def test_everything_is_preserved(self, saved: SavedMemory, target: str, tmp_path: Path) -> None:
        events = sum(len(scope_data["dump"]) for scope_data in saved.contents.values())
        with Memory(BACKENDS[target](tmp_path)) as memory:
            report = memory.import_transcript(saved.with_jobs)
            assert (report.format, report.added, report.rejected_records) == ("zettel", events, [])
            assert set(memory.scopes()) == {Scope(), BOB} == set(saved.contents)
            for scope, expected in saved.contents.items():
                assert scope_contents(memory, scope) == expected
                imported, expected_counts = memory.stats(scope=scope), saved.counts[scope]
                assert imported["notes"] == expected_counts["notes"]
                assert imported == expected_counts or imported["store"] != expected_counts["store"]
            assert {job.state for job in memory.jobs()} == {JobState.FAILED, JobState.QUEUED}
            assert memory.check() == []
            memory.export(tmp_path / "again.zettel", "zettel", all_scopes=True)
            assert records(tmp_path / "again.zettel") == records(saved.with_jobs)

    def test_answers_are_the_same(self, saved: SavedMemory, target: str, tmp_path: Path) -> None:
        # Servers return vectors in half precision.
        with Memory(BACKENDS[target](tmp_path)) as memory:
            memory.import_transcript(saved.file)
            for search, expected in saved.answers:
                for first, second in zip(expected, search_scores(memory, **search), strict=True):
                    assert [id for id, _ in first] == [id for id, _ in second]
                    assert [score for _, score in first] == pytest.approx([score for _, score in second], abs=5e-4)


@pytest.fixture
def copy(saved_file: Path, url: Any) -> Iterator[Memory]:
    with Memory(url) as memory:
        memory.import_transcript(saved_file)
        yield memory


class TestImportedMemory:
    """An imported memory works like any other."""

    def test_a_repeated_import_adds_and_revives_nothing(self, copy: Memory) -> None:
        outcome = copy._bridge.call(partial(copy._bridge.inner.add_many_report, [_event(result) for result in LIFE]))
        assert [result.status for result in outcome] == ["existing"] * len(LIFE)
        (deleted,) = copy._bridge.call(
            partial(
                copy._bridge.inner.add_many_report,
                [_event({"id": "24", "content": "To be deleted.", "session": "c"})],
            )
        )
        assert deleted.status == "deleted"

    def test_imported_notes_can_be_reverted_and_deleted(self, copy: Memory) -> None:
        ids = {event.external_id: notes[0].id for event, notes in copy.dump() if notes}
        assert copy.revert(ids["1"], 1).content == "I live in Bergen, above a bakery."
        assert copy.delete(ids["3"]) == 1
        added = copy.add("Something new.")
        copy.flush()
        remaining = [note.id for note in copy.list().notes]
        assert ids["3"] not in remaining
        assert (remaining[-1], copy.history(added)[0].seq) == (added, max(note.seq for note in copy.list().notes))
        assert copy.check() == []

    def test_payloads_are_exact(self, copy: Memory) -> None:
        (event,) = (event for event, _ in copy.dump() if event.external_id == "23")
        assert event.payload == PAYLOAD

    def test_an_imported_memory_survives_reopening(self, saved_file: Path, url: Any) -> None:
        with Memory(url) as memory:
            memory.import_transcript(saved_file)
            before = scope_contents(memory)
        with Memory(url) as memory:
            assert scope_contents(memory) == before

    def test_nothing_is_embedded_again(self, saved_file: Path, url: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        with Memory(url) as memory:
            monkeypatch.setattr(type(memory._bridge.inner._backend.memory.engine.vectors.embedder), "embed", _never)
            memory.import_transcript(saved_file)
            assert memory.stats(scope=Scope())["notes"] == len({n.id for _, notes in memory.dump() for n in notes})


async def _never(self: Any, texts: Sequence[str]) -> Any:
    raise AssertionError(f"asked to embed {texts}")


def _event(fields: dict[str, Any]) -> Any:
    return Event.model_validate(fields)


class TestAnotherEmbedder:
    def test_a_local_embedder_embeds_at_once(self, tmp_path: Path, url: Any) -> None:
        with Memory(tmp_path / "far.db", embedder=Remote()) as memory:
            live(memory)
            memory.export(tmp_path / "far.zettel", "zettel")
        with Memory(url) as memory:
            memory.import_transcript(tmp_path / "far.zettel")
            assert memory.check() == []
            assert memory.search("Where does Ann live?")[0].note.content

    def test_a_remote_embedder_embeds_by_jobs(self, exported: Path, url: Any) -> None:
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

    def test_the_same_remote_embedder_keeps_its_vectors(self, tmp_path: Path, url: Any) -> None:
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
    def test_missing_vectors_of_an_interrupted_reembed_are_computed(
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


class TestTarget:
    def test_a_scope_can_be_imported_under_another_name(self, exported: Path, url: Any) -> None:
        with Memory(url) as memory:
            memory.add("Bob was here first.", scope=BOB)
            memory.import_transcript(exported, scope=Scope(user="eve"))
            memory.import_transcript(exported, scope=Scope(user="eva"))  # a copy within one store
            memory.flush()
            assert set(memory.scopes()) == {BOB, Scope(user="eve"), Scope(user="eva")}
            assert scope_contents(memory, Scope(user="eve")) == scope_contents(memory, Scope(user="eva"))
            assert memory.check() == []

    def test_an_existing_copy_adds_nothing(self, exported: Path, url: Any) -> None:
        with Memory(url) as memory:
            first, second = memory.import_transcript(exported), memory.import_transcript(exported, "zettel")
            assert (first.added, first.existing) == (second.existing, second.added) == (first.records, 0)

    def test_a_scope_that_is_not_empty_is_refused(self, exported: Path, url: Any) -> None:
        with Memory(url) as memory:
            memory.add("Ann was here first.")
            memory.flush()
            before = scope_contents(memory)
            with pytest.raises(InvalidInput, match=r"the default scope is not empty: name an empty scope .*delete"):
                memory.import_transcript(exported)
            assert scope_contents(memory) == before
            memory.delete_scope()
            assert memory.import_transcript(exported).added > 1

    def test_an_older_export_of_a_changed_scope_is_refused(self, exported: Path, url: Any) -> None:
        with Memory(url) as memory:
            memory.import_transcript(exported)
            memory.add("One thing more.")
            with pytest.raises(InvalidInput, match="as it was at another time"):
                memory.import_transcript(exported)

    def test_several_scopes_cannot_share_one_name(self, saved_file: Path, url: Any) -> None:
        with Memory(url) as memory, pytest.raises(InvalidInput, match="contains 2 scopes"):
            memory.import_transcript(saved_file, scope=BOB)

    def test_an_occupied_scope_refuses_the_whole_file(self, saved_file: Path, url: Any) -> None:
        with Memory(url) as memory:
            memory.add("Bob was here first.", scope=BOB)
            with pytest.raises(InvalidInput, match="user='bob' is not empty"):
                memory.import_transcript(saved_file)
            assert memory.scopes() == [BOB]


def test_an_export_is_one_state(url: Any, tmp_path: Path) -> None:
    """An export contains each concurrent write completely or not at all."""
    with Memory(url) as memory:
        memory.add_many({"id": str(number), "content": f"Boat {number} left."} for number in range(600))
        memory.flush()
        before = {note.id for note in memory.list(limit=1000).notes}
        store = store_of(memory)

        async def disturbed() -> list[Any]:
            pages: list[Any] = []
            async for page in store.whole(Scope()):
                if not pages:
                    await memory._bridge.inner.add("One boat more.")
                    await memory._bridge.inner.delete(min(before))
                pages += page
            return pages

        try:
            exported_records: list[Any] = memory._bridge.call(disturbed)
        except StoreBusy:  # the export reports that it could not read one state
            return
        assert {record.base.id for record in exported_records if isinstance(record, NoteRecord)} == before


@pytest.mark.timeout(300)
@pytest.mark.parametrize("url", PERSISTENT[:2], indirect=True)  # both server releases read the same way
@pytest.mark.soak_only("neo4j")
@pytest.mark.slow
def test_memory_use_is_constant(tmp_path: Path, url: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exports and imports of twice the notes take no more memory."""
    monkeypatch.setattr(zettel.core.restore, "BATCH", 100)
    local = isinstance(url, Path)
    few, turns = (400, (2, 1, 2, 1, 2)) if local else (200, (2, 1, 2))
    peaks: dict[int, list[tuple[int, int]]] = {few: [], 2 * few: []}
    with Memory(url) as memory:
        for turn, count in enumerate(few * times for times in turns):  # the first run fills caches
            path, scope = tmp_path / f"{turn}.zettel", Scope(user=str(turn))
            boats = [{"id": str(n), "content": f"Boat {n % 5} left for port {n % 7}."} for n in range(count)]
            memory.add_many(boats, scope=scope)
            memory.flush()
            out = peak(partial(memory.export, path, "zettel", scope=scope))
            back = peak(partial(memory.import_transcript, path, scope=Scope(user=f"again {turn}")))
            memory.flush()
            if turn:
                peaks[count].append((out, back))
    for way in (0, 1):  # minima, because garbage at a peak is random
        assert min(pair[way] for pair in peaks[2 * few]) < 1.5 * min(pair[way] for pair in peaks[few]), peaks


def peak(work: Callable[[], Any]) -> int:
    """Return the peak memory of Python objects during a call."""
    tracemalloc.start()
    work()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most
