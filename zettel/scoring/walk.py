"""A personalised-PageRank walk over what is linked: Links, Terms and NEXT.

The walker starts where the question points (the restart vector), goes over a link with a chance that grows with its
strength, and returns to the start half of the time (Haveliwala 2002; for question answering Gutiérrez et al. 2024,
HippoRAG). How much of the walk ends on a note says how well it is connected to what was asked, also where it shares no
word with the question.

A node keeps part of what comes in, as if it had a link to itself: a note held only by weak links stays what its own
score made it, and one with strong links hands on. So the same walk ranks conversations, which have few links, and
documents, which live by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from zettel.model import LinkType
from zettel.search.pool import RARE_TERM_DF

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.query import Candidates, Floats, Ints

RESTART = 0.5
"""Chance of returning to the start: what is one hop away counts half, two hops a quarter."""
STEPS = 8
"""By then less than 0.5^8 of the walk is still on its way."""
STAY = 0.5
"""Weight of a node's link to itself, beside 1.0 for a full link."""
NEXT_WEIGHT = 0.02
"""Of the step to a neighbour in time: a nudge, for the windows have read the neighbours already."""
TERM_WEIGHT = 0.1
"""Of a Term that only two notes hold; it falls with the number of notes."""
FIRMNESS = 8
"""Power of a link's weight. A near link weighs its cosine, and that two notes are merely similar (0.6) the local score
knows already; only what is nearly the same, or was decided (1.0), leads on."""
FORWARD = {
    LinkType.MENTIONS: 1.0,
    LinkType.RELATES: 0.25,
    LinkType.SUPERSEDES: 0.25,
    LinkType.CONTRADICTS: 0.5,
    LinkType.DERIVED_FROM: 0.5,
}
"""From the note that makes the link. A mention is exact; what replaced another says it better than that does."""
BACKWARD = {
    LinkType.MENTIONS: 0.5,
    LinkType.RELATES: 0.25,
    LinkType.SUPERSEDES: 1.0,
    LinkType.CONTRADICTS: 0.5,
    LinkType.DERIVED_FROM: 0.5,
}
"""Against the link's direction."""


class Graph(NamedTuple):
    """Weighted steps between nodes: rows 0 .. n - 1 are notes, n .. n + t - 1 Terms."""

    nodes: int
    source: Ints  # (e,)
    target: Ints  # (e,)
    weight: Floats  # (e,)


NOWHERE = Graph(0, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
"""No steps at all."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Where the walk ended, and how it got there."""

    share: NDArray[np.float64]  # (nodes,) sums to 1
    start: NDArray[np.floating]  # (nodes,)
    graph: Graph
    chance: NDArray[np.floating]  # (e,) of each step, from its source

    def sender(self, node: int) -> int:
        """Which node sent most of what ended on ``node``, of equals the lowest; -1 where it was the start itself."""
        steps = np.flatnonzero(self.graph.target == node)
        source = self.graph.source[steps]
        flow = self.chance[steps] * self.share[source]
        largest = flow.max(initial=0.0)
        if (1 - RESTART) * largest <= RESTART * self.start[node]:
            return -1
        return int(source[flow == largest].min())


def graph_of(candidates: Candidates, *, terms: bool = True, time: bool = True) -> Graph:
    """The steps that the candidates allow, in both directions."""
    n = len(candidates.ids)
    firm = candidates.link_weight**FIRMNESS
    one, other = [candidates.link_source], [candidates.link_target]
    forward: list[NDArray[Any]] = [_strength(FORWARD)[candidates.link_type] * firm]
    backward: list[NDArray[Any]] = [_strength(BACKWARD)[candidates.link_type] * firm]
    if time:
        earlier = np.flatnonzero(candidates.next >= 0)
        one.append(earlier)
        other.append(candidates.next[earlier])
        forward.append(np.full(len(earlier), NEXT_WEIGHT, np.float32))
        backward.append(forward[-1])
    if terms and len(candidates.term_df):
        df = candidates.term_df
        strength = np.where((df >= 2) & (df <= RARE_TERM_DF), TERM_WEIGHT * 2.0 / np.maximum(df, 2), 0.0)
        one.append(candidates.term_note)
        other.append(n + candidates.term_index)
        forward.append(strength.astype(np.float32)[candidates.term_index])
        backward.append(forward[-1])
    return Graph(
        n + len(candidates.term_df),
        np.concatenate([*one, *other]),
        np.concatenate([*other, *one]),
        np.concatenate([*forward, *backward]),
    )


def _strength(of: dict[LinkType, float]) -> Floats:
    """By the type's number."""
    return np.array([of[kind] for kind in LinkType], np.float32)


def walk(graph: Graph, start: NDArray[np.floating]) -> Walk:
    """Personalised PageRank from ``start``, (nodes,) shares that sum to 1 (or all 0: then nothing is reached).

    p = RESTART start + (1 - RESTART) (Tᵀ p + keeps · p), solved for p on the diagonal and iterated for STEPS steps.
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
