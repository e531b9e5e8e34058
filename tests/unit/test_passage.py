"""The passage of a hit is the part of its text that fits the question best."""

from __future__ import annotations

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.ports.query import Question
from zettel.search.passage import PASSAGE_CHARS, WHOLE_CHARS, marked_passage, select_passage
from zettel.search.question import parse_question

FILLER = "The weather was mild and nothing of note took place on that day. "


def ask(text: str) -> Question:
    return parse_question(text, vector=None, today=None)


def test_short_content_is_its_own_passage() -> None:
    assert select_passage("Yes.\n\nNo.", ask("Where is Ann?")) == "Yes.\n\nNo."
    assert select_passage("a " * (WHOLE_CHARS // 2), ask("Ann")) == "a " * (WHOLE_CHARS // 2)


def test_whole_sentences_with_the_rarest_tokens_are_selected() -> None:
    content = f"{FILLER * 4}The day was long. The varnish is stored below the oars. {FILLER * 6}"
    passage = select_passage(content, ask("Where did we put the varnish on that day?"))
    assert "The varnish is stored below the oars." in passage
    assert passage.startswith("The ")
    assert passage.endswith(".")
    assert 150 < len(passage) <= PASSAGE_CHARS


def test_stems_accents_and_other_scripts_match() -> None:
    for sentence, question in (
        ("It was great happiness.", "Is she happy?"),
        ("Zürich wählte die Brücke.", "Which bridge is in Zurich?"),
        ("We paid for v3.11.2 then.", "Who uses 3.11.2?"),
        ("Он купил большую лодку.", "Где лодка?"),
        ("彼女は東京タワーに行きました。", "東京タワー"),
    ):
        assert sentence in select_passage(f"{FILLER * 8}{sentence} {FILLER * 8}", ask(question))


def test_a_time_decides_less_than_the_subject() -> None:
    content = f"In May 2024 it rained a lot. {FILLER * 6}The ferry costs 90 kroner. {FILLER * 4}"
    assert "90 kroner" in select_passage(content, ask("What did the ferry cost in May 2024?"))


def test_the_first_of_equal_passages_is_selected() -> None:
    content = f"{FILLER * 3}One ferry left. {FILLER * 6}Two ferries left. {FILLER * 3}"
    passage = select_passage(content, ask("ferry"))
    assert "One ferry" in passage
    assert "Two" not in passage


def test_without_a_match_the_beginning_is_selected() -> None:
    passage = select_passage(f"It begins. {FILLER * 9}", ask("Who plays the tuba?"))
    assert passage.startswith("It begins. The weather")
    assert passage.endswith("day.")


def test_list_items_are_whole() -> None:
    items = [f"{n}. Wash the part {n}. Then dry it. Then wait for a while." for n in range(1, 20)]
    items[11] = "12. Oil the rudder. Wait for two days."
    passage = select_passage("Steps:\n\n" + "\n".join(items), ask("How is the rudder oiled?"))
    assert items[11] in passage
    assert all(line in items for line in passage.splitlines())


def test_table_rows_follow_their_header() -> None:
    rows = "".join(f"| harbour {n} | {n * 10} |\n" for n in range(40))
    content = f"{FILLER}\n\n| place | price |\n|---|---|\n{rows}| Oslo | 7 |\n\n{FILLER}"
    passage = select_passage(content, ask("What is the price in Oslo?"))
    header, *others = passage.splitlines()
    assert header == "| place | price |"
    assert others[-1] == "| Oslo | 7 |"
    assert all(other.startswith("| ") for other in others)


def test_lines_of_code_are_whole() -> None:
    code = "\n".join(f"    step_{n}(values[{n}])" for n in range(40))
    content = f"Use this:\n\n```python\n{code}\n    moor(anchor)\n{code}\n```\n{FILLER}"
    passage = select_passage(content, ask("How do I call anchor?"))
    assert "    moor(anchor)" in passage.splitlines()
    assert "```" not in passage


def test_a_long_line_is_cut_between_words() -> None:
    content = "word " * 200 + "anchor " + "word " * 200
    passage = select_passage(content, ask("anchor"))
    assert "anchor" in passage.split()
    assert len(passage) <= PASSAGE_CHARS


def test_missing_text_is_marked() -> None:
    assert marked_passage("All of it.", "All of it.\n") == "All of it."
    assert marked_passage("First.", "First. Second.") == "First.…"
    assert marked_passage("Second.", "First. Second.") == "…Second."
    assert marked_passage("| a |\n| 2 |", "| a |\n|---|\n| 1 |\n| 2 |\n| 3 |") == "| a |\n| 2 |…"


TEXTS = st.lists(
    st.one_of(
        st.text(max_size=200),
        st.sampled_from(
            ["anchor. ", "\n\n", "- anchor\n", "| a |\n|--|\n| anchor |\n", "```\nanchor\n```\n", FILLER, "x" * 400]
        ),
    ),
    min_size=1,
    max_size=20,
).map("".join)


@given(TEXTS, st.text(min_size=1, max_size=60))
def test_a_passage_is_text_of_its_note(content: str, question: str) -> None:
    passage = select_passage(content, ask(f"{question} anchor"))
    if len(content) <= WHOLE_CHARS:
        assert passage == content
        return
    assert all(line in content for line in passage.split("\n"))
    assert bool(passage.strip()) == bool(content.strip())
    if "|" not in content:
        assert len(passage) <= PASSAGE_CHARS


@pytest.mark.parametrize(
    "text", ["x" * 1_000_000, "anchor " * 100_000, "anchor.\n" * 100_000, "\n" * 500_000, "'" * 300_000]
)
def test_a_large_note_has_a_passage_without_delay(text: str) -> None:
    start = perf_counter()
    select_passage(text, ask("Where's the anchor of x?"))
    assert perf_counter() - start < 5
