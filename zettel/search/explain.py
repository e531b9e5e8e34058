"""Explains a hit: its sources, features, path and validity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zettel.model import TIME_MAX, TIME_MIN, LinkType, Step, Why, from_micros
from zettel.ports.query import Seed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zettel.ports.query import Candidates, Scores

LONGEST_PATH = 8
"""Longest path: a longer one has no influence."""
REVERSED = "~"
"""Prefix of a link type that the walk followed against its direction."""
_LINK_TYPES = tuple(LinkType)
_SEEDS = tuple((int(seed), str(seed.name).lower()) for seed in Seed)


def explain(
    row: int,
    candidates: Candidates,
    scores: Scores,
    scorer: str,
    today: int | None,
    strength: float | None = None,
    *,
    trust: float = 1.0,
    disputed: tuple[int, int] | None = None,
    updated_by: int | None = None,
    full: bool = True,
) -> Why:
    """Explain the hit at ``row``.

    ``strength`` is that of a decayed note, ``updated_by`` the row of a note that replaces a part of it; ``full`` adds
    the features and the path.
    """
    values = contributions(row, scores) if full else {}
    return Why(
        scorer=scorer,
        seeds=tuple(name for flag, name in _SEEDS if candidates.seeds[row] & flag),
        features={name: round(value, 4) for name, value in values.items() if round(value, 4)},
        local_score=round(float(scores.local_score[row]), 4),
        graph_score=round(float(scores.graph_score[row]), 6),
        path=path_to(row, candidates, scores) if full else (),
        time=validity(row, candidates, today) if updated_by is None else _partly_replaced(updated_by, candidates),
        strength=None if strength is None else round(strength, 4),
        superseded_by=replacement(row, candidates) if candidates.valid_to[row] < TIME_MAX else None,
        updated_by=None if updated_by is None else candidates.ids[updated_by],
        trust=trust,
        disputed=disputed,
    )


def contributions(row: int, scores: Scores) -> Mapping[str, float]:
    """Return the parts of the local score of ``row`` by name."""
    if scores.explanation is not None:
        return scores.explanation(row)
    return dict(zip(scores.feature_names, scores.features[row].tolist(), strict=True))


def path_to(row: int, candidates: Candidates, scores: Scores) -> tuple[Step, ...]:
    """The nodes before the hit on the walk, each with the link to the next.

    Empty if the walk started at the hit for its local score alone.
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
    """The type of the link between a note and a node: of several, the first in the order of ``LinkType``."""
    if target >= len(candidates.ids):
        return "HAS_TERM"
    ends, starts = candidates.link_target, candidates.link_source
    for start, end, sign in ((source, target, ""), (target, source, REVERSED)):
        types = {_LINK_TYPES[candidates.link_type[i]] for i in np.flatnonzero((starts == start) & (ends == end))}
        for kind in LinkType:
            if kind in types:
                return sign + kind.value
    return "NEXT" if candidates.next[source] == target else REVERSED + "NEXT"


def validity(row: int, candidates: Candidates, today: int | None) -> str:
    """The validity in words; "" for a note without limits."""
    start, end = int(candidates.valid_from[row]), int(candidates.valid_to[row])
    if end < start:
        return "never valid"
    if end < TIME_MAX and (today is None or end <= today):
        return f"no longer valid since {_day(end)}"
    if end < TIME_MAX:
        return f"valid until {_day(end)}"
    return f"valid from {_day(start)}" if start > TIME_MIN else ""


def _partly_replaced(newer: int, candidates: Candidates) -> str:
    start = int(candidates.valid_from[newer])
    return "partly replaced" if start <= TIME_MIN else f"partly replaced since {_day(start)}"


def _day(micros: int) -> str:
    return "ever" if micros <= TIME_MIN else from_micros(micros).date().isoformat()


def replacement(row: int, candidates: Candidates) -> str | None:
    """The id of the first replacement of a note, if any."""
    newer = [
        int(candidates.link_source[i])
        for i in np.flatnonzero(candidates.link_target == row)
        if _LINK_TYPES[candidates.link_type[i]] is LinkType.SUPERSEDES
    ]
    first = min(newer, key=lambda r: (candidates.valid_from[r], candidates.seq[r]), default=None)
    return None if first is None else candidates.ids[first]
