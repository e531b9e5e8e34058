"""Evidence recall@k, measures of a ranking (NDCG, MRR), AUROC, and the overlap of two systems' hits."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import combinations
from math import log2
from typing import NamedTuple

Hits = Sequence[Collection[str]]
"""Hits in rank order, each as the events that its note is based on."""

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


class Evidence(NamedTuple):
    """The events that a question needs, and how many of its ids were repaired or dropped."""

    events: frozenset[str]
    repaired: int
    dropped: int


class QuestionResult(NamedTuple):
    """A question's category, needed events and hits; ``score`` is that of the first hit."""

    group: str
    needed: frozenset[str]
    hits: Hits
    score: float | None = None


class RecallSummary(NamedTuple):
    """Averages over ``questions``: ``recall`` of the needed events; ``perfect``, the share of questions with all."""

    questions: int
    recall: float
    perfect: float


def read_evidence(ids: Iterable[str], known: Collection[str]) -> Evidence:
    """Return the turns among ``known`` that LoCoMo's evidence ids name.

    Some ids are malformed: two in one (``"D8:6; D9:17"``), an extra colon (``"D:11:26"``), leading zeros
    (``"D30:05"``). An id is dropped if it names no known turn after repair.
    """
    events: set[str] = set()
    repaired = dropped = 0
    for id in ids:
        if id in known:
            events.add(id)
            continue
        parsed = [f"D{int(session)}:{int(turn)}" for session, turn in _EVIDENCE.findall(id)]
        valid = [event for event in parsed if event in known]
        events.update(valid)
        repaired += bool(valid)
        dropped += len(parsed) - len(valid) if parsed else 1
    return Evidence(frozenset(events), repaired, dropped)


def events_at(hits: Hits, k: int) -> set[str]:
    """Return the events in the first ``k`` places.

    A hit takes as many places as it has events, duplicates included, so merging or summarising notes gains nothing. The
    first hit that does not fit ends the count.
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
    """Return the share of the needed events, at least one, in the first ``k`` places."""
    return len(events_at(hits, k).intersection(needed)) / len(needed)


def summarize(results: Sequence[QuestionResult], k: int) -> RecallSummary:
    """Average over the questions that need an event; zeros if there are none."""
    recalls = [recall(result.hits, result.needed, k) for result in results if result.needed]
    if not recalls:
        return RecallSummary(0, 0.0, 0.0)
    perfect = sum(value == 1.0 for value in recalls)
    return RecallSummary(len(recalls), sum(recalls) / len(recalls), perfect / len(recalls))


def ranking(hits: Hits) -> list[str]:
    """Return the events in the order of their first hit, each once."""
    return list(dict.fromkeys(event for hit in hits for event in hit))


def first_place(hits: Iterable[Collection[str]], wanted: Collection[str], other: Collection[str]) -> int | None:
    """Return the rank, from 0, of the first hit of a wanted event and of none of the ``other``; None without one."""
    for place, events in enumerate(hits):
        if not set(wanted).isdisjoint(events) and set(other).isdisjoint(events):
            return place
    return None


def recall_any(ranked: Sequence[str], needed: Collection[str], k: int) -> float:
    """Return 1.0 if one of the needed ids is among the first ``k``, else 0.0."""
    return float(not set(ranked[:k]).isdisjoint(needed))


def recall_all(ranked: Sequence[str], needed: Collection[str], k: int) -> float:
    """Return 1.0 if all needed ids are among the first ``k``, else 0.0."""
    return float(set(ranked[:k]).issuperset(needed))


def ndcg(ranked: Sequence[str], needed: Collection[str], k: int) -> float:
    """Return the gain of the first ``k`` ids, divided by that of an ideal ranking; ``needed`` has at least one id.

    A needed id at rank r, from 1, gains 1 / max(1, log2(r)): the first two ranks are not discounted, as in LongMemEval.
    Järvelin and Kekäläinen 2002, "Cumulated Gain-Based Evaluation of IR Techniques", with base 2.
    """
    gain = sum(_gain(rank) for rank, id in enumerate(ranked[:k], start=1) if id in needed)
    return gain / sum(map(_gain, range(1, min(len(needed), k) + 1)))


def _gain(rank: int) -> float:
    return 1 / max(1.0, log2(rank))


def reciprocal_rank(ranked: Sequence[str], needed: Collection[str]) -> float:
    """Return 1 / the rank of the first needed id, 0.0 if the ranking has none; its mean over questions is the MRR."""
    return next((1 / rank for rank, id in enumerate(ranked, start=1) if id in needed), 0.0)


def kendall_tau(places: Sequence[int]) -> float | None:
    """Return how well different places are in ascending order, from -1 to 1; None for fewer than two.

    The share of pairs in order minus that of the others. Kendall 1938, "A New Measure of Rank Correlation".
    """
    pairs = [1 if first < second else -1 for first, second in combinations(places, 2)]
    return sum(pairs) / len(pairs) if pairs else None


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """Return the probability that a positive score exceeds a negative one; None if either list is empty.

    The area under the ROC curve as the Mann-Whitney statistic, a tie as one half; chance is 0.5. Hanley and McNeil
    1982, "The Meaning and Use of the Area under a Receiver Operating Characteristic Curve".
    """
    if not positive or not negative:
        return None
    ordered = sorted(negative)
    below = sum(bisect_left(ordered, score) + bisect_right(ordered, score) for score in positive) / 2
    return below / (len(positive) * len(negative))


def calibration_error(chances: Sequence[float], happened: Sequence[bool], bins: int = 10) -> float:
    """Return the expected calibration error: the mean distance of chance and share, over bins weighted by size.

    Naeini, Cooper and Hauskrecht 2015, "Obtaining Well Calibrated Probabilities Using Bayesian Binning".
    """
    grouped: dict[int, list[tuple[float, bool]]] = {}
    for pair in zip(chances, happened, strict=True):
        grouped.setdefault(min(int(pair[0] * bins), bins - 1), []).append(pair)
    distances = [abs(sum(chance - did for chance, did in group)) for group in grouped.values()]
    return sum(distances) / len(chances) if len(chances) else 0.0


def overlap(left: Sequence[Sequence[Hashable]], right: Sequence[Sequence[Hashable]]) -> float:
    """Return the mean share of common hits per question, relative to the longer list; 1.0 if all lists are empty.

    Questions without hits on either side are left out.
    """
    shares = [len(set(a) & set(b)) / max(len(a), len(b)) for a, b in zip(left, right, strict=True) if a or b]
    return sum(shares) / len(shares) if shares else 1.0
