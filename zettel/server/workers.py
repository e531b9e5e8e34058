"""Several server processes at one address, with one store and key file. The system spreads connections over them.

The processes share the rate of a key. Each has its part of the concurrent requests, and runs jobs of the store.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory

from zettel.errors import ServerError
from zettel.remote.sockets import queue
from zettel.server.logs import LOG, METRICS_FOLDER, forget_process
from zettel.server.serving import ServerArguments, logged, run

RESTART_SECONDS = 1.0
"""Pause before a process that ended by itself is replaced, so that a lasting fault does not fill the log."""
STOPPING_SECONDS = 10.0
"""Time to close the store after the last answer, before a process is killed."""
_RATES = "rates"
"""Not named ``.db``, as the files of metrics in the same folder are."""


@dataclass
class _Worker:
    process: BaseProcess
    startup: Connection
    """Receives "" when the process answers, or why it cannot."""
    ready: bool = False


def run_workers(count: int, at: socket.socket, arguments: ServerArguments, ready: Callable[[], None]) -> None:
    """Serve a reserved address with ``count`` processes until SIGINT or SIGTERM. A process that ends is replaced.

    Raises ``ServerError`` if one of the first processes cannot serve.
    """
    with _stop_signal() as stop, TemporaryDirectory(prefix="zettel-serve-") as folder, _shared(folder):
        each = max(1, -(-arguments.limits.at_once // count))
        limits = arguments.limits._replace(at_once=each, rates=Path(folder) / _RATES)
        arguments = replace(arguments, limits=limits)
        workers = [_started(at, arguments) for _ in range(count)]
        try:
            announced = False
            while True:
                sentinels = [worker.process.sentinel for worker in workers]
                done = wait([stop, *sentinels, *(worker.startup for worker in workers if not worker.ready)])
                if stop in done:
                    return
                for place, worker in enumerate(workers):
                    problem = ""
                    if not worker.ready and worker.startup in done:
                        problem = _startup_problem(worker)
                        worker.ready = not problem
                    if problem and not announced:
                        raise ServerError(problem)
                    if problem or worker.process.sentinel in done:
                        workers[place] = _replaced(worker, stop, at, arguments)
                if not announced and all(worker.ready for worker in workers):
                    announced = True
                    ready()
        finally:
            _end(workers, limits.stop_seconds + STOPPING_SECONDS)


def _started(at: socket.socket, arguments: ServerArguments) -> _Worker:
    context = multiprocessing.get_context("spawn")
    startup, report = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(at, arguments, report), name="zettel-serve")
    process.start()
    report.close()
    return _Worker(process, startup)


def _replaced(worker: _Worker, stop: Connection, at: socket.socket, arguments: ServerArguments) -> _Worker:
    worker.process.join()
    code = worker.process.exitcode
    LOG.warning("a server process ended", extra={"fields": {"event": "a server process ended", "code": code}})
    forget_process(worker.process.pid)
    worker.startup.close()
    stop.poll(RESTART_SECONDS)
    return _started(at, arguments)


def _startup_problem(worker: _Worker) -> str:
    """Return why a process cannot serve, "" if it can."""
    try:
        return str(worker.startup.recv())
    except EOFError:
        worker.process.join()
        return f"a server process ended with exit code {worker.process.exitcode} before it answered"


def _end(workers: list[_Worker], seconds: float) -> None:
    """End the processes; those that do not end in time are killed."""
    for worker in workers:
        worker.process.terminate()
    until = time.monotonic() + seconds
    for worker in workers:
        worker.process.join(max(0.0, until - time.monotonic()))
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()


@contextmanager
def _stop_signal() -> Iterator[Connection]:
    """A connection that has something to read after SIGINT or SIGTERM."""
    stop, wake = multiprocessing.Pipe(duplex=False)

    def handle(number: int, frame: object) -> None:
        wake.send(number)

    former = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


@contextmanager
def _shared(folder: str) -> Iterator[None]:
    """Let the processes started here write their metrics into ``folder``."""
    former = os.environ.get(METRICS_FOLDER)
    os.environ[METRICS_FOLDER] = folder
    try:
        yield
    finally:
        if former is None:
            del os.environ[METRICS_FOLDER]
        else:
            os.environ[METRICS_FOLDER] = former


# in a server process ----------------------------------------------------------------------------------------------


def _serve(at: socket.socket, arguments: ServerArguments, report: Connection) -> None:
    """Run one server process, until a signal or the end of the process that started it."""
    import asyncio

    from zettel.errors import ZettelError

    parent = multiprocessing.parent_process()
    assert parent is not None
    ended = parent.sentinel

    def watch() -> None:
        wait([ended])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="zettel-parent").start()
    try:
        with logged(), queue(at) as own:
            asyncio.run(run(arguments, own, lambda: report.send("")))
    except (ZettelError, OSError) as error:
        report.send(str(error))
