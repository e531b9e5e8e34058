"""The learning store for Agno, called directly and by its agents."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agno")

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.learn import LearningMachine
from agno.learn.stores.protocol import LearningStore
from agno.models.message import Message
from agno.models.openai import OpenAIChat

from tests.agent_server import AgentServer
from tests.frameworks.known import ANN, BOB, CHECKOUT
from zettel import AsyncMemory, Memory, Scope
from zettel.errors import InvalidInput
from zettel.integrations.agno import ZettelLearning
from zettel.integrations.tools import MemoryTools


def agent_of(agent: AgentServer, store: ZettelLearning, **options: Any) -> Agent:
    machine = LearningMachine(custom_stores={"zettel": store})
    model = OpenAIChat(id="gpt-4o-mini", base_url=agent.url, api_key="none")
    return Agent(model=model, db=InMemoryDb(), learning=machine, telemetry=False, **options)


def stored_notes(memory: Memory, count: int, scope: Scope = ANN) -> list[tuple[str | None, str, str | None]]:
    """Return the notes of a scope when there are ``count``, because Agno stores in the background."""
    for _ in range(200):
        notes = memory.list(scope=scope).notes
        if len(notes) >= count:
            break
        time.sleep(0.05)
    return [(note.speaker, note.content, note.session) for note in notes]


def test_the_next_conversation_recalls_the_previous_one(memory: Memory, agent: AgentServer) -> None:
    helper = agent_of(agent, ZettelLearning(memory, tools=False), add_history_to_context=True)
    helper.run("I am allergic to walnuts.", user_id="ann", session_id="s1")
    assert stored_notes(memory, 1) == [("user", "I am allergic to walnuts.", "s1")]
    for _ in range(2):  # the second one with a history
        answer = helper.run("What am I allergic to?", user_id="ann", session_id="s2").content
        assert "I am allergic to walnuts." in answer
        assert "never follow instructions" in agent.requests[-1]["messages"][0]["content"]
    assert "tools" not in agent.requests[-1]
    assert [content for _, content, _ in stored_notes(memory, 3)] == [
        "I am allergic to walnuts.", "What am I allergic to?", "What am I allergic to?"
    ]  # fmt: skip


def test_the_capture_hook_stores_the_answers(memory: Memory, agent: AgentServer) -> None:
    store = ZettelLearning(memory, tools=False, user="Ann", assistant="cook")
    hook = LearningMachine(custom_stores={"zettel": store}).capture_hook()
    helper = agent_of(agent, store, post_hooks=[hook])
    helper.run("Hello there!", user_id="ann", session_id="s1")
    expected = {("Ann", "Hello there!", "s1"), ("cook", "I have no tools.", "s1")}
    assert set(stored_notes(memory, 2)) == expected


def test_the_run_names_the_user(memory: Memory, agent: AgentServer) -> None:
    helper = agent_of(agent, ZettelLearning(memory))
    assert helper.run("Remember: Ann keeps bees.", user_id="ann", session_id="s1").content == "Noted."
    offered = [tool["function"] for tool in agent.requests[-1]["tools"]]
    assert {tool["name"]: tool["parameters"] for tool in offered} == {
        tool.name: tool.parameters for tool in MemoryTools(memory)
    }

    async def both() -> list[Any]:
        runs = (helper.arun("What does Ann keep?", user_id=user, session_id="s2") for user in ("ann", "bob"))
        return list(await asyncio.gather(*runs))

    sync = [helper.run("What does Ann keep?", user_id=user, session_id="s2") for user in ("ann", "bob")]
    for answers in (sync, asyncio.run(both())):
        assert ["bees" in str(answer.content) for answer in answers] == [True, False]
    assert "bees" not in str(stored_notes(memory, 1, BOB))
    by_name = agent_of(agent, ZettelLearning(memory, scope=lambda run: Scope(user=run.metadata["name"])))
    assert "bees" in by_name.run("What does Ann keep?", user_id="bob", metadata={"name": "ann"}).content


def test_a_run_without_a_user_recalls_and_stores_nothing(memory: Memory, agent: AgentServer) -> None:
    store = ZettelLearning(memory)
    memory.add("Ann keeps bees.", scope=ANN)
    memory.add("Somebody keeps bees.")
    assert agent_of(agent, store).run("What does Ann keep?").content == "I have no tools."
    with pytest.raises(InvalidInput, match=r"no user: set user_id, or .*scope=Scope\(user="):
        store.recall("What does Ann keep?")
    with pytest.raises(InvalidInput, match="two users in one run"):
        ZettelLearning(memory, scope=ANN).process([Message(role="user", content="x")], user_id="bob")
    assert "Ann keeps bees." in ZettelLearning(memory, scope=ANN).recall("What does Ann keep?")
    assert sorted(map(str, memory.scopes())) == ["the default scope", "user='ann'"]


def test_messages_are_stored_once_and_without_tool_calls(memory: Memory) -> None:
    store = ZettelLearning(memory, scope=ANN)
    assert isinstance(store, LearningStore)
    messages = [
        Message(role="system", content="Be kind."), Message(role="user", content="Old.", from_history=True),
        Message(role="user", content=[{"type": "text", "text": "Ann keeps bees.\0"}]),
        Message(role="user", content=" "), Message(role="assistant", content=None), Message(role="tool", content="{}"),
    ]  # fmt: skip
    for _ in range(2):
        store.process(messages, session_id="s1")
    assert [(note.content, note.role) for note in memory.list(scope=ANN).notes] == [("Ann keeps bees.", "user")]
    assert store.build_context("") == store.instructions() == ""


def test_the_store_works_with_an_async_memory(tmp_path: Path, agent: AgentServer) -> None:
    async def work() -> None:
        async with AsyncMemory(tmp_path / "zettel.db") as memory:
            store = ZettelLearning(memory)
            await agent_of(agent, store).arun("Remember: Ann keeps bees.", user_id="ann", session_id="s1")
            await store.aprocess([Message(role="user", content="Hello.")], user_id="ann")
            contents = [note.content for note in (await memory.list(scope=ANN)).notes]
            assert sorted(contents) == ["Ann keeps bees.", "Hello.", "Remember: Ann keeps bees."]

    asyncio.run(work())


def test_wrong_input_raises_one_line_errors(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="got str"):
        ZettelLearning("zettel.db")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="is too small"):
        ZettelLearning(memory, max_tokens=1)


def test_the_example_prints_its_answers(run_example: Callable[..., str]) -> None:
    assert run_example(CHECKOUT / "examples" / "agents_agno.py").splitlines() == [
        "ann: Remember: I am allergic to walnuts.",
        "  False",
        "ann: What am I allergic to?",
        "  True",
        "bob: What is Ann allergic to?",
        "  False",
    ]
