"""Learning a taste from the log of searches: which of the hits that were shown were of use.

That a hit was used says that it was of use. That it was not may mean only that nobody looked so far down, and what
stands first is used more because it stands first. So each use counts as often as it would have been seen at the top:
the inverse propensity of Joachims, Swaminathan and Schnabel 2017, "Unbiased Learning-to-Rank with Biased Feedback".
RMM (Tan et al. 2025, "In Prospect and Retrospect: Reflective Memory Management for Long-term Personalized Dialogue
Agents") learns a reranker from what an answer cites; here it is from what an agent says it used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.errors import InvalidInput
from zettel.evolve.feedback import count, told_of
from zettel.model import LoggedSearch, Proved, Tuned, to_micros
from zettel.scoring.decoder import odds
from zettel.scoring.slots import show
from zettel.scoring.taste import traits, utilities

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from numpy.typing import NDArray

    from zettel.query import Floats, Question, Shortlist
    from zettel.scoring.tuned import TunedScorer

    Vector = NDArray[np.float64]
    Ask = Callable[[LoggedSearch, "Reading"], Awaitable[object]]
    """Asks the question of a search once more, with this reranker."""

FALL = 0.5
"""How fast looking falls with the place: the second hit is seen as often as 2^-0.5, the tenth as 10^-0.5 times the
first. Web users fall as 1 / place; an agent has all hits before it, and some fall is left (language models read the
middle of what they are given less)."""
CLIP = 5.0
"""Most that one use counts for, as the 25th place: few uses far down may not outweigh all others."""
PENALTY = 6.0
"""Of the squared weights, beside the loss summed over all hits: a Gaussian before anything was seen. Chosen, with
``taste.SCALES``, on simulated feedback to conversations of our own."""
WANTED = 30
"""Searches with something of use in them from which a taste can be learned and judged."""
NEWEST = 2_000
"""Searches that are learned from, the newest: each is asked again, which takes as long as a search."""
FOLDS = 5
SURE = 1.0
"""Standard errors by which a taste must be better. Chance alone seldom brings that, for weights learned from chance are
worse than none; with 2 much of what is worth having after a few hundred searches would be refused."""
_STEEP = 3.0  # most that ln a may be, either way: the first step may be a long one
_STEPS = 100  # of L-BFGS: from there on nothing moves


class Lesson(NamedTuple):
    """What one search teaches: of its n hits, in the order in which they were shown, what is known of each."""

    question: str
    traits: Floats  # (n, traits)
    odds: Floats  # (n,) log of the decoder's share of the whole shortlist, what it was tuned to before included
    used: NDArray[np.bool_]  # (n,)
    weight: Floats  # (n,) inverse propensity of the place


class Judged(NamedTuple):
    """The mean gain of what was of use before and after, and the standard error of the difference."""

    before: float
    after: float
    error: float

    @property
    def better(self) -> bool:
        """By more than chance."""
        return self.after - self.before > SURE * self.error


def propensity(place: Floats) -> Floats:
    """How likely a hit in this place (1 for the first) is looked at: max(place^-FALL, 1 / CLIP), (n,)."""
    seen: Floats = np.maximum(place.astype(np.float32) ** np.float32(-FALL), np.float32(1.0 / CLIP))
    return seen


class Reading:
    """A reranker that learns what it can of one search that is asked again, and changes nothing.

    ``proved`` is that of the searches before it: what was of use in this one must not be told by that.
    """

    name = "reading"
    wants_vectors = True

    def __init__(self, scorer: TunedScorer, search: LoggedSearch, proved: Mapping[str, Proved]) -> None:
        self.reads = scorer.reads
        self.bank = scorer.bank
        self.lesson: Lesson | None = None
        self._scorer = scorer
        self._search = search
        self._proved = proved

    async def rerank(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[Floats]:
        """The order as it is."""
        from anyio import to_thread

        for question, one in zip(questions, shortlists, strict=True):
            self.lesson = await to_thread.run_sync(self._read, question, one)
        return [-np.arange(len(one.rows), dtype=np.float32) for one in shortlists]

    def _read(self, question: Question, one: Shortlist) -> Lesson | None:
        ids = [note.id for note in one.notes]
        places = {hit.note: place for place, hit in enumerate(self._search.hits)}
        rows = sorted((row for row, id in enumerate(ids) if id in places), key=lambda row: places[ids[row]])
        if not rows:
            return None
        shown, taste = show(question, one), self._scorer.taste
        values = traits(shown, one, utilities(ids, self._proved), taste.vector, taste.embedder)
        decoder = self._scorer.decoder
        (decoded,) = odds(decoder.model, [shown], decoder.model.config, decoder.device)
        told = decoded + values @ taste.weights
        share = told - told.max()
        share -= np.log(np.exp(share).sum())
        place = np.array([places[ids[row]] + 1 for row in rows], np.float32)
        used = set(self._search.used or ())
        return Lesson(
            self._search.question, values[rows], share[rows], np.array([ids[row] in used for row in rows]),
            1.0 / propensity(place),
        )  # fmt: skip


async def lessons(
    searches: Sequence[LoggedSearch], scorer: TunedScorer, ask: Ask, progress: Callable[[str, int, int], None]
) -> list[Lesson]:
    """What the log of one scope teaches beyond what was learned of it, each question asked again."""
    told = [one for one in told_of(searches) if to_micros(one.asked_at) > scorer.taste.upto][-NEWEST:]
    known: dict[str, Proved] = {}
    wanted = {one.id for one in told}
    found: list[Lesson] = []
    for search in searches:
        if search.id in wanted:
            progress("asking again", len(found), len(told))
            reading = Reading(scorer, search, known)
            await ask(search, reading)
            if reading.lesson is not None:
                found.append(reading.lesson)
        count(known, search)
    return found


def learn(lessons: Sequence[Lesson]) -> Floats:
    """What is to be added to the weights of the traits, (traits,).

    A logistic regression over the hits that were shown, y being 1 for what was of use, p the propensity of its place,
    o the decoder's log share and x the traits; a > 0 and b are learned beside w and only w is kept:

        sum(softplus(z) - y / p · z) + PENALTY (|w|² + ln² a),    z = a (o + x w) + b

    In the mean over who looks where, y / p is 1 for what would be of use and 0 for the rest, whatever its place.
    """
    from scipy.optimize import minimize

    x = np.concatenate([one.traits for one in lessons]).astype(np.float64)
    o = np.concatenate([one.odds for one in lessons]).astype(np.float64)
    wanted = np.concatenate([one.used * one.weight for one in lessons]).astype(np.float64)
    bounded = np.ones(2 + x.shape[1])  # b is free
    bounded[1] = 0.0

    def loss(told: Vector) -> tuple[float, Vector]:
        a, b, w = np.exp(told[0]), told[1], told[2:]
        inner = o + x @ w
        z = a * inner + b
        slope = np.exp(-np.logaddexp(0.0, -z)) - wanted
        gradient = np.concatenate([[a * (slope @ inner), slope.sum()], a * (slope @ x)])
        cost = np.logaddexp(0.0, z).sum() - wanted @ z + PENALTY * (bounded * told) @ told
        return float(cost), gradient + 2.0 * PENALTY * bounded * told

    limits = [(-_STEEP, _STEEP)] + [(None, None)] * (1 + x.shape[1])
    start = np.zeros(len(limits))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": _STEPS})
    weights: Floats = found.x[2:].astype(np.float32)
    return weights


def judge(lessons: Sequence[Lesson]) -> Judged:
    """What learning is worth on searches that were held back.

    By the hash of their questions they fall into FOLDS parts, and each part is judged by weights that were learned from
    the others. The gain of a note of use is 1 / log2(1 + its place among the hits that were shown) (Järvelin and
    Kekäläinen 2002), its weight its inverse propensity.
    """
    part = np.array([int(hashlib.sha256(one.question.encode()).hexdigest(), 16) % FOLDS for one in lessons])
    rows = []
    for fold in range(FOLDS):
        others = [one for one, where in zip(lessons, part, strict=True) if where != fold]
        held = [one for one, where in zip(lessons, part, strict=True) if where == fold and one.used.any()]
        if not held:
            continue
        weights = learn(others) if any(one.used.any() for one in others) else None
        for one in held:
            after = one.odds if weights is None else one.odds + one.traits @ weights
            rows.append((_gain(one, one.odds), _gain(one, after), float(one.weight[one.used].sum())))
    before, after, weight = np.array(rows).T
    total = weight.sum()
    mean = (after - before).sum() / total
    error = np.sqrt(((after - before - weight * mean) ** 2).sum()) / total
    return Judged(float(before.sum() / total), float(after.sum() / total), float(error))


def _gain(one: Lesson, odds: Floats) -> float:
    place = np.empty(len(odds))
    place[np.argsort(-odds, kind="stable")] = np.arange(1, len(odds) + 1)
    return float((one.weight / np.log2(1.0 + place))[one.used].sum())


def tuned(scorer: TunedScorer, lessons: Sequence[Lesson], upto: int) -> tuple[TunedScorer, Tuned]:
    """The scorer with what these lessons taught, asked up to ``upto``, and what that is worth.

    Raises ``InvalidInput`` if fewer than WANTED of them have something of use.
    """
    from zettel.scoring.tuned import TunedScorer

    useful = sum(bool(one.used.any()) for one in lessons)
    if useful < WANTED:
        since = " since it was last tuned" if scorer.taste.searches else ""
        raise InvalidInput(
            f"too little feedback to learn from: something was of use in {useful} searches{since}, {WANTED} are wanted"
        )
    told = judge(lessons)
    taste = scorer.taste._replace(
        weights=scorer.taste.weights + learn(lessons),
        searches=scorer.taste.searches + len(lessons),
        upto=upto,
    )
    return TunedScorer(scorer.decoder, taste), Tuned(
        accepted=told.better, searches=len(lessons), useful=useful, uses=sum(int(one.used.sum()) for one in lessons),
        before=round(told.before, 4), after=round(told.after, 4), error=round(told.error, 4),
    )  # fmt: skip


async def tune(
    scorer: TunedScorer, logs: Sequence[tuple[Sequence[LoggedSearch], Ask]], progress: Callable[[str, int, int], None]
) -> tuple[TunedScorer, Tuned]:
    """What the logs of some scopes teach, each with what asks in its scope. Raises ``InvalidInput``."""
    from anyio import to_thread

    found = [lesson for searches, ask in logs for lesson in await lessons(searches, scorer, ask, progress)]
    upto = max((to_micros(one.asked_at) for searches, _ in logs for one in told_of(searches)), default=0)
    progress("learning", 0, 1)
    return await to_thread.run_sync(partial(tuned, scorer, found, upto))
