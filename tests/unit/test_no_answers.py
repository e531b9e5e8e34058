"""Which notes certainly do not answer a question."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from zettel.model import Note
from zettel.search.no_answers import MAX_WORDS, answers_nothing

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
DOG = "What's my dog's name?"


def _note(content: str, role: str) -> Note:
    return Note.model_validate(
        {
            "id": "n_1", "event_ids": ("e_1",), "seq": 1, "recorded_at": START, "content": content, "speaker": role,
            "role": role,
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("role", "content", "question"),
    [
        ("user", "what is my dog's name?", DOG),
        ("user", "Hey, do you remember what my dog's name is?", DOG),
        ("user", "When is my race?", DOG),
        ("user", "Remind me: which hotel did I book?", "What is the hotel called?"),
        ("user", "Wie heißt mein Hund?", "Wie heißt mein Hund?"),
        ("tool", "Who won the cup?", "Who won the cup?"),
        ("user", "can you help me with a packing list for the class trip?", "when is the class trip?"),
        ("assistant", "I'm not sure. Could you tell me?", DOG),
        ("assistant", "Sorry, I don't have any information about your dog.", DOG),
        ("assistant", "You haven't mentioned it yet.", DOG),
    ],
)
def test_repeated_questions_and_ignorant_replies(role: str, content: str, question: str) -> None:
    assert answers_nothing(_note(content, role), question)


@pytest.mark.parametrize(
    ("role", "content", "question"),
    [
        ("user", "What's my dog's name?", "What did I ask you about my dog?"),
        ("user", "What can I cook for my wife Ana?", "Who is my wife?"),
        ("user", "Where did I put the 40 euros?", "How much money did I lose?"),
        ("user", "How do I treat my eczema?", "Do I have a skin condition?"),
        ("user", "I don't know his name.", "Do I know the name of the neighbour?"),
        ("user", "My dog is Biscuit. What's my dog's name?", DOG),
        ("assistant", "Your dog's name is Biscuit.", DOG),
        ("assistant", "Your dog's name is Biscuit. I'm not sure of his age. " + "He is lively. " * MAX_WORDS, DOG),
        ("assistant", "I'm not sure of the time, but it is in the morning.", "When is my race?"),
        ("assistant", "I don't know exactly, around 40 euros.", "What did the ticket cost?"),
        ("assistant", "I'm not sure. Is it Biscuit?", DOG),
        ("user", "When is my appointment on Friday?", "Which day is my appointment?"),
        ("user", "can you help me with a packing list for the class trip?", "what should I pack for the class trip?"),
        ("user", "can you help me with a packing list for the class trip?", "when was I packing for the class trip?"),
        ("assistant", "How old is the dog?", "Is my dog an adult?"),
        (None, "When is my race?", DOG),
    ],
)
def test_notes_that_may_answer(role: str, content: str, question: str) -> None:
    assert not answers_nothing(_note(content, role), question)
