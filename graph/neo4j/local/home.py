"""A server's folder: settings, data, logs and a state file."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType

from zettel.errors import InvalidInput, LocalServerError

HOST = "127.0.0.1"
"""The loopback address: other machines cannot connect."""
BOLT_PORT = 7687
HTTP_PORT = 7474
STATE = "zettel-neo4j.json"


@dataclass(frozen=True)
class Ports:
    """The server's ports for drivers and for Neo4j Browser."""

    bolt: int
    http: int


@dataclass(frozen=True)
class ServerState:
    """The server that was last started from a folder; ``pid`` is None after it was stopped."""

    version: str
    bolt: int
    http: int
    pid: int | None


def read_state(home: Path) -> ServerState | None:
    """Return the state of a server's folder, None if it never had a server. Raises ``LocalServerError``."""
    path = home / STATE
    try:
        return ServerState(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):  # a file instead of a folder is refused when a server starts
        return None
    except (ValueError, TypeError):
        raise LocalServerError(f"{path} cannot be read: delete it if no Neo4j runs from that folder") from None


def write_state(home: Path, state: ServerState) -> None:
    new = home / f"{STATE}.new"
    new.write_text(json.dumps(asdict(state), indent=2) + "\n", encoding="utf-8")
    os.replace(new, home / STATE)


def forget(home: Path) -> None:
    """Delete the state and data of a failed first start, whose password was never shown."""
    (home / STATE).unlink(missing_ok=True)
    shutil.rmtree(home / "data", ignore_errors=True)


def make_home(home: Path) -> None:
    """Create the folder, readable by its owner alone. Raises ``InvalidInput`` for a file or a folder of other files."""
    if home.is_file():
        raise InvalidInput(f"{home} is a file: name a new folder for Neo4j's data")
    if home.exists() and not _settings(home).exists() and any(home.iterdir()):
        raise InvalidInput(f"{home} contains other files: name a new folder for Neo4j's data")
    home.mkdir(parents=True, exist_ok=True)
    for folder in (home / "conf", home / "logs"):
        folder.mkdir(exist_ok=True)
    os.chmod(home, 0o700)
    (home / ".gitignore").write_text("*\n", encoding="utf-8")


def write_settings(home: Path, ports: Ports, others: Mapping[str, str] = MappingProxyType({})) -> None:
    """Write Neo4j's settings: loopback only, no telemetry, no file access for queries."""
    settings = {
        "server.bolt.listen_address": f"{HOST}:{ports.bolt}",
        "server.bolt.advertised_address": f"{HOST}:{ports.bolt}",  # for Neo4j Browser
        "server.http.listen_address": f"{HOST}:{ports.http}",
        "server.http.advertised_address": f"{HOST}:{ports.http}",
        "server.https.enabled": "false",
        "server.memory.pagecache.size": "256m",
        "dbms.usage_report.enabled": "false",
        "client.allow_telemetry": "false",
        "dbms.security.allow_csv_import_from_file_urls": "false",
        **others,
    }
    lines = [f"{key}={value}\n" for key, value in settings.items()]
    _settings(home).write_text(
        f"# Written by zettel at every start; changes are lost.\n{''.join(lines)}", encoding="utf-8"
    )


def _settings(home: Path) -> Path:
    return home / "conf" / "neo4j.conf"


def choose_ports(bolt: int | None, http: int | None, last: ServerState | None) -> Ports:
    """Return the requested ports, else the last or the default ones, else free ones.

    Raises ``LocalServerError`` if a requested port is in use.
    """
    chosen: list[int] = []
    for name, requested, usual in (
        ("--bolt-port", bolt, last.bolt if last else BOLT_PORT),
        ("--http-port", http, last.http if last else HTTP_PORT),
    ):
        if requested is not None and (requested in chosen or not _is_free(requested)):
            raise LocalServerError(f"port {requested} is in use: choose another {name}, or leave it out")
        port = usual if requested is None else requested
        chosen.append(port if port not in chosen and _is_free(port) else _free_port(chosen))
    return Ports(*chosen)


def _is_free(port: int) -> bool:
    with socket.socket() as attempt:
        if os.name == "posix":  # like servers, so that old connections of a stopped server do not count
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((HOST, port))
        except OSError:
            return False
        return True


def _free_port(excluded: list[int]) -> int:
    while True:
        with socket.socket() as attempt:
            attempt.bind((HOST, 0))
            port = int(attempt.getsockname()[1])
        if port not in excluded:
            return port
