"""Start, end and describe a Neo4j whose settings and data are in one folder."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from zettel.errors import InvalidInput, LocalServerError
from zettel.graph.neo4j.local import process
from zettel.graph.neo4j.local.home import (
    HOST,
    State,
    choose_ports,
    forget,
    make_home,
    read_state,
    write_settings,
    write_state,
)
from zettel.graph.neo4j.local.jars import RELEASES, Progress, Release, choose, fetch, named
from zettel.graph.neo4j.local.javas import Java

USER = "neo4j"
PASSWORD_BYTES = 12
"""Random bytes in a password: sixteen characters, twice what Neo4j asks for."""
HEAP = "1g"
"""Java's memory for it; the page cache comes on top."""
READY_WITHIN = 180.0
"""Seconds until it must answer: six on an idle laptop, much longer beside other work."""
LOOK_EVERY = 0.2
OPENED = ("java.base/java.nio", "java.base/java.io", "java.base/sun.nio.ch")
"""What Neo4j reaches into, inside Java."""


@dataclass(frozen=True)
class LocalServer:
    """A server's folder and what was started from it. ``pid`` is None when it does not run."""

    home: Path
    version: str
    bolt: int
    http: int
    pid: int | None

    @property
    def url(self) -> str:
        """What ``Memory`` is opened with."""
        return f"neo4j://{HOST}:{self.bolt}"

    @property
    def browser(self) -> str:
        """Neo4j Browser, with the login filled in but for the password."""
        return f"http://{HOST}:{self.http}/browser/?dbms=neo4j://{USER}@{HOST}:{self.bolt}"

    @property
    def log(self) -> Path:
        return _log(self.home)


@dataclass(frozen=True)
class Started:
    """A running server. ``password`` is only known here when it was made; ``already`` means that it ran before."""

    server: LocalServer
    password: str | None
    already: bool


def up(
    home: str | Path,
    *,
    version: str | None = None,
    bolt: int | None = None,
    http: int | None = None,
    progress: Progress = lambda step, files: None,
    cache: Path | None = None,
    settings: Mapping[str, str] | None = None,
    java_options: Sequence[str] = (),
) -> Started:
    """Start the server of a folder and wait until it answers; a new folder gets a new server and a password.

    ``version`` is a release or its line (``5.26``), by default that of the folder's data or else the newest that a
    Java here can run. ``cache`` is where the jars are kept, by default the user's cache. ``settings`` are Neo4j's by
    their names, ``java_options`` go to its Java; both for this start alone. Raises ``InvalidInput`` and
    ``LocalServerError``.
    """
    home = Path(home).expanduser().resolve()
    last = read_state(home)
    if last is not None and last.pid is not None and process.runs(last.pid, _mark(home)):
        _same(home, last, version, bolt, http)
        return Started(_server(home, last), None, already=True)
    release, java = choose(_wanted(home, version, last))
    ports = choose_ports(bolt, http, last)
    lib = fetch(release, java, progress, cache)
    make_home(home)
    write_settings(home, ports, settings or {})
    password = None if last else secrets.token_urlsafe(PASSWORD_BYTES)
    if password is not None:
        _set_password(home, lib, java, password)
    progress(f"starting Neo4j {release.version}", 0)
    pid = _start(home, lib, java, release, java_options)
    state = State(release.version, ports.bolt, ports.http, pid)
    try:
        write_state(home, state)
        _wait(home, state, pid)
    except BaseException:  # an interrupt too must not leave a server behind that nobody knows of
        process.end(pid, _mark(home), _log(home))
        if last is None:
            forget(home)
        else:
            write_state(home, replace(state, pid=None))
        raise
    return Started(_server(home, state), password, already=False)


def down(home: str | Path) -> bool:
    """End the server of a folder and wait until all is written; False if none ran. Raises ``LocalServerError``."""
    home = Path(home).expanduser().resolve()
    state = _known(home)
    ran = state.pid is not None and process.runs(state.pid, _mark(home))
    if state.pid is not None:
        process.end(state.pid, _mark(home), _log(home))
        write_state(home, replace(state, pid=None))
    return ran


def status(home: str | Path) -> LocalServer:
    """How the server of a folder is. Raises ``LocalServerError`` for a folder that never had one."""
    home = Path(home).expanduser().resolve()
    state = _known(home)
    if state.pid is not None and not process.runs(state.pid, _mark(home)):
        state = replace(state, pid=None)
    return _server(home, state)


def _known(home: Path) -> State:
    state = read_state(home)
    if state is None:
        raise LocalServerError(f"no Neo4j was started from {home}: zettel neo4j up starts one")
    return state


def _server(home: Path, state: State) -> LocalServer:
    return LocalServer(home, state.version, state.bolt, state.http, state.pid)


def _wanted(home: Path, version: str | None, last: State | None) -> str | None:
    """Data stays with the release that wrote it, or goes to a newer one: an older one cannot read it."""
    if last is None or version is None:
        return last.version if last else version
    newest_first = [release.version for release in RELEASES]
    if newest_first.index(named(version).version) > newest_first.index(named(last.version).version):
        raise InvalidInput(f"the data in {home} is of Neo4j {last.version}, which {version} cannot read")
    return version


def _same(home: Path, running: State, version: str | None, bolt: int | None, http: int | None) -> None:
    """What runs must be what is asked for."""
    release = running.version if version is None else named(version).version
    if (release, bolt or running.bolt, http or running.http) != (running.version, running.bolt, running.http):
        raise InvalidInput(f"Neo4j {running.version} runs from {home} on other terms: zettel neo4j down ends it")


def _log(home: Path) -> Path:
    return home / "logs" / "console.log"


def _arguments_file(home: Path) -> Path:
    return home / "conf" / "java-arguments"


def _mark(home: Path) -> str:
    """What the command line of this folder's server, and of nothing else, holds."""
    return f"@{_arguments_file(home)}"


def _set_password(home: Path, lib: Path, java: Java, password: str) -> None:
    """Before the first start, as Neo4j wants it; by way of a file, for a command line is for all eyes."""
    told = home / "conf" / "first-password"
    text = (
        f"-cp {_quoted(f'{lib.as_posix()}/*')}\norg.neo4j.cli.AdminTool dbms set-initial-password {_quoted(password)}\n"
    )
    try:
        with open(os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            out.write(text)
        environment = os.environ | {"NEO4J_HOME": str(home), "NEO4J_CONF": str(home / "conf")}
        done = subprocess.run(
            [java.command, f"@{told}"], env=environment, capture_output=True, text=True, errors="replace", check=False
        )
    finally:
        told.unlink(missing_ok=True)
    if done.returncode:
        _log(home).write_text(done.stdout + done.stderr, encoding="utf-8")
        raise LocalServerError(f"Neo4j did not take its first password: its log is {_log(home)}")


def _start(home: Path, lib: Path, java: Java, release: Release, options: Sequence[str]) -> int:
    lines = [f"-Xmx{HEAP}", *options, *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED)]
    lines += [f"-cp {_quoted(f'{lib.as_posix()}/*')}", release.main]
    lines += [_quoted(f"--home-dir={home.as_posix()}"), _quoted(f"--config-dir={(home / 'conf').as_posix()}")]
    lines.append("--console-mode")
    _arguments_file(home).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return process.start([str(java.command), f"@{_arguments_file(home)}"], _log(home))


def _quoted(text: str) -> str:
    """As Java reads it in a file of arguments."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _wait(home: Path, state: State, pid: int) -> None:
    """Until it answers. Raises ``LocalServerError`` if it ends instead, or takes too long."""
    deadline = time.monotonic() + READY_WITHIN
    while True:
        if not process.runs(pid, _mark(home)):
            raise LocalServerError(f"Neo4j {state.version} did not start{_complaint(home)}: its log is {_log(home)}")
        if _answers(state.http):  # drivers are answered before that
            return
        if time.monotonic() > deadline:
            raise LocalServerError(
                f"Neo4j {state.version} did not answer within {READY_WITHIN:.0f} s: its log is {_log(home)}"
            )
        time.sleep(LOOK_EVERY)


def _answers(port: int) -> bool:
    try:
        # Past any proxy of the environment: this is our own machine.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://{HOST}:{port}/", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


def _complaint(home: Path) -> str:
    """The last error in its log, as a piece of a sentence."""
    lines = _log(home).read_text(encoding="utf-8", errors="replace").splitlines()
    told = [line for line in lines if "Caused by: " in line or "Exception: " in line or " ERROR " in line]
    return f" ({told[-1].strip()})" if told else ""
