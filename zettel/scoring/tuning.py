"""Learns the preferences of a scope from its search log: which of the hits that were shown were useful.

A hit that was used was useful. A hit that was not used may only be too far down to be seen. So each use is weighted by
the inverse propensity of its position (Joachims, Swaminathan and Schnabel 2017, "Unbiased Learning-to-Rank with Biased
Feedback"). RMM (Tan et al. 2025, "In Prospect and Retrospect: Reflective Memory Management for Long-term Personalized
Dialogue Agents") learns a reranker from the citations of an answer. Here an agent reports the notes that it used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.core.feedback import count_search, training_searches
from zettel.errors import InvalidInput
from zettel.model import LoggedSearch, Proved, Tuned, to_micros
from zettel.scoring.decoder_inputs import decoder_input
from zettel.scoring.preferences import traits, utilities

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from numpy.typing import NDArray

    from zettel.ports.query import Bools, Floats, Question, Shortlist
    from zettel.scoring.tuned import TunedScorer

    Vector = NDArray[np.float64]
    RepeatSearch = Callable[[LoggedSearch, "TraitRecorder"], Awaitable[object]]
    """Repeats a search with this reranker."""
    Progress = Callable[[str, int, int], None]

POSITION_DECAY = 0.5
"""Exponent of the propensity: a hit in position p is seen p^-0.5 times as often as the first. For web users it is about
1. An agent has all hits in its prompt, but language models read the middle of it less."""
CLIP = 5.0
"""Largest weight of a use, reached at position 25, so that few uses far down cannot outweigh all others."""
PENALTY = 6.0
"""Weight of the squared weights, against the loss summed over all hits (a Gaussian prior). Chosen, with
``preferences.SCALES``, on simulated feedback to our own conversations."""
MIN_SEARCHES = 30
"""Searches with a useful hit that learning requires."""
MAX_SEARCHES = 2_000
"""Newest searches to learn from. Each is repeated, which takes as long as a search."""
FOLDS = 5
MIN_STANDARD_ERRORS = 1.0
"""Least gain, in standard errors, of accepted preferences. Weights learned from chance alone are worse than none, so 1
suffices; 2 would refuse many real gains after a few hundred searches."""
_MAX_LOG_SLOPE = 3.0  # bound of |ln a|, which limits the first step
_MAX_STEPS = 100  # of L-BFGS, which converges earlier


class RatedSearch(NamedTuple):
    """A logged search with feedback: its n hits in the order in which they were shown."""

    question: str
    traits: Floats  # (n, traits)
    odds: Floats  # (n,) log-softmax of the tuned scorer over the whole shortlist
    used: Bools  # (n,)
    weight: Floats  # (n,) inverse propensity of the position


class GainEstimate(NamedTuple):
    """Mean gain of the useful hits before and after learning, and the standard error of the difference."""

    before: float
    after: float
    error: float

    @property
    def is_significant(self) -> bool:
        return self.after - self.before > MIN_STANDARD_ERRORS * self.error


def propensity(position: Floats) -> Floats:
    """Chance that a hit in this position (from 1) is seen: max(position^-POSITION_DECAY, 1 / CLIP), (n,)."""
    seen: Floats = np.maximum(position.astype(np.float32) ** np.float32(-POSITION_DECAY), np.float32(1.0 / CLIP))
    return seen


class TraitRecorder:
    """A reranker that keeps the order and records the hits of a repeated search as ``rated_search``.

    ``proved`` is the usefulness of notes before this search, so that the search cannot predict itself.
    """

    name = "recorder"
    wants_vectors = True

    def __init__(self, scorer: TunedScorer, search: LoggedSearch, proved: Mapping[str, Proved]) -> None:
        self.reads = scorer.reads
        self.rated_search: RatedSearch | None = None
        self._scorer = scorer
        self._search = search
        self._proved = proved

    async def rerank(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[Floats]:
        """Scores that keep the order, (m,) for each shortlist."""
        from anyio import to_thread

        for question, shortlist in zip(questions, shortlists, strict=True):
            self.rated_search = await to_thread.run_sync(self._rate, question, shortlist)
        return [-np.arange(len(shortlist.rows), dtype=np.float32) for shortlist in shortlists]

    def _rate(self, question: Question, shortlist: Shortlist) -> RatedSearch | None:
        ids = [note.id for note in shortlist.notes]
        positions = {hit.note: position for position, hit in enumerate(self._search.hits, 1)}
        rows = sorted((row for row, id in enumerate(ids) if id in positions), key=lambda row: positions[ids[row]])
        if not rows:
            return None
        input, preferences = decoder_input(question, shortlist), self._scorer.preferences
        utility = utilities(ids, self._proved)
        values = traits(input, shortlist, utility, preferences.vector_dim, preferences.embedder)
        (decoder_odds,) = self._scorer.decoder.predict([input])
        odds = decoder_odds + values @ preferences.weights
        odds -= odds.max()
        odds -= np.log(np.exp(odds).sum())
        position = np.array([positions[ids[row]] for row in rows], np.float32)
        used = set(self._search.used or ())
        return RatedSearch(
            self._search.question, values[rows], odds[rows], np.array([ids[row] in used for row in rows]),
            1.0 / propensity(position),
        )  # fmt: skip


async def rate_searches(
    searches: Sequence[LoggedSearch], scorer: TunedScorer, repeat: RepeatSearch, progress: Progress
) -> list[RatedSearch]:
    """Repeat the searches of one scope that have feedback and are newer than the scorer's preferences."""
    new = [x for x in training_searches(searches) if to_micros(x.asked_at) > scorer.preferences.upto][-MAX_SEARCHES:]
    ids = {search.id for search in new}
    proved: dict[str, Proved] = {}
    rated: list[RatedSearch] = []
    for search in searches:
        if search.id in ids:
            progress("repeating searches", len(rated), len(new))
            recorder = TraitRecorder(scorer, search, proved)
            await repeat(search, recorder)
            if recorder.rated_search is not None:
                rated.append(recorder.rated_search)
        count_search(proved, search)
    return rated


def fit_weights(searches: Sequence[RatedSearch]) -> Floats:
    """The change of the trait weights, (traits,).

    A logistic regression over the shown hits: y is 1 for a useful hit, p the propensity of its position, o the log
    share of the tuned scorer, x the traits. It fits a > 0, b and w, and returns w:

        sum(softplus(z) - y / p · z) + PENALTY (|w|² + ln² a),    z = a (o + x w) + b

    The expected value of y / p is 1 for a hit that would be useful if seen, and 0 for the others.
    """
    from scipy.optimize import minimize

    x = np.concatenate([search.traits for search in searches]).astype(np.float64)
    o = np.concatenate([search.odds for search in searches]).astype(np.float64)
    target = np.concatenate([search.used * search.weight for search in searches]).astype(np.float64)
    penalised = np.ones(2 + x.shape[1])
    penalised[1] = 0.0  # b

    def loss(parameters: Vector) -> tuple[float, Vector]:
        a, b, w = np.exp(parameters[0]), parameters[1], parameters[2:]
        inner = o + x @ w
        z = a * inner + b
        slope = np.exp(-np.logaddexp(0.0, -z)) - target
        gradient = np.concatenate([[a * (slope @ inner), slope.sum()], a * (slope @ x)])
        cost = np.logaddexp(0.0, z).sum() - target @ z + PENALTY * (penalised * parameters) @ parameters
        return float(cost), gradient + 2.0 * PENALTY * penalised * parameters

    bounds = [(-_MAX_LOG_SLOPE, _MAX_LOG_SLOPE)] + [(None, None)] * (1 + x.shape[1])
    start = np.zeros(len(bounds))
    fitted = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _MAX_STEPS})
    weights: Floats = fitted.x[2:].astype(np.float32)
    return weights


def cross_validate(searches: Sequence[RatedSearch]) -> GainEstimate:
    """Estimate the gain of learning by cross-validation.

    A hash of the question assigns each search to one of FOLDS parts. Weights learned from the other parts rank it. The
    gain of a useful hit is 1 / log2(1 + position among the shown hits) (Järvelin and Kekäläinen 2002), weighted by its
    inverse propensity.
    """
    folds = np.array([int(hashlib.sha256(x.question.encode()).hexdigest(), 16) % FOLDS for x in searches])
    rows = []
    for fold in range(FOLDS):
        train = [search for search, part in zip(searches, folds, strict=True) if part != fold]
        test = [search for search, part in zip(searches, folds, strict=True) if part == fold and search.used.any()]
        if not test:
            continue
        weights = fit_weights(train) if any(search.used.any() for search in train) else None
        for search in test:
            after = search.odds if weights is None else search.odds + search.traits @ weights
            rows.append((_gain(search, search.odds), _gain(search, after), float(search.weight[search.used].sum())))
    before, after, weight = np.array(rows).T
    total = weight.sum()
    mean = (after - before).sum() / total
    error = np.sqrt(((after - before - weight * mean) ** 2).sum()) / total
    return GainEstimate(float(before.sum() / total), float(after.sum() / total), float(error))


def _gain(search: RatedSearch, odds: Floats) -> float:
    position = np.empty(len(odds))
    position[np.argsort(-odds, kind="stable")] = np.arange(1, len(odds) + 1)
    return float((search.weight / np.log2(1.0 + position))[search.used].sum())


def update_preferences(
    scorer: TunedScorer, searches: Sequence[RatedSearch], upto: int
) -> tuple[TunedScorer, Tuned]:
    """The scorer with preferences learned from searches up to ``upto`` (microseconds), and the estimated gain.

    Raises ``InvalidInput`` if fewer than MIN_SEARCHES of them have a useful hit.
    """
    from zettel.scoring.tuned import TunedScorer

    useful = sum(bool(search.used.any()) for search in searches)
    if useful < MIN_SEARCHES:
        since = " since the last tuning" if scorer.preferences.searches else ""
        raise InvalidInput(
            f"too little feedback: {useful} searches{since} have a useful hit, and learning requires {MIN_SEARCHES}; "
            "report used notes with feedback"
        )
    gain = cross_validate(searches)
    preferences = scorer.preferences._replace(
        weights=scorer.preferences.weights + fit_weights(searches),
        searches=scorer.preferences.searches + len(searches),
        upto=upto,
    )
    return TunedScorer(scorer.decoder, preferences), Tuned(
        accepted=gain.is_significant, searches=len(searches), useful=useful,
        uses=sum(int(search.used.sum()) for search in searches),
        before=round(gain.before, 4), after=round(gain.after, 4), error=round(gain.error, 4),
    )  # fmt: skip


async def tune(
    scorer: TunedScorer, logs: Sequence[tuple[Sequence[LoggedSearch], RepeatSearch]], progress: Progress
) -> tuple[TunedScorer, Tuned]:
    """Tune on the logs of several scopes, each with the function that repeats its searches. Raises ``InvalidInput``."""
    from anyio import to_thread

    rated = [search for searches, repeat in logs for search in await rate_searches(searches, scorer, repeat, progress)]
    asked_at = (to_micros(search.asked_at) for searches, _ in logs for search in training_searches(searches))
    upto = max(asked_at, default=0)
    progress("learning", 0, 1)
    return await to_thread.run_sync(partial(update_preferences, scorer, rated, upto))
