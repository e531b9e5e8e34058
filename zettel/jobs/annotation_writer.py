"""Writes the annotations of a model: revisions of the notes, notes for facts, and summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zettel.annotate.grounding import is_supported
from zettel.core.authority import derived_trust
from zettel.core.commit import Clock
from zettel.core.decisions import is_reverted, set_by_people
from zettel.core.drafts import annotate
from zettel.core.identity import new_id
from zettel.core.retention import first_expiry
from zettel.core.revise import flagged, revised
from zettel.model import Cause, Input, JobKind, Kind, Link, LinkType, Note, Scope
from zettel.model.tags import without_reserved
from zettel.ports import Annotator, GraphStore, NoteHistory, Passage
from zettel.ports.language_model import AnnotationResult, ModelAnnotation
from zettel.ports.operations import Op, PutNote, PutRevision
from zettel.text.index import index_note, vector_text
from zettel.text.instructions import flags_of

MIN_CONFIDENCE = 0.5
"""The lowest rating by the model of a fact that becomes a note."""


class AnnotationWriter:
    """Collects the operations of one answer in ``ops``, and the notes that they change or create in ``notes``.

    ``shown`` are all notes of the request. They are the inputs of everything that the answer contains.
    """

    def __init__(
        self, store: GraphStore, extractive: Annotator, scope: Scope, clock: Clock, shown: Sequence[Note]
    ) -> None:
        self.ops: list[Op] = []
        self.notes: list[Note] = []
        self._store = store
        self._extractive = extractive
        self._scope = scope
        self._clock = clock
        self._shown = shown
        self._inputs = tuple(Input(note.id, note.version) for note in shown)

    async def write(
        self,
        note: Note,
        history: NoteHistory,
        annotation: ModelAnnotation,
        before: Sequence[Passage],
        result: AnnotationResult,
    ) -> None:
        """Revise a note and replace its facts, without facts that neither it nor the turns ``before`` it support.

        Facts that the model itself rates below MIN_CONFIDENCE are dropped too: the note itself stays searchable, while
        a low trust would not keep an invented fact out of a search. The reason of the revision counts them.
        """
        turn = Passage(note.content, note.title, note.speaker, note.occurred_at)
        ratings = {fact: 1.0 for fact in annotation.facts} | dict(
            zip(annotation.facts, annotation.confidences, strict=False)
        )
        supported = [fact for fact in ratings if is_supported(fact, turn, before)]
        facts = [fact for fact in supported if ratings[fact] >= MIN_CONFIDENCE]
        cause = Cause(by=JobKind.ANNOTATE, note=note.id, model=result.model, prompt=result.prompt)
        tags = _tags(note, annotation)
        change: dict[str, Any] = {"context": annotation.context, "keywords": annotation.keywords, "tags": tags}
        if annotation.importance is not None:
            change["importance"] = annotation.importance
        if not annotation.keywords:
            del change["keywords"]  # the extracted keywords stay
        for name in set_by_people(history):
            change.pop(name, None)
        because = cause.model_copy(update={"reason": _reason(len(ratings), len(supported), len(facts))})
        self._put(revised(history, self._clock, because, flagged(note, change), inputs=self._inputs))
        unchanged = await self._archive_facts(note, facts, cause)
        kind = annotation.kind if annotation.kind in (Kind.SEMANTIC, Kind.PROCEDURAL) else Kind.SEMANTIC
        for fact in facts:
            if fact not in unchanged:
                await self._derive([note], fact, kind, cause, ratings[fact])

    async def summarize(self, stretch: Sequence[Note], result: AnnotationResult) -> None:
        """Create an insight note about all turns of a group."""
        cause = Cause(by=JobKind.ANNOTATE, model=result.model, prompt=result.prompt)
        await self._derive(stretch, result.summary, Kind.INSIGHT, cause)

    async def _archive_facts(self, note: Note, facts: Sequence[str], cause: Cause) -> set[str]:
        """Archive the earlier facts of a note that are not among ``facts``; return the unchanged facts.

        A fact that a person corrected or restored stays.
        """
        links = await self._store.links(self._scope, [note.id])
        derived = [link.source for link in links if link.type is LinkType.DERIVED_FROM and link.target == note.id]
        histories = await self._store.histories(self._scope, derived) if derived else {}
        unchanged: set[str] = set()
        for history in histories.values():
            if not _is_fact_of(note, history):
                continue  # for example a lesson, which the reflect job maintains
            if history.base.content in facts:
                unchanged.add(history.base.content)
            elif "content" not in set_by_people(history) and not is_reverted(history, JobKind.ANNOTATE):
                self.ops.append(revised(history, self._clock, cause, {"archived": True}, inputs=self._inputs))
        return unchanged

    async def _derive(
        self, origins: Sequence[Note], content: str, kind: Kind, cause: Cause, confidence: float = 1.0
    ) -> None:
        """Create a note derived from others. It has no session, because sessions contain only turns."""
        last = origins[-1]
        passage = Passage(content, None, None, last.occurred_at)
        (fields,) = await annotate(self._store, self._scope, self._extractive, [passage])
        recorded_at = self._clock.recorded_at
        flags = flags_of(content)
        note = Note(
            id=new_id("n"),
            kind=kind,
            content=content,
            confidence=confidence,
            event_ids=tuple(dict.fromkeys(event for origin in origins for event in origin.event_ids)),
            occurred_at=last.occurred_at,
            valid_from=origins[0].valid_from,
            expires_at=first_expiry(self._shown),
            seq=self._clock.next(),
            recorded_at=recorded_at,
            flags=flags,
            trust=derived_trust(self._shown, flags),
            ceiling=min(each.ceiling for each in self._shown),
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


def _reason(given: int, supported: int, written: int) -> str:
    """Return how many facts were dropped and why; "" for none."""
    unsupported = f"{given - supported} facts dropped: the note does not support them" if given > supported else ""
    unsure = f"{supported - written} facts dropped: the model is not sure of them" if supported > written else ""
    return "; ".join(filter(None, (unsupported, unsure)))


def _is_fact_of(note: Note, history: NoteHistory) -> bool:
    """Return whether the annotation of this note created a derived note."""
    return any(r.links and (r.cause.by, r.cause.note) == (JobKind.ANNOTATE, note.id) for r in history.revisions)


def _tags(note: Note, annotation: ModelAnnotation) -> tuple[str, ...]:
    """Return the extracted tags and the model's tags."""
    return tuple(dict.fromkeys((*own_tags(note), *without_reserved(annotation.tags))))


def own_tags(note: Note) -> tuple[str, ...]:
    """Return the tags of a note that a model keeps: all that somebody wrote, but no reserved tag of its text."""
    return note.tags if "tags" in note.authored else without_reserved(note.tags)


def is_outdated(current: Note | None, before: Note) -> bool:
    """Return whether a note was deleted, archived or reworded since a request contained it."""
    return current is None or current.archived or vector_text(current) != vector_text(before)
