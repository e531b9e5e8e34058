"""Estimates of model calls, tokens and cost before an import."""

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
    with ModelServer(reply) as running:
        yield running


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    path = tmp_path / "chat.txt"
    path.write_text("\n".join([*LINES, "[2024-05-01 10:00] Ben: ok, thanks!"]), encoding="utf-8")
    return path


def estimate(path: Path, url: Any = ":memory:", **options: Any) -> Estimate:
    with Memory(url, llm="openai/gpt-4o-mini", run_llm_jobs=False, **options) as memory:
        return memory.estimate_import(path)


def test_an_estimate_skips_filler_and_prices_tokens(chat: Path) -> None:
    result = estimate(chat)
    assert (result.model, result.turns) == ("openai/gpt-4o-mini", len(LINES))
    assert result.calls < 8
    assert result.tokens == result.prompt_tokens + result.completion_tokens
    assert result.usd == LiteLLM("openai/gpt-4o-mini").price(result.prompt_tokens, result.completion_tokens)


def test_lean_annotation_is_cheaper_and_recorded_annotation_costs_only_links(chat: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text("")
    lean = estimate(chat, annotator=LiteLLMAnnotator("lean"))
    recorded = estimate(chat, annotator=RecordedAnnotator(tmp_path / "notes.jsonl"))
    assert 0 < lean.calls < estimate(chat).calls
    assert 2 * lean.tokens < estimate(chat).tokens
    assert 0 < recorded.calls < estimate(chat).calls


def test_an_estimate_counts_waiting_jobs_but_not_known_events(chat: Path, tmp_path: Path) -> None:
    url = tmp_path / "zettel.db"
    with Memory(url, llm="openai/gpt-4o-mini", run_llm_jobs=False) as memory:
        memory.add("The cello stands in the hall.")
        assert memory.estimate_import(chat).turns == len(LINES) + 1
        assert memory.stats()["events"] == 1
        memory.import_transcript(chat)
        assert memory.estimate_import(chat).turns == len(LINES) + 1  # no event is new, all jobs wait
    with Memory(url) as memory:
        memory.delete(source=str(chat))
    assert estimate(chat, url).turns == 1  # deleted events are not imported again


def test_model_jobs_wait_for_a_memory_that_runs_them(chat: Path, tmp_path: Path, server: ModelServer) -> None:
    model = LiteLLM("openai/scripted", api_base=server.url, api_key="none")
    with Memory(tmp_path / "zettel.db", llm=model, run_llm_jobs=False) as memory:
        memory.import_transcript(chat)
        memory.flush()  # makes near links; jobs that need the model remain
        assert {job.kind.value for job in memory.jobs()} == {"annotate"}
    assert server.asked == 0
    with Memory(tmp_path / "zettel.db", llm=model) as memory:
        memory.flush()
        assert memory.jobs() == []
        assert memory.estimate_import(chat).calls == 0
    assert server.asked > 0


def test_an_estimate_requires_a_model(chat: Path, tmp_path: Path) -> None:
    with Memory(tmp_path / "zettel.db") as memory, pytest.raises(InvalidInput, match="llm="):
        memory.estimate_import(chat)
    with Memory(tmp_path / "zettel.db") as memory:
        memory.import_transcript(chat)
        memory.export(tmp_path / "all.zettel", format="zettel")
    with pytest.raises(InvalidInput, match="whole memory"):
        estimate(tmp_path / "all.zettel")
