"""FusionScorer, the default: a local score for every note, then the walk that starts from the best of them.

Near: the local features of :mod:`zettel.scoring.features`, each times its weight, added up. Walk: the notes with the
best local scores, and the titles and Terms that the question names, start the walk of :mod:`zettel.scoring.walk`; its
share ranks. Weights are in log-odds, so that the softmax of the local scores is a distribution over notes; where that
is broad, the question is one for several notes, and they are taken from several sessions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from zettel.errors import InvalidInput
from zettel.model import LinkType
from zettel.query import Scores, Seed
from zettel.scoring import features
from zettel.scoring.answering import READ_AGAIN
from zettel.scoring.calibrate import calibrate, evidence
from zettel.scoring.names import speakers_named, terms_meant, unheard
from zettel.scoring.walk import NOWHERE, Walk, graph_of, walk
from zettel.search.pool import RARE_TERM_DF, best, idf
from zettel.search.rank import outdated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from zettel.query import Candidates, Floats, Question

Group: TypeAlias = Literal["windows", "walk", "text", "vector", "time", "speaker", "terms", "spread", "statements"]
"""A group of evidence that can be left out, to see what it is worth."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A local feature's name, its weight (log-odds per unit), and the group that it goes with."""

    name: str
    weight: float
    group: Group | None


FEATURES = (
    Feature("text_window_1", 0.1, "text"),  # points: a rare word found has about 7
    Feature("text_window_3", 0.2, "text"),
    Feature("text_session", 0.05, "text"),
    Feature("coverage", 1.0, "text"),  # 0 .. 1
    Feature("vector", 4.0, "vector"),  # cosines: between texts on one matter they differ by about 0.3
    Feature("vector_window_1", 2.0, "vector"),
    Feature("vector_window_3", 1.0, "vector"),
    Feature("vector_best_3", 5.0, "vector"),
    Feature("speaker", 2.0, "speaker"),  # 0 or 1, as those below
    Feature("time", 2.0, "time"),
    Feature("question", -0.6, None),
    Feature("brevity", -4.0, None),  # 0 .. 1
)
"""Fitted by listwise softmax regression (:mod:`zettel.scoring.fit`) to the 171 answerable questions of six
conversations of our own, and to nothing else; the penalty, 0.1, has the least loss when one conversation after the
other is left out. Rounded to one significant digit. Recall@10 is 0.65 on the six, also when each is left out of its
own fit, and 0.69 on two others. In a checkout this gives them again::

    zettel scorer fit zettel/cli/demo/conversation.json tests/data/team.json \\
        tests/data/conversations/{family,coding-agent,meetings,friends}.json \\
        --test tests/data/conversations/research.json --test tests/data/conversations/travel.json \\
        --documents tests/data/documents.jsonl tests/data/documents-questions.jsonl
"""

STARTERS = 50
"""Best local scores from which the walk starts: enough to reach what they lead to, few enough to be about it."""
TITLE_SHARE = 0.5
"""Share of the start that goes to the notes whose titles the question names, if it names any."""
TITLE_COVERAGE = 0.25
"""Coverage from which a title's note has that share in full, with less a part: that "Run" is the title of something
does not make every question about a charity run one about that."""
TERM_SHARE = 0.1
"""The same for rare Terms: their notes have the word already counted in the local score."""
NAMED_COVERAGE = 2.0
"""Log-odds by which a named note with all asked rare words leads one with none: "Straw" is in "The Straw Hat"."""
BROAD = 30.0
"""Perplexity of the local scores from which a question is broad: as undecided as if so many notes answered equally."""
ROOM = 3
"""Notes of one session that a broad question gets before others have the turn."""
CROWDING = 0.3
"""Log-odds that each further note of a session loses then. What one asks of many notes is spread over sessions."""
CROWD = 100
"""Best notes among which that is done."""
TAIL = 1e-6
"""What the local score adds to the walk's share: it ranks the notes that the walk does not reach, after all others."""
LIFT = 1.05
"""What replaced a note stands at least this much above it."""
OUTDATED = 0.5
"""What is left of the score of a note that is no longer valid."""


class FusionScorer:
    """The two stages of ranking; ``without`` leaves groups of evidence out, ``features`` brings other weights."""

    name = "fusion"

    def __init__(self, without: frozenset[Group] = frozenset(), features: Sequence[Feature] = FEATURES) -> None:
        unknown = without - set(get_args(Group))
        if unknown:
            raise InvalidInput(f"no such group of evidence: {', '.join(sorted(unknown))}")
        self.without = without
        self.features = tuple(f for f in features if f.group not in without)
        self.reads_again = 0 if "statements" in without else READ_AGAIN

    def score(self, question: Question, candidates: Candidates) -> Scores:
        """Score the candidates: (n,) each; ``score`` ranks them."""
        n = len(candidates.ids)
        rows = np.flatnonzero(candidates.pool)
        names = tuple(feature.name for feature in self.features)
        weighted = np.zeros((n, len(names)), np.float32)
        if len(rows) == 0:
            nothing = np.zeros(n, np.float32)
            return Scores(nothing, nothing, nothing, weighted, names, lambda _: -1)
        values = local_features(question, candidates, rows, windows="windows" not in self.without)
        gains = np.column_stack([values[feature.name] for feature in self.features])
        gains *= np.array([feature.weight for feature in self.features], np.float32)
        weighted[rows] = gains
        near = gains.sum(axis=1, dtype=np.float64)
        spoken = gains[:, names.index("speaker")] if "speaker" in names else np.zeros(len(rows), np.float32)
        walked = self._walk(question, near, values["coverage"], candidates, rows)
        share = walked.share[:n] / max(float(walked.share[:n].sum()), 1e-12)
        order = share.copy()
        order[rows] += TAIL * np.exp(near - near.max())
        if "spread" not in self.without and perplexity(near) > BROAD:
            order = spread(order, candidates, rows)
        order = prefer_replacements(order, candidates, question.today)
        return Scores(
            score=calibrate(order, evidence(near, values["coverage"], spoken), candidates.pool),
            near=scattered(near, rows, n).astype(np.float32),
            walk=share.astype(np.float32),
            features=weighted,
            feature_names=names,
            sender=walked.sender,
        )

    def _walk(
        self,
        question: Question,
        near: NDArray[np.float64],
        coverage: Floats,
        candidates: Candidates,
        rows: NDArray[np.intp],
    ) -> Walk:
        """The walk, or where it would have started if it is left out."""
        terms = "terms" not in self.without
        named = named_terms(question, candidates) if terms else np.zeros(len(candidates.term_df), np.float32)
        begin = start(near, coverage, candidates, rows, named)
        graph = NOWHERE._replace(nodes=len(begin)) if "walk" in self.without else graph_of(candidates, terms=terms)
        return walk(graph, begin)


def local_features(
    question: Question, candidates: Candidates, rows: NDArray[np.intp], *, windows: bool = True
) -> dict[str, Floats]:
    """Every local feature of ``rows`` by name, (rows,) each; without ``windows`` every note stands alone."""
    stats = candidates.stats
    weights = features.token_weights(
        idf(stats.df, stats.notes), question.rarity, question.tokens, features.speaker_tokens(candidates.role_names)
    )
    window = features.around(candidates.previous, candidates.next, rows, 3 if windows else 0)
    session = candidates.session[rows] if windows else np.full(len(rows), -1)
    own, cosine = candidates.tf[rows], candidates.cosine
    length = candidates.length[rows]
    # What is summed up over a window, column by column: asked tokens, cosine, length, and how many notes it has.
    told = np.column_stack([candidates.tf, cosine, candidates.length, np.ones(len(cosine))]).astype(np.float32)
    one = features.window_sums(told, window[:3])
    three = one + features.window_sums(told, window[3:])
    sessions = features.bm25(candidates.session_tf, candidates.session_length, features.USUAL_SESSION, weights)
    return {
        "text_window_1": features.bm25(one[:, :-3], one[:, -2] / one[:, -1], features.USUAL_LENGTH, weights),
        "text_window_3": features.bm25(three[:, :-3], three[:, -2] / three[:, -1], features.USUAL_LENGTH, weights),
        "text_session": features.of_session(
            features.bm25(own, length, features.USUAL_LENGTH, weights), sessions, session
        ),
        "coverage": features.coverage(own, weights * question.rarity),
        "vector": cosine[rows],
        "vector_window_1": one[:, -3] / one[:, -1],
        "vector_window_3": three[:, -3] / three[:, -1],
        "vector_best_3": features.window_best(cosine, window),
        "speaker": features.speaker_named(candidates.role[rows], speakers_named(question, candidates.role_names)),
        "time": features.in_time(candidates.occurred_at[rows], question.times),
        "question": features.asks(candidates.is_question[rows]),
        "brevity": features.brevity(length),
    }


def named_terms(question: Question, candidates: Candidates) -> Floats:
    """What the start gives each Term: 1 / df of rare ones that the question names, (t,).

    A name that the scope has never heard stands for the Terms that are written nearly alike.
    """
    df = candidates.term_df
    named = candidates.term_named.copy()
    if unknown := unheard(question, candidates.stats.df):
        named[terms_meant(unknown, candidates.term_keys)] = True
    return np.where(named & (df >= 1) & (df <= RARE_TERM_DF), 1.0 / np.maximum(df, 1), 0.0).astype(np.float32)


def start(
    near: NDArray[np.float64], coverage: Floats, candidates: Candidates, rows: NDArray[np.intp], terms: Floats
) -> NDArray[np.float64]:
    """The restart vector, (n + t,) summing to 1: softmax over the STARTERS best rows, and what the question names.

    ``near`` and ``coverage`` are those of ``rows``, which may become hits; the walk starts at no other note.
    ``terms`` are those of :func:`named_terms`.
    """
    n = len(candidates.ids)
    first = best(near, candidates.seq[rows], STARTERS)
    odds = np.exp(near[first] - near[first[0]])
    begin = scattered(odds / odds.sum(), rows[first], n + len(terms))
    if terms.any():
        begin *= 1.0 - TERM_SHARE
        begin[n:] += TERM_SHARE * terms / terms.sum()
    titled = np.flatnonzero(candidates.seeds[rows] & Seed.TITLE)
    if len(titled):
        share = TITLE_SHARE * min(1.0, float(coverage[titled].max()) / TITLE_COVERAGE)
        named = np.exp(NAMED_COVERAGE * coverage[titled])
        begin *= 1.0 - share
        begin[rows[titled]] += share * named / named.sum()
    return begin


def perplexity(near: NDArray[np.float64]) -> float:
    """exp of the entropy of the softmax of local scores: how many notes seem to answer, 1 .. all of them."""
    below = near - near.max()
    odds = np.exp(below)
    total = float(odds.sum())
    return total * float(np.exp(-(odds @ below) / total))


def spread(order: NDArray[np.float64], candidates: Candidates, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """``order`` with less for the notes of a session after its ROOM best, CROWDING more for each, (n,).

    It is what one gets by taking the best note again and again, and charging the rest of a session for each of its
    notes that was taken beyond ROOM: a greedy choice for diversity as in Carbonell and Goldstein 1998.
    """
    first = rows[best(order[rows], candidates.seq[rows], CROWD)]
    first = first[candidates.session[first] >= 0]
    by_session = np.argsort(candidates.session[first], kind="stable")
    session = candidates.session[first][by_session]
    place = np.arange(len(first)) - np.searchsorted(session, session)
    changed: NDArray[np.float64] = order.copy()
    changed[first[by_session]] *= np.exp(-CROWDING * np.maximum(place - ROOM + 1, 0))
    return changed


def scattered(values: NDArray[np.float64], rows: NDArray[np.intp], size: int) -> NDArray[np.float64]:
    """``values`` at ``rows``, 0 elsewhere: (size,)."""
    spread = np.zeros(size)
    spread[rows] = values
    return spread


def prefer_replacements(share: NDArray[np.float64], candidates: Candidates, today: int | None) -> NDArray[np.float64]:
    """Shares in which a note that is no longer valid stands below what replaced it, (n,)."""
    old = outdated(candidates, today)
    if not old.any():
        return share
    kept = (candidates.link_type == tuple(LinkType).index(LinkType.SUPERSEDES)) & old[candidates.link_target]
    newer, older = candidates.link_source[kept], candidates.link_target[kept]
    order = np.where(old, OUTDATED * share, share)
    for _ in range(len(newer)):  # once along the longest chain of replacements; two or three rounds in practice
        raised = order.copy()
        np.maximum.at(raised, newer, LIFT * order[older])
        np.maximum.at(raised, newer, np.where(old[newer], 0.0, LIFT * share[older]))
        if np.array_equal(raised, order):
            break
        order = raised
    return order
