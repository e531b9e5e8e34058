"""Start, stop and status of a local Neo4j in one folder."""

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
    ServerState,
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
"""Random bytes in a password: 24 characters in hexadecimal, so that none begins with ``-`` as an option does."""
HEAP = "1g"
"""Java's heap; the page cache comes on top."""
CARRIERS = 16
"""Least number of threads that carry Java's virtual threads; by default, it is the number of cores. On two cores and
Java 25, Neo4j 2026.08.1 stopped for ever: two samplings of indexes used both, and waited for a lock of a third."""
START_SECONDS = 180.0
"""Timeout of a start, which takes six seconds on an idle laptop, and much longer on a busy one."""
POLL_SECONDS = 0.2
OPEN_PACKAGES = ("java.base/java.nio", "java.base/java.io", "java.base/sun.nio.ch")
"""Java packages that Neo4j requires access to."""


@dataclass(frozen=True)
class LocalServer:
    """A server's folder and addresses. ``pid`` is None if it does not run."""

    home: Path
    version: str
    bolt: int
    http: int
    pid: int | None

    @property
    def url(self) -> str:
        """The address for ``Memory``."""
        return f"neo4j://{HOST}:{self.bolt}"

    @property
    def browser(self) -> str:
        """The address of Neo4j Browser, with the login except for the password."""
        return f"http://{HOST}:{self.http}/browser/?dbms=neo4j://{USER}@{HOST}:{self.bolt}"

    @property
    def log(self) -> Path:
        return _log(self.home)


@dataclass(frozen=True)
class Started:
    """A running server. ``password`` is None unless it is new; ``already`` is true if the server ran before."""

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

    ``version`` is a release or its line (``5.26``), by default that of the folder's data, else the newest that an
    installed Java can run. ``cache`` is the folder of the jars, by default the user's cache. ``settings`` are Neo4j
    settings by name, and ``java_options`` go to Java, both for this start only.
    Raises ``InvalidInput``, ``LocalServerError``.
    """
    home = Path(home).expanduser().resolve()
    last = read_state(home)
    if last is not None and last.pid is not None and process.runs(last.pid, _mark(home)):
        _require_same(home, last, version, bolt, http)
        return Started(_server(home, last), None, already=True)
    release, java = choose(_version(home, version, last))
    ports = choose_ports(bolt, http, last)
    lib = fetch(release, java, progress, cache)
    make_home(home)
    write_settings(home, ports, settings or {})
    password = None if last else secrets.token_hex(PASSWORD_BYTES)
    if password is not None:
        _set_password(home, lib, java, password)
    progress(f"starting Neo4j {release.version}", 0)
    pid = _start(home, lib, java, release, java_options)
    state = ServerState(release.version, ports.bolt, ports.http, pid)
    try:
        write_state(home, state)
        _wait(home, state, pid)
    except BaseException:  # also after an interrupt: an unknown server must not keep running
        process.end(pid, _mark(home), _log(home))
        if last is None:
            forget(home)
        else:
            write_state(home, replace(state, pid=None))
        raise
    return Started(_server(home, state), password, already=False)


def down(home: str | Path) -> bool:
    """Stop the server of a folder and wait for its end; False if none ran. Raises ``LocalServerError``."""
    home = Path(home).expanduser().resolve()
    state = _require_state(home)
    ran = state.pid is not None and process.runs(state.pid, _mark(home))
    if state.pid is not None:
        process.end(state.pid, _mark(home), _log(home))
        write_state(home, replace(state, pid=None))
    return ran


def status(home: str | Path) -> LocalServer:
    """Return the server of a folder. Raises ``LocalServerError`` for a folder that never had one."""
    home = Path(home).expanduser().resolve()
    state = _require_state(home)
    if state.pid is not None and not process.runs(state.pid, _mark(home)):
        state = replace(state, pid=None)
    return _server(home, state)


def _require_state(home: Path) -> ServerState:
    state = read_state(home)
    if state is None:
        raise LocalServerError(f"no Neo4j was started from {home}: start one with zettel neo4j up")
    return state


def _server(home: Path, state: ServerState) -> LocalServer:
    return LocalServer(home, state.version, state.bolt, state.http, state.pid)


def _version(home: Path, version: str | None, last: ServerState | None) -> str | None:
    """Return the version to start. Raises ``InvalidInput`` if it is older than that of the data."""
    if last is None or version is None:
        return last.version if last else version
    newest_first = [release.version for release in RELEASES]
    if newest_first.index(named(version).version) > newest_first.index(named(last.version).version):
        raise InvalidInput(f"Neo4j {version} cannot read the data of Neo4j {last.version} in {home}: name a new folder")
    return version


def _require_same(home: Path, running: ServerState, version: str | None, bolt: int | None, http: int | None) -> None:
    """Raise ``InvalidInput`` if the running server has another version or other ports."""
    release = running.version if version is None else named(version).version
    if (release, bolt or running.bolt, http or running.http) != (running.version, running.bolt, running.http):
        raise InvalidInput(
            f"Neo4j {running.version} already runs from {home} with another version or other ports: "
            "stop it with zettel neo4j down"
        )


def _log(home: Path) -> Path:
    return home / "logs" / "console.log"


def _arguments_file(home: Path) -> Path:
    return home / "conf" / "java-arguments"


def _mark(home: Path) -> str:
    """Return the text that only the command line of this folder's server contains."""
    return f"@{_arguments_file(home)}"


def _set_password(home: Path, lib: Path, java: Java, password: str) -> None:
    """Set the password before the first start, through a file: other users can read command lines."""
    path = home / "conf" / "first-password"
    text = (
        f"-cp {_quoted(f'{lib.as_posix()}/*')}\norg.neo4j.cli.AdminTool dbms set-initial-password {_quoted(password)}\n"
    )
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            out.write(text)
        environment = os.environ | {"NEO4J_HOME": str(home), "NEO4J_CONF": str(home / "conf")}
        done = subprocess.run(
            [java.command, f"@{path}"], env=environment, capture_output=True, text=True, errors="replace", check=False
        )
    finally:
        path.unlink(missing_ok=True)
    if done.returncode:
        _log(home).write_text(done.stdout + done.stderr, encoding="utf-8")
        raise LocalServerError(f"Neo4j refused its first password: see its log {_log(home)}")


def _start(home: Path, lib: Path, java: Java, release: Release, options: Sequence[str]) -> int:
    carriers = max(CARRIERS, os.cpu_count() or 1)
    lines = [f"-Xmx{HEAP}", f"-Djdk.virtualThreadScheduler.parallelism={carriers}", *options]
    lines += [f"--add-opens={package}=ALL-UNNAMED" for package in OPEN_PACKAGES]
    lines += [f"-cp {_quoted(f'{lib.as_posix()}/*')}", release.main]
    lines += [_quoted(f"--home-dir={home.as_posix()}"), _quoted(f"--config-dir={(home / 'conf').as_posix()}")]
    lines.append("--console-mode")
    _arguments_file(home).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return process.start([str(java.command), f"@{_arguments_file(home)}"], _log(home))


def _quoted(text: str) -> str:
    """Quote an argument for a Java arguments file."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _wait(home: Path, state: ServerState, pid: int) -> None:
    """Wait until the server answers. Raises ``LocalServerError`` if it ends or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        if not process.runs(pid, _mark(home)):
            raise LocalServerError(f"Neo4j {state.version} did not start{_last_error(home)}: see its log {_log(home)}")
        if _answers(state.http):  # the Bolt port opens earlier
            return
        if time.monotonic() > deadline:
            raise LocalServerError(
                f"Neo4j {state.version} did not answer within {START_SECONDS:.0f} s: see its log {_log(home)}"
            )
        time.sleep(POLL_SECONDS)


def _answers(port: int) -> bool:
    try:
        # Without the proxies of the environment: this is the local machine.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://{HOST}:{port}/", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


def _last_error(home: Path) -> str:
    """Return the last error of the log in parentheses, or "" without one."""
    lines = _log(home).read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line for line in lines if "Caused by: " in line or "Exception: " in line or " ERROR " in line]
    return f" ({errors[-1].strip()})" if errors else ""
