"""What agents in LangGraph do with a memory: its tools, and hooks before and after their model is asked."""

from __future__ import annotations

import json
import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool

from zettel.async_memory import AsyncMemory
from zettel.face.finding import CONTEXT_HITS, DEFAULT_TOKENS
from zettel.integrations.core import acore
from zettel.integrations.either import Either, reach, require_memory, wait
from zettel.integrations.plain import storable_text
from zettel.integrations.tools import MemoryTools, Tool
from zettel.integrations.turns import Conversation, Known, Turn, text_of
from zettel.model import Scope
from zettel.search.pack import OPENING_SHARE

THREADS = 1000
"""Conversations that are kept in mind, those that were last spoken in."""
ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
"""The types of LangChain's messages, by the roles of the protocol."""

State = Any
"""A graph's state: a mapping, or a pydantic model or dataclass of the same fields."""


def memory_tools(
    memory: Either, *, scope: Scope | None = None, session: str | None = None, read_only: bool = False
) -> list[BaseTool]:
    """The memory's tools as LangChain's, see ``zettel.integrations.tools``. Raises ``InvalidInput``."""
    tools = MemoryTools(memory, scope=scope, session=session, read_only=read_only)
    return [_tool(tool, only_awaited=isinstance(memory, AsyncMemory)) for tool in tools]


def _tool(tool: Tool, only_awaited: bool) -> BaseTool:
    def call(**arguments: Any) -> str:
        return json.dumps(tool.call(arguments), ensure_ascii=False)

    async def acall(**arguments: Any) -> str:
        return json.dumps(await tool.acall(arguments), ensure_ascii=False)

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.parameters,
        func=None if only_awaited else call,
        coroutine=acall,
    )


class MemoryHooks:
    """What stands around an agent's model: ``create_react_agent(..., pre_model_hook=hooks.before,
    post_model_hook=hooks.after)``, or two nodes of a graph of one's own.

    ``before`` recalls what the user's last words are about, for the model alone (``llm_input_messages``), and remembers
    these words; ``after`` remembers the model's answer. What was recalled never gets into the state and is not
    remembered again. ``session`` is the conversation that it is remembered of, by default the graph's ``thread_id``.
    ``user`` and ``assistant`` are the roles under which it is remembered. Raises ``InvalidInput``.
    """

    def __init__(
        self,
        memory: Either,
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
        self._begin = partial(Conversation, self._scope, user=user, assistant=assistant, max_tokens=max_tokens)
        self._user = user
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()
        self._turns: OrderedDict[tuple[str, str | None], Turn] = OrderedDict()
        self._conversation(self._without_thread)  # what is wrong with the arguments is told now
        self.before = RunnableLambda(self._before, self._abefore, name="recall")
        self.after = RunnableLambda(self._after, self._aafter, name="remember")

    def _before(self, state: State, config: RunnableConfig) -> dict[str, Any]:
        return wait(self._memory, partial(self._recall, state, config))

    async def _abefore(self, state: State, config: RunnableConfig) -> dict[str, Any]:
        return await reach(self._memory, partial(self._recall, state, config))

    def _after(self, state: State, config: RunnableConfig) -> dict[str, Any]:
        return wait(self._memory, partial(self._remember, state, config))

    async def _aafter(self, state: State, config: RunnableConfig) -> dict[str, Any]:
        return await reach(self._memory, partial(self._remember, state, config))

    async def _recall(self, state: State, config: RunnableConfig, memory: AsyncMemory) -> dict[str, Any]:
        messages = _messages(state)
        session = self._session_of(config)
        spoken = [_plain(message) for message in messages if message.type != "system"]
        turn = await self._conversation(session).begin(spoken, memory)
        _keep(self._turns, (session, _asked(messages)), turn)
        recalled = turn.messages[0]["content"] if len(turn.messages) > len(spoken) else ""
        return {"llm_input_messages": _with(messages, recalled)}

    async def _remember(self, state: State, config: RunnableConfig, memory: AsyncMemory) -> dict[str, Any]:
        messages = _messages(state)
        answer = messages[-1]
        if isinstance(answer, AIMessage) and not answer.tool_calls:
            session = self._session_of(config)
            turn = self._turns.pop((session, _asked(messages)), None)
            if turn is None:  # it was begun in another process, or long ago
                turn = Turn([], "", False, await self._known(messages, memory))
            await self._conversation(session).end(turn, text_of(answer.content), memory)
        return {}

    async def _known(self, messages: Sequence[BaseMessage], memory: AsyncMemory) -> Known:
        """What the memory would tell about the user's last words now."""
        asked = next((message for message in reversed(messages) if message.type == "human"), None)
        question = "" if asked is None else storable_text(text_of(asked.content))
        hits = await memory.search(question, CONTEXT_HITS, log=False, scope=self._scope) if question.strip() else []
        return Known(hits, await acore(memory, self._core_tokens, scope=self._scope), self._user)

    def _session_of(self, config: RunnableConfig) -> str:
        thread = config.get("configurable", {}).get("thread_id")
        return self._session or (self._without_thread if thread is None else str(thread))

    def _conversation(self, session: str) -> Conversation:
        known = self._conversations.get(session) or self._begin(session=session)
        _keep(self._conversations, session, known)
        return known


def _keep(known: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > THREADS:
        known.popitem(last=False)


def _messages(state: State) -> list[BaseMessage]:
    messages: list[BaseMessage] = state["messages"] if isinstance(state, Mapping) else state.messages
    return messages


def _plain(message: BaseMessage) -> dict[str, Any]:
    return {"role": ROLES.get(message.type, message.type), "content": message.content, "name": message.name}


def _asked(messages: Sequence[BaseMessage]) -> str | None:
    """The id of the user's last message."""
    return next((message.id for message in reversed(messages) if message.type == "human"), None)


def _with(messages: Sequence[BaseMessage], recalled: str) -> list[BaseMessage]:
    """The messages with what was recalled in the first of them, as some models take no other from the system."""
    if not recalled:
        return list(messages)
    first = messages[0] if messages else None
    if first is None or first.type != "system":
        return [SystemMessage(recalled), *messages]
    content = first.content
    joined = f"{content}\n\n{recalled}" if isinstance(content, str) else [*content, {"type": "text", "text": recalled}]
    return [first.model_copy(update={"content": joined}), *messages[1:]]
