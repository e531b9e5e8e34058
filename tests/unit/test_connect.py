"""The changes that connect and disconnect make to the settings of coding agents."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from zettel.errors import InvalidInput
from zettel.integrations.coding_agents import hook
from zettel.integrations.coding_agents.connect import planned
from zettel.integrations.coding_agents.protocols import AGENTS, CLAUDE_CODE, CODEX, CURSOR, GEMINI_CLI, Agent

OPTIONS = ["--store", "/home/ebba/my agents.db"]
_STOP = '{"hooks": [{"type": "command", "command": "say"}]}'
OTHERS = f'{{\n  "theme": "dark",\n  "hooks": {{\n    "Stop": [\n      {_STOP}\n    ]\n  }}\n}}\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def apply(agent: Agent, options: list[str] | None, project: Path | None = None, agents_md: Path | None = None) -> int:
    changes = planned(agent, options, project=project, agents_md=agents_md)
    for change in changes:
        assert change.diff().startswith("--- ")
        change.apply()
    return len(changes)


def settings_file(agent: Agent) -> str:
    return {"claude-code": ".claude/settings.json", "gemini-cli": ".gemini/settings.json"}.get(
        agent.name, f".{agent.name}/hooks.json"
    )


@pytest.mark.parametrize("agent", AGENTS.values(), ids=list(AGENTS))
class TestConnect:
    def test_new_settings_are_created_and_deleted(self, agent: Agent, home: Path) -> None:
        assert apply(agent, OPTIONS) == 2
        assert files(home).keys() == {
            settings_file(agent),
            f"{Path(settings_file(agent)).parent}/skills/zettel/SKILL.md",
        }
        assert apply(agent, OPTIONS) == 0, "connecting again changes nothing"
        assert apply(agent, None) == 2
        assert files(home) == {}
        assert apply(agent, None) == 0

    def test_other_settings_stay_as_they_are(self, agent: Agent, home: Path) -> None:
        path = home / settings_file(agent)
        path.parent.mkdir()
        text = OTHERS.replace("{\n", '{\n  "version": 1,\n', 1) if agent is CURSOR else OTHERS
        path.write_text(text)
        path.chmod(0o600)
        apply(agent, OPTIONS)
        data = json.loads(path.read_text())
        assert data["theme"] == "dark"
        assert data["hooks"]["Stop"][0] == {"hooks": [{"type": "command", "command": "say"}]}
        assert path.stat().st_mode & 0o777 == 0o600
        apply(agent, None)
        assert path.read_text() == text

    def test_other_options_replace_the_hooks(self, agent: Agent, home: Path) -> None:
        apply(agent, OPTIONS)
        apply(agent, [*OPTIONS, "--shared"])
        text = (home / settings_file(agent)).read_text()
        assert text.count("hook.py") == text.count("--shared") == len(agent.events)
        apply(agent, None)
        assert files(home) == {}

    def test_invalid_settings_stay_untouched(self, agent: Agent, home: Path) -> None:
        path = home / settings_file(agent)
        path.parent.mkdir()
        for content in (b'{"hooks": [', b'{"hooks": []}', b"[]", b"\xff\xfe{"):
            path.write_bytes(content)
            with pytest.raises(InvalidInput, match=r"nothing was changed$") as raised:
                planned(agent, OPTIONS)
            assert str(path) in str(raised.value)
            assert path.read_bytes() == content


def test_the_hooks_of_each_event_run_the_hook_program(home: Path) -> None:
    for agent in (CLAUDE_CODE, CODEX, GEMINI_CLI):
        apply(agent, OPTIONS)
        hooks = json.loads((home / settings_file(agent)).read_text())["hooks"]
        assert hooks.keys() == agent.events.keys()
        for event, ((entry,),) in ((event, [found["hooks"] for found in hooks[event]]) for event in hooks):
            assert entry["type"] == "command"
            assert shlex.split(entry["command"]) == [
                *(sys.executable, "-I", "-S", hook.__file__, agent.name, event), *OPTIONS
            ]  # fmt: skip
            assert entry["timeout"] == (15_000 if agent is GEMINI_CLI else 15)


def test_settings_of_a_project(home: Path) -> None:
    project = home / "project"
    apply(CLAUDE_CODE, OPTIONS, project)
    assert ".claude/settings.local.json" in files(project), "paths of this machine are not shared"
    assert not (home / ".claude").exists()
    apply(CLAUDE_CODE, None, project)
    assert files(project) == {}


def test_an_environment_variable_moves_the_settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(home / "elsewhere"))
    apply(CODEX, OPTIONS)
    assert "hooks.json" in files(home / "elsewhere")


def test_a_link_to_settings_stays_a_link(home: Path) -> None:
    (home / "dotfiles").mkdir()
    (home / "dotfiles" / "settings.json").write_text(OTHERS)
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").symlink_to(home / "dotfiles" / "settings.json")
    apply(CLAUDE_CODE, OPTIONS)
    assert (home / ".claude" / "settings.json").is_symlink()
    assert "hook.py" in (home / "dotfiles" / "settings.json").read_text()


@pytest.mark.parametrize("text", [None, "", "# Rules\n\nUse tabs.\n", "# Rules without an end"])
def test_a_section_in_agents_md(home: Path, text: str | None) -> None:
    path = home / "AGENTS.md"
    if text is not None:
        path.write_text(text)
    apply(CURSOR, OPTIONS, agents_md=path)
    assert path.read_text().startswith(text or "<!-- zettel -->")
    assert "## Memory" in path.read_text()
    assert apply(CURSOR, OPTIONS, agents_md=path) == 0
    apply(CURSOR, None, agents_md=path)
    assert (path.read_text() if path.exists() else None) == (text or None)


def test_settings_that_changed_meanwhile_are_not_overwritten(home: Path) -> None:
    change, _ = planned(CLAUDE_CODE, OPTIONS)
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text(OTHERS)
    with pytest.raises(InvalidInput, match="was changed meanwhile"):
        change.apply()
