"""The runner port: runs jobs in this process or in others."""

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
    """Maximum number of concurrent batches per lane. Batches that are not ``order_free`` run one by one per scope."""
    away: bool
    """True if jobs run in other processes, which then also compute the vectors of slow embedders."""

    async def start(self, settings: Settings) -> None:
        """Prepare to run the jobs of a memory with these settings. Raises ``InvalidInput``, ``RunnerUnavailable``."""
        ...

    async def do(self, jobs: Sequence[Job]) -> Evolved:
        """Run jobs of one scope and kind; return how many notes changed. Raises ``RunnerUnavailable``."""
        ...

    async def close(self) -> None:
        """Stop the runner. It may drop running batches: their jobs return to the queue."""
        ...
