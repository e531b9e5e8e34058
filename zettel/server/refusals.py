"""Records refused requests in the audit log."""

from __future__ import annotations

import time
from typing import Any

from zettel.errors import AuditError
from zettel.local.audit_log import AuditLog
from zettel.server.keys import Key
from zettel.server.logs import LOG, METHODS, OTHER

REFUSALS = frozenset({401, 403, 429})
"""Statuses of requests that a server refuses because of who asks."""
MOST = 10
"""Refused requests in one second that are recorded each. A flood of more is counted: it must not fill the disk."""


class Refusals:
    """Appends refused requests to an audit log. They are refused whether or not they can be recorded."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log
        self._second = 0
        self._recorded = self._omitted = 0

    def record(self, method: str, route: str | None, status: int, key: Key | None) -> None:
        """Record a request that was answered with ``status``; ``omitted`` counts those before that were not."""
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._recorded = second, 0
        if self._recorded >= MOST:
            self._omitted += 1
            return
        fields: dict[str, Any] = {
            "op": "http", **({"who": None} if key is None else {"who": key.principal, "name": key.name}),
            "method": method if method in METHODS else OTHER, "route": route, "status": status, "result": "refused",
        }  # fmt: skip
        try:
            self._log.append(fields | ({"omitted": self._omitted} if self._omitted else {}))
        except AuditError as error:
            LOG.error("%s", error)
            return
        self._recorded, self._omitted = self._recorded + 1, 0
