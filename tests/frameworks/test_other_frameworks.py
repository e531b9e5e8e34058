"""The memory tools as functions in agents of Haystack, DSPy and smolagents."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("haystack")
pytest.importorskip("dspy")
pytest.importorskip("smolagents")

import dspy
import smolagents
from dspy.utils import DummyLM
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

from tests.agent_server import AgentServer
from tests.frameworks.known import ANN, BOB, CHECKOUT
from tests.pages import blocks
from zettel import Memory
from zettel.integrations.tools import MemoryTools

QUESTION = "What is Ann allergic to?"
FACT = "Ann is allergic to walnuts."


@pytest.fixture
def tools(memory: Memory) -> MemoryTools:
    memory.add(FACT, scope=ANN)
    memory.add("Bob is allergic to figs.", scope=BOB)
    return MemoryTools(memory, scope=ANN)


def test_a_tool_is_a_function_of_keyword_arguments(tools: MemoryTools) -> None:
    search = next(tool for tool in tools if tool.name == "search_memories")
    assert [found["text"] for found in search(query=QUESTION)["memories"]] == [FACT]
    assert "Field required" in search()["error"]
    assert "does not take 'scope'" in search(query=QUESTION, scope="bob")["error"]


def test_an_agent_of_haystack_uses_the_tools(tools: MemoryTools, memory: Memory, agent: AgentServer) -> None:
    offered = [Tool(tool.name, tool.description, tool.parameters, tool.__call__) for tool in tools]
    helper = Agent(chat_generator=OpenAIChatGenerator(model="gpt-4o-mini"), tools=offered)

    def ask(text: str) -> str:
        return str(helper.run([ChatMessage.from_user(text)])["last_message"].text)

    assert ask(QUESTION) == FACT
    assert ask("Remember: Ann keeps bees.") == "Noted."
    assert [note.content for note in memory.list(scope=ANN).notes] == [FACT, "Ann keeps bees."]
    assert {tool["function"]["name"]: tool["function"]["parameters"] for tool in agent.requests[-1]["tools"]} == {
        tool.name: tool.parameters for tool in tools
    }


def test_react_of_dspy_uses_the_tools(tools: MemoryTools) -> None:
    offered = [dspy.Tool(tool, tool.name, tool.description, tool.parameters["properties"]) for tool in tools]
    thoughts: list[dict[str, Any]] = [
        {"next_thought": "Search.", "next_tool_name": "search_memories", "next_tool_args": {"query": QUESTION}},
        {"next_thought": "Found.", "next_tool_name": "finish", "next_tool_args": {}},
        {"reasoning": "It is stored.", "answer": "walnuts"},
    ]
    with dspy.context(lm=DummyLM(thoughts)):
        result = dspy.ReAct("question -> answer", tools=offered)(question=QUESTION)
    assert result.answer == "walnuts"
    assert FACT in str(result.trajectory)
    assert "figs" not in str(result.trajectory)


class Rules(smolagents.Model):
    """Searches the memory and answers with the first result."""

    def generate(self, messages: list[Any], *arguments: Any, **more: Any) -> Any:
        text = str(messages[-1].content)
        function = ChatMessageToolCallFunction(name="search_memories", arguments={"query": QUESTION})
        if "already_stored" in text:
            function = ChatMessageToolCallFunction(name="final_answer", arguments={"answer": text})
        tool_call = ChatMessageToolCall(id="c1", type="function", function=function)
        return smolagents.ChatMessage(role="assistant", content="", tool_calls=[tool_call])


def test_an_agent_of_smolagents_uses_the_tools(tools: MemoryTools) -> None:
    example = runpy.run_path(str(CHECKOUT / "examples" / "agents_other_frameworks.py"), run_name="example")
    offered = [example["MemoryTool"](tool) for tool in tools]
    helper = smolagents.ToolCallingAgent(offered, Rules(), verbosity_level=0)
    answer = str(helper.run(QUESTION))
    assert FACT in answer
    assert "figs" not in answer
    assert "(query: string" in helper.tools["search_memories"].to_code_prompt()
    assert len(smolagents.CodeAgent(offered, Rules()).tools) == 13  # with final_answer


def test_the_page_and_the_example_show_the_same_class() -> None:
    page = CHECKOUT / "docs" / "how-to" / "other-frameworks.md"
    (shown,) = (block.body for block in blocks(page) if "class MemoryTool" in block.body)
    shown = shown[shown.index("class MemoryTool") : shown.index("\n\n\nagent =")]
    assert shown in (CHECKOUT / "examples" / "agents_other_frameworks.py").read_text(encoding="utf-8")


def test_the_example_prints_its_answers(run_example: Callable[..., str]) -> None:
    assert run_example(CHECKOUT / "examples" / "agents_other_frameworks.py").splitlines() == [
        "ann: Remember: I am allergic to walnuts.",
        "  Noted.",
        "ann: What am I allergic to?",
        "  I am allergic to walnuts.",
        "bob: What am I allergic to?",
        "  I do not know.",
        "DSPy: I am allergic to walnuts.",
        "smolagents: I am allergic to walnuts.",
    ]
