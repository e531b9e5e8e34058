"""A server's folder: its settings, its data, its logs, and a file that says what was started from it."""

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
"""Nobody else on the network can reach it."""
BOLT_PORT = 7687
HTTP_PORT = 7474
STATE = "zettel-neo4j.json"


@dataclass(frozen=True)
class Ports:
    """Where it listens: drivers ask the first, Neo4j Browser is served at the second."""

    bolt: int
    http: int


@dataclass(frozen=True)
class State:
    """What was started last from a folder; ``pid`` is None once it was ended."""

    version: str
    bolt: int
    http: int
    pid: int | None


def read_state(home: Path) -> State | None:
    """What is known of a server's folder; None for one that never had a server. Raises ``LocalServerError``."""
    path = home / STATE
    try:
        return State(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise LocalServerError(f"{path} cannot be read: delete it if no Neo4j runs from that folder") from None


def write_state(home: Path, state: State) -> None:
    new = home / f"{STATE}.new"
    new.write_text(json.dumps(asdict(state), indent=2) + "\n", encoding="utf-8")
    os.replace(new, home / STATE)


def forget(home: Path) -> None:
    """Take back a first start that failed: nobody was told the password of what it left."""
    (home / STATE).unlink(missing_ok=True)
    shutil.rmtree(home / "data", ignore_errors=True)


def make_home(home: Path) -> None:
    """Make the folder, readable by its owner alone. Raises ``InvalidInput`` if it holds other things."""
    if home.exists() and not _settings(home).exists() and (not home.is_dir() or any(home.iterdir())):
        raise InvalidInput(f"{home} holds other things: name a new folder for Neo4j's data")
    home.mkdir(parents=True, exist_ok=True)
    for part in (home / "conf", home / "logs"):
        part.mkdir(exist_ok=True)
    os.chmod(home, 0o700)
    (home / ".gitignore").write_text("*\n", encoding="utf-8")


def write_settings(home: Path, ports: Ports, others: Mapping[str, str] = MappingProxyType({})) -> None:
    """Neo4j's own settings: on this machine only, nothing sent anywhere, no files read by queries."""
    settings = {
        "server.bolt.listen_address": f"{HOST}:{ports.bolt}",
        "server.bolt.advertised_address": f"{HOST}:{ports.bolt}",  # what Neo4j Browser connects to
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


def choose_ports(bolt: int | None, http: int | None, last: State | None) -> Ports:
    """The ports asked for; else those of last time or Neo4j's own, or free ones if these are taken.

    Raises ``LocalServerError`` if one that was asked for is taken.
    """
    chosen: list[int] = []
    for name, asked, usual in (
        ("--bolt-port", bolt, last.bolt if last else BOLT_PORT),
        ("--http-port", http, last.http if last else HTTP_PORT),
    ):
        if asked is not None and (asked in chosen or not _free(asked)):
            raise LocalServerError(f"port {asked} is taken: choose another {name}, or none, and a free one is found")
        port = usual if asked is None else asked
        chosen.append(port if port not in chosen and _free(port) else _any_free(chosen))
    return Ports(*chosen)


def _free(port: int) -> bool:
    with socket.socket() as attempt:
        if os.name == "posix":  # as servers do, so that connections of one that just ended do not count
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((HOST, port))
        except OSError:
            return False
        return True


def _any_free(but: list[int]) -> int:
    while True:
        with socket.socket() as attempt:
            attempt.bind((HOST, 0))
            port = int(attempt.getsockname()[1])
        if port not in but:
            return port
