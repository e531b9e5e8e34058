"""Where the nodes of a picture go: a spring layout, turned to lie flat, with nothing on top of anything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SPRING_ROUNDS = 150  # after that nothing moves far in graphs of a few hundred nodes
APART_ROUNDS = 120
SEED = 7  # the same graph, the same picture
KEPT_IN = 0.02  # share of the nodes at each edge that are drawn in, so that a straggler does not shrink the rest


def layout(begin: Array, halves: Array, edges: Mapping[tuple[int, int], float], width: float, height: float) -> Array:
    """Positions of n nodes, (n, 2), in a ``width`` by ``height`` rectangle.

    ``begin`` (n, 2) is where they start, ``halves`` (n, 2) half of each one's width and height, ``edges`` the
    pull between nodes.
    """
    placed = _spring(begin, edges)
    placed = _flat(placed)
    low, high = np.quantile(placed, [KEPT_IN, 1 - KEPT_IN], axis=0)
    placed = np.tanh((placed - (low + high) / 2) / ((high - low) / 2) * 0.9)
    placed = placed / np.abs(placed).max(axis=0)
    room = np.array([width, height]) / 2 - halves.max(axis=0)
    return _apart(placed * room, halves, np.array([width, height]) / 2) + np.array([width, height]) / 2


def on_a_ring(groups: Sequence[int], count: int) -> Array:
    """A start for the springs: groups around a circle in their order, each group's nodes spread over its arc."""
    ring = np.zeros((len(groups), 2))
    sizes = {group: groups.count(group) for group in set(groups)}
    seen: dict[int, int] = {}
    for node, group in enumerate(groups):
        share = seen.get(group, 0) / sizes[group]
        seen[group] = seen.get(group, 0) + 1
        angle = 2 * np.pi * (group + share) / max(count, 1)
        radius = 0.8 + 0.2 * np.cos(5 * np.pi * share)
        ring[node] = -np.cos(angle) * radius, np.sin(angle) * radius
    return ring


def _spring(begin: Array, edges: Mapping[tuple[int, int], float]) -> Array:
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(len(begin)))
    graph.add_weighted_edges_from((a, b, weight) for (a, b), weight in edges.items())
    start = dict(enumerate(begin))
    placed = nx.spring_layout(graph, pos=start, iterations=SPRING_ROUNDS, seed=SEED, k=2.2 / len(begin) ** 0.5)
    return np.array([placed[node] for node in range(len(begin))])


def _flat(placed: Array) -> Array:
    """Turned so that the longest extent is horizontal, the first node to the left and above."""
    centred = placed - placed.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned: Array = centred @ axes.T
    return turned * np.where(turned[0] > 0, -1.0, 1.0)


def _apart(placed: Array, halves: Array, room: Array) -> Array:
    """Push boxes that overlap apart along the shorter way, keeping them in the rectangle."""
    placed = placed.copy()
    reach = halves[:, None, :] + halves[None, :, :]  # (n, n, 2)
    others = ~np.eye(len(placed), dtype=bool)
    for _ in range(APART_ROUNDS):
        gap = placed[:, None, :] - placed[None, :, :]  # (n, n, 2)
        overlap = reach - np.abs(gap)
        touching = (overlap.min(axis=2) > 0) & others
        if not touching.any():
            break
        sideways = overlap[:, :, 0] < overlap[:, :, 1]
        # Exactly on top of each other: the earlier node goes left and up.
        order = np.sign(np.arange(len(placed))[:, None] - np.arange(len(placed))[None, :])
        sign = np.where(gap == 0, order[:, :, None], np.sign(gap))
        push = np.where(np.stack([sideways, ~sideways], axis=2), sign * overlap / 2, 0.0)
        placed += np.where(touching[:, :, None], push, 0.0).sum(axis=1) * 0.5
        placed = np.clip(placed, -room + halves, room - halves)
    return placed
