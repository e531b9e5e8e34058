"""The default scorer, ranking and explanations in small scopes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.tiny import Row, Tiny
from zettel.errors import InvalidInput
from zettel.model import LinkType
from zettel.ports.query import Candidates, Scores, Seed
from zettel.scoring.features import NOTE_NAMES
from zettel.scoring.fusion import GROUPS, FusionScorer
from zettel.scoring.ranking import rank
from zettel.search.explain import explain

DAY = 86_400_000_000

FILM = Tiny(
    [
        Row("The Glass Ferryman is a drama directed by Oriel Vantongeren.", seeds=int(Seed.TITLE)),
        Row("She was the fourth child of a lock keeper in Sankt Alwin."),
        Row("Where was the ferry built, and who was born on it?"),
        Row("A glass of water stood on the table."),
    ],
    [(0, 1, LinkType.MENTIONS)],
)
QUESTION = "Where was the director of The Glass Ferryman born?"


def ranked(tiny: Tiny, text: str, k: int = 10, **ask: object) -> tuple[list[int], Scores, Candidates]:
    question = tiny.ask(text, **ask)  # type: ignore[arg-type]
    candidates = tiny.about(question)
    scores = FusionScorer().score(question, candidates)
    return rank(scores, candidates, k), scores, candidates


def test_a_mention_of_a_named_title_is_found_without_shared_words() -> None:
    rows, scores, candidates = ranked(FILM, QUESTION)
    assert rows[:2] == [0, 1]
    why = explain(1, candidates, scores, "fusion", None)
    assert [(step.kind, step.name, step.over) for step in why.path] == [
        ("question", "title", "NAMES"),
        ("note", "n_0", "MENTIONS"),
    ]
    assert why.graph_score == pytest.approx(float(scores.graph_score[1]), abs=1e-6)


def test_a_path_over_a_term_names_the_term() -> None:
    far, near = [-1.0], [1.0]
    rows = [Row("He plays it daily.", far, terms=["theorbo"]), Row("A theorbo!", near, terms=["theorbo"])]
    _, scores, candidates = ranked(Tiny(rows, named=["theorbo"]), "Who has a theorbo?", vector=near)
    path = explain(0, candidates, scores, "fusion", None).path
    assert [(step.kind, step.name, step.over) for step in path] == [
        ("note", "n_1", "HAS_TERM"),
        ("term", "theorbo", "~HAS_TERM"),
    ]


def test_without_the_graph_score_it_is_not_found() -> None:
    question = FILM.ask(QUESTION)
    candidates = FILM.about(question)
    scorers = FusionScorer(), FusionScorer(frozenset({"walk"}))
    walked, alone = (scorer.score(question, candidates).score for scorer in scorers)
    assert walked[1] > 4 * walked[3]
    assert alone[1] < 1.1 * alone[3], "no better than another note"


def test_an_answer_is_found_through_the_preceding_question() -> None:
    tiny = Tiny(
        [
            Row("Which instrument does your sister play?", speaker="Bob", session="a"),
            Row("The viola, since she was nine.", speaker="Ann", session="a"),
            Row("My brother had a cold.", speaker="Bob", session="b"),
            Row("Mine never has one.", speaker="Ann", session="b"),
        ]
    )
    assert ranked(tiny, "What instrument does Ann's sister play?")[0][0] == 1


def test_a_named_speaker_raises_the_score() -> None:
    tiny = Tiny([Row("I bought a red bicycle.", speaker="Ann"), Row("I bought a red bicycle.", speaker="Bob")])
    assert ranked(tiny, "What did Bob buy?")[0] == [1, 0]
    assert ranked(tiny, "What did Ann buy?")[0] == [0, 1]


def test_a_misspelled_name_still_names_the_speaker() -> None:
    tiny = Tiny([Row("I bought a red bicycle.", speaker="Bob"), Row("I bought a red bicycle.", speaker="Jonathan")])
    assert ranked(tiny, "What did Jon buy?")[0] == [1, 0]
    terms = Tiny([Row("A boat.", terms=[name]) for name in ("bertil", "bertil", "catherine", "catherine")])
    assert ranked(terms, "Has Katherine a boat?")[0] == [3, 2, 1, 0]


def test_a_title_with_little_coverage_adds_little() -> None:
    rows = [Row("Run is a film.", seeds=int(Seed.TITLE)), Row("We gathered four thousand for the hospice, with rain.")]
    deliberate, accidental = "What is Run, the film?", "How many thousands did the hospice run with rain bring?"
    assert ranked(Tiny(rows), deliberate)[1].graph_score[0] > 0.5
    assert ranked(Tiny(rows), accidental)[0] == [1, 0]


def test_a_question_about_time_alone_ranks_notes_of_that_time_first() -> None:
    may = 19_843 * DAY + DAY  # 1 May 2024
    rows = [Row("We talked about May.", role="user", at=may - 40 * DAY), Row("I sold the boat.", role="user", at=may)]
    assert ranked(Tiny(rows), "What did I tell you in May 2024?", today=may + 90 * DAY)[0] == [1, 0]
    assert ranked(Tiny(rows), "Did we talk about May?", today=may + 90 * DAY)[0] == [0, 1]


def test_the_score_falls_for_another_speaker() -> None:
    rows = [Row("My cello is from 1890, a gift of my aunt.", speaker="Ann"), Row("I had soup.", speaker="Bob")]
    question = "How old is {}'s cello, the gift of an aunt?"
    right, wrong = (ranked(Tiny(rows), question.format(name))[1].score.max() for name in ("Ann", "Bob"))
    assert wrong < 0.5 * right


def test_a_matching_date_raises_the_score() -> None:
    may, june = 19_843 * DAY, 19_874 * DAY  # 30 April and 31 May 2024
    tiny = Tiny([Row("We sang in the choir.", at=may + DAY), Row("We sang in the choir.", at=june + DAY)])
    assert ranked(tiny, "What did we sing in June 2024?")[0][0] == 1
    assert ranked(tiny, "What did we sing in May 2024?")[0][0] == 0


def test_a_replacement_ranks_above_the_note() -> None:
    tiny = Tiny(
        [Row("Ann lives in Bergen.", at=1 * DAY, valid_to=5 * DAY), Row("A flat in Oslo.", at=5 * DAY)],
        [(1, 0, LinkType.SUPERSEDES)],
    )
    rows, scores, candidates = ranked(tiny, "Where does Ann live in Bergen?", today=9 * DAY)
    assert rows == [1, 0]
    why = explain(0, candidates, scores, "fusion", 9 * DAY)
    assert why.superseded_by == "n_1"
    assert why.time == "no longer valid since 1970-01-06"
    assert ranked(tiny, "Where does Ann live in Bergen?", today=3 * DAY)[0] == [0, 1]


def test_a_chain_of_replacements_ends_with_the_newest() -> None:
    rows = [Row("Ann lives in Bergen.", valid_to=2 * DAY), Row("Oslo, then.", valid_to=4 * DAY), Row("Now Rome.")]
    tiny = Tiny(rows, [(1, 0, LinkType.SUPERSEDES), (2, 1, LinkType.SUPERSEDES)])
    assert ranked(tiny, "Where does Ann live, in Bergen?", today=9 * DAY)[0] == [2, 1, 0]


def test_ties_go_to_the_newer_note_and_parts_count_once() -> None:
    tiny = Tiny([Row("red bicycle", event=0), Row("blue bicycle", event=1), Row("red bicycle", event=0)])
    rows, scores, _ = ranked(tiny, "red bicycle")
    assert scores.score[0] == scores.score[2]
    assert rows == [0, 1]


def test_context_rows_are_not_hits() -> None:
    tiny = Tiny([Row("red bicycle", pool=False), Row("blue boat")])
    assert ranked(tiny, "red bicycle")[0] == [1]


def test_the_score_reflects_whether_there_is_an_answer() -> None:
    tiny = Tiny(
        [Row("Ann moved to Oslo in May.", vector=[1.0]), Row("The cello needs new strings.", vector=[0.0, 1.0])]
    )
    answered = ranked(tiny, "When did Ann move to Oslo?", vector=[0.9, 0.1])[1].score
    missed = ranked(tiny, "Who invented the telescope?", vector=[0.0, 0.0, 1.0])[1].score
    assert 0.0 <= missed.max() < 0.1 < 0.5 < answered.max() <= 1.0


def test_an_empty_scope_has_no_ranking() -> None:
    rows, scores, _ = ranked(Tiny([]), "Anything?")
    assert rows == []
    assert scores.features.shape == (0, len(NOTE_NAMES))


@pytest.mark.parametrize("text", ["?", "the of and", "Bob"])
def test_a_question_without_tokens_still_ranks(text: str) -> None:
    _, scores, _ = ranked(Tiny([Row("a b c"), Row("", speaker="Bob", session="s")]), text)
    assert np.isfinite(scores.score).all()


def test_groups_can_be_left_out_and_unknown_groups_raise() -> None:
    tiny = Tiny([Row("I bought a bicycle.", speaker="Ann"), Row("I bought a bicycle.", speaker="Bob")])
    question = tiny.ask("What did Bob buy?")
    with_names, without = (
        FusionScorer(frozenset(parts)).score(question, tiny.about(question)).local_score for parts in ((), ("speaker",))
    )
    assert with_names[1] > with_names[0]
    assert without[1] == pytest.approx(without[0])
    with pytest.raises(InvalidInput, match="colour"):
        FusionScorer(frozenset({"colour"}))  # type: ignore[arg-type]


def test_questions_about_the_user_and_about_the_assistant_rank_differently() -> None:
    """The same words and vectors: the question decides whose message comes first."""
    rows = [Row("A week in Lisbon.", [1.0], role=role, session="s") for role in ("user", "assistant")]
    tiny = Tiny([*rows, Row("Good night.", [0.0, 1.0], role="user", session="s")])
    assert ranked(tiny, "What holiday did you suggest to me?", vector=[0.8, 0.2])[0][0] == 1
    assert ranked(tiny, "Where did I want to go on my holiday?", vector=[0.8, 0.2])[0][0] == 0


def test_features_explain_the_local_score() -> None:
    rows, scores, candidates = ranked(FILM, QUESTION)
    why = explain(rows[0], candidates, scores, "fusion", None)
    assert sum(why.features.values()) == pytest.approx(why.local_score, abs=1e-3)
    assert set(why.features) <= {*GROUPS, "situation"}
    assert explain(rows[0], candidates, scores, "fusion", None, full=False).features == {}
