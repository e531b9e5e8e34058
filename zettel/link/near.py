"""Near links: which older notes a new one stands close to, decided from vectors and shared rare Terms.

A decision is a Revision: it has a date, a reason, and the notes that stood before it as inputs, and can be taken back.
Only older notes are looked at, so the same events give the same links whenever the job happens to run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from zettel.model import Link, LinkType
from zettel.ports import Near, TermUse

NEIGHBOURS_ASKED = 8
"""Nearest older notes that are looked at."""
MAX_NEAR_LINKS = 3
"""Links a note gets at most: enough to be reached by, few enough that a path means something."""
NEAR_COSINE = 0.6
"""From this cosine on, two notes are near by their vectors alone."""
NEAR_COSINE_WITH_TERM = 0.4
"""From here on if they share a name as well."""

_BINDING = "name"


def close(near: Near) -> Near:
    """Only those of the others that may be linked at all."""
    return Near(near.note, tuple((id, cosine) for id, cosine in near.others if cosine >= NEAR_COSINE_WITH_TERM))


def near_links(
    near: Near, terms: Mapping[str, Sequence[TermUse]], authors: Mapping[str, str | None], recorded_at: datetime
) -> tuple[Link, ...]:
    """RELATES links for one note, nearest first.

    ``terms`` and ``authors`` hold the Terms and the role of the note and of the others. A speaker's own name binds
    nothing: everybody says it.
    """
    speakers = {(author or "").casefold() for author in authors.values()}
    own = _binding_terms(terms[near.note], speakers)
    links: list[Link] = []
    for other, cosine in near.others:
        shared = sorted(own.keys() & _binding_terms(terms[other], speakers).keys())
        if cosine < (NEAR_COSINE_WITH_TERM if shared else NEAR_COSINE):
            continue
        reason = f"cosine {cosine:.2f}"
        if shared:
            reason += " and both name " + ", ".join(own[key] for key in shared[:3])
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


def _binding_terms(terms: Sequence[TermUse], speakers: set[str]) -> dict[str, str]:
    return {term.key: term.text for term in terms if term.kind == _BINDING and term.key not in speakers}
