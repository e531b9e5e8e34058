"""Makes text of notes, files and errors safe for a terminal, which would execute its control characters."""

from __future__ import annotations

import json
import re
from typing import Any

_VISIBLE = (
    {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"}
    | {0x7F: 0x2421}
    | dict.fromkeys([*range(0x80, 0xA0), *range(0x202A, 0x202F)], 0xFFFD)
)
"""Visible substitutes for control characters, and for those that show a line in another order than it is stored."""
_CONTROLS = re.compile("[\x7f-\x9f\u202a-\u202e]")


def printable(text: str) -> str:
    """Return a text without control characters but tabs and line feeds, one character for each.

    Example: ``"\\x1b[2J"`` becomes ``"\u241b[2J"``.
    """
    return text if text.isprintable() else text.translate(_VISIBLE)


def printable_json(value: Any, *, ascii_only: bool) -> str:
    """Return a value as JSON text whose control characters are escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=ascii_only)
    return _CONTROLS.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
