"""Communities: which events of a scope belong together by the links between their notes.

Found by Louvain's method (Blondel et al. 2008, "Fast unfolding of communities in large networks"), one connected piece
at a time, so that what happens in one piece moves nothing in another. What was once seen together stays together: a
former community only grows, and what is new is looked at among itself first and then joins the one it is tied to most.
So a round that nothing has changed for finds what the one before it found.

Neither ids nor the order of arrival decide anything: events are taken in the order of keys made from what they say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx

MIN_EVENTS = 4
"""Events of a community at least: fewer can be read themselves."""
MAX_EVENTS = 24
"""A community that has more is divided if it can be, and takes up none: one text cannot tell more at a time."""
SEED = 7
"""Louvain's method visits nodes in random order; always in the same one here."""


def communities(
    events: Mapping[str, bytes],
    ties: Mapping[tuple[str, str], float],
    former: Sequence[Collection[str]] = (),
) -> list[frozenset[str]]:
    """Sets of events that belong together, disjoint: first the former ones, as they have grown, then new ones.

    ``events`` have a key each that tells their place; ``ties`` are weights of pairs, direction aside, and those of
    others than these events are passed over. An event of several former sets stays in the first.
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
    """Of each event those it is tied to, in order, with the weight."""
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
    """Communities among events that belong to none, by their first event."""
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
    """Louvain's communities of a connected piece, those that are too large divided in turn as far as they can be."""
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
    """Put each event into the community that it is tied to most and that has room; those that were."""
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
