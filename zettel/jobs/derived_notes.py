"""Writes the derived notes of the reflect job: a draft becomes a new note or a revision of an existing note.

A derived note has the events of all its sources and a DERIVED_FROM link to each source. All sources are inputs of the
revision, so that reverting or deleting a source reaches the derived note. If a model wrote it, the inputs also include
every other note that the model saw in the request, because the model may have copied their words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from zettel.core.authority import derived_trust
from zettel.core.commit import Clock
from zettel.core.decisions import BY_PEOPLE, is_reverted, versions_by
from zettel.core.fold import live_revisions, state_of
from zettel.core.follow_ups import new_job
from zettel.core.identity import new_id
from zettel.core.mentions import mention_ops
from zettel.core.retention import first_expiry
from zettel.core.revise import revised
from zettel.core.rows import Rows
from zettel.core.vectors import Vectors
from zettel.evolve.insights import place
from zettel.model import Cause, Input, JobKind, Kind, Link, LinkType, Note, Revision, Scope
from zettel.ports import GraphStore, NoteHistory
from zettel.ports.operations import DropMentions, Op, PutNote, StaleLease
from zettel.text.index import index_note
from zettel.text.instructions import flags_of

SOURCE_FIELDS = frozenset({"content", "title", "speaker", "occurred_at", "session"})
"""The fields that reflection reads. It ignores fields that a model wrote, so that their words do not spread."""


class DerivedNote(NamedTuple):
    """An existing derived note with its tag and its source notes, in the versions that the job read.

    ``is_settled``: a person decided on it, so jobs skip it.
    """

    note: Note
    tag: str
    sources: tuple[Input, ...]
    is_settled: bool

    @property
    def source_ids(self) -> set[str]:
        """The ids of the source notes."""
        return {source.note for source in self.sources}


class Draft(NamedTuple):
    """The target state of a derived note. ``sources`` are its source notes, in the versions that the job read.

    ``existing``: the note to revise. ``archived``: archive the existing note with its old content. ``shown``: all notes
    in the request to the model that wrote the content. ``metadata`` is set in a new note.
    """

    kind: Kind
    tag: str
    content: str
    caption: str
    keywords: tuple[str, ...]
    sources: tuple[Note, ...]
    existing: DerivedNote | None = None
    confidence: float = 1.0
    archived: bool = False
    model: str | None = None
    prompt: str | None = None
    shown: tuple[Note, ...] = ()
    metadata: Mapping[str, Any] = MappingProxyType({})

    @property
    def is_changed(self) -> bool:
        """Whether the draft differs from the existing note in content or sources."""
        if self.existing is None:
            return not self.archived
        note = self.existing.note
        if self.archived:
            return not note.archived
        is_same = (note.content, note.confidence, note.archived) == (self.content, self.confidence, False)
        return not is_same or self.existing.source_ids != self.source_ids

    @property
    def source_ids(self) -> set[str]:
        """The ids of the source notes."""
        return {source.id for source in self.sources}

    @property
    def inputs(self) -> tuple[Note, ...]:
        """The sources and the shown notes, each once."""
        return tuple({note.id: note for note in (*self.sources, *self.shown)}.values())


def derived_note(history: NoteHistory) -> DerivedNote | None:
    """Return a note that the reflect job wrote, else None. A note that a person changed or reverted is settled."""
    written = [r for r in history.revisions if r.cause.by == JobKind.REFLECT and r.inputs]
    if not written:
        return None
    live = [r for r in live_revisions(history.revisions, JobKind.REFLECT) if r.inputs]
    by_hand = any(r.change and r.cause.by in BY_PEOPLE for r in live_revisions(history.revisions))
    note, _ = state_of(history)
    is_settled = by_hand or note.quarantined is not None or is_reverted(history, JobKind.REFLECT)
    return DerivedNote(note, history.base.tags[0], _sources((live or written)[-1]), is_settled)


def _sources(revision: Revision) -> tuple[Input, ...]:
    """Return the inputs of a revision that are sources. A revision that archives a note has no other inputs."""
    linked = {link.target for link in revision.links if link.type is LinkType.DERIVED_FROM}
    return tuple(read for read in revision.inputs if not linked or read.note in linked)


class DerivedNotes:
    """Builds the operations that write drafts."""

    def __init__(self, store: GraphStore, vectors: Vectors) -> None:
        self._store = store
        self._vectors = vectors

    async def ops(self, scope: Scope, drafts: Sequence[Draft], clock: Clock) -> list[Op]:
        """Return the operations that write these drafts. Raises ``StaleLease`` if their inputs have changed."""
        read = {note.id: note for draft in drafts for note in draft.inputs}
        existing = {draft.existing.note.id: draft.existing.note for draft in drafts if draft.existing is not None}
        now = await self._store.notes(scope, sorted(read.keys() | existing.keys()))
        for id, note in read.items():
            if id not in now or source_state(now[id]) != source_state(note):
                raise StaleLease("a note changed during reflection")
        for id, note in existing.items():
            if id not in now or now[id].version != note.version:
                raise StaleLease("an existing insight changed during reflection")
        histories = Rows(await self._store.histories(scope, sorted(now)))
        await self._require_no_duplicate(scope, drafts)
        ops: list[Op] = []
        visible: list[Note] = []
        for draft in drafts:
            draft_ops, note = _written(draft, histories, clock)
            ops += draft_ops
            if note.archived:
                ops.append(DropMentions((note.id,)))
            else:
                visible.append(note)
        again = [note.id for note in visible if note.id in existing]
        ops += await mention_ops(self._store, scope, visible, again=again, recorded_at=clock.recorded_at)
        ops += await self._vectors.embed_now(visible)
        if self._vectors.defers(len(visible)):
            ops += [new_job(scope, JobKind.EMBED, clock.now, note) for note in visible]
        return ops

    async def _require_no_duplicate(self, scope: Scope, drafts: Iterable[Draft]) -> None:
        """Raise ``StaleLease`` if another worker wrote a note from the same sources meanwhile."""
        new = [draft for draft in drafts if draft.existing is None]
        ids = sorted({source.id for draft in new for source in draft.sources})
        links = await self._store.links(scope, ids) if ids else []
        derived = sorted({link.source for link in links if link.type is LinkType.DERIVED_FROM})
        histories = await self._store.histories(scope, derived) if derived else {}
        notes = [note for history in histories.values() if (note := derived_note(history)) and not note.note.archived]
        if any(_is_same(draft, note) for note in notes for draft in new):
            raise StaleLease("another worker has reflected on the same notes")


def _is_same(draft: Draft, existing: DerivedNote) -> bool:
    is_alike = draft.tag == existing.tag and draft.source_ids == existing.source_ids
    return is_alike and dict(draft.metadata) == existing.note.metadata


def text_version(history: NoteHistory) -> int:
    """Return the version that last set the SOURCE_FIELDS of a note."""
    return next((r.version for r in reversed(history.revisions) if _changes_text(r)), history.base.version)


def _changes_text(revision: Revision) -> bool:
    return bool(revision.change.keys() & SOURCE_FIELDS) or (not revision.change and revision.cause.by.rewords)


def source_state(note: Note) -> tuple[Any, ...]:
    """Return the fields of a source on which derived notes depend."""
    return note.content, note.title, note.speaker, note.occurred_at, note.archived, note.valid_to


def _written(draft: Draft, histories: Mapping[str, NoteHistory], clock: Clock) -> tuple[list[Op], Note]:
    """Return the operations of one draft, and the resulting note."""
    sources = sorted(draft.sources, key=place)
    inputs = tuple(Input(note.id, text_version(histories[note.id])) for note in sorted(draft.inputs, key=place))
    newest = max(sources, key=lambda source: source.seq)
    cause = Cause(by=JobKind.REFLECT, note=newest.id, model=draft.model, prompt=draft.prompt)
    if draft.existing is not None and draft.archived:
        put = revised(histories[draft.existing.note.id], clock, cause, {"archived": True}, inputs=inputs)
        return [put], put.note
    flags = flags_of(draft.content)
    starts = [source.valid_from for source in sources if source.valid_from is not None]
    fields: dict[str, Any] = {
        "content": draft.content,
        "caption": draft.caption,
        "keywords": draft.keywords,
        "confidence": draft.confidence,
        "flags": flags,
        "trust": derived_trust(draft.inputs, flags),
        "ceiling": min(note.ceiling for note in draft.inputs),
        "event_ids": tuple(dict.fromkeys(event for source in sources for event in source.event_ids)),
        "occurred_at": next((source.occurred_at for source in reversed(sources) if source.occurred_at), None),
        "valid_from": max(starts, default=None),
        "expires_at": first_expiry(draft.inputs),
    }
    ops: list[Op] = []
    change: dict[str, Any] = {"archived": False}
    undoes: tuple[int, ...] = ()
    if draft.existing is None:
        # The base is archived, so that reverting all revisions archives the note.
        id, recorded_at = new_id("n"), clock.recorded_at
        base = Note(id=id, kind=draft.kind, tags=(draft.tag,), authored=("tags",), archived=True, seq=clock.next(),
                    recorded_at=recorded_at, metadata=dict(draft.metadata), **fields)  # fmt: skip
        ops.append(PutNote(base, index_note(base)))
        history = NoteHistory(base, ())
    else:
        history = histories[draft.existing.note.id]
        change |= {**fields, "faded": False}
        undoes = versions_by(history, JobKind.REFLECT)
    share = round(1 / len(sources), 4)
    links = tuple(
        Link(source=history.base.id, target=source.id, type=LinkType.DERIVED_FROM, weight=share,
             recorded_at=clock.recorded_at)
        for source in sources
    )  # fmt: skip
    put = revised(history, clock, cause, change, extracted=("caption", "keywords"), links=links,
                  undoes=undoes, inputs=inputs)  # fmt: skip
    return [*ops, put], put.note
