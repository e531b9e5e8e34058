"""Learns the preferences of a scope from its search log: which of the hits that were shown were useful.

A hit that was used was useful. A hit that was not used may only be too far down to be seen. So each use is weighted by
the inverse propensity of its position (Joachims, Swaminathan and Schnabel 2017, "Unbiased Learning-to-Rank with Biased
Feedback"). RMM (Tan et al. 2025, "In Prospect and Retrospect: Reflective Memory Management for Long-term Personalized
Dialogue Agents") learns a reranker from the citations of an answer. Here an agent reports the notes that it used.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.core.authority import is_on_probation
from zettel.core.feedback import count_search, is_source, training_searches
from zettel.errors import InvalidInput
from zettel.model import LoggedSearch, Proved, Tuned, to_micros
from zettel.scoring.decoder_inputs import decoder_input
from zettel.scoring.preferences import Preferences, traits, utilities

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from zettel.model import Note
    from zettel.ports.query import Bools, Floats, Question, Shortlist
    from zettel.scoring.tuned import TunedScorer

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
_FREE = 1e-3  # penalty of b
_MIN_SLOPE = 0.05
_LONGEST_STEP, _PRECISION, _MAX_STEPS = 4.0, 1e-3, 30  # of Newton's method, which converges in about eight


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

    def _teaches(self, note: Note) -> bool:
        """Return whether a note counts as useful or useless.

        Notes on probation do not, so that no writer can raise its own. Nor do notes that no answer can use.
        """
        return not is_on_probation(note) and (is_source(note) or not self._search.inferred)

    def _rate(self, question: Question, shortlist: Shortlist) -> RatedSearch | None:
        ids = [note.id for note in shortlist.notes]
        positions = {hit.note: position for position, hit in enumerate(self._search.hits, 1)}
        teaching = [row for row, note in enumerate(shortlist.notes) if note.id in positions and self._teaches(note)]
        rows = sorted(teaching, key=lambda row: positions[ids[row]])
        if not rows:
            return None
        preferences = self._scorer.preferences
        input = decoder_input(question, shortlist, pairs=self._scorer.decoder.reads_pairs)
        utility = utilities(ids, self._proved if self._scorer.wants_utility else {})
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


def new_searches(
    searches: Sequence[LoggedSearch], preferences: Preferences, most: int = MAX_SEARCHES
) -> list[LoggedSearch]:
    """Return the newest ``most`` searches that have feedback and are newer than the preferences."""
    return [search for search in training_searches(searches) if to_micros(search.asked_at) > preferences.upto][-most:]


async def rate_searches(
    searches: Sequence[LoggedSearch], scorer: TunedScorer, repeat: RepeatSearch, progress: Progress, most: int
) -> list[RatedSearch]:
    """Repeat the searches of one scope that teach, see ``new_searches``."""
    new = new_searches(searches, scorer.preferences, most)
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
    share of the tuned scorer, x the traits. Newton's method fits a > 0, b and u = a w, and returns w:

        sum(softplus(z) - y / p · z) + PENALTY (|w|² + (a - 1)²),    z = a (o + x w) + b

    Each step takes the a of the step before for the penalty, so that its problem is convex.

    The expected value of y / p is 1 for a hit that would be useful if seen, and 0 for the others.
    """
    odds = np.concatenate([search.odds for search in searches])
    rows = np.concatenate([search.traits for search in searches])
    inputs = np.column_stack([odds, np.ones(len(odds), np.float32), rows]).astype(np.float32)
    target = np.concatenate([search.used * search.weight for search in searches]).astype(np.float64)
    prior = np.zeros(inputs.shape[1])
    prior[0] = 1.0
    penalty = np.full(inputs.shape[1], 2.0 * PENALTY)
    penalty[1] = _FREE  # b
    weights = prior.copy()
    for _ in range(_MAX_STEPS):
        penalty[2:] = 2.0 * PENALTY / max(float(weights[0]), _MIN_SLOPE) ** 2
        z = inputs @ weights
        chance = np.exp(-np.logaddexp(0.0, -z))
        gradient = inputs.T @ (chance - target) + penalty * (weights - prior)
        curvature = inputs.T @ (inputs * (chance * (1.0 - chance)).astype(np.float32)[:, None])
        step = np.linalg.solve(curvature.astype(np.float64) + np.diag(penalty), gradient)
        step *= min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), 1e-12))
        weights -= step
        if float(np.abs(step).max()) < _PRECISION:
            break
    change: Floats = (weights[2:] / max(float(weights[0]), _MIN_SLOPE)).astype(np.float32)
    return change


def cross_validate(searches: Sequence[RatedSearch], most_odds: float = math.inf) -> GainEstimate:
    """Estimate the gain of learning by cross-validation, with preferences of at most ``most_odds``.

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
            after = search.odds
            if weights is not None:
                after = after + np.clip(search.traits @ weights, -most_odds, most_odds)
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
    gain = cross_validate(searches, scorer.decoder.most_odds)
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
    scorer: TunedScorer,
    logs: Sequence[tuple[Sequence[LoggedSearch], RepeatSearch]],
    progress: Progress,
    most: int = MAX_SEARCHES,
) -> tuple[TunedScorer, Tuned]:
    """Tune on the newest ``most`` searches of several scopes, each with the function that repeats its searches.

    Raises ``InvalidInput``.
    """
    from anyio import to_thread

    rated: list[RatedSearch] = []
    for searches, repeat in logs:
        rated += await rate_searches(searches, scorer, repeat, progress, most)
    asked_at = (to_micros(search.asked_at) for searches, _ in logs for search in training_searches(searches))
    upto = max(asked_at, default=0)
    progress("learning", 0, 1)
    return await to_thread.run_sync(partial(update_preferences, scorer, rated, upto))
