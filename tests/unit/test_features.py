"""Local features, compared with values computed by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tiny import Row, Tiny
from zettel.model import TIME_MIN
from zettel.scoring import features


def test_bm25_is_the_textbook_formula() -> None:
    scores = features.bm25(
        np.array([[2.0, 0.0], [0.0, 0.0]], np.float32), np.array([10, 10]), 20.0, np.array([3.0, 5.0])
    )
    expected = 3.0 * 2.0 * 2.2 / (2.0 + 1.2 * (0.25 + 0.75 * 10 / 20))
    assert scores[0] == pytest.approx(expected)
    assert scores[1] == 0.0


def test_bm25_without_query_tokens_is_zero() -> None:
    assert features.bm25(np.zeros((3, 0), np.float32), np.array([1, 2, 3]), 2.0, np.zeros(0)).tolist() == [0, 0, 0]


def test_coverage_is_the_share_of_the_query_weight() -> None:
    tf = np.array([[1, 0], [3, 1], [0, 0]], np.float32)
    assert features.coverage(tf, np.array([1.0, 3.0], np.float32)).tolist() == [0.25, 1.0, 0.0]
    assert features.coverage(tf, np.zeros(2, np.float32)).tolist() == [0.0, 0.0, 0.0]


def test_windows_end_with_the_session() -> None:
    values = np.array([[1.0], [10.0], [100.0], [1000.0]], np.float32)
    windows = features.window_rows(np.array([-1, 0, 1, -1]), np.array([1, 2, -1, -1]), np.arange(4), 2)
    assert features.window_sums(values, windows[:3])[:, 0].tolist() == [11, 111, 110, 1000]
    assert features.window_sums(values, windows)[:, 0].tolist() == [111, 111, 111, 1000]
    assert features.window_best(-values[:, 0], windows[:3]).tolist() == [-1, -1, -10, -1000]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 4), st.randoms(use_true_random=False))
def test_windows_agree_with_slices_of_the_session(sizes: list[int], steps: int, random: object) -> None:
    """Whatever the order of the rows, sum and best are those of a slice of the session."""
    rows = list(range(sum(sizes)))
    random.shuffle(rows)  # type: ignore[attr-defined]
    values = np.arange(1.0, len(rows) + 1)
    previous, following = np.full(len(rows), -1), np.full(len(rows), -1)
    sessions = [rows[sum(sizes[:i]) : sum(sizes[: i + 1])] for i in range(len(sizes))]
    for session in sessions:
        previous[session[1:]], following[session[:-1]] = session[:-1], session[1:]
    windows = features.window_rows(previous, following, np.arange(len(rows)), steps)
    sums, best = features.window_sums(values[:, None], windows), features.window_best(values, windows)
    for session in sessions:
        for place, row in enumerate(session):
            within = values[session[max(0, place - steps) : place + steps + 1]]
            assert sums[row, 0] == within.sum()
            assert best[row] == within.max()


def test_a_note_without_session_has_its_own_value() -> None:
    own, sessions = np.array([1.0, 2.0, 3.0]), np.array([7.0])
    assert features.of_session(own, sessions, np.array([0, -1, 0])).tolist() == [7.0, 2.0, 7.0]
    assert features.of_session(own, np.zeros(0), np.full(3, -1)).tolist() == [1.0, 2.0, 3.0]


def test_a_note_has_the_confidence_of_its_speaker() -> None:
    assert features.speaker_named(np.array([0, 1, -1, 0]), [1.0, 0.5]).tolist() == [1, 0.5, 0, 1]


def test_a_speaker_name_weighs_less_than_another_word() -> None:
    idfs, rarity = np.array([4.0, 4.0]), np.array([0.5, 0.5], np.float32)
    weights = features.token_weights(idfs, rarity, ("ann", "cello"), features.speaker_tokens(("Ann",)))
    assert weights.tolist() == pytest.approx([4.0 * features.SPEAKER_NAME, 4.0])


def test_time_counts_from_start_to_before_the_end() -> None:
    at = np.array([TIME_MIN, 9, 10, 19, 20])
    assert features.in_time(at, ((10, 20),)).tolist() == [0, 0, 1, 1, 0]
    assert features.in_time(at, ((TIME_MIN, 20),)).tolist() == [0, 1, 1, 1, 0]


def test_equal_values_have_equal_ranks_and_low_ones_none() -> None:
    values = np.array([0.2, 0.9, 0.2, -1.0, 0.5], np.float32)
    ranks = features.TopValues(values).reciprocal_rank(values)
    assert ranks.tolist() == pytest.approx([3 / 5, 1.0, 3 / 5, 0.0, 3 / 4])
    values = np.arange(1.0, 300.0, dtype=np.float32)
    many = features.TopValues(values).reciprocal_rank(values)
    assert np.count_nonzero(many) == features.TOP


def test_the_turn_beside_an_answer_is_that_of_another_event() -> None:
    """A question, an answer of three parts, and a question."""
    event, following = np.array([0, 1, 1, 1, 2]), np.array([1, 2, 3, 4, -1])
    previous = np.array([-1, 0, 1, 2, 3])
    rows = np.arange(5)
    assert features.turn_beside(previous, event, rows).tolist() == [-1, 0, 0, 0, 3]
    assert features.turn_beside(following, event, rows).tolist() == [1, 4, 4, 4, -1]


def test_the_best_part_counts_for_all_parts_of_an_event() -> None:
    values = np.array([0.1, 0.7, 0.3], np.float32)
    assert features.event_best(values, np.array([5, 5, 9])).tolist() == pytest.approx([0.7, 0.7, 0.3])


def test_words_that_only_name_a_time_weigh_little() -> None:
    may = 19_843 * 86_400_000_000 + 1
    tiny = Tiny([Row("A cello.", role="user", at=may), Row("In May.", role="user", at=may)])
    question = tiny.ask("What about the cello in May 2024?", today=may)
    inputs = features.FeatureInputs([(question, tiny.about(question))])
    by_token = dict(zip(question.tokens, inputs.tokens[0].plain, strict=True))
    assert by_token["may"] == pytest.approx(features.TIME_TOKEN * by_token["cello"])
    assert inputs.tokens[0].plain.sum() == pytest.approx(1.0)


def test_features_have_the_declared_shapes_and_groups() -> None:
    tiny = Tiny([Row("a b c", role="user"), Row("", speaker="Bob", session="s", role="assistant")])
    question = tiny.ask("Did Bob suggest b?", vector=[1.0])
    table = features.feature_table(question, tiny.about(question))
    assert table.notes.shape == (2, len(features.NOTE_FEATURES))
    assert table.values.shape == (2, len(features.FEATURE_NAMES))
    assert np.isfinite(table.values).all()
    assert table.note("user").tolist() == [1, 0]
    assert table.note("assistant").tolist() == [0, 1]
    assert table.note("speaker").tolist() == [0, 1]


def test_the_search_page_lists_every_group() -> None:
    page = (Path(__file__).parents[2] / "docs" / "search.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \|$", page, re.MULTILINE)
    assert set(get_args(features.FeatureGroup)) <= set(rows), "docs/search.md: see the table of features"
