"""The commands entities and entity."""

from __future__ import annotations

import json

import pytest

from tests.integration.command import Zettel

pytestmark = pytest.mark.integration


@pytest.fixture
def filled(zettel: Zettel) -> Zettel:
    for day, text in (
        ("2024-01-03", "My wife Ana starts at the Porto clinic."),
        ("2024-01-09", "We had dinner with Ann Berg. Ann likes Oslo."),
        ("2024-02-01", "Ann lives in Oslo."),
        ("2024-04-01", "Ann moved to Bergen."),
    ):
        assert zettel("add", text, "--role", "user", "--at", day, "--session", "s").status == 0
    return zettel


def test_entities_are_listed_by_their_notes(filled: Zettel) -> None:
    lines = [line.split() for line in filled("entities").out.splitlines()]
    assert lines[:2] == [["3", "Ann", "person", "Ann", "Berg"], ["2", "Oslo", "place"]]
    page = filled("entities", "--kind", "person", "--limit", "1")
    assert (len(page.out.splitlines()), page.err) == (1, "zettel: there are more: --cursor 1\n")
    listed = json.loads(filled("entities", "--kind", "person", "--cursor", "1", "--json").out)
    assert [entity["name"] for entity in listed["entities"]] == ["Ana"]
    assert filled("entities", "--kind", "thing").err == "zettel: the notes name no entity of a known kind\n"


def test_an_entity_is_shown_merged_and_split(filled: Zettel) -> None:
    filled("doctor")
    shown = filled("entity", "Ann Berg").out
    for part in (
        "Ann  person  3 notes",
        "Ann = Ann Berg, by rule",
        "home: Ann moved to Bergen.",
        "2024-02-01",
        "Oslo (2)",
    ):
        assert part in shown
    merged = filled("entity", "merge", "Ann", "Annie", "--reason", "her nickname").out
    assert merged.startswith("Ann is also called Annie. (n_")
    assert "Ann = Annie, by user: her nickname (n_" in filled("entity", "annie").out
    assert json.loads(filled("entity", "split", "Ann", "Annie", "--json").out)["kind"] == "insight"
    assert "'Annie' is not in the names" in filled("entity", "Annie").err


def test_wrong_words_are_one_line(filled: Zettel) -> None:
    for words in (["merge", "Ann"], ["Ann", "Berg"], ["split", "a", "b", "c"]):
        answer = filled("entity", *words)
        assert answer.status == 2
        assert (
            answer.err
            == 'zettel: write one name, or merge or split and two names; quote names with spaces: "Ann Berg"\n'
        )
