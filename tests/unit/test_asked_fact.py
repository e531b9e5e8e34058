"""Questions for a fact, and the notes that state it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from zettel.model import Note
from zettel.search.asked_fact import asked_fact, stating

START = datetime(2024, 1, 1, tzinfo=timezone.utc)


def _note(seq: int, content: str, role: str = "user") -> Note:
    return Note.model_validate(
        {
            "id": f"n_{seq}", "event_ids": (f"e_{seq}",), "seq": seq, "recorded_at": START, "content": content,
            "speaker": role, "role": role, "valid_from": START + timedelta(days=seq),
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("question", "attribute", "path", "thing"),
    [
        ("Where do I live?", "home", (), ""),
        ("and where do i live now", "home", (), ""),
        ("What's my address at the moment?", "home", (), ""),
        ("Can you tell me where does my wife work?", "work", ("wife",), ""),
        ("What is my name?", "name", (), ""),
        ("What should you call me?", "name", (), ""),
        ("Who is my boss?", "role", (), "boss"),
        ("What's my dentist called?", "role", (), "dentist"),
        ("Do I have any allergies?", "allergy", (), ""),
        ("What am I allergic to?", "allergy", (), ""),
        ("Am I still vegetarian?", "diet", (), ""),
        ("How much rent do I pay?", "rent", (), ""),
        ("What do I do for a living?", "job", (), ""),
        ("How old is my son?", "age", ("son",), ""),
    ],
)
def test_questions_for_a_fact(question: str, attribute: str, path: tuple[str, ...], thing: str) -> None:
    asked = asked_fact(question)
    assert asked is not None
    assert (asked.attribute, asked.owner.path, " ".join(asked.thing)) == (attribute, path, thing)
    assert asked.owner.person == {"user"}


@pytest.mark.parametrize(
    ("question", "attribute", "when"),
    [
        ("Where do I live now?", "home", "now"),
        ("Where did I live before?", "home", "before"),
        ("Where did I use to live?", "home", "before"),
        ("Where was I working previously?", "work", "before"),
        ("Who was my boss?", "role", "before"),
        ("What was my old address?", "home", "before"),
        ("Where did I live in January 2025?", "home", "then"),
        ("Where did I work back in May?", "work", "then"),
    ],
)
def test_the_time_that_a_question_asks_about(question: str, attribute: str, when: str) -> None:
    asked = asked_fact(question, is_dated=True)
    assert asked is not None
    assert (asked.attribute, asked.when) == (attribute, when)


@pytest.mark.parametrize(
    "question",
    [
        "Where did I live in 2019?",
        "Where could I live?",
        "What should I eat tonight?",
        "Why do I live here?",
        "Who is the boss of Ben?",
        "Where do I live while the flat is painted?",
        "What is a good address for parcels?",
        "x" * 10_000,
    ],
)
def test_other_questions(question: str) -> None:
    assert asked_fact(question) is None


@pytest.mark.parametrize(
    ("question", "contents", "expected"),
    [
        ("Where do I live?", ["I live in Porto.", "The rent rises.", "I just moved to Graz for a new job."], [2, 0]),
        ("Where do I work?", ["My wife works at Google.", "I moved to Graz for a job as a nurse at Kastner."], [1]),
        ("Where does my wife work?", ["My wife works at Google.", "I work at Apple."], [0]),
        (
            "what am i allergic to?",
            ["my brother is allergic to nuts", "no shellfish ever, prawns put me in hospital last year"],
            [1],
        ),
        ("where do i live", ["i live in lisbon with carla", "so weve moved to porto!"], [1, 0]),
        (
            "who is my partner",
            ["hey im lena, i live in lisbon with my partner carla", "carla and me broke up", "tom and ana broke up"],
            [1, 0],
        ),
        ("Do I have allergies?", ["I'm vegan and allergic to hazelnuts, any ideas?", "I have a nut allergy."], [0, 1]),
        ("Am I vegan?", ["I'm vegan.", "I'm not vegan any more."], [1, 0]),
        ("Who is my boss?", ["My boss is Jürgen.", "My new boss is Silvia.", "Jürgen's boss is Kai."], [1, 0]),
        ("Where do I live?", ["Where would I live if I moved to Rome?"], []),
    ],
)
def test_the_latest_statement_comes_first(question: str, contents: list[str], expected: list[int]) -> None:
    asked = asked_fact(question)
    assert asked is not None
    assert stating(asked, [_note(seq, content) for seq, content in enumerate(contents)]) == expected


def test_an_assistant_states_nothing_about_the_user() -> None:
    asked = asked_fact("Where do I live?")
    assert asked is not None
    assert stating(asked, [_note(0, "I live in the cloud, in Dublin.", "assistant")]) == []
