"""The best hits of a question about how something is now, read again and put in the order in which they answer it.

The scorer knows words, vectors and links; only here are the notes themselves at hand. See
:mod:`zettel.scoring.answering` for what is read in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from zettel.model import LinkType
from zettel.scoring.answering import Answering, order
from zettel.search.rank import outdated, repeats

if TYPE_CHECKING:
    from zettel.model import Note
    from zettel.query import Candidates, Floats, Question

_SUPERSEDES, _DERIVED = (tuple(LinkType).index(kind) for kind in (LinkType.SUPERSEDES, LinkType.DERIVED_FROM))


def read_again(
    question: Question,
    candidates: Candidates,
    score: Floats,
    rows: Sequence[int],
    notes: Mapping[str, Note],
    most: int,
    *,
    insights: bool = False,
) -> tuple[list[int], Floats, dict[int, float]]:
    """The rows in their new order, all scores with those of the rows exchanged to fit it, and what each row was worth.

    The first ``most`` rows are read; ``notes`` are by id, and a row without one is gone. Insights stay after all
    others, unless ``insights`` were asked for.
    """
    rows = [row for row in rows if candidates.ids[row] in notes]
    last = repeats(candidates, np.array(rows, np.int64), insights=insights)
    read = rows[: min(most, len(rows) - int(last.sum()))]
    found: Answering | None = order(
        question.text,
        [notes[candidates.ids[row]] for row in read],
        candidates.role_names,
        replaced(candidates, read, question.today),
    )
    if found is None:
        return rows, score, {}
    moved = [read[place] for place in found.places]
    changed = score.copy()
    changed[moved] = np.sort(score[read])[::-1]
    return moved + rows[len(read) :], changed, dict(zip(read, found.worth, strict=True))


def replaced(candidates: Candidates, rows: Sequence[int], today: int | None) -> dict[int, int]:
    """By the place among ``rows`` of what holds no more, the place of what replaced it, or its own if that is not here.

    What a fact was drawn from holds no more than the fact.
    """
    old = outdated(candidates, today)
    place = {row: at for at, row in enumerate(rows)}
    over = {at: at for row, at in place.items() if old[row]}
    links = list(zip(candidates.link_type.tolist(), candidates.link_source.tolist(), candidates.link_target.tolist(),
                     strict=True))  # fmt: skip
    newer = {target: source for kind, source, target in links if kind == _SUPERSEDES and old[target]}
    for target, source in newer.items():
        if target in place and source in place:
            over[place[target]] = place[source]
    for kind, source, target in links:
        if kind == _DERIVED and source in newer and target in place and target not in newer:
            over[place[target]] = place.get(newer[source], place[target])
    return over
