"""Near links: which older notes a new one stands close to, decided from vectors and shared rare Terms.

A decision is a Revision: it has a date, a reason, and the notes that stood before it as inputs, and can be taken back.
Only older notes are looked at, so the same events give the same links whenever the job happens to run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

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
    return Near(near.note, tuple((id, cosine) for id, cosine in near.others if cosine >= NEAR_COSINE_WITH_TERMS))


def near_links(
    near: Near, terms: Mapping[str, Sequence[TermUse]], authors: Mapping[str, str | None], recorded_at: datetime
) -> tuple[Link, ...]:
    """RELATES links for one note, nearest first.

    ``terms`` and ``authors`` hold the Terms and the role of the note and of the others. A speaker's own name binds
    nothing: everybody says it.
    """
    speakers = {(author or "").casefold() for author in authors.values()}
    own = _binding(terms[near.note], speakers)
    links: list[Link] = []
    for other, cosine in near.others:
        shared = sorted(own.keys() & _binding(terms[other], speakers).keys(), key=lambda key: (own[key].kind, key))
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


def _binding(terms: Sequence[TermUse], speakers: set[str]) -> dict[str, TermUse]:
    return {term.key: term for term in terms if term.kind in ("keyword", "name") and term.key not in speakers}
