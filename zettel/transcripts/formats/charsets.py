"""Tolerant decoding of mail text, as in browsers and mail programs."""

from __future__ import annotations

import codecs
import re

_SUPERSETS = {
    "ascii": "utf-8",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
}
"""Charsets that browsers use in place of smaller ones (https://encoding.spec.whatwg.org), by Python's names. ASCII
stands for UTF-8, and in case of invalid bytes for the Windows charset below."""

_WINDOWS = {byte: char for byte in range(0x80, 0xA0) if (char := bytes([byte]).decode("cp1252", "ignore"))}
"""Characters of Windows-1252 in place of Latin-1's control characters."""

_RUN = re.compile(rb"\x1b(\$[@B]|\([BIJ])([^\x1b\n]*)")
_PAIR = re.compile(rb"[!-~]{2}")


def text_of(data: bytes, charset: str | None) -> str:
    """Decode bytes with the declared charset, else with UTF-8, else with Windows-1252."""
    try:
        codec_name = codecs.lookup(charset or "utf-8").name
    except (LookupError, ValueError):
        codec_name = "utf-8"
    if codec_name == "iso2022_jp" and b"\x1b" in data:
        data, codec_name = _RUN.sub(_shifted, data), "cp932"
    for errors in ("strict", "replace"):
        for codec in (_SUPERSETS.get(codec_name, codec_name), "utf-8"):
            try:
                text = data.decode(codec, errors)
            except (LookupError, ValueError):
                continue
            if errors == "strict" or _is_mostly_valid(text):
                return text
    return data.decode("latin-1").translate(_WINDOWS)


def _is_mostly_valid(text: str) -> bool:
    """Return whether at least half of the characters beyond ASCII are valid."""
    non_ascii = len(text) - len(text.encode("ascii", "ignore"))
    return 2 * text.count("\N{REPLACEMENT CHARACTER}") <= non_ascii


def _shifted(run: re.Match[bytes]) -> bytes:
    """Convert a run of ISO-2022-JP to Shift_JIS: Python's codecs do not decode Windows characters such as ①."""
    mode, data = run.groups()
    if mode == b"(I":
        return bytes(byte | 0x80 for byte in data)
    return _PAIR.sub(_shifted_pair, data) if mode.startswith(b"$") else data


def _shifted_pair(pair: re.Match[bytes]) -> bytes:
    """Convert row and cell of a character to Shift_JIS: two rows share a first byte, and 0x7F is unused."""
    row, cell = pair[0]
    first = (row + 1) // 2 + (0x70 if row < 0x5F else 0xB0)
    if row % 2 == 0:
        return bytes((first, cell + 0x7E))
    return bytes((first, cell + (0x1F if cell < 0x60 else 0x20)))
