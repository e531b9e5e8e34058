"""What a neighbourhood tells about a note: words that bind it, and how much rests on the note.

Both are functions of what the notes around it say and of the links between them, never of what was spread before: so
words do not wander from neighbour to neighbour, and deciding again decides the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log2

from zettel.annotate.tokens import tokenize
from zettel.link.near import Binding
from zettel.model import Link, LinkType
from zettel.ports import TermUse
from zettel.search.pool import RARE_TERM_DF

NEIGHBOURS = 32
"""Strongest links of a note that are looked at: a hub stands for itself."""
HOLDERS = 2
"""Neighbours that must have a Term in common: what one says is its own."""
MAX_SPREAD = 3
"""Words a note gets at most from around it, so that a busy topic does not blur into one."""
PLAIN = 0.5
"""Importance of a note without links, as every note begins."""
STEP = 0.1
"""What importance gains each time the links double."""
MOST_STEPS = 4
"""From 16 links on a note is as important as links alone can make it."""
_TIES = frozenset({LinkType.RELATES, LinkType.MENTIONS})


def spread(
    tokens: Collection[str], around: Sequence[Binding], df: Mapping[str, int], speakers: Collection[str]
) -> tuple[TermUse, ...]:
    """The Terms that bind the notes ``around`` one and that it lacks, those of most notes first.

    ``tokens`` are what the note says itself; ``df`` in how many notes each token of the scope stands (a Term is as rare
    as its rarest token); ``speakers``, case-folded, bind nothing.
    """
    held: dict[str, list[TermUse]] = {}
    for binding in around:
        for key, term in binding.items():
            held.setdefault(key, []).append(term)
    offered: list[tuple[int, int, str]] = []
    for key, terms in held.items():
        rarity = min((df.get(token, 0) for token in tokens_of(terms[0])), default=0)
        if len(terms) >= HOLDERS and key not in speakers and 0 < rarity <= RARE_TERM_DF:
            offered.append((-len(terms), rarity, key))
    taken: list[TermUse] = []
    used = set(tokens)
    for _, _, key in sorted(offered):
        parts = tokens_of(held[key][0])
        if used.isdisjoint(parts):
            used.update(parts)
            taken.append(held[key][-1])
    return tuple(taken[:MAX_SPREAD])


def strongest_ties(notes: Iterable[str], links: Iterable[Link]) -> dict[str, dict[str, float]]:
    """Of each note what it is related to or mentions, or is mentioned by, with the weight of the strongest link."""
    ties: dict[str, dict[str, float]] = {id: {} for id in notes}
    for link in links:
        for here, there in ((link.source, link.target), (link.target, link.source)):
            if here in ties and link.type in _TIES:
                ties[here][there] = max(link.weight, ties[here].get(there, 0.0))
    return ties


def tokens_of(term: TermUse) -> list[str]:
    """The tokens of a Term: keywords have them for a key, names are written out."""
    return term.key.split() if term.kind == "keyword" else tokenize(term.text)


def importance(links: int) -> float:
    """How much rests on a note with so many links, 0.5 .. 0.9: a step for each doubling, so that it moves seldom."""
    return PLAIN if links < 1 else round(PLAIN + STEP * min(int(log2(links)), MOST_STEPS), 1)
