"""The names of arguments and fields that callers mean by a misspelt name, or by the name of another library."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar

API = TypeVar("API")

_TIMES = ("date", "datetime", "time", "timestamp", "created_at", "when")
_FIELDS = {"text": "content", "message": "content"} | dict.fromkeys(_TIMES, "occurred_at")
"""Other names of the fields of events and messages."""
_SCOPE_PARTS = {f"{part}{ending}": part for part in ("tenant", "user", "agent") for ending in ("", "_id")}
_ARGUMENTS = (
    {name: (field,) for name, field in _FIELDS.items()}
    | dict.fromkeys(("top_k", "n_results", "limit", "k"), ("k", "limit"))
    | dict.fromkeys(("session_id", "run_id", "thread_id", "conversation_id"), ("session",))
    | dict.fromkeys(("note_id", "memory_id"), ("id",))
    | dict.fromkeys(("filters", "where"), ("filter",))
    | {"query": ("question",), "threshold": ("min_score",)}
)
"""Other names of arguments, and their names in zettel: the first that the method has is meant."""
_NOT_NEEDED = {
    "infer": "leave it out, because zettel stores every event verbatim",
    "messages": "call add_messages",
}
_LIKE = 0.8
"""How similar a misspelt field is to the right one, from 0 to 1."""


def field_meant(field: object, fields: Collection[str]) -> str | None:
    """Return the one of the ``fields`` of an event or a message that a caller means; None if it is unclear.

    Example: ``field_meant("ocurred_at", ["content", "occurred_at"])`` is ``"occurred_at"``.
    """
    like = get_close_matches(str(field), fields, 1, _LIKE)
    return _FIELDS.get(str(field)) or (like[0] if like else None)


def scope_meant(name: object) -> str | None:
    """Return the scope that a caller means by a part of it, as an argument; None for another name.

    Example: ``scope_meant("user_id")`` is ``"scope=Scope(user=...)"``.
    """
    return f"scope=Scope({part}=...)" if (part := _SCOPE_PARTS.get(str(name))) else None


def unexpected(name: str, arguments: Collection[str], caller: str = "") -> TypeError:
    """Return the error for an argument that a ``caller`` with these ``arguments`` does not have.

    Example: ``unexpected("top_k", ["question", "k"], "search() got an ")`` ends in ``'top_k': did you mean k?``
    """
    return TypeError(f"{caller}unexpected keyword argument {name!r}: {_way_out(name, arguments)}")


def _way_out(name: str, arguments: Collection[str]) -> str:
    scope = scope_meant(name)
    if scope and "scope" in arguments:
        return f"pass {scope}"
    if name in _NOT_NEEDED:
        return _NOT_NEEDED[name]
    for own in (*_ARGUMENTS.get(name, ()), *get_close_matches(name, arguments, 1)):
        if own in arguments:
            return f"did you mean {own}?"
    return f"use one of {', '.join(arguments)}" if arguments else "it takes no arguments"


def explains_arguments(api: type[API]) -> type[API]:
    """Make the public methods of a class suggest the right argument in their ``TypeError`` for an unknown one."""
    for name, method in [*vars(api).items()]:
        if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(api, name, _explaining(method))
    return api


def _explaining(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of the same signature, whose arguments are compared with it only after a ``TypeError``."""

    def call(*args: Any, **named: Any) -> Any:
        try:
            return method(*args, **named)
        except TypeError:
            _require_known(method, named)
            raise

    async def call_async(*args: Any, **named: Any) -> Any:
        return await call(*args, **named)

    return wraps(method)(call_async if inspect.iscoroutinefunction(method) else call)


def _require_known(method: Callable[..., Any], named: Mapping[str, Any]) -> None:
    _, *parameters = inspect.signature(method).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    own = [parameter.name for parameter in parameters]
    for name in named:
        if name not in own:
            raise unexpected(name, own, f"{method.__qualname__}() got an ") from None
