"""Topic boundaries among turns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.annotate.segments import LEAST, MOST, segments


def _talk(*topics: int, seed: int = 0, dim: int = 64) -> np.ndarray:
    """Return unit vectors of turns on consecutive topics, with the given number of turns for each topic."""
    rng = np.random.default_rng(seed)
    middles = rng.standard_normal((len(topics), dim))
    rows = np.repeat(middles, topics, axis=0) + 0.5 * rng.standard_normal((sum(topics), dim))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


@pytest.mark.parametrize("seed", range(5))
def test_borders_are_where_topics_change(seed: int) -> None:
    assert segments(_talk(12, 15, 10, 21, seed=seed)) == [(0, 12), (12, 27), (27, 37), (37, 58)]


def test_forced_border_is_where_the_topic_changes() -> None:
    assert segments(_talk(11, 15), most=20) == [(0, 11), (11, 26)]


def test_one_topic_is_cut_only_where_it_must_be() -> None:
    assert segments(_talk(20)) == [(0, 20)]
    assert len(segments(_talk(40), gamma=9.0)) == 2


def test_few_turns_are_one_segment() -> None:
    assert segments(np.zeros((0, 8))) == []
    assert segments(_talk(1)) == [(0, 1)]
    assert segments([[1.0, 0.0], [0.0, 1.0]]) == [(0, 2)]


@given(
    st.integers(0, 130), st.integers(1, 30), st.integers(1, 30), st.floats(-3, 5), st.integers(0, 3), st.integers(0, 9)
)
def test_segments_cover_all_turns_within_bounds(
    count: int, least: int, most: int, gamma: float, kinds: int, seed: int
) -> None:
    rows = np.eye(4)[np.random.default_rng(seed).integers(0, kinds + 1, count)]
    rows[::7] = 0  # turns without known words
    bounds = segments(rows, least, most, gamma)
    places = [place for start, end in bounds for place in range(start, end)]
    assert places == list(range(count))
    smallest = min(least, count // -(-count // most)) if count else 0
    assert all(smallest <= end - start <= most for start, end in bounds)


def test_turns_without_a_known_word_make_no_border() -> None:
    assert segments(np.zeros((MOST, 8))) == [(0, MOST)]
    rows = _talk(2 * LEAST)
    rows[LEAST] = 0
    assert segments(rows) == [(0, 2 * LEAST)]
