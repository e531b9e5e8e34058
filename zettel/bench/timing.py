"""Percentiles, and timing of a search's stages by proxies of its store, scorer and embedder."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from zettel.ports import JointScorer, QuestionEmbedder

if TYPE_CHECKING:
    from zettel.ports import Embedder, GraphStore, Scorer

MILLISECONDS = 1000.0
PERCENTILES = (50, 90, 99)
STAGES = ("embed", "candidates", "score", "fetch", "rest")
"""Embedding the question (the scope is read meanwhile), the store's candidates, the scorer, fetching the notes of the
hits, everything else."""

Port = TypeVar("Port")


def percentiles(seconds: Sequence[float], points: Sequence[int] = PERCENTILES) -> list[float]:
    """Return percentiles of times, at least one, in milliseconds."""
    return [round(float(value) * MILLISECONDS, 2) for value in np.percentile(seconds, points)]


class StageTimer:
    """Measures the seconds of each stage since ``begin``."""

    def __init__(self) -> None:
        self._began = 0.0
        self._spent: dict[str, float] = defaultdict(float)

    def begin(self) -> None:
        """Start the timer of a search."""
        self._spent.clear()
        self._began = time.perf_counter()

    def end(self) -> dict[str, float]:
        """Return seconds of each of STAGES and of the ``search`` since ``begin``."""
        total = time.perf_counter() - self._began
        stages = {stage: self._spent[stage] for stage in STAGES}
        return {"search": total, **stages, "rest": total - sum(stages.values())}

    def store(self, store: GraphStore) -> GraphStore:
        """Return a timed proxy of a store."""
        return self._proxy(store, {"candidates": "candidates", "notes": "fetch", "histories": "fetch"})

    def scorer(self, scorer: Scorer) -> Scorer:
        """Return a timed proxy of a scorer."""
        methods = ["score", "score_each"] if isinstance(scorer, JointScorer) else ["score"]
        return self._proxy(scorer, dict.fromkeys(methods, "score"))

    def embedder(self, embedder: Embedder) -> Embedder:
        """Return a timed proxy of an embedder."""
        methods = ["embed", "embed_questions"] if isinstance(embedder, QuestionEmbedder) else ["embed"]
        return self._proxy(embedder, dict.fromkeys(methods, "embed"))

    def _proxy(self, inner: Port, stages: dict[str, str]) -> Port:
        return cast("Port", _Proxy(inner, {name: self._timed(inner, name, stages[name]) for name in stages}))

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
        result = await answer
        self._spent[stage] += time.perf_counter() - began
        return result


class _Proxy:
    """An object with some methods replaced."""

    def __init__(self, inner: object, methods: dict[str, Callable[..., Any]]) -> None:
        self._inner = inner
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        return self._methods.get(name) or getattr(self._inner, name)
