"""Jobs in processes of their own on this machine, so that an import uses more than one core.

Jobs, their order and their leases are in the store: a batch whose process ended is done again.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from typing import cast

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream

from zettel.errors import InvalidInput, RunnerUnavailable, ZettelError
from zettel.jobs.child import LENGTH, framed
from zettel.model import Evolved, Job
from zettel.opening import Opening, sealed

ENDING_SECONDS = 10.0
"""What a process may take to close its store before it is killed."""


class ProcessRunner:
    """Does jobs in ``at_once`` further processes, each started when it is first needed.

    For a memory in a file one is enough, as only one writes at a time. A process takes about a second to start, and the
    memory of another open store.
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
        self._opening = sealed(opening, "process")
        self._room = anyio.CapacityLimiter(self.at_once)

    async def do(self, jobs: Sequence[Job]) -> Evolved:
        """Have a process do a batch. Raises what opening the store there raises, and ``RunnerUnavailable``."""
        async with self._room:  # each lane has as many batches under way
            child = self._idle.pop() if self._idle else await _Child.start(self._opening)
            try:
                done = await child.do(jobs)
            except BaseException:
                child.kill()
                with anyio.CancelScope(shield=True):
                    await child.end()
                raise
            self._idle.append(child)
            return done

    async def close(self) -> None:
        """End the processes."""
        while self._idle:
            await self._idle.pop().end()


class _Child:
    """A process that does one batch at a time."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._requests = cast(ByteSendStream, process.stdin)
        self._answers = BufferedByteReceiveStream(cast(ByteReceiveStream, process.stdout))

    @classmethod
    async def start(cls, opening: bytes) -> _Child:
        """Start one. It has a session of its own: Ctrl-C is for whoever has the memory open, and ends it from there."""
        # Not by multiprocessing or anyio.to_process: in each process these run the caller's script again, so that one
        # without `if __name__ == "__main__"` would do everything twice.
        code = f"import sys; sys.path[:] = {sys.path!r}; from zettel.jobs.child import main; main()"
        child = cls(await anyio.open_process([sys.executable, "-c", code], stderr=None, start_new_session=True))
        await child._send(opening)
        return child

    async def do(self, jobs: Sequence[Job]) -> Evolved:
        await self._send(list(jobs))
        try:
            head = await self._answers.receive_exactly(LENGTH.size)
            answer = pickle.loads(await self._answers.receive_exactly(*LENGTH.unpack(head)))
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError):
            raise self._gone() from None
        if isinstance(answer, ZettelError):
            raise answer
        return cast(Evolved, answer)

    async def _send(self, value: object) -> None:
        try:
            await self._requests.send(framed(value))
        except anyio.BrokenResourceError:
            raise self._gone() from None

    def _gone(self) -> RunnerUnavailable:
        return RunnerUnavailable("the process that did jobs ended; what it said stands on stderr")

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()

    async def end(self) -> None:
        """Let it close its store, and wait until it has."""
        await self._requests.aclose()
        with anyio.move_on_after(ENDING_SECONDS):
            await self._process.wait()
        self.kill()
        await self._process.aclose()
