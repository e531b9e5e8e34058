"""From an event and what an annotator made of its parts to notes, before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from zettel.annotate.instructions import flags_of, trust_of
from zettel.annotate.parts import split_parts
from zettel.annotate.tokens import tokenize
from zettel.model import Event, EventRecord, Note, Scope, said_by
from zettel.ports import Annotation, Annotator, Found, GraphStore, Lookup, Passage, TermStats


@dataclass(frozen=True)
class Draft:
    """An event with its parts and their annotations, one for each."""

    event: Event
    passages: tuple[Passage, ...]
    annotations: tuple[Annotation, ...]

    def fields(self, part: int, record: EventRecord) -> dict[str, Any]:
        """The fields that a note of this event has by its event and its part."""
        passage, annotation = self.passages[part], self.annotations[part]
        flags = flags_of(record.role, passage.title, passage.content)
        return {
            "content": passage.content,
            "title": passage.title,
            "caption": annotation.caption,
            "context": annotation.context,
            "keywords": annotation.keywords,
            "tags": annotation.tags,
            "event_ids": (record.event_id,),
            "part": part,
            "parts": len(self.passages),
            "role": record.role,
            "session": record.session,
            "occurred_at": record.occurred_at,
            "valid_from": record.occurred_at,
            "metadata": record.metadata,
            "archived": False,
            "faded": False,
            "flags": flags,
            "trust": trust_of(record.role, flags),
        }

    def note(self, part: int, record: EventRecord, note_id: str, seq: int, recorded_at: datetime) -> Note:
        """The note of one part."""
        return Note(id=note_id, seq=seq, recorded_at=recorded_at, **self.fields(part, record))


async def draft(
    store: GraphStore, scope: Scope, annotator: Annotator, events: Sequence[Event], known: Found | None = None
) -> list[Draft]:
    """Drafts of events, in order, annotated with the scope's statistics as they stand: as ``known`` by a Lookup of all
    ``tokens_of`` the events' passages, or looked up here."""
    parts = [passages_of(event) for event in events]
    passages = [passage for own in parts for passage in own]
    annotations = iter(await annotate(store, scope, annotator, passages, known))
    return [Draft(event, own, tuple(islice(annotations, len(own)))) for event, own in zip(events, parts, strict=True)]


async def annotate(
    store: GraphStore,
    scope: Scope,
    annotator: Annotator,
    passages: Sequence[Passage],
    known: Found | None = None,
) -> list[Annotation]:
    """What the annotator makes of each passage, told how often the scope uses its tokens."""
    found = known or await store.lookup(scope, Lookup(tokens=tokens_of(passages)))
    return await annotator.annotate(passages, TermStats(found.notes, found.df))


def tokens_of(passages: Iterable[Passage]) -> tuple[str, ...]:
    """The tokens whose numbers an annotator is told."""
    return tuple(sorted(set().union(*(tokenize(passage.content) for passage in passages))))


def passages_of(event: Event) -> tuple[Passage, ...]:
    """The parts of an event, as its notes will say them."""
    parts = split_parts(said_by(event))
    return tuple(Passage(part, event.title, event.role, event.occurred_at) for part in parts)
