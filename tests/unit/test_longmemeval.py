"""LongMemEval: one haystack per question, with benchmark metadata."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_formats import SAMPLES
from tests.unit.test_transcripts import split_records, write
from zettel.transcripts.formats import longmemeval

SAMPLE = SAMPLES / "longmemeval.json"


def test_sessions_dates_and_evidence_are_read() -> None:
    read, rejected = split_records(list(longmemeval.read(SAMPLE)))
    soup, _, harp, crate = read[:4]
    assert (soup.external_id, soup.session) == ("q_harp_1/chat_12_1/1", "q_harp_1/chat_12_1")
    assert soup.occurred_at == datetime(2023, 5, 20, 2, 21, tzinfo=timezone.utc)
    assert soup.metadata == {"conversation": "q_harp_1", "session_id": "chat_12_1"}
    assert harp.metadata == {
        "conversation": "q_harp_1", "session_id": "answer_harp_1", "answer_session": True, "has_answer": True,
    }  # fmt: skip
    assert (harp.speaker, crate.speaker, "has_answer" in crate.metadata) == ("user", "assistant", False)
    assert [event.session for event in read[4:]] == [
        *["q_boat_2_abs/chat_12_1"] * 2, *["q_boat_2_abs/chat_12_1#2"] * 2, "q_boat_2_abs/chat_13",
    ]  # fmt: skip
    assert len({event.external_id for event in read}) == len(read)
    assert read[-1].occurred_at is None
    assert [(record.position, record.reason.partition(":")[0]) for record in rejected] == [
        ("q_boat_2_abs/chat_13", "'some day' is not a date such as 2023/05/20 (Sat) 02"),
        ("q_boat_2_abs/chat_13/2", "the event is empty"),
    ]


def test_a_time_zone_can_be_set() -> None:
    first = next(longmemeval.read(SAMPLE, timezone(timedelta(hours=2))))
    assert first.model_dump()["occurred_at"] == datetime(2023, 5, 20, 0, 21, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("question", "places"),
    [
        (7, ["1"]),
        ({"haystack_sessions": 7}, ["1"]),
        ({"question_id": "q", "haystack_sessions": [7, ["x"]]}, ["q/session_1", "q/session_2/1"]),
        (
            {"question_id": "q", "haystack_sessions": [[]], "haystack_dates": ["2023/02/30 (Sat) 02:21"]},
            ["q/session_1"],
        ),
    ],
)
def test_errors_are_reported_with_their_position(tmp_path: Path, question: Any, places: list[str]) -> None:
    good = {"question_id": "g", "haystack_sessions": [[{"role": "user", "content": "Hm."}]]}
    read, rejected = split_records(list(longmemeval.read(write(tmp_path / "a.json", [question, good]))))
    assert [event.external_id for event in read] == ["g/session_1/1"]
    assert [record.position for record in rejected] == places
