"""The benchmarks on small files of our own: what they print, what they keep, and what they say to mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_cli import Zettel
from tests.integration.test_cli import zettel as zettel  # the fixture
from zettel import Memory
from zettel.bench.overlap import ORACLE, store_of
from zettel.bench.synthetic import large_scope
from zettel.errors import InvalidInput

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).parents[2]
TALK = [
    {
        "sample_id": "pond",
        "conversation": {
            "session_1_date_time": "7:05 pm on 3 March, 2024",
            "session_1": [
                {"speaker": "Ann", "text": "The heron came back to the pond.", "dia_id": "D1:1"},
                {"speaker": "Ben", "text": "I mended the oak boat on Friday.", "dia_id": "D1:2"},
                {"speaker": "Ann", "text": "My sister Nell keeps bees now.", "dia_id": "D1:3"},
            ],
        },
        "qa": [
            {"question": "Who keeps bees?", "evidence": ["D1:3"], "category": 4},
            {"question": "What did Ben mend?", "evidence": ["D1:2"], "category": 1},
            {"question": "When did Ben sell the bees?", "evidence": ["D1:3"], "category": 5},
            {"question": "What is the capital of the moon?", "evidence": [], "category": 5},
        ],
    }
]
PASSAGES = [
    {"title": "Blue Heron", "text": "Blue Heron is a film by Mira Solveng."},
    {"title": "Mira Solveng", "text": "Mira Solveng was born in Tarn Hollow."},
    {"title": "Tarn Hollow", "text": "A village in the north."},
]
ASKED = [{"question": "Where was the director of Blue Heron born?", "titles": ["Blue Heron", "Mira Solveng"]}]


@pytest.fixture
def talk(tmp_path: Path) -> str:
    (tmp_path / "talk.json").write_text(json.dumps(TALK))
    return "talk.json"


def column(result: dict[str, Any], name: str) -> dict[str, Any]:
    place = result["columns"].index(name)
    return {row[0]: row[place] for row in result["rows"]}


def test_locomo_has_both_recalls_and_auroc(zettel: Zettel, talk: str) -> None:
    result = zettel("bench", "locomo", talk, "--json", "-").json()
    assert column(result, "1-4 @10") == {"zettel": 1.0, "BM25": 1.0, "vectors": 1.0, "asked": 2}
    assert column(result, "1-4 @20")["zettel"] == 1.0
    assert column(result, "adversarial @10")["asked"] == 1
    assert 0 <= column(result, "AUROC")["zettel"] <= 1
    assert column(result, "AUROC")["BM25"] is None
    assert result["machine"]["packages"]["numpy"]


def test_other_places_and_a_file(zettel: Zettel, talk: str, tmp_path: Path) -> None:
    ran = zettel("bench", "locomo", talk, "-k", "1", "--json", "out.json")
    assert ran.status == 0, ran.err
    assert "AUROC" in ran.out
    assert json.loads((tmp_path / "out.json").read_text())["columns"][1] == "1-4 @1"


def test_mixed_with_documents(zettel: Zettel, talk: str, tmp_path: Path) -> None:
    (tmp_path / "2wiki-corpus.jsonl").write_text("\n".join(map(json.dumps, PASSAGES)))
    (tmp_path / "2wiki-dev.jsonl").write_text("\n".join(map(json.dumps, ASKED)))
    result = zettel("bench", "locomo", talk, "--with", ".", "--json", "-").json()
    assert [row[:2] for row in result["rows"] if row[0] == "zettel"] == [["zettel", "apart"], ["zettel", "mixed"]]
    for row in result["rows"]:
        if row[0] == "zettel":
            assert row[2:] == [1.0, 1.0, 1.0]


def test_overlap_with_the_store_that_looks_at_every_note(
    zettel: Zettel, talk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(CHECKOUT))
    result = zettel("bench", "overlap", talk, "--notes", "80", "--json", "-").json()
    assert [row[:3] for row in result["rows"]] == [
        ["pond", 3, 4], ["all conversations", None, 4], ["made up", 80, 60],
    ]  # fmt: skip
    assert column(result, "overlap @10") == {"pond": 1.0, "all conversations": 1.0, "made up": 1.0}
    assert result["settings"]["against"] == f"reference ({ORACLE})"


def test_overlap_leaves_nothing_in_a_store_that_was_named(zettel: Zettel, talk: str) -> None:
    zettel("add", "Snow fell.", "--store", "mine.db")
    ran = zettel("bench", "overlap", talk, "--notes", "0", "--against", "other.db", "--store", "mine.db")
    assert ran.status == 0, ran.err
    with Memory("mine.db") as memory:
        assert [str(scope) for scope in memory.scopes()] == ["the default scope"]
    with Memory("other.db") as memory:
        assert memory.scopes() == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["overlap", "talk.json", "--against", "no_such_module:Store"], "no_such_module"),
        (["overlap", "talk.json", "--against", "json:Store"], "json has no Store"),
        (["overlap", "missing.json"], "missing.json"),
        (["locomo", "talk.json", "--json", "gone/out.json"], "no folder gone"),
        (["locomo", "talk.json", "--without", "luck"], "'luck'"),
        (["locomo", "talk.json", "--with", "nowhere"], "nowhere"),
        (["locomo", "."], "is a folder"),
        (["speed", "missing.json"], "missing.json"),
    ],
)
def test_mistakes(zettel: Zettel, talk: str, arguments: list[str], told: str) -> None:
    ran = zettel("bench", *arguments)
    assert (ran.status, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert told in ran.err


def test_paths_and_addresses_are_stores_as_they_are() -> None:
    assert store_of("a/b.db") == "a/b.db"
    assert store_of(":memory:") == ":memory:"
    assert store_of("neo4j://localhost:7687") == "neo4j://localhost:7687"
    with pytest.raises(InvalidInput, match="installed"):
        store_of("absent_package:Store")


def test_the_made_up_scope_is_always_the_same() -> None:
    events, questions = large_scope(120)
    assert (events, questions) == large_scope(120)
    assert len({event.id for event in events}) == 120
    assert {event.session for event in events} == {"s0", "s1", "s2"}
    words = {word for event in events for word in event.content.split()}
    assert all(set(question.split()) <= words for question in questions)
