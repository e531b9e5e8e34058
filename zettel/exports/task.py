"""State of one export: scopes, options, report and progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from zettel.model import Scope
from zettel.ports import GraphStore

from .report import ExportReport

Progress: TypeAlias = Callable[[int, int], None]
"""Called after each page with the done and total counts of events or notes."""

PAGE = 200
"""Notes that are read and written at once."""


@dataclass
class ExportTask:
    """A running export. Writers fill ``report`` and call ``advance``."""

    store: GraphStore
    scopes: Sequence[Scope]
    report: ExportReport
    include: frozenset[str] = frozenset()
    on_progress: Progress | None = None
    _done: int = 0
    _total: int = 0

    @property
    def scope(self) -> Scope:
        """The scope of a format that writes one scope."""
        (scope,) = self.scopes
        return scope

    async def count_total(self, **times: int) -> None:
        """Count the total: ``events=1, notes=2`` for a writer that reads the notes twice."""
        if self.on_progress is None:
            return
        for scope in self.scopes:
            counts = await self.store.counts(scope)
            self._total += sum(counts[name] * each for name, each in times.items())
        self.on_progress(0, self._total)

    def advance(self, done: int) -> None:
        """Report progress."""
        self._done += done
        if self.on_progress is not None:
            self.on_progress(self._done, max(self._done, self._total))
