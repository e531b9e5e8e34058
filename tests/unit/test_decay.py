"""Selection of decayed notes by age, use, links and kind."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from zettel import Decay, Kind, Note
from zettel.errors import InvalidInput
from zettel.model import NoteUse
from zettel.scoring.strength import STABILITY_DAYS

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
POLICY = Decay(90)


def a_note(**fields: Any) -> Note:
    return Note(id="n_1", content="The pond froze.", event_ids=("e_1",), seq=1, recorded_at=NOW, **fields)


def used(days: float, times: int = 0) -> NoteUse:
    return NoteUse(since=NOW - timedelta(days=days), times=times)


def test_age_use_and_links_count_together() -> None:
    assert POLICY.fades(a_note(), used(91), 0.5, NOW)
    assert not POLICY.fades(a_note(), used(89), 0.5, NOW)
    assert not POLICY.fades(a_note(), used(91, times=1), 0.5, NOW)
    assert POLICY.fades(a_note(), used(2 * STABILITY_DAYS, times=1), 0.5, NOW)
    assert not POLICY.fades(a_note(), used(91), 0.7, NOW)
    assert not POLICY.fades(a_note(importance=0.8), used(91), 0.5, NOW)


@pytest.mark.parametrize(
    ("fields", "fades"),
    [
        ({}, True),
        ({"tags": ("pinned",)}, False),
        ({"archived": True}, False),
        ({"kind": Kind.SEMANTIC}, False),
        ({"kind": Kind.SEMANTIC, "valid_to": NOW}, True),
        ({"kind": Kind.SEMANTIC, "valid_to": datetime(9000, 1, 1, tzinfo=timezone.utc)}, False),
        ({"kind": Kind.PROCEDURAL}, False),
        ({"kind": Kind.INSIGHT}, False),
    ],
)
def test_kind_tags_and_validity_decide_whether_a_note_may_decay(fields: dict[str, Any], fades: bool) -> None:
    assert POLICY.fades(a_note(**fields), used(1000), 0.5, NOW) is fades


def test_age_is_days_or_a_timedelta() -> None:
    assert Decay(90) == Decay(timedelta(days=90))
    with pytest.raises(InvalidInput, match="number of days"):
        Decay("90d")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="strength must be a number"):
        Decay(90, strength=2)


@pytest.mark.parametrize(
    "fields",
    [
        {"older_than": float("nan")},
        {"older_than": float("inf")},
        {"older_than": -1},
        {"older_than": 90, "strength": "x"},
        {"older_than": 90, "importance": None},
    ],
)
def test_invalid_policies_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Decay(**fields)


def test_personal_statements_do_not_decay() -> None:
    statement = a_note(speaker="Ann").model_copy(update={"content": "I love salt glazes."})
    assert not POLICY.fades(statement, used(1000), 0.5, NOW)
