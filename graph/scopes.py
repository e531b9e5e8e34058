"""Cached secrets and keyed hashes of scopes in use."""

from __future__ import annotations

import secrets
import threading
from typing import NamedTuple

from zettel.graph.keys import Keys
from zettel.model import Scope

SECRET_BYTES = 16
KNOWN_SCOPES = 256
"""Maximum number of scopes with cached hashes."""


class ScopeRow(NamedTuple):
    """A stored scope."""

    number: int
    secret: bytes
    seq: int
    recorded_at: int
    changed: int
    floor: int


class Secrets:
    """The keyed hashes of the scopes in use.

    The first read of a new scope creates its secret, which is pending until the scope's first batch stores it.
    """

    def __init__(self) -> None:
        self._durable: dict[str, Keys] = {}
        self._pending: dict[str, Keys] = {}
        self._guard = threading.Lock()

    def of(self, scope: Scope, row: ScopeRow | None) -> Keys:
        """Return the hashes of a scope with this stored row; None if it is not stored."""
        with self._guard:
            if row is None:
                self._durable.pop(scope.key, None)
                return self._pending.setdefault(scope.key, Keys(secrets.token_bytes(SECRET_BYTES)))
            self._pending.pop(scope.key, None)
            keys = self._durable.pop(scope.key, None)
            if keys is None or keys.secret != row.secret:
                keys = Keys(row.secret)
            self._durable[scope.key] = keys  # last: most recently used
            if len(self._durable) > KNOWN_SCOPES:
                del self._durable[next(iter(self._durable))]
            return keys

    def planned(self, scope: Scope) -> Keys | None:
        """Return the hashes that a batch of this scope was planned with."""
        return self._pending.get(scope.key) or self._durable.get(scope.key)

    def made_durable(self, scope: Scope) -> None:
        """Record that the scope's first batch is committed."""
        with self._guard:
            keys = self._pending.pop(scope.key, None)
            if keys is not None:
                self._durable[scope.key] = keys

    def forget(self, scope: Scope) -> None:
        """Discard the hashes of a destroyed scope."""
        with self._guard:
            self._pending.pop(scope.key, None)
            self._durable.pop(scope.key, None)
