"""Lessons: detection of outcomes in sentences, and lessons from several outcomes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.test_insights import note
from zettel.evolve.lessons import MIN_CONFIDENCE, Lesson, Outcome, beta_mean, confidence, lessons, outcomes
from zettel.model import NoteUse

BEFORE = [("n_1", "The upload of large files times out."), ("n_2", "Raise UPLOAD_TIMEOUT to 90 seconds.")]
UPLOAD, RAISE = "the upload of large files times out", "raise UPLOAD_TIMEOUT to 90 seconds"


def parsed_outcomes(text: str, **fields: Any) -> list[tuple[str, str, bool]]:
    return [(item.situation, item.act, item.well) for item in outcomes(note("Ann", 1, text, **fields), BEFORE)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("That worked!", (UPLOAD, RAISE, True)),
        ("Great, that fixed it. Thanks!", (UPLOAD, RAISE, True)),
        ("Restarting the worker fixed the stuck queue.", ("the stuck queue", "restarting the worker", True)),
        ("Restarting the worker did not help.", (UPLOAD, "restarting the worker", False)),
        ("The retry loop failed because of the proxy.", (UPLOAD, "the retry loop", False)),
        ("It didn't work.", (UPLOAD, RAISE, False)),
        ("It hasn\u2019t worked.", (UPLOAD, RAISE, False)),
        ("Restarting the worker has not fixed the stuck queue.", ("the stuck queue", "restarting the worker", False)),
        ("Restarting the worker has never really helped.", (UPLOAD, "restarting the worker", False)),
        ("The patch broke the nightly export.", ("the nightly export", "the patch", False)),
        ("A longer timeout worked for the large uploads.", ("the large uploads", "a longer timeout", True)),
    ],
)
def test_sentences_with_an_outcome_are_detected(text: str, expected: tuple[str, str, bool]) -> None:
    assert parsed_outcomes(text) == [expected]


@pytest.mark.parametrize("text", ["Did that work?", "We work in Oslo.", "Well, that's nice.", "Thanks!",
                                  "That might have worked.", "If it worked, I will tell you.",
                                  "Restarting the worker almost fixed the stuck queue.",
                                  "My folks have been great - they helped.", "Painting helped me through the winter."])
def test_other_sentences_have_no_outcome(text: str) -> None:
    assert parsed_outcomes(text) == []


def test_one_message_may_contain_a_failure_and_a_success() -> None:
    failed = ("the stuck queue", "restarting the worker", False)
    cured = ("the stuck queue", "clearing the cache", True)
    text = "Restarting the worker did not fix the stuck queue. Clearing the cache fixed the stuck queue."
    assert parsed_outcomes(text) == [failed, cured]
    assert parsed_outcomes("That worked! Clearing the cache fixed the stuck queue.") == [(UPLOAD, RAISE, True)]
    assert outcomes(note("Ann", 1, f"That worked! {text}"), [])[0].act == "restarting the worker"
    assert parsed_outcomes(f"{text[:51]} A longer timeout fixed the slow login.") == [failed]  # another situation


def test_metadata_may_state_the_outcome() -> None:
    assert parsed_outcomes("Run it again with the cache cleared.", metadata={"outcome": "failure"}) == [
        (RAISE, "run it again with the cache cleared", False)
    ]
    assert parsed_outcomes("Clear the cache.", title="Stale pages", metadata={"outcome": "success"}) == [
        ("stale pages", "clear the cache", True)
    ]


def test_a_bare_pronoun_without_context_has_no_outcome() -> None:
    assert outcomes(note("Ann", 1, "That worked!"), []) == []
    calm = [("n_1", "The harbour is calm."), ("n_2", "Lower the sails.")]
    assert outcomes(note("Ann", 1, "That worked!"), calm) == []  # no failure before it


def outcome(act: str, well: bool, n: int, situation: str = "the upload times out") -> Outcome:
    where, what = (frozenset(text.split()) - {"the", "to"} for text in (situation, act))
    return Outcome(situation, act, well, (f"n_{n}",), where, what)


OUTCOMES = [
    outcome("raise the limit", True, 1), outcome("raise the limit", True, 2, "the large upload times out"),
    outcome("raise the limit twice", False, 3), outcome("restart the worker", False, 4),
    outcome("paint the shed", True, 5, "the shed is grey"),
]  # fmt: skip


@given(st.permutations(OUTCOMES))
def test_the_best_action_is_advised_and_the_worst_is_warned_against(shuffled: list[Outcome]) -> None:
    (lesson,) = lessons(shuffled)
    assert lesson.content == (
        "When the upload times out: raise the limit (went well 2 of 3 times);"
        " not: restart the worker (went badly 1 of 1 times)."
    )
    assert (lesson.well, lesson.badly) == (2, 1)
    assert set(lesson.notes) == {"n_1", "n_2", "n_3", "n_4"}
    assert confidence(lesson, None) == 0.6


def test_without_success_a_lesson_only_warns() -> None:
    (lesson,) = lessons([outcome("restart the worker", False, n) for n in range(3)])
    assert lesson.content == "When the upload times out: not: restart the worker (went badly 3 of 3 times)."
    assert (lesson.do, lesson.well, lesson.badly) == (None, 3, 0)


def test_a_single_outcome_is_not_a_lesson() -> None:
    assert lessons(OUTCOMES[:1]) == []


def test_feedback_counts_as_an_outcome() -> None:
    lesson = Lesson("x", None, None, 1, 1, ())
    now = note(None, 1, "x").recorded_at
    assert confidence(lesson, NoteUse(now, 3, 3, 0)) == beta_mean(4, 1) == 0.71
    assert confidence(lesson, NoteUse(now, 2, 0, 2)) == beta_mean(1, 3) < MIN_CONFIDENCE
