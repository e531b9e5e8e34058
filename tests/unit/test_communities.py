"""Communities: independent of the order of links, and stable as notes arrive."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zettel.evolve import communities as communities_module
from zettel.evolve.communities import communities

Ties = dict[tuple[str, str], float]


def clique(*events: str, weight: float = 1.0) -> Ties:
    return dict.fromkeys(combinations(events, 2), weight)


def keys(events: Any) -> dict[str, bytes]:
    return {event: event.encode() for event in events}


ABC = clique(*"abcde")
XYZ = clique(*"vwxyz")
EVENTS = keys("abcdemnvwxyz")


def test_densely_linked_notes_form_a_community() -> None:
    groups = communities(EVENTS, ABC | XYZ | {("e", "v"): 0.3})
    assert groups == [frozenset("abcde"), frozenset("vwxyz")]


def test_too_few_notes_form_no_community() -> None:
    assert communities(EVENTS, clique(*"abc")) == []
    assert communities({}, {}) == []


def test_a_chain_is_one_community() -> None:
    assert communities(EVENTS, {("a", "b"): 1.0, ("b", "c"): 1.0, ("c", "d"): 1.0}) == [frozenset("abcd")]


def test_a_new_note_joins_its_strongest_community() -> None:
    former = [set("vwxyz"), set("abcde")]
    ties = ABC | XYZ | {("m", "a"): 0.5, ("m", "b"): 0.4, ("v", "m"): 0.8, ("n", "m"): 0.9}
    assert communities(EVENTS, ties, former) == [frozenset("vwxyz"), frozenset("abcdemn")]


def test_an_existing_community_stays_whole_and_may_become_too_small() -> None:
    assert communities(EVENTS, XYZ, [set("abcde"), set("mno")]) == [
        frozenset("abcde"), frozenset("mn"), frozenset("vwxyz")
    ]  # fmt: skip


def test_changes_elsewhere_move_nothing() -> None:
    alone = communities(EVENTS, ABC)
    assert communities(EVENTS, ABC | XYZ)[0] == alone[0]


def test_a_full_community_accepts_no_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(communities_module, "MAX_EVENTS", 5)
    assert communities(EVENTS, ABC | {("a", "m"): 1.0}, [set("abcde")]) == [frozenset("abcde")]


def test_a_large_community_is_split_at_weak_links() -> None:
    halves = [[f"{half}{n:02d}" for n in range(16)] for half in "ab"]
    ties = clique(*halves[0]) | clique(*halves[1]) | {(halves[0][n], halves[1][n]): 1.0 for n in range(16)}
    groups = communities(keys([*halves[0], *halves[1]]), ties)
    assert sorted(map(len, groups)) == [16, 16]


edges = st.dictionaries(
    st.tuples(st.integers(0, 29), st.integers(0, 29)).filter(lambda pair: pair[0] != pair[1]),
    st.sampled_from([0.5, 0.7, 1.0]),
    max_size=60,
)


@settings(deadline=None, max_examples=60)
@given(edges, st.randoms(use_true_random=False))
def test_ids_and_order_do_not_matter(edges: dict[tuple[int, int], float], rng: Any) -> None:
    ties = {(str(source), str(target)): weight for (source, target), weight in edges.items()}
    events = {str(n): bytes([n]) for n in range(30)}
    first = communities(events, ties)
    assert communities(events, ties, first) == first  # a second run returns the same
    assert all(len(group) >= communities_module.MIN_EVENTS for group in first)
    assert len(set().union(*first)) == sum(map(len, first))
    names = {str(n): f"{rng.random()} {n}" for n in range(30)}
    pairs = [(names[source], names[target], weight) for (source, target), weight in ties.items()]
    rng.shuffle(pairs)
    shuffled = list(events)
    rng.shuffle(shuffled)
    renamed = communities({names[n]: events[n] for n in shuffled}, {(a, b): weight for a, b, weight in pairs})
    assert renamed == [frozenset(names[event] for event in group) for group in first]
