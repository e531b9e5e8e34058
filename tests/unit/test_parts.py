"""Long content is split into parts without loss."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zettel.text.parts import PART_CHARS, split_parts


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
