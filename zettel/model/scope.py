"""Scopes: separate memories in one store."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property

from zettel.model.base import Frozen, Text


class Scope(Frozen):
    """The owner of a memory. Every scope is separate: notes, links, statistics and jobs never cross scopes.

    Example: ``Scope(tenant="acme", user="ann")``. The match is exact: an omitted part means None, not a wildcard.
    """

    tenant: Text | None = None
    user: Text | None = None
    agent: Text | None = None

    @cached_property
    def key(self) -> str:
        """The key of the scope in stores: 32 hexadecimal digits, equal only for equal scopes."""
        parts = json.dumps([self.tenant, self.user, self.agent])
        return hashlib.blake2b(parts.encode(), digest_size=16, person=b"zettel.scope").hexdigest()

    def __str__(self) -> str:
        named = [f"{name}={part!r}" for name, part in self.model_dump().items() if part is not None]
        return ", ".join(named) or "the default scope"
