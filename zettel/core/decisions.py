"""Decisions by people that jobs respect: no job repeats a reverted decision or changes a field that a person set."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_core import to_jsonable_python

from zettel.core.fold import fold, live_revisions, live_versions
from zettel.model import EDITABLE, CallKind, Cause, JobKind, Link, LinkKey, Revision
from zettel.ports import NoteHistory

BY_HAND = Cause(by=CallKind.PERSON)
"""A person did it: jobs do not decide otherwise."""
BY_PEOPLE = frozenset({CallKind.PERSON, CallKind.EDIT})
"""The kinds of causes with which people write fields."""


class Reverted(NamedTuple):
    """The links and the field values, as (name, JSON), that a person reverted in a note and did not restore."""

    links: frozenset[LinkKey] = frozenset()
    values: frozenset[tuple[str, str]] = frozenset()


def reverted(history: NoteHistory) -> Reverted:
    """Return the decisions of all earlier revisions that no job may repeat in this note.

    These are the removed links, and the decisions of versions that a person undid, directly or through other versions.
    Decisions that are live after a later change by a person do not count, for example after reverting the revert.
    Changes by a principal in quarantine do not count at all.
    """
    revisions = _without_quarantined(history.revisions)
    links: set[LinkKey] = set(history.checkpoint.links) if history.checkpoint else set()
    values: set[tuple[str, str]] = set(history.checkpoint.values) if history.checkpoint else set()
    for place, revision in enumerate(revisions):
        if revision.version <= history.since:  # the checkpoint contains its decisions
            continue
        links.update(revision.unlinks)
        if revision.cause != BY_HAND:
            continue
        if revision.undoes:
            before, after = live_versions(revisions[:place]), live_versions(revisions[: place + 1])
            for earlier in revisions[:place]:
                if earlier.version in revision.undoes or earlier.version in before - after:
                    links.update(link.key for link in earlier.links)
                    values.update(_decided_values(earlier))
                elif earlier.version in after - before:
                    links.update(earlier.unlinks)
        if links or values:
            note, live = fold(history.base, revisions[: place + 1])
            links.difference_update(link.key for link in live)
            values -= {(name, value) for name, value in values if _as_json(getattr(note, name)) == value}
    return Reverted(frozenset(links), frozenset(values))


def _without_quarantined(revisions: Sequence[Revision]) -> Sequence[Revision]:
    """Return the revisions without those that the quarantine of a principal undoes."""
    quarantines = [r for r in live_revisions(revisions, CallKind.QUARANTINE) if r.cause.principal is not None]
    undone = {version for revision in quarantines for version in revision.undoes}
    return [r for r in revisions if r.version not in undone] if undone else revisions


def _decided_values(revision: Revision) -> list[tuple[str, str]]:
    if not isinstance(revision.cause.by, JobKind):
        return []
    return [(name, _as_json(value)) for name, value in revision.change.items() if name in EDITABLE]


def not_reverted(
    history: NoteHistory, change: Mapping[str, Any], links: tuple[Link, ...]
) -> tuple[Mapping[str, Any], tuple[Link, ...]]:
    """Return the parts of a job's decision about a note that no person has reverted."""
    without = reverted(history)
    if without.values:
        change = {name: value for name, value in change.items() if (name, _as_json(value)) not in without.values}
    return change, tuple(link for link in links if link.key not in without.links)


def is_reverted(history: NoteHistory, by: JobKind) -> bool:
    """Return whether a person reverted a decision of this kind of job about the note. Jobs must not repeat it.

    A version that was erased since may have been of any kind.
    """
    others = {revision.version for revision in history.revisions if revision.cause.by != by}
    by_hand = live_revisions(history.revisions, BY_HAND.by)
    return any(r.cause == BY_HAND and not others.issuperset(r.undoes) for r in by_hand)


def versions_by(history: NoteHistory, by: JobKind) -> tuple[int, ...]:
    """Return all versions that a kind of job wrote, which its next revision undoes.

    All, because a live one may have replaced another, which must not become live again.
    """
    return tuple(revision.version for revision in history.revisions if revision.cause.by == by)


def set_by_people(history: NoteHistory) -> set[str]:
    """Return the fields of a note that a person wrote; extracted fields do not count."""
    revisions = [revision for revision in live_revisions(history.revisions) if revision.cause.by in BY_PEOPLE]
    return {name for revision in revisions for name in revision.change.keys() - set(revision.extracted)}


def _as_json(value: Any) -> str:
    return json.dumps(value, default=to_jsonable_python)
