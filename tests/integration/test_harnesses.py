"""The provider classes for Agent Memory Benchmark and OmniMemEval.

Neither harness is on PyPI. If ``memory_bench`` is importable, its own base class is used; otherwise a stand-in with
the methods that its runner calls, as of its commit c0f91a0. OmniMemEval has no base class: its scripts, as of commit
45bf103, call ``add``, ``search`` and ``delete`` of a class that is made without arguments.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from zettel import Memory, Scope
from zettel.errors import InvalidInput
from zettel.integrations import omnimemeval

pytestmark = pytest.mark.integration

PROVIDER = "zettel.integrations.agent_memory_benchmark"


@dataclass
class StandInDocument:
    id: str
    content: str
    user_id: str | None = None
    messages: list[dict[str, Any]] | None = None
    timestamp: str | None = None
    context: str | None = None


class StandInProvider(ABC):
    @abstractmethod
    def ingest(self, documents: list[Any]) -> None: ...

    @abstractmethod
    def retrieve(
        self, query: str, k: int = 10, user_id: str | None = None, query_timestamp: str | None = None
    ) -> tuple[list[Any], dict[str, Any] | None]: ...

    async def async_ingest(self, documents: list[Any]) -> None:
        await asyncio.to_thread(self.ingest, documents)

    async def async_retrieve(
        self, query: str, k: int = 10, user_id: str | None = None, query_timestamp: str | None = None
    ) -> tuple[list[Any], dict[str, Any] | None]:
        return await asyncio.to_thread(self.retrieve, query, k, user_id, query_timestamp)


@pytest.fixture
def amb(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The adapter's module."""
    if find_spec("memory_bench") is None:
        contents: dict[str, dict[str, Any]] = {
            "memory_bench": {},
            "memory_bench.models": {"Document": StandInDocument},
            "memory_bench.memory": {},
            "memory_bench.memory.base": {"MemoryProvider": StandInProvider},
        }
        for name, content in contents.items():
            module = ModuleType(name)
            module.__dict__.update(content)
            monkeypatch.setitem(sys.modules, name, module)
    importlib.import_module("memory_bench.memory")  # AMB's registry imports the adapter, not the other way round
    yield importlib.import_module(PROVIDER)
    sys.modules.pop(PROVIDER, None)


def document(amb: Any, id: str, content: Any, **fields: Any) -> Any:
    text = content if isinstance(content, str) else json.dumps(content)
    return amb.Document(id=id, content=text, user_id=fields.pop("user", "conv-1"), **fields)


def test_the_provider_runs_as_the_runner_calls_it(amb: Any, tmp_path: Path) -> None:
    provider = amb.ZettelProvider()
    provider.prepare(tmp_path / "store", unit_ids={"conv-1", "conv-2"}, reset=True)
    talk = [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "I adopted a greyhound called Comet."},
        {"speaker": "Bob", "dia_id": "D1:2", "text": "Look at mine!", "blip_caption": "a photo of a tabby cat"},
    ]
    chat = "[March-15-2024 | Turn 1] User: How do I prune a fig?\n\nIt is old.\n\n[Turn 2] Assistant: In late winter."
    documents = [
        document(amb, "conv-1_s1", talk, timestamp="2023-05-08T13:56:00+00:00"),
        document(amb, "conv-1_s2", chat, timestamp="2024-03-15T00:00:00+00:00"),
        document(amb, "conv-1_s3", "The warranty of the kiln ends in 2031."),
        document(amb, "conv-2_s1", "", messages=[{"role": "user", "content": "My greyhound is Zip."}], user="conv-2"),
    ]  # fmt: skip
    asyncio.run(provider.async_ingest(documents))

    def found(question: str, k: int = 2, user: str = "conv-1") -> list[Any]:
        answer: list[Any]
        answer, raw = asyncio.run(provider.async_retrieve(question, k, user, "2024-04-01T00:00:00+00:00"))
        assert raw is None  # AMB's prompts contain a raw response instead of the documents
        assert len(answer) <= k
        return answer

    first = found("What is Ann's greyhound called?")[0]
    assert first.id == "conv-1_s1"
    assert first.content.splitlines()[:2] == ["2023-05-08", "Ann: I adopted a greyhound called Comet."]
    assert "Bob: Look at mine! [image: a photo of a tabby cat]" in found("Who has a tabby cat?")[0].content
    pruning = found("When should I prune a fig?")[0]
    assert (pruning.id, "assistant: In late winter." in pruning.content) == ("conv-1_s2", True)
    assert found("When does the warranty of the kiln end?")[0].id == "conv-1_s3"
    assert [hit.id for hit in found("greyhound", user="conv-2")] == ["conv-2_s1"]
    ids = [hit.id for hit in found("greyhound, fig and kiln", k=3)]
    assert sorted(ids) == ["conv-1_s1", "conv-1_s2", "conv-1_s3"]
    provider.cleanup()

    provider.prepare(tmp_path / "store", reset=False)
    assert found("What is Ann's greyhound called?")[0].id == "conv-1_s1"
    provider.prepare(tmp_path / "store", reset=True)
    assert found("What is Ann's greyhound called?") == []
    provider.cleanup()
    with pytest.raises(InvalidInput, match=r"call prepare\(store_dir\) first"):
        provider.retrieve("greyhound")


def test_the_client_answers_as_the_scripts_call_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "omni.db"
    monkeypatch.setenv("ZETTEL_STORE", str(store))
    client, user = omnimemeval.ZettelClient(), "locomo_exp_user_0_speaker_a_v1"
    time = "2023-05-08T13:56:00+00:00"
    session = [
        {"role": "user", "name": "Ann", "content": "Ann: I adopted a greyhound called Comet.", "chat_time": time},
        {"role": "assistant", "name": "Bob", "content": "Bob: I moved to Oslo.", "chat_time": time},
    ]
    client.add(session, user)
    client.add(session, user)  # a resumed run
    client.add([{"role": "assistant", "content": "Prune figs in late winter.", "chat_time": time}], "lme_user")
    with Memory(store) as memory:
        notes = memory.list(scope=Scope(user=user)).notes
        assert {(note.speaker, note.role, note.content) for note in notes} == {
            ("Ann", None, "I adopted a greyhound called Comet."), ("Bob", None, "I moved to Oslo."),
        }  # fmt: skip
        assert [note.role for note in memory.list(scope=Scope(user="lme_user")).notes] == ["assistant"]
    text = omnimemeval.ZettelClient().search("What is Ann's greyhound called?", user, 5)
    assert "greyhound called Comet" in text
    assert "2023" in text
    assert "figs" not in text
    client.delete(user)
    assert client.search(query="greyhound", user_id=user, top_k=5) == ""
    omnimemeval._memory(str(store)).close()
