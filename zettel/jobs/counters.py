"""Counters of the notes that jobs changed."""

from __future__ import annotations

from collections import Counter

from zettel.model import Evolved, Scope


class Counters:
    """Counts changed notes by scope."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def count(self, scope: Scope, *, revised: int = 0, merged: int = 0, insights: int = 0, archived: int = 0) -> None:
        """Add the changes of one commit."""
        for name, number in (("revised", revised), ("merged", merged), ("insights", insights), ("archived", archived)):
            self._counts[scope.key, name] += number

    def total(self, scope: Scope) -> Evolved:
        """Return the counts of a scope."""
        return Evolved(*(self._counts[scope.key, name] for name in Evolved._fields))

    def take(self, scope: Scope) -> Evolved:
        """Return the counts of a scope and reset them."""
        return Evolved(*(self._counts.pop((scope.key, name), 0) for name in Evolved._fields))
