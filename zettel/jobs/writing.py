"""What becomes of a model's answer about a stretch of turns: revisions of their notes, and notes of its own on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zettel.annotate.drafts import annotate
from zettel.annotate.index import index_note, vector_text
from zettel.annotate.instructions import flags_of
from zettel.batch import Op, PutNote, PutRevision
from zettel.commit import Clock
from zettel.fold import live_revisions
from zettel.identity import new_id
from zettel.llm.ports import Written, Wrote
from zettel.model import Cause, Input, JobKind, Kind, Link, LinkType, Note, Scope
from zettel.ports import Annotator, GraphStore, NoteHistory, Passage
from zettel.revise import revised

READER = JobKind.ANNOTATE.value


class Writing:
    """Writes one answer. ``ops`` is what is to be done, ``notes`` which notes that changes or makes.

    ``inputs`` are the notes that the model was shown, as it was shown them.
    """

    def __init__(
        self, store: GraphStore, extractive: Annotator, scope: Scope, clock: Clock, inputs: tuple[Input, ...]
    ) -> None:
        self.ops: list[Op] = []
        self.notes: list[Note] = []
        self._store = store
        self._extractive = extractive
        self._scope = scope
        self._clock = clock
        self._inputs = inputs

    async def write(self, note: Note, history: NoteHistory, said: Written, wrote: Wrote) -> None:
        """A revision of the note, and its facts in place of those that it had."""
        cause = Cause(by=READER, note=note.id, model=wrote.model, prompt=wrote.prompt)
        change: dict[str, Any] = {"context": said.context, "keywords": said.keywords, "tags": _tags(note, said)}
        if said.importance is not None:
            change["importance"] = said.importance
        if not said.keywords:
            del change["keywords"]  # those of the text stay
        for name in set_by_people(history):
            change.pop(name, None)
        self._put(revised(history, self._clock, cause, change, inputs=self._inputs))
        kept = await self._archive_facts(note, said.facts, cause)
        kind = said.kind if said.kind in (Kind.SEMANTIC, Kind.PROCEDURAL) else Kind.SEMANTIC
        for fact in dict.fromkeys(said.facts):
            if fact not in kept:
                await self._derive([note], fact, kind, cause)

    async def sum_up(self, stretch: Sequence[Note], wrote: Wrote) -> None:
        """An insight note on all turns of a stretch."""
        cause = Cause(by=READER, model=wrote.model, prompt=wrote.prompt)
        await self._derive(stretch, wrote.summary, Kind.INSIGHT, cause)

    async def _archive_facts(self, note: Note, facts: Sequence[str], cause: Cause) -> set[str]:
        """Put away what was derived from a former wording and is said no more; returns what is said still."""
        links = await self._store.links(self._scope, [note.id])
        derived = [link.source for link in links if link.type is LinkType.DERIVED_FROM and link.target == note.id]
        histories = await self._store.histories(self._scope, derived) if derived else {}
        kept: set[str] = set()
        for history in histories.values():
            if not _is_fact_of(note, history):
                continue  # such as a lesson, which others have the say over
            if history.base.content in facts:
                kept.add(history.base.content)
            else:
                inputs = (Input(note.id, note.version),)
                self.ops.append(revised(history, self._clock, cause, {"archived": True}, inputs=inputs))
        return kept

    async def _derive(self, origins: Sequence[Note], content: str, kind: Kind, cause: Cause) -> None:
        """A new note that rests on others. It stands in no session: what is said there was said by people."""
        last = origins[-1]
        passage = Passage(content, None, None, last.occurred_at)
        (fields,) = await annotate(self._store, self._scope, self._extractive, [passage])
        recorded_at = self._clock.recorded_at
        note = Note(
            id=new_id("n"),
            kind=kind,
            content=content,
            event_ids=tuple(dict.fromkeys(event for origin in origins for event in origin.event_ids)),
            occurred_at=last.occurred_at,
            valid_from=origins[0].valid_from,
            seq=self._clock.next(),
            recorded_at=recorded_at,
            flags=flags_of(content),
            trust=min(origin.trust for origin in origins),
            **fields._asdict(),
        )
        links = tuple(
            Link(source=note.id, target=origin.id, type=LinkType.DERIVED_FROM, recorded_at=recorded_at)
            for origin in origins
        )
        put = revised(NoteHistory(note, ()), self._clock, cause, {}, links=links, inputs=self._inputs)
        self.ops.append(PutNote(note, index_note(note)))
        self._put(put)

    def _put(self, put: PutRevision) -> None:
        self.ops.append(put)
        self.notes.append(put.note)


def _is_fact_of(note: Note, history: NoteHistory) -> bool:
    """Whether a derived note came of reading this one."""
    return any(r.links and (r.cause.by, r.cause.note) == (READER, note.id) for r in history.revisions)


def _tags(note: Note, said: Written) -> tuple[str, ...]:
    """What the text itself shows stays beside what the model calls it."""
    return tuple(dict.fromkeys((*note.tags, *said.tags)))


def is_other(now: Note | None, before: Note) -> bool:
    """Whether a note is gone, put away, or says something else than when a model was shown it."""
    return now is None or now.archived or vector_text(now) != vector_text(before)


def set_by_people(history: NoteHistory) -> set[str]:
    """The fields of a note that a person's word counts for."""
    told = live_revisions(history.revisions, "user")
    return {name for revision in told for name in revision.change.keys() - set(revision.extracted)}
