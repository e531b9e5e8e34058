"""JSON schemas of model answers, in the strict form that providers require."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

TEXT: Mapping[str, Any] = {"type": "string"}
TEXTS: Mapping[str, Any] = {"type": "array", "items": TEXT}
NUMBER: Mapping[str, Any] = {"type": "number"}


def enum_schema(values: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def object_schema(properties: Mapping[str, Any], required: Sequence[str] | None = None) -> dict[str, Any]:
    """An object with these properties and no others; all are required unless ``required`` names some."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def list_schema(
    name: str, properties: Mapping[str, Any], required: Sequence[str] | None = None
) -> dict[str, Any]:
    """An object whose only property ``name`` is a list of objects with these properties."""
    return object_schema({name: {"type": "array", "items": object_schema(properties, required)}})
