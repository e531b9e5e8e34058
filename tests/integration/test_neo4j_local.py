"""A local Neo4j server: started, found again and stopped, with one-line errors for missing requirements."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import neo4j_servers
from zettel.bench.child_process import server_cpu_seconds
from zettel.bench.server_use import ServerUse
from zettel.cli.app import run
from zettel.cli.demo import server as demo
from zettel.errors import InvalidInput, LocalServerError, StoreError
from zettel.graph.neo4j.local import home, jars, javas, process, server

pytestmark = pytest.mark.integration

JAVA_17 = javas.Java(Path("/java/17"), 17)
JAVA_25 = javas.Java(Path("/java/25"), 25)
NEW, OLD = jars.RELEASES


def no_progress(step: str, files: int) -> None:
    """Ignore progress."""


# -------------------------------------------------------------------------------------------------------- a real server


@pytest.fixture(params=[pytest.param(neo4j_servers.OWN, marks=pytest.mark.own_server)])
def folder(tmp_path: Path) -> Any:
    """Return the home folder of a server; stop that server afterwards."""
    if (reason := neo4j_servers.what_is_missing(NEW.line)) is not None:
        pytest.skip(reason)
    home_folder = tmp_path / "my memory"
    yield home_folder
    if home_folder.exists():
        server.down(home_folder)


@pytest.mark.timeout(300)
def test_a_server_can_be_started_stopped_and_restarted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import neo4j

    def run_query(started: dict[str, Any], password: str, query: str) -> list[Any]:
        with neo4j.GraphDatabase.driver(started["store"], auth=(started["user"], password)) as driver:
            return [row[0] for row in driver.execute_query(query, database_="neo4j").records]

    def run_command(*arguments: str) -> dict[str, Any]:
        status = run(["neo4j", *arguments, str(folder), "--json"])
        output = capsys.readouterr()
        return {"exit": status, "err": output.err} | (json.loads(output.out) if output.out else {})

    first = run_command("up", "--version", NEW.line)
    assert (first["exit"], first["already"], first["running"]) == (0, False, True)
    assert "starting Neo4j" in first["err"]
    assert first["password"].isalnum(), "neo4j-admin takes a password that begins with - for an option"
    assert run_query(first, first["password"], "CREATE (:Stored) RETURN 1") == [1]
    runtime = "CALL dbms.queryJmx('java.lang:type=Runtime') YIELD attributes RETURN attributes.InputArguments.value"
    options = dict(option.partition("=")[::2] for option in run_query(first, first["password"], runtime)[0])
    assert int(options["-Djdk.virtualThreadScheduler.parallelism"]) >= 16, "with two, 2026.08.1 stops on two cores"
    again = run_command("up")
    assert (again["already"], again["password"], again["process"]) == (True, None, first["process"])
    assert first["password"] not in "".join(
        path.read_text(encoding="utf-8", errors="replace") for path in folder.rglob("*") if path.is_file()
    ), "the password is shown once and stored nowhere"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    failed = run_command("up", "--bolt-port", "1")
    assert (failed["exit"], failed["err"].count("\n")) == (2, 1)
    assert "with another version or other ports" in failed["err"]
    assert run_command("status")["process"] == first["process"]
    assert run_command("down")["ended"] is True
    assert not process.runs(first["process"], str(folder))
    assert run_command("down")["ended"] is False
    stopped = run_command("status")
    assert (stopped["exit"], stopped["running"]) == (1, False)

    second = run_command("up")
    assert (second["version"], second["store"]) == (first["version"], first["store"])
    assert second["password"] is None
    assert run_query(second, first["password"], "MATCH (n:Stored) RETURN count(n)") == [1]

    use = ServerUse(folder, second["store"])  # the benchmark restarts it to measure its disk
    worked = server_cpu_seconds(use.pid)
    assert worked is not None
    assert worked > 1
    assert use.disk_bytes() > 100_000
    assert use.pid != second["process"]
    second = run_command("status")
    assert (second["process"], second["running"]) == (use.pid, True)
    assert run_query(first, first["password"], "MATCH (n:Stored) RETURN count(n)") == [1]
    os.kill(second["process"], signal.SIGKILL)  # like a crash: the state file is now wrong
    while process.runs(second["process"], str(folder)):
        os.waitpid(second["process"], 0)
    assert run_command("status")["running"] is False
    assert run(["neo4j", "status", str(folder)]) == 1
    assert "is not running" in capsys.readouterr().out

    databases = folder / "data" / "databases"
    databases.rename(folder / "databases")
    databases.write_text("no folder")
    broken = run_command("up")
    assert broken["exit"] == 1
    line = broken["err"].splitlines()[-1]
    assert "did not start" in line
    log = line.rpartition("see its log ")[2]
    assert "databases" in Path(log).read_text(encoding="utf-8")
    assert run_command("status")["running"] is False


# ------------------------------------------------------------------------------------------------------ requirements


def test_the_newest_release_for_the_installed_java_is_chosen() -> None:
    assert jars.choose(None, [JAVA_17, JAVA_25]) == (NEW, JAVA_25)
    assert jars.choose(None, [JAVA_17]) == (OLD, JAVA_17)
    assert jars.choose("5.26", [JAVA_25, JAVA_17]) == (OLD, JAVA_17)
    assert jars.choose("5.26.0", [JAVA_17]) == (OLD, JAVA_17)
    with pytest.raises(LocalServerError, match="requires Java 21 or 25, and this machine has 17"):
        jars.choose("2026", [JAVA_17])
    with pytest.raises(LocalServerError, match=r"5\.26\.0 requires Java 17 or 21, and this machine has none"):
        jars.choose(None, [])
    with pytest.raises(InvalidInput, match="zettel cannot start Neo4j 4"):
        jars.choose("4", [JAVA_17])


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("1.8.0_402", 8), ("25", 25), ("26-ea", 26), ("unknown", None)]
)
def test_major_versions_are_parsed(version: str, major: int | None) -> None:
    assert javas.major_of(version) == major


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str, str], Path]:
    """Return a function that writes an executable shell script."""

    def make(path: str, lines: str) -> Path:
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"#!/bin/sh\n{lines}\n")
        place.chmod(0o755)
        return place

    return make


def test_javas_are_found_in_all_places(
    script: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script("named/bin/java", "exit 1")
    (tmp_path / "named" / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.2"\n')
    on_path = script("path/bin/java", "echo 'openjdk version \"17.0.1\" 2021-10-19' >&2")
    script("folder/jdk-25/bin/java", "echo 'openjdk version \"25\" 2025-09-16' >&2")
    script("folder/broken/bin/java", "echo no >&2; exit 1")
    (tmp_path / "folder" / "empty").mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "named"))
    monkeypatch.setenv("PATH", f"{on_path.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(javas, "FOLDERS", {sys.platform: (str(tmp_path / "folder" / "*"), str(tmp_path / "named"))})
    monkeypatch.setattr(javas, "EVERYWHERE", ())
    javas_found = [(java.home.relative_to(tmp_path).as_posix(), java.major) for java in javas.installed()]
    assert javas_found == [("named", 21), ("path", 17), ("folder/jdk-25", 25)]


def test_a_missing_java_is_a_one_line_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(javas, "FOLDERS", {})
    monkeypatch.setattr(javas, "EVERYWHERE", ())
    assert run(["neo4j", "up", str(tmp_path / "new")]) == 1
    errors = capsys.readouterr().err
    assert "requires Java 17 or 21, and this machine has none" in errors
    assert errors.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_a_missing_maven_is_a_one_line_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("MAVEN_HOME", raising=False)
    with pytest.raises(LocalServerError, match="there is no mvn on the PATH: install Maven, or use docker compose up"):
        jars.fetch(OLD, JAVA_17, no_progress, tmp_path)


def test_maven_downloads_the_jars_once(
    script: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mvn = script(
        "bin/mvn",
        'grep -q neo4j-server pom.xml || exit 3\nmkdir lib && touch lib/a.jar "lib/$(basename "$JAVA_HOME").jar"\n'
        "echo '[INFO] Downloaded from central: https://example/a.jar (1 kB)'\n"
        "echo '[INFO] Downloaded from central: https://example/b.pom (1 kB)'",
    )
    monkeypatch.setenv("PATH", f"{mvn.parent}{os.pathsep}{os.environ['PATH']}")
    steps: list[tuple[str, int]] = []
    lib = jars.fetch(OLD, JAVA_17, lambda step, files: steps.append((step, files)), tmp_path / "cache")
    assert {path.name for path in lib.iterdir()} == {"a.jar", "17.jar"}
    assert [files for _, files in steps] == [0, 1], "only jars are counted"
    assert "145 MB" in steps[0][0]
    mvn.write_text("#!/bin/sh\nexit 1\n")
    assert jars.fetch(OLD, JAVA_17, no_progress, tmp_path / "cache") == lib
    assert [path.name for path in lib.parent.iterdir() if path.is_dir()] == ["lib"]


def test_the_error_of_maven_names_its_log(
    script: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mvn = script("bin/mvn", "echo '[ERROR] Unknown host'; echo '[ERROR] more'; exit 1")
    monkeypatch.setenv("PATH", f"{mvn.parent}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(
        LocalServerError, match=r"could not download Neo4j 5\.26\.0: Unknown host; its log is"
    ) as error_info:
        jars.fetch(OLD, JAVA_17, no_progress, tmp_path)
    log = Path(str(error_info.value).rpartition(" ")[2])
    assert log.read_text() == "[ERROR] Unknown host\n[ERROR] more\n"
    assert jars.fetched(OLD, tmp_path) is None


def test_the_cache_folder_follows_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert jars.cache_folder() == tmp_path / "zettel"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert jars.cache_folder() == Path.home() / ".cache" / "zettel"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert jars.cache_folder() == Path.home() / "Library" / "Caches" / "zettel"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert jars.cache_folder() == tmp_path / "zettel"


# ---------------------------------------------------------------------------------------------------------------- ports


def test_ports_in_use_are_errors() -> None:
    with socket.socket() as listener:
        listener.bind((home.HOST, 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(LocalServerError, match=f"port {port} is in use: choose another --bolt-port"):
            home.choose_ports(port, None, None)
        with pytest.raises(LocalServerError, match=f"port {port} is in use: choose another --http-port"):
            home.choose_ports(None, port, None)
        ports = home.choose_ports(None, None, home.ServerState("5.26.0", port, port, None))
        assert len({ports.bolt, ports.http, port}) == 3
    assert home.choose_ports(port, None, None).bolt == port
    assert home.choose_ports(None, None, home.ServerState("5.26.0", port, port, None)).bolt == port
    with pytest.raises(LocalServerError, match=f"port {port} is in use"):
        home.choose_ports(port, port, None)


# -------------------------------------------------------------------------------------------------------------- folders


def test_foreign_folders_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("down", "status"):
        assert run(["neo4j", command, str(tmp_path)]) == 1
        assert "no Neo4j was started from" in capsys.readouterr().err
    (tmp_path / "letter.txt").write_text("Dear Ann")
    with pytest.raises(InvalidInput, match="contains other files"):
        home.make_home(tmp_path)
    for command in ("down", "status"):
        assert run(["neo4j", command, str(tmp_path / "letter.txt")]) == 1
        assert "no Neo4j was started from" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="is a file: name a new folder"):
        home.make_home(tmp_path / "letter.txt")
    (tmp_path / home.STATE).write_text("{")
    with pytest.raises(LocalServerError, match="cannot be read: delete it"):
        server.status(tmp_path)


def test_an_older_release_is_refused_for_newer_data(tmp_path: Path) -> None:
    home.make_home(tmp_path / "new")
    home.write_state(tmp_path / "new", home.ServerState(NEW.version, 7687, 7474, None))
    with pytest.raises(InvalidInput, match=r"Neo4j 5\.26 cannot read the data of Neo4j 2026\.08\.1"):
        server.up(tmp_path / "new", version="5.26")


def test_the_server_listens_only_on_this_machine(tmp_path: Path) -> None:
    home.make_home(tmp_path / "new")
    home.write_settings(tmp_path / "new", home.Ports(7001, 7002))
    settings = dict(
        line.split("=") for line in (tmp_path / "new" / "conf" / "neo4j.conf").read_text().splitlines() if "=" in line
    )
    assert {value for name, value in settings.items() if name.endswith("_address")} == {
        "127.0.0.1:7001",
        "127.0.0.1:7002",
    }
    assert settings["dbms.usage_report.enabled"] == settings["client.allow_telemetry"] == "false"


def test_a_process_of_another_program_is_not_stopped(tmp_path: Path) -> None:
    """The process id in the state file may belong to another program."""
    home.make_home(tmp_path / "new")
    home.write_state(tmp_path / "new", home.ServerState(OLD.version, 7687, 7474, os.getpid()))
    assert server.status(tmp_path / "new").pid is None
    assert server.down(tmp_path / "new") is False


def test_the_demo_stores_the_password_of_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(folder: Path, progress: object) -> server.Started:
        folder.mkdir(exist_ok=True)
        local_server = server.LocalServer(folder, NEW.version, 7001, 7002, 1)
        is_known = (folder / demo.PASSWORD).exists() or is_lost
        return server.Started(local_server, None if is_known else "secret-word", is_known)

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEO4J_URI", raising=False)
    monkeypatch.setattr(server, "up", start)
    is_lost = False
    expected = demo.Served("neo4j://127.0.0.1:7001", ("neo4j", "secret-word"), "http://127.0.0.1:7002", demo.FOLDER)
    assert demo.served() == demo.served() == expected
    password_file = demo.FOLDER / demo.PASSWORD
    assert stat.S_IMODE(password_file.stat().st_mode) == 0o600
    password_file.unlink()
    is_lost = True
    with pytest.raises(StoreError, match="delete that folder and run the demo again"):
        demo.served()


def test_the_compose_file_pins_the_same_release() -> None:
    compose = (Path(__file__).parents[2] / "docker-compose.yml").read_text(encoding="utf-8")
    assert f"neo4j:${{NEO4J_VERSION:-{NEW.version}-community}}" in compose
    assert '"127.0.0.1:7687:7687"' in compose
