"""Neo4j server of the demo: the one in the environment, or a new one on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from zettel.cli.neo4j import progress
from zettel.errors import StoreError

FOLDER = Path("zettel-demo-neo4j")
PASSWORD = "demo-password"
"""File in that folder, readable only by its owner; it lets a later run of the demo log in."""


class Served(NamedTuple):
    """Address and login of the demo's server, and its folder if it was started here."""

    url: str
    auth: tuple[str, str]
    browser: str | None
    folder: Path | None


def served() -> Served:
    """Return the server of NEO4J_URI, NEO4J_USERNAME and NEO4J_PASSWORD, or start one in ``FOLDER``.

    Raises ``LocalServerError``, and ``StoreError`` if the password of the folder is lost.
    """
    if url := os.environ.get("NEO4J_URI"):
        auth = os.environ.get("NEO4J_USERNAME", "neo4j"), os.environ.get("NEO4J_PASSWORD", "")
        return Served(url, auth, None, None)
    from zettel.graph.neo4j.connection import require_driver
    from zettel.graph.neo4j.local.server import USER, up

    require_driver()

    with progress() as report:
        started = up(FOLDER, progress=report)
    password_file = FOLDER / PASSWORD
    if started.password is not None:
        with open(os.open(password_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            out.write(started.password)
    elif not password_file.is_file():
        raise StoreError(f"the password of {FOLDER} is lost: delete that folder and run the demo again")
    password = password_file.read_text(encoding="utf-8")
    return Served(started.server.url, (USER, password), started.server.browser.partition("/browser/")[0], FOLDER)
