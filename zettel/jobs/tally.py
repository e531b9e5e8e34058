"""How many notes jobs have changed, for whoever waits for them to tell."""

from __future__ import annotations

from collections import Counter

from zettel.model import Evolved, Scope


class Tally:
    """Counts, by scope."""

    def __init__(self) -> None:
        self._counted: Counter[tuple[str, str]] = Counter()

    def count(self, scope: Scope, *, revised: int = 0, merged: int = 0, insights: int = 0, archived: int = 0) -> None:
        """Add what a commit has changed."""
        for name, more in (("revised", revised), ("merged", merged), ("insights", insights), ("archived", archived)):
            self._counted[scope.key, name] += more

    def so_far(self, scope: Scope) -> Evolved:
        """All that was counted in a scope."""
        return Evolved(*(self._counted[scope.key, name] for name in Evolved._fields))

    def take(self, scope: Scope) -> Evolved:
        """The same, and begin anew."""
        return Evolved(*(self._counted.pop((scope.key, name), 0) for name in Evolved._fields))
