"""Folds a note's base and its live revisions into its state.

Nothing is overwritten: a change is a revision, and reverting adds a revision that names the reverted versions. Folding
only the revisions recorded by some moment gives the state known then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from zettel.model import CallKind, CauseKind, JobKind, Link, LinkType, Note, Revision, Trait, fields_with, to_micros
from zettel.ports import NoteHistory

EXTRACTED = frozenset(fields_with(Trait.EXTRACTED))


def live_versions(revisions: Sequence[Revision]) -> set[int]:
    """Return the live versions of revisions in ``seq`` order.

    The newest is always live, and a live revision deactivates the versions it undoes. So a revert can be reverted.
    A live revision of the link job deactivates its earlier ones, because it decides all near links again.
    """
    live: set[int] = set()
    undone: set[int] = set()
    is_linked = False
    for revision in reversed(revisions):
        links = revision.cause.by is JobKind.LINK
        if revision.version in undone or (links and is_linked):
            continue
        live.add(revision.version)
        undone.update(revision.undoes)
        is_linked |= links
    return live


def worded_at(history: NoteHistory) -> int:
    """Return the version in which a note got its current wording.

    Decisions based on wording alone have this version as input. They survive when later links or merges are reverted.
    """
    return next((r.version for r in reversed(history.revisions) if _rewords(r)), history.base.version)


def _rewords(revision: Revision) -> bool:
    return revision.cause.by.rewords or not EXTRACTED.isdisjoint(revision.change)


def live_revisions(revisions: Sequence[Revision], by: CauseKind | None = None) -> list[Revision]:
    """Return the live revisions, in ``seq`` order; ``by``: only those with this cause."""
    live = live_versions(revisions)
    return [r for r in revisions if r.version in live and (by is None or r.cause.by == by)]


def recorded_by(revisions: Iterable[Revision], upto: int | None) -> list[Revision]:
    """Return the revisions recorded at or before ``upto`` (microseconds; None: all)."""
    return [r for r in revisions if upto is None or to_micros(r.recorded_at) <= upto]


def state_of(history: NoteHistory) -> tuple[Note, tuple[Link, ...]]:
    """Return the state of a note, and the links that its live revisions decided."""
    return fold(history.base, history.revisions)


def fold(base: Note, revisions: Sequence[Revision], upto: int | None = None) -> tuple[Note, tuple[Link, ...]]:
    """Return the note's state from the live revisions recorded by ``upto``, and the links they decided.

    Revisions are in ``seq`` order. Of several links of one type to one note the last wins, and a person's link wins
    over a job's. ``unlinks`` remove links of earlier revisions. The version is that of the last revision, live or not:
    versions only grow.
    """
    known = recorded_by(revisions, upto)
    live = live_versions(known)
    fields: dict[str, Any] = {}
    authored = set(base.authored)
    links: dict[tuple[LinkType, str], Link] = {}
    by_hand: set[tuple[LinkType, str]] = set()
    for revision in known:
        if revision.version not in live:
            continue
        fields.update(revision.change)
        authored |= revision.change.keys() & EXTRACTED
        authored -= set(revision.extracted)
        for source, target, type in revision.unlinks:
            if (type, target) in links and links[type, target].source == source:
                del links[type, target]
                by_hand.discard((type, target))
        for link in revision.links:
            named = link.type, link.target
            if revision.cause.by is CallKind.PERSON:
                by_hand.add(named)
            elif named in by_hand:
                continue
            links[named] = link
    version = known[-1].version if known else base.version
    if not fields:
        same = base if version == base.version else base.model_copy(update={"version": version})
        return same, tuple(links.values())
    state = base.model_dump() | fields | {"authored": sorted(authored), "version": version}
    return Note.model_validate(state), tuple(links.values())
