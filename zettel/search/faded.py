"""Faded notes that a question names: found by words that nothing else holds, and brought back once they were.

A process keeps, for each scope in which it was asked with such a word, which faded notes hold which words, and reads
that anew after a minute. What is found is brought back in the background: a search writes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from zettel.annotate.index import searchable_text
from zettel.annotate.tokens import tokenize
from zettel.errors import InvalidInput, NotFound, StoreError
from zettel.model import TIME_MAX, Note, Scope

if TYPE_CHECKING:
    from zettel.ports import GraphStore
    from zettel.query import Candidates, Question

RARE = 0.5
"""Background rarity from which a word names something: "telescope" has 0.59, "dog" 0.32."""
LOOKED_AT = 2_000
"""Faded notes of a scope that are known by their words, the newest: read in a tenth of a second. A search for
``archived`` looks at all."""
KNOWN_FOR = 60.0
"""Seconds for which that is taken to be so."""
SCOPES = 64
"""Scopes of which it is kept."""
NAMED = 8
"""Faded notes that join the candidates of one question at most."""

BringBack = Callable[[Scope, str], Awaitable[object]]


class Faded:
    """What a memory knows of its faded notes, in its event loop."""

    def __init__(self, store: GraphStore, bring_back: BringBack) -> None:
        self._store = store
        self._bring_back = bring_back
        self._known: dict[str, tuple[float, Mapping[str, Sequence[str]]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def named(self, scope: Scope, question: Question, candidates: Candidates) -> list[Note]:
        """The faded notes that hold words of the question which are rare and which no other note holds."""
        asked = zip(question.tokens, question.rarity, candidates.stats.df, strict=True)
        unheard = [token for token, rarity, df in asked if df == 0 and rarity >= RARE]
        if not unheard:
            return []
        holding = await self._holding(scope)
        held = [id for token in unheard for id in holding.get(token, ())]
        if not held:
            return []
        most = sorted(dict.fromkeys(held), key=held.count, reverse=True)[:NAMED]  # of as many words the newest first
        return [note for note in (await self._store.notes(scope, most)).values() if _has_faded(note)]

    async def _holding(self, scope: Scope) -> Mapping[str, Sequence[str]]:
        """By token the ids of the faded notes that hold it."""
        read_at, known = self._known.get(scope.key, (-KNOWN_FOR, {}))
        if time.monotonic() < read_at + KNOWN_FOR:
            return known
        holding: dict[str, list[str]] = {}
        for note in await self._store.archived(scope, TIME_MAX, LOOKED_AT):
            if _has_faded(note):
                for token in dict.fromkeys(tokenize(searchable_text(note))):
                    holding.setdefault(token, []).append(note.id)
        while len(self._known) >= SCOPES:
            del self._known[next(iter(self._known))]
        self._known[scope.key] = time.monotonic(), holding
        return holding

    def forget(self, scope: Scope) -> None:
        """Something has faded, or came back."""
        self._known.pop(scope.key, None)

    def bring_back(self, scope: Scope, ids: Iterable[str]) -> None:
        """Bring notes back, soon."""
        task = asyncio.get_running_loop().create_task(self._bring(scope, list(ids)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _bring(self, scope: Scope, ids: Sequence[str]) -> None:
        for id in ids:
            # Gone, or back already; or the store takes nothing: then the next such question tries again.
            with suppress(NotFound, InvalidInput, StoreError):
                await self._bring_back(scope, id)
        self.forget(scope)

    async def settle(self) -> None:
        """Wait until what was to be brought back is back."""
        while self._tasks:
            await asyncio.wait(self._tasks)


def _has_faded(note: Note) -> bool:
    return note.archived and note.faded and note.quarantined is None
