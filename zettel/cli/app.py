"""The list of commands and their error handling: one line on stderr and an exit status, no traceback."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import typer

from zettel.errors import BadRecord, InvalidInput, SecretRefused, ZettelError
from zettel.version import VERSION

from . import (
    INTERRUPTED,
    agents,
    archive,
    audit,
    bench,
    demo,
    edit,
    embedder,
    encryption,
    entities,
    evolve,
    explore,
    history,
    import_export,
    jobs,
    keys,
    links,
    maintenance,
    mcp,
    neo4j,
    notes,
    query,
    retention,
    scorer,
    search,
    serve,
    webhooks,
)
from .common import DEFAULT_STORE, EVERYWHERE, VALUED, Common, echo, move_common_options_first, notify

# Depending on its version, Typer bundles click or imports it; both give these base classes.
USAGE_ERROR: Any = typer.BadParameter.__mro__[1]
CLICK_ERROR: Any = typer.BadParameter.__mro__[2]

FAILED = 1
MISUSED = 2
LEAST_ALIKE = 0.75
"""Least similarity of an unknown option and a suggested one: ``--speaker`` is not ``--scope``."""
OTHER_NAMES_OF_K = ("--limit", "--top-k", "--n", "--count")

app = typer.Typer(name="zettel", rich_markup_mode=None, add_completion=True, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    store: str = typer.Option(
        DEFAULT_STORE, "--store", metavar="FILE", envvar="ZETTEL_STORE",
        help="The file of the store, or the address of a server: neo4j://HOST:PORT or bolt://HOST:PORT (set "
        "NEO4J_USERNAME, NEO4J_PASSWORD and, if it is not neo4j, NEO4J_DATABASE), or https://HOST:PORT of zettel "
        "serve (set ZETTEL_KEY).",
    ),
    tenant: str | None = typer.Option(None, "--tenant", metavar="NAME", help="The tenant of the scope."),
    user: str | None = typer.Option(None, "--user", metavar="NAME", help="The user of the scope."),
    agent: str | None = typer.Option(None, "--agent", metavar="NAME", help="The agent of the scope."),
    embedder: str | None = typer.Option(
        None, "--embedder", metavar="NAME", envvar="ZETTEL_EMBEDDER",
        help="Name or folder of an embedding model; default: the one shipped with zettel.",
    ),
    llm: str | None = typer.Option(
        None, "--llm", metavar="NAME", envvar="ZETTEL_LLM",
        help="LiteLLM name of a language model that writes notes and links; separate several with commas.",
    ),
    budget: str | None = typer.Option(
        None, "--budget", metavar="LIMITS", envvar="ZETTEL_BUDGET",
        help="Cost limits of the language model, such as usd=2,per=day or calls=100,tokens=50000,per=import.",
    ),
    privacy: str | None = typer.Option(
        None, "--privacy", metavar="MODE",
        help="Keys, tokens and passwords in texts: off, report (default), redact or block; or ZETTEL_PRIVACY.",
    ),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> None:  # fmt: skip
    """Long-term memory for AI agents, built like a Zettelkasten.

    Events become notes, notes are linked, and searches follow the links. The options below may stand before or
    after the command.

    \b
    Examples:
      zettel demo
      zettel import chat.json
      zettel search "Where does Ann live?"
    """
    from zettel.graph import file_named

    for name, part in (("--tenant", tenant), ("--user", user), ("--agent", agent)):
        if part == "":  # an unset shell variable would silently create another scope
            raise typer.BadParameter("the name is empty: write a name, or leave the option out", param_hint=name)
    source = ctx.get_parameter_source("store")
    store_given = source is not None and source.name == "COMMANDLINE"
    ctx.obj = Common(file_named(store), store_given, tenant, user, agent, embedder, llm, budget, privacy, json)
    if version:
        echo(f"zettel {VERSION}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        echo(ctx.get_help())
        raise typer.Exit


COMMANDS: dict[str, Callable[..., None]] = {
    "add": notes.add,
    "import": import_export.import_,
    "search": search.search,
    "context": search.context,
    "core": search.core,
    "session": search.session,
    "query": query.query,
    "list": query.list_,
    "feedback": search.feedback,
    "show": notes.show,
    "edit": edit.edit,
    "links": links.links,
    "link": edit.link,
    "unlink": links.unlink,
    "conflicts": links.conflicts,
    "resolve": links.resolve,
    "entities": entities.entities,
    "entity": entities.entity,
    "history": history.history,
    "revert": history.revert,
    "archive": archive.archive,
    "unarchive": archive.unarchive,
    "review": archive.review,
    "confirm": archive.confirm,
    "quarantine": archive.quarantine,
    "release": archive.release,
    "delete": notes.delete,
    "evolve": evolve.evolve,
    "jobs": jobs.jobs,
    "worker": jobs.worker,
    "stats": maintenance.stats,
    "scopes": maintenance.scopes,
    "doctor": maintenance.doctor,
    "reembed": maintenance.reembed,
    "export": import_export.export,
    "encrypt": encryption.encrypt,
    "decrypt": encryption.decrypt,
    "explore": explore.explore,
    "connect": agents.connect,
    "disconnect": agents.disconnect,
    "hook": agents.hook,
    "mcp": mcp.mcp,
    "serve": serve.serve,
    "demo": demo.demo,
}

for name, command in COMMANDS.items():
    app.command(name, epilog=EVERYWHERE)(command)
app.add_typer(audit.app, name="audit")
app.add_typer(bench.app, name="bench")
app.add_typer(embedder.app, name="embedder")
app.add_typer(keys.app, name="keys")
app.add_typer(neo4j.app, name="neo4j")
app.add_typer(retention.app, name="retention")
app.add_typer(scorer.app, name="scorer")
app.add_typer(webhooks.app, name="webhooks")


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit status."""
    command: Any = typer.main.get_command(app)
    for name in ("stamina", "zettel.jobs"):  # report an error once, not at each retry; commands report failed jobs
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        status = command.main(args=move_common_options_first(arguments), prog_name="zettel", standalone_mode=False)
    except USAGE_ERROR as error:
        return _misused(error)
    except CLICK_ERROR as error:
        return _failed(error.format_message())
    except BrokenPipeError:
        return _output_closed()
    except (ZettelError, OSError) as error:
        is_misuse = isinstance(error, InvalidInput) and not isinstance(error, (BadRecord, SecretRefused))
        return _failed(str(error), MISUSED if is_misuse else FAILED)
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    if status == INTERRUPTED:
        notify("zettel: interrupted; stored data is safe, and running the same command again continues")
    return status if isinstance(status, int) else 0


def _misused(error: Any) -> int:
    path = error.ctx.command_path if error.ctx else "zettel"
    if hasattr(error, "option_name") and hasattr(error, "possibilities") and error.ctx:
        # click suggests the options of the command alone
        own = [option for parameter in error.ctx.command.params for option in parameter.opts]
        close = get_close_matches(error.option_name, [*own, *VALUED, "--json"], cutoff=LEAST_ALIKE)
        error.possibilities = ["-k"] if error.option_name in OTHER_NAMES_OF_K and "-k" in own else close
    notify(f"{path}: {_one_line(error.format_message())} (see {path} --help)")
    return MISUSED


def _failed(message: str, status: int = FAILED) -> int:
    notify(f"zettel: {_one_line(message)}")
    return status


def _output_closed() -> int:
    """Exit quietly after the reader of stdout, such as ``head``, has closed it; Python's last flush goes to null."""
    import os
    import sys

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED


def _one_line(text: str) -> str:
    return " ".join(text.split())
