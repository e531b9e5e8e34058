"""An adapter whose framework is not installed says in one line how to install it."""

from __future__ import annotations

import importlib
import re
import sys

import pytest

from zettel.errors import MissingExtra


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("langgraph", "langgraph.store.base", "langgraph"),
        ("llamaindex", "llama_index.core", "llamaindex"),
        ("crewai", "crewai", "crewai"),
        ("autogen", "autogen_core", "autogen"),
        ("openai_agents", "agents", "openai-agents"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
        ("adk", "google.adk.memory.base_memory_service", "adk"),
    ],
)
def test_it_says_how_to_install_it(module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"zettel.integrations.{module}", raising=False)
    with pytest.raises(MissingExtra, match=re.escape(f'pip install "zettel-graph[{extra}]"')) as refused:
        importlib.import_module(f"zettel.integrations.{module}")
    assert "\n" not in str(refused.value)
