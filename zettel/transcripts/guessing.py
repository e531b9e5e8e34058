"""What a file seems to be that no format recognises, told so that its owner knows what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SHOWN_KEYS = 6
"""Keys of an object that are told: enough to know it again."""

_TAIL_BYTES = 64
_GZIP = b"\x1f\x8b"
_BLANK = b"\xef\xbb\xbf \t\r\n"
_ADVICE = (
    "zettel reads events as JSON lines, an object with content, role, occurred_at and session on each line "
    "(of an array, jq -c '.[]' makes lines)"
)


def looks_like(path: Path, head: bytes) -> str:
    """What a file seems to be, as the rest of a sentence about it; ``head`` is how it begins."""
    said = head.lstrip(_BLANK)
    if not said:
        return "is empty"
    if head.startswith(_GZIP):
        return "is packed by gzip: unpack it (gunzip), or pipe it in (gunzip -c FILE | zettel import -)"
    if path.suffix.lower() == ".zip":  # one that can be opened is read as a folder
        return "is a zip that is cut or damaged: copy or download it again"
    if b"\0" in head:
        return "is no text"
    if said.startswith(b"[") and not _ends_with(path, b"]"):
        return "is a JSON array that breaks off: the file is cut; copy or export it again"
    if said.startswith(b"["):
        return f"is a JSON array of {_objects(_first(said[1:]))}, and no transcript that zettel knows: {_ADVICE}"
    if said.startswith(b"{") and not _ends_with(path, b"}"):
        return "begins as JSON and breaks off: the file is cut; copy or export it again"
    if said.startswith(b"{"):
        return f"begins with {_objects(_first(said), one=True)}, and is no transcript that zettel knows: {_ADVICE}"
    return "looks like no transcript that zettel knows"


def is_cut(error: json.JSONDecodeError) -> bool:
    """Whether JSON that cannot be read ends where it goes wrong, and so was cut off."""
    return error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string")


def _ends_with(path: Path, mark: bytes) -> bool:
    with path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - _TAIL_BYTES))
        return file.read().rstrip().endswith(mark)


def _first(said: bytes) -> Any:
    """The first value of some JSON; None if it is longer than what was read."""
    try:
        value, _ = json.JSONDecoder().raw_decode(said.decode("utf-8", errors="replace").lstrip())
    except (ValueError, RecursionError):
        return None
    return value


def _objects(value: Any, one: bool = False) -> str:
    if isinstance(value, dict) and value:
        keys = ", ".join(list(value)[:SHOWN_KEYS])
        return f"{'an object' if one else 'objects'} with {keys}"
    if one:
        return "an object"
    if isinstance(value, list):
        return "arrays"
    return "texts" if isinstance(value, str) else "values"
