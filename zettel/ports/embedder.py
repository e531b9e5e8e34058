"""The embedder port: computes vectors of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from zettel.ports.query import Floats


class EmbedderInfo(NamedTuple):
    """The identity of an embedder: name, dimension, and the SHA-256 of its weights or, if remote, of its name."""

    name: str
    dim: int
    fingerprint: str


class Embedder(Protocol):
    """Computes one vector per text. Texts with similar meaning have vectors with a high cosine.

    An embedder may also have the attribute ``slow``, see ``is_slow``.
    """

    remote: bool
    """True if it uses a network. A commit never waits for a remote embedder: an ``embed`` job adds the vector later."""

    @property
    def info(self) -> EmbedderInfo:
        """Name, dimension and fingerprint. A remote embedder may need one ``embed`` call first to learn ``dim``."""
        ...

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return one vector per text: (n, dim) float32 rows of length 1, or a zero row for a text without known words.

        Raises ``EmbedderUnavailable`` if a remote embedder does not answer.
        """
        ...


def is_slow(embedder: Embedder) -> bool:
    """Return whether the embedder is local but takes milliseconds per text: its attribute ``slow``, by default False.

    A write of few notes waits for a slow embedder; a write of many does not, and an ``embed`` job adds the vectors.
    """
    return bool(getattr(embedder, "slow", False))


@runtime_checkable
class QuestionEmbedder(Protocol):
    """Optional for an embedder: embeds questions in another way than documents, for example with a prefix."""

    async def embed_questions(self, texts: Sequence[str]) -> Floats:
        """Return one vector per question; shape and errors as for ``embed``."""
        ...
