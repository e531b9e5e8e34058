"""Questions about the present: which ones they are, and the newest statement first."""

from __future__ import annotations

import pytest

from zettel import Memory
from zettel.search.question_kind import asks_for_present


@pytest.mark.parametrize(
    ("question", "expected"),
    [("Where do I live now?", True), ("What are my current hours?", True), ("Who is my new boss?", True),
     ("Which pills do I take these days?", True), ("Where do I live?", False),
     ("Which bread did we bake today?", False), ("What is my weight today?", True),
     ("my current hours", False), ("Ann drinks tea now.", False), ("Where did I live before now?", False),
     ("What did I use to drink at first?", False), ("What was my previous job, before the new one?", False)],
)  # fmt: skip
def test_a_question_about_the_present_says_so(question: str, expected: bool) -> None:
    assert asks_for_present(question) is expected


@pytest.mark.parametrize("question", ["What does the committee drink now?", "What do they drink these days?"])
def test_the_newest_statement_ranks_first(question: str) -> None:
    """No rule knows that one statement replaces the other."""
    with Memory(":memory:", embedder="static") as memory:
        said = [
            ("2024-01-10", "user", "For the committee I brew a pot of rooibos, that is what they drink."),
            ("2024-02-11", "assistant", "A committee that likes to drink rooibos may like honeybush, too."),
            ("2024-06-12", "user", "The committee wants to drink cocoa, I bought two tins."),
        ]
        for day, role, text in said:
            memory.add(text, role=role, occurred_at=day, wait=True)
        assert "cocoa" in memory.search(question)[0].note.content
        assert "rooibos" in memory.search("What did the committee drink at first?")[0].note.content
