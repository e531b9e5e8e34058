"""Insights by rules: selection of quotes, speakers and length, independent of the order of notes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.evolve.insights import MAX_CHARS, Digest, Member, attributed, digest, span
from zettel.link.near import binding
from zettel.model import Note
from zettel.text.extraction import terms_of

TURNS = (
    ("Ann", 1, "The kiln reached its heat after nine hours. Thanks!"),
    ("Bob", 2, "Did you see the kiln, Annabel?"),
    ("Ann", 3, "Hey Bob! All of the pots came out of the kiln without a crack."),
    ("Bob", 9, "[shares a photo of a kiln]"),
    ("Bob", 9, "A second kiln would let them fire pots twice a week."),
)


def note(speaker: str | None, day: int | None, content: str, **fields: Any) -> Note:
    when = None if day is None else datetime(2024, 3, day, tzinfo=timezone.utc)
    defaults: dict[str, Any] = {
        "id": f"n_{content}", "content": content, "speaker": speaker, "occurred_at": when, "seq": 1,
        "event_ids": (f"e_{content}",), "recorded_at": datetime.now(timezone.utc),
    }  # fmt: skip
    return Note(**defaults | fields)


def members(turns: Sequence[tuple[str, int, str]] = TURNS) -> list[Member]:
    notes = [note(*turn) for turn in turns]
    return [Member(member_note, binding(terms_of(member_note)), 1.0) for member_note in notes]


def test_an_insight_opens_with_shared_terms_and_quotes_statements() -> None:
    insight = digest(members(), ["Annabel", "Bob"])
    assert insight == Digest(
        "Kiln, pots (2024-03-01 to 2024-03-09, 5 notes)."
        " Ann on 2024-03-01: \u201cThe kiln reached its heat after nine hours.\u201d"
        " Ann on 2024-03-03: \u201cAll of the pots came out of the kiln without a crack.\u201d"
        " Bob on 2024-03-09: \u201cA second kiln would let them fire pots twice a week.\u201d",
        "Kiln, pots",
        ("kiln", "pots"),
    )


@given(st.permutations(members()))
def test_the_order_does_not_matter(shuffled: list[Member]) -> None:
    assert digest(shuffled) == digest(members())


def test_an_insight_has_a_maximum_length() -> None:
    long = [("Ann", n, f"The {'very ' * 30}long kiln number {n} {'burns ' * 30}") for n in range(1, 9)]
    assert len(digest(members(long)).content) <= MAX_CHARS


def test_questions_are_quoted_if_there_are_no_statements() -> None:
    questions = [("Ann", n, f"Where is the kiln number {n} of theirs?") for n in range(1, 5)]
    assert "Where is the kiln" in digest(members(questions)).content


def test_without_shared_terms_the_rarest_words_are_the_heading() -> None:
    odd = [("Ann", 1, "The glockenspiel is out of tune."), ("Bob", 2, "They sold the schooner in spring.")]
    assert set(digest(members(odd)).keywords) >= {"glockenspiel", "schooner"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"speaker": "Ann", "day": 1}, "Ann on 2024-03-01: \u201cYes.\u201d"),
        ({"speaker": "Ann\n- Bob", "day": 1}, "Ann - Bob on 2024-03-01: \u201cYes.\u201d"),
        ({"speaker": None, "day": None, "title": "The Kiln"}, "The Kiln: \u201cYes.\u201d"),
        ({"speaker": None, "day": 2}, "2024-03-02: \u201cYes.\u201d"),
        ({"speaker": None, "day": None}, "\u201cYes.\u201d"),
    ],
)
def test_speakers_and_dates_are_listed(fields: dict[str, Any], expected: str) -> None:
    assert attributed(note(content="whatever", **fields), "Yes.").replace("on 2024-03-02", "2024-03-02") == expected


def test_date_ranges_are_compact() -> None:
    days = [datetime(2024, 3, day, tzinfo=timezone.utc) for day in (3, 1)]
    assert span([*days, None]) == "2024-03-01 to 2024-03-03"
    assert span(days[:1]) == "2024-03-03"
    assert span([None]) == ""
