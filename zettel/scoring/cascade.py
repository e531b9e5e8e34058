"""Several rerankers in turn, each over fewer notes: what is quick reads many, what is dear reads the best of these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from zettel.errors import InvalidInput
from zettel.scoring import load_scorer

if TYPE_CHECKING:
    from zettel.ports import Reranker

EFFORTS = {"low": (), "mid": ("decoder",), "high": ("decoder", "cross-encoder")}
"""The rerankers by how much may be spent on a search, as in BudgetMem; each reads as many notes as by default."""


class Cascade:
    """One reranker after the other: each is given the best ``reads`` of the order that the one before it made.

    ``rerankers`` are objects, names as ``load_scorer`` takes them, or cascades; ``stages`` are they, loaded. Raises
    ``InvalidInput`` for none, or for a scorer that orders nothing anew, and what ``load_scorer`` raises.
    """

    def __init__(self, rerankers: Iterable[str | Reranker | Cascade]) -> None:
        self.stages = tuple(stage for one in rerankers for stage in _stages(one))
        if not self.stages:
            raise InvalidInput("a cascade needs rerankers: name one or more")


def stages_of_effort(effort: str) -> tuple[Reranker, ...]:
    """The rerankers that an effort stands for, loaded. Raises ``InvalidInput`` and what ``load_scorer`` raises."""
    if effort not in EFFORTS:
        raise InvalidInput(f"effort={effort!r}: take one of {', '.join(EFFORTS)}")
    return tuple(stage for name in EFFORTS[effort] for stage in load_scorer(name)[1])


def _stages(one: str | Reranker | Cascade) -> tuple[Reranker, ...]:
    stages = load_scorer(one)[1]
    if not stages:
        raise InvalidInput(f"{one!r} orders nothing anew: a cascade is made of rerankers, see zettel.ports.Reranker")
    return stages
