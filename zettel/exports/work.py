"""What every writer of a format is handed: the scopes to write, what of them is wanted, and whom to tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from zettel.model import Scope
from zettel.ports import GraphStore

from .report import ExportReport

Progress: TypeAlias = Callable[[int, int], None]
"""Called after each page with how much is done and how much there is: events, or notes."""

PAGE = 200
"""Notes that are read and written at once."""


@dataclass
class Work:
    """One export on its way. Writers count in ``report`` what they wrote, and call ``told`` as they go."""

    store: GraphStore
    scopes: Sequence[Scope]
    report: ExportReport
    include: frozenset[str] = frozenset()
    on_progress: Progress | None = None
    _done: int = 0
    _total: int = 0

    @property
    def scope(self) -> Scope:
        """The one scope of a format that writes no more than one."""
        (scope,) = self.scopes
        return scope

    async def expect(self, **times: int) -> None:
        """Count what there is to do: ``events=1, notes=2`` for a writer that goes over the notes twice."""
        if self.on_progress is None:
            return
        for scope in self.scopes:
            counts = await self.store.counts(scope)
            self._total += sum(counts[name] * each for name, each in times.items())
        self.on_progress(0, self._total)

    def told(self, done: int) -> None:
        """So much more is done."""
        self._done += done
        if self.on_progress is not None:
            self.on_progress(self._done, max(self._done, self._total))
