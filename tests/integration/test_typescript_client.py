"""The TypeScript client in Node, against a real server, and its generated types.

It needs Node 20 and npm, which installs the packages of clients/typescript from its registry.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http_server import Served, served
from tests.pages import CHECKOUT
from zettel import Scope

CLIENT = CHECKOUT / "clients" / "typescript"
OLDEST_NODE = 20
TESTS = 10
MINUTES = 60

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(10 * MINUTES)]


def node_is_missing() -> str | None:
    """Return why the tests cannot run here."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return "Node.js and npm are not installed"
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    major = int(version.strip().removeprefix("v").partition(".")[0])
    return None if major >= OLDEST_NODE else f"Node.js {OLDEST_NODE} or later is required, this is {version.strip()}"


def run(folder: Path, *command: str, **variables: str) -> str:
    """Run a command in a folder, and return its output."""
    ran = subprocess.run(
        command, cwd=folder, env=os.environ | variables, capture_output=True, text=True, timeout=5 * MINUTES
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package with its dependencies."""
    if reason := node_is_missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("client") / "typescript"
    shutil.copytree(CLIENT, folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    run(folder, "npm", "install", "--no-audit", "--no-fund", "--no-package-lock")
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("server") / "a.db") as running:
        yield running


def test_the_generated_types_are_up_to_date(package: Path, server: Served) -> None:
    description = server.asker()("GET", "/openapi.json").body
    (package / "openapi.json").write_text(json.dumps(description), encoding="utf-8")
    run(package, "npm", "run", "generate")
    generated = (package / "src" / "schema.ts").read_text(encoding="utf-8")
    assert generated == (CLIENT / "src" / "schema.ts").read_text(encoding="utf-8"), "run: make typescript"


def test_the_client_works_with_a_server(package: Path, server: Served) -> None:
    run(package, "npm", "run", "build")
    key = server.key("app", Scope(tenant="acme", user="*"))
    output = run(package, "npm", "test", ZETTEL_URL=server.url, ZETTEL_APP_KEY=key)
    passed = re.search(r"^\W*pass (\d+)$", output, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) == TESTS
