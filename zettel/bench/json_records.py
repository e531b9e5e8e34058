"""Reads records from JSON lines, with errors that name the file, the line and the field."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from zettel.errors import BadRecord, InvalidInput

M = TypeVar("M", bound=BaseModel)


def lines_of(path: Path) -> list[str]:
    """Return the lines of a text file. Raises ``InvalidInput`` for a missing file, ``BadRecord`` for no text."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise InvalidInput(f"the file {path} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadRecord(f"{path} cannot be read: {error}") from None


def record(kind: type[M], where: str, text: str) -> M:
    """Return the record in a line at ``where``. Raises ``BadRecord``."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the line"
        raise BadRecord(f"{where}: {field}: {first['msg']}") from None
