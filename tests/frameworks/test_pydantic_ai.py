"""The toolset for Pydantic AI in agents with a rule-based model and inside wrapping toolsets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
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
from zettel import AsyncMemory, Memory, Scope
from zettel.errors import InvalidInput
from zettel.integrations.pydantic_ai import ZettelToolset
from zettel.integrations.tools import MemoryTools

SCOPE = ANN


def chat_model(agent: AgentServer) -> OpenAIChatModel:
    return OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(base_url=agent.url, api_key="none"))


def calling(*calls: tuple[str, Any]) -> FunctionModel:
    """Return a model that makes one of these calls per turn and then returns the last result."""
    remaining = list(calls)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if remaining:
            name, arguments = remaining.pop(0)
            return ModelResponse(parts=[ToolCallPart(name, arguments)])
        results = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        return ModelResponse(parts=[TextPart(json.dumps(results[-1].content))])

    return FunctionModel(answer)


def test_an_agent_answers_from_memory(memory: Memory, agent: AgentServer) -> None:
    pinned = memory.add("Ann's boat is the Blue Heron.")
    memory.update(pinned, tags=["pinned"])
    toolset: ZettelToolset[None] = ZettelToolset(memory, session="s1")
    helper = Agent(chat_model(agent), instructions="Be brief.", toolsets=[toolset])
    assert helper.run_sync("Remember: Ann is allergic to walnuts.").output == "Noted."
    assert helper.run_sync("What is Ann allergic to?").output == "Ann is allergic to walnuts."
    request = agent.requests[-1]
    instructions = "\n\n".join(item["content"] for item in request["messages"] if item["role"] == "system")
    assert instructions == "Be brief.\n\n## Always to be known\n- Ann's boat is the Blue Heron."
    offered = [tool["function"] for tool in request["tools"]]
    assert [(item["name"], item["description"]) for item in offered] == [
        (tool.name, tool.description) for tool in MemoryTools(memory)
    ]
    assert [item["parameters"] for item in offered] == [tool.parameters for tool in MemoryTools(memory)]
    notes = memory.list().notes
    assert [(note.content, note.session) for note in notes[1:]] == [("Ann is allergic to walnuts.", "s1")]


def test_the_core_is_read_for_each_run(memory: Memory, agent: AgentServer) -> None:
    system_messages: list[str] = []
    for tokens, tags in [(400, []), (400, ["pinned"]), (0, ["pinned"])]:
        id = memory.add("Ann's boat is the Blue Heron.")
        memory.update(id, tags=tags)
        Agent(chat_model(agent), toolsets=[ZettelToolset(memory, core_tokens=tokens)]).run_sync("What is it?")
        system_messages += [
            message["content"] for message in agent.requests[-1]["messages"] if message["role"] == "system"
        ]
        memory.delete(id)
    assert system_messages == ["## Always to be known\n- Ann's boat is the Blue Heron."]


def test_the_scope_can_be_chosen_for_each_run(memory: Memory) -> None:
    answers = []
    for scope in (ANN, BOB):
        memory.add(f"The key of {scope.user} is under the mat.", scope=scope)
        toolset: ZettelToolset[None] = ZettelToolset(memory, scope=scope, read_only=True)
        model = calling(("search_memories", {"query": "Where is the key?"}))
        answers.append(json.loads(Agent(model).run_sync("Where is the key?", toolsets=[toolset]).output))
    assert [[memory_item["text"] for memory_item in answer["memories"]] for answer in answers] == [
        ["The key of ann is under the mat."], ["The key of bob is under the mat."]
    ]  # fmt: skip


@dataclass
class Deps:
    user_id: str | None
    login: str = "bob"


def test_the_deps_of_a_run_name_the_user(tmp_path: Path) -> None:
    def run(memory: Memory, deps: Any, **options: Any) -> tuple[Any, str]:
        model = calling(("search_memories", {"query": "Whose safe is green?"}))
        toolset: ZettelToolset[Any] = ZettelToolset(memory, **options)
        result = Agent(model, toolsets=[toolset], deps_type=object).run_sync("Whose safe is green?", deps=deps)
        instructions = [getattr(message, "instructions", None) or "" for message in result.all_messages()]
        return [found["text"] for found in json.loads(result.output)["memories"]], "".join(instructions)

    with Memory(tmp_path / "zettel.db") as memory:
        for user in ("ann", "bob"):
            id = memory.add(f"The safe of {user} is green.", scope=Scope(user=user))
            memory.update(id, tags=["pinned"], scope=Scope(user=user))
        for deps in (Deps("bob"), {"user_id": "bob"}):
            found, instructions = run(memory, deps)
            assert found == ["The safe of bob is green."]
            assert "safe of bob" in instructions
            assert "safe of ann" not in instructions
        found, _ = run(memory, Deps("ann"), scope=lambda run: Scope(user=run.deps.login))
        assert found == ["The safe of bob is green."]
        assert run(memory, None) == ([], "")
        assert run(memory, Deps(None), scope=ANN)[0] == ["The safe of ann is green."]
        for deps, error_text in ((Deps(None), "no user: set deps.user_id"), (Deps(" "), "must be the id of a user")):
            with pytest.raises(InvalidInput, match=error_text):
                run(memory, deps)
        with pytest.raises(InvalidInput, match=r"two users in one run: deps.user_id is 'bob', the scope of the memory"):
            run(memory, Deps("bob"), scope=ANN)


def test_tool_errors_do_not_end_a_run(memory: Memory) -> None:
    def run_calls(*calls: tuple[str, Any]) -> Any:
        return json.loads(Agent(calling(*calls), toolsets=[ZettelToolset(memory)]).run_sync("x").output)

    assert "Field required" in run_calls(("add_memory", {}))["error"]
    assert "does not take 'scope'" in run_calls(("search_memories", {"query": "x", "scope": "bob"}))["error"]
    assert "is not the id of a memory" in run_calls(("get_memory", '{"id": "walnuts"}'))["error"]
    assert run_calls(("add_memory", "{broken"), ("add_memory", {"text": "Mended."}))["stored"] is True
    assert [note.content for note in memory.list().notes] == ["Mended."]


def test_the_toolset_works_in_wrapping_toolsets(memory: Memory) -> None:
    ann_tools, bob_tools = ZettelToolset[None](memory, id="hers"), ZettelToolset[None](memory, scope=BOB, id="his")
    combined: AbstractToolset[None] = CombinedToolset([ann_tools.prefixed("ann"), bob_tools.prefixed("bob")])
    Agent(calling(("bob_add_memory", {"text": "Bob keeps bees."})), toolsets=[combined]).run_sync("x")
    assert [note.content for note in memory.list(scope=BOB).notes] == ["Bob keeps bees."]
    assert not memory.list().notes
    assert (ann_tools.id, ZettelToolset(memory).id, ann_tools.label) == ("hers", None, "ZettelToolset 'hers'")

    id = memory.add("Ann keeps bees.")
    guarded = ann_tools.approval_required(lambda context, tool, arguments: tool.name == "archive_memory")
    agent: Agent[None, Any] = Agent(
        calling(("archive_memory", {"id": id})), toolsets=[guarded], output_type=[str, DeferredToolRequests]
    )
    deferred = agent.run_sync("Forget the bees.").output
    assert [call.tool_name for call in deferred.approvals] == ["archive_memory"]
    assert not memory.get(id).archived


def test_the_toolset_works_with_an_async_memory(tmp_path: Path) -> None:
    async def work() -> None:
        async with AsyncMemory(tmp_path / "zettel.db") as memory:
            await memory.add("Ann keeps bees.")
            model = calling(("search_memories", {"query": "What does Ann keep?"}))
            result = await Agent(model, toolsets=[ZettelToolset(memory)]).run("What does Ann keep?")
            assert "Ann keeps bees." in result.output

    asyncio.run(work())


def test_wrong_input_raises_one_line_errors(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="got str"):
        ZettelToolset("zettel.db")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="core_tokens=-1: use 0 or more"):
        ZettelToolset(memory, core_tokens=-1)


def test_the_example_prints_its_answers(run_example: Callable[..., str]) -> None:
    printed = run_example(CHECKOUT / "examples" / "agents_pydantic_ai.py")
    assert printed.splitlines() == [
        "Ann: Remember: I am allergic to walnuts.",
        "  Noted.",
        "Ann: What am I allergic to?",
        "  I am allergic to walnuts.",
        "Ben: What am I allergic to?",
        "  I do not know.",
    ]
