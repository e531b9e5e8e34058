"""Personalised PageRank over links, terms and NEXT.

The walk starts at the restart vector of the question, follows a link with a probability that grows with its strength,
and returns to the start half of the time (Haveliwala 2002; for question answering Gutiérrez et al. 2024, HippoRAG).
Its share on a note measures how well the note is connected to the question, even without common words.

Each node has a link to itself. So a note with weak links keeps its own score, and one with strong links passes it on.
The same walk ranks conversations, which have few links, and documents, which have many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from zettel.model import LinkType
from zettel.ports.candidate_rules import RARE_TERM_DF

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.ports.query import Candidates, Floats, Ints

RESTART = 0.5
"""Probability of a restart: one hop away counts half, two hops a quarter."""
STEPS = 8
"""Iterations, after which less than 0.5^8 of the walk is missing."""
STAY = 0.5
"""Weight of a node's link to itself; a full link has 1.0."""
NEXT_WEIGHT = 0.02
"""Weight of a step to the previous or next turn. It is small: the local score includes neighbouring turns."""
TERM_WEIGHT = 0.1
"""Weight of a term in two notes; it falls with the number of notes."""
FIRMNESS = 8
"""Exponent of a link's weight. The weight of a near link is its cosine, and the local score already includes
similarity; so only near-identical notes (and typed links, 1.0) pass on much."""
FORWARD = {
    LinkType.MENTIONS: 1.0,
    LinkType.RELATES: 0.25,
    LinkType.SUPERSEDES: 0.25,
    LinkType.UPDATES: 0.25,
    LinkType.CONTRADICTS: 0.5,
    LinkType.DERIVED_FROM: 0.5,
}
"""Weights from the source of a link to its target. Mentions are exact; a replacement is better than its target."""
BACKWARD = {
    LinkType.MENTIONS: 0.5,
    LinkType.RELATES: 0.25,
    LinkType.SUPERSEDES: 1.0,
    LinkType.UPDATES: 0.5,
    LinkType.CONTRADICTS: 0.5,
    LinkType.DERIVED_FROM: 0.5,
}
"""Weights from the target of a link to its source."""


class WalkGraph(NamedTuple):
    """Weighted steps between nodes: rows 0 .. n - 1 are notes, n .. n + t - 1 are terms."""

    nodes: int
    source: Ints  # (e,)
    target: Ints  # (e,)
    weight: Floats  # (e,)


NO_STEPS = WalkGraph(0, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


@dataclass(frozen=True, slots=True)
class Walk:
    """The result of a walk."""

    share: NDArray[np.float64]  # (nodes,) sums to 1
    start: NDArray[np.floating]  # (nodes,)
    graph: WalkGraph
    chance: NDArray[np.floating]  # (e,) probability of each step from its source

    def sender(self, node: int) -> int:
        """The node that contributed most to the share of ``node`` (of equals the lowest), -1 for the start itself."""
        steps = np.flatnonzero(self.graph.target == node)
        source = self.graph.source[steps]
        flow = self.chance[steps] * self.share[source]
        largest = flow.max(initial=0.0)
        if (1 - RESTART) * largest <= RESTART * self.start[node]:
            return -1
        return int(source[flow == largest].min())


def graph_of(candidates: Candidates, *, terms: bool = True, time: bool = True) -> WalkGraph:
    """The steps between the candidates, in both directions."""
    n = len(candidates.ids)
    firm = candidates.link_weight**FIRMNESS
    sources, targets = [candidates.link_source], [candidates.link_target]
    forward: list[NDArray[Any]] = [_by_type(FORWARD)[candidates.link_type] * firm]
    backward: list[NDArray[Any]] = [_by_type(BACKWARD)[candidates.link_type] * firm]
    if time:
        earlier = np.flatnonzero(candidates.next >= 0)
        sources.append(earlier)
        targets.append(candidates.next[earlier])
        forward.append(np.full(len(earlier), NEXT_WEIGHT, np.float32))
        backward.append(forward[-1])
    if terms and len(candidates.term_df):
        df = candidates.term_df
        strength = np.where((df >= 2) & (df <= RARE_TERM_DF), TERM_WEIGHT * 2.0 / np.maximum(df, 2), 0.0)
        sources.append(candidates.term_note)
        targets.append(n + candidates.term_index)
        forward.append(strength.astype(np.float32)[candidates.term_index])
        backward.append(forward[-1])
    return WalkGraph(
        n + len(candidates.term_df),
        np.concatenate([*sources, *targets]),
        np.concatenate([*targets, *sources]),
        np.concatenate([*forward, *backward]),
    )


def _by_type(weights: dict[LinkType, float]) -> Floats:
    return np.array([weights[kind] for kind in LinkType], np.float32)


def walk(graph: WalkGraph, start: NDArray[np.floating]) -> Walk:
    """Personalised PageRank from ``start``, (nodes,) shares that sum to 1, or all 0.

    p = RESTART start + (1 - RESTART) (Tᵀ p + stay · p), solved for p on the diagonal, in STEPS iterations.
    """
    leaving = np.bincount(graph.source, graph.weight, minlength=graph.nodes) + STAY
    chance = graph.weight / leaving[graph.source]
    remains = 1.0 - (1.0 - RESTART) * STAY / leaving
    begin = RESTART * start / remains
    onward = (1.0 - RESTART) / remains
    share = begin
    for _ in range(STEPS):
        share = begin + onward * np.bincount(graph.target, chance * share[graph.source], graph.nodes)
    return Walk(share / max(float(share.sum()), 1e-12), start, graph, chance)
