"""Lines of text in common encodings."""

from __future__ import annotations

import io

import pytest

from zettel.errors import BadRecord
from zettel.transcripts import Rejected
from zettel.transcripts.parsing.lines import MAX_LINE, lines


def read(data: bytes) -> list[tuple[int, str | None]]:
    return [(number, None if isinstance(line, Rejected) else line) for number, line in lines(io.BytesIO(data), "a")]


@pytest.mark.parametrize("code", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_are_detected(code: str) -> None:
    assert read("ä\r\n\nb 😀".encode(code)) == [(1, "ä"), (2, ""), (3, "b 😀")]


def test_an_undecodable_line_is_rejected_and_the_next_is_read() -> None:
    assert read(b"a\n\xff\nb\n") == [(1, "a"), (2, None), (3, "b")]
    assert read(b"a\n" + b"x" * (2 * MAX_LINE) + b"\nb\n") == [(1, "a"), (2, None), (3, "b")]
    assert read(b"") == []


def test_truncated_utf_16_is_rejected() -> None:
    with pytest.raises(BadRecord, match="a:2: the text is not valid UTF-16"):
        read("a\nb".encode("utf-16") + b"\0")
