"""Real Neo4j servers for tests: one of each release line, started on first use and stopped with the test session.

``NEO4J_URI`` (with ``NEO4J_USERNAME`` and ``NEO4J_PASSWORD``) names the only server to use instead.
For a local server, ``NEO4J_HTTP`` is the address of its Browser (default http://127.0.0.1:7474).
EVERYTHING IN ITS DATABASE ``neo4j`` IS DELETED. Without Java or Maven, or with ``ZETTEL_NEO4J=0``, the tests are
skipped with a reason.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from zettel.errors import LocalServerError
from zettel.graph.neo4j.local import jars
from zettel.graph.neo4j.local import server as local
from zettel.graph.neo4j.local.home import HOST

if TYPE_CHECKING:
    from neo4j import Driver

DATABASE = "neo4j"
WIPED_AT_ONCE = 5000  # nodes deleted in one transaction

SCHEMA = {
    "CONSTRAINT": "SHOW CONSTRAINTS YIELD name",
    "INDEX": "SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP' RETURN name",
}


class Server(NamedTuple):
    """A running server: the arguments of ``Memory(url, auth=auth)``, and its HTTP address and folder if known."""

    name: str
    url: str
    auth: tuple[str, str]
    http: str | None
    home: Path | None = None


def _given() -> str | None:
    return os.environ.get("NEO4J_URI")


NAMES = ["neo4j"] if _given() else [f"neo4j-{release.line}" for release in jars.RELEASES]
"""Parameters for tests: neo4j-2026 and neo4j-5.26, or neo4j when the environment names a server."""
NEWEST = NAMES[0]
OWN = NEWEST if _given() else "own server"
"""Group of the tests marked ``own_server``, which start servers at the usual ports. One process runs them all
(tests/processes.py), since two servers would take the same ports."""

def param(name: str) -> Any:
    """Return a parameter that starts the named server before the test."""
    return pytest.param(name, marks=[pytest.mark.neo4j(name), pytest.mark.store(name)])


EVERY = [param(name) for name in NAMES]
"""Parameters for a test on each release line."""

SETTINGS = {
    "dbms.cypher.min_replan_interval": "1h",  # every test empties the database, which makes plans look out of date
    "db.checkpoint.interval.time": "1h",
}
"""Settings of a server that is emptied hundreds of times and deleted after minutes."""
JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xms512m", "-Xmn256m", "-XX:MetaspaceSize=256m")
"""Less JIT optimisation for short-lived servers: this takes a third of the processor time."""

WATCH = 'while kill -0 "$0" 2>/dev/null; do sleep 2; done; kill "$1"'
"""Shell watcher that ends a server after its test process was killed."""

_running: dict[str, Server] = {}
_announced: set[str] = set()
_drivers: dict[Server, Driver] = {}
_homes: list[Path] = []
_watchers: list[subprocess.Popen[bytes]] = []
_failed: dict[str, str] = {}
"""The error of each server that did not start. Other tests would wait for the same error."""


def server(name: str) -> Server:
    """Return the named server as the last test left it; start it if necessary, or skip the test."""
    assert name in _announced, f"a test that uses {name} needs the marker neo4j({name!r}): see EVERY"
    if name not in _running:
        if name in _failed:
            raise LocalServerError(_failed[name])
        if (reason := reason_to_skip(name)) is not None:
            pytest.skip(reason)
        _running[name] = _named_by_environment() if _given() else _start(name.removeprefix("neo4j-"))
    return _running[name]


def empty(name: str) -> Server:
    """Return the named server without memories. Constraints, indexes and the node that describes them stay,
    because creating them again takes seconds."""
    running = server(name)
    forget_all(running)
    return running


def wipe(target: Server) -> None:
    """Delete all nodes, constraints and indexes."""
    _delete(target, "MATCH (n)")
    for kind, show in SCHEMA.items():
        for (one,) in _driver(target).execute_query(show, database_=DATABASE).records:
            _driver(target).execute_query(f"DROP {kind} `{one}` IF EXISTS", database_=DATABASE)


def forget_all(target: Server) -> None:
    """Delete all nodes except the layout node, and reset the counters of that node."""
    _delete(target, "MATCH (n) WHERE NOT n:Zettel")
    properties_kept = "{id: z.id, layout: z.layout, tokens: z.tokens}"
    _driver(target).execute_query(f"MATCH (z:Zettel) SET z = {properties_kept}", database_=DATABASE)


def _delete(target: Server, match: str) -> None:
    delete = f"{match} WITH n LIMIT {WIPED_AT_ONCE} DETACH DELETE n"
    while _driver(target).execute_query(delete, database_=DATABASE).summary.counters.nodes_deleted == WIPED_AT_ONCE:
        pass


def _driver(target: Server) -> Driver:
    """Return the cached driver for cleaning a server: connecting takes longer than emptying it."""
    import neo4j

    if target not in _drivers:
        _drivers[target] = neo4j.GraphDatabase.driver(target.url, auth=target.auth)
    return _drivers[target]


def properties(target: Server) -> dict[str, list[str]]:
    """Return all properties of nodes and relationships by name, with values as text, without vectors."""
    every = (
        "MATCH (x) UNWIND keys(x) AS key WITH labels(x)[0] + '.' + key AS name, x[key] AS value "
        "WHERE NOT value IS :: LIST<FLOAT NOT NULL> RETURN name, collect(value) AS held "
        "UNION ALL MATCH ()-[x]->() UNWIND keys(x) AS key RETURN type(x) + '.' + key AS name, collect(x[key]) AS held"
    )
    records = _driver(target).execute_query(every, database_=DATABASE).records
    return {name: [str(value) for value in values] for name, values in records}


def prepare(names: Sequence[str]) -> None:
    """Start the servers of the next test before its timeout begins."""
    _announced.clear()
    _announced.update(names)
    for name in names:
        if name in _running:
            continue
        if reason_to_skip(name) is None and name not in _failed:
            with contextlib.suppress(LocalServerError):  # reported by every test that uses the server
                server(name)


def reason_to_skip(name: str) -> str | None:
    """Return why the named server is not available, or None."""
    if os.environ.get("ZETTEL_NEO4J") == "0":
        return f"ZETTEL_NEO4J=0 leaves {name} out"
    missing = None if _given() else what_is_missing(name.removeprefix("neo4j-"))
    return missing and f"no {name} to test on, and NEO4J_URI names none: {missing}"


def what_is_missing(line: str) -> str | None:
    """Return why this machine cannot start the release, after fetching missing jars."""
    try:
        release, java = jars.choose(line)
        with _one_maven():
            jars.fetch(release, java, progress=lambda step, files: None)
    except LocalServerError as error:
        return str(error)
    return None


@contextlib.contextmanager
def _one_maven() -> Iterator[None]:
    """Lock out other processes: Maven does not support concurrent writes to its cache."""
    place = jars.cache_folder()
    place.mkdir(parents=True, exist_ok=True)
    with (place / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def stop_all() -> None:
    """Stop all started servers and delete their data."""
    for driver in _drivers.values():
        driver.close()
    for home in _homes:
        pid = local.status(home).pid
        if pid is not None:  # an orderly stop takes ten seconds, and the data is deleted
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        shutil.rmtree(home)
    for watcher in _watchers:
        watcher.kill()
        watcher.wait()
    for registry in (_homes, _watchers, _drivers, _running):
        registry.clear()


def _named_by_environment() -> Server:
    url = os.environ["NEO4J_URI"]
    auth = os.environ.get("NEO4J_USERNAME", "neo4j"), os.environ.get("NEO4J_PASSWORD", "")
    is_local = urlsplit(url).hostname in ("localhost", "127.0.0.1")
    return Server("neo4j", url, auth, os.environ.get("NEO4J_HTTP", "http://127.0.0.1:7474") if is_local else None)


def _free_ports() -> tuple[int, int]:
    with socket.create_server((HOST, 0)) as first, socket.create_server((HOST, 0)) as second:
        return first.getsockname()[1], second.getsockname()[1]


def _start(line: str) -> Server:
    name = f"neo4j-{line}"
    home = Path(tempfile.mkdtemp(prefix=f"zettel-{name}-"))
    try:
        bolt, http = _free_ports()  # the default ports are for servers that tests start
        started = local.up(home, version=line, bolt=bolt, http=http, settings=SETTINGS, java_options=JAVA_OPTIONS)
    except LocalServerError as error:
        _failed[name] = str(error)
        raise
    _homes.append(home)
    watch = ["sh", "-c", WATCH, str(os.getpid()), str(started.server.pid)]
    _watchers.append(subprocess.Popen(watch, start_new_session=True))
    assert started.password is not None
    auth = local.USER, started.password
    return Server(name, started.server.url, auth, f"http://127.0.0.1:{started.server.http}", home)
