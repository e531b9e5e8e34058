"""Ends of statements by their own words, and plans whose day is past."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from tests.unit.test_insights import note
from zettel.evolve.expiry import expiry

MAY = datetime(2024, 5, 1, 10, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("I'm on holiday until 20 May.", (5, 21)),
        ("The offer is valid until 31 May.", (6, 1)),
        ("Ben covers for me until Tuesday.", (5, 8)),
        ("The voucher expires on 1 July.", (7, 2)),
        ("The sale ends on Sunday.", (5, 6)),
        ("Ich bin bis zum 20. Mai im Urlaub.", (5, 21)),
    ],
)
def test_a_named_end_is_found(text: str, end: tuple[int, int]) -> None:
    assert expiry(note("user", 1, text, occurred_at=MAY)) == datetime(2024, *end, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "text",
    ["I worked until Friday.", "I lived in Rome until 2019.", "The shop is open until 8 pm.", "Not until Monday.",
     "Can I stay until Friday?", "My flight is on 3 May.", "I'm away until Friday. " + "And much more. " * 40],
)  # fmt: skip
def test_other_texts_have_no_end(text: str) -> None:
    assert expiry(note("user", 1, text, occurred_at=MAY)) is None
    assert expiry(note("assistant", 1, "I'm on holiday until 20 May.", occurred_at=MAY)) is None
