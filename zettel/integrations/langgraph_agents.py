"""Memory tools and model hooks for LangGraph agents."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cachetools import LRUCache
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool

from zettel.async_memory import AsyncMemory
from zettel.core.messages import text_of
from zettel.integrations.conversation_turns import Conversation, RecalledContext, Turn
from zettel.integrations.core_memory import acore
from zettel.integrations.json_values import storable_text
from zettel.integrations.sync_or_async import Adapter, AnyMemory, require_memory
from zettel.integrations.tool_answers import as_json
from zettel.integrations.tools import MemoryTools, Tool
from zettel.model import Scope
from zettel.model.hits import CONTEXT_HITS, DEFAULT_TOKENS
from zettel.search.pack import OPENING_SHARE

_ADAPTER = Adapter("langgraph")
THREADS = 1000
"""Conversations that are cached, the most recent ones."""
ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
"""Protocol roles by LangChain message type."""

State = Any
"""A graph's state: a mapping, a pydantic model or a dataclass with a field ``messages``."""


def memory_tools(
    memory: AnyMemory, *, scope: Scope | None = None, session: str | None = None, read_only: bool = False
) -> list[BaseTool]:
    """Return the memory tools as LangChain tools, see ``zettel.integrations.tools``. Raises ``InvalidInput``."""
    tools = MemoryTools(memory, scope=scope, session=session, read_only=read_only)
    return [_tool(tool, only_awaited=isinstance(memory, AsyncMemory)) for tool in tools]


def _tool(tool: Tool, only_awaited: bool) -> BaseTool:
    def call(**arguments: Any) -> str:
        return as_json(tool.call(arguments))

    async def acall(**arguments: Any) -> str:
        return as_json(await tool.acall(arguments))

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.parameters,
        func=None if only_awaited else call,
        coroutine=acall,
    )


class MemoryHooks:
    """Hooks around an agent's model, for ``create_react_agent(..., pre_model_hook=hooks.before,
    post_model_hook=hooks.after)`` or as two nodes of your own graph.

    ``before`` stores the user's last messages and recalls memories for the model only (``llm_input_messages``).
    ``after`` stores the model's answer and reports the notes that it used. Recalled text never enters the state and is
    not stored again. ``session`` names the conversation, by default the graph's ``thread_id``. ``user`` and
    ``assistant`` name the speakers. Raises ``InvalidInput``.
    """

    def __init__(
        self,
        memory: AnyMemory,
        *,
        scope: Scope | None = None,
        session: str | None = None,
        user: str = "user",
        assistant: str = "assistant",
        max_tokens: int = DEFAULT_TOKENS,
    ) -> None:
        require_memory(memory)
        self._memory = memory
        self._scope = scope or memory.scope
        self._session = session
        self._core_tokens = max(1, int(max_tokens * OPENING_SHARE))
        self._without_thread = secrets.token_hex(4)
        self._start = partial(Conversation, self._scope, user=user, assistant=assistant, max_tokens=max_tokens)
        self._user = user
        self._conversations: LRUCache[str, Conversation] = LRUCache(THREADS)
        self._turns: LRUCache[tuple[str, str | None], Turn] = LRUCache(THREADS)
        self._conversation(self._without_thread)  # validates the arguments now
        self.before = RunnableLambda(self._before, self._abefore, name="recall")
        self.after = RunnableLambda(self._after, self._aafter, name="remember")

    def _before(self, state: State, config: RunnableConfig) -> dict[str, Any]:
        return _ADAPTER.run_sync(self._memory, partial(self._recall, state, config))

    async def _abefore(self, state: State, config: RunnableConfig) -> dict[str, Any]:
        return await _ADAPTER.run_async(self._memory, partial(self._recall, state, config))

    def _after(self, state: State, config: RunnableConfig) -> dict[str, Any]:
        return _ADAPTER.run_sync(self._memory, partial(self._remember, state, config))

    async def _aafter(self, state: State, config: RunnableConfig) -> dict[str, Any]:
        return await _ADAPTER.run_async(self._memory, partial(self._remember, state, config))

    async def _recall(self, state: State, config: RunnableConfig, memory: AsyncMemory) -> dict[str, Any]:
        messages = _messages(state)
        session = self._session_of(config)
        protocol_messages = [_protocol_message(message) for message in messages if message.type != "system"]
        turn = await self._conversation(session).begin(protocol_messages, memory)
        self._turns[session, _last_user_id(messages)] = turn
        recalled = turn.messages[0]["content"] if len(turn.messages) > len(protocol_messages) else ""
        return {"llm_input_messages": _with_recalled(messages, recalled)}

    async def _remember(self, state: State, config: RunnableConfig, memory: AsyncMemory) -> dict[str, Any]:
        messages = _messages(state)
        answer = messages[-1]
        if isinstance(answer, AIMessage) and not answer.tool_calls:
            session = self._session_of(config)
            turn = self._turns.pop((session, _last_user_id(messages)), None)
            if turn is None:  # it began in another process or was evicted
                turn = Turn([], "", False, await self._recalled_context(messages, memory))
            await self._conversation(session).end(turn, text_of(answer.content), memory)
        return {}

    async def _recalled_context(self, messages: Sequence[BaseMessage], memory: AsyncMemory) -> RecalledContext:
        """Recall memories for the user's last message."""
        last = next((message for message in reversed(messages) if message.type == "human"), None)
        question = "" if last is None else storable_text(text_of(last.content))
        hits = await memory.search(question, CONTEXT_HITS, scope=self._scope) if question.strip() else []
        return RecalledContext(hits, await acore(memory, self._core_tokens, scope=self._scope), self._user)

    def _session_of(self, config: RunnableConfig) -> str:
        thread = config.get("configurable", {}).get("thread_id")
        return self._session or (self._without_thread if thread is None else str(thread))

    def _conversation(self, session: str) -> Conversation:
        return self._conversations.setdefault(session, self._start(session=session))


def _messages(state: State) -> list[BaseMessage]:
    messages: list[BaseMessage] = state["messages"] if isinstance(state, Mapping) else state.messages
    return messages


def _protocol_message(message: BaseMessage) -> dict[str, Any]:
    return {"role": ROLES.get(message.type, message.type), "content": message.content, "name": message.name}


def _last_user_id(messages: Sequence[BaseMessage]) -> str | None:
    """Return the id of the user's last message."""
    return next((message.id for message in reversed(messages) if message.type == "human"), None)


def _with_recalled(messages: Sequence[BaseMessage], recalled: str) -> list[BaseMessage]:
    """Return the messages with the recalled text in the first system message; some models accept only one."""
    if not recalled:
        return list(messages)
    first = messages[0] if messages else None
    if first is None or first.type != "system":
        return [SystemMessage(recalled), *messages]
    content = first.content
    joined = f"{content}\n\n{recalled}" if isinstance(content, str) else [*content, {"type": "text", "text": recalled}]
    return [first.model_copy(update={"content": joined}), *messages[1:]]
