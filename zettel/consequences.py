"""What rests on a note: all that was made from it, and each decision that it stood before, and what rests on these.

``delete`` destroys it, a quarantine takes it back.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from zettel.model import LinkType, Revision, Scope
from zettel.ports import GraphStore


class Consequences(NamedTuple):
    """Notes that were made from some notes, these themselves among them, and of other notes the versions that were
    decided because of any of them."""

    notes: set[str]
    versions: dict[str, set[int]]


async def consequences(store: GraphStore, scope: Scope, notes: Collection[str]) -> Consequences:
    """Follow DERIVED_FROM links and inputs from these notes until nothing more is reached."""
    found = Consequences(set(notes), {})
    fresh = set(notes)
    reworded: dict[str, int] = {}
    while fresh or reworded:
        derived = await derived_from(store, scope, fresh)
        cited = await store.citing(scope, sorted(fresh | reworded.keys()))
        asked, reworded = reworded, {}
        for revision in cited:
            known = found.versions.get(revision.note, set())
            if revision.version in known or not _rests_on(revision, found.notes | derived, asked):
                continue
            if any(link.type is LinkType.DERIVED_FROM for link in revision.links):
                derived.add(revision.note)  # it was made by that decision, and says it from its first version on
                continue
            found.versions.setdefault(revision.note, set()).add(revision.version)
            if revision.change:  # only wording can be handed on; a bare link carries none
                reworded[revision.note] = min(revision.version, reworded.get(revision.note, revision.version))
        fresh = derived - found.notes
        found.notes.update(derived)
    for note in found.notes & found.versions.keys():
        del found.versions[note]
    return found


async def derived_from(store: GraphStore, scope: Scope, notes: Collection[str]) -> set[str]:
    """The notes that were made from one of these, in one step."""
    links = await store.links(scope, sorted(notes)) if notes else []
    return {link.source for link in links if link.type is LinkType.DERIVED_FROM and link.target in notes}


def _rests_on(revision: Revision, notes: set[str], reworded: dict[str, int]) -> bool:
    if any(link.target in notes for link in revision.links) or revision.cause.note in notes:
        return True
    return any(
        read.note in notes or read.version >= reworded.get(read.note, read.version + 1) for read in revision.inputs
    )
