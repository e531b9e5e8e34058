"""Resolves the key and the scope of a request, and checks the key's rights."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

from fastapi import Depends, Request, Response

from zettel.async_memory import AsyncMemory
from zettel.core.arguments import require_name
from zettel.core.scope_patterns import ANY, PARTS, is_in
from zettel.errors import InvalidInput, PermissionDenied
from zettel.model import MAX_NAME, Scope
from zettel.remote.routes import COMPOSED, DELETE_EVENTS, KEY_RIGHT, OF_PRINCIPALS, ROUTES, Right
from zettel.remote.wire import ResponseType
from zettel.server.keys import Key

T = TypeVar("T")
PARAMETERS = [
    {
        "name": part, "in": "query", "required": False, "description": "A part of the scope; empty if left out.",
        "schema": {"type": "string", "maxLength": MAX_NAME},
    }
    for part in PARTS
]  # fmt: skip
"""The parameters that name a scope, in the description of every route. This module reads them, because FastAPI would
spend as long on three parameters as on the rest of a request."""
_ALL = (*ROUTES.values(), *COMPOSED.values(), DELETE_EVENTS, KEY_RIGHT, *OF_PRINCIPALS.values())
_RIGHTS = {(route.verb, route.path): route.right for route in _ALL}


class Access(NamedTuple):
    """The memory, scope and key of a request. ``scope`` is None if none is named and the key opens all scopes."""

    memory: AsyncMemory
    scope: Scope | None
    key: Key | None
    """None if the server uses no keys: then everything is allowed."""
    scorers: Path | None = None
    """The server's folder of tuned scorers."""

    @property
    def opens_all(self) -> bool:
        """True if the request may name any scope."""
        return self.key is None or self.key.scopes is None

    @property
    def right(self) -> Right:
        """The right of the key in the scope of the request, "admin" without keys."""
        if self.key is None:
            return "admin"
        only_reads = self.key.scopes is not None and self.scope is not None and not is_in(self.scope, self.key.scopes)
        return "read" if only_reads else self.key.right

    def require_readable(self, scopes: Iterable[Scope]) -> None:
        """Raise ``PermissionDenied`` unless the key opens all of these scopes for reading."""
        for scope in scopes:
            scope_of(self.key, scope, "read")

    def require_admin(self, action: str) -> None:
        """Raise ``PermissionDenied`` for a key without the right admin."""
        if self.right != "admin":
            raise PermissionDenied(f"{action} needs a key with the right admin: this key has the right {self.right}")

    def require_all(self, action: str) -> None:
        """Raise ``PermissionDenied`` for a key that is bound to scopes."""
        if not self.opens_all:
            raise PermissionDenied(f"{action} needs a key for all scopes: this key is bound to its own scopes")


def scope_of(key: Key | None, named: Scope | None, right: Right = "admin") -> Scope | None:
    """Return the scope of a request that needs ``right``. Raises ``PermissionDenied``, ``InvalidInput``.

    A refusal does not reveal whether the scope exists.
    """
    if key is None or key.scopes is None:
        return named
    if named is not None:
        if is_in(named, key.scopes) or (right == "read" and is_in(named, key.reads)):
            return named
        raise PermissionDenied(f"this key {'only reads' if is_in(named, key.reads) else 'does not open'} {named}")
    if len(key.scopes) > 1 or ANY in key.scopes[0].model_dump().values():
        raise InvalidInput("this key opens several scopes: name one by tenant=, user= and agent=")
    return key.scopes[0]


def _access(*, scoped: bool = True) -> Callable[..., Awaitable[Access]]:
    """Return a dependency that requires the right of the route. ``scoped`` requests concern a single scope."""

    async def access(request: Request) -> Access:
        key: Key | None = request.scope["zettel.key"]
        path: str = request.scope["route"].path
        right = _RIGHTS[request.method, path]
        if key is not None and not key.may(right):
            raise PermissionDenied(f"this needs a key with the right {right}: this key has the right {key.right}")
        query, state = request.query_params, request.app.state
        if not query:
            return Access(state.memory, scope_of(key, None, right) if scoped else None, key, state.scorers)
        known: set[str] = state.parameters[request.method, path]
        for name in query:
            if name not in known:
                raise InvalidInput(f"unknown parameter {name!r}: use {', '.join(sorted(known))}")
        parts = {name: _part(name, query.getlist(name)) for name in PARTS if name in query}
        scope = scope_of(key, Scope(**parts) if parts else None, right) if parts or scoped else None
        return Access(state.memory, scope, key, state.scorers)

    return access


def _part(name: str, values: list[str]) -> str:
    if len(values) > 1:
        raise InvalidInput(f"{name} is given more than once: give it once")
    (part,) = values
    require_name(name, part)
    return part


RequestAccess = Annotated[Access, Depends(_access())]
ListAccess = Annotated[Access, Depends(_access(scoped=False))]
"""For answers about all scopes that the key opens."""


def respond(answer: ResponseType[T], value: T) -> Response:
    """Return the encoded answer."""
    return Response(answer.encode(value), media_type="application/json")
