"""Diagnosis of files that no format recognises, with advice."""

from __future__ import annotations

import json
from codecs import getincrementaldecoder
from pathlib import Path
from typing import Any

SHOWN_KEYS = 6
"""Keys of an object that an error lists."""

_TAIL_BYTES = 64
_GZIP = b"\x1f\x8b"
_BLANK = b"\xef\xbb\xbf \t\r\n"
_ADVICE = (
    "zettel reads events as JSON lines, an object with content, speaker, occurred_at and session on each line "
    "(of an array, jq -c '.[]' makes lines)"
)
_TABLE_ADVICE = "if it is a table, name its columns with columns= (--column content=NAME)"


def looks_like(path: Path, head: bytes) -> str:
    """Describe a file that begins with ``head``, as the rest of a sentence about it."""
    text = head.lstrip(_BLANK)
    if not text:
        return "is empty"
    if head.startswith(_GZIP):
        return "is compressed with gzip: decompress it (gunzip), or pipe it (gunzip -c FILE | zettel import -)"
    if path.suffix.lower() == ".zip":  # one that can be opened is read as a folder
        return "is a truncated or damaged zip: copy or download it again"
    if b"\0" in head:
        return "is not a text file"
    if not _is_utf8(head):
        return f"is not in UTF-8: convert it (iconv -f windows-1252 -t utf-8 {path.name} > new-{path.name})"
    if text.startswith(b"[") and not _ends_with(path, b"]"):
        return "is a truncated JSON array: copy or export the file again"
    if text.startswith(b"["):
        return f"is a JSON array of {_objects(_first(text[1:]))}, which no transcript format matches: {_ADVICE}"
    if text.startswith(b"{") and not _ends_with(path, b"}"):
        return "is truncated JSON: copy or export the file again"
    if text.startswith(b"{"):
        return f"begins with {_objects(_first(text), single=True)}, which no transcript format matches: {_ADVICE}"
    return f"matches no transcript format: {_TABLE_ADVICE}"


def _is_utf8(head: bytes) -> bool:
    """Return whether the beginning of a file is UTF-8; a head may end within a character."""
    try:
        getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def is_cut(error: json.JSONDecodeError) -> bool:
    """Return whether a JSON error is at the end of the text, so that the file was truncated."""
    return error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string")


def _ends_with(path: Path, mark: bytes) -> bool:
    with path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - _TAIL_BYTES))
        return file.read().rstrip().endswith(mark)


def _first(text: bytes) -> Any:
    """Return the first value of some JSON, or None if it is longer than the head."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text.decode("utf-8", errors="replace").lstrip())
    except (ValueError, RecursionError):
        return None
    return value


def _objects(value: Any, single: bool = False) -> str:
    if isinstance(value, dict) and value:
        keys = ", ".join(list(value)[:SHOWN_KEYS])
        return f"{'an object' if single else 'objects'} with {keys}"
    if single:
        return "an object"
    if isinstance(value, list):
        return "arrays"
    return "texts" if isinstance(value, str) else "values"
