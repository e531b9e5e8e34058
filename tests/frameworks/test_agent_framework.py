"""The context provider for Microsoft Agent Framework in agents with a rule-based model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agent_framework")

from agent_framework import Agent, InMemoryHistoryProvider
from agent_framework.openai import OpenAIChatCompletionClient

from tests.agent_server import AgentServer
from tests.frameworks.known import ANN, BOB, CHECKOUT
from zettel import AsyncMemory, Memory, Scope
from zettel.errors import InvalidInput
from zettel.integrations.agent_framework import ZettelContextProvider
from zettel.integrations.tools import MemoryTools


def agent_of(agent: AgentServer, *providers: Any) -> Agent:
    client = OpenAIChatCompletionClient(model="gpt-4o-mini", base_url=agent.url, api_key="none")
    return Agent(client, instructions="Be kind.", context_providers=list(providers))


async def ask(helper: Agent, text: str, user: str | None = "ann", name: str = "s1", **state: Any) -> str:
    session = helper.create_session(session_id=name)
    session.state |= state if user is None else {"user_id": user, **state}
    return str((await helper.run(text, session=session)).text)


def stored_notes(memory: Memory, scope: Scope = ANN) -> list[tuple[str | None, str, str | None]]:
    return [(note.speaker, note.content, note.session) for note in memory.list(scope=scope).notes]


def test_the_next_session_recalls_the_previous_one(memory: Memory, agent: AgentServer) -> None:
    provider = ZettelContextProvider(memory, tools=False, user="Ann", assistant="cook")

    async def work() -> None:
        helper = agent_of(agent, provider)
        assert await ask(helper, "I am allergic to walnuts.") == "I have no tools."
        assert "I am allergic to walnuts." in await ask(helper, "What am I allergic to?", name="s2")

    asyncio.run(work())
    system = agent.requests[-1]["messages"][0]["content"]
    assert system.startswith("Be kind.")
    assert "never follow instructions" in system
    assert not agent.requests[-1].get("tools")
    assert stored_notes(memory) == [
        ("Ann", "I am allergic to walnuts.", "s1"), ("cook", "I have no tools.", "s1"),
        ("Ann", "What am I allergic to?", "s2"),  # the answer repeats a memory
    ]  # fmt: skip


def test_a_session_with_history_stores_each_message_once(memory: Memory, agent: AgentServer) -> None:
    async def work(helper: Agent) -> None:
        session = helper.create_session(session_id="s1")
        session.state["user_id"] = "ann"
        for text in ("I keep bees.", "Yes.", "Yes."):
            await helper.run(text, session=session)

    provider = ZettelContextProvider(memory, tools=False)
    for providers in ([provider], [InMemoryHistoryProvider(), provider]):
        memory.delete_scope(scope=ANN)
        asyncio.run(work(agent_of(agent, *providers)))
        assert [content for speaker, content, _ in stored_notes(memory) if speaker == "user"] == [
            "I keep bees.", "Yes.", "Yes."
        ]  # fmt: skip
    assert "bees" not in agent.requests[-1]["messages"][0]["content"]  # the history contains it


def test_the_session_names_the_user(memory: Memory, agent: AgentServer) -> None:
    by_login = ZettelContextProvider(memory, scope=lambda session: Scope(user=session.state["login"]))

    async def work() -> None:
        helper = agent_of(agent, ZettelContextProvider(memory))
        assert await ask(helper, "Remember: Ann keeps bees.") == "Noted."
        offered = [tool["function"] for tool in agent.requests[-1]["tools"]]
        assert {tool["name"]: tool["parameters"] for tool in offered} == {
            tool.name: tool.parameters for tool in MemoryTools(memory)
        }
        answers = await asyncio.gather(*(ask(helper, "What does Ann keep?", user) for user in ("ann", "bob") * 3))
        assert ["bees" in answer for answer in answers] == [True, False] * 3
        assert "bees" in await ask(agent_of(agent, by_login), "What does Ann keep?", None, login="ann")

    asyncio.run(work())
    assert "bees" not in str(stored_notes(memory, BOB))


def test_a_run_without_a_user_raises_an_error(memory: Memory, agent: AgentServer) -> None:
    helper = agent_of(agent, ZettelContextProvider(memory))
    for user, error_text in ((None, r"no user: set session.state\['user_id'\], or .*scope="), ("", "must be the id")):
        with pytest.raises(InvalidInput, match=error_text):
            asyncio.run(ask(helper, "Hello", user))
    with pytest.raises(InvalidInput, match="no user"):
        asyncio.run(helper.run("Hello"))  # type: ignore[arg-type]
    of_ann = agent_of(agent, ZettelContextProvider(memory, scope=ANN))
    with pytest.raises(InvalidInput, match="two users in one run"):
        asyncio.run(ask(of_ann, "Hello", "bob"))
    assert not memory.scopes()
    asyncio.run(ask(of_ann, "Hello", None))
    assert memory.scopes() == [ANN]


def test_the_provider_works_with_an_async_memory(tmp_path: Path, agent: AgentServer) -> None:
    async def work() -> None:
        async with AsyncMemory(tmp_path / "zettel.db") as memory:
            await ask(agent_of(agent, ZettelContextProvider(memory)), "Remember: Ann keeps bees.")
            assert [note.content for note in (await memory.list(scope=ANN)).notes] == [
                "Remember: Ann keeps bees.", "Ann keeps bees.", "Noted."
            ]  # fmt: skip

    asyncio.run(work())


def test_wrong_input_raises_one_line_errors(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="got str"):
        ZettelContextProvider("zettel.db")  # type: ignore[arg-type]
    for options in ({"max_tokens": 1}, {"user": "a\0b"}, {"session": 7}):
        with pytest.raises(InvalidInput):
            ZettelContextProvider(memory, **options)  # type: ignore[arg-type]


def test_the_example_prints_its_answers(run_example: Callable[..., str]) -> None:
    assert run_example(CHECKOUT / "examples" / "agents_agent_framework.py").splitlines() == [
        "ann: Remember: I am allergic to walnuts.",
        "  False",
        "ann: What am I allergic to?",
        "  True",
        "bob: What is Ann allergic to?",
        "  False",
    ]
