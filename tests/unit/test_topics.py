"""Topics of segments: independent of order, stable as segments arrive, and bounded in size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zettel.evolve.topics import MAX_EVENTS, Segment, topics

NONE = np.zeros(4, np.float32)


def segment(name: str, text: str, events: int = 2) -> Segment:
    return Segment(name.encode(), tuple(f"{name}{place}" for place in range(events)), NONE, Counter(text.split()))


KILN = [segment("a", "kiln firing glaze"), segment("b", "kiln glaze shelves"), segment("c", "glaze kiln firing")]
BOAT = [segment("x", "rudder ferry harbour"), segment("y", "ferry rudder timetable")]
ALL = [*KILN, *BOAT]


def names(groups: Sequence[Sequence[int]], of: Sequence[Segment] = ALL) -> set[str]:
    return {"".join(sorted(of[place].key.decode() for place in group)) for group in groups}


def test_segments_with_the_same_rare_words_are_a_topic() -> None:
    assert names(topics(ALL, {})) == {"abc", "xy"}


def test_few_events_are_no_topic_and_one_long_segment_is() -> None:
    assert topics([segment("a", "kiln", events=3)], {}) == []
    assert topics([segment("a", "kiln", events=4)], {}) == [[0]]
    assert topics([], {}) == []


def test_segments_without_a_common_word_join_by_their_link() -> None:
    alone = [segment("a", "kiln"), segment("b", "rudder")]
    assert topics(alone, {}) == []
    assert topics(alone, {(0, 1): 0.0}) == []
    assert topics(alone, {(0, 1): 0.5}) == [[0, 1]]


@given(st.permutations(range(len(ALL))))
def test_the_order_of_arrival_does_not_matter(order: list[int]) -> None:
    shuffled = [ALL[place] for place in order]
    assert names(topics(shuffled, {}), shuffled) == {"abc", "xy"}


def test_existing_topics_keep_their_segments_and_never_join() -> None:
    apart = topics(ALL, {}, [[3, 4], [0], [1]])
    assert apart[0] == [3, 4]
    assert {0, 1} == {group[0] for group in apart[1:]}
    assert len(apart) == 3
    grown = topics(ALL, {}, [[0, 1]])
    assert grown[0] == [0, 1, 2]
    assert names(grown) == {"abc", "xy"}
    assert topics(ALL, {}, [sorted(group) for group in grown]) == grown


def test_a_topic_has_a_largest_size() -> None:
    many = [segment(f"{place:02d}", "kiln glaze firing", events=5) for place in range(12)]
    groups = topics(many, {})
    assert all(sum(len(many[place].events) for place in group) <= MAX_EVENTS for group in groups)
    assert sorted(place for group in groups for place in group) == list(range(12))
