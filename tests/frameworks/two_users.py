"""Two users at once: interleaved calls of Ann and Bob through one adapter, and the items of the other that they see."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping

from zettel import Memory, Note, Scope

CALLS = 10_000
"""The full number of calls."""
AT_ONCE = 8
"""Calls that run at the same time."""
MARKS = {"ann": "amber", "bob": "birch"}
"""The word in every item of a user."""
THINGS = ("boat", "violin", "bicycle", "garden", "recipe", "neighbour", "dentist", "password hint")

Call = Callable[[str, str], Awaitable[object]]
"""Takes a user and what the user writes; returns everything that the user's agent read and answered."""


async def assert_apart(
    name: str,
    call: Call,
    count: int,
    memory: Memory,
    scopes: Mapping[str, Scope],
    record_property: Callable[[str, object], None],
) -> None:
    """Make ``count`` calls, and assert that each user sees own items and no item of the other.

    tests/integration/test_frameworks.py reads the line that it prints.
    """
    seen = await _talk(call, count)
    items = {user: sum(seen[user, mark] for mark in MARKS.values()) for user in MARKS}
    others = sum(seen[user, mark] for user in MARKS for owner, mark in MARKS.items() if owner != user)
    record_property("items seen", sum(items.values()))
    record_property("items of the other", others)
    print(f"\n{name}, two users at once: {count} calls, {others} of {sum(items.values())} items of the other")
    assert others == 0
    assert all(items.values())
    for user, scope in scopes.items():
        stored = " ".join(note.content for note in all_notes(memory, scope))
        assert MARKS[user] in stored
        assert not [mark for owner, mark in MARKS.items() if owner != user and mark in stored]


def all_notes(memory: Memory, scope: Scope) -> Iterator[Note]:
    cursor = None
    while True:
        page = memory.list(limit=1000, cursor=cursor, scope=scope)
        yield from page.notes
        cursor = page.cursor
        if cursor is None:
            return


async def _talk(call: Call, count: int) -> Counter[tuple[str, str]]:
    """Return how often each user saw an item with each mark."""
    chooser, seen = random.Random(count), Counter[tuple[str, str]]()
    texts = [_next_text(user, chooser) for user in chooser.choices(list(MARKS), k=count)]

    async def one(user: str, text: str) -> None:
        read = str(await call(user, text))
        for mark in re.findall(rf"\b({'|'.join(MARKS.values())})\d+\b", read):
            seen[user, mark] += 1

    for start in range(0, count, AT_ONCE):
        await asyncio.gather(*(one(user, text) for user, text in texts[start : start + AT_ONCE]))
    return seen


def _next_text(user: str, chooser: random.Random) -> tuple[str, str]:
    thing = chooser.choice(THINGS)
    if chooser.random() < 0.5:
        return user, f"Remember: My {thing} is called {MARKS[user]}{chooser.randrange(1000)}."
    return user, f"What is my {thing} called?"
