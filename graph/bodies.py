"""JSON encoding of stored events, notes and revisions."""

from __future__ import annotations

import json
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from zettel.errors import StoreError
from zettel.model import TIME_MAX, TIME_MIN, Note, TermUse, from_micros, to_micros, with_speaker

Model = TypeVar("Model", bound=BaseModel)

_term_use: partial[TermUse] = partial(tuple.__new__, TermUse)  # TermUse(*use) at a third of its cost


def body_of(value: BaseModel) -> str:
    """A value as JSON."""
    try:
        return value.model_dump_json()
    except PydanticSerializationError:  # a payload's lone surrogates: JSON can escape them, UTF-8 cannot encode them
        return json.dumps(value.model_dump(), default=_plain)


def read_body(model: type[Model], body: str) -> Model:
    """The inverse of :func:`body_of`. Raises ``StoreError`` for damaged JSON."""
    try:
        if "\\ud" in body:
            return model.model_validate(with_speaker(json.loads(body)))
        try:
            return model.model_validate_json(body)
        except ValidationError:
            if '"role":' not in body:
                raise
            return model.model_validate(with_speaker(json.loads(body)))
    except ValueError as error:
        damage = f"a stored {model.__name__} is damaged and cannot be read"
        raise StoreError(f"{damage}: run `zettel doctor --repair`, or restore a copy of the store") from error


def read_note(body: str, valid_to: int = TIME_MAX) -> Note:
    """Decode a note from its JSON; ``valid_to`` in microseconds is the end by links, unless a person set another."""
    note = read_body(Note, body)
    if note.valid_to is not None or valid_to >= TIME_MAX:
        return note
    return note.model_copy(update={"valid_to": from_micros(valid_to)})


def uses_body(uses: tuple[TermUse, ...]) -> str:
    """Encode a note's term uses as JSON."""
    return json.dumps(uses)


def read_uses(body: str) -> tuple[TermUse, ...]:
    """The inverse of :func:`uses_body`."""
    return tuple(map(_term_use, json.loads(body)))


def micros_or_min(moment: datetime | None) -> int:
    """Convert to microseconds, TIME_MIN for None."""
    return TIME_MIN if moment is None else to_micros(moment)


def micros_or_max(moment: datetime | None) -> int:
    """Convert to microseconds, TIME_MAX for None."""
    return TIME_MAX if moment is None else to_micros(moment)


def micros_or_none(moment: datetime | None) -> int | None:
    """Convert to microseconds, None for None."""
    return None if moment is None else to_micros(moment)


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no JSON form")
