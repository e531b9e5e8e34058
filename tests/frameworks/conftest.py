"""Fixtures for the tests of adapters: a memory, an agent's model behind HTTP, and the required frameworks.

The tests run in the environments of tests/integration/test_frameworks.py, and wherever a framework is installed:
``pytest tests/frameworks``.
"""

from __future__ import annotations

import gc
import os
import runpy
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.agent_server import AgentServer
from tests.claude_server import ClaudeServer, claude_server
from tests.frameworks.known import FRAMEWORKS
from zettel import Memory

QUIET = (
    "ignore::DeprecationWarning",
    "ignore::PendingDeprecationWarning",
    "ignore::ImportWarning",
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore:Resolved model mismatch:UserWarning",
)
"""Frameworks warn about each other's versions and leave connections open until the interpreter exits."""

SILENT = ("CREWAI_DISABLE_TELEMETRY", "OPENAI_AGENTS_DISABLE_TRACING", "OTEL_SDK_DISABLED")
"""Settings that disable the telemetry of frameworks."""


def pytest_configure(config: pytest.Config) -> None:
    for line in QUIET:
        config.addinivalue_line("filterwarnings", line)
    required = os.environ.get("ZETTEL_FRAMEWORKS", "").split()
    missing = [framework.name for framework in FRAMEWORKS if framework.name in required and not framework.installed]
    if missing:
        raise pytest.UsageError(f"not installed: {', '.join(missing)}")


def pytest_sessionfinish() -> None:
    """Close what frameworks have left open, without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture(scope="module")
def module_memory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """Return a memory for one test file, in the ``SCOPE`` of that file if it defines one."""
    scope = getattr(request.module, "SCOPE", None)
    with Memory(tmp_path_factory.mktemp("memory") / "zettel.db", scope=scope) as memory:
        yield memory


@pytest.fixture
def memory(module_memory: Memory) -> Iterator[Memory]:
    """Return the memory of the test file, empty before each test."""
    yield module_memory
    for scope in module_memory.scopes():
        module_memory.delete_scope(scope=scope)


@pytest.fixture
def small_content_limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """Lower the size limit of event contents and return it."""
    limit = 4000
    for module in ("core.arguments", "integrations.json_values"):
        monkeypatch.setattr(f"zettel.{module}.MAX_CONTENT_BYTES", limit)
    return limit


@pytest.fixture
def claude(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClaudeServer]:
    """Serve a rule-based model at the address where Anthropic's client looks for Claude."""
    with claude_server() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        yield server


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claude: ClaudeServer) -> Iterator[AgentServer]:
    """Serve a rule-based agent model at the address where clients look for OpenAI."""
    with AgentServer() as server:
        for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
            monkeypatch.setenv(name, server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        for name in SILENT:
            monkeypatch.setenv(name, "true")
        monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "crewai"))
        yield server


@pytest.fixture(autouse=True)
def silence_crewai(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence the progress output of CrewAI."""
    if find_spec("crewai") is not None:
        from crewai.events.utils.console_formatter import ConsoleFormatter

        monkeypatch.setattr(ConsoleFormatter, "print", lambda *parts, **more: None)


@pytest.fixture
def run_example(
    agent: AgentServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Return a function that runs an example in an empty folder with the agent's model and returns its output.

    The example runs in this process, because importing a framework is slow.
    """
    folder = tmp_path / "example"
    folder.mkdir()

    def run(example: Path, *arguments: str) -> str:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", [str(example), *arguments])
        capsys.readouterr()
        runpy.run_path(str(example), run_name="__main__")
        assert not list(folder.iterdir()), "an example leaves files behind"
        return capsys.readouterr().out

    return run
