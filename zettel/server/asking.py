"""Who asks, whose memory they mean, and whether their key allows it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NamedTuple, TypeVar

from fastapi import Depends, Request, Response

from zettel.arguments import require_name
from zettel.async_memory import AsyncMemory
from zettel.errors import InvalidInput, NotAllowed
from zettel.model import MAX_NAME, Scope
from zettel.server.keys import Key, Right
from zettel.server.wire import Answer

T = TypeVar("T")
PARTS = ("tenant", "user", "agent")
PARAMETERS = [
    {
        "name": part, "in": "query", "required": False, "description": "Whose memory; a part left out is none.",
        "schema": {"type": "string", "maxLength": MAX_NAME},
    }
    for part in PARTS
]  # fmt: skip
"""What names a scope, in the description of every route. They are read here and not by FastAPI, which takes as long for
three parameters as for all else of a request."""


class At(NamedTuple):
    """The memory, and the scope that a request is about: None where none is named and the key opens all."""

    memory: AsyncMemory
    scope: Scope | None
    key: Key | None
    """None where the server asks for no keys: then everything is allowed."""

    @property
    def opens_all(self) -> bool:
        """Whether every scope may be named."""
        return self.key is None or self.key.scopes is None

    def require_all(self, what: str) -> None:
        """Raise ``NotAllowed`` for a key that is bound to scopes."""
        if not self.opens_all:
            raise NotAllowed(f"{what} needs a key for all scopes: this one is bound to its own")


def scope_of(key: Key | None, named: Scope | None) -> Scope | None:
    """The scope that a request with this key is about. Raises ``NotAllowed``, ``InvalidInput``.

    What a key is refused for does not tell whether there is such a scope.
    """
    if key is None or key.scopes is None:
        return named
    if named is not None:
        if named not in key.scopes:
            raise NotAllowed(f"this key does not open {named}")
        return named
    if len(key.scopes) > 1:
        raise InvalidInput("this key opens several scopes: name one by tenant=, user= and agent=")
    return key.scopes[0]


def _at(right: Right, *, scoped: bool = True) -> Callable[..., Awaitable[At]]:
    """Whoever has the right; not ``scoped``: what is asked is about no one scope, and none need be named."""

    async def at(request: Request) -> At:
        key: Key | None = request.scope["zettel.key"]
        if key is not None and not key.may(right):
            raise NotAllowed(f"this needs a key with the right to {right}, and this one may {key.right}")
        asked = request.query_params
        if not asked:
            return At(request.app.state.memory, scope_of(key, None) if scoped else None, key)
        known: set[str] = request.app.state.parameters[request.method, request.scope["route"].path]
        for name in asked:
            if name not in known:
                raise InvalidInput(f"there is no parameter {name!r}: this takes {', '.join(sorted(known))}")
        parts = {name: _part(name, asked.getlist(name)) for name in PARTS if name in asked}
        scope = scope_of(key, Scope(**parts) if parts else None) if parts or scoped else None
        return At(request.app.state.memory, scope, key)

    return at


def _part(name: str, values: list[str]) -> str:
    if len(values) > 1:
        raise InvalidInput(f"{name} is named more than once")
    (part,) = values
    require_name(name, part)
    return part


Reading = Annotated[At, Depends(_at("read"))]
Writing = Annotated[At, Depends(_at("write"))]
Admin = Annotated[At, Depends(_at("admin"))]
Listing = Annotated[At, Depends(_at("read", scoped=False))]
"""For what tells of all scopes that the key opens."""


def told(answer: Answer[T], value: T) -> Response:
    """The answer, encoded."""
    return Response(answer.encode(value), media_type="application/json")


def json_object(name: str, text: str) -> dict[str, Any]:
    """A query parameter that is a JSON object. Raises ``InvalidInput``."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput(f'{name}: expected a JSON object, as {{"project": "zettel"}}')
    return found


def json_texts(name: str, text: str) -> dict[str, str]:
    """The same whose values are texts."""
    found = json_object(name, text)
    wrong = next((key for key, value in found.items() if not isinstance(value, str)), None)
    if wrong is not None:
        raise InvalidInput(f"{name}: {wrong!r} stands for something that is no text")
    return found
