"""The notes that an answer used, found without a model."""

from __future__ import annotations

import pytest

from zettel.core.used_notes import used_notes

NOTES = {
    "n_a1": "Ann: The drill lies in the boathouse, behind the oars.",
    "n_b2": "Ben: The drill was a gift from my uncle in Bergen.",
    "n_c3": "Cleo: I painted the boathouse in spring, it took two weekends.",
    "n_d4": "Ann: We have a drill, a saw and a ladder.",
}
QUESTION = "Where is the drill?"


@pytest.mark.parametrize(
    ("answer", "used"),
    [
        ("It is behind the oars in the boathouse.", ["n_a1"]),
        ("Behind the oars. It was your uncle's gift, by the way.", ["n_b2", "n_a1"]),
        ("I do not know where it is.", []),
        ("The drill.", []),  # only words of the question
        ("", []),
        ("See n_d4, and n_ff9 for the boathouse.", ["n_d4"]),  # cited ids count, words do not
    ],
)
def test_used_notes_are_recognised(answer: str, used: list[str]) -> None:
    assert used_notes(answer, QUESTION, NOTES) == used


def test_a_note_needs_words_of_its_own() -> None:
    notes = {"n_1": "The ferry to Hurtig leaves at seven from the east pier.", "n_2": "The ferry leaves at seven."}
    assert used_notes("At seven, from the east pier.", "When does the boat to Hurtig leave?", notes) == ["n_1"]


def test_nothing_offered_is_nothing_used() -> None:
    assert used_notes("In the boathouse.", QUESTION, {}) == []
