"""Questions that a user asked before, and replies that know nothing, rank after the notes that answer."""

from __future__ import annotations

import pytest

from zettel import Memory

CHAT = (
    ("user", "I just got a beagle puppy, his name is Biscuit."),
    ("assistant", "Congratulations! Beagles are lively."),
    ("user", "I'm training for the Leeds half marathon on 10 May, aiming for under two hours."),
    ("assistant", "Great goal! Build up to long runs of 18 km."),
    ("user", "What's my dog's name?"),
    ("assistant", "I don't have that information."),
    ("user", "Do you remember which dog I got?"),
    ("assistant", "Sorry, I can't recall that."),
    ("user", "What time am I aiming for in the race?"),
    ("assistant", "I'm not sure, you could check your plan."),
)
BEAGLE, RACE = CHAT[0][1], CHAT[2][1]


@pytest.fixture
def chat(memory: Memory) -> Memory:
    for minute, (role, content) in enumerate(CHAT):
        memory.add(content, role=role, session="s", occurred_at=f"2026-03-02T10:{minute:02d}:00Z")
    memory.flush()
    return memory


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What's my dog's name?", BEAGLE),
        ("Which dog do I have?", BEAGLE),
        ("Remind me, what time am I aiming for in the race?", RACE),
    ],
)
def test_a_question_asked_before_is_no_answer(chat: Memory, question: str, answer: str) -> None:
    hits = chat.search(question)
    assert hits[0].note.content == answer
    assert hits[0].score > 0.5
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    by_text = {hit.note.content: hit.score for hit in hits}
    assert len(by_text) == len(CHAT), "none is left out"
    for content in (CHAT[4][1], CHAT[7][1]):
        assert by_text[content] < 0.06
    assert all(hit.score >= 0.3 for hit in chat.search(question, min_score=0.3))
    assert chat.search(question, as_of="2026-03-03")[0].note.content == answer


def test_a_question_about_questions_finds_them(chat: Memory) -> None:
    assert chat.search("What did I ask about my dog?")[0].note.content in (CHAT[4][1], CHAT[6][1])
