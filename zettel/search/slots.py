"""A scope's slots: vectors of a memory decoder's bank, written as notes arrive and kept with the scope.

They are derived from the notes and can be made anew at any time, so whatever is erased takes them along. Only a scorer
that has a bank asks for them; none that is shipped has one.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from anyio import to_thread

from zettel.batch import PutAnswer
from zettel.query import Filter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zettel.batch import Op
    from zettel.commit import Clock, Commits
    from zettel.embed.vectors import Vectors
    from zettel.model import Scope
    from zettel.ports import GraphStore, Reranker, ScopeState
    from zettel.query import Asked, Floats

KEY = "slots"
"""Under which they are kept, among what models answered: with the scope, and in no export."""
AT_ONCE = 1024
"""Notes written in one commit; a multiple of what a bank writes at once."""


class Bank(Protocol):
    """What a reranker has as ``bank`` if it reads a scope's slots.

    ``name`` tells its weights from any others; ``embedder`` is the fingerprint of the vectors that it is written from;
    ``chunk`` is how many notes are written at once.
    """

    name: str
    embedder: str
    chunk: int

    def write(self, vectors: Floats, slots: Floats | None) -> Floats:
        """The slots (s, d) after notes with these vectors (n, v); ``slots`` are those before, None: none yet."""
        ...


def bank_of(stages: Sequence[Reranker]) -> Bank | None:
    """That of the first reranker which has one."""
    return next((bank for stage in stages if (bank := getattr(stage, "bank", None)) is not None), None)


class Kept(NamedTuple):
    """Slots as they are kept: after whole chunks, with the last note's ``seq``, and after all ``notes``."""

    bank: str
    upto: int
    notes: int
    whole: Floats | None  # (s, d)
    slots: Floats  # (s, d)


class Slots:
    """The slots of a store's scopes. ``bank`` is that of the memory's own scorer: it is kept up with what arrives."""

    def __init__(self, store: GraphStore, commits: Commits, vectors: Vectors) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self.bank: Bank | None = None

    async def of(self, scope: Scope, bank: Bank) -> Floats | None:
        """The slots (s, d) that this bank wrote; None if there are none."""
        kept = _read(await self._store.answer(scope, KEY), bank)
        return None if kept is None else kept.slots

    async def keep_up(self, scope: Scope) -> None:
        """Write what has arrived, if the memory's scorer has a bank."""
        if self.bank is not None:
            await self.write(scope, self.bank)

    async def write(self, scope: Scope, bank: Bank, anew: bool = False) -> int:
        """Write all notes that are not in the slots yet, or ``anew`` all of them; how many notes stand in them.

        Notes are written by ``seq``, as far as each has a vector of the bank's embedder; archived ones are left out.
        """
        notes = 0
        more = True

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            nonlocal notes, more
            notes, more = 0, False
            space = await self._vectors.space()
            if not state.seq or space.fingerprint != bank.embedder:
                return []
            before = None if anew else _read(await self._store.answer(scope, KEY), bank)
            upto = 0 if before is None else before.upto
            page = await self._store.page(scope, Filter(), upto, AT_ONCE)
            found = await self._store.vectors(scope, [note.id for note in page], space.id)
            ready = next((place for place, note in enumerate(page) if note.id not in found), len(page))
            vectors = np.array([found[note.id] for note in page[:ready]], np.float32).reshape(ready, space.dim)
            full = ready - ready % bank.chunk
            whole = None if before is None else before.whole
            done = 0 if before is None else before.notes - before.notes % bank.chunk
            notes, more = done + ready, ready == AT_ONCE
            if notes == (0 if before is None else before.notes):
                return []
            if full:
                whole = await to_thread.run_sync(bank.write, vectors[:full], whole)
                upto = page[full - 1].seq
            slots = await to_thread.run_sync(bank.write, vectors[full:], whole)
            return [PutAnswer(KEY, _told(Kept(bank.name, upto, notes, whole, slots)), ())]

        while more:
            await self._commits.commit(scope, plan)
            anew = False
        return notes


async def erased(store: GraphStore, scope: Scope) -> list[Op]:
    """What destroys the slots of a scope, if it has any: for whoever takes away a note that may stand in them."""
    return [PutAnswer(KEY, "", ())] if await store.answer(scope, KEY) else []


def are_for(asked: Asked) -> bool:
    """Whether a question may be told what the slots know: all notes as they are now."""
    plain = asked.filter == Filter() and asked.as_of is None and asked.known_at is None
    return plain and not asked.archived and not asked.quarantined


def _told(kept: Kept) -> str:
    told = kept._asdict()
    return json.dumps({**told, "whole": _text(kept.whole), "slots": _text(kept.slots)})


def _read(text: str | None, bank: Bank) -> Kept | None:
    """What is kept, unless it was erased or another bank wrote it."""
    if not text:
        return None
    told = json.loads(text)
    if told["bank"] != bank.name:
        return None
    slots = _numbers(told["slots"])
    assert slots is not None
    return Kept(told["bank"], told["upto"], told["notes"], _numbers(told["whole"]), slots)


def _text(values: Floats | None) -> list[str] | None:
    """One row each, little-endian float32 in base64."""
    return None if values is None else [b64encode(row.astype("<f4").tobytes()).decode() for row in values]


def _numbers(rows: list[str] | None) -> Floats | None:
    return None if rows is None else np.array([np.frombuffer(b64decode(row), "<f4") for row in rows], np.float32)
