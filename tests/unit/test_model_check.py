"""The check of a model's name and key: it agrees with LiteLLM, and does not import it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from zettel import Memory
from zettel.llm.check import KEYS, complaints, providers
from zettel.llm.lite import LiteLLM
from zettel.llm.litellm_module import import_litellm


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if "KEY" in name or "TOKEN" in name:
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("openai/gpt-4o-mini", "the model 'openai/gpt-4o-mini' has no key, and its jobs will fail: set OPENAI_API_KEY"),
        ("gpt-4o-mini", "the model 'gpt-4o-mini' has no key, and its jobs will fail: set OPENAI_API_KEY"),
        ("claude-sonnet-4-5", "set ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-flash", "set GEMINI_API_KEY"),
        ("opnai/gpt-4o-mini", "the model 'opnai/gpt-4o-mini' has the unknown provider 'opnai': use 'openai'"),
        ("OpenAI/gpt-4o-mini", "use 'openai'"),
        ("mycompany/model", "the unknown provider 'mycompany': write it as openai/gpt-4o-mini"),
        ("best-model", "the model 'best-model' has no provider in its name: write it as openai/gpt-4o-mini"),
    ],
)
def test_unusable_models_are_named(name: str, expected: str) -> None:
    (complaint,) = complaints([name], has_key=False)
    assert expected in complaint


@pytest.mark.parametrize("name", ["ollama/llama3", "hosted_vllm/x", "bedrock/x", "command-nightly", "azure/x"])
def test_models_without_a_known_key_pass(name: str) -> None:
    assert not list(complaints([name], has_key=False))


def test_a_key_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["openai/a", "gemini/b"]
    assert not list(complaints(names, has_key=True))
    monkeypatch.setenv("GOOGLE_API_KEY", "x")
    (complaint,) = complaints(names, has_key=False)
    assert "openai/a" in complaint
    monkeypatch.setenv("OPENAI_API_KEY", " \n")
    assert len(list(complaints(names, has_key=False))) == 1


def test_the_tables_agree_with_litellm() -> None:
    litellm = import_litellm()
    assert providers() == {str(getattr(provider, "value", provider)) for provider in litellm.provider_list}
    for provider, variables in KEYS.items():
        missing = litellm.validate_environment(model=f"{provider}/any")["missing_keys"]
        assert set(missing) <= set(variables)
        assert missing


def test_a_memory_logs_the_complaint_when_it_opens(caplog: pytest.LogCaptureFixture) -> None:
    with Memory(":memory:", llm=["opnai/gpt-4o-mini", "ollama/llama3"]) as memory:
        memory.add("It rains.")
    (record,) = [record for record in caplog.records if record.name == "zettel.llm"]
    assert record.levelname == "WARNING"
    assert record.getMessage() == "the model 'opnai/gpt-4o-mini' has the unknown provider 'opnai': use 'openai'"
    caplog.clear()
    with Memory(":memory:", llm=LiteLLM("openai/gpt-4o-mini", api_key="k")):
        assert not caplog.records


def test_the_check_does_not_import_litellm() -> None:
    code = (
        "import sys; from zettel.llm.lite import LiteLLM; assert LiteLLM(['opnai/a', 'b']).complaints();"
        "assert 'litellm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
