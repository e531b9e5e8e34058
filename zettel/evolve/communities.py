"""Finds communities: groups of events that are linked by their notes.

Uses Louvain's method (Blondel et al. 2008, "Fast unfolding of communities in large networks") on one connected
component at a time, so that a change in one component changes no other. Existing communities only grow: new events
first form communities among themselves; the rest join the best linked one. So a second run returns the same result.

The result does not depend on ids or on the order of arrival, because keys made from their content order the events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx

MIN_EVENTS = 4
"""The fewest events of a community."""
MAX_EVENTS = 24
"""A larger community is divided if possible, and takes no new events: one text cannot cover more."""
SEED = 7
"""The seed of the random node order in Louvain's method."""


def communities(
    events: Mapping[str, bytes],
    ties: Mapping[tuple[str, str], float],
    former: Sequence[Collection[str]] = (),
) -> list[frozenset[str]]:
    """Return disjoint sets of related events: first the ``former`` sets with added events, then new sets.

    ``events`` maps each event to its sort key. ``ties`` are weights of undirected pairs; other events are ignored. An
    event in several former sets stays in the first.
    """
    order = sorted(events, key=lambda event: (events[event], event))
    place = {event: number for number, event in enumerate(order)}
    weights = _weights(place, ties)
    regions: list[set[int]] = []
    taken: set[int] = set()
    for events_before in former:
        regions.append({place[event] for event in events_before if event in place} - taken)
        taken |= regions[-1]
    while True:
        loose = [number for number in range(len(order)) if number not in taken and weights[number]]
        created = _create(loose, weights)
        regions += created
        taken = taken.union(*created)
        joined = _join([number for number in loose if number not in taken], weights, regions)
        taken |= joined
        if not created and not joined:
            return [frozenset(order[number] for number in region) for region in regions]


def _weights(place: Mapping[str, int], ties: Mapping[tuple[str, str], float]) -> list[dict[int, float]]:
    """Return the linked events of each event, in order, with the weights."""
    by_pair: dict[tuple[int, int], float] = {}
    for (source, target), weight in ties.items():
        if source != target and source in place and target in place:
            pair = min(place[source], place[target]), max(place[source], place[target])
            by_pair[pair] = max(weight, by_pair.get(pair, 0.0))
    weights: list[dict[int, float]] = [{} for _ in place]
    for (first, second), weight in sorted(by_pair.items()):
        weights[first][second] = weight
        weights[second][first] = weight
    return weights


def _create(loose: Sequence[int], weights: Sequence[Mapping[int, float]]) -> list[set[int]]:
    """Return new communities of unassigned events, ordered by first event."""
    remaining = set(loose)
    created: list[set[int]] = []
    for start in loose:
        component = _component(start, weights, remaining)
        remaining -= component
        if len(component) >= MIN_EVENTS:  # Louvain may split a small component into parts below MIN_EVENTS
            parts = [part for part in _divide(component, weights) if len(part) >= MIN_EVENTS]
            created += parts or ([component] if len(component) <= MAX_EVENTS else [])
    return sorted(created, key=min)


def _component(start: int, weights: Sequence[Mapping[int, float]], within: Collection[int]) -> set[int]:
    queue = [start] if start in within else []
    visited = set(queue)
    while queue:
        unvisited = [other for other in weights[queue.pop()] if other in within and other not in visited]
        visited.update(unvisited)
        queue += unvisited
    return visited


def _divide(component: Iterable[int], weights: Sequence[Mapping[int, float]]) -> list[set[int]]:
    """Return the Louvain communities of a connected component; divide too large ones again."""
    import networkx as nx

    members = sorted(component)
    number = {member: position for position, member in enumerate(members)}  # the result depends only on the component
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(members)))
    graph.add_weighted_edges_from(
        (number[member], number[other], weight)
        for member in members
        for other, weight in weights[member].items()
        if member < other and other in number
    )
    parts = [{members[position] for position in part} for part in nx.community.louvain_communities(graph, seed=SEED)]
    if len(parts) == 1:
        return parts
    return [piece for part in parts for piece in (_divide(part, weights) if len(part) > MAX_EVENTS else [part])]


def _join(loose: Sequence[int], weights: Sequence[Mapping[int, float]], regions: Sequence[set[int]]) -> set[int]:
    """Add each event to the best linked community that is not full; return the added events."""
    home = {member: at for at, region in enumerate(regions) for member in region}
    choices: list[tuple[int, int]] = []
    for number in loose:
        link_weights: dict[int, float] = {}
        for other, weight in weights[number].items():
            if other in home and len(regions[home[other]]) < MAX_EVENTS:
                link_weights[home[other]] = link_weights.get(home[other], 0.0) + weight
        if link_weights:
            choices.append((number, max(link_weights, key=lambda at: (link_weights[at], -min(regions[at])))))
    joined: set[int] = set()
    for number, at in choices:
        if len(regions[at]) < MAX_EVENTS:
            regions[at].add(number)
            joined.add(number)
    return joined
