"""Looking after a store: jobs, worker, stats, doctor, reembed."""

from __future__ import annotations

import time
from typing import Any

import typer

from zettel.errors import JobFailed

from .common import common, console, day_and_time, remark, say, say_json

SHOWN_JOBS = 50
"""Jobs told in the table; --json has all."""
WORKER_PAUSE = 1.0
"""Seconds between two looks at the queue."""


def jobs(
    ctx: typer.Context,
    retry: bool = typer.Option(False, "--retry", help="Queue failed jobs again."),
) -> None:
    """Show the work that is not done yet. It is queued, running, or failed with an error.

    \b
    Examples:
      zettel jobs
      zettel jobs --retry
    """
    options = common(ctx)
    with options.memory() as memory:
        scope = options.scope() if options.scoped else None
        if retry:
            count = memory.retry_jobs(scope=scope)
            if options.json:
                say_json({"queued": count})
            else:
                say(f"{count} failed jobs are queued again")
            return
        found = memory.jobs(scope=scope)
    if options.json:
        say_json([job.model_dump(mode="json", exclude={"token"}) for job in found])
        return
    if not found:
        say("no jobs: all work is done")
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("job", "kind", "state", "note", "tries", "due", "error"):
        table.add_column(name, no_wrap=name != "error")
    for job in found[:SHOWN_JOBS]:
        row = (job.id, job.kind.value, job.state.value, job.note or "", str(job.attempts))
        table.add_row(*row, day_and_time(job.run_at), Text(job.error or "", style="red"))
    console().print(table)
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
    """Count what the store holds, or a scope of it.

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
    if options.json:
        say_json(counts | {"scopes": whose})
        return
    _pairs(counts | {"scopes": "; ".join(whose) or "none"})


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


def _pairs(values: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="cyan")
    table.add_column()
    for name, value in values.items():
        table.add_row(name, Text(f"{value:,}" if isinstance(value, int) else str(value)))
    console().print(table)
