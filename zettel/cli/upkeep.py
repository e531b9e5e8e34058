"""Looking after a store: jobs, worker, stats, doctor, reembed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from zettel.errors import JobFailed

from .common import common, console, day_and_time, remark, say, say_json

if TYPE_CHECKING:
    from zettel.model import Job

RETRY = "retry"
SHOWN_JOBS = 50
"""Jobs told in the table; --json has all."""
WORKER_PAUSE = 1.0
"""Seconds between two looks at the queue."""
FILE_ENDS = ("", "-wal", "-shm")
"""What SQLite puts behind a store's name for its files."""


def jobs(
    ctx: typer.Context,
    action: str | None = typer.Argument(None, metavar="[retry]", help="retry queues failed jobs again."),
) -> None:
    """Show the work that is not done yet. It is queued, running, or failed with an error.

    \b
    Examples:
      zettel jobs
      zettel jobs retry
    """
    options = common(ctx)
    if action not in (None, RETRY):
        raise typer.BadParameter(f"{action!r} is nothing that can be done with jobs; there is only {RETRY}")
    with options.memory() as memory:
        scope = options.scope() if options.scoped else None
        if action == RETRY:
            count = memory.retry_jobs(scope=scope)
            if options.json:
                say_json({"queued": count})
            else:
                say(f"{count} failed jobs are queued again")
            return
        found = memory.jobs(scope=scope)
    if options.json:
        say_json([job.model_dump(mode="json", exclude={"token"}) for job in found])
    elif not found:
        say("no jobs: all work is done")
    else:
        _show_jobs(found)


def _show_jobs(found: Sequence[Job]) -> None:
    from rich.text import Text

    from .layout import INDENT, column, heading, paragraph

    out = console()
    shown = found[:SHOWN_JOBS]
    kinds, states = column(job.kind.value for job in shown), column(job.state.value for job in shown)
    for job in shown:
        heading(
            out,
            (job.kind.value.ljust(kinds), "bold"),
            (job.state.value.ljust(states), "red" if job.state.value == "failed" else "cyan"),
            (f"due {day_and_time(job.run_at)}", ""),
            (f"{job.attempts} {'try' if job.attempts == 1 else 'tries'}" if job.attempts else "", ""),
            (job.note or "", "dim"),
        )
        if job.error:
            paragraph(out, Text(job.error, style="red"), indent=INDENT)
    if len(found) > SHOWN_JOBS:
        say(f"and {len(found) - SHOWN_JOBS} more; --json has them all")


def worker(
    ctx: typer.Context,
    once: bool = typer.Option(False, "--once", help="Stop when the queue is empty."),
) -> None:
    """Work off jobs until stopped.

    \b
    Examples:
      zettel worker
      zettel worker --once
    """
    options = common(ctx)
    with options.memory() as memory:
        scope = options.scope() if options.scoped else None
        remark(f"zettel: working on {options.store}" + ("" if once else "; Ctrl-C stops"))
        failed = False
        while True:
            try:
                memory.flush(scope=scope)
            except JobFailed as error:  # told once for each job, which keeps its error; the others go on
                failed = True
                remark(f"zettel: {error}")
            if once:
                break
            time.sleep(WORKER_PAUSE)
    if options.json:
        say_json({"failed": failed})
    elif not failed:
        say("no jobs are left")
    if failed:
        raise typer.Exit(1)


def stats(ctx: typer.Context) -> None:
    """Count what the store holds, or a scope of it. Also tells what made it and how big its files are.

    \b
    Examples:
      zettel stats
      zettel stats --user ann --json
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

    told = {name: f"{value:,}" if isinstance(value, int) else str(value) for name, value in counts.items()}
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
