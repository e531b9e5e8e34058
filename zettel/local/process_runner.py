"""The runner that runs jobs in child processes, so that an import uses more than one core.

Jobs, their order and their leases are in the store: when a process ends, its batch runs again.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import cast

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream

from zettel.errors import InvalidInput, RunnerUnavailable, ZettelError
from zettel.local.child_process import LENGTH, READY, framed
from zettel.model import Evolved, Job
from zettel.ports.settings import Settings, sealed

ENDING_SECONDS = 10.0
"""Seconds that a process may take to close its store before it is killed."""
PRINTED_BYTES = 2**20
"""Bytes that a process may print before it is ready."""
_END_ERRORS = (anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead, OSError)
"""The errors by which the versions of anyio report that a process has ended."""


def can_start() -> bool:
    """Return whether this program can start a Python: a frozen program would start itself."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


class ProcessRunner:
    """Runs jobs in child processes, started when first needed: ``at_once`` batches of each lane.

    For a memory in a file one process is enough, because only one can write at a time. A process takes about a second
    to start, and the RAM of another open store. One runner serves one memory.
    """

    away = True

    def __init__(self, at_once: int = 1) -> None:
        if at_once < 1:
            raise InvalidInput(f"at_once must be at least 1, got {at_once}")
        self.at_once = at_once
        self._settings = b""
        self._idle: list[_Child] = []

    async def start(self, settings: Settings) -> None:
        """Check the settings; processes start later. Raises ``InvalidInput`` for a memory that others cannot open."""
        if str(settings.url) == ":memory:" or not isinstance(settings.url, (str, os.PathLike)):
            raise InvalidInput(
                f"the runner 'process' cannot open {settings.url} in another process: use a file or a server"
            )
        if not can_start():
            raise InvalidInput("this program cannot start another Python: use the runner 'here'")
        if self._settings:
            raise InvalidInput("this runner serves another memory: make a ProcessRunner for each")
        self._settings = sealed(settings, "process")

    async def do(self, jobs: Sequence[Job]) -> Evolved:
        """Run a batch in a process. Raises what opening the store there raises, and ``RunnerUnavailable``."""
        child = self._idle.pop() if self._idle else await _Child.start(self._settings)
        try:
            done = await child.do(jobs)
        except BaseException:
            await child.kill()
            raise
        self._idle.append(child)
        return done

    async def close(self) -> None:
        """End the processes."""
        while self._idle:
            await self._idle.pop().end()
        self._settings = b""


class _Child:
    """A process that runs one batch at a time."""

    def __init__(self, process: Process, settings: bytes) -> None:
        self._process = process
        self._settings = settings
        self._requests = cast(ByteSendStream, process.stdin)
        self._answers = BufferedByteReceiveStream(cast(ByteReceiveStream, process.stdout))
        self._ready = False

    @classmethod
    async def start(cls, settings: bytes) -> _Child:
        """Start a process in its own session: Ctrl-C reaches only the parent, which then ends the process."""
        # multiprocessing and anyio.to_process run the caller's script again in each process, so that a script without
        # `if __name__ == "__main__"` would do everything twice.
        path = [entry for entry in sys.path if isinstance(entry, str)]
        code = f"import sys; sys.path[:] = {path!r}; from zettel.local.child_process import main; main()"
        try:
            process = await anyio.open_process([sys.executable, "-c", code], stderr=None, start_new_session=True)
        except (OSError, NotImplementedError) as error:  # the latter from event loops without processes
            raise RunnerUnavailable(f"no process could be started: {type(error).__name__} {error}") from None
        return cls(process, settings)

    async def do(self, jobs: Sequence[Job]) -> Evolved:
        try:
            if not self._ready:
                await self._requests.send(framed(self._settings))
                await self._answers.receive_until(READY, PRINTED_BYTES)
                self._ready = True
            await self._requests.send(framed(list(jobs)))
            head = await self._answers.receive_exactly(LENGTH.size)
            answer = pickle.loads(await self._answers.receive_exactly(*LENGTH.unpack(head)))
        except (*_END_ERRORS, anyio.DelimiterNotFound):
            raise RunnerUnavailable("the job process ended unexpectedly: see its output on stderr") from None
        if isinstance(answer, ZettelError):
            raise answer
        return cast(Evolved, answer)

    async def end(self) -> None:
        """Let the process close its store, and wait for it."""
        with anyio.move_on_after(ENDING_SECONDS):
            with suppress(*_END_ERRORS):  # it has already ended
                await self._requests.send(framed([]))  # a fork of this process would keep the pipe open
                await self._requests.aclose()
            await self._process.wait()
        await self.kill()

    async def kill(self) -> None:
        """Kill the process; the batch that it runs has no effect."""
        if self._process.returncode is None:
            self._process.kill()
        with anyio.CancelScope(shield=True):
            await self._process.aclose()
