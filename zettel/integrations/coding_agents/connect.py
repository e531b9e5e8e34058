"""Installs the hooks and the skill in the settings of a coding agent, and removes them.

``planned`` returns the changes without making them, so that a person can see and refuse them. Settings are edited as
text (``json_text``): everything else in a file stays as it is.
"""

from __future__ import annotations

import difflib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from zettel.errors import InvalidInput

from . import hook, json_text
from .protocols import CLAUDE_CODE, CODEX, CURSOR, GEMINI_CLI, Agent

SKILL, SECTION_FILE = "SKILL.md", "agents_section.md"
HOOKS = "hooks"
TIMEOUT = 15
"""Seconds after which an agent gives a hook up; the hook itself gives up earlier."""
SECTION = ("<!-- zettel -->", "<!-- /zettel -->")
"""Lines around the section in AGENTS.md."""

_MARKS = ("coding_agents/hook.py", "coding_agents\\hook.py", "zettel hook ")
_ENTRY_VERSION = 1  # of Cursor's hooks.json


class Places(NamedTuple):
    """Where an agent reads settings: its folder in the home folder or in a project, and the files in it."""

    folder: str
    settings: str
    project_settings: str
    variable: str | None = None
    """The environment variable that replaces the folder in the home folder."""


PLACES = {
    # Settings of a project that are not shared, because commands contain paths of this machine.
    CLAUDE_CODE.name: Places(".claude", "settings.json", "settings.local.json", "CLAUDE_CONFIG_DIR"),
    CODEX.name: Places(".codex", "hooks.json", "hooks.json", "CODEX_HOME"),
    GEMINI_CLI.name: Places(".gemini", "settings.json", "settings.json"),
    CURSOR.name: Places(".cursor", "hooks.json", "hooks.json"),
}


class Change(NamedTuple):
    """A change of one file; None as text means that the file does not exist."""

    path: Path
    before: str | None
    after: str | None

    def diff(self) -> str:
        """Return the change as a unified diff; "" if nothing changes."""
        before, after = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        names = (str(self.path) if text is not None else "/dev/null" for text in (self.before, self.after))
        lines = difflib.unified_diff(before, after, next(names), next(names))
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def apply(self) -> None:
        """Write the file, or delete it. Raises ``OSError``, and ``InvalidInput`` if it was changed meanwhile."""
        if _read(self.path) != self.before:
            raise InvalidInput(f"{self.path} was changed meanwhile: run the command again")
        target = Path(os.path.realpath(self.path))  # a link to a file elsewhere stays a link
        if self.after is None:
            target.unlink()
            if target.name == SKILL:
                with suppress(OSError):  # other files are in them
                    target.parent.rmdir()
                    target.parent.parent.rmdir()
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
        number, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(number, "w", encoding="utf-8", newline="") as file:
                file.write(self.after)
            os.chmod(name, mode)
            os.replace(name, target)
        except OSError:
            os.unlink(name)
            raise


def planned(
    agent: Agent, options: Sequence[str] | None, *, project: Path | None = None, agents_md: Path | None = None
) -> list[Change]:
    """Return the changes that connect an agent with the hook ``options``, or disconnect it with None.

    ``project`` selects the settings of a project instead of the user's. ``agents_md`` is a file that gets the section
    about the memory. Raises ``InvalidInput`` for settings that cannot be read, ``OSError``.
    """
    places = PLACES[agent.name]
    home = Path.home() / places.folder
    if places.variable and os.environ.get(places.variable):
        home = Path(os.environ[places.variable])
    folder = project / places.folder if project else home
    settings = folder / (places.project_settings if project else places.settings)
    skill = folder / "skills" / "zettel" / SKILL
    changes = [_settings_change(settings, agent, options), _skill_change(skill, is_installed=options is not None)]
    if agents_md is not None:
        changes.append(_section_change(agents_md, is_installed=options is not None))
    return [change for change in changes if change.before != change.after]


def command(agent: Agent, event: str, options: Sequence[str]) -> str:
    """Return the shell command of a hook."""
    return shlex.join([sys.executable, "-I", "-S", hook.__file__, agent.name, event, *options])


def _settings_change(path: Path, agent: Agent, options: Sequence[str] | None) -> Change:
    before = _read(path)
    text = before or ""
    try:
        for event in agent.events:
            wanted = [] if options is None else [_hook_entry(agent, event, options)]
            if [entry for entry in _entries(text, event) if _is_ours(entry)] == wanted:
                continue
            text = json_text.removed(text, [HOOKS, event], _is_ours)
            for entry in wanted:
                text = json_text.appended(text, [HOOKS, event], entry)
        data = json_text.parse(text).data
        if agent is CURSOR and options is not None and "version" not in data:
            text = json_text.with_key(text, "version", _ENTRY_VERSION)
        if options is None and before is not None and text != before and data in ({}, {"version": _ENTRY_VERSION}):
            return Change(path, before, None)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}; repair the file first, nothing was changed") from None
    return Change(path, before, text if before is not None or text else None)


def _hook_entry(agent: Agent, event: str, options: Sequence[str]) -> dict[str, Any]:
    run = command(agent, event, options)
    if agent is CURSOR:
        return {"command": run}
    timeout = TIMEOUT * 1_000 if agent is GEMINI_CLI else TIMEOUT
    name = {"name": "zettel"} if agent is GEMINI_CLI else {}
    return {"hooks": [{"type": "command", **name, "command": run, "timeout": timeout}]}


def _entries(text: str, event: str) -> list[Any]:
    hooks = json_text.parse(text).member(HOOKS)
    entries = hooks.member(event) if hooks else None
    return entries.data if entries and isinstance(entries.data, list) else []


def _is_ours(entry: Any) -> bool:
    return any(mark in json.dumps(entry, ensure_ascii=False) for mark in _MARKS)


def _skill_change(path: Path, *, is_installed: bool) -> Change:
    return Change(path, _read(path), _asset(SKILL) if is_installed else None)


def _section_change(path: Path, *, is_installed: bool) -> Change:
    before = _read(path)
    text = before or ""
    first, last = SECTION
    start, end = text.find(first), text.find(last)
    if is_installed and start < 0:
        newline = "" if text and not text.endswith("\n") else "\n"  # at the end, as in the file
        gap = "" if not text else "\n" if newline else "\n\n"
        after = f"{text}{gap}{first}\n{_asset(SECTION_FILE)}{last}{newline}"
    elif not is_installed and 0 <= start < end:
        rest = text[end + len(last) :]
        after = text[:start].removesuffix("\n" if rest.startswith("\n") else "\n\n") + rest.removeprefix("\n")
    else:
        after = text
    return Change(path, before, after if after or (before is not None and is_installed) else None)


def _asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _read(path: Path) -> str | None:
    """Return the text of a file, or None if there is none. Raises ``InvalidInput``, ``OSError``."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8: repair the file first, nothing was changed") from None
