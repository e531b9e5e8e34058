"""Reorders the best hits of a question about a fact or a current state by how well they answer it.

Scorers know words, vectors and links. This step reads the notes themselves: notes that state the fact that is asked for
(:mod:`zettel.search.asked_fact`) rank first, then those that answer by their words (:mod:`zettel.scoring.answering`).
A note that replaces the part of another that is asked for ranks before it (:mod:`zettel.search.updated`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from zettel.model import LinkType
from zettel.scoring.answering import AnswerOrder, order_answers
from zettel.scoring.first_person import Verdict
from zettel.scoring.ranking import outdated
from zettel.search.asked_fact import CERTAIN, asked_fact, stating
from zettel.search.updated import newer_first

if TYPE_CHECKING:
    from zettel.model import Note
    from zettel.ports.query import Candidates, Floats, Question

_SUPERSEDES, _DERIVED = (tuple(LinkType).index(kind) for kind in (LinkType.SUPERSEDES, LinkType.DERIVED_FROM))


def reorder_by_answer(
    question: Question,
    candidates: Candidates,
    score: Floats,
    rows: Sequence[int],
    notes: Mapping[str, Note],
    most: int,
    outvoted: Collection[int] = (),
    updated: Mapping[int, Sequence[int]] = MappingProxyType({}),
) -> tuple[list[int], Floats, dict[int, float]]:
    """The rows in the new order, all scores reassigned to that order, and the verdict on each row.

    A verdict is 1 if the note answers, -1 if it certainly does not, else 0. Examines the first ``most`` rows. Drops
    rows whose note is not in ``notes`` (by id). The ``outvoted`` rows rank after other answers.
    ``updated`` are rows with those that replace a part of them.
    """
    found = [row for row in rows if candidates.ids[row] in notes]
    rows = newer_first(question.text, found, updated, candidates, notes)
    if rows != found:
        score = _in_order(score, rows)
    examined = rows[:most]
    texts = [notes[candidates.ids[row]] for row in examined]
    old = replaced(candidates, examined, question.valid_at)
    weaker = {place for place, row in enumerate(examined) if row in outvoted}
    answers: AnswerOrder | None = order_answers(question.text, texts, candidates.speaker_names, old, weaker)
    asked = asked_fact(question.text)
    first = [] if asked is None else [place for place in stating(asked, texts) if place not in weaker]
    first.sort(key=lambda place: place in old)  # an outdated note may still be right about something else
    if answers is None and not first:
        return rows, score, {}
    places, verdicts = answers or AnswerOrder(list(range(len(texts))), [Verdict.UNSURE] * len(texts))
    moved = [examined[place] for place in dict.fromkeys((*first, *places))]
    changed = _in_order(score, moved)
    changed[moved[: len(first)]] = np.maximum(changed[moved[: len(first)]], CERTAIN)
    judged = {row: 1.0 if place in first else float(verdicts[place]) for place, row in enumerate(examined)}
    return moved + rows[len(examined) :], changed, judged


def _in_order(score: Floats, rows: Sequence[int]) -> Floats:
    """Return the scores of these rows, reassigned so that they fall in this order."""
    changed: Floats = score.copy()
    changed[list(rows)] = np.sort(score[list(rows)])[::-1]
    return changed


def replaced(candidates: Candidates, rows: Sequence[int], today: int | None) -> dict[int, int]:
    """Places of the outdated rows, each with the place of its replacement, or with its own if ``rows`` lack that.

    The sources of an outdated fact are outdated too.
    """
    old = outdated(candidates, today)
    place = {row: at for at, row in enumerate(rows)}
    replacements = {at: at for row, at in place.items() if old[row]}
    links = list(zip(candidates.link_type.tolist(), candidates.link_source.tolist(), candidates.link_target.tolist(),
                     strict=True))  # fmt: skip
    newer = {target: source for kind, source, target in links if kind == _SUPERSEDES and old[target]}
    for target, source in newer.items():
        if target in place and source in place:
            replacements[place[target]] = place[source]
    for kind, source, target in links:
        if kind == _DERIVED and source in newer and target in place and target not in newer:
            replacements[place[target]] = place.get(newer[source], place[target])
    return replacements
