"""What counts: recall@k in events, so that merging or summarising notes buys nothing; and how two answers compare."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import NamedTuple

Hits = Sequence[Collection[str]]
"""Hits in rank order, each as the events its note stands for."""

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


class Evidence(NamedTuple):
    """A question's evidence: the events it needs, how many of its ids had to be split or mended, and the
    rest.
    """

    events: frozenset[str]
    mended: int
    dropped: int


class Asked(NamedTuple):
    """A question with what it needs and what was found; ``group`` is its category, ``score`` the first hit's."""

    group: str
    needed: frozenset[str]
    hits: Hits
    score: float | None = None


class Tally(NamedTuple):
    """Averages over ``questions``: ``recall`` of the needed events, ``perfect`` the share with all of them."""

    questions: int
    recall: float
    perfect: float


def read_evidence(ids: Iterable[str], known: Collection[str]) -> Evidence:
    """The turns that LoCoMo's evidence ids name, among those ``known``.

    Some of its ids are malformed: two in one (``"D8:6; D9:17"``), a colon too many (``"D:11:26"``), zeros in
    front (``"D30:05"``). What names no known turn even so is dropped.
    """
    events: set[str] = set()
    mended = dropped = 0
    for told in ids:
        if told in known:
            events.add(told)
            continue
        named = [f"D{int(session)}:{int(turn)}" for session, turn in _EVIDENCE.findall(told)]
        kept = [event for event in named if event in known]
        events.update(kept)
        mended += bool(kept)
        dropped += len(named) - len(kept) if named else 1
    return Evidence(frozenset(events), mended, dropped)


def found(hits: Hits, k: int) -> set[str]:
    """The events among the first ``k`` places.

    Hits are taken in order. Each spends as many places as it has events, also for those found already; the
    first that does not fit ends the count.
    """
    events: set[str] = set()
    places = k
    for hit in hits:
        places -= len(hit)
        if places < 0:
            break
        events.update(hit)
    return events


def recall(hits: Hits, needed: Collection[str], k: int) -> float:
    """The share of the needed events among the first ``k`` places; at least one must be needed."""
    return len(found(hits, k).intersection(needed)) / len(needed)


def tally(asked: Sequence[Asked], k: int) -> Tally:
    """Averages over the questions that need something; zeros if there is none."""
    recalls = [recall(one.hits, one.needed, k) for one in asked if one.needed]
    if not recalls:
        return Tally(0, 0.0, 0.0)
    perfect = sum(value == 1.0 for value in recalls)
    return Tally(len(recalls), sum(recalls) / len(recalls), perfect / len(recalls))


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """How well scores tell positives from negatives: the chance that one of these scores above one of those.

    The area under the ROC curve as the Mann-Whitney statistic, ties for a half; 0.5 is chance. None if either is
    empty. Hanley and McNeil 1982, "The Meaning and Use of the Area under a Receiver Operating Characteristic Curve".
    """
    if not positive or not negative:
        return None
    ordered = sorted(negative)
    below = sum(bisect_left(ordered, score) + bisect_right(ordered, score) for score in positive) / 2
    return below / (len(positive) * len(negative))


def overlap(one: Sequence[Sequence[Hashable]], other: Sequence[Sequence[Hashable]]) -> float:
    """Mean share of hits that two systems have in common, question by question, over those that either answers.

    The share is of the longer list. 1.0 if neither answers any.
    """
    shares = [len(set(a) & set(b)) / max(len(a), len(b)) for a, b in zip(one, other, strict=True) if a or b]
    return sum(shares) / len(shares) if shares else 1.0
