"""The principal of a call: who writes to a memory, and the highest trust in what this principal writes.

The code at a door (a server, an import, an adapter, an agent's tools) names the principal with ``acting_as``. Texts and
arguments of a request cannot name one. Of nested doors the outermost one names the principal, and the lowest trust
counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from zettel.core.arguments import require_name, share
from zettel.errors import InvalidInput


class Principal(NamedTuple):
    """A writer, such as ``key:3f9a…`` or ``import:chat.txt``, and its highest trust; "" is an unknown one.

    ``label`` is a readable name for the audit log; stores do not record it.
    """

    name: str = ""
    trust: float = 1.0
    label: str = ""


_UNKNOWN = Principal()
_ACTING: ContextVar[Principal] = ContextVar("zettel.principal", default=_UNKNOWN)


def acting() -> Principal:
    """Return the principal of the current call."""
    return _ACTING.get()


@contextmanager
def acting_as(name: str, trust: float = 1.0, *, label: str = "") -> Iterator[None]:
    """Record ``name`` as the writer of everything that the block writes, with at most this trust.

    Inside another ``acting_as`` the outer name and the lower trust count. A zettel server records the key of a
    request instead.

    Args:
        name: The writer, such as ``slack:ann``.
        trust: The highest trust of what the block writes, 0 to 1.
        label: A text for the audit log, such as the name of a key.

    Returns:
        A context manager.

    Raises:
        InvalidInput: The name is empty, or the trust is outside its limits.

    Examples:
        >>> from zettel import acting_as
        >>> with acting_as("slack:ann", trust=0.5):
        ...     id = memory.add("The code is 1234.")
        >>> memory.get(id).trust
        0.5
    """
    if not name:
        raise InvalidInput("the name of a principal is empty: use a name such as slack:ann")
    require_name("principal", name)
    highest = share("trust", trust)
    assert highest is not None
    outer = _ACTING.get()
    lower = min(outer.trust, highest)
    token = _ACTING.set(Principal(outer.name, lower, outer.label) if outer.name else Principal(name, lower, label))
    try:
        yield
    finally:
        _ACTING.reset(token)
