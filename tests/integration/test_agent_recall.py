"""Recall by hooks: the share of prompts that get the memory they need, and of those that get one they do not need."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

import pytest

from zettel import AsyncMemory, Scope
from zettel.integrations.coding_agents.recall import PROMPT_TOKENS, START_TOKENS, prompt_memory, quoted, session_memory
from zettel.search.pack import estimate_tokens

DATA = Path(__file__).parents[1] / "data" / "coding-agents"
SESSIONS: dict[str, list[tuple[str, str]]] = json.loads((DATA / "sessions.json").read_text())
PROMPTS: list[tuple[str, str, int | None]] = json.loads((DATA / "prompts.json").read_text())
BEGIN = datetime(2026, 11, 3, 9, tzinfo=timezone.utc)
TURNS = 6
"""Turns of a session."""


class Recalled(NamedTuple):
    found: int
    needed: int
    false: int
    others: int


PROMPT_COUNT, CHOSEN, OTHER_HALF = 60, Recalled(14, 15, 0, 15), Recalled(13, 15, 2, 15)
"""The documentation states these results."""


async def memory_of_sessions(path: Path) -> AsyncMemory:
    memory = await AsyncMemory(path).open()
    for project, turns in SESSIONS.items():
        events = [
            {
                "content": content,
                "role": role,
                "session": f"{project}-{place // TURNS}",
                "occurred_at": BEGIN + timedelta(days=place // TURNS, minutes=place),
                "id": f"{project}/{place}",
            }
            for place, (role, content) in enumerate(turns)
        ]
        await memory.add_many(events, wait=True, scope=Scope(agent=project))
    return memory


async def recalled(memory: AsyncMemory, prompts: list[tuple[str, str, int | None]]) -> Recalled:
    found = needed = false = others = 0
    for project, prompt, expected in prompts:
        text = await prompt_memory(memory, Scope(agent=project), prompt, session="now")
        assert estimate_tokens(text) <= PROMPT_TOKENS + estimate_tokens(quoted("x"))
        if expected is None:
            others, false = others + 1, false + bool(text)
        else:
            needed, found = needed + 1, found + (SESSIONS[project][expected][1] in text)
    return Recalled(found, needed, false, others)


@pytest.mark.integration
def test_prompts_get_the_memories_they_need(tmp_path: Path) -> None:
    async def run() -> tuple[Recalled, Recalled]:
        async with await memory_of_sessions(tmp_path / "m.db") as memory:
            return await recalled(memory, PROMPTS[::2]), await recalled(memory, PROMPTS[1::2])

    assert len(PROMPTS) == PROMPT_COUNT
    assert asyncio.run(run()) == (CHOSEN, OTHER_HALF)


@pytest.mark.integration
def test_a_new_session_gets_the_last_session_and_what_people_stated(tmp_path: Path) -> None:
    async def run() -> list[str]:
        async with await memory_of_sessions(tmp_path / "m.db") as memory:
            starts = [Scope(agent="tide-api"), Scope(agent="harbour"), Scope(agent="empty")]
            return [await session_memory(memory, scope, "now", "zettel search QUESTION") for scope in starts]

    tide, harbour, empty = asyncio.run(run())
    assert empty == ""
    for text in (tide, harbour):
        assert estimate_tokens(text) <= START_TOKENS + estimate_tokens(quoted("x")) + 40
        assert "To search for more: zettel search QUESTION" in text
    assert "Never edit files in vendor/ by hand" in tide, "of the last session"
    assert "The staging database listens on port 5544" in tide, "stated"
    assert "Why is the build red?" not in tide, "a question of an earlier session"
    assert "Tabs, not spaces" in harbour
    assert "Tabs" not in tide
