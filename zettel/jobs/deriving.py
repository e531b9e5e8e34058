"""How a note that reflecting makes is written: a draft becomes a new note, or the next revision of the one it renews.

Like all derived notes it rests on others: it has the events of all of them, is linked to each by DERIVED_FROM, and
each stands among the inputs of the revision, so that whatever takes one back, or destroys it, reaches the note.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from zettel.annotate.index import index_note
from zettel.batch import DropMentions, Op, PutNote, StaleLease
from zettel.commit import Clock
from zettel.embed.vectors import Vectors
from zettel.evolve.insights import place
from zettel.fold import WORDLESS, fold, live_revisions
from zettel.identity import new_id
from zettel.jobs.queue import FollowUps, new_job
from zettel.link.mentions import mention_ops
from zettel.merged import taken_back
from zettel.model import Cause, Input, JobKind, Kind, Link, LinkType, Note, Revision, Scope
from zettel.ports import GraphStore, NoteHistory
from zettel.revise import revised

REFLECTOR = JobKind.REFLECT.value
SAID = frozenset({"content", "title", "role", "occurred_at", "session"})
"""Fields that are reflected on. What a model wrote is not, so that its words do not wander from note to note."""


class Former(NamedTuple):
    """A note that reflecting made before: as it is, the tag it was made with, what it rests on, and whether it is
    settled: a person has the say over it."""

    note: Note
    tag: str
    read: tuple[Input, ...]
    settled: bool

    @property
    def rests_on(self) -> set[str]:
        """The ids of its sources."""
        return {read.note for read in self.read}


class Draft(NamedTuple):
    """A derived note as it is to be. ``sources`` are the notes that it rests on, as they were read.

    ``former``: the note that it renews. ``archived``: that one is put away and says on what it said.
    """

    kind: Kind
    tag: str
    content: str
    caption: str
    keywords: tuple[str, ...]
    sources: tuple[Note, ...]
    former: Former | None = None
    confidence: float = 1.0
    archived: bool = False
    model: str | None = None
    prompt: str | None = None

    @property
    def is_news(self) -> bool:
        """Whether it says other than the note it renews, or rests on others."""
        if self.former is None:
            return not self.archived
        note = self.former.note
        if self.archived:
            return not note.archived
        said = (note.content, note.confidence, note.archived) == (self.content, self.confidence, False)
        return not said or self.former.rests_on != self.rests_on

    @property
    def rests_on(self) -> set[str]:
        """The ids of its sources."""
        return {source.id for source in self.sources}


def former(history: NoteHistory) -> Former | None:
    """A note's past if reflecting made it, else None. What a person changed or took back is not decided again."""
    made = [r for r in history.revisions if r.cause.by == REFLECTOR and r.inputs]
    if not made:
        return None
    live = [r for r in live_revisions(history.revisions, REFLECTOR) if r.inputs]
    by_hand = any(r.change for r in live_revisions(history.revisions, "user"))
    note, _ = fold(*history)
    settled = by_hand or note.quarantined is not None or taken_back(history, REFLECTOR)
    return Former(note, history.base.tags[0], (live or made)[-1].inputs, settled)


class Deriving:
    """Plans the writing of drafts."""

    def __init__(self, store: GraphStore, vectors: Vectors, follow_ups: FollowUps) -> None:
        self._store = store
        self._vectors = vectors
        self._follow_ups = follow_ups

    async def ops(self, scope: Scope, drafts: Sequence[Draft], clock: Clock) -> list[Op]:
        """What writes these drafts. Raises ``StaleLease`` if what they rest on is no longer as it was read."""
        read = {source.id: source for draft in drafts for source in draft.sources}
        former = {draft.former.note.id: draft.former.note for draft in drafts if draft.former is not None}
        now = await self._store.notes(scope, sorted(read.keys() | former.keys()))
        for id, note in read.items():
            if id not in now or reading(now[id]) != reading(note):
                raise StaleLease("a note changed while it was reflected on")
        for id, note in former.items():  # whose validity only the store tells: it follows from links of others
            if id not in now or now[id].version != note.version:
                raise StaleLease("what was reflected before changed meanwhile")
        histories = await self._store.histories(scope, sorted(now))
        await self._nobody_else(scope, drafts)
        ops: list[Op] = []
        shown: list[Note] = []
        for draft in drafts:
            made, note = _written(draft, histories, clock)
            ops += made
            if note.archived:
                ops.append(DropMentions((note.id,)))
            else:
                shown.append(note)
        again = [note.id for note in shown if note.id in former]
        ops += await mention_ops(self._store, scope, shown, again=again, recorded_at=clock.recorded_at)
        ops += await self._vectors.embed_now(shown)
        if self._follow_ups.embeds:
            ops += [new_job(scope, JobKind.EMBED, clock.now, note) for note in shown]
        return ops

    async def _nobody_else(self, scope: Scope, drafts: Iterable[Draft]) -> None:
        """Make sure that no other worker has written such a note meanwhile: this job may run twice."""
        fresh = [draft for draft in drafts if draft.former is None]
        ids = sorted({source.id for draft in fresh for source in draft.sources})
        links = await self._store.links(scope, ids) if ids else []
        derived = sorted({link.source for link in links if link.type is LinkType.DERIVED_FROM})
        histories = await self._store.histories(scope, derived) if derived else {}
        there = [made for history in histories.values() if (made := former(history)) and not made.note.archived]
        if any(draft.tag == made.tag and draft.rests_on == made.rests_on for made in there for draft in fresh):
            raise StaleLease("another worker has reflected on the same notes")


def said_at(history: NoteHistory) -> int:
    """The version in which a note got the words that are reflected on; its context and keywords are not."""
    base, revisions = history
    return next((r.version for r in reversed(revisions) if _says_anew(r)), base.version)


def _says_anew(revision: Revision) -> bool:
    return bool(revision.change.keys() & SAID) or (not revision.change and revision.cause.by not in WORDLESS)


def reading(note: Note) -> tuple[Any, ...]:
    """What of a note is read: as long as it is the same, what was made of it holds."""
    return note.content, note.title, note.role, note.occurred_at, note.archived, note.valid_to


def _written(draft: Draft, histories: Mapping[str, NoteHistory], clock: Clock) -> tuple[list[Op], Note]:
    """The operations of one draft, and the note as it then stands."""
    sources = sorted(draft.sources, key=place)
    inputs = tuple(Input(source.id, said_at(histories[source.id])) for source in sources)
    newest = max(sources, key=lambda source: source.seq)
    cause = Cause(by=REFLECTOR, note=newest.id, model=draft.model, prompt=draft.prompt)
    if draft.former is not None and draft.archived:
        put = revised(histories[draft.former.note.id], clock, cause, {"archived": True}, inputs=inputs)
        return [put], put.note
    starts = [source.valid_from for source in sources if source.valid_from is not None]
    fields: dict[str, Any] = {
        "content": draft.content,
        "caption": draft.caption,
        "keywords": draft.keywords,
        "confidence": draft.confidence,
        "trust": min(source.trust for source in sources),
        "event_ids": tuple(dict.fromkeys(event for source in sources for event in source.event_ids)),
        "occurred_at": next((source.occurred_at for source in reversed(sources) if source.occurred_at), None),
        "valid_from": max(starts, default=None),
    }
    ops: list[Op] = []
    change: dict[str, Any] = {"archived": False}
    undoes: tuple[int, ...] = ()
    if draft.former is None:
        # It begins in the archive: whoever takes back all that was decided about it is left without it.
        id, recorded_at = new_id("n"), clock.recorded_at
        base = Note(id=id, kind=draft.kind, tags=(draft.tag,), authored=("tags",), archived=True, seq=clock.next(),
                    recorded_at=recorded_at, **fields)  # fmt: skip
        ops.append(PutNote(base, index_note(base)))
        history = NoteHistory(base, ())
    else:
        history = histories[draft.former.note.id]
        change |= {**fields, "faded": False}
        undoes = tuple(r.version for r in live_revisions(history.revisions, REFLECTOR))
    share = round(1 / len(sources), 4)
    links = tuple(
        Link(source=history.base.id, target=source.id, type=LinkType.DERIVED_FROM, weight=share,
             recorded_at=clock.recorded_at)
        for source in sources
    )  # fmt: skip
    put = revised(history, clock, cause, change, extracted=("caption", "keywords"), links=links,
                  undoes=undoes, inputs=inputs)  # fmt: skip
    return [*ops, put], put.note
