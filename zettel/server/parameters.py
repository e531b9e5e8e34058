"""The parameters of requests: those of the ``AsyncMemory`` methods, with types for JSON bodies and for queries."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Annotated, Any

from fastapi import Query
from pydantic import AfterValidator, Field, JsonValue

from zettel.async_memory import AsyncMemory
from zettel.model import EntityKind, Event, OnConflict, Outcome, Queried, Role, Scope, Then
from zettel.remote.routes import MOST_EVENTS, MOST_QUESTIONS
from zettel.transcripts.scopes import ScopeBy

MAX_QUESTION = 20_000
"""Characters of a question: a page of text takes a few, and longer ones would delay other requests."""

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""ISO 8601; without a zone it is UTC."""


def _json_object(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise ValueError('expected a JSON object, as {"project": "zettel"}')
    return parsed


def _json_texts(text: str) -> dict[str, str]:
    parsed = _json_object(text)
    wrong = next((key for key, value in parsed.items() if not isinstance(value, str)), None)
    if wrong is not None:
        raise ValueError(f"the value of {wrong!r} must be a string")
    return parsed


_AS_JSON = Field(description="As a JSON object.")
_TYPES: Mapping[str, Any] = {
    "bool": bool,
    "float": float,
    "int": int,
    "str": str,
    "LinkType | str": str,
    "Time": Time,
    "EntityKind": EntityKind,
    "Duration": Annotated[float, Field(description="In seconds.")],
    "Then": Then,
    "OnConflict": OnConflict,
    "Outcome": Outcome,
    "Queried": Queried,
    "Role": Role,
    "ScopeBy": ScopeBy,
    "Iterable[Mapping[str, Any]]": Annotated[list[dict[str, Any]], Field(max_length=MOST_EVENTS)],
    "Iterable[Event | Mapping[str, Any]]": Annotated[list[Event], Field(max_length=MOST_EVENTS)],
    "Iterable[Kind | str]": list[str],
    "Iterable[Scope]": list[Scope],
    "Iterable[str]": list[str],
}
"""Types by annotation, as async_memory.py writes it. An annotation without ``| None`` covers the one with it."""
NULLABLE = " | None"
RESOLVED: Mapping[str, Any] = {"str | Path": str, "ScorerSpec": str}
"""Types of arguments that could name any file or model of the server. A handler resolves them."""
IN_BODY: Mapping[str, Any] = {
    **_TYPES,
    **RESOLVED,
    "Iterable[Kind | str] | None": list[str] | str,
    "Iterable[str] | None": list[str] | str,
    "Mapping[str, Any]": dict[str, JsonValue],
    "Mapping[str, str]": dict[str, str],
}
IN_QUERY: Mapping[str, Any] = {
    **_TYPES,
    "Mapping[str, Any]": Annotated[str, AfterValidator(_json_object), _AS_JSON],
    "Mapping[str, str]": Annotated[str, AfterValidator(_json_texts), _AS_JSON],
}
NOT_SENT = frozenset({
    "Scope | None", "Progress | None", "OnRejected | None",
    "Callable[[int, int], None] | None", "Callable[[str, int, int], None] | None",
})  # fmt: skip
"""Annotations of arguments that no request contains: the scope, which ``access`` reads, and callbacks."""
_Question = Annotated[str, Field(max_length=MAX_QUESTION)]
RESTRICTED: Mapping[str, Any] = {
    "question": _Question,
    "questions": Annotated[list[_Question], Field(max_length=MOST_QUESTIONS)],
}
"""Types of parameters that a server limits further."""


def parameters_of(method: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of a method that a request may contain.

    ``**search`` means the parameters of the method ``search``, with defaults that the calling method may set.
    """
    _, *declared = inspect.signature(method).parameters.values()
    parameters: dict[str, Parameter] = {}
    for parameter in declared:
        if parameter.kind is Parameter.VAR_KEYWORD:
            for other in parameters_of(getattr(AsyncMemory, parameter.name)):
                parameters.setdefault(other.name, other.replace(default=None))
        elif parameter.annotation not in NOT_SENT:
            parameters[parameter.name] = parameter
    return [*parameters.values()]


def type_in(types: Mapping[str, Any], parameter: Parameter) -> Any:
    """Return the type of a parameter without None, in ``IN_BODY`` or ``IN_QUERY``. Raises ``TypeError``."""
    annotation = parameter.annotation
    for known in (annotation, annotation.removesuffix(NULLABLE)):
        if known in types:
            return types[known]
    raise TypeError(f"{parameter.name}: {annotation} has no type in requests: add it to zettel/server/parameters.py")


def in_query(parameter: Parameter) -> Parameter:
    """Return the parameter of an endpoint that reads this parameter from the query."""
    kind = type_in(IN_QUERY, parameter)
    kind = kind | None if parameter.annotation.endswith(NULLABLE) else kind
    return parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=Annotated[kind, Query()])
