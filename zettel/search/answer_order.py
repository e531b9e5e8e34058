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

from zettel.link.fact_changes import replaced_part
from zettel.model import LinkType
from zettel.model.base import to_micros
from zettel.scoring.answering import AnswerOrder, order_answers
from zettel.scoring.first_person import Verdict
from zettel.scoring.ranking import outdated
from zettel.search.asked_fact import CERTAIN, AskedFact, asked_fact, stated_fact, stating
from zettel.search.updated import newer_first
from zettel.text.tokens import tokenize

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
        score = in_order(score, rows)
    examined = rows[:most]
    texts = [notes[candidates.ids[row]] for row in examined]
    old = replaced(candidates, examined, question.valid_at)
    weaker = {place for place, row in enumerate(examined) if row in outvoted}
    answers: AnswerOrder | None = order_answers(question.text, texts, candidates.speaker_names, old, weaker)
    asked = asked_fact(question.text, bool(question.times))
    first: list[int] = []
    if asked is not None:
        newer = {place: [at for at, row in enumerate(examined) if row in updated.get(examined[place], ())]
                 for place in range(len(examined))}  # fmt: skip
        former = old | _replaced_facts(asked, texts, newer)
        first = [place for place in _answering(asked, texts, former, question) if place not in weaker]
    if answers is None and not first:
        return rows, score, {}
    places, verdicts = answers or AnswerOrder(list(range(len(texts))), [Verdict.UNSURE] * len(texts))
    moved = [examined[place] for place in dict.fromkeys((*first, *places))]
    changed = in_order(score, moved)
    changed[moved[: len(first)]] = np.maximum(changed[moved[: len(first)]], CERTAIN)
    judged = {row: 1.0 if place in first else float(verdicts[place]) for place, row in enumerate(examined)}
    return moved + rows[len(examined) :], changed, judged


def _replaced_facts(asked: AskedFact, notes: Sequence[Note], newer: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return the places of notes of which a newer one replaced the fact that is asked for, each with that one's."""
    replacements = {}
    for place, others in newer.items():
        fact = stated_fact(asked, notes[place]) if others else None
        for other in others if fact else ():
            part = set(tokenize(replaced_part(notes[place], notes[other])))
            # "my wife Ana" in passing is not a statement that a move replaces
            if fact is not None and fact.attribute == asked.attribute and set(tokenize(fact.value.text)) <= part:
                replacements[place] = other
    return replacements


def _answering(asked: AskedFact, notes: Sequence[Note], old: Mapping[int, int], question: Question) -> list[int]:
    """Return the places of the notes that answer a question for a fact by stating it at the time it asks for."""
    stated = stating(asked, notes)
    if asked.when == "now":
        # "I moved from Leeds to Bristol" answers in place of "I live in Leeds", even if its own words state no home.
        current = [old.get(place, place) for place in stated]
        return list(dict.fromkeys(sorted(current, key=lambda place: place in old)))
    if asked.when == "before":
        return [place for rank, place in enumerate(stated) if rank or place in old]
    end = max(end for _, end in question.times)
    begun = [place for place in stated if (start := notes[place].valid_from) and to_micros(start) <= end]
    return begun[:1]


def in_order(score: Floats, rows: Sequence[int]) -> Floats:
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
