"""What counts as found: recall@k in events, so that merging or summarising notes buys nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
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
    """A question with what it needs and what was found; ``group`` is its category."""

    group: str
    needed: frozenset[str]
    hits: Hits


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


def by_group(asked: Sequence[Asked], k: int) -> dict[str, Tally]:
    """A tally for each group, in the groups' order."""
    groups = sorted({one.group for one in asked})
    return {group: tally([one for one in asked if one.group == group], k) for group in groups}
