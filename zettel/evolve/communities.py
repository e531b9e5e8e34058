"""Finds communities: groups of events that are linked by their notes.

Uses Louvain's method (Blondel et al. 2008, "Fast unfolding of communities in large networks") on one connected
component at a time, so that a change in one component changes no other. Existing communities only grow: new events
first form communities among themselves, then join the best linked one. So a second run finds the same result.

The result depends neither on ids nor on the order of arrival: events are ordered by keys made from their content.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx

MIN_EVENTS = 4
"""The least events of a community."""
MAX_EVENTS = 24
"""A larger community is divided if possible, and takes no new events: one text cannot cover more."""
SEED = 7
"""The seed of Louvain's random node order."""


def communities(
    events: Mapping[str, bytes],
    ties: Mapping[tuple[str, str], float],
    former: Sequence[Collection[str]] = (),
) -> list[frozenset[str]]:
    """Return disjoint sets of related events: first the grown ``former`` ones, then new ones.

    ``events`` maps each event to its sort key. ``ties`` are weights of undirected pairs; other events are ignored. An
    event of several former sets stays in the first.
    """
    order = sorted(events, key=lambda event: (events[event], event))
    place = {event: number for number, event in enumerate(order)}
    around = _around(place, ties)
    regions: list[set[int]] = []
    taken: set[int] = set()
    for one in former:
        regions.append({place[event] for event in one if event in place} - taken)
        taken |= regions[-1]
    while True:
        loose = [number for number in range(len(order)) if number not in taken and around[number]]
        found = _found(loose, around)
        regions += found
        taken = taken.union(*found)
        joined = _join([number for number in loose if number not in taken], around, regions)
        taken |= joined
        if not found and not joined:
            return [frozenset(order[number] for number in region) for region in regions]


def _around(place: Mapping[str, int], ties: Mapping[tuple[str, str], float]) -> list[dict[int, float]]:
    """Return the linked events of each event, in order, with the weights."""
    weights: dict[tuple[int, int], float] = {}
    for (one, other), weight in ties.items():
        if one != other and one in place and other in place:
            pair = min(place[one], place[other]), max(place[one], place[other])
            weights[pair] = max(weight, weights.get(pair, 0.0))
    around: list[dict[int, float]] = [{} for _ in place]
    for (one_place, other_place), weight in sorted(weights.items()):
        around[one_place][other_place] = weight
        around[other_place][one_place] = weight
    return around


def _found(loose: Sequence[int], around: Sequence[Mapping[int, float]]) -> list[set[int]]:
    """Return communities among unassigned events, by their first event."""
    left = set(loose)
    found: list[set[int]] = []
    for start in loose:
        piece = _reached(start, around, left)
        left -= piece
        if len(piece) >= MIN_EVENTS:
            parts = [part for part in _divided(piece, around) if len(part) >= MIN_EVENTS]
            found += parts or ([piece] if len(piece) <= MAX_EVENTS else [])  # a chain falls into pairs
    return sorted(found, key=min)


def _reached(start: int, around: Sequence[Mapping[int, float]], within: Collection[int]) -> set[int]:
    fresh = [start] if start in within else []
    found = set(fresh)
    while fresh:
        more = [other for other in around[fresh.pop()] if other in within and other not in found]
        found.update(more)
        fresh += more
    return found


def _divided(piece: Iterable[int], around: Sequence[Mapping[int, float]]) -> list[set[int]]:
    """Return Louvain's communities of a connected component; those that are too large are divided again."""
    import networkx as nx

    members = sorted(piece)
    number = {member: position for position, member in enumerate(members)}  # alike, wherever the piece stands
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(members)))
    graph.add_weighted_edges_from(
        (number[one], number[other], weight)
        for one in members
        for other, weight in around[one].items()
        if one < other and other in number
    )
    parts = [{members[position] for position in part} for part in nx.community.louvain_communities(graph, seed=SEED)]
    if len(parts) == 1:
        return parts
    return [fine for part in parts for fine in (_divided(part, around) if len(part) > MAX_EVENTS else [part])]


def _join(loose: Sequence[int], around: Sequence[Mapping[int, float]], regions: Sequence[set[int]]) -> set[int]:
    """Add each event to the best linked community with room; return the added events."""
    home = {member: at for at, region in enumerate(regions) for member in region}
    wanted: list[tuple[int, int]] = []
    for number in loose:
        pull: dict[int, float] = {}
        for other, weight in around[number].items():
            if other in home and len(regions[home[other]]) < MAX_EVENTS:
                pull[home[other]] = pull.get(home[other], 0.0) + weight
        if pull:
            wanted.append((number, max(pull, key=lambda at: (pull[at], -min(regions[at])))))
    joined: set[int] = set()
    for number, at in wanted:
        if len(regions[at]) < MAX_EVENTS:
            regions[at].add(number)
            joined.add(number)
    return joined
