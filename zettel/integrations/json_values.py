"""Converts values and texts from frameworks to JSON values and texts that a store accepts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from zettel.errors import InvalidInput
from zettel.model import MAX_CONTENT_BYTES, MAX_NESTING


def json_value(name: str, value: Any) -> Any:
    """Return ``value`` as plain JSON types; mappings, sequences and numpy values are converted.

    Raises ``InvalidInput``, with the path of the offending part, for other types and for too deep nesting.
    """
    return _json_value(name, name, value, 0)


def _json_value(name: str, path: str, value: Any, depth: int) -> Any:
    if depth > MAX_NESTING:
        raise InvalidInput(f"{name} is nested more than {MAX_NESTING} levels deep: flatten it")
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        if invalid := [key for key in value if not isinstance(key, str)]:
            raise InvalidInput(f"{path} has the key {invalid[0]!r}: JSON keys must be strings")
        return {key: _json_value(name, f"{path}.{key}", inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(name, f"{path}[{n}]", inner, depth + 1) for n, inner in enumerate(value)]
    if type(value).__module__ == "numpy":
        return _json_value(name, path, value.tolist(), depth + 1)
    hint = "convert it with isoformat()" if isinstance(value, datetime) else "convert it to a JSON type"
    raise InvalidInput(f"{path} is a {type(value).__name__}, which is not a JSON value: {hint}")


def storable_text(text: str) -> str:
    """Return the text without characters that no store accepts, cut to the size limit of an event.

    Surrogate pairs that arrived in two chunks are joined.
    """
    valid = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "")
    return valid.encode()[:MAX_CONTENT_BYTES].decode("utf-8", "ignore")
