"""Drafts of notes: an event with the annotations of its parts, before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from zettel.core.pacing import paced
from zettel.model import Event, EventRecord, Note, Scope, event_text
from zettel.model.tags import without_reserved
from zettel.ports import Annotation, Annotator, GraphStore, LookupQuery, LookupResult, Passage, TermStats
from zettel.text.instructions import flags_of, trust_of
from zettel.text.parts import split_parts
from zettel.text.tokens import tokenize

PIECE = 16
"""Passages per call of the annotator."""


@dataclass(frozen=True)
class EventDraft:
    """An event with its parts, and one annotation per part."""

    event: Event
    passages: tuple[Passage, ...]
    annotations: tuple[Annotation, ...]

    def fields(self, part: int, record: EventRecord) -> dict[str, Any]:
        """Return the fields of the note of one part."""
        passage, annotation = self.passages[part], self.annotations[part]
        flags = flags_of(record.speaker, passage.title, passage.content)
        return {
            "content": passage.content,
            "title": passage.title,
            **annotation._asdict(),
            "event_ids": (record.event_id,),
            "external_id": record.external_id,
            "part": part,
            "parts": len(self.passages),
            "speaker": record.speaker,
            "role": record.role,
            "session": record.session,
            "occurred_at": record.occurred_at,
            "valid_from": record.occurred_at,
            "expires_at": record.expires_at,
            "metadata": record.metadata,
            "archived": False,
            "faded": False,
            "flags": flags,
            "trust": trust_of(record.role, flags, record.ceiling),
            "ceiling": record.ceiling,
        }

    def note(self, part: int, record: EventRecord, note_id: str, seq: int, recorded_at: datetime) -> Note:
        """Return the note of one part."""
        return Note(id=note_id, seq=seq, recorded_at=recorded_at, **self.fields(part, record))


async def draft(
    store: GraphStore, scope: Scope, annotator: Annotator, events: Sequence[Event], known: LookupResult | None = None
) -> list[EventDraft]:
    """Return drafts of events, in order, annotated with the scope's current statistics.

    ``known`` is the result of a lookup of ``tokens_of`` the events' passages; None does the lookup here.
    """
    parts = [passages_of(event) async for event in paced(events)]
    passages = [passage for own in parts for passage in own]
    annotations = iter(await annotate(store, scope, annotator, passages, known))
    return [
        EventDraft(event, own, tuple(islice(annotations, len(own)))) for event, own in zip(events, parts, strict=True)
    ]


async def annotate(
    store: GraphStore,
    scope: Scope,
    annotator: Annotator,
    passages: Sequence[Passage],
    known: LookupResult | None = None,
) -> list[Annotation]:
    """Return the annotation of each passage, with the scope's token statistics and without reserved tags."""
    if known is None:
        tokens: set[str] = set()
        async for passage in paced(passages):
            tokens.update(tokenize(passage.content))
        known = await store.lookup(scope, LookupQuery(tokens=tuple(sorted(tokens))))
    stats = TermStats(known.notes, known.df)
    annotations: list[Annotation] = []
    async for start in paced(range(0, len(passages), PIECE)):
        annotations += await annotator.annotate(passages[start : start + PIECE], stats)
    return [annotation._replace(tags=without_reserved(annotation.tags)) for annotation in annotations]


def tokens_of(passages: Iterable[Passage]) -> tuple[str, ...]:
    """Return the tokens whose statistics an annotator needs, sorted."""
    return tuple(sorted(set().union(*(tokenize(passage.content) for passage in passages))))


def passages_of(event: Event) -> tuple[Passage, ...]:
    """Return the parts of an event, with the content of their notes."""
    parts = split_parts(event_text(event))
    return tuple(Passage(part, event.title, event.speaker, event.occurred_at) for part in parts)
