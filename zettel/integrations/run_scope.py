"""The scope of each run of an agent: one agent serves many users, so the user comes from the run, not from the agent.

Each adapter reads the user from the place that its framework has for it. Two users at once get two scopes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeAlias
from uuid import UUID

from cachetools import LRUCache

from zettel.core.arguments import require_scope, require_storable
from zettel.errors import InvalidInput
from zettel.integrations.sync_or_async import AnyMemory, require_memory
from zettel.integrations.tools import MemoryTools
from zettel.model import Scope

ScopeOfRun: TypeAlias = Scope | Callable[[Any], Scope]
"""A scope, or a function that returns the scope of a run; the adapter documents its argument."""
SCOPES = 1000
"""Scopes whose tools are cached, the most recent ones."""


@dataclass(frozen=True)
class RunScope:
    """Returns the scope of each run. ``base`` is a scope, or a function that returns the scope of a run.

    Example: ``RunScope(Scope(tenant="acme")).of(run, {"deps.user_id": "ann"})`` returns
    ``Scope(tenant="acme", user="ann")``.
    """

    base: ScopeOfRun

    @classmethod
    def for_memory(cls, memory: AnyMemory, scope: ScopeOfRun | None) -> RunScope:
        """Return the rule for the ``scope`` argument of an adapter; None is the memory's own scope.

        Raises ``InvalidInput``.
        """
        require_memory(memory)
        if not callable(scope):
            require_scope(scope)
        return cls(memory.scope if scope is None else scope)

    def of(self, run: Any, users: Mapping[str, object]) -> Scope:
        """Return the scope of a run. ``users`` maps each place of the run that can name a user to its value.

        A run without such a place has the scope ``base``. Raises ``InvalidInput`` if no place names a user and ``base``
        does not either, and if two of them name different users.
        """
        if not isinstance(self.base, Scope):
            scope = self.base(run)
            if not isinstance(scope, Scope):
                raise InvalidInput(f"the function scope= returned {scope!r}: it must return a Scope")
            return scope
        base = self.base
        named = {place: user_name(place, user) for place, user in users.items() if user is not None}
        if base.user is not None:
            named["the scope of the memory"] = base.user
        elif not users:
            return base
        if not named:
            raise InvalidInput(
                f"no user: set {' or '.join(users)}, or give the memory to one user with scope=Scope(user=...)"
            )
        if len(set(named.values())) > 1:
            found = ", ".join(f"{place} is {user!r}" for place, user in named.items())
            raise InvalidInput(f"two users in one run: {found}. Choose one with scope=, a function of the run")
        return Scope(tenant=base.tenant, user=next(iter(named.values())), agent=base.agent)


def user_name(place: str, user: object) -> str:
    """Return the id of a user as text: a non-empty string, an integer or a UUID. Raises ``InvalidInput``."""
    name = str(user) if isinstance(user, (int, UUID)) and not isinstance(user, bool) else user
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"{place} must be the id of a user, a non-empty string, got {user!r}")
    require_storable(place, name)
    return name


def user_field(of: object, place: str) -> dict[str, object]:
    """Return ``{place.user_id: value}`` for an object or a mapping with a field ``user_id``; {} without this field."""
    if isinstance(of, Mapping):
        return {f"{place}['user_id']": of["user_id"]} if "user_id" in of else {}
    return {f"{place}.user_id": of.user_id} if hasattr(of, "user_id") else {}


class ScopedTools:
    """The tools of the scopes and sessions of a memory; those of recent runs are cached."""

    def __init__(self, memory: AnyMemory, *, read_only: bool = False, allow_delete: bool = False) -> None:
        self.tools = MemoryTools(memory, read_only=read_only, allow_delete=allow_delete)
        """The tools of the memory's own scope, for their names and descriptions."""
        self._memory, self._read_only, self._allow_delete = memory, read_only, allow_delete
        self._cache: LRUCache[tuple[Scope, str | None], MemoryTools] = LRUCache(SCOPES)
        self._lock = Lock()  # frameworks call the tools of a run in several threads

    def of(self, scope: Scope, session: str | None = None) -> MemoryTools:
        """Return the tools of a scope; ``session`` is the session of added events."""
        with self._lock:
            tools = self._cache.get((scope, session))
            if tools is None:
                tools = MemoryTools(
                    self._memory, scope=scope, session=session, read_only=self._read_only,
                    allow_delete=self._allow_delete,
                )  # fmt: skip
                self._cache[scope, session] = tools
            return tools
