"""Groups segments of all sessions into topics, without a model.

Average-linkage clustering: the two most similar groups become one, until no pair is similar enough. The similarity of
two segments is that of their vectors and of their words, weighted by rarity. Only segments that share a rare word or
a link are compared, so the work grows with the number of segments and not with its square.

Existing topics only grow: they never join each other, so only new segments are compared, and a second run returns the
same topics. The result does not depend on the order of arrival, because keys made from the content order the segments.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zettel.text.background import background_rarity

MIN_EVENTS = 4
"""The fewest events of a topic."""
MAX_EVENTS = 24
"""The most events of a topic: one short text cannot cover more."""
MIN_SIMILARITY = 0.25
"""The lowest mean similarity of the segments of two groups that become one. This and WORD_SHARE were chosen on the
labelled half of ``tests/data/topics`` for development."""
WORD_SHARE = 0.5
"""The share of words in the similarity; the rest is that of vectors."""
RARE_DF = 16
"""The most segments with a word that makes them comparable. It bounds the comparisons of each segment."""


class Segment(NamedTuple):
    """Some events about one matter, a key that orders them, their vector, and the count of messages with each word."""

    key: bytes
    events: tuple[str, ...]
    vector: NDArray[np.float32]
    words: Mapping[str, int]


def topics(
    segments: Sequence[Segment], ties: Mapping[tuple[int, int], float], former: Sequence[Collection[int]] = ()
) -> list[list[int]]:
    """Return groups of similar segments as their places: first the ``former`` groups with added ones, then new groups.

    ``ties`` are lower bounds of the similarity of linked pairs, smaller place first. New groups have at least
    MIN_EVENTS events, all but single long segments at most MAX_EVENTS.
    """
    order = sorted(range(len(segments)), key=lambda place: (segments[place].key, segments[place].events))
    rank = {place: at for at, place in enumerate(order)}
    taken: set[int] = set()
    groups: list[list[int]] = []
    for places in former:
        groups.append(sorted(set(places) - taken))
        taken |= set(places)
    fixed = len(groups)
    groups += [[place] for place in order if place not in taken]
    similarities = _similarities(segments, ties, taken)
    _join(groups, fixed, similarities, [len(segment.events) for segment in segments], rank)
    new = [sorted(group) for group in groups[fixed:] if _size(group, segments) >= MIN_EVENTS]
    new.sort(key=lambda group: min(rank[place] for place in group))
    return [sorted(group) for group in groups[:fixed]] + new


def _size(group: Collection[int], segments: Sequence[Segment]) -> int:
    return sum(len(segments[place].events) for place in group)


def _similarities(
    segments: Sequence[Segment], ties: Mapping[tuple[int, int], float], taken: Collection[int]
) -> dict[tuple[int, int], float]:
    """Return the similarity of each pair that is compared, smaller place first; none if both are ``taken``."""
    df = Counter(word for segment in segments for word in segment.words)
    shared = [word for word, count in df.items() if count >= 2]
    rarity = dict(zip(shared, background_rarity(tuple(shared)).tolist(), strict=True)) if shared else {}
    weights = [_word_weights(segment.words, df, rarity, len(segments)) for segment in segments]
    places: dict[str, list[int]] = {}
    for place, words in enumerate(weights):
        for word in words:
            if df[word] <= RARE_DF:
                places.setdefault(word, []).append(place)
    pairs = {pair for each in places.values() for pair in combinations(each, 2)} | ties.keys()
    result: dict[tuple[int, int], float] = {}
    for first, last in sorted(pair for pair in pairs if pair[0] not in taken or pair[1] not in taken):
        few, many = sorted((weights[first], weights[last]), key=len)
        by_words = sum(weight * many[word] for word, weight in few.items() if word in many)
        by_vector = float(segments[first].vector @ segments[last].vector)
        similarity = WORD_SHARE * by_words + (1 - WORD_SHARE) * by_vector
        result[first, last] = max(similarity, ties.get((first, last), 0.0))
    return result


def _word_weights(
    words: Mapping[str, int], df: Mapping[str, int], rarity: Mapping[str, float], count: int
) -> dict[str, float]:
    """Return the weights of the words that other segments contain, too, as a vector of length 1."""
    raw = {
        word: (1 + math.log(number)) * math.log(1 + count / df[word]) * rarity[word]
        for word, number in words.items()
        if rarity.get(word, 0.0) > 0
    }
    length = math.sqrt(sum(weight * weight for weight in raw.values())) or 1.0
    return {word: weight / length for word, weight in raw.items()}


def _join(
    groups: list[list[int]],
    fixed: int,
    similarities: Mapping[tuple[int, int], float],
    sizes: Sequence[int],
    rank: Mapping[int, int],
) -> None:
    """Join groups in place, the most similar first. Groups that joined another one become empty and are removed."""
    home = {place: at for at, group in enumerate(groups) for place in group}
    size = [sum(sizes[place] for place in group) for group in groups]
    first_rank = [min((rank[place] for place in group), default=len(rank)) for group in groups]
    sums: list[dict[int, float]] = [{} for _ in groups]
    for (first, last), similarity in similarities.items():
        one, other = home[first], home[last]
        if one != other:
            sums[one][other] = sums[one].get(other, 0.0) + similarity
            sums[other][one] = sums[one][other]
    queue: list[tuple[float, int, int, int, int]] = []  # minus the mean, places in order, groups

    def push(one: int, other: int) -> None:
        mean = sums[one][other] / (len(groups[one]) * len(groups[other]))
        fits = size[one] + size[other] <= MAX_EVENTS and max(one, other) >= fixed
        if fits and mean >= MIN_SIMILARITY:
            low, high = sorted((one, other))
            places = sorted((first_rank[one], first_rank[other]))
            heapq.heappush(queue, (-round(mean, 6), places[0], places[1], low, high))

    for one, others in enumerate(sums):
        for other in others:
            if one < other:
                push(one, other)
    while queue:
        mean, _, _, one, other = heapq.heappop(queue)
        if not groups[one] or not groups[other] or other not in sums[one]:
            continue
        if mean != -round(sums[one][other] / (len(groups[one]) * len(groups[other])), 6):
            continue  # one of the groups has grown since
        if size[one] + size[other] > MAX_EVENTS:
            continue
        groups[one] += groups[other]
        groups[other] = []
        size[one] += size[other]
        first_rank[one] = min(first_rank[one], first_rank[other])
        del sums[one][other], sums[other][one]
        for third, total in sums[other].items():
            del sums[third][other]
            sums[one][third] = sums[third][one] = sums[one].get(third, 0.0) + total
        sums[other] = {}
        for third in sums[one]:
            push(one, third)
    groups[fixed:] = [group for group in groups[fixed:] if group]
