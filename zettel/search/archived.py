"""Archived notes in a search: all on request, or decayed ones that alone contain a word of the question.

Stores do not index the archive. So zettel reads archived notes and appends them to the candidates, with the features of
their own text but without neighbouring turns, terms and links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from zettel.core.paging import archived_pages
from zettel.core.vectors import embed_texts
from zettel.model import ROLES, TIME_MAX, TIME_MIN, Kind, Note, to_micros
from zettel.ports.candidate_rules import passes
from zettel.ports.embedder import is_slow
from zettel.ports.query import Seed
from zettel.text.extraction import is_question
from zettel.text.index import index_note, vector_text

if TYPE_CHECKING:
    from typing import Any

    from zettel.model import Scope
    from zettel.ports import Embedder, GraphStore
    from zettel.ports.query import Candidates, Filter, Floats, Question, SearchRequest

PAGE = 500
"""Archived notes per read."""
MAX_ARCHIVED = 512
"""Archived notes to score for a question: those of highest cosine, and of most query words."""
MAX_EMBEDDED = 32
"""Archived notes that a slow embedder embeds for a question, those with most query words: 0.1 to 1 s. They have no
stored vectors."""
_KINDS = tuple(Kind)
_ROLES = (None, *ROLES)


def is_requested(note: Note, request: SearchRequest) -> bool:
    """True if a search includes this archived note. A merged note is represented by another."""
    included = request.archived if note.quarantined is None else request.quarantined
    return included and note.merged_into is None and passes(note, request.filter) and _existed(note, request)


async def archived_notes(store: GraphStore, scope: Scope, filter: Filter, before: int, limit: int) -> list[Note]:
    """The newest ``limit`` archived notes that pass a filter."""
    notes: list[Note] = []
    async for page in archived_pages(store, scope, PAGE, before):
        notes += [note for note in page if passes(note, filter)]
        if len(notes) >= limit:
            break
    return notes[:limit]


def _existed(note: Note, request: SearchRequest) -> bool:
    """True if the note was recorded by ``known_at`` and valid from ``as_of`` or earlier."""
    if request.known_at is not None and note.recorded_at > request.known_at:
        return False
    return request.as_of is None or note.valid_from is None or note.valid_from <= request.as_of


class ArchiveCandidates:
    """Collects archived notes for a question, page by page, and appends the best of them to the candidates."""

    def __init__(self, question: Question, request: SearchRequest, embedder: Embedder) -> None:
        self._question = question
        self._request = request
        self._embedder = embedder
        self._notes: list[Note] = []
        self._cosines: Floats = np.zeros(0, np.float32)
        self._counts: Floats = np.zeros((0, len(question.tokens)), np.float32)
        self._to_embed = MAX_EMBEDDED

    async def add(self, notes: Sequence[Note]) -> None:
        """Add a page of notes."""
        if not notes:
            return
        self._notes += notes
        counts = [[index_note(note).tokens.get(token, 0) for token in self._question.tokens] for note in notes]
        page = np.array(counts, np.float32).reshape(len(notes), -1)
        self._cosines = np.concatenate([self._cosines, await self._cosine(notes, page)])
        self._counts = np.concatenate([self._counts, page])
        if len(self._notes) > 2 * MAX_ARCHIVED:
            self._cut()

    async def _cosine(self, notes: Sequence[Note], counts: Floats) -> Floats:
        """Cosines of the notes with the question.

        Zeros for a remote embedder, which is slower than the search, and for all but ``MAX_EMBEDDED`` notes with a slow
        one.
        """
        cosines = np.zeros(len(notes), np.float32)
        if self._question.vector is None or self._embedder.remote:
            return cosines
        places = list(range(len(notes)))
        if is_slow(self._embedder):
            rarity = (counts > 0) @ self._question.rarity
            places = np.argsort(-rarity, kind="stable")[: self._to_embed].tolist()
            self._to_embed -= len(places)
        if places:
            rows = await embed_texts(self._embedder, [vector_text(notes[place]) for place in places])
            cosines[places] = rows @ self._question.vector
        return cosines

    def _cut(self) -> None:
        """Keep the best notes by cosine and by query words."""
        rarity = (self._counts > 0) @ self._question.rarity
        best = [np.argsort(-values, kind="stable")[: MAX_ARCHIVED // 2] for values in (self._cosines, rarity)]
        rows = np.unique(np.concatenate(best)).tolist()
        self._notes = [self._notes[row] for row in rows]
        self._cosines, self._counts = self._cosines[rows], self._counts[rows]

    def joined(self, candidates: Candidates) -> Candidates:
        """The candidates with the collected notes as further rows, with the source ARCHIVE."""
        known = set(candidates.ids)
        rows = [row for row, note in enumerate(self._notes) if note.id not in known]
        notes, counts, cosines = [self._notes[row] for row in rows], self._counts[rows], self._cosines[rows]
        if not notes:
            return candidates
        alone = np.full(len(notes), -1, np.int64)
        more_speakers = [note.speaker for note in notes if note.speaker is not None]
        speakers = list(dict.fromkeys([*candidates.speaker_names, *more_speakers]))
        events = [note.event_ids[0] if note.kind is Kind.EPISODIC else note.id for note in notes]
        first = int(candidates.event.max(initial=-1)) + 1
        numbers = {event: number for number, event in enumerate(dict.fromkeys(events), first)}
        columns: dict[str, Any] = {
            "pool": np.ones(len(notes), bool),
            "seeds": np.array([self._seeds(*row) for row in zip(notes, counts, cosines, strict=True)], np.int64),
            "seq": [note.seq for note in notes],
            "event": [numbers[event] for event in events],
            "kind": [_KINDS.index(note.kind) for note in notes],
            "speaker": [-1 if note.speaker is None else speakers.index(note.speaker) for note in notes],
            "role": [_ROLES.index(note.role) - 1 for note in notes],
            "session": alone, "previous": alone, "next": alone,
            "occurred_at": [TIME_MIN if note.occurred_at is None else to_micros(note.occurred_at) for note in notes],
            "valid_from": [TIME_MIN if note.valid_from is None else to_micros(note.valid_from) for note in notes],
            "valid_to": [self._end(note) for note in notes],
            "length": [index_note(note).length for note in notes],
            "is_question": [is_question(note.content) for note in notes],
            "tf": counts,
            "cosine": cosines,
        }  # fmt: skip
        more: dict[str, Any] = {}
        for name, values in columns.items():
            column = getattr(candidates, name)
            more[name] = np.concatenate([column, np.asarray(values, column.dtype)])
        return replace(
            candidates, ids=(*candidates.ids, *(note.id for note in notes)), speaker_names=tuple(speakers), **more
        )

    def _seeds(self, note: Note, counts: Floats, cosine: float) -> int:
        at = None if note.occurred_at is None else to_micros(note.occurred_at)
        seeds = Seed.ARCHIVE
        seeds |= Seed.VECTOR if cosine else Seed(0)
        seeds |= Seed.TEXT if counts.any() else Seed(0)
        seeds |= Seed.TITLE if {*self._question.names} & {*index_note(note).title_keys} else Seed(0)
        in_times = at is not None and any(start <= at < end for start, end in self._question.times)
        return int(seeds | (Seed.TIME if in_times else Seed(0)))

    def _end(self, note: Note) -> int:
        """``valid_to`` as of ``as_of``."""
        if note.valid_to is None or (self._request.as_of is not None and note.valid_to > self._request.as_of):
            return TIME_MAX
        return to_micros(note.valid_to)
