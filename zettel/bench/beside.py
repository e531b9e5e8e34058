"""The simple systems by name, as ``--beside`` takes them, and a MiniLM that embeds nothing twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.embed import load_embedder
from zettel.embed.vectors import embed_questions
from zettel.errors import EmbedderUnavailable, InvalidInput, MissingExtra

from .baselines import Baseline, amem, bm25, fused, vectors

if TYPE_CHECKING:
    from zettel.ports import Embedder, EmbedderInfo
    from zettel.query import Floats

QUICK = ("bm25", "vectors")
ALL = (*QUICK, "rrf", "minilm", "amem")
"""``rrf`` fuses the first two; ``minilm`` has vectors and fusion once more with MiniLM, which ``amem`` uses as well."""
MINILM = "all-MiniLM-L6-v2"


class Beside(NamedTuple):
    """Systems to measure beside zettel, by the name that a table shows, and what has to be said about them."""

    systems: dict[str, Baseline]
    notes: list[str]


def beside(names: Sequence[str], embedder: Embedder, minilm: str = MINILM) -> Beside:
    """The systems of ``names``, which are among ALL; ``minilm`` is the name or folder of the transformer.

    Where it cannot be had, its rows are missing, A-MEM searches with ``embedder``, and a note says so. Raises
    ``InvalidInput`` for another name.
    """
    if unknown := sorted(set(names) - set(ALL)):
        raise InvalidInput(f"there is no system {unknown[0]!r} to measure beside; there are {', '.join(ALL)}")
    notes: list[str] = []
    transformer = _transformer(minilm, notes) if {"minilm", "amem"} & set(names) else None
    flat = vectors(embedder)
    systems: dict[str, Baseline] = {}
    if "bm25" in names:
        systems["BM25"] = bm25
    if "vectors" in names:
        systems["vectors"] = flat
    if "rrf" in names:
        systems["RRF"] = fused(bm25, flat)
    if "minilm" in names and transformer is not None:
        systems["vectors, MiniLM"] = vectors(transformer)
        systems["RRF, MiniLM"] = fused(bm25, vectors(transformer))
    if "amem" in names:
        systems["A-MEM search"] = amem(transformer or embedder)
        if transformer is None:
            notes.append(f"A-MEM's search used {embedder.info.name}.")
    return Beside(systems, notes)


def hush_transformers() -> None:
    """No bars and no reports while a model loads: what a benchmark prints is its result."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _transformer(name: str, notes: list[str]) -> Embedder | None:
    try:
        if find_spec("transformers") is not None:
            hush_transformers()
        return Once(load_embedder(name if "/" in name else f"transformer:{name}"))
    except (MissingExtra, EmbedderUnavailable) as error:
        notes.append(f"Not measured with MiniLM: {error}.")
        return None


class Once:
    """An embedder that remembers what it embedded: systems that share one ask it for the same texts."""

    remote = False

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._texts: dict[str, Floats] = {}
        self._questions: dict[str, Floats] = {}

    @property
    def info(self) -> EmbedderInfo:
        """Of the embedder inside."""
        return self._inner.info

    async def embed(self, texts: Sequence[str]) -> Floats:
        """As the embedder inside."""
        return await _once(self._texts, texts, self._inner.embed)

    async def embed_questions(self, texts: Sequence[str]) -> Floats:
        """As the embedder inside."""
        return await _once(self._questions, texts, partial(embed_questions, self._inner))


async def _once(
    rows: dict[str, Floats], texts: Sequence[str], embed: Callable[[list[str]], Awaitable[Floats]]
) -> Floats:
    """The rows of all texts; those of new ones are added to ``rows``."""
    new = [text for text in dict.fromkeys(texts) if text not in rows]
    if new:
        rows.update(zip(new, await embed(new), strict=True))
    return np.stack([rows[text] for text in texts])
