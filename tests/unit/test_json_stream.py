"""Streamed JSON yields the items of the whole text, or one error with the position of the damage."""

from __future__ import annotations

import io
import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.errors import BadRecord
from zettel.transcripts.parsing import json_stream
from zettel.transcripts.parsing.json_stream import JsonStream

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def stream(data: str | bytes) -> JsonStream:
    return JsonStream(io.BytesIO(data.encode() if isinstance(data, str) else data), "a.json")


def read_items(data: str | bytes) -> list[Any]:
    reader = stream(data)
    items = list(reader.items())
    reader.end()
    return items


@given(st.lists(values), st.integers(1, 7), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]), st.booleans())
def test_streamed_items_equal_the_parsed_items(items: list[Any], chunk: int, code: str, ascii_only: bool) -> None:
    data = json.dumps(items, indent=chunk % 3 or None, ensure_ascii=ascii_only).encode(code)
    with patch.object(json_stream, "_CHUNK_BYTES", chunk + 3):  # a byte order mark is read at once
        reader = stream(data)
        assert list(reader.items()) == items
        reader.end()


@given(st.dictionaries(st.text(), values), st.sets(st.integers(0, 9)), st.integers(4, 9))
def test_members_may_be_read_or_skipped(fields: dict[str, Any], taken: set[int], chunk: int) -> None:
    with patch.object(json_stream, "_CHUNK_BYTES", chunk):
        reader = stream(json.dumps(fields))
        members = {key: reader.value() for place, key in enumerate(reader.members()) if place in taken}
        reader.end()
    assert members == {key: value for place, (key, value) in enumerate(fields.items()) if place in taken}


@given(st.integers(4, 30))
def test_control_characters_of_telegram_desktop_are_accepted(chunk: int) -> None:
    text = r'[{"a": "one\x0Btwo\x1F", "b": "C:\\x0B\\\x0B"}, "\x01\x02"]'
    with patch.object(json_stream, "_CHUNK_BYTES", chunk):
        assert read_items(text) == [{"a": "one\x0btwo\x1f", "b": "C:\\x0B\\\x0b"}, "\x01\x02"]
    with pytest.raises(BadRecord, match=r"a\.json:1:3: the JSON is damaged here \(Invalid \\escape\)"):
        read_items(r'["\xZZ", "and much more"]')


def test_paths_lead_into_items() -> None:
    reader = stream('{"a": {"list": [{"name": "x", "n": [1]}, 7, {"name": "y"}]}, "b": 2}')
    names = []
    for key in reader.members():
        if key == "a":
            for inner in reader.members():
                assert inner == "list"
                for _ in reader.steps():
                    if reader.peek() == "{":
                        names += [reader.value() for member in reader.members() if member == "name"]
    assert names == ["x", "y"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "1:1: the JSON is truncated"),
        ("[1, 2", "1:6: the JSON is truncated"),
        ('[1,\n "abc', "2:2: the JSON is truncated"),
        ("[1 2]", "1:4: the JSON is damaged here (a comma is missing)"),
        ("[1]]", "1:4: the JSON is damaged here (something follows"),
        ("{}", "1:1: the JSON is damaged here (expected an array)"),
        ("[" * 100_000, "1:2: the JSON is damaged here (is nested too deeply)"),
        (b'["\xff"]', "1: the text is neither UTF-8 nor UTF-16"),
        ("[" + "9" * 5_000 + "]", "1:2: the JSON is damaged here (Exceeds the limit"),
    ],
)
def test_damage_is_reported_with_its_position(data: str | bytes, message: str) -> None:
    with pytest.raises(BadRecord) as caught:
        read_items(data)
    assert str(caught.value).startswith(f"a.json:{message}")
    assert "\n" not in str(caught.value)


def test_skipped_values_may_be_nested_deeply() -> None:
    reader = stream('{"a": ' + "[" * 50_000 + "]" * 50_000 + ', "b": 1}')
    assert [reader.value() for key in reader.members() if key == "b"] == [1]


def test_an_oversized_value_is_refused() -> None:
    with patch.object(json_stream, "MAX_PIECE", 1000), pytest.raises(BadRecord, match="longer than 1,000 characters"):
        list(stream("[" + '"' + "x" * 600_000 + '"]').items())
