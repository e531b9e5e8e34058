"""Near links: which older notes a new one stands close to, decided from vectors and shared rare Terms.

A decision is a Revision: it has a date, a reason, and the notes that stood before it as inputs, and can be taken back.
Only older notes are looked at, so the same events give the same links whenever the job happens to run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from zettel.annotate.extractive import GENERIC_ROLES
from zettel.model import Link, LinkType
from zettel.ports import Near, TermUse

NEIGHBOURS_ASKED = 16
"""Nearest older notes that are looked at."""
MAX_NEAR_LINKS = 3
"""Links a note gets at most: enough to be reached by, few enough that a path means something."""
NEAR_COSINE = 0.85
"""From this cosine on, two notes say nearly the same. Below, the cosine alone tells no more than that both chat."""
NEAR_COSINE_WITH_TERMS = 0.5
"""From here on, if they share what binds: a name that is no speaker's, or two keywords."""
BINDING_KEYWORDS = 2


def close(near: Near) -> Near:
    """Only those of the others that may be linked at all."""
    far = bisect_left(near.others, True, key=lambda other: other[1] < NEAR_COSINE_WITH_TERMS)  # nearest come first
    return Near(near.note, near.others[:far])


Binding: TypeAlias = Mapping[str, TermUse]
"""By key, the Terms of one note that may bind it to another."""


def binding(terms: Sequence[TermUse]) -> Binding:
    """The names and keywords among a note's Terms."""
    return {term.key: term for term in terms if term.kind in ("keyword", "name")}


def speakers(terms: Sequence[TermUse]) -> frozenset[str]:
    """By key, the names of who speaks in a note with these Terms."""
    return frozenset(term.key for term in terms if term.kind == "speaker")


def near_links(
    near: Near,
    role: str | None,
    bindings: Mapping[str, Binding],
    speaking: Mapping[str, Collection[str]],
    recorded_at: datetime,
) -> tuple[Link, ...]:
    """RELATES links for one note of this role, nearest first.

    ``bindings`` and ``speaking`` hold what binds, and the ``speakers``, of the note and of the others. A speaker's own
    name binds nothing, for everybody says it; neither does what speakers are called where the note's is such ("user").
    """
    idle = set(speaking[near.note]).union(*(speaking[other] for other, _ in near.others))
    if (role or "").casefold() in GENERIC_ROLES:
        idle |= GENERIC_ROLES
    own = {key: term for key, term in bindings[near.note].items() if key not in idle}
    links: list[Link] = []
    for other, cosine in near.others:
        keys = own.keys() & bindings[other].keys()
        if not keys and cosine < NEAR_COSINE:
            continue
        shared = sorted(keys, key=lambda key: (own[key].kind, key))
        bound = any(own[key].kind == "name" for key in shared) or len(shared) >= BINDING_KEYWORDS
        if cosine < (NEAR_COSINE_WITH_TERMS if bound else NEAR_COSINE):
            continue
        reason = f"cosine {cosine:.2f}"
        if shared:
            reason += ", both have " + ", ".join(own[key].text for key in reversed(shared[-3:]))
        links.append(
            Link(
                source=near.note,
                target=other,
                type=LinkType.RELATES,
                weight=round(min(max(cosine, 0.0), 1.0), 4),
                reason=reason,
                recorded_at=recorded_at,
            )
        )
        if len(links) == MAX_NEAR_LINKS:
            break
    return tuple(links)
