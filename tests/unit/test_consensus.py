"""Confidence by votes: independent sources, repetitions, trust, recency; sides follow from the pairs alone."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import permutations
from typing import Any

import pytest

from zettel.model import EventRecord, Link, LinkType, Note
from zettel.scoring.consensus import Statement, confidences, dispute_of, ranking_factor, weighed_link

DAY = datetime(2024, 5, 1, tzinfo=timezone.utc)


def statement(speaker: str | None, trust: float = 1.0, times: int = 1, **fields: Any) -> Statement:
    """Return a statement that a source made on one or more days."""
    fixed: dict[str, Any] = {"content": "x", "seq": 1, "recorded_at": DAY, "speaker": speaker}
    return Statement(trust, tuple(
        EventRecord(event_id=f"e_{speaker}{n}", **fixed | {"occurred_at": DAY + timedelta(days=n)} | fields)
        for n in range(times)
    ))  # fmt: skip


def against(ours: list[Statement], theirs: list[Statement]) -> tuple[float, float]:
    """Return the confidence of either side."""
    statements = {f"a{n}": each for n, each in enumerate(ours)} | {f"b{n}": each for n, each in enumerate(theirs)}
    pairs = [(a, b) for a in statements for b in statements if a[0] == "a" and b[0] == "b"]
    result = confidences(dispute_of(pairs), statements)
    return result["a0"], result["b0"]


FOUR = [statement(name) for name in ("Ann", "Bob", "Cy", "Di")]


def test_four_people_against_one() -> None:
    assert against(FOUR, [statement("Eve")]) == (0.98, 0.02)
    assert against([statement("Ann")], [statement("Eve")]) == (0.5, 0.5)


def test_repetitions_of_one_source_count_at_most_twice() -> None:
    often = statement("Eve", times=50)
    assert against([statement("Ann", occurred_at=None)], [often])[1] < 0.81
    assert against(FOUR, [often])[0] > 0.9
    assert against([statement("Ann"), statement("ann")], [statement("Eve")]) == (0.5, 0.5)


def test_trust_decides_between_equal_numbers() -> None:
    person, tool = against([statement("Ann")], [statement("page", trust=0.5)])
    assert (person, tool) == (1.0, 0.33)
    page = statement("page", trust=0.5)
    others = [statement(None, trust=0.5, source=f"{n}.html") for n in range(3)]
    assert against([page], others)[0] < 0.3
    copies = [statement(None, trust=0.5, source="1.html") for _ in range(3)]
    assert against([page], others)[0] < against([page], copies)[0]


def test_lower_trust_never_lowers_confidence() -> None:
    pages = [statement(None, trust=0.5, source=f"{n}.html") for n in range(50)]
    assert against([statement("Ann")], pages) == (1.0, 0.33)
    assert against([statement("Ann")], [*pages, statement("Bob"), statement("Cy")])[1] > 0.8
    assert against([statement("Ann")], [*pages, statement("Bob")])[0] == 0.5
    assert against([statement("assistant", trust=0.75)], pages)[0] == 1.0


def test_newer_statements_weigh_more() -> None:
    old, new = against([statement("Ann")], [statement("Eve", occurred_at=DAY + timedelta(days=365))])
    assert old < 0.5 < new
    assert against(FOUR, [statement("Eve", occurred_at=DAY + timedelta(days=365))])[0] > 0.9


def test_the_order_does_not_matter() -> None:
    statements = {"a": statement("Ann"), "b": statement("Bob"), "x": statement("Eve"), "y": statement("Flo", trust=0.5)}
    pairs = [("x", "a"), ("x", "b"), ("y", "a"), ("y", "b"), ("y", "x")]
    results = {str(confidences(dispute_of(order), statements)) for order in permutations(pairs)}
    assert len(results) == 1
    three = confidences(dispute_of(pairs), statements)
    assert three["a"] > three["x"] > three["y"]
    assert confidences(dispute_of(pairs), {"a": statements["a"]}) == {}


def test_the_factor_is_mild() -> None:
    assert (ranking_factor(1.0), ranking_factor(0.5), ranking_factor(0.0)) == (1.0, 0.75, 0.5)


@pytest.mark.parametrize(
    ("speaker", "role", "text", "stays"),
    [
        ("Ann", None, "The code is 5678.", True),
        ("Eve", None, "The code is 5678.", False),
        ("Eve", None, "Correction: the code is 5678.", True),
        ("Eve", None, "The code is 5678 now.", True),
        ("page", "tool", "The code is 5678 now.", False),
    ],
)
def test_who_may_replace_a_statement(speaker: str, role: str | None, text: str, stays: bool) -> None:
    def note(id: str, content: str, **fields: Any) -> Note:
        return Note(id=id, content=content, event_ids=("e",), seq=1, recorded_at=DAY, **fields)

    link = Link(source="n", target="o", type=LinkType.SUPERSEDES, recorded_at=DAY)
    newer, older = note("n", text, speaker=speaker, role=role), note("o", "The code is 1234.", speaker="Ann")
    assert weighed_link(link, newer, older).type is (LinkType.SUPERSEDES if stays else LinkType.CONTRADICTS)
