"""Feedback: what an agent tells of a search, namely which of its hits were of use, and how what it asked for ended.

It is kept with the search in the log, to learn from, and counted for each note, which makes a note stronger (see
``zettel.evolve.strength``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from zettel.batch import Op, PutFeedback, PutNoteUse
from zettel.errors import InvalidInput, NotFound
from zettel.model import LoggedSearch, NoteUse, Outcome, Proved, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from zettel.commit import Clock, Commits
    from zettel.ports import GraphStore, ScopeState
    from zettel.search.log import SearchLog

LOGGED = 10_000
"""Searches that the log keeps of a scope: some tens of megabytes, and more than a scorer needs to learn from."""


class Feedback:
    """Takes down what was of use."""

    def __init__(self, store: GraphStore, commits: Commits, log: SearchLog) -> None:
        self._store = store
        self._commits = commits
        self._log = log

    async def tell(self, scope: Scope, search: str, used: Iterable[str], outcome: Outcome | None) -> None:
        """Keep what was of use of a search's hits, in the place of what was told of it before.

        Raises ``NotFound`` for a search that is not in the log, ``InvalidInput`` for a note that it did not find.
        """
        if isinstance(used, str):
            raise InvalidInput("used takes a list of note ids: used=[hit.note.id]")
        if outcome not in (None, *get_args(Outcome)):
            raise InvalidInput(f"outcome={outcome!r}: say success or failure, or leave it out")
        ids = tuple(dict.fromkeys(used))
        await self._log.flush()

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            before = await self._store.search_logged(scope, search)
            if before is None:
                raise NotFound(f"the log of searches of {scope}", [search])
            found = {hit.note for hit in before.hits}
            if strange := [id for id in ids if id not in found]:
                raise InvalidInput(f"{', '.join(strange)}: not among the notes that search {search} found")
            after = before.model_copy(update={"used": ids, "outcome": outcome})
            if after == before:
                return []
            clock.next()
            notes = sorted({*(before.used or ()), *ids})
            uses = await self._store.note_uses(scope, notes)
            told = [PutNoteUse(id, counted(uses[id], id, before, after, clock.recorded_at)) for id in notes]
            return [PutFeedback(after), *told]

        await self._commits.commit(scope, plan)


def counted(use: NoteUse, note: str, before: LoggedSearch, after: LoggedSearch, now: datetime) -> NoteUse:
    """What is said of a note once a search says ``after`` and no longer ``before``."""
    was, now_is = note in (before.used or ()), note in (after.used or ())
    return NoteUse(
        since=now if now_is else use.since,
        times=use.times + now_is - was,
        successes=use.successes + (now_is and after.outcome == "success") - (was and before.outcome == "success"),
        failures=use.failures + (now_is and after.outcome == "failure") - (was and before.outcome == "failure"),
    )


def told_of(searches: Sequence[LoggedSearch]) -> list[LoggedSearch]:
    """Those of which somebody said what was of use, a failure of what was used left out: that teaches no liking."""
    return [one for one in searches if one.used is not None and not (one.used and one.outcome == "failure")]


def count(proved: dict[str, Proved], search: LoggedSearch) -> None:
    """Add what is known by one more search to how notes ``proved``, as ``GraphStore.proved`` says it of all."""
    if search.used is None:
        return
    good = set() if search.outcome == "failure" else set(search.used)
    for note in {hit.note for hit in search.hits}:
        before = proved.get(note, Proved(0, 0))
        proved[note] = Proved(before.shown + 1, before.good + (note in good))
