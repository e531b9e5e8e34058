"""Saved queries: complete files, and values quoted as literals that cannot end early."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel import Scope
from zettel.cli.app import run
from zettel.cypher import explore
from zettel.errors import InvalidInput
from zettel.model import LinkType

QUERIES = explore.saved_queries()
KEY = Scope(user="ann").key
LABELS = {"Note", "Event", "Term", "Revision", "Job", "Answer", "Search", "Usage"}
TYPES = {"FROM", "NEXT", "HAS_TERM", "REVISED", "BEGAN_AS", "ABOUT", "ASKED_ABOUT", "FOUND", "USED"} | {
    link_type.value for link_type in LinkType
}


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_every_query_has_a_description_and_declares_its_parameters(query: explore.SavedQuery) -> None:
    assert query.title
    assert query.comment.endswith(".")
    used = set(re.findall(r"\$(\w+)", query.body))
    assert used == {explore.SCOPE, *(value.name for value in query.values)}
    assert all(value.meaning for value in query.values)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_every_query_reads_one_scope_and_known_labels_only(query: explore.SavedQuery) -> None:
    assert not re.search(r"\b(CREATE|MERGE|SET|DELETE|REMOVE|CALL|LOAD|DROP)\b", query.body)
    assert "{scope: $scope" in query.body
    assert set(re.findall(r"\w*:([A-Z][a-z]+)\b", query.body)) <= LABELS
    assert {name for group in re.findall(r"\[\w*:([A-Z_|]+)", query.body) for name in group.split("|")} <= TYPES


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_filled_queries_have_no_open_parameters(query: explore.SavedQuery) -> None:
    ready = explore.with_values(query, explore.values_of(query, KEY, {}))
    assert ready.startswith(f"// {query.title}\n")
    assert "$" not in ready
    assert f"'{KEY}'" in ready


@given(st.text())
def test_a_literal_ends_at_its_closing_quote(text: str) -> None:
    literal = explore.literal(text)
    assert re.fullmatch(r"'(?:[^'\\]|\\.)*'", literal, re.DOTALL)
    assert "#" not in literal
    read = re.sub(
        r"\\(u0023|.)", lambda escape: "#" if escape[1] == "u0023" else escape[1], literal[1:-1], flags=re.DOTALL
    )
    assert read == text


@given(st.text())
def test_an_address_contains_the_query_text(text: str) -> None:
    address = explore.link("http://localhost:7474/", text, "neo4j://neo4j@localhost:7687")
    parts = urlsplit(address)
    assert parts.fragment == ""
    parameters = parse_qs(parts.query, keep_blank_values=True)
    assert parameters == {"dbms": ["neo4j://neo4j@localhost:7687"], "cmd": ["edit"], "arg": [text.strip()]}


def test_invalid_values_are_refused() -> None:
    topic = explore.saved_query("topic")
    assert explore.values_of(topic, KEY, {"topic": "7", "most": "5"}) == {"scope": KEY, "topic": "7", "most": 5}
    with pytest.raises(InvalidInput, match="topic has no value scope, thing; its values: topic, most"):
        explore.values_of(topic, KEY, {"scope": "x", "thing": "y"})
    with pytest.raises(InvalidInput, match="most must be a whole number, got many"):
        explore.values_of(topic, KEY, {"most": "many"})
    with pytest.raises(InvalidInput, match="no saved query 'nothing'"):
        explore.saved_query("nothing")


def test_the_style_covers_all_labels() -> None:
    style = explore.read_text(explore.STYLE)
    assert "#" not in style, "where an address would end"
    assert set(re.findall(r"^node\.(\w+)", style, re.MULTILINE)) == LABELS
    assert set(re.findall(r"^relationship\.(\w+)", style, re.MULTILINE)) <= TYPES
    blocks = re.findall(r"^[\w.]+ \{\n(?:  [\w-]+: [^;{}]+(?:\{\w+\}\")?;\n)+\}\n", style, re.MULTILINE)
    assert "".join(blocks) == style


def test_the_guide_names_existing_files() -> None:
    guide = explore.read_text(explore.GUIDE)
    for name in TYPES:
        assert f"`{name}`" in guide
    assert explore.STYLE in guide


# ------------------------------------------------------------------------------------------------------------- command


def test_command_lists_the_queries(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore", "--json"]) == 0
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)] == [query.name for query in QUERIES]
    assert run(["explore"]) == 0
    out = capsys.readouterr().out
    assert all(query.title.split()[0] in out for query in QUERIES)


def test_command_fills_scope_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore", "day", "day=2024-05-01", "--user", "ann"]) == 0
    out = capsys.readouterr().out
    assert f"'{KEY}'" in out
    assert "datetime('2024-05-01')" in out
    assert run(["explore", "day", "--params", "--user", "ann"]) == 0
    assert f":param scope => '{KEY}';\n" in capsys.readouterr().out


def test_command_says_which_values_are_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore", "topic"]) == 0
    assert "topic=mustard is an example: pass topic=..." in capsys.readouterr().err
    assert run(["explore", "topic", "topic=harbour"]) == 0
    assert capsys.readouterr().err == ""


def test_command_prints_links_to_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["explore", "hubs", "--links", "--store", "neo4j://memory.example:7001"]) == 0
    link = urlsplit(capsys.readouterr().out.strip())
    assert (link.netloc, link.path) == ("memory.example:7474", "/browser/")
    assert parse_qs(link.query)["dbms"] == ["neo4j://neo4j@memory.example:7001"]
    assert run(["explore", "--links", "--browser", "https://x.example"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * (len(QUERIES) + 1)
    assert all(
        line.startswith("  https://x.example/browser/?dbms=neo4j://neo4j@localhost:7687&") for line in lines[1::2]
    )


def test_command_writes_all_queries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore", "--write", str(tmp_path / "queries"), "--user", "ann"]) == 0
    written = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "queries").iterdir()}
    assert written.keys() == {f"{query.name}.cypher" for query in QUERIES} | {explore.STYLE, explore.GUIDE}
    assert all(KEY in text for name, text in written.items() if name.endswith(".cypher"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "no saved query 'nothing'"),
        (["day", "2024-05-01"], "is not NAME=VALUE"),
        (["day", "hour=9"], "day has no value hour"),
    ],
)
def test_command_reports_errors(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err
    assert output.err.count("\n") == 1
