"""Pydantic AI's toolset, in agents that talk to a model by rule, and in what the framework wraps around toolsets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset

from tests.agent_server import AgentServer
from tests.frameworks.known import ANN, BOB, CHECKOUT
from zettel import AsyncMemory, Memory
from zettel.errors import InvalidInput
from zettel.integrations.pydantic_ai import ZettelToolset
from zettel.integrations.tools import MemoryTools

SCOPE = ANN


def served(agent: AgentServer) -> OpenAIChatModel:
    return OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(base_url=agent.url, api_key="none"))


def calling(*calls: tuple[str, Any]) -> FunctionModel:
    """A model that makes these calls, one each turn, and then says what the last of them answered."""
    left = list(calls)

    def turn(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if left:
            name, arguments = left.pop(0)
            return ModelResponse(parts=[ToolCallPart(name, arguments)])
        told = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        return ModelResponse(parts=[TextPart(json.dumps(told[-1].content))])

    return FunctionModel(turn)


def test_an_agent_answers_from_memory(memory: Memory, agent: AgentServer) -> None:
    pinned = memory.add("Ann's boat is the Blue Heron.")
    memory.update(pinned, tags=["pinned"])
    toolset: ZettelToolset[None] = ZettelToolset(memory, session="s1")
    helper = Agent(served(agent), instructions="Be brief.", toolsets=[toolset])
    assert helper.run_sync("Remember: Ann is allergic to walnuts.").output == "Noted."
    assert helper.run_sync("What is Ann allergic to?").output == "Ann is allergic to walnuts."
    told = agent.requests[-1]
    instructions = "\n\n".join(one["content"] for one in told["messages"] if one["role"] == "system")
    assert instructions == "Be brief.\n\n## Always to be known\n- Ann's boat is the Blue Heron."
    offered = [tool["function"] for tool in told["tools"]]
    assert [(one["name"], one["description"]) for one in offered] == [
        (tool.name, tool.description) for tool in MemoryTools(memory)
    ]
    assert [one["parameters"] for one in offered] == [tool.parameters for tool in MemoryTools(memory)]
    notes = memory.list().notes
    assert [(note.content, note.session) for note in notes[1:]] == [("Ann is allergic to walnuts.", "s1")]


def test_the_core_is_as_it_is_now(memory: Memory, agent: AgentServer) -> None:
    told: list[str] = []
    for tokens, tags in [(400, []), (400, ["pinned"]), (0, ["pinned"])]:
        id = memory.add("Ann's boat is the Blue Heron.")
        memory.update(id, tags=tags)
        Agent(served(agent), toolsets=[ZettelToolset(memory, core_tokens=tokens)]).run_sync("What is it?")
        told += [one["content"] for one in agent.requests[-1]["messages"] if one["role"] == "system"]
        memory.delete(id)
    assert told == ["## Always to be known\n- Ann's boat is the Blue Heron."]


def test_whose_memory_it_is_can_be_said_for_each_run(memory: Memory) -> None:
    answers = []
    for scope in (ANN, BOB):
        memory.add(f"The key of {scope.user} is under the mat.", scope=scope)
        toolset: ZettelToolset[None] = ZettelToolset(memory, scope=scope, read_only=True)
        asked = calling(("search_memories", {"query": "Where is the key?"}))
        answers.append(json.loads(Agent(asked).run_sync("Where is the key?", toolsets=[toolset]).output))
    assert [[one["text"] for one in answer["memories"]] for answer in answers] == [
        ["The key of ann is under the mat."], ["The key of bob is under the mat."]
    ]  # fmt: skip


def test_mistakes_end_no_run(memory: Memory) -> None:
    def said(*calls: tuple[str, Any]) -> Any:
        return json.loads(Agent(calling(*calls), toolsets=[ZettelToolset(memory)]).run_sync("x").output)

    assert "Field required" in said(("add_memory", {}))["error"]
    assert "does not take 'scope'" in said(("search_memories", {"query": "x", "scope": "bob"}))["error"]
    assert "is not the id of a memory" in said(("get_memory", '{"id": "walnuts"}'))["error"]
    assert said(("add_memory", "{broken"), ("add_memory", {"text": "Mended."}))["stored"] is True
    assert [note.content for note in memory.list().notes] == ["Mended."]


def test_it_goes_into_what_wraps_toolsets(memory: Memory) -> None:
    hers, his = ZettelToolset[None](memory, id="hers"), ZettelToolset[None](memory, scope=BOB, id="his")
    both: AbstractToolset[None] = CombinedToolset([hers.prefixed("ann"), his.prefixed("bob")])
    Agent(calling(("bob_add_memory", {"text": "Bob keeps bees."})), toolsets=[both]).run_sync("x")
    assert [note.content for note in memory.list(scope=BOB).notes] == ["Bob keeps bees."]
    assert not memory.list().notes
    assert (hers.id, ZettelToolset(memory).id, hers.label) == ("hers", None, "ZettelToolset 'hers'")

    id = memory.add("Ann keeps bees.")
    asking = hers.approval_required(lambda context, tool, arguments: tool.name == "delete_memory")
    agent: Agent[None, Any] = Agent(
        calling(("delete_memory", {"id": id})), toolsets=[asking], output_type=[str, DeferredToolRequests]
    )
    waiting = agent.run_sync("Forget the bees.").output
    assert [call.tool_name for call in waiting.approvals] == ["delete_memory"]
    assert memory.get(id)


def test_with_an_async_memory(tmp_path: Path) -> None:
    async def work() -> None:
        async with AsyncMemory(tmp_path / "zettel.db") as memory:
            await memory.add("Ann keeps bees.")
            asked = calling(("search_memories", {"query": "What does Ann keep?"}))
            said = await Agent(asked, toolsets=[ZettelToolset(memory)]).run("What does Ann keep?")
            assert "Ann keeps bees." in said.output

    asyncio.run(work())


def test_wrong_input_is_one_line(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="got str"):
        ZettelToolset("zettel.db")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="core_tokens=-1: use 0 or more"):
        ZettelToolset(memory, core_tokens=-1)


def test_example(run_example: Callable[..., str]) -> None:
    printed = run_example(CHECKOUT / "examples" / "agents_pydantic_ai.py")
    assert printed.splitlines() == [
        "Ann: Remember: I am allergic to walnuts.",
        "  Noted.",
        "Ann: What am I allergic to?",
        "  I am allergic to walnuts.",
        "Ben: What am I allergic to?",
        "  I do not know.",
    ]
