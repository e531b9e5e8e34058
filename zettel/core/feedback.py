"""Records feedback on a search: the useful hits, and the outcome of the task.

The caller names the useful hits, or passes the answer, and ``zettel.core.used_notes`` finds them. The search log stores
them for learning. Counts per note make a useful note stronger (``zettel.scoring.strength``).

No writer raises its own notes: feedback requires a principal of full trust, and notes on probation gain nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, get_args

import anyio

from zettel.core.authority import is_on_probation, require_full_trust
from zettel.core.follow_ups import new_job
from zettel.core.identity import is_id
from zettel.core.search_log import WRITTEN_AFTER
from zettel.core.used_notes import used_notes
from zettel.errors import InvalidInput, NotFound
from zettel.model import JobKind, LoggedSearch, Note, NoteUse, Outcome, Proved, Scope
from zettel.ports.operations import Op, PutFeedback, PutNoteUse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from zettel.core.commit import Clock, Commits
    from zettel.core.search_log import SearchLogBuffer
    from zettel.ports import GraphStore, ScopeState

PREFERENCES = "preferences"
"""Key of the learned preferences of a scope among its cached answers (``PutAnswer``)."""
REPORTS = 50
"""Reports in one process after which a scope learns from them again, see ``zettel.jobs.tune_job``."""
SLACK_SECONDS = 0.5
"""Time for another process to write a search, once it begins."""
LOGGED = 10_000
"""Logged searches per scope: some tens of megabytes, and more than a scorer needs to learn from."""


class FeedbackRecorder:
    """Records feedback in one store."""

    def __init__(self, store: GraphStore, commits: Commits, log: SearchLogBuffer) -> None:
        self._store = store
        self._commits = commits
        self._log = log
        self._reports: Counter[str] = Counter()

    async def record(
        self, scope: Scope, search: str, used: Iterable[str] | None, outcome: Outcome | None, answer: str | None = None
    ) -> None:
        """Record the useful hits of a search, in place of earlier feedback on it.

        Without ``used`` they are the hits that ``answer`` used. If it used none, or if somebody has named the useful
        hits, nothing changes. Raises ``NotFound`` for a search that is not in the log, ``InvalidInput`` for a note that
        is not a hit, and ``PermissionDenied`` below full trust.
        """
        if isinstance(used, str):
            raise InvalidInput("used takes a list of note ids: used=[hit.note.id]")
        if (used is None) == (answer is None):
            raise InvalidInput("pass either used, the ids of the useful notes, or answer, the text that used them")
        if outcome not in (None, *get_args(Outcome)):
            raise InvalidInput(f"outcome={outcome!r}: use success or failure, or leave it out")
        require_full_trust("reports which notes were useful")
        named = None if used is None else tuple(dict.fromkeys(used))
        await self._log.flush()

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            before = await self._store.search_logged(scope, search)
            if before is None:
                raise NotFound(f"the log of searches of {scope}", [search])
            hits = [hit.note for hit in before.hits]
            if unknown := [id for id in named or () if id not in hits]:
                raise InvalidInput(f"{', '.join(unknown)} is not a hit of search {search}: pass ids of its hits")
            notes = await self._store.notes(scope, hits)
            if answer is not None:
                if before.used is not None and not before.inferred:
                    return []
                texts = {id: notes[id].content for id in hits if id in notes and is_source(notes[id])}
                ids = tuple(used_notes(answer, before.question, texts))
                if not ids:
                    return []
            else:
                ids = named or ()
            after = before.model_copy(update={"used": ids, "outcome": outcome, "inferred": answer is not None})
            if after == before:
                return []
            clock.next()
            changed = sorted(
                id for id in {*(before.used or ()), *ids} if id in notes and not is_on_probation(notes[id])
            )
            uses = await self._store.note_uses(scope, changed)
            puts = [PutNoteUse(id, counted(uses[id], id, before, after, clock.recorded_at)) for id in changed]
            is_due = self._reports[scope.key] + 1 >= REPORTS
            jobs = [new_job(scope, JobKind.TUNE, clock.now, version=clock.seq)] if is_due else []
            return [PutFeedback(after), *puts, *jobs]

        try:
            is_new = await self._commits.commit(scope, plan)
        except NotFound:
            if not is_id("s", search):
                raise
            await anyio.sleep(WRITTEN_AFTER + SLACK_SECONDS)  # another process of the same store may not have logged it
            is_new = await self._commits.commit(scope, plan)
        if is_new:
            self._reports[scope.key] = (self._reports[scope.key] + 1) % REPORTS


def is_source(note: Note) -> bool:
    """Return whether an answer can rest on a note. Earlier answers only repeat their sources; questions state nothing.

    So a model cannot raise its own words by repeating them.
    """
    return note.role != "assistant" and not note.content.rstrip().endswith("?")


def counted(use: NoteUse, note: str, before: LoggedSearch, after: LoggedSearch, now: datetime) -> NoteUse:
    """Return a note's counts after the feedback on a search changes from ``before`` to ``after``."""
    was_used, is_used = note in (before.used or ()), note in (after.used or ())
    return NoteUse(
        since=now if is_used else use.since,
        times=use.times + is_used - was_used,
        successes=use.successes + (is_used and after.outcome == "success") - (was_used and before.outcome == "success"),
        failures=use.failures + (is_used and after.outcome == "failure") - (was_used and before.outcome == "failure"),
    )


def training_searches(searches: Sequence[LoggedSearch]) -> list[LoggedSearch]:
    """Return the searches with feedback, without failures of used notes: a failure shows no preference."""
    return [s for s in searches if s.used is not None and not (s.used and s.outcome == "failure")]


def count_search(proved: dict[str, Proved], search: LoggedSearch) -> None:
    """Add one search to the counts of notes, as ``GraphStore.proved`` returns them."""
    good = set() if search.outcome == "failure" else set(search.used or ())
    for note in {hit.note for hit in search.hits}:
        before = proved.get(note, Proved())
        shown = before.shown + (search.used is not None)
        proved[note] = Proved(shown, before.good + (note in good), before.found + 1)
