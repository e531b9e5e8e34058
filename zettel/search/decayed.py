"""Recall of decayed notes: a rare word that only an archived note contains finds it, and a hit restores it.

Each process caches the words of a scope's decayed notes for a minute. Notes are restored in the background: a search
does not write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from cachetools import TTLCache

from zettel.errors import InvalidInput, NotFound, StoreError
from zettel.model import TIME_MAX, Note, Scope
from zettel.text.index import searchable_text
from zettel.text.tokens import tokenize

if TYPE_CHECKING:
    from zettel.ports import GraphStore
    from zettel.ports.query import Candidates, Question

MIN_RARITY = 0.5
"""Background rarity from which a word recalls a note: "telescope" has 0.59, "dog" 0.32."""
MAX_RECALLABLE = 2_000
"""Newest decayed notes of a scope that can be recalled; reading them takes a tenth of a second. A search with
``archived=True`` reads all."""
CACHE_SECONDS = 60.0
"""Seconds until a cached scope is read again."""
CACHED_SCOPES = 64
"""Cached scopes."""
MAX_NAMED = 8
"""Most decayed notes that join the candidates of a question."""

RestoreDecayed = Callable[[Scope, str], Awaitable[object]]


class DecayedNotes:
    """The decayed notes of a memory, by the words they contain."""

    def __init__(self, store: GraphStore, restore: RestoreDecayed) -> None:
        self._store = store
        self._restore_note = restore
        self._cache: TTLCache[str, Mapping[str, Sequence[str]]] = TTLCache(CACHED_SCOPES, CACHE_SECONDS)
        self._tasks: set[asyncio.Task[None]] = set()

    async def named(self, scope: Scope, question: Question, candidates: Candidates) -> list[Note]:
        """Decayed notes with rare words of the question that occur in no other note."""
        tokens = zip(question.tokens, question.rarity, candidates.stats.df, strict=True)
        missing = [token for token, rarity, df in tokens if df == 0 and rarity >= MIN_RARITY]
        if not missing:
            return []
        postings = await self._postings(scope)
        ids = [id for token in missing for id in postings.get(token, ())]
        if not ids:
            return []
        best = sorted(dict.fromkeys(ids), key=ids.count, reverse=True)[:MAX_NAMED]  # ties: newest first
        return [note for note in (await self._store.notes(scope, best)).values() if _is_decayed(note)]

    async def _postings(self, scope: Scope) -> Mapping[str, Sequence[str]]:
        """Ids of the decayed notes by token."""
        if (cached := self._cache.get(scope.key)) is not None:
            return cached
        postings: dict[str, list[str]] = {}
        for note in await self._store.archived(scope, TIME_MAX, MAX_RECALLABLE):
            if _is_decayed(note):
                for token in dict.fromkeys(tokenize(searchable_text(note))):
                    postings.setdefault(token, []).append(note.id)
        self._cache[scope.key] = postings
        return postings

    def forget(self, scope: Scope) -> None:
        """Drop the cache after notes of a scope decayed or were restored."""
        self._cache.pop(scope.key, None)

    def restore(self, scope: Scope, ids: Iterable[str]) -> None:
        """Restore notes in the background."""
        task = asyncio.get_running_loop().create_task(self._restore(scope, list(ids)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _restore(self, scope: Scope, ids: Sequence[str]) -> None:
        for id in ids:
            # Deleted or restored meanwhile, or a store error: the next such question tries again.
            with suppress(NotFound, InvalidInput, StoreError):
                await self._restore_note(scope, id)
        self.forget(scope)

    async def settle(self) -> None:
        """Wait for the restores in progress."""
        while self._tasks:
            await asyncio.wait(self._tasks)


def _is_decayed(note: Note) -> bool:
    return note.archived and note.faded and note.quarantined is None
