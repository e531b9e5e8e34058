"""Revise: a note gets a new version; update, revert and the fall-back after a delete are all made here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_jsonable_python

from zettel.annotate.index import index_note, searchable_text
from zettel.batch import PutRevision
from zettel.commit import Clock
from zettel.fold import fold
from zettel.model import Cause, Input, Link, Note, Revision
from zettel.ports import NoteHistory

BY_HAND = Cause(by="user")
"""A person did it: jobs do not decide otherwise."""
SEARCHED = ("title", "content", "tags", "keywords", "role", "part", "archived")
"""Fields that the index of a note is made of, beside its searchable text."""


def revised(
    history: NoteHistory,
    clock: Clock,
    cause: Cause,
    change: Mapping[str, Any],
    *,
    extracted: tuple[str, ...] = (),
    links: tuple[Link, ...] = (),
    undoes: tuple[int, ...] = (),
    inputs: tuple[Input, ...] = (),
    erased: Sequence[int] = (),
) -> PutRevision:
    """One more revision of a note, with the state and the links that the fold then gives.

    ``erased`` versions are being destroyed in the same batch and count no more.
    """
    kept = [revision for revision in history.revisions if revision.version not in erased]
    before, _ = fold(history.base, history.revisions)
    revision = Revision(
        note=history.base.id,
        version=before.version + 1,
        seq=clock.next(),
        recorded_at=clock.recorded_at,
        # Not by pydantic as a whole: metadata may hold lone surrogates, which JSON can escape and UTF-8 cannot hold.
        change=json.loads(json.dumps(dict(change), default=to_jsonable_python)) if change else {},
        extracted=extracted,
        links=links,
        undoes=undoes,
        cause=cause,
        inputs=inputs,
    )
    note, decided = fold(history.base, [*kept, revision])
    bare = vars(before) | {"version": note.version} == vars(note)
    reads_anew = not bare and searched_differently(before, note)
    return PutRevision(revision, note, index_note(note) if reads_anew else None, decided, bare)


def searched_differently(before: Note, after: Note) -> bool:
    """Whether a note must be indexed and embedded anew."""
    if any(getattr(before, name) != getattr(after, name) for name in SEARCHED):
        return True
    return searchable_text(before) != searchable_text(after)
