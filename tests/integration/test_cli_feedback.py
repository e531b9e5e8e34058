"""Feedback from the command line: a search by one process, and what was of use by another."""

from __future__ import annotations

import pytest

from tests.integration.command import Zettel

pytestmark = pytest.mark.integration


def test_what_was_of_use_is_told_by_the_id_that_a_search_shows(zettel: Zettel) -> None:
    ids = [zettel("add", f"The {name} boat is moored in Oslo.", "--json").json()["id"] for name in ("red", "blue")]
    hits = zettel("search", "Where is the boat?", "--json").json()
    (search,) = {hit["search_id"] for hit in hits}
    told = zettel("feedback", search, ids[0], "--outcome", "success")
    assert (told.status, told.out) == (0, "recorded: 1 useful\n")
    again = zettel("feedback", search, "--json").json()
    assert again == {"search_id": search, "used": [], "outcome": None}
    told = zettel("feedback", search, ids[0], ids[1])
    assert told.out == "recorded: 2 useful\n"
    later = zettel("search", "Where is the boat?", "--now", "2199-01-01", "--json").json()
    assert {hit["why"]["strength"] for hit in later} == {0.0}


def test_what_cannot_be_told_is_one_line(zettel: Zettel) -> None:
    id = zettel("add", "The red boat is moored in Oslo.", "--json").json()["id"]
    (hit,) = zettel("search", "Where is the boat?", "--json").json()
    for arguments, wrong in (
        (["s_nothing", id], "is not in the log of searches"),
        ([hit["search_id"], "n_nothing"], "n_nothing: not among the notes that search"),
        ([hit["search_id"], id, "--outcome", "fine"], "say success or failure"),
    ):
        ran = zettel("feedback", *arguments)
        assert ran.status == 1
        assert wrong in ran.err
        assert ran.err.count("\n") == 1
