"""Retrieval metrics: ranks, malformed evidence, averages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.bench.metrics import QuestionResult, auroc, events_at, overlap, read_evidence, recall, summarize

KNOWN = {"D1:1", "D8:6", "D9:17", "D11:26", "D30:5"}


def test_well_formed_evidence_is_unchanged() -> None:
    assert read_evidence(["D1:1", "D8:6", "D1:1"], KNOWN) == ({"D1:1", "D8:6"}, 0, 0)


@pytest.mark.parametrize(
    ("evidence", "events"),
    [
        ("D8:6; D9:17", {"D8:6", "D9:17"}),
        ("D8:6, D9:17", {"D8:6", "D9:17"}),
        ("D8:6 D9:17", {"D8:6", "D9:17"}),
        ("D:11:26", {"D11:26"}),
        ("D30:05", {"D30:5"}),
        (" D1:1", {"D1:1"}),
    ],
)
def test_malformed_evidence_is_split_or_repaired(evidence: str, events: set[str]) -> None:
    assert read_evidence([evidence], KNOWN) == (events, 1, 0)


@pytest.mark.parametrize("evidence", ["D", "", "D1:99", "see above", "D:"])
def test_evidence_that_names_no_turn_is_dropped(evidence: str) -> None:
    assert read_evidence([evidence], KNOWN) == (frozenset(), 0, 1)


def test_a_known_turn_counts_without_the_unknown_turn_of_its_pair() -> None:
    assert read_evidence(["D8:6; D8:99"], KNOWN) == ({"D8:6"}, 1, 1)


def test_hits_of_one_event_take_one_place() -> None:
    assert events_at([["a"], ["b"], ["c"]], 2) == {"a", "b"}


def test_a_hit_takes_one_place_per_event() -> None:
    assert events_at([["a", "b"], ["c"], ["d"]], 3) == {"a", "b", "c"}


def test_the_first_hit_that_does_not_fit_ends_the_count() -> None:
    assert events_at([["a"], ["b", "c"], ["d"]], 2) == {"a"}


def test_repeated_events_take_places_too() -> None:
    assert events_at([["a"], ["a"], ["b"]], 2) == {"a"}


def test_a_hit_with_all_events_adds_nothing() -> None:
    everything = [str(number) for number in range(50)]
    assert events_at([everything, ["a"]], 10) == set()


@given(st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4), max_size=12), st.integers(0, 12))
def test_events_never_outnumber_places(hits: list[list[str]], k: int) -> None:
    assert len(events_at(hits, k)) <= k


@given(
    st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=True), max_size=8),
    st.sets(st.sampled_from("abcdef"), min_size=1),
)
def test_more_places_never_lower_recall(hits: list[list[str]], needed: set[str]) -> None:
    recalls = [recall(hits, needed, k) for k in range(12)]
    assert recalls == sorted(recalls)
    assert all(0 <= value <= 1 for value in recalls)


def test_recall_and_perfect_are_averages_over_questions() -> None:
    results = [
        QuestionResult("1", frozenset("ab"), [["a"], ["x"]]),
        QuestionResult("1", frozenset("c"), [["c"]]),
        QuestionResult("2", frozenset("d"), [["x"]]),
    ]
    assert summarize(results, 2) == (3, 0.5, 1 / 3)
    groups = {group: summarize([result for result in results if result.group == group], 2) for group in ("1", "2")}
    assert groups == {"1": (2, 0.75, 0.5), "2": (1, 0.0, 0.0)}


def test_questions_without_evidence_are_not_counted() -> None:
    results = [QuestionResult("1", frozenset(), [["a"]]), QuestionResult("1", frozenset("a"), [["a"]])]
    assert summarize(results, 1) == (1, 1.0, 1.0)
    assert summarize(results[:1], 1) == (0, 0.0, 0.0)


def test_auroc_separates_informative_from_random_scores() -> None:
    assert auroc([0.9, 0.8], [0.1, 0.2]) == 1.0
    assert auroc([0.1], [0.9, 0.8]) == 0.0
    assert auroc([0.5, 0.5], [0.5]) == 0.5
    assert auroc([0.9, 0.3], [0.5, 0.1]) == 0.75


def test_auroc_requires_both_classes() -> None:
    assert auroc([], [0.1]) is None
    assert auroc([0.1], []) is None


scores = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=8)


@given(scores, scores)
def test_auroc_is_the_share_of_pairs_in_the_right_order(positive: list[float], negative: list[float]) -> None:
    pairs = [(p > n) + (p == n) / 2 for p in positive for n in negative]
    assert auroc(positive, negative) == pytest.approx(sum(pairs) / len(pairs))


def test_overlap_is_the_mean_share_of_the_longer_list() -> None:
    assert overlap([["a", "b"], ["c"]], [["b", "a"], ["c", "d"]]) == 0.75
    assert overlap([["a"]], [[]]) == 0.0


def test_questions_without_hits_on_both_sides_are_skipped() -> None:
    assert overlap([["a"], []], [["a"], []]) == 1.0
    assert overlap([[]], [[]]) == 1.0
