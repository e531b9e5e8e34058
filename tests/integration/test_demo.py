"""The demo: it stores, draws and searches, and loads nothing external."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from zettel.cli.app import run
from zettel.cli.demo.layout import layout, ring_positions
from zettel.transcripts.formats import locomo

pytestmark = pytest.mark.integration

FOLDER = Path(__file__).parents[2] / "zettel" / "cli" / "demo"


@pytest.fixture
def demo_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    assert run(["demo"]) == 0
    return capsys.readouterr().out


class Tags(HTMLParser):
    """Counts tags by class and collects external references."""

    def __init__(self) -> None:
        super().__init__()
        self.classes: list[str] = []
        self.open: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.classes += (attributes.get("class") or "").split()
        self.outside += [value for name, value in attrs if name in {"src", "href", "xlink:href", "srcset"} and value]
        if tag not in {"meta", "br", "img", "link", "input"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.classes += (dict(attrs).get("class") or "").split()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_demo_answers_all_questions_with_explanations(demo_output: str) -> None:
    for question in json.loads((FOLDER / "questions.json").read_text(encoding="utf-8")):
        assert question["question"] in demo_output
        assert question["answer"].split()[0] in demo_output
    assert all(word in demo_output for word in ("sources", "features", "Annotator", "Embedder", "Store", "Scorer"))


def test_the_page_loads_nothing_external(demo_output: str, tmp_path: Path) -> None:
    page = (tmp_path / "zettel-demo.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.outside == []
    assert "default-src 'none'" in page
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|import\(", page)
    turns = len(list(locomo.read(FOLDER / "conversation.json")))
    assert tags.classes.count("note") == turns
    assert tags.classes.count("term") > 5
    assert tags.classes.count("link") > turns / 2


def test_the_demo_leaves_only_the_page(demo_output: str, tmp_path: Path) -> None:
    assert [path.name for path in tmp_path.iterdir()] == ["zettel-demo.html"]


def test_a_named_store_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert run(["demo", "--store", "demo.db", "--out", "here.html", "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert (report["stats"]["notes"], len(report["questions"])) == (267, 6)
    assert {"demo.db", "here.html"} <= {path.name for path in tmp_path.iterdir()}


def test_the_first_hits_contain_the_evidence() -> None:
    """For at least four of the six questions the first five hits contain some evidence."""
    from zettel import Memory

    questions = json.loads((FOLDER / "questions.json").read_text(encoding="utf-8"))
    with Memory(":memory:") as memory:
        memory.import_transcript(FOLDER / "conversation.json")
        memory.flush()
        answered = 0
        for question in questions:
            hits = memory.search(question["question"], k=5, as_of=question["as_of"])
            keys = {memory.get(hit.note.event_ids[0]).external_id for hit in hits}
            answered += bool(keys.intersection(question["evidence"]))
    assert answered >= 4


def test_the_layout_has_no_overlaps_and_is_deterministic() -> None:
    rng = np.random.default_rng(3)
    groups = [place // 10 for place in range(60)]
    halves = np.full((60, 2), 8.0)
    edges = {(place, int(rng.integers(0, place))): 1.0 for place in range(1, 60)}
    placed = layout(ring_positions(groups, 6), halves, edges, 900, 600)
    assert placed.shape == (60, 2)
    assert (placed >= 8).all()
    assert (placed <= [892, 592]).all()
    gaps = np.abs(placed[:, None] - placed[None]).max(axis=2) + np.eye(60) * 100
    assert gaps.min() > 15.9
    repeated = layout(ring_positions(groups, 6), halves, edges, 900, 600)
    assert (repeated == placed).all(), "the same graph has the same layout"


def test_the_evolution_demo_shows_merges_reverts_and_deletes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A neighbourhood changes, its history is a diff, a change is reverted, and a message is deleted."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    assert run(["demo", "--evolution"]) == 0
    output = capsys.readouterr().out
    for expected in ("1 merged", "A new insight: ", "zettel history n_", "+ keywords: Ostara", "zettel revert n_",
                 "clay, leaked, wire, Ostara → clay, leaked, wire;", "deleted with its repetition"):  # fmt: skip
        assert expected in output
    page = (tmp_path / "zettel-evolution.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.outside == []
    assert tags.classes.count("about") == 2
    assert tags.classes.count("learned") >= 3
    assert run(["demo", "--evolution", "--json", "--out", "it.svg"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["evolved"]["merged"] == 1
    assert set(report["learned"]) > set(report["reverted"])
    assert run(["demo", "--evolution", "--neo4j"]) != 0
    assert "leave out --neo4j" in capsys.readouterr().err
    assert report["deleted"]["insights"]
    assert (tmp_path / "it.svg").read_text(encoding="utf-8").startswith("<svg ")
