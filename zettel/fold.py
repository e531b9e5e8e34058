"""A note's state is the fold of its base and its live revisions.

Nothing is ever overwritten: a change is a Revision, and taking one back is a Revision too, which names the versions
that no longer count. Folding again gives the state; folding only what was recorded by some moment gives what was
known then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from zettel.model import JobKind, Link, LinkType, Note, Revision, to_micros

AUTHORABLE = frozenset({"context", "caption", "keywords", "tags"})
"""Fields that are extracted at first and that a model or a person may write instead."""


WORDLESS = frozenset({JobKind.LINK.value, JobKind.EVOLVE.value, JobKind.MERGE.value, JobKind.DECAY.value, "search"})
"""Causes of revisions that leave alone what a note says, unless a model rewrites its context."""


def live_versions(revisions: Sequence[Revision]) -> set[int]:
    """The versions that count, of revisions in ``seq`` order.

    The newest always counts; what a counting revision undoes does not. So a taking-back can itself be taken back.
    """
    undone: set[int] = set()
    for revision in reversed(revisions):
        if revision.version not in undone:
            undone.update(revision.undoes)
    return {revision.version for revision in revisions} - undone


def worded_at(base: Note, revisions: Sequence[Revision]) -> int:
    """The version in which a note got the wording it has.

    Whoever decides by wording alone has this version as an input: when later links, weights and merges of the note go,
    what was decided stays.
    """
    return next((r.version for r in reversed(revisions) if _rewords(r)), base.version)


def _rewords(revision: Revision) -> bool:
    return revision.cause.by not in WORDLESS or "context" in revision.change


def live_revisions(revisions: Sequence[Revision], by: str | None = None) -> list[Revision]:
    """Those that count, of revisions in ``seq`` order; ``by``: only those with this cause."""
    live = live_versions(revisions)
    return [r for r in revisions if r.version in live and (by is None or r.cause.by == by)]


def recorded_by(revisions: Iterable[Revision], upto: int | None) -> list[Revision]:
    """Those recorded at or before ``upto`` (microseconds; None: all)."""
    return [r for r in revisions if upto is None or to_micros(r.recorded_at) <= upto]


def fold(base: Note, revisions: Sequence[Revision], upto: int | None = None) -> tuple[Note, tuple[Link, ...]]:
    """The note as its live revisions recorded by ``upto`` make it, and the links they decided.

    Revisions come in ``seq`` order. Of several links of one type to one note the last one counts, and what a person
    said before what jobs did. The version is that of the last revision, whether it counts or not: versions only grow.
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
        authored |= revision.change.keys() & AUTHORABLE
        authored -= set(revision.extracted)
        for link in revision.links:
            named = link.type, link.target
            if revision.cause.by == "user":
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
