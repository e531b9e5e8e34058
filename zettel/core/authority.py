"""The trust in a note, and the rule that no note changes one of higher trust.

Jobs, tools and imports all ask ``may_replace`` before they let one note supersede, absorb or rewrite another. A note
that may not can only contradict.
"""

from __future__ import annotations

from collections.abc import Sequence

from zettel.core.principals import acting
from zettel.errors import PermissionDenied
from zettel.model import Event, EventRecord, Note, Role
from zettel.text.instructions import flags_of, lowered, trust_of

FULL_TRUST = 1.0
"""The trust in a person, or in a text without a role, that does not look like instructions."""
ROLE_TRUST: dict[Role | None, float] = {"assistant": 0.75, "tool": 0.5, "document": 0.5}
"""The highest trust in a text of these roles; the other roles have full trust."""


def trust(of: Note | Event) -> float:
    """Return the trust in a note or an event, 0 .. 1: the least of its writer's, its role's and, if derived, its own.

    Flags halve it. The writer of an event that is not stored yet is the principal of the call.
    """
    if isinstance(of, Note):
        return min(of.trust, role_trust(of))
    ceiling = of.ceiling if isinstance(of, EventRecord) else acting().trust
    return min(trust_of(of.role, flags_of(of.speaker, of.title, of.content), ceiling), role_trust(of))


def role_trust(of: Note | Event) -> float:
    """Return the highest trust in texts of this role."""
    return ROLE_TRUST.get(of.role, FULL_TRUST)


def derived_trust(inputs: Sequence[Note], flags: tuple[str, ...]) -> float:
    """Return the trust in a text that a job derived from some notes: at most the lowest of theirs.

    Flags of the text that none of the notes has halve it.
    """
    least = min(map(trust, inputs))
    inherited = {flag for note in inputs for flag in note.flags}
    return least if inherited.issuperset(flags) else lowered(least, flags)


def is_trusted(note: Note) -> bool:
    """Return whether a note has full trust: it is by a person, and does not look like instructions."""
    return trust(note) >= FULL_TRUST


def is_on_probation(note: Note) -> bool:
    """Return whether a note waits for a person to confirm it: a writer without full trust, or flags."""
    return note.ceiling < FULL_TRUST or bool(note.flags)


def may_replace(new: Note | Event, old: Note | Event) -> bool:
    """Return whether one text may supersede, absorb or rewrite another: its trust must not be lower.

    Example: the output of a tool never replaces the statement of a person, and a person's may replace it.
    """
    return trust(new) >= trust(old)


def require_authority(over: Note) -> None:
    """Raise ``PermissionDenied`` if the principal of this call has less trust than a note that it would change."""
    principal = acting()
    if principal.trust < trust(over):
        raise PermissionDenied(
            f"{principal.name} has trust {principal.trust:g} and cannot change {over.id}, which has {trust(over):g}: "
            "add another note, or ask a person of higher trust"
        )


def require_full_trust(action: str) -> None:
    """Raise ``PermissionDenied`` unless the principal of this call has full trust."""
    principal = acting()
    if principal.trust < FULL_TRUST:
        name = principal.name
        raise PermissionDenied(f"{name} has trust {principal.trust:g}: only a principal of full trust {action}")
