"""FusionScorer, the default scorer: a local score for every note, then a graph score.

The local score is that of :mod:`zettel.scoring.networks` over the features of :mod:`zettel.scoring.features`. The
notes with the best local scores, and the titles and terms that the question names, start the PageRank walk of
:mod:`zettel.scoring.walk`. The share of the walk on a note is its graph score, which ranks. Local scores are log-odds:
their softmax is a distribution over notes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, get_args

import numpy as np

from zettel.errors import InvalidInput
from zettel.model import LinkType
from zettel.ports.candidate_rules import RARE_TERM_DF, best
from zettel.ports.query import Scores, Seed
from zettel.scoring.answering import ANSWER_DEPTH
from zettel.scoring.calibrate import answer_features, calibrate, chance
from zettel.scoring.features import NOTE_FEATURES, NOTE_NAMES, AblationGroup, FeatureTable, feature_table
from zettel.scoring.names import similar_terms, unknown_names
from zettel.scoring.networks import ScoreModels, shipped_models
from zettel.scoring.newest import newest_first
from zettel.scoring.ranking import LIFT, outdated
from zettel.scoring.walk import NO_STEPS, Walk, graph_of, walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from zettel.ports.query import Candidates, Floats, Question

STARTERS = 50
"""Notes of highest local score from which the walk starts."""
TITLE_SHARE = 0.5
"""Share of the restart vector for notes whose titles the question names, if any."""
TITLE_COVERAGE = 0.25
"""Coverage from which titled notes get the full TITLE_SHARE. Below it they get a part: a note with the title "Run"
is not the topic of every question about a charity run."""
TERM_SHARE = 0.1
"""Share of the restart vector for rare terms. It is small: the local score already counts their words."""
NAMED_COVERAGE = 2.0
"""Log-odds between a titled note with all rare query words and one with none ("Straw" is in "The Straw Hat")."""
GROUPS: Mapping[str, Sequence[int]] = {
    group: [place for place, feature in enumerate(NOTE_FEATURES) if feature.group == group]
    for group in dict.fromkeys(feature.group for feature in NOTE_FEATURES)
}
"""Columns of each group of note features."""
OUTSIDE_TIME = 20.0
"""Log-odds against a note outside the time, if the question names nothing else: it ranks after all others."""
TAIL = 1e-6
"""Factor on the local score beside the graph score. It ranks notes that the walk does not reach, after all others."""
OUTDATED = 0.5
"""Factor on the score of an outdated note."""


class _Scored(NamedTuple):
    """The intermediate values of a scoring: rows are the r possible hits, all else is over all n candidates."""

    rows: NDArray[np.intp]  # (r,)
    table: FeatureTable
    inputs: Floats  # (r, FEATURE_NAMES), standardised
    local: NDArray[np.float64]  # (r,)
    walked: Walk
    share: NDArray[np.float64]  # (n,)
    order: NDArray[np.float64]  # (n,)


class FusionScorer:
    """The default scorer. ``without`` leaves parts out, ``models`` replaces the shipped networks."""

    name = "fusion"

    def __init__(self, without: frozenset[AblationGroup] = frozenset(), models: ScoreModels | None = None) -> None:
        unknown = without - set(get_args(AblationGroup))
        if unknown:
            raise InvalidInput(f"unknown group: {', '.join(sorted(unknown))}; use {', '.join(get_args(AblationGroup))}")
        self.without = without
        self.models = models or shipped_models()
        self.answer_depth = 0 if "statements" in without else ANSWER_DEPTH

    def score(self, question: Question, candidates: Candidates) -> Scores:
        """Score the candidates: (n,) each; ``score`` ranks them."""
        n = len(candidates.ids)
        features = np.zeros((n, len(NOTE_NAMES)), np.float32)
        if not candidates.pool.any():
            zeros = np.zeros(n, np.float32)
            return Scores(zeros, zeros, zeros, features, NOTE_NAMES, lambda _: -1, lambda _: {})
        scored = self._scored(question, candidates)
        features[scored.rows] = scored.table.notes
        order = newest_first(scored.order, candidates) if question.present else scored.order
        order = prefer_replacements(order, candidates, question.valid_at)
        return Scores(
            score=calibrate(order, chance(self.models.calibration, _evidence(scored)), candidates.pool),
            local_score=scatter(scored.local, scored.rows, n).astype(np.float32),
            graph_score=scored.share.astype(np.float32),
            features=features,
            feature_names=NOTE_NAMES,
            sender=scored.walked.sender,
            explanation=lambda row: self._explanation(scored, row),
        )

    def evidence(self, question: Question, candidates: Candidates) -> Floats | None:
        """Return the inputs of the calibration, (ANSWER_FEATURES,); None without a possible hit."""
        return _evidence(self._scored(question, candidates)) if candidates.pool.any() else None

    def _scored(self, question: Question, candidates: Candidates) -> _Scored:
        n, rows = len(candidates.ids), np.flatnonzero(candidates.pool)
        table = feature_table(question, candidates, rows)
        inputs = self.models.local.standardized(table.values)
        for group in self.without & GROUPS.keys():
            inputs[:, list(GROUPS[group])] = 0.0  # the mean
        local = self.models.local.scores(inputs)
        if question.time_only:
            local = time_first(local, table.note("time"))
        walked = self._walk(question, local, table.note("coverage"), candidates, rows)
        share = walked.share[:n] / max(float(walked.share[:n].sum()), 1e-12)
        order = share.copy()
        order[rows] += TAIL * np.exp(local - local.max())
        return _Scored(rows, table, inputs, local, walked, share, order)

    def _explanation(self, scored: _Scored, row: int) -> dict[str, float]:
        """Return what each group of features, and the situation, contributes to a local score; the sum is the score."""
        place = int(np.searchsorted(scored.rows, row))
        values = self.models.local.contributions(scored.inputs[place], GROUPS)
        return {**values, "situation": float(scored.local[place]) - sum(values.values())}

    def _walk(
        self,
        question: Question,
        local: NDArray[np.float64],
        coverage: Floats,
        candidates: Candidates,
        rows: NDArray[np.intp],
    ) -> Walk:
        """Return the walk, or its restart vector if the walk is left out."""
        terms = "terms" not in self.without
        named = named_terms(question, candidates) if terms else np.zeros(len(candidates.term_df), np.float32)
        restart = restart_vector(local, coverage, candidates, rows, named)
        graph = NO_STEPS._replace(nodes=len(restart)) if "walk" in self.without else graph_of(candidates, terms=terms)
        return walk(graph, restart)


def _evidence(scored: _Scored) -> Floats:
    best_row = int(np.argmax(scored.order[scored.rows]))  # of equals the first, which is the older
    return answer_features(scored.table, scored.local, best_row)


def named_terms(question: Question, candidates: Candidates) -> Floats:
    """Return unscaled restart weights of the terms, (t,): 1 / df of rare terms that the question names.

    A name that does not occur in the scope matches terms of similar spelling.
    """
    df = candidates.term_df
    named = candidates.term_named.copy()
    if unknown := unknown_names(question, candidates.stats.df):
        named[similar_terms(unknown, candidates.term_keys)] = True
    return np.where(named & (df >= 1) & (df <= RARE_TERM_DF), 1.0 / np.maximum(df, 1), 0.0).astype(np.float32)


def restart_vector(
    local: NDArray[np.float64], coverage: Floats, candidates: Candidates, rows: NDArray[np.intp], terms: Floats
) -> NDArray[np.float64]:
    """Return the restart vector, (n + t,) summing to 1: softmax over the STARTERS best rows, named titles and terms.

    ``local`` and ``coverage`` belong to ``rows``, the possible hits; the walk starts at no other note. ``terms`` come
    from :func:`named_terms`.
    """
    n = len(candidates.ids)
    first = best(local, candidates.seq[rows], STARTERS)
    odds = np.exp(local[first] - local[first[0]])
    restart = scatter(odds / odds.sum(), rows[first], n + len(terms))
    if terms.any():
        restart *= 1.0 - TERM_SHARE
        restart[n:] += TERM_SHARE * terms / terms.sum()
    titled = np.flatnonzero(candidates.seeds[rows] & Seed.TITLE)
    if len(titled):
        share = TITLE_SHARE * min(1.0, float(coverage[titled].max()) / TITLE_COVERAGE)
        named = np.exp(NAMED_COVERAGE * coverage[titled])
        restart *= 1.0 - share
        restart[rows[titled]] += share * named / named.sum()
    return restart


def time_first(local: NDArray[np.float64], time: Floats) -> NDArray[np.float64]:
    """Return local scores that rank the notes outside the named time last, unless all are: (r,), (r,) -> (r,)."""
    within = time > 0
    return local - OUTSIDE_TIME * ~within if within.any() else local


def scatter(values: NDArray[np.float64], rows: NDArray[np.intp], size: int) -> NDArray[np.float64]:
    """Return ``values`` at ``rows`` and 0 elsewhere, (size,)."""
    result = np.zeros(size)
    result[rows] = values
    return result


def prefer_replacements(share: NDArray[np.float64], candidates: Candidates, today: int | None) -> NDArray[np.float64]:
    """Return scores that rank an outdated note below its replacement, (n,)."""
    old = outdated(candidates, today)
    if not old.any():
        return share
    replaces = (candidates.link_type == tuple(LinkType).index(LinkType.SUPERSEDES)) & old[candidates.link_target]
    newer, older = candidates.link_source[replaces], candidates.link_target[replaces]
    order = np.where(old, OUTDATED * share, share)
    for _ in range(len(newer)):  # at most the longest chain of replacements; in practice two or three rounds
        raised = order.copy()
        np.maximum.at(raised, newer, LIFT * order[older])
        np.maximum.at(raised, newer, np.where(old[newer], 0.0, LIFT * share[older]))
        if np.array_equal(raised, order):
            break
        order = raised
    return order
