"""FusionScorer, the default scorer: a local score for every note, then a graph score.

The local score is that of :mod:`zettel.scoring.networks` over the features of :mod:`zettel.scoring.features`. The
notes with the best local scores, and the titles and terms that the question names, start the PageRank walk of
:mod:`zettel.scoring.walk`. The share of the walk on a note is its graph score, which ranks. Local scores are log-odds:
their softmax is a distribution over notes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, get_args

import numpy as np

from zettel.errors import InvalidInput
from zettel.model import LinkType
from zettel.ports.candidate_rules import RARE_TERM_DF, best
from zettel.ports.query import Scores, Seed
from zettel.scoring.answering import ANSWER_DEPTH
from zettel.scoring.calibrate import answer_features, calibrate, chance
from zettel.scoring.features import (
    NOTE_FEATURES,
    NOTE_NAMES,
    QUESTION_FEATURES,
    AblationGroup,
    FeatureInputs,
    FeatureTable,
    note_features,
    question_features,
)
from zettel.scoring.joint import starts_of
from zettel.scoring.names import similar_terms, unknown_names
from zettel.scoring.networks import ScoreModels, shipped_models, standardized
from zettel.scoring.newest import newest_first
from zettel.scoring.ranking import LIFT, outdated
from zettel.scoring.walk import NO_STEPS, Walk, graph_of, walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from zettel.ports.query import Candidates, Floats, Ints, Question

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
    """The intermediate values of one pass over the searches: rows are the r possible hits, n are all candidates."""

    searches: Sequence[tuple[Question, Candidates]]
    starts: Ints  # (searches + 1,) of the rows of each search among n
    bounds: Ints  # (searches + 1,) of the rows of each search among r
    terms: Ints  # (searches + 1,) of the terms of each search among the nodes of the walk
    rows: NDArray[np.intp]  # (r,)
    notes: Floats  # (r, NOTE_FEATURES)
    questions: Floats  # (searches, QUESTION_FEATURES)
    inputs: Floats  # (r, NOTE_FEATURES), standardised
    local: NDArray[np.float64]  # (r,)
    walked: Walk
    share: NDArray[np.float64]  # (n,)
    order: NDArray[np.float64]  # (n,)

    def table(self, number: int) -> FeatureTable:
        """Return the features of a search."""
        return FeatureTable(self.notes[self.within(number)], self.questions[number])

    def within(self, number: int) -> slice:
        """Return the possible hits of a search among all of them."""
        return slice(int(self.bounds[number]), int(self.bounds[number + 1]))

    def span(self, number: int) -> slice:
        """Return the candidates of a search among all of them."""
        return slice(int(self.starts[number]), int(self.starts[number + 1]))

    def sender(self, number: int, node: int) -> int:
        """Return :meth:`Walk.sender` in the numbers of one search: its rows, then its terms."""
        start, term = int(self.starts[number]), int(self.terms[number])
        rows = int(self.starts[number + 1]) - start
        sender = self.walked.sender(node + start if node < rows else node - rows + term)
        if sender < 0:
            return -1
        return sender - start if sender < int(self.starts[-1]) else sender - term + rows


class FusionScorer:
    """The default scorer. ``without`` leaves parts out, ``models`` replaces the shipped networks."""

    name = "fusion"

    def __init__(self, without: frozenset[AblationGroup] = frozenset(), models: ScoreModels | None = None) -> None:
        unknown = without - set(get_args(AblationGroup))
        if unknown:
            raise InvalidInput(f"unknown group: {', '.join(sorted(unknown))}; use {', '.join(get_args(AblationGroup))}")
        self.without = without
        self.models = models or shipped_models()
        self._local = self.models.local.stacked(len(QUESTION_FEATURES))
        self.answer_depth = 0 if "statements" in without else ANSWER_DEPTH

    def score(self, question: Question, candidates: Candidates) -> Scores:
        """Score the candidates: (n,) each; ``score`` ranks them."""
        return self.score_each([(question, candidates)])[0]

    def score_each(self, searches: Sequence[tuple[Question, Candidates]]) -> list[Scores]:
        """Return :meth:`score` of each search, computed in one pass. Scores differ by rounding alone."""
        places = [place for place, (_, candidates) in enumerate(searches) if candidates.pool.any()]
        results = [_no_scores(len(candidates.ids)) for _, candidates in searches]
        if not places:
            return results
        scored = self._scored([searches[place] for place in places])
        chances = chance(self.models.calibration, np.stack([_evidence(scored, at) for at in range(len(places))]))
        n = int(scored.starts[-1])
        features = np.zeros((n, len(NOTE_NAMES)), np.float32)
        features[scored.rows] = scored.notes
        local, share = scatter(scored.local, scored.rows, n).astype(np.float32), scored.share.astype(np.float32)
        for at, place in enumerate(places):
            question, candidates = searches[place]
            span = scored.span(at)
            order = scored.order[span]
            order = newest_first(order, candidates) if question.present else order
            order = prefer_replacements(order, candidates, question.valid_at)
            results[place] = Scores(
                score=calibrate(order, float(chances[at]), candidates.pool),
                local_score=local[span],
                graph_score=share[span],
                features=features[span],
                feature_names=NOTE_NAMES,
                sender=partial(scored.sender, at),
                explanation=partial(self._explanation, scored, at),
            )
        return results

    def evidence(self, question: Question, candidates: Candidates) -> Floats | None:
        """Return the inputs of the calibration, (ANSWER_FEATURES,); None without a possible hit."""
        return _evidence(self._scored([(question, candidates)]), 0) if candidates.pool.any() else None

    def _scored(self, searches: Sequence[tuple[Question, Candidates]]) -> _Scored:
        x = FeatureInputs(searches)
        notes, questions = note_features(x), question_features(x)
        count, mean, scale = len(NOTE_NAMES), self.models.local.mean, self.models.local.scale
        inputs = standardized(notes, mean[:count], scale[:count])
        for group in self.without & GROUPS.keys():
            inputs[:, list(GROUPS[group])] = 0.0  # the mean
        local = self._local.scores(inputs, standardized(questions, mean[count:], scale[count:]), x.bounds)
        for number, (question, _) in enumerate(searches):
            if question.time_only:
                span = slice(*x.bounds[number : number + 2])
                local[span] = time_first(local[span], notes[span, NOTE_NAMES.index("time")])
        n, starts = len(x.candidates.ids), x.starts
        terms = n + starts_of([len(candidates.term_df) for _, candidates in searches])
        walked = self._walk(x, local, notes[:, NOTE_NAMES.index("coverage")], terms)
        total = np.maximum(np.add.reduceat(walked.share[:n], starts[:-1]), 1e-12)
        share = walked.share[:n] / np.repeat(total, np.diff(starts))
        order = share.copy()
        highest = np.repeat(np.maximum.reduceat(local, x.bounds[:-1]), np.diff(x.bounds))
        order[x.rows] += TAIL * np.exp(local - highest)
        return _Scored(
            searches, starts, x.bounds, terms, x.rows, notes, questions, inputs, local, walked, share, order
        )  # fmt: skip

    def _explanation(self, scored: _Scored, number: int, row: int) -> dict[str, float]:
        """Return what each group of features, and the situation, contributes to a local score; the sum is the score."""
        place = int(np.searchsorted(scored.rows, row + scored.starts[number]))
        networks, count = self.models.local, len(NOTE_NAMES)
        question = standardized(scored.questions[number], networks.mean[count:], networks.scale[count:])
        values = networks.contributions(np.concatenate([scored.inputs[place], question]), GROUPS)
        return {**values, "situation": float(scored.local[place]) - sum(values.values())}

    def _walk(self, x: FeatureInputs, local: NDArray[np.float64], coverage: Floats, terms: Ints) -> Walk:
        """Return the walk, or its restart vector if the walk is left out. ``terms`` are the nodes of each search."""
        has_terms = "terms" not in self.without
        start = np.zeros(int(terms[-1]))
        for number, (question, candidates) in enumerate(x.searches):
            named = named_terms(question, candidates) if has_terms else np.zeros(len(candidates.term_df), np.float32)
            span, first = slice(*x.bounds[number : number + 2].tolist()), int(x.starts[number])
            restart = restart_vector(local[span], coverage[span], candidates, x.rows[span] - first, named)
            rows = len(candidates.ids)
            start[first : first + rows], start[terms[number] : terms[number + 1]] = restart[:rows], restart[rows:]
        without = "walk" in self.without
        return walk(NO_STEPS._replace(nodes=len(start)) if without else graph_of(x.candidates, terms=has_terms), start)


def _no_scores(n: int) -> Scores:
    zeros = np.zeros(n, np.float32)
    features = np.zeros((n, len(NOTE_NAMES)), np.float32)
    return Scores(zeros, zeros, zeros, features, NOTE_NAMES, lambda _: -1, lambda _: {})


def _evidence(scored: _Scored, number: int) -> Floats:
    within = scored.within(number)
    best_row = int(np.argmax(scored.order[scored.rows[within]]))  # of equals the first, which is the older
    return answer_features(scored.table(number), scored.local[within], best_row)


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
