"""What several integration tests stand on."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import neo4j_servers
from tests.integration.command import Ran, Zettel
from tests.model_server import ModelServer
from tests.scripted_model import reply
from tests.small_model import small_model as small_model
from zettel.cli.app import run


@pytest.fixture(params=neo4j_servers.EVERY)
def server(request: pytest.FixtureRequest) -> neo4j_servers.Server:
    """A Neo4j of each release line, without a node; constraints and indexes stay from test to test."""
    found = neo4j_servers.server(request.param)
    neo4j_servers.forget_all(found)
    return found


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A model that answers by rule, where LiteLLM looks for OpenAI."""
    with ModelServer(reply) as started:
        monkeypatch.setenv("OPENAI_API_BASE", started.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield started


@pytest.fixture
def zettel(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Zettel:
    """Runs a command line in this process, in an empty folder; ``stdin`` is what comes in, if anything does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("ZETTEL_STORE", "ZETTEL_EMBEDDER", "ZETTEL_LLM", "ZETTEL_BUDGET"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str, stdin: bytes | None = None) -> Ran:
        capsys.readouterr()
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = run(arguments)
        return Ran(status, *capsys.readouterr())

    return call
