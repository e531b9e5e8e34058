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
    one: st.SearchStrategy[Damage] = st.one_of(
        place.map(lambda at: lambda said: said[:at]),
        st.tuples(place, st.integers(1, 255)).map(lambda told: lambda said: _flipped(said, *told)),
        st.tuples(place, length).map(lambda told: lambda said: said[: told[0]] + said[sum(told) :]),
        st.tuples(place, length).map(lambda told: lambda said: said[: sum(told)] + said[told[0] :]),
        st.tuples(place, inserted).map(lambda told: lambda said: said[: told[0]] + told[1] + said[told[0] :]),
        st.tuples(place, st.sampled_from(KINDS)).map(lambda told: lambda said: _retyped(said, *told)),
        st.randoms(use_true_random=False).map(lambda chance: lambda said: _shuffled(said, chance.sample)),
        st.sampled_from(["utf-16", "latin-1"]).map(lambda code: lambda said: _recoded(said, code)),
    )
    return st.lists(one, min_size=1, max_size=3)


def _flipped(said: bytes, at: int, bits: int) -> bytes:
    return said[:at] + bytes([said[at] ^ bits]) + said[at + 1 :] if at < len(said) else said


def _retyped(said: bytes, at: int, value: bytes) -> bytes:
    """Replace the first JSON value after a position, an object or a list with all its members."""
    if (found := _VALUE.search(said, at)) is None:
        return said
    end, opening = found.end(), said[found.end() - 1 : found.end()]
    if opening in (b"[", b"{"):
        depth = 1
        while depth and end < len(said):
            depth += (said[end] in b"[{") - (said[end] in b"]}")
            end += 1
    return said[: found.start()] + value + said[end:]


def _shuffled(said: bytes, sample: Callable[[list[bytes], int], list[bytes]]) -> bytes:
    lines = said.splitlines(keepends=True)
    return b"".join(sample(lines, len(lines)))


def _recoded(said: bytes, code: str) -> bytes:
    return said.decode("utf-8", errors="ignore").encode(code, errors="ignore")


def variants(file: str, full: bool) -> int:
    alike = Counter(map(format_of, FILES))
    return -(-FULL // alike[format_of(file)]) if full else max(5, SAMPLE // len(FILES))


@pytest.mark.soak
@pytest.mark.parametrize("file", FILES)
def test_damage_is_reported_in_one_line(
    file: str, tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    count = variants(file, request.config.getoption("soak"))
    said = (SAMPLES / file).read_bytes()
    top = file.partition("/")[0]
    if (SAMPLES / top).is_dir():
        shutil.copytree(SAMPLES / top, tmp_path / top)

    @settings(max_examples=count)
    @given(damages(len(said)))
    @example([lambda said: b""])
    @example([lambda said: b"[" * NESTED])
    @example([lambda said: b'{"a":' * NESTED])
    def try_them(done: list[Damage]) -> None:
        damaged = said
        for damage in done:
            damaged = damage(damaged)
        (tmp_path / file).write_bytes(damaged)
        _require_told(tmp_path / top, format_of(file))
        _require_told(tmp_path / top, "auto")

    try_them()
    record_property("count", count)


def _require_told(path: Path, format: str) -> None:
    said = []
    try:
        for record in choose(path, format).read(path):
            assert isinstance(record, (Event, Rejected))
            if isinstance(record, Rejected):
                said.append(record.reason)
    except ZettelError as error:
        said.append(str(error))
        assert path.name in str(error), "it says which file"  # noqa: PT017 - or none was raised
    assert all(one.strip() and "\n" not in one for one in said)
