"""What a model will cost is told before it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.model_server import ModelServer
from tests.scripted_model import reply
from zettel import LiteLLM, LiteLLMAnnotator, Memory, RecordedAnnotator
from zettel.errors import InvalidInput
from zettel.model import Estimate

pytestmark = pytest.mark.integration

LINES = [f"[2024-05-01 09:{n:02}] Ann: The {n}th lantern hangs by the harbour gate." for n in range(40)]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(reply) as started:
        yield started


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    path = tmp_path / "chat.txt"
    path.write_text("\n".join([*LINES, "[2024-05-01 10:00] Ben: ok, thanks!"]), encoding="utf-8")
    return path


def told(path: Path, url: Any = ":memory:", **options: Any) -> Estimate:
    with Memory(url, llm="openai/gpt-4o-mini", run_llm_jobs=False, **options) as memory:
        return memory.estimate_import(path)


def test_filler_is_not_counted_and_the_price_is_that_of_the_tokens(chat: Path) -> None:
    found = told(chat)
    assert (found.model, found.turns) == ("openai/gpt-4o-mini", len(LINES))
    assert found.calls < 8
    assert found.tokens == found.prompt_tokens + found.completion_tokens
    assert found.usd == LiteLLM("openai/gpt-4o-mini").price(found.prompt_tokens, found.completion_tokens)


def test_lean_is_cheaper_and_what_was_recorded_costs_only_links(chat: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text("")
    lean = told(chat, annotator=LiteLLMAnnotator("lean"))
    recorded = told(chat, annotator=RecordedAnnotator(tmp_path / "notes.jsonl"))
    assert 0 < lean.calls < told(chat).calls
    assert 2 * lean.tokens < told(chat).tokens
    assert 0 < recorded.calls < told(chat).calls


def test_what_is_known_is_not_counted_and_what_waits_is(chat: Path, tmp_path: Path) -> None:
    url = tmp_path / "zettel.db"
    with Memory(url, llm="openai/gpt-4o-mini", run_llm_jobs=False) as memory:
        memory.add("The cello stands in the hall.")
        assert memory.estimate_import(chat).turns == len(LINES) + 1
        assert memory.stats()["events"] == 1
        memory.import_transcript(chat)
        assert memory.estimate_import(chat).turns == len(LINES) + 1  # none is new, all wait
    with Memory(url) as memory:
        memory.delete(source=str(chat))
    assert told(chat, url).turns == 1  # what was deleted comes not again


def test_asking_nobody_leaves_the_work_to_another(chat: Path, tmp_path: Path, server: ModelServer) -> None:
    model = LiteLLM("openai/scripted", api_base=server.url, api_key="none")
    with Memory(tmp_path / "zettel.db", llm=model, run_llm_jobs=False) as memory:
        memory.import_transcript(chat)
        memory.flush()  # near links are made; what needs the model is not waited for
        assert {job.kind.value for job in memory.jobs()} == {"annotate"}
    assert server.asked == 0
    with Memory(tmp_path / "zettel.db", llm=model) as memory:
        memory.flush()
        assert memory.jobs() == []
        assert memory.estimate_import(chat).calls == 0
    assert server.asked > 0


def test_without_a_model_there_is_nothing_to_tell(chat: Path, tmp_path: Path) -> None:
    with Memory(tmp_path / "zettel.db") as memory, pytest.raises(InvalidInput, match="llm="):
        memory.estimate_import(chat)
    with Memory(tmp_path / "zettel.db") as memory:
        memory.import_transcript(chat)
        memory.export(tmp_path / "all.zettel", format="zettel")
    with pytest.raises(InvalidInput, match="whole memory"):
        told(tmp_path / "all.zettel")
