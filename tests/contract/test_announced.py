"""A later announcement of a change ranks before the statement that it changes; nothing else is moved."""

from __future__ import annotations

import pytest

from zettel import Memory

BETWEEN = ("What is a good pasta recipe?", "The weather was awful today.", "I watched a film about penguins yesterday.")

CHANGES = [
    ("rehearsal starts at 7", "the rehearsal moved to 7:30 btw", "When does the rehearsal start?"),
    ("project deadline is May 3", "deadline got pushed to May 17", "When is the project deadline?"),
    ("I ordered the blue sofa", "changed my mind, going with the green sofa", "Which sofa am I getting?"),
    ("we booked the hotel Astoria in Rome", "we'll stay at an airbnb instead of the hotel", "Where do we stay?"),
    ("my wifi password hint is grandma's cat", "the hint is now grandpa's dog", "what's my wifi password hint?"),
    ("the race is on 11 oct", "race got cancelled", "when is the race?"),
    ("i have a cat", "we gave the cat away", "do i have a cat?"),
    ("my flight is on 6 june", "my flight is on the 7th, not the 6th", "when is my flight?"),
    ("remind me of the dentist on the 24th?", "no wait, the 26th, they called", "when's the dentist?"),
]
NO_CHANGES = [
    ("we pay 62 a month for internet", "guy next door switched internet, he's at 35 now", "how much is internet?"),
    ("team meeting is tuesdays at 11", "just this week they moved team meeting to 2", "when is the team meeting?"),
    ("we fly to oslo on the 5th at 7:10", "my sister's flight to oslo moved to 18:30", "when do we fly to oslo?"),
    ("the sofa is blue", "we moved the sofa to the other wall", "which colour is the sofa?"),
    ("swimming is on thursdays at 5", "swimming is off this week, the pool is closed", "what day is swimming?"),
    ("my driving test is on the 23rd", "my cousin's driving test got moved to the 30th", "when is my driving test?"),
]


def ask(memory: Memory, old: str, new: str, question: str) -> list[str]:
    """Return the contents that a search finds, best first, in a chat in which ``new`` follows ``old``."""
    for day, content in enumerate([old, *BETWEEN, new], 2):
        memory.add(content, role="user", session=f"s{day}", occurred_at=f"2026-03-{day:02d}T10:00:00Z")
    memory.flush()
    return [hit.note.content for hit in memory.search(question)]


@pytest.mark.parametrize(("old", "new", "question"), CHANGES, ids=[new for _, new, _ in CHANGES])
def test_an_announced_change_ranks_first(memory: Memory, old: str, new: str, question: str) -> None:
    assert ask(memory, old, new, question)[:2] == [new, old]
    hits = memory.search(question, min_score=0.3)
    assert hits[0].note.content == new, "the threshold applies to the new order"
    assert memory.search(question, as_of="2026-03-04")[0].note.content == old


@pytest.mark.parametrize(("old", "new", "question"), NO_CHANGES, ids=[new for _, new, _ in NO_CHANGES])
def test_what_changes_nothing_is_not_moved(memory: Memory, old: str, new: str, question: str) -> None:
    assert ask(memory, old, new, question)[0] == old


def test_a_change_from_a_later_day_on_is_not_true_yet(memory: Memory) -> None:
    old, new = "we are open on mondays from 9 to 5", "from next month we're closed on mondays"
    ask(memory, old, new, "Are we open on Mondays?")
    for now, first in (("2026-03-10", old), ("2026-05-04", new)):
        assert memory.search("Are we open on Mondays?", now=now)[0].note.content == first


def test_messages_without_a_time_are_in_the_order_of_arrival(memory: Memory) -> None:
    old, new, question = CHANGES[0]
    for content in (old, BETWEEN[0], new):
        memory.add(content, role="user", wait=True)
    memory.flush()
    assert [hit.note.content for hit in memory.search(question, k=2)] == [new, old]


def test_a_question_about_the_past_gets_the_former_statement(memory: Memory) -> None:
    old, new, _ = CHANGES[0]
    assert ask(memory, old, new, "When did the rehearsal start before?")[0] == old


def test_a_correction_ranks_before_the_echo_of_an_assistant(memory: Memory) -> None:
    turns = [
        ("user", "nadia", "ok so freya has swimming on wednesdays now, 16:30 at the indoor pool"),
        ("assistant", "assistant", "Got it, swimming for Freya every Wednesday at 16:30."),
        ("user", "oskar", "we need oat milk and dishwasher tabs"),
        ("user", "nadia", "no wait, thursday. swimming is thursday same time"),
    ]
    for minute, (role, speaker, content) in enumerate(turns):
        memory.add(content, role=role, speaker=speaker, session="s", occurred_at=f"2026-09-01T18:{minute:02d}:00Z")
    memory.flush()
    for question in ("when does freya have swimming?", "what day is swimming"):
        assert memory.search(question)[0].note.content == turns[-1][2]
