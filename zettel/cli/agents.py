"""The commands connect, disconnect and hook: memory for coding agents."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from zettel.errors import InvalidInput

from .common import DEFAULT_STORE, Common, common, echo, notify, print_json, require_consent

if TYPE_CHECKING:
    from zettel.integrations.coding_agents.connect import Change

AGENT = typer.Argument(metavar="PROGRAM", help="claude-code, codex, cursor or gemini-cli.")
PROJECT = typer.Option(False, "--project", help="Settings of the project in this folder, instead of your own.")
AGENTS_MD = typer.Option(None, "--agents-md", metavar="FILE", help="Also a section in this file, such as AGENTS.md.")


def connect(
    ctx: typer.Context,
    program: str = AGENT,
    project: bool = PROJECT,
    shared: bool = typer.Option(False, "--shared", help="One memory for all projects, instead of one for each."),
    agents_md: Path | None = AGENTS_MD,
    yes: bool = typer.Option(False, "--yes", "-y", help="Change the files without asking."),
) -> None:
    """Give a coding agent a memory.

    Adds hooks to its settings, which recall and store, and a skill; shows the changes and asks first. Each project has
    a memory of its own, in ~/.zettel/agents.db or --store. --user is by default your name on this machine. Keys and
    passwords are redacted. disconnect removes the hooks; the memory remains.

    \b
    Examples:
      zettel connect claude-code
      zettel connect codex --yes
      zettel connect cursor --project --agents-md AGENTS.md
    """
    options = common(ctx)
    if options.agent is not None:
        raise InvalidInput("the project is the agent of the scope: leave --agent out, or pass --shared for one memory")
    _change(options, program, _hook_options(options, shared), project, agents_md, yes)


def disconnect(
    ctx: typer.Context,
    program: str = AGENT,
    project: bool = PROJECT,
    agents_md: Path | None = AGENTS_MD,
    yes: bool = typer.Option(False, "--yes", "-y", help="Change the files without asking."),
) -> None:
    """Remove what connect added to the settings of a coding agent. Its memory remains.

    \b
    Examples:
      zettel disconnect claude-code
      zettel disconnect cursor --project --agents-md AGENTS.md --yes
    """
    _change(common(ctx), program, None, project, agents_md, yes)


def hook(
    ctx: typer.Context,
    program: str = AGENT,
    event: str = typer.Argument(metavar="EVENT", help="The event, such as SessionStart."),
    shared: bool = typer.Option(False, "--shared", help="The memory of all projects."),
) -> None:
    """Handle one event of a coding agent.

    The agents call it, with JSON on stdin; the answer is JSON on stdout. The exit status is always 0, so that a problem
    never blocks an agent; ~/.zettel/hooks/hooks.log contains it.

    \b
    Examples:
      zettel hook claude-code SessionStart < event.json
    """
    from zettel.integrations.coding_agents.hook import main

    raise typer.Exit(main([program, event, *_hook_options(common(ctx), shared)]))


def _hook_options(options: Common, shared: bool) -> list[str]:
    """Return the options of the hooks; the store is always named, because hooks run in any folder."""
    if options.store == DEFAULT_STORE:
        store = str(Path.home() / ".zettel" / "agents.db")
    else:
        store = options.store if "://" in options.store else os.path.abspath(options.store)
    named = {"--store": store, "--tenant": options.tenant, "--user": options.user}
    words = [word for name, value in named.items() if value is not None for word in (name, value)]
    return [*words, "--shared"] if shared else words


def _change(
    options: Common,
    program: str,
    hook_options: Sequence[str] | None,
    project: bool,
    agents_md: Path | None,
    yes: bool,
) -> None:
    from zettel.integrations.coding_agents.connect import planned
    from zettel.integrations.coding_agents.protocols import agent_named

    agent = agent_named(program)
    changes = planned(agent, hook_options, project=Path.cwd() if project else None, agents_md=agents_md)
    done = "connected" if hook_options is not None else "disconnected"
    if changes and not options.json:
        for change in changes:
            echo(change.diff().rstrip("\n"))
    if changes and not yes:
        require_consent(yes, "this would change the files above")
        if not typer.confirm("Change these files?", err=True):
            notify("zettel: nothing was changed")
            raise typer.Exit(1)
    for change in changes:
        change.apply()
    if options.json:
        print_json({"program": agent.name, "state": done, "changed": [str(change.path) for change in changes]})
    else:
        _report(agent.title, agent.name, done, changes)


def _report(title: str, name: str, done: str, changes: Sequence[Change]) -> None:
    notify(f"zettel: {title} is {done}" if changes else f"zettel: {title} is already {done}")
    if changes and done == "connected" and name == "codex":
        notify("zettel: Codex runs new hooks after you have trusted them: open /hooks in Codex")
