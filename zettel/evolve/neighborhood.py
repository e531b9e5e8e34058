"""Derives keywords and the importance of a note from its neighbours.

Both depend on the text of the neighbours and on links, never on keywords that were spread before. So keywords do not
move from neighbour to neighbour, and a second run changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log2

from zettel.link.near import Binding
from zettel.model import Link, LinkType, TermUse
from zettel.ports.candidate_rules import RARE_TERM_DF
from zettel.text.tokens import tokenize

NEIGHBOURS = 32
"""The strongest links of a note that are read."""
MIN_NEIGHBOURS = 2
"""Neighbours that must share a term."""
MAX_SPREAD = 3
"""Keywords that a note gets from its neighbours at most, so that the notes of a busy topic stay different."""
BASE_IMPORTANCE = 0.5
"""The importance of a note without links."""
STEP = 0.1
"""The gain in importance each time the links double."""
MAX_STEPS = 4
"""More than 16 links add no importance."""
_TIES = frozenset({LinkType.RELATES, LinkType.MENTIONS})


def spread(
    tokens: Collection[str], around: Sequence[Binding], df: Mapping[str, int], speakers: Collection[str]
) -> tuple[TermUse, ...]:
    """Return the terms that neighbours share and the note lacks, most frequent first.

    ``around`` are the terms of each neighbour, ``tokens`` those of the note. ``df`` is the document frequency of each
    token; a term is as rare as its rarest token. ``speakers`` are case-folded names, which are left out.
    """
    terms_by_key: dict[str, list[TermUse]] = {}
    for binding in around:
        for key, term in binding.items():
            terms_by_key.setdefault(key, []).append(term)
    offered: list[tuple[int, int, str]] = []
    for key, terms in terms_by_key.items():
        rarity = min((df.get(token, 0) for token in tokens_of(terms[0])), default=0)
        if len(terms) >= MIN_NEIGHBOURS and key not in speakers and 0 < rarity <= RARE_TERM_DF:
            offered.append((-len(terms), rarity, key))
    taken: list[TermUse] = []
    used = set(tokens)
    for _, _, key in sorted(offered):
        parts = tokens_of(terms_by_key[key][0])
        if used.isdisjoint(parts):
            used.update(parts)
            taken.append(terms_by_key[key][-1])
    return tuple(taken[:MAX_SPREAD])


def strongest_ties(notes: Iterable[str], links: Iterable[Link]) -> dict[str, dict[str, float]]:
    """Return the notes linked to each note by RELATES or MENTIONS, with the weight of the strongest link."""
    ties: dict[str, dict[str, float]] = {id: {} for id in notes}
    for link in links:
        for here, there in ((link.source, link.target), (link.target, link.source)):
            if here in ties and link.type in _TIES:
                ties[here][there] = max(link.weight, ties[here].get(there, 0.0))
    return ties


def tokens_of(term: TermUse) -> list[str]:
    """Return the tokens of a term: the key of a keyword, or the tokens of a name."""
    return term.key.split() if term.kind == "keyword" else tokenize(term.text)


def importance(links: int) -> float:
    """Return the importance by number of links, 0.5 .. 0.9: one step per doubling, so that it rarely changes."""
    return BASE_IMPORTANCE if links < 1 else round(BASE_IMPORTANCE + STEP * min(int(log2(links)), MAX_STEPS), 1)
