"""The commands in their order, and how their errors reach people: one line, no traceback, a telling exit
status.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import typer

from zettel import __version__
from zettel.errors import ZettelError

from . import (
    INTERRUPTED,
    asking,
    away,
    bench,
    demo,
    embedder,
    evolve,
    explore,
    history,
    jobs,
    keys,
    links,
    mcp,
    neo4j,
    notes,
    scorer,
    serve,
    transfer,
    upkeep,
)
from .common import DEFAULT_STORE, EVERYWHERE, Common, hoist, remark, say

# Typer has click inside or beside it, depending on its version; the classes are reached through its own.
USAGE_ERROR: Any = typer.BadParameter.__mro__[1]
CLICK_ERROR: Any = typer.BadParameter.__mro__[2]

FAILED = 1
MISUSED = 2

app = typer.Typer(name="zettel", rich_markup_mode=None, add_completion=True, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    store: str = typer.Option(
        DEFAULT_STORE, "--store", metavar="FILE", envvar="ZETTEL_STORE",
        help="The file that holds the memory, or the address of a server: neo4j://HOST:PORT or bolt://HOST:PORT (user "
        "and password stand in NEO4J_USERNAME and NEO4J_PASSWORD, the database, if it is not neo4j, in "
        "NEO4J_DATABASE), or https://HOST:PORT of zettel serve (the key "
        "stands in ZETTEL_KEY).",
    ),
    tenant: str | None = typer.Option(None, "--tenant", metavar="NAME", help="Whose memory: the tenant."),
    user: str | None = typer.Option(None, "--user", metavar="NAME", help="Whose memory: the user."),
    agent: str | None = typer.Option(None, "--agent", metavar="NAME", help="Whose memory: the agent."),
    embedder: str | None = typer.Option(
        None, "--embedder", metavar="NAME", envvar="ZETTEL_EMBEDDER",
        help="A model's name or folder, if not the one shipped with zettel.",
    ),
    llm: str | None = typer.Option(
        None, "--llm", metavar="NAME", envvar="ZETTEL_LLM",
        help="A language model that writes notes and links, as LiteLLM calls it; several with commas.",
    ),
    budget: str | None = typer.Option(
        None, "--budget", metavar="LIMITS", envvar="ZETTEL_BUDGET",
        help="What it may cost, as usd=2,per=day or calls=100,tokens=50000,per=import.",
    ),
    json: bool = typer.Option(False, "--json", help="Answer in JSON."),
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> None:  # fmt: skip
    """A memory for agents that works like a Zettelkasten.

    Events become notes, notes are linked, and questions walk the links. The options below may stand before
    or after the command.

    \b
    Examples:
      zettel demo
      zettel import chat.json
      zettel search "Where does Ann live?"
    """
    from zettel.graph import file_named

    for name, part in (("--tenant", tenant), ("--user", user), ("--agent", agent)):
        if part == "":  # a variable of the shell that is not set: a scope of its own would be made
            raise typer.BadParameter("it is empty: name whose memory it is, or leave it out", param_hint=name)
    source = ctx.get_parameter_source("store")
    named = source is not None and source.name == "COMMANDLINE"
    ctx.obj = Common(file_named(store), named, tenant, user, agent, embedder, llm, budget, json)
    if version:
        say(f"zettel {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        say(ctx.get_help())
        raise typer.Exit


COMMANDS: dict[str, Callable[..., None]] = {
    "add": notes.add,
    "import": transfer.import_,
    "search": asking.search,
    "context": asking.context,
    "feedback": asking.feedback,
    "show": notes.show,
    "links": links.links,
    "conflicts": links.conflicts,
    "history": history.history,
    "revert": history.revert,
    "archive": away.archive,
    "unarchive": away.unarchive,
    "quarantine": away.quarantine,
    "release": away.release,
    "delete": notes.delete,
    "evolve": evolve.evolve,
    "jobs": jobs.jobs,
    "worker": jobs.worker,
    "stats": upkeep.stats,
    "doctor": upkeep.doctor,
    "reembed": upkeep.reembed,
    "export": transfer.export,
    "explore": explore.explore,
    "mcp": mcp.mcp,
    "serve": serve.serve,
    "demo": demo.demo,
}

for name, command in COMMANDS.items():
    app.command(name, epilog=EVERYWHERE)(command)
app.add_typer(bench.app, name="bench")
app.add_typer(embedder.app, name="embedder")
app.add_typer(keys.app, name="keys")
app.add_typer(neo4j.app, name="neo4j")
app.add_typer(scorer.app, name="scorer")


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit status."""
    command: Any = typer.main.get_command(app)
    logging.getLogger("stamina").setLevel(logging.ERROR)  # a command says once what went wrong, not at each attempt
    try:
        status = command.main(args=hoist(arguments), prog_name="zettel", standalone_mode=False)
    except USAGE_ERROR as error:
        return _misused(error)
    except CLICK_ERROR as error:
        return _failed(error.format_message())
    except BrokenPipeError:
        return _unheard()
    except (ZettelError, OSError) as error:
        return _failed(str(error))
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    if status == INTERRUPTED:
        remark("zettel: interrupted; nothing that was stored is lost, and the same command goes on from there")
    return status if isinstance(status, int) else 0


def _misused(error: Any) -> int:
    path = error.ctx.command_path if error.ctx else "zettel"
    remark(f"{path}: {_one_line(error.format_message())} (see {path} --help)")
    return MISUSED


def _failed(message: str) -> int:
    remark(f"zettel: {_one_line(message)}")
    return FAILED


def _unheard() -> int:
    """Whoever read stdout has gone, as ``head`` does: end quietly, and let Python's last flush find a sink."""
    import os
    import sys

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED


def _one_line(text: str) -> str:
    return " ".join(text.split())
