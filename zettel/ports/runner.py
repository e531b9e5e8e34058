"""The port of runners, which decide where jobs run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from zettel.model import Evolved, Job
    from zettel.ports.settings import Settings


@runtime_checkable
class Runner(Protocol):
    """Runs jobs: in the process of the memory (the default), or in other processes, such as on a Ray cluster.

    The memory claims jobs in order, renews their leases while the runner works, and stores their errors. A runner
    passes each batch to ``zettel.local.worker.do`` in a process of its choice and returns the result. It may pass a
    batch twice when the first outcome is unknown: effects are written once.
    """

    at_once: int
    """Batches of each lane that may run together; batches whose order matters wait for others of their scope."""
    away: bool
    """True if the jobs run in other processes; slow vectors are then computed there too."""

    async def start(self, settings: Settings) -> None:
        """Prepare to run jobs of a memory with these settings. Raises ``InvalidInput``, ``RunnerUnavailable``."""
        ...

    async def do(self, jobs: Sequence[Job]) -> Evolved:
        """Run jobs of one scope and kind; return how many notes changed. Raises ``RunnerUnavailable``."""
        ...

    async def close(self) -> None:
        """Stop. Running batches may be dropped: their jobs return to the queue."""
        ...
