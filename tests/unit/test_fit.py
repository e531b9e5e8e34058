"""Fitting of weights: recovery of planted weights, gradients and penalties."""

from __future__ import annotations

import numpy as np
import pytest

from zettel.bench import fitting
from zettel.bench.evaluation import Collection, Question
from zettel.errors import InvalidInput
from zettel.model import Event
from zettel.scoring.fit import (
    PENALTIES,
    Labelled,
    best_penalty,
    chances,
    fit,
    fit_listwise,
    fit_logistic,
    leave_one_out,
    listwise,
    logistic,
    rounded,
    spread_within,
)

PLANTED = np.array([2.0, -1.0, 0.5])
LIGHT = 1e-6


def chosen(questions: int, weights: np.ndarray = PLANTED, rows: int = 12, seed: int = 5) -> list[Labelled]:
    """Questions whose evidence is drawn from the softmax of ``weights``: McFadden's own model."""
    rng = np.random.default_rng(seed)
    labelled = []
    for _ in range(questions):
        values = rng.normal(size=(rows, len(weights))).astype(np.float32)
        odds = np.exp(values @ weights)
        positive = np.zeros(rows, bool)
        positive[rng.choice(rows, p=odds / odds.sum())] = True
        labelled.append(Labelled(values, positive))
    return labelled


def answers(n: int, weights: np.ndarray, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    values = np.column_stack([np.ones(n), rng.normal(size=(n, len(weights) - 1))])
    return values, rng.random(n) < chances(values, weights)


def slope(loss, at: np.ndarray, step: float = 1e-5) -> np.ndarray:  # type: ignore[no-untyped-def]
    return np.array([(loss(at + step * e)[0] - loss(at - step * e)[0]) / (2 * step) for e in np.eye(len(at))])


def test_planted_weights_are_recovered() -> None:
    assert fit_listwise(chosen(3000), LIGHT) == pytest.approx(PLANTED, abs=0.1)


def test_planted_log_odds_and_bias_are_recovered() -> None:
    planted = np.array([-1.0, 2.0, 0.5])
    assert fit_logistic(*answers(8000, planted), LIGHT) == pytest.approx(planted, abs=0.15)


@pytest.mark.parametrize("at", [np.zeros(3), PLANTED, np.array([-3.0, 4.0, 30.0])])
def test_gradients_match_the_losses(at: np.ndarray) -> None:
    several = [Labelled(item.values, item.positive | (np.arange(12) < 2)) for item in chosen(7)]
    for loss in (listwise(several), logistic(*answers(40, PLANTED))):
        assert loss(at)[1] == pytest.approx(slope(loss, at), abs=1e-6)


def test_loss_of_no_weights_is_the_log_of_the_rows() -> None:
    assert listwise(chosen(3, rows=8))(np.zeros(3))[0] == pytest.approx(np.log(8))


def test_the_scale_of_a_feature_changes_only_its_weight() -> None:
    plain = chosen(200)
    scale = np.array([1.0, 10.0, 0.1])
    scaled = [Labelled((item.values * scale).astype(np.float32), item.positive) for item in plain]
    assert fit_listwise(scaled, 0.1) * scale == pytest.approx(fit_listwise(plain, 0.1), rel=1e-3)


def test_a_larger_penalty_gives_smaller_weights() -> None:
    sizes = [float(np.linalg.norm(fit_listwise(chosen(100), penalty))) for penalty in PENALTIES]
    assert sizes == sorted(sizes, reverse=True)


def test_a_constant_feature_has_weight_zero() -> None:
    flat = [Labelled(np.column_stack([row.values, np.full(12, 7.0, np.float32)]), row.positive) for row in chosen(50)]
    assert spread_within(flat)[3] == 0
    assert fit_listwise(flat, 0.1)[3] == pytest.approx(0, abs=1e-9)


def test_a_bias_is_not_penalised() -> None:
    values, positive = np.ones((10, 1)), np.arange(10) < 8
    (bias,) = fit(logistic(values, positive), values.std(axis=0), 1000.0)
    assert bias == pytest.approx(np.log(8 / 2), abs=1e-4)


def test_questions_with_no_or_only_evidence_are_skipped() -> None:
    labelled = chosen(20)
    mute = [Labelled(labelled[0].values, np.full(12, value)) for value in (False, True)]
    assert listwise([*labelled, *mute])(PLANTED)[0] == listwise(labelled)(PLANTED)[0]
    with pytest.raises(InvalidInput, match="no question has evidence"):
        listwise(mute)
    with pytest.raises(InvalidInput, match="questions without one"):
        logistic(np.ones((2, 1)), np.ones(2, bool))


def test_each_group_is_left_out_once() -> None:
    def total(groups):  # type: ignore[no-untyped-def]
        return np.array([sum(groups)])

    assert [weights.tolist() for weights in leave_one_out([1, 2, 4], total)] == [[6], [5], [3]]


def test_the_penalty_is_large_where_there_is_nothing_to_learn() -> None:
    def penalty(weights: np.ndarray, questions: int) -> float:
        groups = [chosen(questions, weights, seed=seed) for seed in range(4)]
        return best_penalty(
            groups,
            lambda others, value: fit_listwise([item for group in others for item in group], value),
            lambda group, weights: listwise(group)(weights)[0],
        )

    assert penalty(PLANTED * 2, 100) == PENALTIES[0]
    assert penalty(np.zeros(3), 5) == PENALTIES[-1]


def test_rounding_keeps_significant_digits() -> None:
    assert rounded(np.array([0.0926, -4.04, 15.2, -0.0]), 1).tolist() == [0.09, -4.0, 20.0, 0.0]
    assert rounded(np.array([0.0926, -4.04]), 2).tolist() == [0.093, -4.0]


def test_questions_are_copied_with_another_speaker_name() -> None:
    turns = [("Ann Lee", "I bought a cello."), ("Bob", "I sold mine."), ("Cleo", "We met in May.")]
    events = [Event(id=str(n), speaker=speaker, content=content) for n, (speaker, content) in enumerate(turns)]
    questions = [
        Question("What did Ann buy?", "4", frozenset({"0"})),
        Question("What did Bob do, and Ann?", "1", frozenset({"0", "1"})),
        Question("When did Bob meet Cleo?", "2", frozenset({"2"})),
        Question("When did Cleo and the others meet?", "2", frozenset({"2"})),
        Question("What did Ann play?", "5", frozenset()),
    ]
    changed = fitting.swapped(Collection("talk", events, questions))
    assert [(question.text, question.group, question.needed) for question in changed] == [
        ("What did Bob buy?", "5", frozenset()),
        ("When did Ann Lee and the others meet?", "5", frozenset()),
    ]
    assert fitting.swapped(Collection("monologue", events[:1], questions[:1])) == []
