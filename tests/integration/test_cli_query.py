"""The commands query and session."""

from __future__ import annotations

import json

import pytest

from tests.integration.command import Zettel

pytestmark = pytest.mark.integration


@pytest.fixture
def filled(zettel: Zettel) -> Zettel:
    for day, speaker, text in (
        ("2024-05-01", "Ann", "I ran to the pier."),
        ("2024-05-20", "Ann", "Went running."),
        ("2024-06-02T09:30Z", "Bo", "I run a bakery."),
    ):
        assert zettel("add", text, "--speaker", speaker, "--at", day, "--session", "s").status == 0
    return zettel


def test_query_counts_groups_and_lists(filled: Zettel) -> None:
    counted = filled("query", "--of", "events", "-w", "run", "-w", "ran", "--limit", "0")
    assert counted.out == "3 events, 2024-05-01 00:00 to 2024-06-02 09:30\n"
    grouped = filled("query", "-w", "run", "-w", "ran", "--by", "month", "--by", "speaker").out.splitlines()
    assert [line.split() for line in grouped[1:]] == [["2", "2024-05", "Ann"], ["1", "2024-06", "Bo"]]
    listed = filled("query", "--speaker", "Ann", "--order", "-time", "--limit", "1").out.splitlines()
    assert listed[0].startswith("2 notes, ")
    assert listed[1].split() == ["2024-05-20", "00:00", "Ann", "Went", "running."]
    result = json.loads(filled("query", "--tag", "boat", "--json").out)
    assert (result["count"], result["notes"]) == (0, [])
    few = filled("query", "--by", "day", "--limit", "1").out.splitlines()
    assert few[-1] == "and 2 more groups"


def test_session_prints_its_last_turns(filled: Zettel) -> None:
    assert filled("session", "s").out.splitlines()[-1] == "- 2024-06-02 09:30 Bo: I run a bakery."
    assert json.loads(filled("session", "s", "--json").out)["context"].startswith("## Last turns")
    missing = filled("session", "t")
    assert (missing.out, missing.err) == ("", "zettel: this session has no turns\n")


def test_wrong_options_are_one_line(filled: Zettel) -> None:
    wrong = filled("query", "--by", "mood")
    assert (wrong.status, wrong.err.count("\n")) == (2, 1)
    assert "group_by='mood' is not a field" in wrong.err
