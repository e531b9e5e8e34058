"""Which vectors a store needs for its notes: made before the commit by a local embedder, by a job after it by a remote
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zettel.annotate.index import VECTOR_RECIPE, vector_text
from zettel.batch import Op, PutVector
from zettel.errors import EmbedderMismatch
from zettel.model import Note
from zettel.ports import Embedder, GraphStore, QuestionEmbedder, Space

if TYPE_CHECKING:
    from zettel.query import Floats


async def embed_questions(embedder: Embedder, texts: Sequence[str]) -> Floats:
    """(n, dim) float32 unit rows of questions, by an embedder that may read these otherwise than other texts."""
    embed = embedder.embed_questions if isinstance(embedder, QuestionEmbedder) else embedder.embed
    return await embed(texts)


class Vectors:
    """One embedder and the vector set of a store that it fills."""

    def __init__(self, store: GraphStore, embedder: Embedder, later: bool = False) -> None:
        """``later``: vectors are made by jobs, as those of a remote embedder always are."""
        self._store = store
        self.embedder = embedder
        self.later = later or embedder.remote
        self._space: Space | None = None

    async def space(self) -> Space:
        """The store's active vector set; the first embedder that opens a store makes it.

        Raises ``EmbedderMismatch`` if another embedder filled it, ``EmbedderUnavailable`` if a remote one that has
        to be asked for its dimension does not answer.
        """
        if self._space is None:
            self._space = await self._active() or await self.own_space()
        return self._space

    async def _active(self) -> Space | None:
        info = self.embedder.info
        active = next((space for space in await self._store.spaces() if space.active), None)
        if active is not None and (active.fingerprint, active.recipe) != (info.fingerprint, VECTOR_RECIPE):
            raise EmbedderMismatch(
                f"the store's vectors were made by {active.name} ({active.dim} numbers), not by {info.name}: "
                f"open it with embedder={active.name!r}, or change over with `zettel reembed --embedder {info.name}`"
            )
        return active

    async def own_space(self) -> Space:
        """The vector set that this embedder fills, active or not; made if it is not there."""
        if self.embedder.remote and not self.embedder.info.dim:
            await self.embedder.embed(["How many numbers?"])  # only an answer tells
        info = self.embedder.info
        return await self._store.add_space(info.name, info.dim, info.fingerprint, VECTOR_RECIPE)

    async def embed(self, notes: Sequence[Note]) -> list[Op]:
        """One PutVector for each note, in order; asks the embedder, be it remote or not."""
        if not notes:
            return []
        space = await self.space()
        rows = await self.embedder.embed([vector_text(note) for note in notes])
        return [PutVector(note.id, space.id, row) for note, row in zip(notes, rows, strict=True)]

    async def embed_now(self, notes: Sequence[Note]) -> list[Op]:
        """The same, or nothing where jobs do it: no network stands before a commit.

        Raises ``EmbedderMismatch`` for either.
        """
        if not self.later:
            return await self.embed(notes)
        if self._space is None:
            await self._active()
        return []

    def forget(self) -> None:
        """The store's active set may have changed: look again before the next use."""
        self._space = None
