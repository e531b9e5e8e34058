"""Reorders the best notes of a ranking by what they state, if the question asks for a fact or a current state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from zettel.ports import AnsweringScorer, Scorer
from zettel.scoring.answering import parse_state_question
from zettel.search.announced import DEPTH as ANNOUNCED_DEPTH
from zettel.search.announced import announced_first, asks_about_now
from zettel.search.answer_order import in_order, reorder_by_answer
from zettel.search.asked_fact import asked_fact
from zettel.search.disputed import is_outvoted
from zettel.search.updated import DEPTH as UPDATED_DEPTH

if TYPE_CHECKING:
    from zettel.model import Note
    from zettel.ports.query import Question, SearchRequest
    from zettel.scoring.ranking import Ranked


def examined(question: Question, scorer: Scorer, updated: Mapping[int, Sequence[int]]) -> int:
    """Return the number of best notes to examine.

    0 unless the question asks for a fact or a current state, or a part of a note is replaced.
    """
    announced = ANNOUNCED_DEPTH if _most_reordered(scorer) and asks_about_now(question.text) else 0
    return answer_depth(question, scorer) or announced or (UPDATED_DEPTH if updated else 0)


def answer_depth(question: Question, scorer: Scorer) -> int:
    """Return the number of best notes to examine for answers; 0 unless a fact or a current state is asked for."""
    is_asked = asked_fact(question.text, bool(question.times)) or parse_state_question(question.text)
    return _most_reordered(scorer) if is_asked else 0


def _most_reordered(scorer: Scorer) -> int:
    """Return the number of best notes that are reordered by what they state."""
    return scorer.answer_depth if isinstance(scorer, AnsweringScorer) else 0


def reordered(
    request: SearchRequest, ranked: Ranked, notes: Mapping[str, Note], scorer: Scorer, reads: int
) -> Ranked:
    """Return the ranking as :func:`reorder_by_answer` orders it, cut to the hits and the notes that rerankers read."""
    most = examined(ranked.question, scorer, ranked.updated)
    if not most:
        return ranked
    question, candidates, scores = ranked.question, ranked.candidates, ranked.scores
    outvoted = {row for row, confidence in ranked.confidences.items() if is_outvoted(confidence)}
    rows, score, answer_scores = reorder_by_answer(
        question, candidates, scores.score, ranked.rows, notes, most, outvoted, ranked.updated
    )
    if _most_reordered(scorer) and question.valid_at is not None:
        found = [notes[candidates.ids[row]] for row in rows]
        order = [rows[place] for place in announced_first(question.text, found, question.valid_at)]
        if order != rows:
            rows, score = order, in_order(score, order)
            answer_scores = answer_scores | {rows[0]: 1.0}
    least = request.min_score or 0.0
    rows = [row for row in rows[: max(request.k, reads)] if score[row] >= least]
    return ranked._replace(rows=rows, scores=replace(scores, score=score), extra_features={"statement": answer_scores})
