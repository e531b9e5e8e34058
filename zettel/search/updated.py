"""Ranks a note that replaces a part of an older note before it, if the question concerns that part.

Example: of "I live in Porto and work at Apple." and "We moved to Braga." the first answers "Where do I work?", and the
second "Where is home?".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from zettel.link.fact_changes import replaced_part
from zettel.model import TIME_MAX, LinkType
from zettel.scoring.ranking import outdated
from zettel.text.tokens import tokenize

if TYPE_CHECKING:
    from zettel.model import Note
    from zettel.ports.query import Candidates

DEPTH = 20
"""Best notes in which updated ones are examined."""
_UPDATES = tuple(LinkType).index(LinkType.UPDATES)


def updates(candidates: Candidates, today: int | None) -> dict[int, int]:
    """Return rows of valid notes with the row of the latest valid note that replaces a part of them."""
    made = np.flatnonzero(candidates.link_type == _UPDATES)
    if not len(made):
        return {}
    old, latest = outdated(candidates, today), TIME_MAX if today is None else today
    begun = candidates.valid_from <= latest
    pairs = zip(candidates.link_source[made].tolist(), candidates.link_target[made].tolist(), strict=True)
    valid = [(source, target) for source, target in pairs if begun[source] and not old[source] and not old[target]]
    valid.sort(key=lambda pair: (candidates.valid_from[pair[0]], candidates.seq[pair[0]]))
    return {target: source for source, target in valid}


def newer_first(
    question: str, rows: Sequence[int], updated: Mapping[int, int], candidates: Candidates, notes: Mapping[str, Note]
) -> list[int]:
    """Return the rows in an order in which a note follows the one that replaces the part that the question concerns."""
    order = list(rows)
    for older, newer in updated.items():
        if older not in order or newer not in order or order.index(newer) < order.index(older):
            continue
        if concerns_change(question, notes[candidates.ids[older]], notes[candidates.ids[newer]]):
            order.remove(newer)
            order.insert(order.index(older), newer)
    return order


def concerns_change(question: str, older: Note, newer: Note) -> bool:
    """Return whether a question is rather about the replaced part of a note than about the rest of it.

    Either the newer note has all words of the question that the older one has, or the part has more of them.
    """
    old, new = set(tokenize(older.content)), set(tokenize(newer.content))
    asked, replaced = set(tokenize(question)) & old, set(tokenize(replaced_part(older, newer)))
    return bool(asked) and (asked <= new or len(asked & replaced) > len(asked - replaced))
