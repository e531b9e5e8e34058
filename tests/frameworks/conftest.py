"""What the tests of an adapter stand on: a memory, an agent's model behind HTTP, and frameworks that have to be here.

They run in the environments of tests/integration/test_frameworks.py, and wherever a framework is installed:
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
"""Frameworks warn of each other's age, and leave connections to the end of the interpreter."""

SILENT = ("CREWAI_DISABLE_TELEMETRY", "OPENAI_AGENTS_DISABLE_TRACING", "OTEL_SDK_DISABLED")
"""Settings that keep frameworks from telling others what they do."""


def pytest_configure(config: pytest.Config) -> None:
    for line in QUIET:
        config.addinivalue_line("filterwarnings", line)
    wanted = os.environ.get("ZETTEL_FRAMEWORKS", "").split()
    missing = [one.name for one in FRAMEWORKS if one.name in wanted and not one.installed]
    if missing:
        raise pytest.UsageError(f"not installed: {', '.join(missing)}")


def pytest_sessionfinish() -> None:
    """Whatever frameworks have left open ends here, where nobody minds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture(scope="module")
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """In the ``SCOPE`` that the file of the tests names, if it does."""
    scope = getattr(request.module, "SCOPE", None)
    with Memory(tmp_path_factory.mktemp("opened") / "zettel.db", scope=scope) as memory:
        yield memory


@pytest.fixture
def memory(opened: Memory) -> Iterator[Memory]:
    """One memory for all tests of a file, empty before each."""
    yield opened
    for scope in opened.scopes():
        opened.delete_scope(scope=scope)


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> int:
    """As many bytes as the content of an event may have here, so that few are too many."""
    room = 4000
    for module in ("core.arguments", "integrations.json_values"):
        monkeypatch.setattr(f"zettel.{module}.MAX_CONTENT_BYTES", room)
    return room


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentServer]:
    """An agent's model by rule, where clients look for OpenAI."""
    with AgentServer() as server:
        for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
            monkeypatch.setenv(name, server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        for name in SILENT:
            monkeypatch.setenv(name, "true")
        monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "crewai"))
        yield server


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """What CrewAI tells of its progress does not stand between what a program prints."""
    if find_spec("crewai") is not None:
        from crewai.events.utils.console_formatter import ConsoleFormatter

        monkeypatch.setattr(ConsoleFormatter, "print", lambda *told, **more: None)


@pytest.fixture
def run_example(
    agent: AgentServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Runs an example, by its path, in an empty folder with the agent's model; what it prints.

    In this process, for to import a framework takes longer than all the rest.
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
