"""Positions of the nodes of a drawing: a spring layout, rotated to landscape and without overlaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SPRING_ROUNDS = 150  # enough for a few hundred nodes
SEPARATION_ROUNDS = 120
SEED = 7  # the same graph gives the same picture
OUTLIERS = 0.02  # share of the nodes at each edge that are moved inwards, so that they do not shrink the rest


def layout(start: Array, halves: Array, edges: Mapping[tuple[int, int], float], width: float, height: float) -> Array:
    """Return the positions of n nodes, (n, 2), in a ``width`` by ``height`` rectangle.

    ``start`` (n, 2) are the initial positions, ``halves`` (n, 2) half the width and height of each node, and ``edges``
    the strengths of the springs.
    """
    positions = _rotate(_spring(start, edges))
    low, high = np.quantile(positions, [OUTLIERS, 1 - OUTLIERS], axis=0)
    positions = np.tanh((positions - (low + high) / 2) / ((high - low) / 2) * 0.9)
    positions = positions / np.abs(positions).max(axis=0)
    extent = np.array([width, height]) / 2 - halves.max(axis=0)
    return _separate(positions * extent, halves, np.array([width, height]) / 2) + np.array([width, height]) / 2


def ring_positions(groups: Sequence[int], count: int) -> Array:
    """Return initial positions, (n, 2): groups on a circle in their order, each with its nodes along an arc."""
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


def _spring(start: Array, edges: Mapping[tuple[int, int], float]) -> Array:
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(len(start)))
    graph.add_weighted_edges_from((a, b, weight) for (a, b), weight in edges.items())
    distance = 2.2 / len(start) ** 0.5
    positions = nx.spring_layout(
        graph, pos=dict(enumerate(start)), iterations=SPRING_ROUNDS, seed=SEED, k=distance
    )
    return np.array([positions[node] for node in range(len(start))])


def _rotate(positions: Array) -> Array:
    """Rotate the longest axis to horizontal, with the first node at the top left."""
    centred = positions - positions.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned: Array = centred @ axes.T
    return turned * np.where(turned[0] > 0, -1.0, 1.0)


def _separate(positions: Array, halves: Array, extent: Array) -> Array:
    """Move overlapping boxes apart along the shorter way, inside the rectangle."""
    positions = positions.copy()
    reach = halves[:, None, :] + halves[None, :, :]  # (n, n, 2)
    others = ~np.eye(len(positions), dtype=bool)
    for _ in range(SEPARATION_ROUNDS):
        gap = positions[:, None, :] - positions[None, :, :]  # (n, n, 2)
        overlap = reach - np.abs(gap)
        touching = (overlap.min(axis=2) > 0) & others
        if not touching.any():
            break
        sideways = overlap[:, :, 0] < overlap[:, :, 1]
        # Of two nodes at the same position, the earlier one moves left and up.
        order = np.sign(np.arange(len(positions))[:, None] - np.arange(len(positions))[None, :])
        sign = np.where(gap == 0, order[:, :, None], np.sign(gap))
        push = np.where(np.stack([sideways, ~sideways], axis=2), sign * overlap / 2, 0.0)
        positions += np.where(touching[:, :, None], push, 0.0).sum(axis=1) * 0.5
        positions = np.clip(positions, -extent + halves, extent - halves)
    return positions
