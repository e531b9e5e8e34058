"""CrewAI's ``StorageBackend`` protocol: called directly and by CrewAI's own ``Memory``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("crewai")

import crewai
from crewai.memory.storage.backend import StorageBackend
from crewai.memory.types import MemoryRecord

from tests.agent_server import AgentServer
from tests.frameworks.known import CHECKOUT
from zettel import AsyncMemory, Memory
from zettel.errors import InvalidInput
from zettel.integrations.crewai import CONTENT, ZettelStorage

DAY = datetime(2024, 5, 1)


@pytest.fixture
def storage(memory: Memory) -> ZettelStorage:
    return ZettelStorage(memory)


def record(id: str, content: str, scope: str = "/", **more: Any) -> MemoryRecord:
    return MemoryRecord(id=id, content=content, scope=scope, **({"created_at": DAY} | more))


def fill(storage: ZettelStorage) -> ZettelStorage:
    storage.save([
        record("boat", "Ann's boat is the Blue Heron.", "/crew/ann", categories=["boats", "names"], importance=0.9),
        record("food", "Ann likes pizza.", "/crew/ann", categories=["food"], metadata={"meal": "noon", "n": 1},
               created_at=DAY + timedelta(days=1)),
        record("work", "Bob repairs violins.", "/crew/bob", categories=["work"], source="bob", private=True,
               created_at=DAY + timedelta(days=2)),
        record("other", "Blue herons nest in trees.", "/crews", created_at=DAY + timedelta(days=3)),
    ])  # fmt: skip
    return storage


def ids(results: list[tuple[MemoryRecord, float]]) -> list[str]:
    return [record.id for record, _ in results]


def search_ids(storage: ZettelStorage, text: str, **more: Any) -> list[str]:
    return ids(storage.search(storage.embedder([text])[0], **more))


def test_the_storage_implements_the_protocol(storage: ZettelStorage) -> None:
    assert isinstance(storage, StorageBackend)


def test_a_record_is_returned_unchanged(storage: ZettelStorage, memory: Memory) -> None:
    original = record(
        "r", "Ann likes pizza.", "/crew/ann", categories=["food", "people"], importance=0.25, source="ann",
        private=True, metadata={"deep": {"list": [1, {"x": None}]}, "n": 1.5}, embedding=[0.5] * 3,
        last_accessed=datetime(2024, 6, 1, 12, 30, 1, 5),
    )  # fmt: skip
    storage.save([original])
    loaded = storage.get_record("r")
    assert loaded is not None
    assert loaded.model_dump() == original.model_dump()
    assert loaded.created_at.tzinfo is None  # CrewAI uses naive datetimes
    (note,) = memory.list().notes
    assert (note.content, note.occurred_at) == ("Ann likes pizza.", DAY.replace(tzinfo=timezone.utc))
    assert storage.get_record("s") is None


def test_an_update_creates_a_version(storage: ZettelStorage, memory: Memory) -> None:
    storage.save([record("r", "Ann likes pizza.")])
    storage.update(record("r", "Ann likes rice.", "/crew", categories=["food"]))
    assert storage.get_record("r").content == "Ann likes rice."  # type: ignore[union-attr]
    (note,) = memory.list().notes
    assert [version.change["content"] for version in memory.history(note.id)] == ["Ann likes pizza.", "Ann likes rice."]
    assert storage.delete(record_ids=["r"]) == 1
    assert not memory.list().notes
    storage.save([record("r", "Ann likes soup.")])
    assert storage.get_record("r").content == "Ann likes soup."  # type: ignore[union-attr]


def test_search_ranks_and_filters_records(storage: ZettelStorage) -> None:
    fill(storage)
    assert search_ids(storage, "What does Ann eat?")[0] in ("food", "boat")
    assert search_ids(storage, "Who repairs violins?")[0] == "work"
    assert set(search_ids(storage, "Blue Heron", scope_prefix="/crew")) == {"boat", "food", "work"}
    assert set(search_ids(storage, "Blue Heron", scope_prefix="/crew/")) == {"boat", "food", "work"}
    assert search_ids(storage, "Blue Heron", scope_prefix="/crews") == ["other"]
    assert search_ids(storage, "Blue Heron", categories=["food"]) == ["food"]
    assert set(search_ids(storage, "Blue Heron", categories=["food", "work"])) == {"food", "work"}
    assert search_ids(storage, "Blue Heron", metadata_filter={"meal": "noon", "n": np.int64(1)}) == ["food"]
    assert len(search_ids(storage, "Blue Heron", limit=2)) == 2
    assert search_ids(storage, "Blue Heron", limit=0) == []
    results = storage.search(storage.embedder(["Bob repairs violins."])[0])
    scores = [score for _, score in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert storage.search(storage.embedder(["Bob repairs violins."])[0], min_score=scores[0]) == results[:1]


def test_search_accepts_a_vector_without_its_text(storage: ZettelStorage, memory: Memory) -> None:
    fill(storage)
    vector = ZettelStorage(memory).embedder(["Bob repairs violins."])[0]
    results = storage.search(vector)
    assert results[0][0].id == "work"
    assert results[0][1] == pytest.approx(1.0, abs=1e-5)
    assert ids(storage.search(vector, scope_prefix="/crew/ann", limit=1)) != ["work"]
    assert ids(storage.search(vector, min_score=0.99)) == ["work"]
    with pytest.raises(InvalidInput, match="the vector has 3 dimensions") as error_info:
        storage.search([0.1, 0.2, 0.3])
    assert "\n" not in str(error_info.value)


def test_delete_filters_records(storage: ZettelStorage, memory: Memory) -> None:
    memory.add("This is not CrewAI's.")
    fill(storage)
    assert storage.delete(scope_prefix="/crew", categories=["food"]) == 1
    assert storage.delete(older_than=DAY + timedelta(days=1)) == 1
    assert storage.delete(older_than=(DAY + timedelta(days=2)).replace(tzinfo=timezone.utc)) == 0
    assert storage.delete(record_ids=["work", "none"], metadata_filter={"meal": "noon"}) == 0
    assert storage.delete(record_ids=["work", "none"]) == 1
    storage.reset("/crew")
    assert [stored_record.id for stored_record in storage.list_records()] == ["other"]
    storage.reset()
    assert storage.count() == 0
    assert [note.content for note in memory.list().notes] == ["This is not CrewAI's."]


@pytest.mark.parametrize("method", ["archive", "quarantine"])
def test_reset_deletes_archived_and_quarantined_records(storage: ZettelStorage, memory: Memory, method: str) -> None:
    fill(storage)
    for note in memory.list().notes:
        getattr(memory, method)(note.id)
    expected = ["other", "work", "food", "boat"] if method == "archive" else []
    assert [stored_record.id for stored_record in storage.list_records()] == expected
    assert sorted(search_ids(storage, "Blue Heron")) == sorted(expected)
    storage.reset()
    assert not memory.list(archived=True).notes


def test_reset_tolerates_concurrent_deletes(storage: ZettelStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(storage)
    delete = AsyncMemory.delete

    async def twice(self: AsyncMemory, id: str, **more: Any) -> int:
        await delete(self, id, **more)
        return await delete(self, id, **more)

    monkeypatch.setattr(AsyncMemory, "delete", twice)
    storage.reset()
    assert storage.count() == 0


def test_an_id_names_one_record_after_deletes(storage: ZettelStorage, memory: Memory) -> None:
    storage.save([record("r", "Ann likes pizza.")])
    storage.delete(record_ids=["r"])
    for backend in (storage, ZettelStorage(memory)):
        backend.save([record("r", "Ann likes rice.")])
    memory.delete_scope()
    for backend in (storage, ZettelStorage(memory)):
        backend.save([record("r", "Ann likes soup.")])
    assert [backend.content for backend in storage.list_records()] == ["Ann likes soup."]


def test_records_scopes_and_categories_are_listed(storage: ZettelStorage) -> None:
    fill(storage)
    assert [stored_record.id for stored_record in storage.list_records()] == ["other", "work", "food", "boat"]
    assert [stored_record.id for stored_record in storage.list_records("/crew", limit=2, offset=1)] == ["food", "boat"]
    assert storage.list_scopes() == ["/crew", "/crews"]
    assert storage.list_scopes("/crew") == ["/crew/ann", "/crew/bob"]
    assert storage.list_scopes("/crew/ann") == []
    assert storage.list_categories() == {"boats": 1, "food": 1, "names": 1, "work": 1}
    assert storage.list_categories("/crew/bob") == {"work": 1}
    assert (storage.count(), storage.count("/crew"), storage.count("/cre")) == (4, 3, 0)
    info = storage.get_scope_info("/crew/")
    assert (info.path, info.record_count, info.categories) == ("/crew", 3, ["boats", "food", "names", "work"])
    assert (info.oldest_record, info.newest_record) == (DAY, DAY + timedelta(days=2))
    assert info.child_scopes == ["/crew/ann", "/crew/bob"]
    assert storage.get_scope_info("/none").record_count == 0
    with pytest.raises(InvalidInput, match="limit=-1"):
        storage.list_records(limit=-1)


def test_metadata_that_is_not_json_is_refused(storage: ZettelStorage) -> None:
    with pytest.raises(InvalidInput, match=r"metadata\.when is a datetime") as error_info:
        storage.save([record("a", "one"), record("b", "two", metadata={"when": DAY})])
    assert "\n" not in str(error_info.value)
    assert storage.count() == 0


@pytest.mark.parametrize("content", ["Ann\0 likes pizza", "\0", "Pizza. " * 1000])
def test_invalid_text_is_stored_unchanged(storage: ZettelStorage, content: str, small_content_limit: int) -> None:
    """CrewAI writes batches in the background: an error would lose the whole batch."""
    storage.save([record("odd", content), record("plain", "Bob repairs violins.")])
    assert storage.get_record("odd").content == content  # type: ignore[union-attr]
    assert storage.count() == 2
    if "izza" in content:
        assert search_ids(storage, "Who likes pizza?", limit=1) == ["odd"]


def test_a_long_record_is_stored_once(storage: ZettelStorage, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    content = " ".join(f"Chapter {n} tells of the sea and of the ship number {n}." for n in range(200))
    original = record("book", content, "/crew", categories=["books"], metadata={"n": 1})
    storage.save([original])
    notes = memory.list().notes
    assert len(notes) > 5
    assert max(len(str(note.metadata)) for note in notes) < 1000
    storage.update(record("book", "short", "/crew"))
    assert storage.get_record("book").content == "short"  # type: ignore[union-attr]
    memory.revert(notes[0].id, 1)
    assert [stored_record.content for stored_record in storage.list_records()] == [content]
    assert [
        stored_record.content for stored_record, _ in storage.search([0.5] * len(storage.embedder(["sea"])[0]))
    ] == [content]
    with monkeypatch.context() as before:  # the format of earlier versions
        before.setattr("zettel.integrations.crewai.is_long", lambda text: False)
        storage.save([original])
    assert CONTENT in memory.list().notes[0].metadata["record"]  # type: ignore[operator]
    (result,) = storage.search(storage.embedder(["ship number 170"])[0], categories=["books"])
    assert result[0].model_dump() == original.model_dump()
    assert storage.delete(record_ids=["book"]) == 1
    assert not memory.list(archived=True).notes


@pytest.mark.anyio
async def test_async_methods_work_with_both_memory_classes(memory: Memory, tmp_path: Path) -> None:
    async with AsyncMemory(tmp_path / "other.db") as async_memory:
        for storage in (ZettelStorage(memory), ZettelStorage(async_memory)):
            await storage.asave([record("a", "Ann likes pizza."), record("b", "Bob repairs violins.")])
            words = (await asyncio.to_thread(ZettelStorage(memory).embedder, ["Bob repairs violins."]))[0]
            assert ids(await storage.asearch(words, limit=1)) == ["b"]
            assert await storage.adelete(record_ids=["a"]) == 1
        with pytest.raises(InvalidInput, match="has to be awaited"):
            storage.count()


def test_crewai_memory_uses_the_storage(storage: ZettelStorage, agent: AgentServer) -> None:
    crew_memory = crewai.Memory(storage=storage, embedder=storage.embedder, llm="openai/gpt-4o-mini")
    fields = {"categories": ["people"], "importance": 0.5, "metadata": {}}
    crew_memory.remember("Ann is allergic to walnuts.", scope="/crew", **fields)
    crew_memory.remember("The harbour closes at ten.", scope="/crew", **fields)
    crew_memory.drain_writes()
    matches = crew_memory.recall("What is Ann allergic to?", depth="shallow", limit=1)
    assert [match.record.content for match in matches] == ["Ann is allergic to walnuts."]
    assert crew_memory.list_scopes("/") == ["/crew"]
    assert crew_memory.info("/crew").record_count == 2
    assert crew_memory.forget(scope="/crew") == 2
    crew_memory.close()


def test_the_example_prints_its_answers(run_example: Callable[..., str]) -> None:
    printed = run_example(CHECKOUT / "examples" / "agents_crewai.py").splitlines()
    assert printed[:3] == [  # CrewAI may print more afterwards
        "recalled: Ann is allergic to walnuts.",
        "stored as notes: ['Ann is allergic to walnuts.', 'The harbour closes at ten.']",
        "answered: I have no tools.",
    ]
