"""Derives keywords and the importance of a note from its neighbours.

Both depend on the text of the neighbours and on links, not on keywords that were spread before. So keywords do not
spread any further, and a second run changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log2

from zettel.link.near import Binding
from zettel.model import Link, LinkType, TermUse
from zettel.ports.candidate_rules import RARE_TERM_DF
from zettel.text.tokens import tokenize

NEIGHBOURS = 32
"""The most neighbours of a note that count, those with the strongest links."""
MIN_NEIGHBOURS = 2
"""The fewest neighbours that must share a term."""
MAX_SPREAD = 3
"""The most keywords that a note gets from its neighbours, so that the notes of a busy topic stay different."""
BASE_IMPORTANCE = 0.5
"""The importance of a note without links."""
STEP = 0.1
"""The gain in importance each time the links double."""
MAX_STEPS = 4
"""The most steps: more than 16 links add no importance."""
_TIES = frozenset({LinkType.RELATES, LinkType.MENTIONS})


def spread(
    tokens: Collection[str], neighbours: Sequence[Binding], df: Mapping[str, int], speakers: Collection[str]
) -> tuple[TermUse, ...]:
    """Return the terms that neighbours share and the note lacks, most frequent first.

    ``neighbours`` are the terms of each neighbour, ``tokens`` the tokens of the note. ``df`` is the document frequency
    of each token; a term is as rare as its rarest token. ``speakers`` are case-folded names, which are not terms.
    """
    terms_by_key: dict[str, list[TermUse]] = {}
    for binding in neighbours:
        for key, term in binding.items():
            terms_by_key.setdefault(key, []).append(term)
    candidates: list[tuple[int, int, str]] = []
    for key, terms in terms_by_key.items():
        rarity = min((df.get(token, 0) for token in tokens_of(terms[0])), default=0)
        if len(terms) >= MIN_NEIGHBOURS and key not in speakers and 0 < rarity <= RARE_TERM_DF:
            candidates.append((-len(terms), rarity, key))
    chosen: list[TermUse] = []
    used = set(tokens)
    for _, _, key in sorted(candidates):
        parts = tokens_of(terms_by_key[key][0])
        if used.isdisjoint(parts):
            used.update(parts)
            chosen.append(terms_by_key[key][-1])
    return tuple(chosen[:MAX_SPREAD])


def strongest_ties(notes: Iterable[str], links: Iterable[Link]) -> dict[str, dict[str, float]]:
    """Return the notes linked to each note by RELATES or MENTIONS, with the weight of the strongest link."""
    ties: dict[str, dict[str, float]] = {id: {} for id in notes}
    for link in links:
        for id, other in ((link.source, link.target), (link.target, link.source)):
            if id in ties and link.type in _TIES:
                ties[id][other] = max(link.weight, ties[id].get(other, 0.0))
    return ties


def tokens_of(term: TermUse) -> list[str]:
    """Return the tokens of a term: the key of a keyword, or the tokens of a name."""
    return term.key.split() if term.kind == "keyword" else tokenize(term.text)


def importance(links: int) -> float:
    """Return the importance for a number of links, 0.5 to 0.9: one step per doubling, so that it rarely changes."""
    return BASE_IMPORTANCE if links < 1 else round(BASE_IMPORTANCE + STEP * min(int(log2(links)), MAX_STEPS), 1)
