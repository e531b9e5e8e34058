"""Ranks notes of full trust before doubtful ones that claim to answer the same question.

An attacker who knows the question writes the note that fits it best. So the search ranks the other notes as if the
doubtful ones did not exist. If one of the first of them fits the question, doubtful notes rank after the first AHEAD,
whatever their scores. If none fits, the order stays.

A note is doubtful if its writer or its flags lower the trust in it below that of its role. A text of a tool or a
document is doubtful, too, if it repeats the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from zettel.core.authority import is_on_probation, is_trusted, trust
from zettel.scoring.ranking import Ranked, outdated, with_rows_of
from zettel.text.tokens import clean, words

if TYPE_CHECKING:
    from zettel.model import Note
    from zettel.ports.query import Candidates, Floats, Question

AHEAD = 3
"""Other notes that rank before a doubtful one."""
FIRST = 5
"""First notes of full trust, one of which has to fit the question."""
MIN_COVERAGE = 0.3
"""Least share of the question's words, by rarity, in a note that fits it."""
MIN_COSINE = 0.45
"""Least cosine of a note that fits the question in other words."""
MIN_SCORE = 0.1
"""Least score of a note that fits it, if its cosine is at least MIN_OWN_COSINE: a score also counts the words of its
neighbours, which may be doubtful."""
MIN_OWN_COSINE = 0.25
MAX_TRUST = 0.5
"""Highest trust of a text that is doubtful for repeating the question: that of tools and documents."""
MIN_REPEATED = 0.7
"""Least share of the question's pairs of words in a text that repeats it."""
MIN_PAIRS = 2
"""Pairs of words in the shortest question that a text can repeat."""


def is_doubtful(note: Note, question: str) -> bool:
    """Return whether notes of full trust that fit the question rank before this one."""
    if is_trusted(note):
        return False
    return is_on_probation(note) or (trust(note) <= MAX_TRUST and repeats_question(note, question))


def repeats_question(note: Note, question: str) -> bool:
    """Return whether the title or the text of a note repeats the wording of a question."""
    asked = _pairs(question)
    if len(asked) < MIN_PAIRS:
        return False
    text = " ".join(f"{note.title or ''} {note.content}".casefold().split())
    return sum(pair in text for pair in asked) >= MIN_REPEATED * len(asked)


def fits_any(question: Question, candidates: Candidates, rows: Sequence[int], score: Floats) -> bool:
    """Return whether one of the FIRST rows may answer.

    It is valid, and its score, the question's words in it or its vector suggest so. Each of the bounds was chosen on
    half of ``tests/data/poison``: lower ones also hide notes that alone answer.
    """
    if not rows:
        return False
    first = np.array(rows[:FIRST], np.int64)
    least = MIN_COVERAGE * max(float(question.rarity.sum()), 1e-9)
    fits = ((candidates.tf[first] > 0) @ question.rarity >= least) | (candidates.cosine[first] >= MIN_COSINE)
    fits |= (score[first] >= MIN_SCORE) & (candidates.cosine[first] >= MIN_OWN_COSINE)
    return bool((fits & ~candidates.is_question[first] & ~outdated(candidates, question.valid_at)[first]).any())


def merged(ranked: Ranked, doubtful: Ranked) -> Ranked:
    """Return a ranking without doubtful notes, with those of another ranking after the first AHEAD rows.

    Scores are lowered where a note now ranks after one of lower score.
    """
    late = doubtful.rows
    scores = with_rows_of(ranked.scores, doubtful.scores, late)
    score = scores.score
    rest = sorted([*ranked.rows[AHEAD:], *late], key=lambda row: -float(score[row]))
    rows = [*ranked.rows[:AHEAD], *rest]
    score[rows] = np.minimum.accumulate(score[rows])
    return ranked._replace(rows=rows, scores=scores)


@lru_cache(maxsize=16)
def _pairs(question: str) -> frozenset[str]:
    """Return the pairs of neighbouring words of a question."""
    return frozenset(map(" ".join, pairwise(word.text.casefold() for word in words(clean(question)))))
