"""Hits of a ranking: the notes with their explanations, and what else of the store belongs to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from zettel.core.authority import trust
from zettel.core.present import present_micros
from zettel.link.fact_changes import REASON
from zettel.model import Hit, LinkType, Note, Scope, Step
from zettel.ports.expiry import expired
from zettel.search.disputed import doubted
from zettel.search.explain import explain
from zettel.search.note_states import Found, is_current, known_then
from zettel.search.passage import select_passage
from zettel.search.staleness import behind
from zettel.search.turns import is_late_part, question_before, turns_of

if TYPE_CHECKING:
    from zettel.ports import GraphStore
    from zettel.ports.query import SearchRequest


def hits_of(found: Found) -> list[Hit]:
    """Return the hits of a ranking, without notes deleted since."""
    request, ranked, notes = found
    candidates, scores, scorer = ranked.candidates, ranked.scores, ranked.scorer
    today = ranked.question.valid_at
    rows = [row for row in ranked.rows if candidates.ids[row] in notes][: request.k]
    hits = [
        Hit(
            note=doubted(notes[candidates.ids[row]], ranked.confidences.get(row)),
            score=float(scores.score[row]),
            why=explain(
                row, candidates, scores, scorer, today, ranked.strengths.get(row),
                trust=trust(notes[candidates.ids[row]]), disputed=ranked.witnesses.get(row),
                updated_by=ranked.updated[row][-1] if row in ranked.updated else None, full=request.explain,
            ),
            passage=select_passage(notes[candidates.ids[row]].content, ranked.question),
            **turns_of(row, candidates)._asdict(),
        )
        for row in rows
    ]  # fmt: skip
    if request.explain:
        for name, values in ranked.extra_features.items():
            hits = [_with_feature(hit, name, values.get(row)) for row, hit in zip(rows, hits, strict=True)]
    return hits


async def completed(
    store: GraphStore, scope: Scope, request: SearchRequest, hits: list[Hit], *, is_overview: bool
) -> list[Hit]:
    """Return the hits with what the candidates lack: late turns, reasons of changes, and titles on request.

    ``is_overview``: insights are among the hits, and say how many newer notes they lack.
    """
    if is_current(request):
        hits = await _with_late_turns(store, scope, hits)
    hits = await _with_changes(store, scope, hits)
    if is_overview and is_current(request):
        numbers = await behind(store, scope, [hit.note for hit in hits])
        hits = [_with_why(hit, behind=numbers.get(hit.note.id)) for hit in hits]
    return await _with_titles(store, scope, hits) if request.explain else hits


async def questions_of(
    store: GraphStore, scope: Scope, hits: Sequence[Hit], known_at: datetime | None
) -> dict[str, Note]:
    """Return the notes that the hits answer, by id, as of ``known_at`` (None: now), without archived ones."""
    ids = sorted({hit.answers for hit in hits if hit.answers is not None})
    if not ids:
        return {}
    current = await store.notes(scope, ids)
    now = present_micros()
    ids = [id for id in ids if id in current and not (current[id].archived or expired(current[id], now))]
    notes = current if known_at is None else await known_then(store, scope, ids, known_at)
    return {id: notes[id] for id in ids if id in notes}


async def _with_late_turns(store: GraphStore, scope: Scope, hits: list[Hit]) -> list[Hit]:
    """Return the hits, also with the questions that are too many parts before the hit to be candidates."""
    return [
        hit.model_copy(update={"answers": await question_before(store, scope, hit.note)})
        if hit.answers is None and is_late_part(hit.note) and not hit.note.archived
        else hit
        for hit in hits
    ]


async def _with_changes(store: GraphStore, scope: Scope, hits: list[Hit]) -> list[Hit]:
    """Return the hits; those with a replaced part name the change."""
    updated = sorted(hit.note.id for hit in hits if hit.why.updated_by)
    if not updated:
        return hits
    links = await store.links(scope, updated)
    reasons = {(link.target, link.source): link.reason for link in links if link.type is LinkType.UPDATES}
    changes = {hit.note.id: reasons.get((hit.note.id, hit.why.updated_by or "")) for hit in hits}
    return [
        _with_why(hit, time=f"{hit.why.time}: {change.removeprefix(REASON)}")
        if (change := changes[hit.note.id])
        else hit
        for hit in hits
    ]


async def _with_titles(store: GraphStore, scope: Scope, hits: list[Hit]) -> list[Hit]:
    """Return the hits, with titles or captions in place of note ids on their paths."""
    ids = {step.note for hit in hits for step in hit.why.path if step.note}
    notes = await store.notes(scope, sorted(ids))
    names = {id: note.title or note.caption or id for id, note in notes.items()}

    def named(step: Step) -> Step:
        return step.model_copy(update={"name": names.get(step.note or "", step.name)})

    return [_with_why(hit, path=tuple(map(named, hit.why.path))) for hit in hits]


def _with_feature(hit: Hit, name: str, value: float | None) -> Hit:
    if value is None:
        return hit
    return _with_why(hit, features=hit.why.features | {name: round(value, 4)})


def _with_why(hit: Hit, **fields: object) -> Hit:
    return hit.model_copy(update={"why": hit.why.model_copy(update=fields)})
