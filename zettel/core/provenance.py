"""Finds everything derived from a note, and every decision based on it, transitively.

``delete`` destroys these, and a quarantine reverts them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from zettel.model import LinkType, Revision, Scope
from zettel.ports import GraphStore


class Consequences(NamedTuple):
    """Some notes with those derived from them, and the versions of other notes decided because of any of them."""

    notes: set[str]
    versions: dict[str, set[int]]


async def consequences(
    store: GraphStore, scope: Scope, notes: Collection[str], reworded: Mapping[str, int] = MappingProxyType({})
) -> Consequences:
    """Follow DERIVED_FROM links and inputs from these notes until nothing new is reached.

    Also from the wording of ``reworded`` notes, by id, from a version on.
    """
    found = Consequences(set(notes), {})
    fresh = set(notes)
    reworded = dict(reworded)
    while fresh or reworded:
        derived = await derived_from(store, scope, fresh)
        cited = await store.citing(scope, sorted(fresh | reworded.keys()))
        asked, reworded = reworded, {}
        for revision in cited:
            known = found.versions.get(revision.note, set())
            if revision.version in known or not _rests_on(revision, found.notes | derived, asked):
                continue
            if any(link.type is LinkType.DERIVED_FROM for link in revision.links):
                derived.add(revision.note)  # that decision created it, so its first version depends on it
                continue
            found.versions.setdefault(revision.note, set()).add(revision.version)
            if revision.change:  # only wording passes on; a link alone has none
                reworded[revision.note] = min(revision.version, reworded.get(revision.note, revision.version))
        fresh = derived - found.notes
        found.notes.update(derived)
    for note in found.notes & found.versions.keys():
        del found.versions[note]
    return found


async def derived_from(store: GraphStore, scope: Scope, notes: Collection[str]) -> set[str]:
    """Return the notes derived directly from these."""
    links = await store.links(scope, sorted(notes)) if notes else []
    return {link.source for link in links if link.type is LinkType.DERIVED_FROM and link.target in notes}


def _rests_on(revision: Revision, notes: set[str], reworded: Mapping[str, int]) -> bool:
    if any(link.target in notes for link in revision.links) or revision.cause.note in notes:
        return True
    return any(
        read.note in notes or read.version >= reworded.get(read.note, read.version + 1) for read in revision.inputs
    )
