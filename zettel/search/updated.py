"""Ranks a note that replaces a part of an older note before it, if the question concerns that part.

Example: of "I live in Porto and work at Apple." and "We moved to Braga." the first answers "Where do I work?", and the
second "Where is home?".
"""

from __future__ import annotations

from collections import defaultdict
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
_SUPERSEDES, _UPDATES, _DERIVED = (
    tuple(LinkType).index(type) for type in (LinkType.SUPERSEDES, LinkType.UPDATES, LinkType.DERIVED_FROM)
)


def updates(candidates: Candidates, today: int | None) -> dict[int, list[int]]:
    """Return rows of valid notes, each with the rows of valid notes that replace a part of it, the latest last.

    A note that supersedes a fact also replaces a part of the messages that the fact was derived from.
    """
    made = np.flatnonzero((candidates.link_type == _UPDATES) | (candidates.link_type == _SUPERSEDES))
    if not len(made):
        return {}
    old, latest = outdated(candidates, today), TIME_MAX if today is None else today
    begun = candidates.valid_from <= latest
    sources: dict[int, list[int]] = defaultdict(list)
    for at in np.flatnonzero(candidates.link_type == _DERIVED).tolist():
        sources[int(candidates.link_source[at])].append(int(candidates.link_target[at]))
    updated: dict[int, set[int]] = defaultdict(set)
    for at in made.tolist():
        newer, older = int(candidates.link_source[at]), int(candidates.link_target[at])
        if begun[newer] and not old[newer]:
            targets = [older] if candidates.link_type[at] == _UPDATES else sources[older]
            for target in targets:
                if not old[target]:
                    updated[target].add(newer)
    return {
        older: sorted(newer, key=lambda row: (candidates.valid_from[row], candidates.seq[row]))
        for older, newer in updated.items()
    }


def newer_first(
    question: str,
    rows: Sequence[int],
    updated: Mapping[int, Sequence[int]],
    candidates: Candidates,
    notes: Mapping[str, Note],
) -> list[int]:
    """Return the rows in an order in which a note follows those that replace the part that the question concerns."""
    order = list(rows)
    for older, replacements in updated.items():
        for newer in replacements:
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
