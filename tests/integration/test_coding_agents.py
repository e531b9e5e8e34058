"""Coding agents remember: scripted sessions through the real hook protocols, with the service in its own process."""

from __future__ import annotations

import getpass
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.coding_agent import SETTINGS, CodingAgent, end_services, hook_services
from tests.integration.command import Zettel
from zettel import Memory, Scope
from zettel.integrations.coding_agents import hook, service
from zettel.transcripts.projects import project_name

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

FACT = "The staging database listens on port 5544, not 5432."
QUESTION = "Which port does the staging database use?"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    with hook_services(folder):
        yield folder


def project(home: Path, name: str = "tide-api") -> Path:
    folder = home / name
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    return folder


def connect(zettel: Zettel, *arguments: str) -> None:
    assert zettel("connect", *arguments, "--yes").status == 0


def eventually(text: Callable[[], str], expected: str) -> str:
    """Call until the text contains what is expected: turns are stored in the background."""
    until = time.monotonic() + 60
    while True:
        found = text()
        if expected in found or time.monotonic() > until:
            assert expected in found
            return found
        time.sleep(0.2)


def stored(home: Path, **scope: str) -> list[str]:
    """Return the turns in the store of the hooks."""
    named = Scope(**{"user": getpass.getuser(), **scope})
    with Memory(home / ".zettel" / "agents.db") as memory:
        return [event.content for event, _ in memory.dump(scope=named)]


@pytest.mark.parametrize("program", SETTINGS)
def test_a_fact_of_one_session_is_in_the_context_of_the_next(program: str, home: Path, zettel: Zettel) -> None:
    connect(zettel, program)  # the only command of the user
    here = project(home)
    first = CodingAgent(program, home, here, "session-1")
    assert first.start() == "", "there is nothing to recall yet"
    assert first.prompt(f"{FACT} Please fix the tests.") == ""
    first.reply("The tests use port 5544 now.")

    context = eventually(lambda: CodingAgent(program, home, here, "session-2").start(), "port 5544")
    assert context.startswith("<zettel-memory>\nQuoted from the memory")
    assert "not an instruction" in context

    third = CodingAgent(program, home, here, "session-3")
    third.start()
    if program != "cursor":  # its hooks add nothing to a prompt
        eventually(lambda: third.recalled(QUESTION), "listens on port 5544")  # a busy machine may take too long
        assert third.recalled("Make the sidebar collapsible on small screens.") == ""
    third.prompt(QUESTION)
    third.reply("It is 5544.")
    eventually(lambda: CodingAgent(program, home, here, "session-4").start(), "It is 5544.")

    end_services(home)
    texts = stored(home, agent=project_name(str(here)))
    assert sum("listens on port 5544" in text for text in texts) == 1, "recalled memory is not stored again"
    assert not any("zettel-memory" in text for text in texts)
    assert len(texts) == len(set(texts))


def test_two_projects_at_once_do_not_leak(home: Path, zettel: Zettel) -> None:
    connect(zettel, "claude-code")
    ours = CodingAgent("claude-code", home, project(home, "one/app"), "session-1")
    theirs = CodingAgent("claude-code", home, project(home, "two/app"), "session-2")
    ours.start()
    for nth in range(5):
        ours.prompt(f"Our secret word number {nth} is heron{nth}.")
        theirs.prompt(f"Their secret word number {nth} is otter{nth}.")
        ours.reply("Noted, heron.")
        theirs.reply("Noted, otter.")
    mine = eventually(lambda: CodingAgent("claude-code", home, ours.project, "session-3").start(), "heron4")
    other = eventually(lambda: CodingAgent("claude-code", home, theirs.project, "session-4").start(), "otter4")
    assert "otter" not in mine
    assert "heron" not in other
    for here, word in ((ours, "otter"), (theirs, "heron")):
        agent = CodingAgent("claude-code", home, here.project, "session-5")
        assert word not in agent.prompt("What is the secret word number 3?")


def test_shared_memory_is_one_for_all_projects(home: Path, zettel: Zettel) -> None:
    connect(zettel, "codex", "--shared", "--user", "ebba")
    first = CodingAgent("codex", home, project(home, "one"), "session-1")
    first.start()
    first.prompt(FACT)
    first.reply("Noted.")
    eventually(lambda: CodingAgent("codex", home, project(home, "two"), "session-2").start(), "5544")
    end_services(home)
    assert FACT in stored(home, user="ebba")


def test_secrets_are_redacted(home: Path, zettel: Zettel) -> None:
    connect(zettel, "gemini-cli")
    agent = CodingAgent("gemini-cli", home, project(home), "session-1")
    agent.start()
    agent.prompt(f"Push with the token {TOKEN} to the mirror, please.")
    agent.reply(f"Pushed with {TOKEN}.")
    eventually(lambda: CodingAgent("gemini-cli", home, agent.project, "session-2").start(), "to the mirror")
    end_services(home)
    for path in (home / ".zettel").rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes()


def test_a_killed_service_loses_nothing(home: Path, zettel: Zettel) -> None:
    connect(zettel, "claude-code")
    agent = CodingAgent("claude-code", home, project(home), "session-1")
    agent.start()
    agent.prompt(FACT)
    end_services(home)
    agent.reply("Noted.")  # starts another service, which handles the event
    eventually(lambda: CodingAgent("claude-code", home, agent.project, "session-2").start(), "5544")


def test_hooks_and_imports_store_a_turn_once(home: Path, zettel: Zettel) -> None:
    connect(zettel, "claude-code")
    agent = CodingAgent("claude-code", home, project(home), "session-1")
    agent.start()
    agent.prompt(FACT)
    agent.reply("Noted.")
    eventually(lambda: CodingAgent("claude-code", home, agent.project, "session-2").start(), "5544")
    end_services(home)
    report = zettel(
        *("import", str(agent.transcript), "--scope-by", "project", "--user", getpass.getuser()),
        *("--store", str(home / ".zettel" / "agents.db"), "--json"),
    ).json()
    assert (report["added"], report["existing"]) == (0, 2)


class TestTrouble:
    """In all cases the exit status is 0 and the agent goes on; ``CodingAgent`` checks the status."""

    def run(self, home: Path, *arguments: str, data: bytes = b"{}") -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-I", "-S", hook.__file__, *arguments]
        env = {**os.environ, "HOME": str(home)}
        done = subprocess.run(command, input=data, capture_output=True, env=env, cwd=home, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (0, b"")
        return done

    def test_problems_are_lines_on_stderr_and_in_the_log(self, home: Path) -> None:
        here = json.dumps({"cwd": str(home), "session_id": "s"}).encode()
        store = str(home / "agents.db")
        self.run(home, "claude-code", "SessionStart", "--store", store, data=here)
        (home / "file").write_text("no store")
        for arguments, data, problem in [
            (("nosuch", "SessionStart"), here, b"zettel: zettel knows no coding agent 'nosuch'"),
            (("claude-code", "Nosuch"), here, b"zettel: Claude Code has no event 'Nosuch'"),
            (("claude-code", "SessionStart"), b"{", b"zettel: SessionStart: expected JSON on stdin"),
            (("claude-code", "SessionStart"), b"[]", b"zettel: SessionStart: expected a JSON object"),
            (("claude-code", "SessionStart"), b"{}", b"zettel: SessionStart: the agent names no folder"),
            (("claude-code", "SessionStart", "--nosuch"), here, b"zettel: zettel hook: unrecognized"),
            (("claude-code",), here, b"zettel: zettel hook: the following arguments are required: event"),
            (("claude-code", "SessionStart", "--store", str(home / "file")), here, b"zettel: "),
            (("claude-code", "SessionStart", "--store", str(home / "file" / "x.db")), here, b"zettel: "),
        ]:  # fmt: skip
            err = self.run(home, *arguments, data=data).stderr
            assert err.startswith(problem), err
            assert err.count(b"\n") == 1
        log = (home / ".zettel" / "hooks" / hook.LOG).read_text()
        assert "expected JSON on stdin" in log
        assert "Traceback" not in log

    def test_a_missing_transcript_is_logged(self, home: Path) -> None:
        store = ("--store", str(home / "agents.db"))
        here = {"cwd": str(home), "session_id": "s", "transcript_path": str(home / "missing.jsonl")}
        self.run(home, "claude-code", "SessionStart", *store, data=json.dumps(here).encode())
        assert self.run(home, "claude-code", "Stop", *store, data=json.dumps(here).encode()).stderr == b""
        eventually((home / ".zettel" / "hooks" / hook.LOG).read_text, "missing.jsonl")

    def test_a_prompt_without_a_service_does_not_wait_for_one(self, home: Path) -> None:
        here = json.dumps({"cwd": str(home), "session_id": "s", "prompt": QUESTION}).encode()
        began = time.perf_counter()
        self.run(home, "claude-code", "UserPromptSubmit", "--store", str(home / "agents.db"), data=here)
        assert time.perf_counter() - began < 5, "starting a service takes longer, but not on this machine's worst day"
        eventually(lambda: " ".join(path.name for path in (home / ".zettel" / "hooks").iterdir()), ".sock")

    def test_only_the_user_may_use_the_service(self, home: Path) -> None:
        here = json.dumps({"cwd": str(home), "session_id": "s"}).encode()
        self.run(home, "claude-code", "SessionStart", data=here)
        folder = home / ".zettel" / "hooks"
        assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE((home / ".zettel").stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
        end_services(home)
        folder.chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-m", hook.SERVICE, "x.sock"], cwd=folder, input=b"", capture_output=True, check=False
        )
        assert b"must belong to you alone" in done.stderr
        assert done.returncode != 0


def test_an_idle_service_ends(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home / ".zettel" / "hooks"
    folder.mkdir(parents=True, mode=0o700)
    (home / ".zettel").chmod(0o700)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(service, "IDLE_SECONDS", 0.2)
    monkeypatch.setattr(sys, "argv", ["service", "x.sock"])
    request = repr((["claude-code", "SessionStart", "--store", str(home / "a.db")], str(home), b"{}")).encode()
    with (home / "request").open("wb+") as stdin:
        stdin.write(request)
        stdin.seek(0)
        monkeypatch.setattr(sys, "stdin", open(stdin.fileno(), closefd=False))  # noqa: SIM115
        assert service.main() == 0
    assert (home / "a.db").exists()
    assert not (folder / "x.sock").exists()
