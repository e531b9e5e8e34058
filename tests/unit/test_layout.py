"""Layout of answers and wide tables in a terminal."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console
from rich.text import Text

from zettel.cli import common
from zettel.cli.benchmark_output import _cell, bands
from zettel.cli.hits import path_text
from zettel.cli.layout import heading, labelled, paragraph
from zettel.model import Step


def on(width: int) -> tuple[Console, io.StringIO]:
    sink = io.StringIO()
    return Console(file=sink, width=width, highlight=False), sink


@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_paragraph_is_indented_and_fits(width: int) -> None:
    out, sink = on(width)
    paragraph(out, Text("a tide of words " * 30), indent=6)
    lines = sink.getvalue().splitlines()
    assert all(line.startswith("      a ") or line.startswith("      ") for line in lines)
    assert max(map(len, lines)) <= width
    assert min(map(len, lines[:-1])) > width - 12, "the whole width is used"
    assert all(line == line.rstrip() for line in lines)


def test_continuation_lines_are_indented() -> None:
    out, sink = on(30)
    paragraph(out, Text("+ content: one two three four five six"), indent=2, hang=4)
    assert sink.getvalue().splitlines() == ["  + content: one two three", "      four five six"]


def test_labels_are_aligned() -> None:
    out, sink = on(30)
    labelled(out, [("id", "n_1"), ("content", "one two three four five six")])
    assert sink.getvalue().splitlines() == ["id       n_1", "content  one two three four", "         five six"]


def test_answers_contain_no_control_characters(capfd: pytest.CaptureFixture[str]) -> None:
    hostile = "Ann\x1b[2J\x9b31m\x07\u202e \x1b]0;title\x07\r\nand\x7f\ttab\n"
    common.echo(hostile)
    common.notify(hostile)
    common.console().print(hostile, Text(hostile, style="bold"))
    common.print_json({"text": hostile})
    out, err = capfd.readouterr()
    assert {sign for sign in out + err if not sign.isprintable()} == {"\n", "\t"}
    assert "Ann\u241b[2J\ufffd31m\u2407\ufffd \u241b]0;title\u2407\nand\u2421\ttab" in err
    assert json.loads(out[out.index("{") :]) == {"text": hostile}


def test_control_characters_are_escaped() -> None:
    out, sink = on(80)
    paragraph(out, Text("red \x1b[31m and \x9b2J"))
    heading(out, ("Ann\x1b]0;title\x07", "bold"))
    assert not {"\x1b", "\x9b", "\x07"} & set(sink.getvalue())
    assert "␛[31m" in sink.getvalue()


def test_paths_are_shortened() -> None:
    title = (
        Step(kind="question", name="title", over="NAMES"),
        Step(kind="note", name="The Glass Orchard", over="MENTIONS", note="n_1"),
        Step(kind="note", name="Tarn Hollow", over="~RELATES", note="n_2"),
    )
    assert path_text(title) == ("question names title → The Glass Orchard —MENTIONS→ Tarn Hollow ←RELATES— this note")
    term = (
        Step(kind="question", name="harbour", over="NAMES"),
        Step(kind="term", name="harbour", over="~HAS_TERM"),
    )
    assert path_text(term) == "question names term → harbour ←HAS_TERM— this note"


def test_wide_tables_repeat_the_first_column() -> None:
    assert bands([10, 5, 5, 5], 25) == [[0, 1, 2, 3]]
    assert bands([10, 5, 5, 5], 20) == [[0, 1, 2], [0, 3]]
    assert bands([10, 50, 5], 20) == [[0, 1], [0, 2]], "a column wider than the terminal has its own band"


def test_small_values_of_a_benchmark_are_not_printed_as_zero() -> None:
    assert [_cell(value) for value in (0.0001, 0.0, 0.0312, 1.0, 31.55, None, 760)] == [
        "0.0001", "0.000", "0.031", "1.000", "31.6", "", "760",
    ]  # fmt: skip
