"""A Neo4j for the demo: the one that the environment names, or one of its own on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from zettel.cli.neo4j import progress
from zettel.errors import StoreError

FOLDER = Path("zettel-demo-neo4j")
PASSWORD = "demo-password"
"""A file in that folder, for its owner alone: the demo may be run again, and holds an invented conversation only."""


class Served(NamedTuple):
    """Where the demo's memory is kept, and the folder of its server, if it was started here."""

    url: str
    auth: tuple[str, str]
    browser: str | None
    folder: Path | None


def served() -> Served:
    """NEO4J_URI with NEO4J_USERNAME and NEO4J_PASSWORD, or a server started from ``FOLDER``.

    Raises ``LocalServerError``, and ``StoreError`` if the folder's password was lost.
    """
    if url := os.environ.get("NEO4J_URI"):
        auth = os.environ.get("NEO4J_USERNAME", "neo4j"), os.environ.get("NEO4J_PASSWORD", "")
        return Served(url, auth, None, None)
    from zettel.graph.neo4j.local.server import USER, up

    with progress() as told:
        started = up(FOLDER, progress=told)
    kept = FOLDER / PASSWORD
    if started.password is not None:
        with open(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            out.write(started.password)
    elif not kept.is_file():
        raise StoreError(f"the password of {FOLDER} was not kept: delete that folder, and the demo makes a new one")
    password = kept.read_text(encoding="utf-8")
    return Served(started.server.url, (USER, password), started.server.browser.partition("/browser/")[0], FOLDER)
