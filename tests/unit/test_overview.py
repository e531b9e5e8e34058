"""Abstract questions: which they are, what they are about, and which insights come first."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from zettel.model import Hit, Kind, Note, Why
from zettel.search.overview import choose, insights_first
from zettel.search.question_kind import asks_for_overview, subject_of_overview

ABSTRACT = [
    "What are the main topics?", "What do I know about the warehouse move?", "Give me an overview of May.",
    "Summarise the story of the boat", "sum it all up for me", "Tell me everything about Ann's garden.",
    "What has been going on with the oven?", "How did the quarrel develop?", "Catch me up on the exams.",
    "What has been written about the budget?", "Could you recap our last conversation?", "What happened with the van?",
]  # fmt: skip
CONCRETE = [
    "When is the warehouse move?", "What did Ann say about the boat?", "What is the topic of her thesis?",
    "Did you tell me about the dentist?", "What happened to the van on Monday?", "How did you make the dough?",
    "Which summer did we sail?", "What do you know?", "Who wrote the story?",
]  # fmt: skip


@pytest.mark.parametrize("question", ABSTRACT)
def test_abstract_questions(question: str) -> None:
    assert asks_for_overview(question)


@pytest.mark.parametrize("question", CONCRETE)
def test_concrete_questions(question: str) -> None:
    assert not asks_for_overview(question)


def test_the_subject_of_an_abstract_question() -> None:
    assert subject_of_overview("What are the main topics of our conversations?") == ""
    assert "warehouse" in subject_of_overview("What do I know about the warehouse move?")
    assert "quarrel" in subject_of_overview("How did the quarrel develop?")
    for last in ("conversation", "session", "meeting", "talk"):
        assert subject_of_overview(f"Summarise our last {last}.") == ""
    assert "budget" in subject_of_overview("Summarise our last meeting about the budget.")


def hit(id: str, events: str, score: float = 1.0, **fields: Any) -> Hit:
    note = Note(id=id, content=id, seq=1, event_ids=tuple(events), recorded_at=datetime.now(timezone.utc), **fields)
    return Hit(note=note, score=score, why=Why(scorer="fusion"))


def insight(id: str, events: str, score: float = 0.1, tag: str = "theme") -> Hit:
    return hit(id, events, score, kind=Kind.INSIGHT, tags=(tag,))


NOTES = [hit("a", "a", 0.9), hit("b", "b", 0.8), hit("c", "c", 0.1), hit("d", "d", 0.05)]


def test_the_scores_of_notes_choose_the_insights() -> None:
    pure, wide, other = insight("pure", "ab"), insight("wide", "abcdefghij", 0.9), insight("other", "yz", 0.9)
    assert choose("What do I know about the oven?", False, NOTES, [other, wide, pure])[0] is pure
    assert other not in choose("What do I know about the oven?", False, NOTES, [other, wide, pure])
    assert choose("What do I know about the oven?", False, [], [pure]) == []
    assert choose("What do I know about the oven?", False, NOTES, [insight("me", "ab", tag="profile")]) == []


def test_a_question_about_everything_gets_the_largest_topics() -> None:
    topics = [
        insight("small", "ab"),
        insight("large", "cdefg"),
        insight("same", "cd"),
        insight("day", "abcdefg", tag="session"),
    ]
    assert [each.note.id for each in choose("What are the main topics?", False, NOTES, topics)] == ["large", "small"]


def test_the_last_session_is_the_latest() -> None:
    days = [datetime(2024, 3, day, tzinfo=timezone.utc) for day in (1, 9, 5)]
    sessions = [insight(f"{day.day}", "ab", tag="session") for day in days]
    sessions = [each.model_copy(update={"note": each.note.model_copy(update={"occurred_at": day})})
                for each, day in zip(sessions, days, strict=True)]  # fmt: skip
    for question in ("Recap our last conversation.", "Summarise our latest session.", "A recap of the last talk"):
        chosen = choose(question, False, NOTES, [insight("large", "abcdef"), *sessions])
        assert [each.note.id for each in chosen] == ["9"]


def test_an_insight_without_a_good_note_does_not_come_first() -> None:
    off, near = insight("off", "cdxyz", 0.9), insight("near", "bc")
    assert choose("What happened with the oven?", False, NOTES, [off]) == []
    assert [each.note.id for each in choose("What happened with the oven?", False, NOTES, [off, near])] == ["near"]


def test_insights_precede_the_notes_and_scores_never_rise() -> None:
    ordered = insights_first([insight("pure", "bd")], NOTES)
    assert [each.note.id for each in ordered] == ["pure", "a", "b", "c", "d"]
    assert [each.score for each in ordered] == [0.9, 0.9, 0.8, 0.1, 0.05]
