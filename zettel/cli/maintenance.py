"""The commands stats, doctor and reembed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from . import model_costs
from .common import common, console, echo, notify, print_json

if TYPE_CHECKING:
    from zettel.model import Usage

FILE_ENDS = ("", "-wal", "-shm")
"""Suffixes of the files that SQLite creates for a store."""


def stats(
    ctx: typer.Context,
    usage: bool = typer.Option(False, "--usage", help="Report which notes of the scope are used, and which are not."),
) -> None:
    """Count the contents of the store, or of a scope. Also prints its models and the size of its files.

    \b
    Examples:
      zettel stats
      zettel stats --usage --user ann
      zettel stats --user ann --json
      zettel stats --llm openai/gpt-4o-mini --budget usd=2,per=day
    """
    options = common(ctx)
    if usage:
        with options.memory() as memory:
            report = memory.usage(scope=options.scope())
        print_json(report) if options.json else _print_usage(report)
        return
    with options.memory() as memory:
        scope = options.scope() if options.scoped else None
        counts = memory.stats(scope=scope)
        scopes = [str(known) for known in memory.scopes()] if scope is None else [str(scope)]
        purges = [job for job in memory.jobs(scope=scope) if job.kind.value == "purge"]
        size = _size(options.store)
    if options.json:
        print_json(counts | {"file": options.store, "bytes": size, "purges": len(purges), "scopes": scopes})
        return
    from .layout import labelled

    plain = {name: value for name, value in counts.items() if name != "budget" and not name.startswith("llm")}
    rows = {name: f"{value:,}" if isinstance(value, int) else str(value) for name, value in plain.items()}
    if options.models:
        rows["language model"] = ", ".join(options.models)
    if spent := model_costs.used(counts):
        rows["model use"] = spent
    if "budget" in counts:
        rows["budget left"] = model_costs.budget_left(counts["budget"])
    rows["scopes"] = "; ".join(scopes) or "none"
    rows |= {"file": options.store} | ({"size": _in_bytes(size)} if size is not None else {})
    if purges:
        rows["purge"] = purges[0].error or "pending: deleted text is not yet wiped from the file"
    labelled(console(), rows.items())


def _print_usage(usage: Usage) -> None:
    from .layout import heading, labelled

    out = console()
    notes = f"{usage.notes:,} ({usage.never_found:,} never found, {usage.never_used:,} never used)"
    labelled(out, [
        ("notes", notes),
        ("searches", f"{usage.searches:,} logged, {usage.reported:,} with known use"),
        ("duplicates", f"{len(usage.duplicates):,} groups" if usage.duplicates else "none"),
        ("contradictions", f"{usage.contradictions:,}"),
    ])  # fmt: skip
    for title, rows in (
        ("most used", [(row.note, f"{row.text} (used {row.used}, found {row.found})") for row in usage.most_used]),
        ("never found", [(row.note, row.text) for row in usage.unused]),
        ("derived from notes that have changed", [(row.note, row.text) for row in usage.stale]),
        ("duplicates", [(ids[0], ", ".join(ids[1:])) for ids in usage.duplicates]),
        ("largest sessions",
         [(row.session or "none", f"{row.notes:,} notes, {row.characters:,} characters") for row in usage.sessions]),
    ):  # fmt: skip
        if rows:
            heading(out, (title, "bold"))
            labelled(out, rows)


def _size(store: str) -> int | None:
    """Return the bytes of a store's files; None for a store on a server."""
    if not Path(store).is_file():
        return None
    return sum(path.stat().st_size for end in FILE_ENDS if (path := Path(store + end)).exists())


def _in_bytes(size: int) -> str:
    from rich.filesize import decimal

    return decimal(size)


def scopes(ctx: typer.Context) -> None:
    """List the scopes of the store, with the options that name them.

    \b
    Examples:
      zettel scopes
      zettel scopes --json
    """
    options = common(ctx)
    with options.memory() as memory:
        notes = {scope: memory.stats(scope=scope)["notes"] for scope in memory.scopes()}
    if options.json:
        print_json([{"scope": scope, "notes": count} for scope, count in notes.items()])
        return
    if not notes:
        notify("zettel: the store is empty")
    width = max((len(f"{count:,}") for count in notes.values()), default=0)
    for scope, count in notes.items():
        named = [f"--{name} {shlex.quote(part)}" for name, part in scope.model_dump().items() if part is not None]
        echo(f"{count:>{width},} {'note ' if count == 1 else 'notes'}  {' '.join(named) or '(without options)'}")


def doctor(
    ctx: typer.Context,
    repair: bool = typer.Option(False, "--repair", help="Rebuild derived data."),
) -> None:
    """Check a store for damage. Exits with 1 if damage remains.

    \b
    Examples:
      zettel doctor
      zettel doctor --repair
    """
    options = common(ctx)
    with options.memory() as memory:
        problems = memory.check(repair=repair)
        remaining = memory.check() if repair and problems else problems
    if options.json:
        print_json({"found": problems, "left": remaining})
    else:
        for problem in problems:
            echo(problem)
        count = f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'} found"
        verdict = f"{count}, {len(problems) - len(remaining)} repaired" if repair else count
        echo(verdict if problems else "no problems found")
    if remaining:
        raise typer.Exit(1)


def reembed(ctx: typer.Context) -> None:
    """Switch to another embedder. Embeds every note again with --embedder.

    Without it, the default embedder replaces one that zettel does not ship.

    \b
    Example:
      zettel reembed --embedder minilm
    """
    options = common(ctx)
    with options.memory() as memory:
        count = memory.reembed()
        name = memory.stats()["embedder"]
    if options.json:
        print_json({"embedded": count, "embedder": name})
    else:
        echo(f"{count} notes embedded; searches now use {name}")
