"""FusionScorer, the default scorer: a local score for every note, then a graph score.

The local score is the weighted sum of the features in :mod:`zettel.scoring.features`. The notes with the best local
scores, and the titles and terms that the question names, start the PageRank walk of :mod:`zettel.scoring.walk`. The
share of the walk on a note is its graph score, which ranks. Weights are in log-odds: the softmax of the local scores
is a distribution over notes. If it is broad, the question has many answers, and hits are spread over sessions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np

from zettel.errors import InvalidInput
from zettel.model import LinkType
from zettel.ports.candidate_rules import RARE_TERM_DF, best
from zettel.ports.query import Scores, Seed
from zettel.scoring.answering import ANSWER_DEPTH
from zettel.scoring.calibrate import calibrate, evidence
from zettel.scoring.features import FEATURES, AblationGroup, Feature, local_features
from zettel.scoring.names import similar_terms, unknown_names
from zettel.scoring.ranking import outdated
from zettel.scoring.walk import NO_STEPS, Walk, graph_of, walk

if TYPE_CHECKING:
    from collections.abc import Sequence

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
BROAD = 30.0
"""Perplexity of the local scores from which a question counts as broad."""
UNPENALISED = 3
"""Notes per session without a penalty in a broad question."""
SESSION_PENALTY = 0.3
"""Penalty in log-odds for each further note of a session."""
SPREAD_DEPTH = 100
"""Best notes to which this penalty applies."""
TAIL = 1e-6
"""Factor on the local score beside the graph score. It ranks notes that the walk does not reach, after all others."""
LIFT = 1.05
"""Least ratio between the score of a replacement and that of the note it replaces."""
OUTDATED = 0.5
"""Factor on the score of an outdated note."""


class FusionScorer:
    """The default scorer. ``without`` leaves groups of features out, ``features`` replaces the weights."""

    name = "fusion"

    def __init__(self, without: frozenset[AblationGroup] = frozenset(), features: Sequence[Feature] = FEATURES) -> None:
        unknown = without - set(get_args(AblationGroup))
        if unknown:
            raise InvalidInput(f"unknown group: {', '.join(sorted(unknown))}; use {', '.join(get_args(AblationGroup))}")
        self.without = without
        self.features = tuple(f for f in features if f.group not in without)
        self.answer_depth = 0 if "statements" in without else ANSWER_DEPTH

    def score(self, question: Question, candidates: Candidates) -> Scores:
        """Score the candidates: (n,) each; ``score`` ranks them."""
        n = len(candidates.ids)
        rows = np.flatnonzero(candidates.pool)
        names = tuple(feature.name for feature in self.features)
        weighted = np.zeros((n, len(names)), np.float32)
        if len(rows) == 0:
            zeros = np.zeros(n, np.float32)
            return Scores(zeros, zeros, zeros, weighted, names, lambda _: -1)
        values = local_features(question, candidates, rows, windows="windows" not in self.without)
        gains = np.column_stack([values[feature.name] for feature in self.features])
        gains *= np.array([feature.weight for feature in self.features], np.float32)
        weighted[rows] = gains
        local = gains.sum(axis=1, dtype=np.float64)
        speaker_gains = gains[:, names.index("speaker")] if "speaker" in names else np.zeros(len(rows), np.float32)
        walked = self._walk(question, local, values["coverage"], candidates, rows)
        share = walked.share[:n] / max(float(walked.share[:n].sum()), 1e-12)
        order = share.copy()
        order[rows] += TAIL * np.exp(local - local.max())
        if "spread" not in self.without and perplexity(local) > BROAD:
            order = spread(order, candidates, rows)
        order = prefer_replacements(order, candidates, question.today)
        return Scores(
            score=calibrate(order, evidence(local, values["coverage"], speaker_gains), candidates.pool),
            local_score=scatter(local, rows, n).astype(np.float32),
            graph_score=share.astype(np.float32),
            features=weighted,
            feature_names=names,
            sender=walked.sender,
        )

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


def perplexity(local: NDArray[np.float64]) -> float:
    """Return the effective number of answers, from 1: exp of the entropy of the softmax of the local scores."""
    below = local - local.max()
    odds = np.exp(below)
    total = float(odds.sum())
    return total * float(np.exp(-(odds @ below) / total))


def spread(order: NDArray[np.float64], candidates: Candidates, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return scores with a penalty of SESSION_PENALTY for each note of a session after its UNPENALISED best, (n,).

    This equals a greedy choice for diversity (Carbonell and Goldstein 1998) that charges a session for each of its
    notes taken beyond UNPENALISED.
    """
    first = rows[best(order[rows], candidates.seq[rows], SPREAD_DEPTH)]
    first = first[candidates.session[first] >= 0]
    by_session = np.argsort(candidates.session[first], kind="stable")
    session = candidates.session[first][by_session]
    place = np.arange(len(first)) - np.searchsorted(session, session)
    changed: NDArray[np.float64] = order.copy()
    changed[first[by_session]] *= np.exp(-SESSION_PENALTY * np.maximum(place - UNPENALISED + 1, 0))
    return changed


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
