"""Patterns of scopes, in which ``*`` is any value of a part."""

from __future__ import annotations

from collections.abc import Iterable

from zettel.errors import InvalidInput
from zettel.model import Scope

ANY = "*"
"""Any value of a part of a scope."""
PARTS = ("tenant", "user", "agent")


def is_in(scope: Scope, patterns: Iterable[Scope]) -> bool:
    """Return whether one of the patterns includes the scope.

    Example: ``is_in(Scope(tenant="acme", user="ann"), [Scope(tenant="acme", user="*")])`` is True.
    """
    parts = scope.model_dump().values()
    return any(
        all(wanted == part or (wanted == ANY and part is not None) for wanted, part in zip(each, parts, strict=True))
        for each in (pattern.model_dump().values() for pattern in patterns)
    )


def pattern_of(name: str, text: str) -> Scope:
    """Return the pattern in a text such as ``tenant=acme,user=*``. Raises ``InvalidInput``, which names ``name``."""
    parts: dict[str, str] = {}
    for pair in text.split(","):
        part, sign, value = pair.partition("=")
        if part not in PARTS or part in parts or not sign or not value:
            raise InvalidInput(f"{name} {text!r}: expected {', '.join(PARTS)}, such as tenant=acme,user=ann")
        parts[part] = value
    return Scope(**parts)
