"""Which vectors a store needs for its notes: made before the commit by a local embedder, by a job after it by a remote
one.
"""

from __future__ import annotations

from collections.abc import Sequence

from zettel.annotate.index import VECTOR_RECIPE, vector_text
from zettel.errors import EmbedderMismatch
from zettel.model import Note
from zettel.ports import Embedder, GraphStore, Op, PutVector, Space


class Vectors:
    """One embedder and the vector set of a store that it fills."""

    def __init__(self, store: GraphStore, embedder: Embedder) -> None:
        self._store = store
        self.embedder = embedder
        self._space: Space | None = None

    async def space(self) -> Space:
        """The store's active vector set; the first embedder that opens a store makes it.

        Raises ``EmbedderMismatch`` if another embedder filled it, ``EmbedderUnavailable`` if a remote one that has
        to be asked for its dimension does not answer.
        """
        if self._space is None:
            active = next((space for space in await self._store.spaces() if space.active), None)
            if active is None:
                info = self.embedder.info
                active = await self._store.add_space(info.name, info.dim, info.fingerprint, VECTOR_RECIPE)
            self._require(active)
            self._space = active
        return self._space

    def _require(self, space: Space) -> None:
        info = self.embedder.info
        if (space.fingerprint, space.recipe) != (info.fingerprint, VECTOR_RECIPE):
            raise EmbedderMismatch(
                f"the store's vectors were made by {space.name} ({space.dim} numbers), not by {info.name}: open it with "
                f"embedder={space.name!r}, or change over with `zettel reembed --embedder {info.name}`"
            )

    async def embed(self, notes: Sequence[Note]) -> list[Op]:
        """One PutVector for each note, in order; asks the embedder, be it remote or not."""
        if not notes:
            return []
        space = await self.space()
        rows = await self.embedder.embed([vector_text(note) for note in notes])
        return [PutVector(note.id, space.id, row) for note, row in zip(notes, rows, strict=True)]

    async def embed_now(self, notes: Sequence[Note]) -> list[Op]:
        """The same with a local embedder, nothing with a remote one: no network stands before a commit."""
        return [] if self.embedder.remote else await self.embed(notes)

    def forget(self) -> None:
        """The store's active set may have changed: look again before the next use."""
        self._space = None
