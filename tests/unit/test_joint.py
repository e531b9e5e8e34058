"""One pass over several searches gives the scores of separate passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tiny import Row, Tiny
from zettel.model import LinkType, Step
from zettel.ports.query import Candidates, Question, Scores, Seed
from zettel.scoring.fusion import FusionScorer
from zettel.scoring.joint import joined
from zettel.scoring.ranking import rank
from zettel.search.explain import path_to

WORDS = ("cello", "ferry", "May", "Ann", "harbour", "Straw", "and", "the")
QUESTIONS = ("Where is Ann's cello?", "Who took the ferry in May 2024?", "harbour", "Where do I live now?", "the")
SCORER = FusionScorer()

texts = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
numbers = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0])
rows = st.builds(
    Row,
    texts,
    vector=st.lists(numbers, min_size=1, max_size=4),
    speaker=st.none() | st.sampled_from(["Ann", "Bob"]),
    session=st.none() | st.sampled_from(["a", "b"]),
    role=st.none() | st.sampled_from(["user", "assistant"]),
    at=st.sampled_from([0, 19_843 * 86_400_000_000]),
    terms=st.lists(st.sampled_from(["ferry", "cello"]), max_size=2, unique=True),
    seeds=st.sampled_from([int(Seed.TEXT), int(Seed.TITLE), 0]),
)


@st.composite
def searches(draw: st.DrawFn) -> tuple[Question, Candidates]:
    """Draw a question and its candidates; a row without seeds is context."""
    notes = draw(st.lists(rows, min_size=1, max_size=6))
    places = st.integers(0, len(notes) - 1)
    links = draw(st.lists(st.tuples(places, places, st.sampled_from(list(LinkType))), max_size=3))
    tiny = Tiny(notes, [link for link in links if link[0] != link[1]], named=draw(st.sampled_from([[], ["ferry"]])))
    question = tiny.ask(draw(st.sampled_from(QUESTIONS)), vector=[1.0, 0.5], today=19_900 * 86_400_000_000)
    candidates = tiny.about(question)
    return question, replace(candidates, pool=np.array([row.seeds != 0 for row in notes]))


@given(st.lists(searches(), min_size=1, max_size=4))
@settings(max_examples=30)
def test_one_pass_gives_the_scores_of_separate_passes(several: list[tuple[Question, Candidates]]) -> None:
    for (question, candidates), scores in zip(several, SCORER.score_each(several), strict=True):
        alone = SCORER.score(question, candidates)
        for name in ("score", "local_score", "graph_score", "features"):
            np.testing.assert_allclose(getattr(scores, name), getattr(alone, name), rtol=1e-4, atol=1e-5)
        assert scores.score.shape == (len(candidates.ids),)
        for row in rank(alone, candidates, 1):
            assert _path(row, candidates, scores) == _path(row, candidates, alone)
        assert scores.explanation is not None
        for row in np.flatnonzero(candidates.pool)[:1].tolist():
            assert np.isclose(sum(scores.explanation(row).values()), scores.local_score[row], atol=1e-4)


def _path(row: int, candidates: Candidates, scores: Scores) -> tuple[Step, ...]:
    return path_to(row, candidates, scores)


def test_numbers_of_rows_sessions_and_terms_follow_each_other() -> None:
    notes = [Row("a", session="s", terms=["x"]), Row("b", session="s", terms=["x"])]
    tiny = Tiny(notes, [(0, 1, LinkType.MENTIONS)], named=["x"])
    longer, shorter = tiny.ask("Is a b a c?"), tiny.ask("Is a b?")
    both = joined([tiny.about(shorter), tiny.about(longer)])
    first, second = tiny.about(shorter), tiny.about(longer)
    n, t = len(first.ids), len(first.term_df)
    assert both.previous.tolist() == [*first.previous, *np.where(second.previous < 0, -1, second.previous + n)]
    assert both.session.tolist() == [*first.session, *(second.session + len(first.session_length))]
    assert both.link_source.tolist() == [*first.link_source, *(second.link_source + n)]
    assert both.link_target.tolist() == [*first.link_target, *(second.link_target + n)]
    assert both.term_note.tolist() == [*first.term_note, *(second.term_note + n)]
    assert both.term_index.tolist() == [*first.term_index, *(second.term_index + t)]
    assert both.tf.shape == (2 * n, len(longer.tokens))
    assert not both.tf[:n, len(shorter.tokens) :].any()


def test_a_search_without_a_possible_hit_changes_nothing() -> None:
    tiny = Tiny([Row("A cello.", vector=[1.0]), Row("A boat.")])
    question = tiny.ask("Who has a cello?", vector=[1.0])
    candidates = tiny.about(question)
    empty = replace(candidates, pool=np.zeros(2, bool))
    first, second = SCORER.score_each([(question, empty), (question, candidates)])
    assert not first.score.any()
    np.testing.assert_allclose(second.score, SCORER.score(question, candidates).score, rtol=1e-5)
