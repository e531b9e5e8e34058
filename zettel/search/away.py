"""What is put away, in a search: all of it where that is asked for, and what has faded where only that can answer.

The stores keep no index of the archive. Its notes are read, and join the candidates as notes that stand alone: with the
features of their own text, and without neighbours in time, Terms and links. So all stores give the same answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from zettel.annotate.extractive import is_question
from zettel.annotate.index import index_note, vector_text
from zettel.model import TIME_MAX, TIME_MIN, Kind, Note, as_metadata_pairs, to_micros
from zettel.pages import archived_pages
from zettel.query import Seed

if TYPE_CHECKING:
    from typing import Any

    from zettel.model import Scope
    from zettel.ports import Embedder, GraphStore
    from zettel.query import Asked, Candidates, Filter, Floats, Question

PAGE = 500
"""Notes of the archive that are read at once."""
KEPT = 512
"""Notes of the archive that are scored for one question: those of highest cosine, and of most asked words."""
_KINDS = tuple(Kind)


def is_asked_for(note: Note, asked: Asked) -> bool:
    """Whether a search is to look at a note of the archive. One that was merged is spoken for by another."""
    wanted = asked.archived if note.quarantined is None else asked.quarantined
    return wanted and note.merged_into is None and passes(note, asked.filter) and _was_there(note, asked)


def passes(note: Note, wanted: Filter) -> bool:
    """Whether a filter lets a note through; its ``source`` is not looked at."""
    at = None if note.occurred_at is None else to_micros(note.occurred_at)
    return (
        (not wanted.kinds or note.kind.value in wanted.kinds)
        and (not wanted.tags or not set(wanted.tags).isdisjoint(note.tags))
        and wanted.session in (None, note.session)
        and wanted.role in (None, note.role)
        and (wanted.since is None or (at is not None and at >= wanted.since))
        and (wanted.until is None or (at is not None and at < wanted.until))
        and set(wanted.metadata) <= set(as_metadata_pairs(note.metadata))
    )


async def put_away(store: GraphStore, scope: Scope, wanted: Filter, before: int, limit: int) -> list[Note]:
    """The first ``limit`` notes of the archive that a filter lets through, the newest first."""
    found: list[Note] = []
    async for page in archived_pages(store, scope, PAGE, before):
        found += [note for note in page if passes(note, wanted)]
        if len(found) >= limit:
            break
    return found[:limit]


def _was_there(note: Note, asked: Asked) -> bool:
    """Whether it was recorded by ``known_at`` and valid from ``as_of`` on."""
    if asked.known_at is not None and note.recorded_at > asked.known_at:
        return False
    return asked.as_of is None or note.valid_from is None or note.valid_from <= asked.as_of


class Looking:
    """Gathers notes for one question, page by page, and joins the best of them to the candidates."""

    def __init__(self, question: Question, asked: Asked, embedder: Embedder) -> None:
        self._question = question
        self._asked = asked
        self._embedder = embedder
        self._notes: list[Note] = []
        self._cosines: Floats = np.zeros(0, np.float32)
        self._counts: Floats = np.zeros((0, len(question.tokens)), np.float32)

    async def look(self, notes: Sequence[Note]) -> None:
        """Look at some notes."""
        if not notes:
            return
        self._notes += notes
        self._cosines = np.concatenate([self._cosines, await self._cosine(notes)])
        told = [[index_note(note).tokens.get(token, 0) for token in self._question.tokens] for note in notes]
        counts = np.array(told, np.float32).reshape(len(notes), -1)
        self._counts = np.concatenate([self._counts, counts])
        if len(self._notes) > 2 * KEPT:
            self._cut()

    async def _cosine(self, notes: Sequence[Note]) -> Floats:
        """Of the notes with the question. A remote embedder is not asked: it would take longer than the search."""
        if self._question.vector is None or self._embedder.remote:
            return np.zeros(len(notes), np.float32)
        rows = await self._embedder.embed([vector_text(note) for note in notes])
        return np.asarray(rows @ self._question.vector, np.float32)

    def _cut(self) -> None:
        """Keep the best half by either."""
        named = (self._counts > 0) @ self._question.rarity
        kept = {*np.argsort(-self._cosines, kind="stable")[: KEPT // 2].tolist()}
        kept |= {*np.argsort(-named, kind="stable")[: KEPT // 2].tolist()}
        rows = sorted(kept)
        self._notes = [self._notes[row] for row in rows]
        self._cosines, self._counts = self._cosines[rows], self._counts[rows]

    def joined(self, candidates: Candidates) -> Candidates:
        """The candidates with these notes in further rows, seeded by ARCHIVE, those that are there already aside."""
        there = set(candidates.ids)
        rows = [row for row, note in enumerate(self._notes) if note.id not in there]
        notes, counts, cosines = [self._notes[row] for row in rows], self._counts[rows], self._cosines[rows]
        if not notes:
            return candidates
        alone = np.full(len(notes), -1, np.int64)
        roles = list(dict.fromkeys([*candidates.role_names, *(note.role for note in notes if note.role is not None)]))
        wholes = [note.event_ids[0] if note.kind is Kind.EPISODIC else note.id for note in notes]
        first = int(candidates.event.max(initial=-1)) + 1
        numbers = {whole: first + nth for nth, whole in enumerate(dict.fromkeys(wholes))}
        columns: dict[str, Any] = {
            "pool": np.ones(len(notes), bool),
            "seeds": np.array([self._seeds(*one) for one in zip(notes, counts, cosines, strict=True)], np.int64),
            "seq": [note.seq for note in notes],
            "event": [numbers[whole] for whole in wholes],
            "kind": [_KINDS.index(note.kind) for note in notes],
            "role": [-1 if note.role is None else roles.index(note.role) for note in notes],
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
            was = getattr(candidates, name)
            more[name] = np.concatenate([was, np.asarray(values, was.dtype)])
        return replace(
            candidates, ids=(*candidates.ids, *(note.id for note in notes)), role_names=tuple(roles), **more
        )

    def _seeds(self, note: Note, counts: Floats, cosine: float) -> int:
        at = None if note.occurred_at is None else to_micros(note.occurred_at)
        found = Seed.ARCHIVE
        found |= Seed.VECTOR if cosine else Seed(0)
        found |= Seed.TEXT if counts.any() else Seed(0)
        found |= Seed.TITLE if {*self._question.names} & {*index_note(note).title_keys} else Seed(0)
        timely = at is not None and any(start <= at < end for start, end in self._question.times)
        return int(found | (Seed.TIME if timely else Seed(0)))

    def _end(self, note: Note) -> int:
        """When it was replaced, if that was by ``as_of``."""
        if note.valid_to is None or (self._asked.as_of is not None and note.valid_to > self._asked.as_of):
            return TIME_MAX
        return to_micros(note.valid_to)
