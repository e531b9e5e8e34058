"""Embedders: texts to vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from zettel.ports.query import Floats

class EmbedderInfo(NamedTuple):
    """Which embedder filled a store: ``fingerprint`` is the sha256 of its weights, or of its name if it is remote."""

    name: str
    dim: int
    fingerprint: str


class Embedder(Protocol):
    """Texts to vectors."""

    remote: bool
    """Whether it talks to a network; then it never stands before a commit: an ``embed`` job follows."""

    @property
    def info(self) -> EmbedderInfo:
        """Name, dimension and fingerprint. A remote embedder may have to be asked once before it knows ``dim``."""
        ...

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return (n, dim) float32 unit rows; a text without a known word gives a zero row.

        Raises ``EmbedderUnavailable`` when a remote one does not answer.
        """
        ...


@runtime_checkable
class QuestionEmbedder(Protocol):
    """What an embedder may do beside being an ``Embedder``: read a question otherwise than the texts that answer it,
    with a prompt of its own before it, say."""

    async def embed_questions(self, texts: Sequence[str]) -> Floats:
        """As ``embed``, for questions."""
        ...
