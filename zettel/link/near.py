"""Near links: RELATES links to similar older notes, decided from vectors and shared rare terms.

Each decision is a revision with a date, a reason and inputs, and can be reverted. Only older notes are candidates, so
the same events give the same links whenever the job runs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from zettel.model import IMPLIED_ROLES, Link, LinkType, TermUse, implied_role
from zettel.ports import NearestNotes

NEIGHBOURS_ASKED = 16
"""Nearest older notes that are candidates."""
MAX_NEAR_LINKS = 3
"""Near links per note at most: enough to be reachable, few enough that a path is meaningful."""
BINDING_KEYWORDS = 2
"""Shared keywords that bind two notes."""


class NearCosines(NamedTuple):
    """The lowest cosines of a link.

    ``alone``: for notes without binding terms, which are nearly equal; a lower one may only mean small talk.
    ``with_terms``: for notes that share binding terms, which are a name other than a speaker's, or two keywords.
    """

    alone: float
    with_terms: float


STATIC = NearCosines(0.85, 0.5)
"""For static embedders."""
CONTEXTUAL = NearCosines(0.79, 0.29)
"""For other embedders: all-MiniLM-L6-v2 then links as many notes of our conversations as the static embedder."""


def near_cosines(embedder: str) -> NearCosines:
    """Return the cosines for an embedder, by its name: those of static embedders contain "-static-"."""
    return STATIC if "-static-" in embedder else CONTEXTUAL


def close(near: NearestNotes, least: NearCosines) -> NearestNotes:
    """Keep only the notes that are near enough for a link."""
    far = bisect_left(near.others, True, key=lambda other: other[1] < least.with_terms)  # nearest come first
    return NearestNotes(near.note, near.others[:far])


Binding: TypeAlias = Mapping[str, TermUse]
"""By key, the terms of one note that may bind it to another."""


def binding(terms: Sequence[TermUse]) -> Binding:
    """Return the names and keywords among a note's terms."""
    return {term.key: term for term in terms if term.kind in ("keyword", "name")}


def speakers(terms: Sequence[TermUse]) -> frozenset[str]:
    """Return the keys of the speaker terms."""
    return frozenset(term.key for term in terms if term.kind == "speaker")


def near_links(
    near: NearestNotes,
    speaker: str | None,
    bindings: Mapping[str, Binding],
    speaking: Mapping[str, Collection[str]],
    recorded_at: datetime,
    least: NearCosines,
) -> tuple[Link, ...]:
    """RELATES links for one note of this speaker, nearest first.

    ``bindings`` and ``speaking`` are the binding terms and the ``speakers`` of the note and the others. Names of
    speakers bind nothing, because they are everywhere; nor do generic roles ("user") if the note has such a speaker.
    """
    ignored = set(speaking[near.note]).union(*(speaking[other] for other, _ in near.others))
    if implied_role(speaker) is not None:
        ignored |= IMPLIED_ROLES.keys()
    own = {key: term for key, term in bindings[near.note].items() if key not in ignored}
    links: list[Link] = []
    for other, cosine in near.others:
        keys = own.keys() & bindings[other].keys()
        if not keys and cosine < least.alone:
            continue
        shared = sorted(keys, key=lambda key: (own[key].kind, key))
        bound = any(own[key].kind == "name" for key in shared) or len(shared) >= BINDING_KEYWORDS
        if cosine < (least.with_terms if bound else least.alone):
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
