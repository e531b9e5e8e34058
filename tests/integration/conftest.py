"""Fixtures of several integration tests."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import neo4j_servers
from tests.integration.command import CommandResult, Zettel
from tests.model_server import ModelServer
from tests.scripted_model import reply
from tests.small_model import small_model as small_model
from zettel.cli.app import run


@pytest.fixture(params=neo4j_servers.EVERY)
def server(request: pytest.FixtureRequest) -> neo4j_servers.Server:
    """Return a Neo4j of each release line without nodes; its constraints and indexes remain between tests."""
    instance = neo4j_servers.server(request.param)
    neo4j_servers.forget_all(instance)
    return instance


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """Serve a rule-based model at the address where LiteLLM looks for OpenAI."""
    with ModelServer(reply) as model_server:
        monkeypatch.setenv("OPENAI_API_BASE", model_server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield model_server


@pytest.fixture
def zettel(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Zettel:
    """Return a function that runs a command line in this process, in an empty folder, with optional ``stdin``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("ZETTEL_STORE", "ZETTEL_EMBEDDER", "ZETTEL_LLM", "ZETTEL_BUDGET", "ZETTEL_PRIVACY"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str, stdin: bytes | None = None) -> CommandResult:
        capsys.readouterr()
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = run(arguments)
        return CommandResult(status, *capsys.readouterr())

    return call
