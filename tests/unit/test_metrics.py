"""Retrieval metrics: ranks, malformed evidence, averages."""

from __future__ import annotations

from itertools import permutations
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.bench.beam import _order
from zettel.bench.longmemeval import _measures
from zettel.bench.metrics import (
    QuestionResult,
    auroc,
    events_at,
    kendall_tau,
    ndcg,
    overlap,
    ranking,
    read_evidence,
    recall,
    recall_all,
    recall_any,
    reciprocal_rank,
    summarize,
)

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


def test_a_ranking_has_each_event_once() -> None:
    assert ranking([["a"], ["b", "a"], ["b"], ["c"]]) == ["a", "b", "c"]
    assert ranking([]) == []


def test_measures_of_a_ranking_by_hand() -> None:
    ranked, needed = ["x", "a", "y", "b"], {"a", "b"}
    assert [recall_any(ranked, needed, k) for k in (1, 2, 4)] == [0, 1, 1]
    assert [recall_all(ranked, needed, k) for k in (1, 2, 3, 4)] == [0, 0, 0, 1]
    assert ndcg(ranked, needed, 4) == pytest.approx((1 + 0.5) / (1 + 1)), "rank 2 counts 1, rank 4 counts 1/log2(4)"
    assert ndcg(ranked, needed, 1) == 0.0
    assert ndcg(["a", "b", "c"], {"a", "b", "c"}, 3) == 1.0
    assert ndcg(["a", "x", "c"], {"a", "c"}, 3) == pytest.approx((1 + 1 / log2(3)) / 2)
    assert (reciprocal_rank(ranked, needed), reciprocal_rank(["x"], needed)) == (0.5, 0.0)


@given(
    st.permutations("abcdef").flatmap(lambda order: st.integers(0, 6).map(lambda cut: order[:cut])),
    st.sets(st.sampled_from("abcdef"), min_size=1),
    st.integers(1, 7),
)
def test_measures_of_a_ranking_agree_with_brute_force(ranked: list[str], needed: set[str], k: int) -> None:
    found = [id in needed for id in ranked[:k]]
    assert recall_any(ranked, needed, k) == any(found)
    assert recall_all(ranked, needed, k) == (sum(found) == len(needed))

    def gain(order: tuple[str, ...]) -> float:
        relevant = [float(id in needed) for id in order[:k]]
        return relevant[0] + sum(value / log2(rank) for rank, value in enumerate(relevant[1:], start=2))

    best = max(gain(order) for order in permutations("abcdef"))
    padded = (*ranked, *"------")
    assert ndcg(ranked, needed, k) == pytest.approx(gain(padded) / best)
    assert 0 <= ndcg(ranked, needed, k) <= 1 + 1e-12


TURNS = [f"q/s{session}/{turn}" for session in range(4) for turn in range(3)]


@given(st.permutations(TURNS), st.sets(st.sampled_from(TURNS), min_size=1), st.integers(1, 5))
def test_sessions_of_turns_agree_with_longmemevals_extended_k(ranked: list[str], needed: set[str], k: int) -> None:
    """LongMemEval takes more turns until they have k sessions, then asks whether these have the needed ones."""
    result = QuestionResult("single-session-user", frozenset(needed), [[turn] for turn in ranked])
    places = k
    while places <= len(ranked) and len({turn.split("/")[1] for turn in ranked[:places]}) < k:
        places += 1
    found = {turn.split("/")[1] for turn in ranked[:places]}
    wanted = {turn.split("/")[1] for turn in needed}
    measures = _measures("session", [k])
    assert measures[f"session any@{k}"](result) == bool(found & wanted)
    assert measures[f"session all@{k}"](result) == (wanted <= found)
    order = list(dict.fromkeys(turn.split("/")[1] for turn in ranked))
    assert measures["session MRR"](result) == 1 / min(order.index(session) + 1 for session in wanted)
    assert _measures("turn", [k])[f"turn all@{k}"](result) == (needed <= set(ranked[:k]))


def test_kendalls_tau_counts_pairs_in_order() -> None:
    assert kendall_tau([1, 2, 3, 4]) == 1.0
    assert kendall_tau([4, 3, 2, 1]) == -1.0
    assert kendall_tau([2, 1, 3]) == pytest.approx(1 / 3)
    assert kendall_tau([7]) is None
    assert kendall_tau([]) is None
    mean = [kendall_tau(places) for places in permutations(range(5))]
    assert sum(tau for tau in mean if tau is not None) == pytest.approx(0.0), "0 for chance"


def test_only_found_evidence_of_questions_about_an_order_has_a_tau() -> None:
    tau = _order(3)
    needed = frozenset({"2", "10", "11"})
    hits = [["10"], ["5"], ["2"], ["11"]]
    assert tau(QuestionResult("event_ordering", needed, hits)) == -1.0, "10 before 2; 11 is beyond the places"
    assert tau(QuestionResult("order", needed, hits[1:])) == 1.0
    assert tau(QuestionResult("order", needed, hits[:2])) is None
    assert tau(QuestionResult("fact", needed, hits)) is None
