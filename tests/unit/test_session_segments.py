"""Segments of a session: borders where exchanges differ, in valleys of a talk, and after pauses."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.evolve.segments import CONTEXTUAL, STATIC, Turn, borders_for, segments

BOAT, VISA, NONE = np.eye(3, dtype=np.float32)[0], np.eye(3, dtype=np.float32)[1], np.zeros(3, np.float32)
NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)


def test_a_chat_is_divided_where_exchanges_differ() -> None:
    about = [(BOAT, BOAT), (BOAT, BOAT), (VISA, VISA)]
    chat = [turn for asked, answer in about for turn in (Turn(asked), Turn(answer, is_reply=True))]
    assert segments(chat) == [(0, 4), (4, 6)]


def test_a_talk_is_divided_in_a_valley() -> None:
    assert segments([Turn(BOAT)] * 5 + [Turn(VISA)] * 5) == [(0, 5), (5, 10)]
    assert segments([Turn(BOAT)] * 10) == [(0, 10)]


@pytest.mark.parametrize(("hours", "expected"), [(7, [(0, 2), (2, 4)]), (1, [(0, 4)])])
def test_a_long_pause_is_a_border(hours: int, expected: list[tuple[int, int]]) -> None:
    times = [NOON, NOON, NOON + timedelta(hours=hours), NOON + timedelta(hours=hours)]
    assert segments([Turn(BOAT, at % 2 == 1, when) for at, when in enumerate(times)]) == expected


def test_turns_without_vectors_are_one_segment() -> None:
    assert segments([Turn(NONE), Turn(NONE, is_reply=True), Turn(NONE), Turn(NONE, is_reply=True)]) == [(0, 4)]
    assert segments([]) == []
    assert segments([Turn(BOAT)]) == [(0, 1)]


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.booleans()), max_size=30))
def test_segments_cover_all_turns_once(turns: list[tuple[int, bool]]) -> None:
    rows = (BOAT, VISA, NONE)
    found = segments([Turn(rows[which], is_reply) for which, is_reply in turns])
    assert [at for start, end in found for at in range(start, end)] == list(range(len(turns)))


def test_borders_depend_on_the_embedder() -> None:
    assert borders_for("zettel-static-256") == STATIC
    assert borders_for("all-MiniLM-L6-v2-int8") == CONTEXTUAL
