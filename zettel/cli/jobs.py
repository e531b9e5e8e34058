"""The commands jobs and worker."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from zettel.errors import FlushTimeout, JobFailed, NotFound

from . import model_costs
from .common import common, console, day_and_time, echo, notify, print_json, seconds_of

if TYPE_CHECKING:
    from zettel import Memory, Scope
    from zettel.model import Job

LIST, SHOW, RETRY, CANCEL = "list", "show", "retry", "cancel"
SHOWN_JOBS = 50
"""Jobs listed; --json lists all."""
WORKER_PAUSE = 1.0
"""Seconds between two polls of the queue; also the delay until a stopped worker reacts."""


def jobs(
    ctx: typer.Context,
    action: str = typer.Argument(LIST, metavar="[list|show|retry|cancel]", help="The action; by default list."),
    id: str | None = typer.Argument(
        None, metavar="[JOB]", help="Id of a job: required by show and cancel, optional for retry."
    ),
) -> None:
    """List jobs that are queued, running, or failed with an error.

    show prints all fields of a job; retry queues one or all failed jobs again; cancel drops a queued or failed job.

    \b
    Examples:
      zettel jobs
      zettel jobs show j_3f9a…
      zettel jobs retry
      zettel jobs cancel j_3f9a…
    """
    options = common(ctx)
    if action not in (LIST, SHOW, RETRY, CANCEL):
        raise typer.BadParameter(f"unknown action {action!r}: use {LIST}, {SHOW}, {RETRY} or {CANCEL}")
    if (id is None) == (action in (SHOW, CANCEL)) and action != RETRY:
        raise typer.BadParameter(f"{action} does not take a job: leave it out" if id else f"{action} requires a job id")
    with options.memory() as memory:
        scope = options.scope() if options.scoped else None
        if action == RETRY:
            count = memory.retry_jobs(id, scope=scope)
            if options.json:
                print_json({"queued": count})
            elif id is not None:
                echo(f"{id} is queued again" if count else f"{id} has not failed")
            else:
                echo(f"{count} failed jobs are queued again")
            return
        if action == CANCEL and id is not None:
            cancelled = memory.cancel_job(id, scope=scope)
            if options.json:
                print_json({"cancelled": cancelled.id})
            else:
                echo(f"{cancelled.id} is cancelled: {cancelled.kind.value} {cancelled.note or cancelled.scope}")
            return
        queue = memory.jobs(scope=scope)
    if action == SHOW:
        _show_job(next((job for job in queue if job.id == id), None), str(id), options.json)
    elif options.json:
        print_json([job.model_dump(mode="json", exclude={"token"}) for job in queue])
    elif not queue:
        echo("no jobs: all work is done")
    else:
        _list_jobs(queue)
        if not options.models and (waits := model_costs.waiting(queue, ())):
            notify(f"zettel: {waits}")


def _list_jobs(queue: Sequence[Job]) -> None:
    from rich.text import Text

    from .layout import INDENT, column, heading, paragraph

    out = console()
    shown = queue[:SHOWN_JOBS]
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
    if len(queue) > SHOWN_JOBS:
        echo(f"and {len(queue) - SHOWN_JOBS} more; --json lists all")


def _show_job(job: Job | None, id: str, as_json: bool) -> None:
    from .layout import labelled

    if job is None:
        raise NotFound("the queue", [id], "`zettel jobs` lists its jobs")
    if as_json:
        print_json(job.model_dump(mode="json", exclude={"token"}))
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
        None, "--every", metavar="TIME", help="Evolve changed scopes at once and then every 24h (90m, 7d)."
    ),
    decay: str | None = typer.Option(
        None, "--decay", metavar="TIME", help="When evolving, archive notes that were not useful for this long: 90d."
    ),
    ray: str | None = typer.Option(
        None, "--ray", metavar="ADDRESS", help="Run jobs on Ray: the cluster at HOST:PORT, auto, or local."
    ),
) -> None:
    """Run jobs until stopped. Ctrl-C and SIGTERM stop it cleanly: running jobs finish or return to the queue.

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
        with options.memory(run_llm_jobs=True, decay=decay, runner=runner) as memory:
            scope = options.scope() if options.scoped else None
            notify(f"zettel: working on {options.store}" + ("" if once else "; Ctrl-C to stop"))
            if not options.models and not once and (waits := model_costs.waiting(memory.jobs(scope=scope), ())):
                notify(f"zettel: {waits}")
            failed = _work(memory, scope, once, period, stopped)
            waits = model_costs.waiting(memory.jobs(scope=scope), options.models)
        if stopped():
            notify("zettel: stopped; unfinished jobs wait for the next worker")
            return
    if options.json:
        print_json({"failed": failed, "waiting": waits})
    elif waits:
        echo(waits)
    elif not failed:
        echo("all jobs are done")
    if failed:
        raise typer.Exit(1)


def _work(memory: Memory, scope: Scope | None, once: bool, period: float | None, stopped: Callable[[], bool]) -> bool:
    """Run jobs until the queue is empty (``once``) or the worker is stopped; return whether any failed."""
    failed = False
    evolve_at = time.monotonic()
    while not stopped():
        if period is not None and time.monotonic() >= evolve_at:
            evolve_at = time.monotonic() + period
            for evolving in memory.scopes() if scope is None else [scope]:
                memory.evolve_later(scope=evolving)
        try:
            memory.flush(WORKER_PAUSE, scope=scope)
        except FlushTimeout:  # jobs continue in the background while the loop checks for a stop
            continue
        except JobFailed as error:  # raised once per failed job; other jobs continue
            failed = True
            notify(f"zettel: {error}")
        if once:
            break
        time.sleep(WORKER_PAUSE)
    return failed


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """Catch SIGTERM and Ctrl-C; yields a function that returns whether one of them has arrived."""
    stopped = False

    def stop(number: int, frame: Any) -> None:
        nonlocal stopped
        stopped = True

    former = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: stopped
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
