"""What frameworks hand in, as JSON has it: an array or a number of numpy is one of Python's there; texts as a store
keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from zettel.errors import InvalidInput
from zettel.model import MAX_CONTENT_BYTES, MAX_NESTING


def plain(name: str, value: Any) -> Any:
    """A value as JSON has it: mappings, sequences and numpy's numbers as plain ones. Raises ``InvalidInput`` for
    others, with the place where it stands, and for what is nested deeper than a store keeps."""
    return _plain(name, name, value, 0)


def _plain(name: str, place: str, value: Any, depth: int) -> Any:
    if depth > MAX_NESTING:
        raise InvalidInput(f"{name} is nested more than {MAX_NESTING} deep")
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        if odd := [key for key in value if not isinstance(key, str)]:
            raise InvalidInput(f"{place} has the key {odd[0]!r}: JSON has only texts as keys")
        return {key: _plain(name, f"{place}.{key}", inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(name, f"{place}[{n}]", inner, depth + 1) for n, inner in enumerate(value)]
    if type(value).__module__ == "numpy":
        return _plain(name, place, value.tolist(), depth + 1)
    hint = "isoformat() makes a text of it" if isinstance(value, datetime) else "hand in what JSON can say"
    raise InvalidInput(f"{place} is {type(value).__name__}, which no store can keep: {hint}")


def storable_text(text: str) -> str:
    """A text without what no store keeps, cut to what one event may hold; halves of a sign that came in two chunks are
    put together."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "")
    return whole.encode()[:MAX_CONTENT_BYTES].decode("utf-8", "ignore")
