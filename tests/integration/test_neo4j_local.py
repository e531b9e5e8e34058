"""A Neo4j of one's own: started, found again, ended, and one clear line for whatever is missing."""

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
from zettel.cli.app import run
from zettel.cli.demo import server as demo
from zettel.errors import InvalidInput, LocalServerError, StoreError
from zettel.graph.neo4j.local import home, jars, javas, process, server

pytestmark = pytest.mark.integration

JAVA_17 = javas.Java(Path("/java/17"), 17)
JAVA_25 = javas.Java(Path("/java/25"), 25)
NEW, OLD = jars.RELEASES


def quietly(step: str, files: int) -> None:
    """No progress to see."""


# -------------------------------------------------------------------------------------------------------- a real one


@pytest.fixture(params=[pytest.param(neo4j_servers.OWN, marks=pytest.mark.own_server)])
def folder(tmp_path: Path) -> Any:
    """A folder with a server's home in it, whose server is ended."""
    if (reason := neo4j_servers.what_is_missing(NEW.line)) is not None:
        pytest.skip(reason)
    place = tmp_path / "my memory"
    yield place
    if place.exists():
        server.down(place)


@pytest.mark.timeout(300)
def test_a_server_from_up_to_down(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import neo4j

    def ask(started: dict[str, Any], password: str, query: str) -> list[Any]:
        with neo4j.GraphDatabase.driver(started["store"], auth=(started["user"], password)) as driver:
            return [row[0] for row in driver.execute_query(query, database_="neo4j").records]

    def say(*arguments: str) -> dict[str, Any]:
        status = run(["neo4j", *arguments, str(folder), "--json"])
        said = capsys.readouterr()
        return {"exit": status, "err": said.err} | (json.loads(said.out) if said.out else {})

    first = say("up", "--version", NEW.line)
    assert (first["exit"], first["already"], first["running"]) == (0, False, True)
    assert "starting Neo4j" in first["err"]
    assert ask(first, first["password"], "CREATE (:Kept) RETURN 1") == [1]
    again = say("up")
    assert (again["already"], again["password"], again["process"]) == (True, None, first["process"])
    assert first["password"] not in "".join(
        path.read_text(encoding="utf-8", errors="replace") for path in folder.rglob("*") if path.is_file()
    ), "it is shown once and kept nowhere"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    refused = say("up", "--bolt-port", "1")
    assert (refused["exit"], refused["err"].count("\n")) == (1, 1)
    assert "with another version or other ports" in refused["err"]
    assert say("status")["process"] == first["process"]
    assert say("down")["ended"] is True
    assert not process.runs(first["process"], str(folder))
    assert say("down")["ended"] is False
    gone = say("status")
    assert (gone["exit"], gone["running"]) == (1, False)

    second = say("up")
    assert (second["version"], second["store"]) == (first["version"], first["store"])
    assert second["password"] is None
    assert ask(second, first["password"], "MATCH (n:Kept) RETURN count(n)") == [1]
    os.kill(second["process"], signal.SIGKILL)  # as a crash would: the file of what runs is wrong now
    while process.runs(second["process"], str(folder)):
        os.waitpid(second["process"], 0)
    assert say("status")["running"] is False
    assert run(["neo4j", "status", str(folder)]) == 1
    assert "is not running" in capsys.readouterr().out

    databases = folder / "data" / "databases"
    databases.rename(folder / "databases")
    databases.write_text("no folder")
    broken = say("up")
    assert broken["exit"] == 1
    line = broken["err"].splitlines()[-1]
    assert "did not start" in line
    log = line.rpartition("see its log ")[2]
    assert "databases" in Path(log).read_text(encoding="utf-8")
    assert say("status")["running"] is False


# ------------------------------------------------------------------------------------------------------ what is needed


def test_the_newest_that_a_java_here_can_run() -> None:
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
def test_major_versions(version: str, major: int | None) -> None:
    assert javas.major_of(version) == major


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str, str], Path]:
    """Makes a program of shell lines."""

    def make(path: str, lines: str) -> Path:
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"#!/bin/sh\n{lines}\n")
        place.chmod(0o755)
        return place

    return make


def test_javas_are_found_everywhere(
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
    found = [(java.home.relative_to(tmp_path).as_posix(), java.major) for java in javas.installed()]
    assert found == [("named", 21), ("path", 17), ("folder/jdk-25", 25)]


def test_no_java_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(javas, "FOLDERS", {})
    monkeypatch.setattr(javas, "EVERYWHERE", ())
    assert run(["neo4j", "up", str(tmp_path / "new")]) == 1
    said = capsys.readouterr().err
    assert "requires Java 17 or 21, and this machine has none" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_no_maven_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("MAVEN_HOME", raising=False)
    with pytest.raises(LocalServerError, match="there is no mvn on the PATH: install Maven, or use docker compose up"):
        jars.fetch(OLD, JAVA_17, quietly, tmp_path)


def test_maven_brings_the_jars_once(
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
    assert [files for _, files in steps] == [0, 1], "jars are counted, not what else Maven reads"
    assert "145 MB" in steps[0][0]
    mvn.write_text("#!/bin/sh\nexit 1\n")
    assert jars.fetch(OLD, JAVA_17, quietly, tmp_path / "cache") == lib
    assert [path.name for path in lib.parent.iterdir() if path.is_dir()] == ["lib"]


def test_maven_that_fails_is_one_line_that_names_its_log(
    script: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mvn = script("bin/mvn", "echo '[ERROR] Unknown host'; echo '[ERROR] more'; exit 1")
    monkeypatch.setenv("PATH", f"{mvn.parent}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(
        LocalServerError, match=r"could not download Neo4j 5\.26\.0: Unknown host; its log is"
    ) as told:
        jars.fetch(OLD, JAVA_17, quietly, tmp_path)
    log = Path(str(told.value).rpartition(" ")[2])
    assert log.read_text() == "[ERROR] Unknown host\n[ERROR] more\n"
    assert jars.fetched(OLD, tmp_path) is None


def test_cache_is_where_the_platform_keeps_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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


def test_ports_that_are_taken() -> None:
    with socket.socket() as taken:
        taken.bind((home.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LocalServerError, match=f"port {port} is in use: choose another --bolt-port"):
            home.choose_ports(port, None, None)
        with pytest.raises(LocalServerError, match=f"port {port} is in use: choose another --http-port"):
            home.choose_ports(None, port, None)
        found = home.choose_ports(None, None, home.ServerState("5.26.0", port, port, None))
        assert len({found.bolt, found.http, port}) == 3
    assert home.choose_ports(port, None, None).bolt == port
    assert home.choose_ports(None, None, home.ServerState("5.26.0", port, port, None)).bolt == port
    with pytest.raises(LocalServerError, match=f"port {port} is in use"):
        home.choose_ports(port, port, None)


# -------------------------------------------------------------------------------------------------------------- folders


def test_folders_that_are_not_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("down", "status"):
        assert run(["neo4j", command, str(tmp_path)]) == 1
        assert "no Neo4j was started from" in capsys.readouterr().err
    (tmp_path / "letter.txt").write_text("Dear Ann")
    with pytest.raises(InvalidInput, match="contains other files"):
        home.make_home(tmp_path)
    (tmp_path / home.STATE).write_text("{")
    with pytest.raises(LocalServerError, match="cannot be read: delete it"):
        server.status(tmp_path)


def test_data_never_goes_to_an_older_release(tmp_path: Path) -> None:
    home.make_home(tmp_path / "new")
    home.write_state(tmp_path / "new", home.ServerState(NEW.version, 7687, 7474, None))
    with pytest.raises(InvalidInput, match=r"Neo4j 5\.26 cannot read the data of Neo4j 2026\.08\.1"):
        server.up(tmp_path / "new", version="5.26")


def test_settings_keep_to_this_machine(tmp_path: Path) -> None:
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


def test_a_process_of_another_name_is_left_alone(tmp_path: Path) -> None:
    """The id in the file may be that of another program by now."""
    home.make_home(tmp_path / "new")
    home.write_state(tmp_path / "new", home.ServerState(OLD.version, 7687, 7474, os.getpid()))
    assert server.status(tmp_path / "new").pid is None
    assert server.down(tmp_path / "new") is False


def test_demo_keeps_the_password_of_its_own_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def up(folder: Path, progress: object) -> server.Started:
        folder.mkdir(exist_ok=True)
        running = server.LocalServer(folder, NEW.version, 7001, 7002, 1)
        already = (folder / demo.PASSWORD).exists() or lost
        return server.Started(running, None if already else "secret-word", already)

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEO4J_URI", raising=False)
    monkeypatch.setattr(server, "up", up)
    lost = False
    expected = demo.Served("neo4j://127.0.0.1:7001", ("neo4j", "secret-word"), "http://127.0.0.1:7002", demo.FOLDER)
    assert demo.served() == demo.served() == expected
    kept = demo.FOLDER / demo.PASSWORD
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    kept.unlink()
    lost = True
    with pytest.raises(StoreError, match="delete that folder and run the demo again"):
        demo.served()


def test_compose_file_pins_the_same_release() -> None:
    compose = (Path(__file__).parents[2] / "docker-compose.yml").read_text(encoding="utf-8")
    assert f"neo4j:${{NEO4J_VERSION:-{NEW.version}-community}}" in compose
    assert '"127.0.0.1:7687:7687"' in compose
