"""Jobs in processes of their own on this machine, so that an import uses more than one core.

Jobs, their order and their leases are in the store: a batch whose process ended is done again.
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
from zettel.jobs.child import LENGTH, READY, framed
from zettel.model import Evolved, Job
from zettel.opening import Opening, sealed

ENDING_SECONDS = 10.0
"""What a process may take to close its store before it is killed."""
PRINTED_BYTES = 2**20
"""Most that a process may print before it is ready."""
_GONE = (anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead, OSError)
"""How anyio tells, in one version or another, that a process is not there any more."""


def can_start() -> bool:
    """Whether this program can start a Python: one that is frozen, or has Python built in, would start itself."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


class ProcessRunner:
    """Does jobs in further processes, each started when it is first needed: ``at_once`` batches of each lane.

    For a memory in a file one is enough, as only one writes at a time. A process takes about a second to start, and the
    memory of another open store. One runner serves one memory.
    """

    away = True

    def __init__(self, at_once: int = 1) -> None:
        if at_once < 1:
            raise InvalidInput(f"at_once={at_once}: at least one process")
        self.at_once = at_once
        self._opening = b""
        self._idle: list[_Child] = []

    async def start(self, opening: Opening) -> None:
        """Processes start later. Raises ``InvalidInput`` for a memory that others cannot open."""
        if str(opening.url) == ":memory:" or not isinstance(opening.url, (str, os.PathLike)):
            raise InvalidInput(f"{opening.url} belongs to this process: the runner 'process' needs a file or a server")
        if not can_start():
            raise InvalidInput("this program cannot start another Python: leave the runner 'process' out")
        if self._opening:
            raise InvalidInput("this runner serves another memory: make a ProcessRunner for each")
        self._opening = sealed(opening, "process")

    async def do(self, jobs: Sequence[Job]) -> Evolved:
        """Have a process do a batch. Raises what opening the store there raises, and ``RunnerUnavailable``."""
        child = self._idle.pop() if self._idle else await _Child.start(self._opening)
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
        self._opening = b""


class _Child:
    """A process that does one batch at a time."""

    def __init__(self, process: Process, opening: bytes) -> None:
        self._process = process
        self._opening = opening
        self._requests = cast(ByteSendStream, process.stdin)
        self._answers = BufferedByteReceiveStream(cast(ByteReceiveStream, process.stdout))
        self._ready = False

    @classmethod
    async def start(cls, opening: bytes) -> _Child:
        """Start one. It has a session of its own: Ctrl-C is for whoever has the memory open, and ends it from there."""
        # Not by multiprocessing or anyio.to_process: in each process these run the caller's script again, so that one
        # without `if __name__ == "__main__"` would do everything twice.
        path = [entry for entry in sys.path if isinstance(entry, str)]
        code = f"import sys; sys.path[:] = {path!r}; from zettel.jobs.child import main; main()"
        try:
            process = await anyio.open_process([sys.executable, "-c", code], stderr=None, start_new_session=True)
        except (OSError, NotImplementedError) as error:  # the latter from event loops that know no processes
            raise RunnerUnavailable(f"no process could be started: {type(error).__name__} {error}") from None
        return cls(process, opening)

    async def do(self, jobs: Sequence[Job]) -> Evolved:
        try:
            if not self._ready:
                await self._requests.send(framed(self._opening))
                await self._answers.receive_until(READY, PRINTED_BYTES)
                self._ready = True
            await self._requests.send(framed(list(jobs)))
            head = await self._answers.receive_exactly(LENGTH.size)
            answer = pickle.loads(await self._answers.receive_exactly(*LENGTH.unpack(head)))
        except (*_GONE, anyio.DelimiterNotFound):
            raise RunnerUnavailable("the process that did jobs ended; what it said stands on stderr") from None
        if isinstance(answer, ZettelError):
            raise answer
        return cast(Evolved, answer)

    async def end(self) -> None:
        """Let it close its store, and wait until it has."""
        with anyio.move_on_after(ENDING_SECONDS):
            with suppress(*_GONE):  # it ended by itself
                await self._requests.send(framed([]))  # a fork of this process would hold the pipe open
                await self._requests.aclose()
            await self._process.wait()
        await self.kill()

    async def kill(self) -> None:
        """End it at once; nothing of what it is at is written."""
        if self._process.returncode is None:
            self._process.kill()
        with anyio.CancelScope(shield=True):
            await self._process.aclose()
