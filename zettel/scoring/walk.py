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

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from zettel.model import LinkType
from zettel.search.pool import RARE_TERM_DF

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.query import Candidates, Floats, Ints

RESTART = 0.5
"""Chance of returning to the start: what is one hop away counts half, two hops a quarter."""
STEPS = 12
"""By then less than 0.5^12 of the walk is still on its way."""
STAY = 0.5
"""Weight of a node's link to itself, beside 1.0 for a full link."""
NEXT_WEIGHT = 0.02
"""Of the step to a neighbour in time: a nudge, for the windows have read the neighbours already."""
TERM_WEIGHT = 0.1
"""Of a Term that only two notes hold; it falls with the number of notes."""
FIRMNESS = 8.0
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


class Walk(NamedTuple):
    """Where the walk ended, and for each node which one sent most of it: -1 where it was the start itself."""

    share: NDArray[np.float64]  # (nodes,) sums to 1
    came_from: Ints  # (nodes,)


def graph_of(candidates: Candidates, *, terms: bool = True, time: bool = True) -> Graph:
    """The steps that the candidates allow, in both directions."""
    n = len(candidates.ids)
    links = len(candidates.link_source)
    kinds = list(LinkType)
    which = {kind: number for number, kind in enumerate(kinds)}
    types = np.fromiter((which[kind] for kind in candidates.link_type), np.intp, links)
    firm = candidates.link_weight.astype(np.float64) ** FIRMNESS
    forward = np.array([FORWARD[kind] for kind in kinds])[types] * firm
    backward = np.array([BACKWARD[kind] for kind in kinds])[types] * firm
    source = [candidates.link_source, candidates.link_target]
    target = [candidates.link_target, candidates.link_source]
    weight: list[NDArray[Any]] = [forward, backward]
    if time:
        earlier = np.flatnonzero(candidates.next >= 0)
        later = candidates.next[earlier]
        source += [earlier, later]
        target += [later, earlier]
        weight += [np.full(len(earlier), NEXT_WEIGHT)] * 2
    if terms and len(candidates.term_keys):
        held = candidates.has_term.tocoo()
        df = candidates.term_df[held.col]
        binding = (df >= 2) & (df <= RARE_TERM_DF)
        note, term = held.row[binding].astype(np.int64), n + held.col[binding].astype(np.int64)
        strength = TERM_WEIGHT * 2.0 / df[binding]
        source += [note, term]
        target += [term, note]
        weight += [strength, strength]
    return Graph(
        n + len(candidates.term_keys),
        np.concatenate(source).astype(np.int64),
        np.concatenate(target).astype(np.int64),
        np.concatenate(weight).astype(np.float32),
    )


def walk(graph: Graph, start: NDArray[np.floating]) -> Walk:
    """Personalised PageRank from ``start``, (nodes,) shares that sum to 1 (or all 0: then nothing is reached).

    Power iteration of p = RESTART start + (1 - RESTART) Tᵀ p for STEPS steps.
    """
    from scipy.sparse import csr_array

    leaving = np.bincount(graph.source, graph.weight, minlength=graph.nodes) + STAY
    chance = graph.weight / leaving[graph.source]
    keeps = STAY / leaving
    shape = (graph.nodes, graph.nodes)
    steps = csr_array((chance, (graph.target, graph.source)), shape=shape)
    share = np.asarray(start, np.float64)
    for _ in range(STEPS):
        share = RESTART * start + (1 - RESTART) * (steps @ share + keeps * share)
    return Walk(share, _came_from(graph, chance * share[graph.source], start))


def _came_from(graph: Graph, flow: NDArray[np.floating], start: NDArray[np.floating]) -> Ints:
    """Per node the source of its largest inflow, unless what started there is larger."""
    largest = np.zeros(graph.nodes)
    np.maximum.at(largest, graph.target, flow)
    sent = (flow > 0) & (flow == largest[graph.target])
    sent &= (1 - RESTART) * flow > RESTART * start[graph.target]
    winner = np.flatnonzero(sent)
    winner = winner[np.argsort(-graph.source[winner], kind="stable")]  # of equals the lowest source is written last
    came_from = np.full(graph.nodes, -1, np.int64)
    came_from[graph.target[winner]] = graph.source[winner]
    return came_from
