"""Limits of JSON bodies that arrive in parts."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.errors import TooLarge
from zettel.server.json_limits import MAX_DEPTH, JsonLimits

VALUES = st.recursive(
    st.none() | st.integers() | st.text('ab"\\[{,}] \n\u20ac') | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('a"\\{,'), inner, max_size=4),
    max_leaves=30,
)


def parsed_values(value: Any) -> int:
    """Return the number of lists, objects and strings of a value, and of commas between the items."""
    if isinstance(value, dict):
        return 1 + max(0, len(value) - 1) + len(value) + sum(map(parsed_values, value.values()))
    if isinstance(value, list):
        return 1 + max(0, len(value) - 1) + sum(map(parsed_values, value))
    return int(isinstance(value, str))


@given(VALUES, st.booleans(), st.lists(st.integers(0, 400), max_size=8))
def test_the_count_does_not_depend_on_the_parts(value: Any, ascii_only: bool, cuts: list[int]) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only).encode()
    limits = JsonLimits(10**6)
    for start, end in pairwise(sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})):
        limits.feed(body[start:end])
    assert limits.values == parsed_values(value)


@pytest.mark.parametrize(
    "body",
    [
        b'{"question":"x","filter":{"or":[' + b'{"a":1},' * 2_000,
        b'{"payload":[' + b"1," * 2_000,
        b"[" + b'"",' * 1_000,
        b'"' * 4_000,
    ],
)
def test_too_many_values_are_refused_before_the_end(body: bytes) -> None:
    limits = JsonLimits(1_000)
    with pytest.raises(TooLarge, match="more than 1,000 JSON values"):
        limits.feed(body)


def test_deep_values_are_refused() -> None:
    JsonLimits(10**6).feed(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    with pytest.raises(TooLarge, match=f"more than {MAX_DEPTH} levels"):
        JsonLimits(10**6).feed(b'{"a":' * (MAX_DEPTH + 1))
    JsonLimits(10**6).feed(b'["' + b"[" * 1_000 + b'"]')


@pytest.mark.parametrize("filler", [b"a", b"\\\\", b'\\"', b" "])
def test_long_strings_and_blanks_take_linear_time(filler: bytes) -> None:
    body = b'"' + filler * (2**22 // len(filler)) + b'"'
    limits = JsonLimits(10)
    for start in range(0, len(body), 4_096):
        limits.feed(body[start : start + 4_096])
    assert limits.values == 1
