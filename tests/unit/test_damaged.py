"""Damaged files of every format: bytes removed, flipped, doubled or moved, and JSON values of a wrong type.
Readable records are returned. Every other problem is a one-line reason or a ZettelError."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.test_formats import FORMAT_OF, SAMPLES
from zettel.errors import ZettelError
from zettel.model import Event
from zettel.transcripts import Rejected, choose

FULL = 5_000  # variants of each format
SAMPLE = 250  # variants of all formats together in an ordinary run
NESTED = 100_000  # nested brackets, more than any parser accepts

WEDGES = (
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\n", b'"', b"{", b"]"),
    *(b"null", b"1e999", b"-", b"\\ud800", b"9" * 5_000),
)

KINDS = (
    *(b"null", b"true", b"7", b"-0.5", b'""', b'"x"'),
    *(b"[]", b"{}", b'[["x"]]', b'[{"text":7}]', b'{"type":[1],"id":{}}'),
)
_VALUE = re.compile(rb'(?<=[:,\[])\s*(?:"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|\[|\{)(?!\s*:)')

FILES = [
    path.relative_to(SAMPLES).as_posix()
    for name in sorted(FORMAT_OF)
    for path in [SAMPLES / name, *sorted((SAMPLES / name).rglob("*"))]
    if path.is_file()
]

Damage = Callable[[bytes], bytes]


def format_of(file: str) -> str:
    return FORMAT_OF[file.partition("/")[0]]


def damages(size: int) -> st.SearchStrategy[list[Damage]]:
    """Draw one to three damages of a file with this many bytes."""
    place = st.integers(0, max(0, size - 1))
    length = st.integers(1, 200) | place
    inserted = st.binary(min_size=1, max_size=8) | st.sampled_from(WEDGES)
    damage: st.SearchStrategy[Damage] = st.one_of(
        place.map(lambda at: lambda data: data[:at]),
        st.tuples(place, st.integers(1, 255)).map(lambda args: lambda data: _flipped(data, *args)),
        st.tuples(place, length).map(lambda args: lambda data: data[: args[0]] + data[sum(args) :]),
        st.tuples(place, length).map(lambda args: lambda data: data[: sum(args)] + data[args[0] :]),
        st.tuples(place, inserted).map(lambda args: lambda data: data[: args[0]] + args[1] + data[args[0] :]),
        st.tuples(place, st.sampled_from(KINDS)).map(lambda args: lambda data: _retyped(data, *args)),
        st.randoms(use_true_random=False).map(lambda chance: lambda data: _shuffled(data, chance.sample)),
        st.sampled_from(["utf-16", "latin-1"]).map(lambda code: lambda data: _recoded(data, code)),
    )
    return st.lists(damage, min_size=1, max_size=3)


def _flipped(data: bytes, at: int, bits: int) -> bytes:
    return data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :] if at < len(data) else data


def _retyped(data: bytes, at: int, value: bytes) -> bytes:
    """Replace the first JSON value after a position, an object or a list with all its members."""
    if (match := _VALUE.search(data, at)) is None:
        return data
    end, opening = match.end(), data[match.end() - 1 : match.end()]
    if opening in (b"[", b"{"):
        depth = 1
        while depth and end < len(data):
            depth += (data[end] in b"[{") - (data[end] in b"]}")
            end += 1
    return data[: match.start()] + value + data[end:]


def _shuffled(data: bytes, sample: Callable[[list[bytes], int], list[bytes]]) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join(sample(lines, len(lines)))


def _recoded(data: bytes, code: str) -> bytes:
    return data.decode("utf-8", errors="ignore").encode(code, errors="ignore")


def variants(file: str, full: bool) -> int:
    alike = Counter(map(format_of, FILES))
    return -(-FULL // alike[format_of(file)]) if full else max(5, SAMPLE // len(FILES))


@pytest.mark.soak
@pytest.mark.parametrize("file", FILES)
def test_damage_is_reported_in_one_line(
    file: str, tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    count = variants(file, request.config.getoption("soak"))
    original = (SAMPLES / file).read_bytes()
    top = file.partition("/")[0]
    if (SAMPLES / top).is_dir():
        shutil.copytree(SAMPLES / top, tmp_path / top)

    @settings(max_examples=count)
    @given(damages(len(original)))
    @example([lambda original: b""])
    @example([lambda original: b"[" * NESTED])
    @example([lambda original: b'{"a":' * NESTED])
    def try_them(done: list[Damage]) -> None:
        damaged = original
        for damage in done:
            damaged = damage(damaged)
        (tmp_path / file).write_bytes(damaged)
        _require_one_line_reasons(tmp_path / top, format_of(file))
        _require_one_line_reasons(tmp_path / top, "auto")

    try_them()
    record_property("count", count)


def _require_one_line_reasons(path: Path, format: str) -> None:
    reasons = []
    try:
        for record in choose(path, format).read(path):
            assert record is None or isinstance(record, (Event, Rejected))
            if isinstance(record, Rejected):
                reasons.append(record.reason)
    except ZettelError as error:
        reasons.append(str(error))
        assert path.name in str(error), "the error names the file"  # noqa: PT017 - or none was raised
    assert all(reason.strip() and "\n" not in reason for reason in reasons)
