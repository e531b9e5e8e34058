"""Events, notes and revisions as the JSON that is stored, and back."""

from __future__ import annotations

import json
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from zettel.errors import StoreError
from zettel.model import TIME_MAX, TIME_MIN, Note, from_micros, to_micros
from zettel.ports import TermUse

Model = TypeVar("Model", bound=BaseModel)

_term_use: partial[TermUse] = partial(tuple.__new__, TermUse)  # what TermUse(*use) does, at a third of its cost


def body_of(value: BaseModel) -> str:
    """A value as JSON."""
    try:
        return value.model_dump_json()
    except PydanticSerializationError:  # a payload's lone surrogates: JSON can escape them, UTF-8 cannot hold them
        return json.dumps(value.model_dump(), default=_plain)


def read_body(model: type[Model], body: str) -> Model:
    """The inverse of :func:`body_of`. Raises ``StoreError`` for what it never wrote."""
    try:
        if "\\ud" in body:
            return model.model_validate(json.loads(body))
        return model.model_validate_json(body)
    except ValueError as error:
        told = f"a stored {model.__name__} is damaged and cannot be read"
        raise StoreError(f"{told}: `zettel doctor --repair` mends what can be; else go back to a copy") from error


def note_body(note: Note) -> str:
    """A note as JSON, without the end of its validity, which is derived whenever it is read."""
    return body_of(note if note.valid_to is None else note.model_copy(update={"valid_to": None}))


def read_note(body: str, valid_to: int = TIME_MAX) -> Note:
    """A note from its JSON and the end of its validity, in microseconds."""
    note = read_body(Note, body)
    return note if valid_to >= TIME_MAX else note.model_copy(update={"valid_to": from_micros(valid_to)})


def uses_body(uses: tuple[TermUse, ...]) -> str:
    """A note's Terms as JSON."""
    return json.dumps(uses)


def read_uses(body: str) -> tuple[TermUse, ...]:
    """The inverse of :func:`uses_body`."""
    return tuple(map(_term_use, json.loads(body)))


def micros_or_min(moment: datetime | None) -> int:
    """Microseconds, TIME_MIN for None."""
    return TIME_MIN if moment is None else to_micros(moment)


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no JSON form")
