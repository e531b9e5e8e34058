"""Scopes: separate memories in one store."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from zettel.model.base import Frozen, Text

_WAY_OUT = 'use tenant, user or agent, such as Scope(user="c-1001")'


class Scope(Frozen):
    """The owner of a memory. Every scope is separate: notes, links, statistics and jobs never cross scopes.

    Example: ``Scope(tenant="acme", user="ann")``. The match is exact: an omitted part means None, not a wildcard.
    """

    tenant: Text | None = None
    user: Text | None = None
    agent: Text | None = None

    if not TYPE_CHECKING:  # type checkers derive the parameters from the fields

        def __new__(cls, *values: Any, **_: Any) -> Scope:
            if values:
                raise TypeError(f"Scope takes its parts by name: {_WAY_OUT}")
            return super().__new__(cls)

        def __init__(self, **parts: Any) -> None:
            try:
                super().__init__(**parts)
            except ValidationError as error:
                raise _explained(error) from None

    @cached_property
    def key(self) -> str:
        """The key of the scope in stores: 32 hexadecimal digits, equal only for equal scopes."""
        parts = json.dumps([self.tenant, self.user, self.agent])
        return hashlib.blake2b(parts.encode(), digest_size=16, person=b"zettel.scope").hexdigest()

    def __str__(self) -> str:
        named = [f"{name}={part!r}" for name, part in self.model_dump().items() if part is not None]
        return ", ".join(named) or "the default scope"


def _explained(error: ValidationError) -> ValidationError:
    """Return an error of the same class that names the parts of a scope if one is unknown or not text."""
    complaint = error.errors()[0]
    part = complaint["loc"][-1]
    if complaint["type"] == "extra_forbidden":
        text = f"Scope has no part {part!r}: {_WAY_OUT}"
    elif complaint["type"] == "string_type":
        text = f"{part} must be a str, not {type(complaint['input']).__name__}: pass Scope({part}=str(...))"
    else:
        return error
    # A template of pydantic: braces would be read as names of values.
    reason = PydanticCustomError("scope_part", "{text}", {"text": text})
    details = InitErrorDetails(type=reason, input=complaint["input"])
    return ValidationError.from_exception_data("Scope", [details], hide_input=True)
