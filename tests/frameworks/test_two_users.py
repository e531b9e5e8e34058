"""Two users at once through each installed adapter: nobody sees an item of the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.known import ANN, BOB, FRAMEWORKS
from tests.frameworks.two_users import CALLS, Call, assert_apart
from zettel import Memory, Scope
from zettel.integrations.tools import MemoryTools

SCOPES = {"ann": ANN, "bob": BOB}
REMEMBER = "Remember: "


def requested(text: str) -> tuple[str, dict[str, Any]]:
    """Return the tool call of a rule-based model."""
    fact = text.removeprefix(REMEMBER)
    return ("add_memory", {"text": fact}) if fact != text else ("search_memories", {"query": text})


def langgraph(memory: Memory) -> Call:
    """One agent with tools and the middleware; every thread has the same name for both users."""
    from langchain.agents import create_agent
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    from zettel.integrations.langgraph import MemoryMiddleware, memory_tools

    class Model(BaseChatModel):
        _llm_type = "rules"

        def bind_tools(self, tools: Any, **more: Any) -> Any:
            return self

        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any) -> Any:
            last = messages[-1]
            read = " ".join(str(message.content) for message in messages)
            message = AIMessage("Noted.", response_metadata={"read": read})
            if last.type == "human":
                name, arguments = requested(last.content)
                message = AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "c1"}])
            return ChatResult(generations=[ChatGeneration(message=message)])

    middleware = [MemoryMiddleware(memory)]
    agent = create_agent(Model(), memory_tools(memory), middleware=middleware, context_schema=dict)
    calls: list[str] = []

    async def call(user: str, text: str) -> object:
        calls.append(text)
        config = {"configurable": {"user_id": user, "thread_id": f"t{len(calls) // 50}"}}
        messages = {"messages": [("user", text)]}
        if len(calls) % 2:
            return (await agent.ainvoke(messages, config, context={"user_id": user}))["messages"]
        return (await asyncio.to_thread(agent.invoke, messages, config))["messages"]

    return call


def pydantic_ai(memory: Memory) -> Call:
    """One agent with one toolset; the deps of each run name the user."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from zettel.integrations.pydantic_ai import ZettelToolset

    def answer(messages: Any, info: Any) -> Any:
        last = messages[-1].parts[-1]
        if last.part_kind == "user-prompt":
            return ModelResponse(parts=[ToolCallPart(*requested(last.content))])
        return ModelResponse(parts=[TextPart(f"{info.instructions} {last.content}")])

    agent = Agent(FunctionModel(answer), toolsets=[ZettelToolset(memory)], deps_type=dict)

    async def call(user: str, text: str) -> object:
        return (await agent.run(text, deps={"user_id": user})).output

    return call


def openai_agents(memory: Memory) -> Call:
    """One agent with tools; the context of each run names the user, and both users name their session alike."""
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from zettel.integrations.openai_agents import ZettelSession, memory_tools

    class Rules(Model):
        async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **more: Any) -> Any:
            last = input[-1]
            if last.get("role") == "user":
                name, arguments = requested(last["content"])
                item: Any = ResponseFunctionToolCall(
                    arguments=json.dumps(arguments), call_id="c1", name=name, type="function_call"
                )
            else:
                text = ResponseOutputText(annotations=[], text="Noted.", type="output_text")
                item = ResponseOutputMessage(
                    id="m1", content=[text], role="assistant", status="completed", type="message"
                )
            return ModelResponse(output=[item], usage=Usage(), response_id=None)

        def stream_response(self, *rest: Any, **more: Any) -> Any:
            raise NotImplementedError

    agent = Agent("helper", model=Rules(), tools=memory_tools(memory))
    calls: list[str] = []

    async def call(user: str, text: str) -> object:
        calls.append(text)
        session = ZettelSession(memory, f"s{len(calls) // 10}", scope=SCOPES[user])
        config = RunConfig(tracing_disabled=True)
        result = await Runner.run(agent, text, context={"user_id": user}, session=session, run_config=config)
        return result.to_input_list()

    return call


def adk(memory: Memory) -> Call:
    """One runner with one memory service; the sessions of both users have the same ids."""
    from google.adk.agents import Agent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.adk.runners import Runner
    from google.adk.sessions import InMemorySessionService
    from google.genai import types

    from zettel.integrations.adk import ZettelMemoryService, memory_tools

    class Rules(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            last = llm_request.contents[-1].parts[-1]
            if last.text:
                name, arguments = requested(last.text)
                part = types.Part(function_call=types.FunctionCall(name=name, args=arguments))
            else:
                part = types.Part(text="Noted.")
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    service = ZettelMemoryService(memory)
    agent = Agent(name="helper", model=Rules(model="rules"), tools=memory_tools(memory))
    runner = Runner(app_name="app", agent=agent, session_service=InMemorySessionService(), memory_service=service)
    calls: list[str] = []

    async def call(user: str, text: str) -> object:
        calls.append(text)
        key = {"app_name": "app", "user_id": user, "session_id": f"s{len(calls)}"}
        await runner.session_service.create_session(**key)
        message = types.Content(role="user", parts=[types.Part(text=text)])
        events = [event async for event in runner.run_async(new_message=message, **_without_app(key))]
        session = await runner.session_service.get_session(**key)
        if len(calls) % 5 == 0:
            await service.add_session_to_memory(session)
        found = await service.search_memory(app_name="app", user_id=user, query=text)
        await runner.session_service.delete_session(**key)
        return [events, found]

    return call


def _without_app(key: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in key.items() if name != "app_name"}


def autogen(memory: Memory) -> Call:
    """A memory and tools per user, as AutoGen's agents belong to one conversation."""
    from autogen_core import CancellationToken
    from autogen_core.memory import MemoryContent
    from autogen_core.model_context import UnboundedChatCompletionContext
    from autogen_core.models import UserMessage

    from zettel.integrations.autogen import ZettelMemory, memory_tools

    memories = {user: ZettelMemory(memory, scope=scope) for user, scope in SCOPES.items()}
    tools = {user: {tool.name: tool for tool in memory_tools(memory, scope=scope)} for user, scope in SCOPES.items()}

    async def call(user: str, text: str) -> object:
        if text.startswith(REMEMBER):
            return await memories[user].add(MemoryContent(content=text, mime_type="text/plain"))
        context = UnboundedChatCompletionContext()
        await context.add_message(UserMessage(content=text, source="user"))
        await memories[user].update_context(context)
        name, arguments = requested(text)
        answer = await tools[user][name].run_json(arguments, CancellationToken())
        return [await context.get_messages(), answer]

    return call


def llamaindex(memory: Memory) -> Call:
    """A block and a retriever per user; both users name their session alike."""
    from llama_index.core.base.llms.types import ChatMessage

    from zettel.integrations.llamaindex import ZettelMemoryBlock, ZettelRetriever

    blocks = {user: ZettelMemoryBlock(memory, scope=scope) for user, scope in SCOPES.items()}
    retrievers = {user: ZettelRetriever(memory, scope=scope) for user, scope in SCOPES.items()}

    async def call(user: str, text: str) -> object:
        messages = [ChatMessage(role="user", content=text, additional_kwargs={"session_id": "s1"})]
        return [await blocks[user].aget(messages), await retrievers[user].aretrieve(text)]

    return call


def crewai(memory: Memory) -> Call:
    """A storage per user below CrewAI's ``Memory``, called in threads, as crews do."""
    import crewai

    from zettel.integrations.crewai import ZettelStorage

    storages = {user: ZettelStorage(memory, scope=scope) for user, scope in SCOPES.items()}
    memories = {user: crewai.Memory(storage=storage, embedder=storage.embedder) for user, storage in storages.items()}

    def work(user: str, text: str) -> object:
        if text.startswith(REMEMBER):
            memories[user].remember(text, scope="/crew", categories=["c"], importance=0.5, metadata={})
            return memories[user].drain_writes()
        return memories[user].recall(text, depth="shallow")

    async def call(user: str, text: str) -> object:
        return await asyncio.to_thread(work, user, text)

    return call


def strands(memory: Memory) -> Call:
    """An agent with a store per conversation; both users share the tools and name their session alike."""
    from strands import Agent
    from strands.memory import MemoryManager
    from strands.models import Model

    from zettel.integrations.strands import ZettelMemoryStore, memory_tools

    class Rules(Model):
        def update_config(self, **config: Any) -> None:
            raise NotImplementedError

        def get_config(self) -> Any:
            return {}

        def structured_output(self, *arguments: Any, **more: Any) -> Any:
            raise NotImplementedError

        async def stream(self, messages: Any, *arguments: Any, **more: Any) -> Any:
            last = messages[-1]["content"]
            yield {"messageStart": {"role": "assistant"}}
            if "toolResult" in last[0]:
                yield {"contentBlockDelta": {"delta": {"text": "Noted."}}}
            else:
                name, called = requested(last[0]["text"])
                yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "c1", "name": name}}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(called)}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn" if "toolResult" in last[0] else "tool_use"}}

    tools = memory_tools(memory)

    async def call(user: str, text: str) -> object:
        store = ZettelMemoryStore(memory, scope=SCOPES[user], session="s1")
        manager = MemoryManager([store], search_tool_config=False)
        agent = Agent(model=Rules(), memory_manager=manager, tools=tools, callback_handler=None)
        await agent.invoke_async(text, invocation_state={"user_id": user})
        await manager.flush()
        return [agent.messages, await manager.search(text)]

    return call


def agno(memory: Memory) -> Call:
    """One agent with one learning store; the runs name the user, and both users name their session alike."""
    from agno.agent import Agent
    from agno.db.in_memory import InMemoryDb
    from agno.learn import LearningMachine
    from agno.models.base import Model
    from agno.models.response import ModelResponse

    from zettel.integrations.agno import ZettelLearning

    class Rules(Model):
        def invoke(self, messages: Any, **more: Any) -> Any:
            if messages[-1].role != "user":
                return ModelResponse(role="assistant", content="Noted.")
            name, called = requested(messages[-1].content)
            function = {"name": name, "arguments": json.dumps(called)}
            return ModelResponse(role="assistant", tool_calls=[{"id": "c1", "type": "function", "function": function}])

        async def ainvoke(self, *arguments: Any, **more: Any) -> Any:
            return self.invoke(*arguments, **more)

        def invoke_stream(self, *arguments: Any, **more: Any) -> Any:
            raise NotImplementedError

        ainvoke_stream = _parse_provider_response = _parse_provider_response_delta = invoke_stream

    machine = LearningMachine(custom_stores={"zettel": ZettelLearning(memory)})
    agent = Agent(model=Rules(id="rules"), db=InMemoryDb(), learning=machine, telemetry=False)
    calls: list[str] = []

    async def call(user: str, text: str) -> object:
        calls.append(text)
        named = {"user_id": user, "session_id": f"s{len(calls)}"}
        if len(calls) % 2:
            return (await agent.arun(text, **named)).messages
        return (await asyncio.to_thread(agent.run, text, **named)).messages

    return call


def agent_framework(memory: Memory) -> Call:
    """One agent with one provider; the sessions name the user and have the same ids for both."""
    from agent_framework import Agent, BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message

    from zettel.integrations.agent_framework import ZettelContextProvider

    class Rules(FunctionInvocationLayer, BaseChatClient):
        def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
            async def answer() -> Any:
                last = messages[-1]
                content = Content.from_text("Noted.")
                if last.role == "user":
                    name, called = requested(last.text)
                    content = Content.from_function_call("c1", name, arguments=called)
                read = {"read": str(options["instructions"])} if "instructions" in options else {}
                message = Message("assistant", [content], additional_properties=read)
                return ChatResponse(messages=[message])

            return answer()

    agent = Agent(Rules(), context_providers=[ZettelContextProvider(memory)])
    calls: list[str] = []

    async def call(user: str, text: str) -> object:
        calls.append(text)
        session = agent.create_session(session_id=f"s{len(calls) // 10}")
        session.state["user_id"] = user
        return (await agent.run(text, session=session)).to_dict()

    return call


def other_frameworks(memory: Memory) -> Call:
    """Tools per user and call, in Haystack and DSPy."""
    import dspy
    from haystack.tools import Tool

    calls: list[str] = []

    def work(user: str, text: str, number: int) -> object:
        name, arguments = requested(text)
        (tool,) = (tool for tool in MemoryTools(memory, scope=SCOPES[user]) if tool.name == name)
        if number % 2:
            return Tool(tool.name, tool.description, tool.parameters, tool.__call__).invoke(**arguments)
        return dspy.Tool(tool, tool.name, tool.description, tool.parameters["properties"])(**arguments)

    async def call(user: str, text: str) -> object:
        calls.append(text)
        return await asyncio.to_thread(work, user, text, len(calls))

    return call


CALL_OF: dict[str, Callable[[Memory], Call]] = {
    "langgraph": langgraph,
    "llamaindex": llamaindex,
    "crewai": crewai,
    "autogen": autogen,
    "openai-agents": openai_agents,
    "pydantic-ai": pydantic_ai,
    "adk": adk,
    "strands": strands,
    "agno": agno,
    "agent-framework": agent_framework,
    "other-frameworks": other_frameworks,
}
"""Calls of a user by framework. test_anthropic.py covers the scopes of its files."""


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "zettel.db", embedder="static") as instance:
        yield instance


@pytest.mark.soak
@pytest.mark.parametrize("name", [each.name for each in FRAMEWORKS if each.installed and each.name in CALL_OF])
def test_two_users_at_once_see_nothing_of_each_other(
    name: str, memory: Memory, soak_scale: Callable[[int], int], record_property: Callable[[str, object], None]
) -> None:
    scopes = SCOPES if name != "adk" else {user: Scope(user=user, agent="app") for user in SCOPES}
    # Not by anyio: it reports that clients of earlier tests are closed in another event loop.
    asyncio.run(assert_apart(name, CALL_OF[name](memory), soak_scale(CALLS), memory, scopes, record_property))
    assert sorted(map(str, memory.scopes())) == sorted(map(str, scopes.values()))
