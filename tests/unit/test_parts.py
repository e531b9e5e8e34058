"""Long content is split into parts without loss."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.text.parts import PART_CHARS, split_parts

SENTENCE = "A sentence of some length ends here. "
CODE = "\n".join(f"    total += weights[{n}] * values[{n}]" for n in range(20))


def test_short_content_is_a_single_part() -> None:
    assert split_parts("Hello.") == ["Hello."]
    assert split_parts("x" * PART_CHARS) == ["x" * PART_CHARS]


def test_cuts_fall_between_paragraphs_then_sentences_then_words() -> None:
    paragraph = "A sentence of some length stands here. " * 25
    assert all(part.endswith("\n\n") for part in split_parts((paragraph + "\n\n") * 4)[:-1])
    assert all(part.rstrip().endswith(".") for part in split_parts(paragraph * 4)[:-1])
    assert all(part[-1] == " " for part in split_parts("word " * 1000)[:-1])


@given(st.text("ab. \n。", max_size=200), st.integers(5, 40))
def test_nothing_is_lost_and_nothing_is_too_long(text: str, longest: int) -> None:
    parts = split_parts(text, longest)
    assert "".join(parts) == text
    assert all(len(part.rstrip()) <= longest for part in parts)
    assert all(part.strip() for part in parts[1:]) or not text.strip()


LINES = st.one_of(
    st.sampled_from(
        ["", "# H", "## Head", "**Bold**", "- a", "1. b", "  - c", "```py", "```", "~~~", "    x = 1", "| a | b |",
         "|---|---|", "| 1 | 2 |", "a. b c", "  d", "\t- e"]
    ),
    st.text("ab.|`#- \n\t\r", max_size=60),
    st.text(max_size=30),
)  # fmt: skip
MARKDOWN = st.one_of(st.text(), st.lists(LINES, max_size=60).map("\n".join))


@given(MARKDOWN, st.integers(20, 200))
def test_markdown_is_split_without_loss(text: str, longest: int) -> None:
    parts = split_parts(text, longest)
    assert "".join(parts) == text
    assert all(0 < len(part) <= longest for part in parts[:-1])
    assert len(parts[-1].rstrip()) <= longest
    assert len(parts) == 1 or parts[-1].strip()


def test_a_cut_is_before_a_heading() -> None:
    paragraph = SENTENCE * 10 + "\n\n"
    section = f"## Install\n\n{paragraph}{paragraph}"
    parts = split_parts(f"{paragraph}{section * 4}")
    assert [part[:10] for part in parts] == [paragraph[:10], *["## Install"] * (len(parts) - 1)]


def test_a_heading_begins_the_next_part() -> None:
    text = f"{SENTENCE * 39}\n\n# Title\n\n**Step 1:**\n\n{SENTENCE * 20}"
    first, second = split_parts(text)
    assert first == SENTENCE * 39 + "\n\n"
    assert second.startswith("# Title\n\n**Step 1:**\n\nA sentence")


@pytest.mark.parametrize("before", [10, 700, 1200])
def test_a_code_block_that_fits_is_not_cut(before: int) -> None:
    block = f"```python\n{CODE}\n\n{CODE[:400]}\n```\n"
    assert 1000 < len(block) <= PART_CHARS
    text = f"{'word ' * (before // 5)}\n\n{block}\nThat is all. {SENTENCE * 30}"
    assert sum(block in part for part in split_parts(text)) == 1


def test_a_code_block_stays_with_its_heading() -> None:
    block = f"### The code\n\n```python\n{CODE}\n```\n"
    parts = split_parts(f"{SENTENCE * 30}\n\n{block}\n{SENTENCE * 30}")
    assert any(part.startswith("### The code") and block in part for part in parts)


def test_a_long_code_block_is_cut_at_blank_lines_else_at_lines() -> None:
    functions = "\n\n".join(f"def function_{n}():\n{CODE[:500]}" for n in range(8))
    parts = split_parts(f"See:\n\n```python\n{functions}\n```\n")
    assert all(part.startswith("def function_") for part in parts[1:])
    lines = "\n".join(f"value_{n} = compute(value_{n - 1}, {n})" for n in range(200))
    parts = split_parts(f"```\n{lines}\n```")
    assert all(part.startswith("value_") and part.endswith(("\n", "```")) for part in parts[1:])
    assert not parts[-1].startswith("```")
    assert all(len(part) > PART_CHARS // 2 for part in parts[:-1])


def test_lists_are_cut_between_items() -> None:
    nested = "  - with a detail that takes a line of its own\n" * 3
    items = "".join(f"{n}. {SENTENCE * 3}\n{nested}" for n in range(1, 20))
    parts = split_parts(f"Steps:\n\n{items}")
    assert len(parts) > 2
    assert all(part[0].isdigit() for part in parts[1:])


def test_a_whole_list_moves_to_the_next_part() -> None:
    items = "".join(f"- item {n} of the list\n" for n in range(20))
    assert split_parts(f"{SENTENCE * 30}\n\n{items}\n{SENTENCE * 20}")[1].startswith("- item 0")


def test_tables_are_cut_between_rows() -> None:
    def table(rows: int) -> str:
        return "| name | price |\n|---|---:|\n" + "".join(f"| Item number {n}. Good | {n} kr |\n" for n in range(rows))

    whole = table(20)
    assert sum(whole in part for part in split_parts(f"{SENTENCE * 30}\n\n{whole}\n{SENTENCE * 30}")) == 1
    parts = split_parts(f"Prices:\n\n{table(200)}")
    assert all(part.startswith("| Item number") and part.endswith("|\n") for part in parts[1:])


def test_a_line_that_is_too_long_is_cut_anyway() -> None:
    assert split_parts(f"# Log\n\n```\n{'x' * 4000}\n```\n")[0].startswith("# Log")
    row = f"| {'x' * 4000} |"
    assert "".join(split_parts(f"| a |\n|---|\n{row}\n")) == f"| a |\n|---|\n{row}\n"


@given(
    st.lists(st.sampled_from(["p", "heading", "code", "table", "list"]), min_size=3, max_size=30),
    st.lists(st.integers(1, 40), min_size=30, max_size=30),
)
def test_what_fits_is_whole(kinds: list[str], sizes: list[int]) -> None:
    blocks = [_block(kind, number, size) for number, (kind, size) in enumerate(zip(kinds, sizes, strict=False))]
    parts = split_parts("\n\n".join(blocks))
    headings = ""
    for block in blocks:
        if block.startswith("## "):
            headings += f"{block}\n\n"
            continue
        if block.startswith(("```", "| ")) and len(headings + block) <= PART_CHARS:
            assert any(headings + block in part for part in parts)
        headings = ""
    for part in parts[:-1]:
        assert not part.rstrip().splitlines()[-1].startswith("## ")
        assert len(part) <= PART_CHARS


def _block(kind: str, number: int, size: int) -> str:
    if kind == "heading":
        return f"## Section {number}"
    if kind == "code":
        return f"```python\n{chr(10).join(f'x_{number}_{n} = {n} * y' for n in range(size * 3))}\n```"
    if kind == "table":
        return "\n".join(["| name | n |", "|---|---|", *(f"| row {number} | {n} |" for n in range(size * 3))])
    if kind == "list":
        return "\n".join(f"- item {n} of {number}" for n in range(size))
    return f"{number}: {SENTENCE * size}".strip()


@pytest.mark.parametrize("line", ["- a b.\n", "x\n", "# h\n", "|a|\n|-|\n"])
def test_the_time_to_split_grows_with_the_length(line: str) -> None:
    """Eight times the text takes about eight times as long, not 64 times."""
    fence = "```\n" if line == "x\n" else ""

    def seconds(lines: int) -> float:
        text = fence + line * lines
        start = process_time()
        parts = split_parts(text)
        took = process_time() - start
        assert "".join(parts) == text
        return took

    short = min(seconds(10_000) for _ in range(3))
    assert min(seconds(80_000) for _ in range(2)) < 24 * short
