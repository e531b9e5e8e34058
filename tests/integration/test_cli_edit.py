"""The commands list, edit, link and scopes."""

from __future__ import annotations

import pytest

from tests.integration.command import Zettel

pytestmark = pytest.mark.integration


def test_a_note_is_listed_edited_and_linked(zettel: Zettel) -> None:
    first = zettel("add", "The Heron is red.", "--meta", "price=3", "--tag", "boat", "--pin").out.strip()
    second = zettel("add", "The Gull is grey.").out.strip()
    assert [line.split()[0] for line in zettel("list").out.splitlines()] == [second, first]
    assert zettel("list", "--filter", '{"price": {"gte": 3}}').out.split()[0] == first
    assert "and 1 more" in zettel("list", "-n", "1").out
    edited = zettel("edit", first, "--text", "The Heron is blue.", "--unpin", "--meta", "price=5", "--json").json()
    assert (edited["content"], edited["tags"], edited["metadata"]) == ("The Heron is blue.", ["boat"], {"price": 5})
    assert "undoes this" in zettel("edit", first, "--importance", "0.9").out
    assert zettel("link", first, second, "--reason", "both boats").out == f"{first} —RELATES→ {second}\n"
    assert "both boats" in zettel("links", first).out
    zettel("--user", "ann b", "add", "Hello.")
    assert zettel("scopes").out.splitlines() == ["2 notes  (without options)", "1 note   --user 'ann b'"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["edit", "n_0"], 1, "n_0"),
        (["list", "--filter", "[1]"], 2, "--filter must be a JSON object"),
        (["list", "--filter", "{"], 2, "--filter is not JSON"),
        (["list", "--filter", '{"a": {"b": 1}}'], 2, "unknown operator 'b'"),
    ],
)
def test_wrong_input_is_a_one_line_error(zettel: Zettel, arguments: list[str], status: int, message: str) -> None:
    zettel("add", "The Heron is red.")
    failed = zettel(*arguments)
    assert (failed.status, failed.out, failed.err.count("\n")) == (status, "", 1)
    assert message in failed.err


def test_an_edit_needs_a_change(zettel: Zettel) -> None:
    failed = zettel("edit", zettel("add", "The Heron is red.").out.strip())
    assert "name what to change" in failed.err
