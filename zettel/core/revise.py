"""Creates the revisions of update, revert, delete and jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from pydantic_core import to_jsonable_python

from zettel.core.authority import require_authority
from zettel.core.checkpoints import next_checkpoint
from zettel.core.commit import Clock
from zettel.core.decisions import BY_PEOPLE, not_reverted
from zettel.core.fold import EXTRACTED, fold, state_of
from zettel.core.present import present
from zettel.core.principals import acting
from zettel.model import CallKind, Cause, Input, JobKind, Link, LinkKey, Note, Revision, Trait, fields_with
from zettel.ports import NoteHistory
from zettel.ports.operations import PutRevision
from zettel.text.index import index_note, searchable_text
from zettel.text.instructions import FLAGGED_FACTOR, authored_flags

_BY_CALLERS = BY_PEOPLE | {CallKind.IMPORT}
"""The causes of revisions by which a caller changes a note itself, and not its surroundings."""


def revised(
    history: NoteHistory,
    clock: Clock,
    cause: Cause,
    change: Mapping[str, Any],
    *,
    extracted: tuple[str, ...] = (),
    links: tuple[Link, ...] = (),
    unlinks: tuple[LinkKey, ...] = (),
    undoes: tuple[int, ...] = (),
    inputs: tuple[Input, ...] = (),
    erased: Sequence[int] = (),
) -> PutRevision:
    """Return a new revision of a note, with the resulting state and links.

    A job's revision omits links and values that a person reverted. ``erased`` versions are destroyed in the same batch
    and ignored. Raises ``PermissionDenied`` for a caller who has less trust than the note.
    """
    if isinstance(cause.by, JobKind):
        change, links = not_reverted(history, change, links)
    remaining = [revision for revision in history.revisions if revision.version not in erased]
    before, _ = fold(history.base, history.revisions)
    if cause.by in _BY_CALLERS:
        require_authority(before)
    revision = Revision(
        note=history.base.id,
        version=before.version + 1,
        seq=clock.next(),
        recorded_at=clock.recorded_at,
        # Not by pydantic as a whole: metadata may hold lone surrogates, which JSON can escape and UTF-8 cannot hold.
        change=json.loads(json.dumps(dict(change), default=to_jsonable_python)) if change else {},
        extracted=tuple(name for name in extracted if name in change),
        links=links,
        unlinks=unlinks,
        undoes=undoes,
        cause=cause,
        inputs=inputs,
        principal=acting().name if isinstance(cause.by, CallKind) else "",
    )
    note, decided = fold(history.base, [*remaining, revision])
    bare = vars(before) | {"version": note.version} == vars(note)
    reindex = not bare and _index_changes(before, note)
    checkpoint = None if erased else next_checkpoint(history.then(revision))
    return PutRevision(revision, note, index_note(note) if reindex else None, decided, bare, checkpoint)


def restored(history: NoteHistory, clock: Clock, cause: Cause, undoes: tuple[int, ...]) -> PutRevision:
    """Return a revision that reverts these versions. A note that leaves the archive loses an expiry that is over."""
    before, _ = state_of(history)
    after = revised(history, copy(clock), cause, {}, undoes=undoes).note
    returns = before.archived and not after.archived
    is_over = after.expires_at is not None and after.expires_at <= present()
    return revised(history, clock, cause, {"expires_at": None} if returns and is_over else {}, undoes=undoes)


def flagged(note: Note, change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a change of texts by a model together with the flags and the trust that follow from it."""
    authored = tuple(sorted({*note.authored, *(change.keys() & EXTRACTED)}))
    flags = authored_flags(note.model_copy(update={**change, "authored": authored}))
    if flags == note.flags:
        return dict(change)
    trust = note.trust
    if bool(flags) != bool(note.flags):
        trust = trust * FLAGGED_FACTOR if flags else min(1.0, trust / FLAGGED_FACTOR)
    return {**change, "flags": flags, "trust": trust}


def _index_changes(before: Note, after: Note) -> bool:
    """Return whether a note must be indexed and embedded again."""
    if any(getattr(before, name) != getattr(after, name) for name in fields_with(Trait.INDEXED)):
        return True
    return searchable_text(before) != searchable_text(after)
