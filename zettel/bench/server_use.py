"""Process and disk of a Neo4j server on this machine."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from zettel.errors import InvalidInput, LocalServerError
from zettel.graph.neo4j.local.server import down, status, up


class ServerUse:
    """A server that ``zettel neo4j up`` started in ``folder``; ``pid`` is its process.

    Raises ``InvalidInput`` if ``url`` is that of another server, ``LocalServerError`` if it does not run.
    """

    def __init__(self, folder: Path, url: str) -> None:
        server = status(folder)
        if server.pid is None:
            raise LocalServerError(f"the Neo4j of {folder} does not run: start it with `zettel neo4j up {folder}`")
        if urlsplit(url).port != server.bolt:
            raise InvalidInput(f"--store is {url}, but the Neo4j of {folder} is {server.url}: name the same server")
        self.pid = server.pid
        self._folder = folder
        self._files = server.home / "data" / "databases"

    def disk_bytes(self) -> int:
        """Restart the server, which writes all its pages, and return the size of stores and indexes without the log."""
        down(self._folder)
        size = sum(file.stat().st_size for file in self._files.rglob("*") if file.is_file())
        restarted = up(self._folder).server
        assert restarted.pid is not None
        self.pid = restarted.pid
        return size
