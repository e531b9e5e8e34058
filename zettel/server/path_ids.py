"""Ids in paths: a caller's own id may contain any character, percent-encoded, also ``/``."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Annotated, Any
from urllib.parse import quote, unquote

from pydantic import BeforeValidator


def keep_encoded(scope: MutableMapping[str, Any]) -> None:
    """Set the path of an ASGI scope to the encoded one, so that routes see ``a%2Fb`` as one segment.

    Every route, key check and limit then reads the same path. Only ``PathId`` decodes.
    """
    raw = scope.get("raw_path")  # optional in ASGI
    scope["path"] = quote(scope["path"]) if raw is None else raw.decode("latin-1")


def _decoded(segment: str) -> str:
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise ValueError("is not percent-encoded UTF-8") from None


PathId = Annotated[str, BeforeValidator(_decoded)]
"""The id of a note or an event, or a caller's own id, as one percent-encoded segment of the path."""
