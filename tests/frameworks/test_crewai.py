"""CrewAI's ``StorageBackend`` as its protocol says it, alone and under CrewAI's own ``Memory``."""

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


def filled(storage: ZettelStorage) -> ZettelStorage:
    storage.save([
        record("boat", "Ann's boat is the Blue Heron.", "/crew/ann", categories=["boats", "names"], importance=0.9),
        record("food", "Ann likes pizza.", "/crew/ann", categories=["food"], metadata={"meal": "noon", "n": 1},
               created_at=DAY + timedelta(days=1)),
        record("work", "Bob repairs violins.", "/crew/bob", categories=["work"], source="bob", private=True,
               created_at=DAY + timedelta(days=2)),
        record("other", "Blue herons nest in trees.", "/crews", created_at=DAY + timedelta(days=3)),
    ])  # fmt: skip
    return storage


def ids(found: list[tuple[MemoryRecord, float]]) -> list[str]:
    return [one.id for one, _ in found]


def asked(storage: ZettelStorage, words: str, **more: Any) -> list[str]:
    return ids(storage.search(storage.embedder([words])[0], **more))


def test_it_is_a_storage_backend(storage: ZettelStorage) -> None:
    assert isinstance(storage, StorageBackend)


def test_a_record_comes_back_as_it_was(storage: ZettelStorage, memory: Memory) -> None:
    told = record(
        "r", "Ann likes pizza.", "/crew/ann", categories=["food", "people"], importance=0.25, source="ann",
        private=True, metadata={"deep": {"list": [1, {"x": None}]}, "n": 1.5}, embedding=[0.5] * 3,
        last_accessed=datetime(2024, 6, 1, 12, 30, 1, 5),
    )  # fmt: skip
    storage.save([told])
    found = storage.get_record("r")
    assert found is not None
    assert found.model_dump() == told.model_dump()
    assert found.created_at.tzinfo is None  # CrewAI reckons with naive ones
    (note,) = memory.list().notes
    assert (note.content, note.occurred_at) == ("Ann likes pizza.", DAY.replace(tzinfo=timezone.utc))
    assert storage.get_record("s") is None


def test_an_update_is_a_version(storage: ZettelStorage, memory: Memory) -> None:
    storage.save([record("r", "Ann likes pizza.")])
    storage.update(record("r", "Ann likes rice.", "/crew", categories=["food"]))
    assert storage.get_record("r").content == "Ann likes rice."  # type: ignore[union-attr]
    (note,) = memory.list().notes
    assert [version.change["content"] for version in memory.history(note.id)] == ["Ann likes pizza.", "Ann likes rice."]
    assert storage.delete(record_ids=["r"]) == 1
    assert not memory.list().notes
    storage.save([record("r", "Ann likes soup.")])
    assert storage.get_record("r").content == "Ann likes soup."  # type: ignore[union-attr]


def test_words_are_searched_for(storage: ZettelStorage) -> None:
    filled(storage)
    assert asked(storage, "What does Ann eat?")[0] in ("food", "boat")
    assert asked(storage, "Who repairs violins?")[0] == "work"
    assert set(asked(storage, "Blue Heron", scope_prefix="/crew")) == {"boat", "food", "work"}
    assert set(asked(storage, "Blue Heron", scope_prefix="/crew/")) == {"boat", "food", "work"}
    assert asked(storage, "Blue Heron", scope_prefix="/crews") == ["other"]
    assert asked(storage, "Blue Heron", categories=["food"]) == ["food"]
    assert set(asked(storage, "Blue Heron", categories=["food", "work"])) == {"food", "work"}
    assert asked(storage, "Blue Heron", metadata_filter={"meal": "noon", "n": np.int64(1)}) == ["food"]
    assert len(asked(storage, "Blue Heron", limit=2)) == 2
    assert asked(storage, "Blue Heron", limit=0) == []
    found = storage.search(storage.embedder(["Bob repairs violins."])[0])
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert storage.search(storage.embedder(["Bob repairs violins."])[0], min_score=scores[0]) == found[:1]


def test_a_vector_whose_words_are_not_known(storage: ZettelStorage, memory: Memory) -> None:
    filled(storage)
    vector = ZettelStorage(memory).embedder(["Bob repairs violins."])[0]
    found = storage.search(vector)
    assert found[0][0].id == "work"
    assert found[0][1] == pytest.approx(1.0, abs=1e-5)
    assert ids(storage.search(vector, scope_prefix="/crew/ann", limit=1)) != ["work"]
    assert ids(storage.search(vector, min_score=0.99)) == ["work"]
    with pytest.raises(InvalidInput, match="the vector has 3 dimensions") as refused:
        storage.search([0.1, 0.2, 0.3])
    assert "\n" not in str(refused.value)


def test_deletes(storage: ZettelStorage, memory: Memory) -> None:
    memory.add("This is not CrewAI's.")
    filled(storage)
    assert storage.delete(scope_prefix="/crew", categories=["food"]) == 1
    assert storage.delete(older_than=DAY + timedelta(days=1)) == 1
    assert storage.delete(older_than=(DAY + timedelta(days=2)).replace(tzinfo=timezone.utc)) == 0
    assert storage.delete(record_ids=["work", "none"], metadata_filter={"meal": "noon"}) == 0
    assert storage.delete(record_ids=["work", "none"]) == 1
    storage.reset("/crew")
    assert [one.id for one in storage.list_records()] == ["other"]
    storage.reset()
    assert storage.count() == 0
    assert [note.content for note in memory.list().notes] == ["This is not CrewAI's."]


@pytest.mark.parametrize("put_away", ["archive", "quarantine"])
def test_delete_finds_what_was_put_away(storage: ZettelStorage, memory: Memory, put_away: str) -> None:
    filled(storage)
    for note in memory.list().notes:
        getattr(memory, put_away)(note.id)
    there = ["other", "work", "food", "boat"] if put_away == "archive" else []
    assert [one.id for one in storage.list_records()] == there
    assert sorted(asked(storage, "Blue Heron")) == sorted(there)
    storage.reset()
    assert not memory.list(archived=True).notes


def test_what_somebody_else_deletes_meanwhile_is_gone(storage: ZettelStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(storage)
    delete = AsyncMemory.delete

    async def twice(self: AsyncMemory, id: str, **more: Any) -> int:
        await delete(self, id, **more)
        return await delete(self, id, **more)

    monkeypatch.setattr(AsyncMemory, "delete", twice)
    storage.reset()
    assert storage.count() == 0


def test_an_id_is_one_record_whoever_deleted_it(storage: ZettelStorage, memory: Memory) -> None:
    storage.save([record("r", "Ann likes pizza.")])
    storage.delete(record_ids=["r"])
    for one in (storage, ZettelStorage(memory)):
        one.save([record("r", "Ann likes rice.")])
    memory.delete_scope()
    for one in (storage, ZettelStorage(memory)):
        one.save([record("r", "Ann likes soup.")])
    assert [one.content for one in storage.list_records()] == ["Ann likes soup."]


def test_lists(storage: ZettelStorage) -> None:
    filled(storage)
    assert [one.id for one in storage.list_records()] == ["other", "work", "food", "boat"]
    assert [one.id for one in storage.list_records("/crew", limit=2, offset=1)] == ["food", "boat"]
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


def test_what_is_no_json_is_refused(storage: ZettelStorage) -> None:
    with pytest.raises(InvalidInput, match=r"metadata\.when is a datetime") as refused:
        storage.save([record("a", "one"), record("b", "two", metadata={"when": DAY})])
    assert "\n" not in str(refused.value)
    assert storage.count() == 0


@pytest.mark.parametrize("content", ["Ann\0 likes pizza", "\0", "Pizza. " * 1000])
def test_what_no_note_can_say_is_kept_as_it_is(storage: ZettelStorage, content: str, small_content_limit: int) -> None:
    """CrewAI writes in the background, a batch at a time: what is refused is lost, with all the others."""
    storage.save([record("odd", content), record("plain", "Bob repairs violins.")])
    assert storage.get_record("odd").content == content  # type: ignore[union-attr]
    assert storage.count() == 2
    if "izza" in content:
        assert asked(storage, "Who likes pizza?", limit=1) == ["odd"]


def test_a_long_record_is_kept_once(storage: ZettelStorage, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    content = " ".join(f"Chapter {n} tells of the sea and of the ship number {n}." for n in range(200))
    told = record("book", content, "/crew", categories=["books"], metadata={"n": 1})
    storage.save([told])
    notes = memory.list().notes
    assert len(notes) > 5
    assert max(len(str(note.metadata)) for note in notes) < 1000
    storage.update(record("book", "short", "/crew"))
    assert storage.get_record("book").content == "short"  # type: ignore[union-attr]
    memory.revert(notes[0].id, 1)
    assert [one.content for one in storage.list_records()] == [content]
    assert [one.content for one, _ in storage.search([0.5] * len(storage.embedder(["sea"])[0]))] == [content]
    with monkeypatch.context() as before:  # as it was kept in earlier versions
        before.setattr("zettel.integrations.crewai.is_long", lambda text: False)
        storage.save([told])
    assert CONTENT in memory.list().notes[0].metadata["record"]  # type: ignore[operator]
    (found,) = storage.search(storage.embedder(["ship number 170"])[0], categories=["books"])
    assert found[0].model_dump() == told.model_dump()
    assert storage.delete(record_ids=["book"]) == 1
    assert not memory.list(archived=True).notes


@pytest.mark.anyio
async def test_awaited_with_either_memory(memory: Memory, tmp_path: Path) -> None:
    async with AsyncMemory(tmp_path / "other.db") as awaited:
        for storage in (ZettelStorage(memory), ZettelStorage(awaited)):
            await storage.asave([record("a", "Ann likes pizza."), record("b", "Bob repairs violins.")])
            words = (await asyncio.to_thread(ZettelStorage(memory).embedder, ["Bob repairs violins."]))[0]
            assert ids(await storage.asearch(words, limit=1)) == ["b"]
            assert await storage.adelete(record_ids=["a"]) == 1
        with pytest.raises(InvalidInput, match="has to be awaited"):
            storage.count()


def test_under_crewais_memory(storage: ZettelStorage, agent: AgentServer) -> None:
    told = crewai.Memory(storage=storage, embedder=storage.embedder, llm="openai/gpt-4o-mini")
    more = {"categories": ["people"], "importance": 0.5, "metadata": {}}
    told.remember("Ann is allergic to walnuts.", scope="/crew", **more)
    told.remember("The harbour closes at ten.", scope="/crew", **more)
    told.drain_writes()
    matches = told.recall("What is Ann allergic to?", depth="shallow", limit=1)
    assert [match.record.content for match in matches] == ["Ann is allergic to walnuts."]
    assert told.list_scopes("/") == ["/crew"]
    assert told.info("/crew").record_count == 2
    assert told.forget(scope="/crew") == 2
    told.close()


def test_example(run_example: Callable[..., str]) -> None:
    printed = run_example(CHECKOUT / "examples" / "agents_crewai.py").splitlines()
    assert printed[:3] == [  # then CrewAI may offer to show its traces
        "recalled: Ann is allergic to walnuts.",
        "stored as notes: ['Ann is allergic to walnuts.', 'The harbour closes at ten.']",
        "answered: I have no tools.",
    ]
