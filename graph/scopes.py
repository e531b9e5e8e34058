"""The keyed hashes of scopes in use, for stores of every kind."""

from __future__ import annotations

import secrets
import threading
from typing import NamedTuple

from zettel.graph.keys import Keys
from zettel.model import Scope

SECRET_BYTES = 16
KNOWN_SCOPES = 256
"""Scopes whose hashes are remembered; any other one is read again."""


class ScopeRow(NamedTuple):
    """A scope as the store has it."""

    number: int
    secret: bytes
    seq: int
    recorded_at: int
    changed: int
    floor: int


class Secrets:
    """The keyed hashes of the scopes in use.

    A scope gets its secret when it is first looked at; until its first batch makes it durable, it is kept here.
    """

    def __init__(self) -> None:
        self._durable: dict[str, Keys] = {}
        self._pending: dict[str, Keys] = {}
        self._guard = threading.Lock()

    def of(self, scope: Scope, row: ScopeRow | None) -> Keys:
        """The hashes of a scope that stands in the store like this; None: it does not stand there."""
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
        """The hashes that whoever plans a batch was given."""
        return self._pending.get(scope.key) or self._durable.get(scope.key)

    def made_durable(self, scope: Scope) -> None:
        """The scope's first batch is committed."""
        with self._guard:
            keys = self._pending.pop(scope.key, None)
            if keys is not None:
                self._durable[scope.key] = keys

    def forget(self, scope: Scope) -> None:
        """The scope is destroyed."""
        with self._guard:
            self._pending.pop(scope.key, None)
            self._durable.pop(scope.key, None)
