"""Looking after a store: stats, doctor, reembed."""

from __future__ import annotations

from pathlib import Path

import typer

from . import models
from .common import common, console, say, say_json

FILE_ENDS = ("", "-wal", "-shm")
"""What SQLite puts behind a store's name for its files."""


def stats(ctx: typer.Context) -> None:
    """Count what the store holds, or a scope of it. Also tells what made it and how big its files are.

    \b
    Examples:
      zettel stats
      zettel stats --user ann --json
      zettel stats --llm openai/gpt-4o-mini --budget usd=2,per=day
    """
    options = common(ctx)
    with options.memory() as memory:
        scope = options.scope() if options.scoped else None
        counts = memory.stats(scope=scope)
        whose = [str(one) for one in memory.scopes()] if scope is None else [str(scope)]
        purges = [job for job in memory.jobs(scope=scope) if job.kind.value == "purge"]
        size = _size(options.store)
    if options.json:
        say_json(counts | {"file": options.store, "bytes": size, "purges": len(purges), "scopes": whose})
        return
    from .layout import labelled

    plain = {name: value for name, value in counts.items() if name != "budget" and not name.startswith("llm")}
    told = {name: f"{value:,}" if isinstance(value, int) else str(value) for name, value in plain.items()}
    if options.models:
        told["language model"] = ", ".join(options.models)
    if asked := models.used(counts):
        told["model use"] = asked
    if "budget" in counts:
        told["budget left"] = models.budget_left(counts["budget"])
    told["scopes"] = "; ".join(whose) or "none"
    told |= {"file": options.store} | ({"size": _in_bytes(size)} if size is not None else {})
    if purges:
        told["purge"] = purges[0].error or "pending: what was deleted is still to be wiped from the file"
    labelled(console(), told.items())


def _size(store: str) -> int | None:
    """Bytes of a store's file and of those that SQLite keeps beside it; None for a store that is no file."""
    if not Path(store).is_file():
        return None
    return sum(path.stat().st_size for end in FILE_ENDS if (path := Path(store + end)).exists())


def _in_bytes(size: int) -> str:
    from rich.filesize import decimal

    return decimal(size)


def doctor(
    ctx: typer.Context,
    repair: bool = typer.Option(False, "--repair", help="Make anew what can be derived."),
) -> None:
    """Check a store for damage. Exits with 1 if there is any that was not repaired.

    \b
    Examples:
      zettel doctor
      zettel doctor --repair
    """
    options = common(ctx)
    with options.memory() as memory:
        found = memory.check(repair=repair)
        left = memory.check() if repair and found else found
    if options.json:
        say_json({"found": found, "left": left})
    else:
        for line in found:
            say(line)
        healed = len(found) - len(left)
        verdict = f"{len(found)} found, {healed} repaired" if repair else f"{len(found)} found"
        say("all is well" if not found else verdict)
    if left:
        raise typer.Exit(1)


def reembed(ctx: typer.Context) -> None:
    """Change over to another embedder. Every note is embedded anew with --embedder, or with the shipped one.

    \b
    Example:
      zettel reembed --embedder all-MiniLM-L6-v2
    """
    options = common(ctx)
    with options.memory() as memory:
        count = memory.reembed()
        name = memory.stats()["embedder"]
    if options.json:
        say_json({"embedded": count, "embedder": name})
    else:
        say(f"{count} notes embedded; searches use {name} now")
