"""A missing extra raises an error of one line that names the ``pip install`` command."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from zettel import Memory
from zettel.errors import MissingExtra
from zettel.scoring.network_fit import Judged, fit_calibration


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("langgraph", "langgraph.store.base", "langgraph"),
        ("langgraph", "langchain.agents.middleware", "langgraph"),
        ("llamaindex", "llama_index.core", "llamaindex"),
        ("crewai", "crewai", "crewai"),
        ("autogen", "autogen_core", "autogen"),
        ("openai_agents", "agents", "openai-agents"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
        ("adk", "google.adk.memory.base_memory_service", "adk"),
        ("strands", "strands.memory", "strands"),
        ("agent_framework", "agent_framework", "agent-framework"),
        ("agno", "agno.learn.stores.protocol", "agno"),
        ("anthropic_memory", "anthropic.lib.tools", "anthropic"),
    ],
)
def test_adapters_name_a_missing_extra(module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"zettel.integrations.{module}", raising=False)
    with pytest.raises(MissingExtra, match=re.escape(f'pip install "zettel-graph[{extra}]"')) as refused:
        importlib.import_module(f"zettel.integrations.{module}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("use", "package", "extra"),
    [
        (lambda: Memory(":memory:", llm="openai/gpt-4o-mini"), "litellm", "llm"),
        (lambda: Memory(":memory:", embedder="openai/text-embedding-3-small"), "litellm", "llm"),
        (lambda: Memory("neo4j://localhost:7687"), "neo4j", "neo4j"),
        (lambda: fit_calibration([Judged(np.ones(1, np.float32), is_answered, "chat") for is_answered in (True, False)],
                                 ["one"]), "torch", "torch"),
    ],
)
def test_a_missing_package_names_the_extra(
    use: Callable[[], object], package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=re.escape(f'pip install "zettel-graph[{extra}]"')) as refused:
        use()
    assert "\n" not in str(refused.value)


def test_the_conformance_suite_requires_no_extra() -> None:
    """It imports without scipy, torch, litellm and neo4j."""
    program = (
        "import sys; sys.modules.update(dict.fromkeys(('scipy', 'torch', 'litellm', 'neo4j')));"
        "import zettel.testing.store_conformance"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
