"""The text of bytes whose charset a mail tells, often not quite rightly: read as browsers and mail programs read it."""

from __future__ import annotations

import codecs
import re

_READ_AS = {
    "ascii": "utf-8",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
}
"""The larger charset that is meant by a smaller one, as browsers have it (https://encoding.spec.whatwg.org), by
Python's names. What is said to be ASCII, and is not, is tried as UTF-8 and else falls to Windows's charset below."""

_WINDOWS = {byte: char for byte in range(0x80, 0xA0) if (char := bytes([byte]).decode("cp1252", "ignore"))}
"""What Windows has where Latin-1 has controls."""

_RUN = re.compile(rb"\x1b(\$[@B]|\([BIJ])([^\x1b\n]*)")
_PAIR = re.compile(rb"[!-~]{2}")


def text_of(said: bytes, charset: str | None) -> str:
    """The bytes as text: a charset that fits, or that spoils little; what fits none is read as Windows's Latin-1."""
    try:
        told = codecs.lookup(charset or "utf-8").name
    except (LookupError, ValueError):
        told = "utf-8"
    if told == "iso2022_jp" and b"\x1b" in said:
        said, told = _RUN.sub(_shifted, said), "cp932"
    for errors in ("strict", "replace"):
        for codec in (_READ_AS.get(told, told), "utf-8"):
            try:
                text = said.decode(codec, errors)
            except (LookupError, ValueError):
                continue
            if errors == "strict" or _is_little_spoiled(text):
                return text
    return said.decode("latin-1").translate(_WINDOWS)


def _is_little_spoiled(text: str) -> bool:
    """Whether at least half of what is not ASCII could be read: in a wrong charset hardly any of it can."""
    foreign = len(text) - len(text.encode("ascii", "ignore"))
    return 2 * text.count("\N{REPLACEMENT CHARACTER}") <= foreign


def _shifted(run: re.Match[bytes]) -> bytes:
    """A run of ISO-2022-JP as Shift_JIS: none of Python's codecs for the first knows what Windows adds, such as ①."""
    mode, said = run.groups()
    if mode == b"(I":
        return bytes(byte | 0x80 for byte in said)
    return _PAIR.sub(_shifted_pair, said) if mode.startswith(b"$") else said


def _shifted_pair(pair: re.Match[bytes]) -> bytes:
    """A character's row and cell as Shift_JIS packs them: two rows to a first byte, without 0x7F."""
    row, cell = pair[0]
    first = (row + 1) // 2 + (0x70 if row < 0x5F else 0xB0)
    if row % 2 == 0:
        return bytes((first, cell + 0x7E))
    return bytes((first, cell + (0x1F if cell < 0x60 else 0x20)))
