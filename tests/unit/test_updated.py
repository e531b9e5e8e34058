"""Which questions concern the replaced part of a note."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from zettel.model import Note
from zettel.search.updated import concerns_change

RENT = "Our rent is 900 euros and the deposit was 1,800 euros, paid to Mr Silva."
HIGHER = "The rent is now 950 euros."
WEDDING = "Samina marries Adeel on Saturday 25 May in a hall in Manningham, with 180 guests."
MOVED = "Samina's wedding is now on Saturday 15 June in Shipley, with 240 guests."


def _note(seq: int, content: str) -> Note:
    return Note(
        id=f"n_{seq}", event_ids=(f"e_{seq}",), seq=seq, recorded_at=datetime(2024, seq, 1, tzinfo=timezone.utc),
        content=content, speaker="user", role="user", session=f"s_{seq}",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("older", "newer", "question", "concerns"),
    [
        (RENT, HIGHER, "How high is our rent?", True),
        (RENT, HIGHER, "How much was the deposit?", False),
        (RENT, HIGHER, "Who is Mr Silva?", False),
        (RENT, HIGHER, "What did we pay in all?", False),
        (WEDDING, MOVED, "How many guests are invited to Samina's wedding?", True),
        (WEDDING, MOVED, "Who marries Adeel?", False),
        ("I live in Porto and work at Apple.", "We moved to Braga.", "Where do I work?", False),
        ("I live in Porto and work at Apple.", "We moved to Braga.", "Which city do I live in?", True),
    ],
)
def test_a_question_concerns_the_replaced_part(older: str, newer: str, question: str, concerns: bool) -> None:
    assert concerns_change(question, _note(1, older), _note(2, newer)) is concerns
