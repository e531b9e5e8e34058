"""``zettel feedback`` for a search by another process."""

from __future__ import annotations

import pytest

from tests.integration.command import Zettel

pytestmark = pytest.mark.integration


def test_feedback_is_recorded_by_search_id(zettel: Zettel) -> None:
    ids = [zettel("add", f"The {name} boat is moored in Oslo.", "--json").json()["id"] for name in ("red", "blue")]
    hits = zettel("search", "Where is the boat?", "--json").json()
    (search,) = {hit["search_id"] for hit in hits}
    result = zettel("feedback", search, ids[0], "--outcome", "success")
    assert (result.status, result.out) == (0, "recorded: 1 useful\n")
    repeated = zettel("feedback", search, "--json").json()
    assert repeated == {"search_id": search, "used": [], "outcome": None}
    result = zettel("feedback", search, ids[0], ids[1])
    assert result.out == "recorded: 2 useful\n"
    another = zettel("search", "Where is the boat?", "--json").json()[0]["search_id"]
    result = zettel("feedback", another, "--answer", "The blue one is in Oslo.")
    assert result.out == "recorded: 1 useful\n"
    used = {row["note"]: row["used"] for row in zettel("stats", "--usage", "--json").json()["most_used"]}
    assert used == {ids[0]: 1, ids[1]: 2}
    assert "2 (0 never found, 0 never used)" in zettel("stats", "--usage").out


def test_invalid_feedback_is_a_one_line_error(zettel: Zettel) -> None:
    id = zettel("add", "The red boat is moored in Oslo.", "--json").json()["id"]
    (hit,) = zettel("search", "Where is the boat?", "--json").json()
    for arguments, status, message in (
        (["s_nothing", id], 1, "is not in the log of searches"),
        ([hit["search_id"], "n_nothing"], 2, "n_nothing is not a hit of search"),
        ([hit["search_id"], id, "--outcome", "fine"], 2, "use success or failure"),
    ):
        result = zettel("feedback", *arguments)
        assert result.status == status
        assert message in result.err
        assert result.err.count("\n") == 1
