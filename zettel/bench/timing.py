"""How long things take: percentiles, and the parts of a search, timed at the seams that it goes through.

A store, a scorer and an embedder are Protocols: the watch stands in front of them, and the engine knows nothing of it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from zettel.ports import QuestionEmbedder

if TYPE_CHECKING:
    from zettel.ports import Embedder, GraphStore, Scorer

MILLISECONDS = 1000.0
PERCENTILES = (50, 90, 99)
STAGES = ("embed", "candidates", "score", "fetch", "rest")
"""The question's vector, the store's one round trip, the scorer, the notes of the hits; all else is the rest."""

Seam = TypeVar("Seam")


def percentiles(seconds: Sequence[float], wanted: Sequence[int] = PERCENTILES) -> list[float]:
    """The ``wanted`` percentiles of some times, in milliseconds; there must be a time."""
    return [round(float(value) * MILLISECONDS, 2) for value in np.percentile(seconds, wanted)]


class StageWatch:
    """Seconds of each stage since ``begin``; what it is put in front of behaves as before."""

    def __init__(self) -> None:
        self._began = 0.0
        self._spent: dict[str, float] = defaultdict(float)

    def begin(self) -> None:
        """A search starts."""
        self._spent.clear()
        self._began = time.perf_counter()

    def end(self) -> dict[str, float]:
        """Seconds of each of STAGES, and of the ``search`` in all, since ``begin``."""
        whole = time.perf_counter() - self._began
        told = {stage: self._spent[stage] for stage in STAGES}
        return {"search": whole, **told, "rest": whole - sum(told.values())}

    def store(self, store: GraphStore) -> GraphStore:
        """The store, watched."""
        return self._watched(store, {"candidates": "candidates", "notes": "fetch", "histories": "fetch"})

    def scorer(self, scorer: Scorer) -> Scorer:
        """The scorer, watched."""
        return self._watched(scorer, {"score": "score"})

    def embedder(self, embedder: Embedder) -> Embedder:
        """The embedder, watched."""
        methods = ["embed", "embed_questions"] if isinstance(embedder, QuestionEmbedder) else ["embed"]
        return self._watched(embedder, dict.fromkeys(methods, "embed"))

    def _watched(self, inner: Seam, stages: dict[str, str]) -> Seam:
        return cast("Seam", _Watched(inner, {name: self._timed(inner, name, stages[name]) for name in stages}))

    def _timed(self, inner: object, name: str, stage: str) -> Callable[..., Any]:
        method = getattr(inner, name)

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            answer = method(*args, **kwargs)
            if isawaitable(answer):
                return self._awaited(answer, began, stage)
            self._spent[stage] += time.perf_counter() - began
            return answer

        return call

    async def _awaited(self, answer: Awaitable[Any], began: float, stage: str) -> Any:
        done = await answer
        self._spent[stage] += time.perf_counter() - began
        return done


class _Watched:
    """An object with some of its methods replaced."""

    def __init__(self, inner: object, methods: dict[str, Callable[..., Any]]) -> None:
        self._inner = inner
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        return self._methods.get(name) or getattr(self._inner, name)
