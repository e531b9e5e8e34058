"""Computes the vectors of notes before the commit, or, by a remote embedder and for many notes, by a job after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING

import numpy as np

from zettel.errors import EmbedderError, EmbedderMismatch
from zettel.model import Note
from zettel.ports import Embedder, GraphStore, QuestionEmbedder, VectorSet, is_slow
from zettel.ports.operations import Op, PutVector
from zettel.text.index import VECTOR_RECIPE, vector_text

if TYPE_CHECKING:
    from zettel.ports.query import Floats


EMBEDDED_AT_ONCE = 16
"""Notes that a write embeds with a slow embedder before its commit: 16 of 1,500 characters take 0.5 s on one core."""


_LENGTH_TOLERANCE = 0.01
"""How far the length of a row may be from 1, for embedders with half precision."""


async def embed_texts(embedder: Embedder, texts: Sequence[str]) -> Floats:
    """(n, dim) float32 unit rows of texts. Raises ``EmbedderError`` if the embedder returns anything else."""
    return await _rows(embedder, embedder.embed, texts)


async def embed_questions(embedder: Embedder, texts: Sequence[str]) -> Floats:
    """The same for questions, which some embedders embed differently from other texts."""
    embed = embedder.embed_questions if isinstance(embedder, QuestionEmbedder) else embedder.embed
    return await _rows(embedder, embed, texts)


async def _rows(
    embedder: Embedder, embed: Callable[[Sequence[str]], Awaitable[Floats]], texts: Sequence[str]
) -> Floats:
    waiting = embed(texts)
    if not isawaitable(waiting):
        raise EmbedderError(f"the embedder's {embed.__name__} returned before it was awaited: write 'async def'")
    result = await waiting
    name, dim = embedder.info.name, embedder.info.dim
    try:
        rows = np.asarray(result, np.float32)
    except (TypeError, ValueError) as error:
        raise EmbedderError(f"the embedder {name} returned no array of numbers: {error}") from error
    if rows.shape != (len(texts), dim):
        raise EmbedderError(f"the embedder {name} returned an array of shape {rows.shape}, not {(len(texts), dim)}")
    lengths = np.linalg.norm(rows, axis=1)
    wrong = ~((np.abs(lengths - 1) <= _LENGTH_TOLERANCE) | (lengths == 0))
    if wrong.any():
        place = int(wrong.argmax())
        raise EmbedderError(
            f"the embedder {name} returned a vector of length {lengths[place]:.4g} for {texts[place][:60]!r}: "
            "return rows of length 1, or a row of zeros for a text without known words"
        )
    return rows


class Vectors:
    """An embedder and its vector set in a store."""

    def __init__(self, store: GraphStore, embedder: Embedder, later: bool = False) -> None:
        """``later``: jobs compute the vectors, as always for a remote embedder."""
        self._store = store
        self.embedder = embedder
        self.later = later or embedder.remote
        self._space: VectorSet | None = None

    def defers(self, count: int) -> bool:
        """Return whether jobs compute the vectors of a write of ``count`` notes."""
        return self.later or (count > EMBEDDED_AT_ONCE and is_slow(self.embedder))

    async def space(self) -> VectorSet:
        """Return the store's active vector set; the first embedder that opens a store creates it.

        Raises ``EmbedderMismatch`` if another embedder filled it, ``EmbedderUnavailable`` if a remote embedder of
        unknown dimension does not answer.
        """
        if self._space is None:
            self._space = await self._active() or await self.own_space()
        return self._space

    async def _active(self) -> VectorSet | None:
        info = self.embedder.info
        active = next((space for space in await self._store.spaces() if space.active), None)
        if active is not None and (active.fingerprint, active.recipe) != (info.fingerprint, VECTOR_RECIPE):
            raise EmbedderMismatch(
                f"the store's vectors were made by {active.name} ({active.dim} numbers), not by {info.name}: "
                f"open it with embedder={active.name!r}, or change over with `zettel reembed --embedder {info.name}`"
            )
        return active

    async def own_space(self) -> VectorSet:
        """Return this embedder's vector set, active or not; creates it if necessary."""
        if self.embedder.remote and not self.embedder.info.dim:
            await self.embedder.embed(["How many numbers?"])  # the answer has the dimension
        info = self.embedder.info
        return await self._store.add_space(info.name, info.dim, info.fingerprint, VECTOR_RECIPE)

    async def embed(self, notes: Sequence[Note]) -> list[Op]:
        """Return one PutVector per note, in order; calls the embedder, remote or not."""
        if not notes:
            return []
        space = await self.space()
        rows = await embed_texts(self.embedder, [vector_text(note) for note in notes])
        return [PutVector(note.id, space.id, row) for note, row in zip(notes, rows, strict=True)]

    async def embed_now(self, notes: Sequence[Note], *, many: bool = False) -> list[Op]:
        """Return the same, or nothing if jobs compute the vectors: a commit waits neither for the network nor for many.

        ``many``: it waits for many.

        Raises ``EmbedderMismatch`` in both cases.
        """
        if not (self.later if many else self.defers(len(notes))):
            return await self.embed(notes)
        if not self.embedder.remote:
            await self.space()  # records the embedder with the first note
        elif self._space is None:
            await self._active()
        return []

    def forget(self) -> None:
        """Read the active set again before the next use, because it may have changed."""
        self._space = None
