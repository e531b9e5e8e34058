"""Ranking of notes by how well they answer a question about a current state."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tiny import Row, Tiny
from zettel.model import LinkType, Note
from zettel.scoring.answering import ANSWER_DEPTH, order_answers, parse_state_question
from zettel.scoring.fusion import FusionScorer
from zettel.search.answer_order import reorder_by_answer, replaced
from zettel.search.question import parse_question
from zettel.search.reorder import answer_depth

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
QUESTIONS = (
    "Where does Ann live?",
    "Who is in charge of the boat?",
    "What does the ferry cost?",
    "When is Ann's exam?",
)


def _note(place: int, content: str, speaker: str | None = "Ann", day: int | None = None) -> Note:
    when = None if day is None else START + timedelta(days=day)
    return Note(
        id=f"n_{place}", event_ids=(f"e_{place}",), seq=place + 1, recorded_at=START, content=content, speaker=speaker,
        occurred_at=when, valid_from=when,
    )  # fmt: skip


def _ordered(question: str, *messages: str) -> list[str]:
    """Return the messages in their new order; "a: " marks one of the assistant."""
    notes = [
        _note(place, text.removeprefix("a: "), None, place).model_copy(
            update={"role": "assistant" if text.startswith("a: ") else "user"}
        )
        for place, text in enumerate(messages)
    ]
    order = order_answers(question, notes)
    return [messages[place] for place in (order.places if order else range(len(messages)))]


def _first(question: str, *statements: str | tuple[str, str]) -> str:
    pairs = [statement if isinstance(statement, tuple) else ("Ann", statement) for statement in statements]
    notes = [_note(place, text, speaker, place) for place, (speaker, text) in enumerate(pairs)]
    order = order_answers(question, notes, [speaker for speaker, _ in pairs])
    return notes[order.places[0]].content if order else notes[0].content


def test_the_default_scorer_examines_answers() -> None:
    state, other = (parse_question(text, vector=None, today=None) for text in ("Where does Ann live?", "Ann's boat"))
    assert answer_depth(state, FusionScorer()) == ANSWER_DEPTH
    assert answer_depth(other, FusionScorer()) == 0
    assert answer_depth(state, FusionScorer(without=frozenset({"statements"}))) == 0


@pytest.mark.parametrize(
    ("question", "statements", "best"),
    [
        (QUESTIONS[0], ("If I lived in Turku, I would sail.", "I live in Bergen, by the harbour."), 1),
        (QUESTIONS[0], ("My sister lives in Turku.", "I live in Bergen."), 1),
        (QUESTIONS[0], (("Ben", "I live in Turku."), "I live in Bergen."), 1),
        (QUESTIONS[0], ("I live in Bergen.", "I like the house.", "We live in Oslo now."), 2),
        (QUESTIONS[1], ("I could see Ben looking after the boat one day.", ("Ida", "I look after the boat.")), 1),
        (QUESTIONS[2], ("The ferry was supposed to cost 12 euros, but it was called off.", "The ferry is 9 euros."), 1),
        (QUESTIONS[3], ("I dream about my exam.", "My exam is on 4 May."), 1),
        ("What did Ann say about the ferry?", ("The ferry nearly sank.", "The ferry costs 9 euros."), 0),
    ],
)
def test_claims_rank_above_suppositions(question: str, statements: tuple[str, ...], best: int) -> None:
    claim = statements[best]
    assert _first(question, *statements) == (claim if isinstance(claim, str) else claim[1])


@pytest.mark.parametrize(
    ("question", "statements"),
    [
        (
            "What is the code of the garden gate?",
            ("The code of the garden gate is 4711.", "The code of the house gate is 9922."),
        ),
        ("What does the small blue tent cost?", ("The small blue tent costs 90 euros.", "The blue tent is 150 euros.")),
        ("Where is the boat Mira moored?", ("The boat Mira is moored in Risør.", "The boat Delta is moored in Oslo.")),
    ],
)
def test_a_later_note_about_a_similar_thing_does_not_answer(question: str, statements: tuple[str, ...]) -> None:
    assert _first(question, *statements) == _first(question, *reversed(statements)) == statements[0]


@pytest.mark.parametrize(
    ("question", "other", "answer"),
    [
        ("Where do I live?", "The rent goes up to 1,240 euros from January.", "I live in Porto."),
        ("Where do I live?", "a: I live in Paris.", "I live in Porto."),
        ("Where do I live?", "My sister lives in Boston.", "My brother lives in Rome, and I live in Denver."),
        ("Where do I work?", "My boss lives in Leeds.", "I work at Apple."),
        ("Where does my wife work?", "I have a dog.", "My wife is from Naples. She works at the aquarium."),
        ("What is my boss called?", "My wife's boss is called Renata.", "My boss is called Milan."),
        ("What is the name of my boss?", "My sister is called Ida.", "My boss's name is Milan."),
        ("Who is our landlady?", "The landlady of my parents is Mrs Sommer.", "Our landlady is Mrs Petrov."),
        ("How much does my flat cost?", "My boss pays 900 euros.", "My flat costs 640 euros a month."),
    ],
)
def test_a_user_answers_questions_about_what_is_theirs(question: str, other: str, answer: str) -> None:
    assert _ordered(question, other, answer)[0] == _ordered(question, answer, other)[0] == answer


@pytest.mark.parametrize(
    ("question", "first", "other"),
    [
        ("Where does my wife work?", "She got a job at the court.", "I work at Apple."),
        ("Where do I work?", "I teach in Leeds.", "My interview at Google is on Friday."),
        ("What's the rent of the garage?", "For the garage we pay 85 euros.", "The rent is 900 euros."),
        ("Where do I live?", "a: Your home is in Porto.", "I might move to Utrecht."),
        ("Where do I live?", "I live in Porto, where could I swim?", "I live in Cork, on the river."),
        ("Where do I live?", "We sold the house in Exeter.", "I do not live in Cork."),
        ("Where do you live?", "a: I live in the cloud.", "I live in Porto."),
        ("What is my boss called?", "I often call my boss Milan.", "My boss is on holiday until Monday."),
    ],
)
def test_the_order_stays_without_a_certain_answer(question: str, first: str, other: str) -> None:
    assert _ordered(question, first, other) == [first, other]


def test_a_pronoun_needs_a_subject_in_the_same_note() -> None:
    question, messages = "Where does my wife work?", ("My wife is from Naples.", "She works at the aquarium.")
    assert _ordered(question, *messages) == list(messages)


@pytest.mark.parametrize(
    "question",
    ["Where did Ann live?", "Why does Ann live there?", "What books has Ann?", "Ann's flat", "What do they do?"],
)
def test_questions_not_about_one_state_are_not_reordered(question: str) -> None:
    assert parse_state_question(question) is None
    assert order_answers(question, [_note(0, "a"), _note(1, "b")]) is None


def test_a_pasted_document_is_not_a_state_question() -> None:
    start = perf_counter()
    assert parse_state_question("Where does Ann live? " * 3_000) is None
    assert perf_counter() - start < 1  # a quadratic pattern would take far longer
    assert parse_state_question("Where does Ann live? " * 40) is not None


TEXTS = (
    "I live in Bergen.", "I live in Oslo.", "Would I live in Rome?", "The ferry costs 9 euros.",
    "Ida runs the boat.", "Hm.", "",
)  # fmt: skip


@given(
    st.sampled_from(QUESTIONS), st.lists(st.tuples(st.sampled_from(TEXTS), st.none() | st.integers(0, 5)), max_size=12)
)
def test_every_note_appears_once(question: str, statements: list[tuple[str, int | None]]) -> None:
    notes = [_note(place, text, day=day) for place, (text, day) in enumerate(statements)]
    order = order_answers(question, notes)
    assert order is None or sorted(order.places) == list(range(len(notes)))
    assert order is None or len(order.verdicts) == len(notes)


def test_the_replacement_of_an_answer_is_an_answer() -> None:
    notes = [_note(0, "I live in Bergen.", day=0), _note(1, "Goodbye, old fjord!", day=9), _note(2, "Hello.", day=3)]
    order = order_answers(QUESTIONS[0], notes, replaced={0: 1})
    assert order is not None
    assert order.places[:2] == [1, 0]


def test_the_source_of_a_replaced_fact_is_outdated() -> None:
    rows = [Row("told it", at=1), Row("the fact", at=1, valid_to=5), Row("the new fact", at=5), Row("else", at=2)]
    tiny = Tiny(rows, [(1, 0, LinkType.DERIVED_FROM), (2, 1, LinkType.SUPERSEDES)])
    candidates = tiny.about(tiny.ask("fact"))
    assert replaced(candidates, [0, 1, 2, 3], today=9) == {0: 2, 1: 2}
    assert replaced(candidates, [0, 1, 3], today=9) == {0: 0, 1: 1}
    assert replaced(candidates, [0, 1, 2, 3], today=3) == {}


def test_scores_follow_the_new_order_without_deleted_notes() -> None:
    texts = ("If I lived in Rome, I would sing.", "deleted", "I live in Oslo.", "Hello there.")
    tiny = Tiny([Row(text, speaker="Ann") for text in texts])
    question = tiny.ask(QUESTIONS[0])
    score = np.array([0.9, 0.8, 0.7, 0.6], np.float32)
    notes = {f"n_{place}": _note(place, text) for place, text in enumerate(texts) if text != "deleted"}
    rows, changed, worth = reorder_by_answer(question, tiny.about(question), score, [0, 1, 2, 3], notes, most=3)
    assert rows == [2, 0, 3]
    assert changed[rows].tolist() == sorted(score[[0, 2, 3]].tolist(), reverse=True)
    assert worth[2] > worth[0]
