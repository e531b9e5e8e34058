"""Why a hit was found: what seeded it, what each feature gave, and the way the walk took to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zettel.model import TIME_MAX, TIME_MIN, LinkType, Step, Why, from_micros
from zettel.query import Seed

if TYPE_CHECKING:
    from zettel.query import Candidates, Scores

LONGEST_PATH = 8
"""Steps that are told: the walk forgets by then."""
REVERSED = "~"
"""Stands before a link's type where the walk went against its direction."""
_LINK_TYPES = tuple(LinkType)
_SEEDS = tuple((int(seed), str(seed.name).lower()) for seed in Seed)


def explain(
    row: int,
    candidates: Candidates,
    scores: Scores,
    scorer: str,
    today: int | None,
    faint: float | None = None,
    *,
    full: bool = True,
) -> Why:
    """How the hit at ``row`` came about; ``faint`` is its strength if that lowered its score, ``full`` adds the
    features and the path."""
    told = zip(scores.feature_names, scores.features[row].tolist(), strict=True) if full else ()
    return Why(
        scorer=scorer,
        seeds=tuple(name for flag, name in _SEEDS if candidates.seeds[row] & flag),
        features={name: round(value, 4) for name, value in told if value},
        near=round(float(scores.near[row]), 4),
        walk=round(float(scores.walk[row]), 6),
        path=path_to(row, candidates, scores) if full else (),
        time=validity(row, candidates, today),
        strength=None if faint is None else round(faint, 4),
        superseded_by=replacement(row, candidates) if candidates.valid_to[row] < TIME_MAX else None,
    )


def path_to(row: int, candidates: Candidates, scores: Scores) -> tuple[Step, ...]:
    """The nodes that the walk came through, each with the link it left by; without the hit itself.

    Empty when the walk started at the hit for its local score alone.
    """
    n = len(candidates.ids)
    steps: list[Step] = []
    node, seen = row, {row}
    while len(steps) < LONGEST_PATH:
        sender = scores.sender(node)
        if sender < 0:
            if node >= n:
                steps.append(Step(kind="question", name=candidates.term_keys[node - n], over="NAMES"))
            elif candidates.seeds[node] & Seed.TITLE:
                steps.append(Step(kind="question", name="title", over="NAMES"))
            break
        if sender in seen:
            break
        seen.add(sender)
        if sender >= n:
            steps.append(Step(kind="term", name=candidates.term_keys[sender - n], over=REVERSED + "HAS_TERM"))
        else:
            id = candidates.ids[sender]
            steps.append(Step(kind="note", name=id, over=_link(sender, node, candidates), note=id))
        node = sender
    return tuple(reversed(steps))


def _link(source: int, target: int, candidates: Candidates) -> str:
    """By which link the walk went from a note to a node: the first type that joins them, in the types' order."""
    if target >= len(candidates.ids):
        return "HAS_TERM"
    ends, starts = candidates.link_target, candidates.link_source
    for start, end, sign in ((source, target, ""), (target, source, REVERSED)):
        joining = {_LINK_TYPES[candidates.link_type[i]] for i in np.flatnonzero((starts == start) & (ends == end))}
        for kind in LinkType:
            if kind in joining:
                return sign + kind.value
    return "NEXT" if candidates.next[source] == target else REVERSED + "NEXT"


def validity(row: int, candidates: Candidates, today: int | None) -> str:
    """What the two ends of validity say, in words; empty for what always was and still is."""
    start, end = int(candidates.valid_from[row]), int(candidates.valid_to[row])
    if end < TIME_MAX and (today is None or end <= today):
        return f"no longer valid since {_day(end)}"
    if end < TIME_MAX:
        return f"valid until {_day(end)}"
    return f"valid from {_day(start)}" if start > TIME_MIN else ""


def _day(micros: int) -> str:
    return "ever" if micros <= TIME_MIN else from_micros(micros).date().isoformat()


def replacement(row: int, candidates: Candidates) -> str | None:
    """The id of the note that replaced this one first, if one did."""
    newer = [
        int(candidates.link_source[i])
        for i in np.flatnonzero(candidates.link_target == row)
        if _LINK_TYPES[candidates.link_type[i]] is LinkType.SUPERSEDES
    ]
    first = min(newer, key=lambda r: (candidates.valid_from[r], candidates.seq[r]), default=None)
    return None if first is None else candidates.ids[first]
