"""Typed access to parsed JSON, in which any value may be missing or have another type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def dicts_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list, without its other items."""
    return [item for item in as_list(value) if isinstance(item, dict)]


def first_text(*values: Any, blank: bool = False) -> str | None:
    """Return the first value that is a text; only with ``blank`` it may be empty or white space."""
    return next((value for value in values if isinstance(value, str) and (blank or value.strip())), None)


def text_at(fields: Mapping[str, Any], *keys: str, blank: bool = False) -> str | None:
    """Return the first text under the keys, as ``first_text``."""
    return first_text(*map(fields.get, keys), blank=blank)


def value_at(fields: Mapping[str, Any], *keys: str, default: Any = None) -> Any:
    """Return the value of the first key that exists."""
    return next((fields[key] for key in keys if key in fields), default)


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields whose values are not empty."""
    return {key: value for key, value in fields.items() if value}
