"""The work that is not done yet: look at it, have it tried again, drop it, and do it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from zettel.errors import FlushTimeout, JobFailed, NotFound

from . import models
from .common import common, console, day_and_time, remark, say, say_json, seconds_of

if TYPE_CHECKING:
    from zettel import Memory, Scope
    from zettel.model import Job

LIST, SHOW, RETRY, CANCEL = "list", "show", "retry", "cancel"
SHOWN_JOBS = 50
"""Jobs told in the table; --json has all."""
WORKER_PAUSE = 1.0
"""Seconds between two looks at the queue, and until a worker that is told to stop begins to."""


def jobs(
    ctx: typer.Context,
    action: str = typer.Argument(LIST, metavar="[list|show|retry|cancel]", help="What to do; by default list."),
    id: str | None = typer.Argument(None, metavar="[JOB]", help="Which one: show and cancel need it, retry takes it."),
) -> None:
    """Show the work that is not done yet. It is queued, running, or failed with an error.

    show tells all of one job; retry queues failed jobs again, or one of them; cancel drops one that waits or failed.

    \b
    Examples:
      zettel jobs
      zettel jobs show j_3f9a…
      zettel jobs retry
      zettel jobs cancel j_3f9a…
    """
    options = common(ctx)
    if action not in (LIST, SHOW, RETRY, CANCEL):
        raise typer.BadParameter(
            f"{action!r} is nothing that can be done with jobs; there are {LIST}, {SHOW}, {RETRY} and {CANCEL}"
        )
    if (id is None) == (action in (SHOW, CANCEL)) and action != RETRY:
        raise typer.BadParameter(f"{action} takes no job" if id else f"{action} needs the id of a job")
    with options.memory() as memory:
        scope = options.scope() if options.scoped else None
        if action == RETRY:
            count = memory.retry_jobs(id, scope=scope)
            if options.json:
                say_json({"queued": count})
            elif id is not None:
                say(f"{id} is queued again" if count else f"{id} has not failed")
            else:
                say(f"{count} failed jobs are queued again")
            return
        if action == CANCEL and id is not None:
            gone = memory.cancel_job(id, scope=scope)
            if options.json:
                say_json({"cancelled": gone.id})
            else:
                say(f"{gone.id} is cancelled: {gone.kind.value} {gone.note or gone.scope}")
            return
        found = memory.jobs(scope=scope)
    if action == SHOW:
        _show_job(next((job for job in found if job.id == id), None), str(id), options.json)
    elif options.json:
        say_json([job.model_dump(mode="json", exclude={"token"}) for job in found])
    elif not found:
        say("no jobs: all work is done")
    else:
        _list_jobs(found)
        if not options.models and (waits := models.waiting(found, ())):
            remark(f"zettel: {waits}")


def _list_jobs(found: Sequence[Job]) -> None:
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
            (_tries(job) if job.attempts else "", ""),
            (job.id, "dim"),
            (job.note or "", "dim"),
        )
        if job.error:
            paragraph(out, Text(job.error, style="red"), indent=INDENT)
    if len(found) > SHOWN_JOBS:
        say(f"and {len(found) - SHOWN_JOBS} more; --json has them all")


def _show_job(job: Job | None, id: str, as_json: bool) -> None:
    from .layout import labelled

    if job is None:
        raise NotFound("the queue", [id], "`zettel jobs` shows those that are")
    if as_json:
        say_json(job.model_dump(mode="json", exclude={"token"}))
        return
    rows = {
        "id": job.id,
        "kind": job.kind.value,
        "state": job.state.value,
        "scope": str(job.scope),
        "note": f"{job.note} v{job.version}" if job.note else "",
        "priority": str(job.priority),
        "due": f"{day_and_time(job.run_at)} UTC",
        "tried": _tries(job) if job.attempts else "not yet",
        "error": job.error or "",
    }
    labelled(console(), [(name, value) for name, value in rows.items() if value])


def _tries(job: Job) -> str:
    return f"{job.attempts} {'try' if job.attempts == 1 else 'tries'}"


def worker(
    ctx: typer.Context,
    once: bool = typer.Option(False, "--once", help="Stop when the queue is empty."),
    every: str | None = typer.Option(
        None, "--every", metavar="TIME", help="Have scopes evolve that changed: at once, and then every 24h (90m, 7d)."
    ),
    decay: str | None = typer.Option(
        None, "--decay", metavar="TIME", help="When they evolve, put away what nobody needed for that long: 90d."
    ),
    ray: str | None = typer.Option(
        None, "--ray", metavar="ADDRESS", help="Have a Ray do them: the cluster at HOST:PORT, auto, or local."
    ),
) -> None:
    """Work off jobs until stopped. Ctrl-C and SIGTERM stop it cleanly: what it had begun is finished or given back.

    \b
    Examples:
      zettel worker
      zettel worker --once
      zettel worker --every 24h
      zettel worker --llm openai/gpt-4o-mini --budget usd=2,per=day
      zettel worker --store neo4j://db:7687 --ray head:6379
    """
    options = common(ctx)
    period = None if every is None else seconds_of(every, "--every")
    with stopping() as stopped:
        runner = None if ray is None else f"ray:{ray}"
        with options.memory(works=True, decay=decay, runner=runner) as memory:
            scope = options.scope() if options.scoped else None
            remark(f"zettel: working on {options.store}" + ("" if once else "; Ctrl-C stops"))
            if not options.models and not once and (waits := models.waiting(memory.jobs(scope=scope), ())):
                remark(f"zettel: {waits}")
            failed = _work(memory, scope, once, period, stopped)
            waits = models.waiting(memory.jobs(scope=scope), options.models)
        if stopped():
            remark("zettel: stopped; what is not done waits for the next worker")
            return
    if options.json:
        say_json({"failed": failed, "waiting": waits})
    elif waits:
        say(waits)
    elif not failed:
        say("no jobs are left")
    if failed:
        raise typer.Exit(1)


def _work(
    memory: Memory, scope: Scope | None, once: bool, period: float | None, stopped: Callable[[], bool]
) -> bool:
    """Do jobs until there are none (``once``) or it is to stop; whether any failed."""
    failed = False
    evolve_at = time.monotonic()
    while not stopped():
        if period is not None and time.monotonic() >= evolve_at:
            evolve_at = time.monotonic() + period
            for one in memory.scopes() if scope is None else [scope]:
                memory.evolve_later(scope=one)
        try:
            memory.flush(WORKER_PAUSE, scope=scope)
        except FlushTimeout:  # goes on in the background, while it is looked whether to stop
            continue
        except JobFailed as error:  # told once for each job, which keeps its error; the others go on
            failed = True
            remark(f"zettel: {error}")
        if once:
            break
        time.sleep(WORKER_PAUSE)
    return failed


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """Inside, SIGTERM and Ctrl-C end nothing: what is given tells whether one of them has come."""
    asked = False

    def ask(number: int, frame: Any) -> None:
        nonlocal asked
        asked = True

    former = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: asked
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
