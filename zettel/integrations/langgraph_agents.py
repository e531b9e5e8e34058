"""Memory for agents of LangChain and LangGraph: tools, a middleware for ``create_agent``, and models with a memory.

The config of each run names the user and the thread: ``{"configurable": {"user_id": "ann", "thread_id": "t1"}}``. The
user is the user of the scope, and the thread is the session. The runtime context may name the user instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, convert_to_messages
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import set_config_context
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.config import get_config
from langgraph.runtime import get_runtime

from zettel.async_memory import AsyncMemory
from zettel.core.messages import text_of
from zettel.errors import InvalidInput
from zettel.integrations.conversation_turns import Conversations, Turn
from zettel.integrations.run_scope import RunScope, ScopedTools, ScopeOfRun, user_field
from zettel.integrations.sync_or_async import Adapter, AnyMemory
from zettel.integrations.tool_answers import as_json
from zettel.integrations.tools import Tool
from zettel.model import Scope
from zettel.model.hits import DEFAULT_TOKENS

_ADAPTER = Adapter("langgraph")
ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
"""Protocol roles by LangChain message type."""
USER, AUTHENTICATED, THREAD = "user_id", "langgraph_auth_user_id", "thread_id"
"""Keys of a config's ``configurable``. LangGraph's server sets the second one to the user who has logged in."""
IN_CONFIG = f"config['configurable']['{USER}']"
IN_CONTEXT = f"{USER} in the runtime context (Python 3.10 passes no config to async middleware)"
"""Places of the user, for errors."""


def memory_tools(
    memory: AnyMemory,
    *,
    scope: ScopeOfRun | None = None,
    session: str | None = None,
    read_only: bool = False,
    allow_delete: bool = False,
) -> list[BaseTool]:
    """Return the memory tools as LangChain tools, see ``zettel.integrations.tools``.

    Each call works on the scope of the user in the run's config. ``session`` is the session of added events, by default
    the ``thread_id``. ``allow_delete`` adds ``delete_memory``, which cannot be undone. ``scope`` is the scope without
    its user, the scope of one user, or a function that takes the config's ``configurable`` with the fields of the
    runtime context as a dict. Raises ``InvalidInput``; so does a call without a user.
    """
    runs = _Runs(RunScope.for_memory(memory, scope), session)
    scoped = ScopedTools(memory, read_only=read_only, allow_delete=allow_delete)
    return [_tool(tool, runs, scoped, isinstance(memory, AsyncMemory)) for tool in scoped.tools]


def _tool(tool: Tool, runs: _Runs, scoped: ScopedTools, only_awaited: bool) -> BaseTool:
    def call(config: RunnableConfig, **arguments: Any) -> str:
        return as_json(scoped.of(*runs.of(config)).call(tool.name, arguments))

    async def acall(config: RunnableConfig, **arguments: Any) -> str:
        return as_json(await scoped.of(*runs.of(config)).acall(tool.name, arguments))

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.parameters,
        func=None if only_awaited else call,
        coroutine=acall,
    )


class MemoryMiddleware(AgentMiddleware):  # type: ignore[misc]
    """Recalls memories before each model call and stores the conversation: ``create_agent(..., middleware=[this])``.

    It stores the user's last messages, appends recalled memories to the system message of the request, stores the
    model's answer, and reports the notes that it used. Recalled text never enters the state and is not stored again.
    Scope and session are those of the run, as for ``memory_tools``. ``user`` and ``assistant`` name the speakers; the
    recalled text has at most ``max_tokens``. Raises ``InvalidInput``; so does a run without a user.
    """

    def __init__(
        self,
        memory: AnyMemory,
        *,
        scope: ScopeOfRun | None = None,
        session: str | None = None,
        user: str = "user",
        assistant: str = "assistant",
        max_tokens: int = DEFAULT_TOKENS,
    ) -> None:
        super().__init__()
        self._turns = _Turns(memory, _Runs(RunScope.for_memory(memory, scope), session), user, assistant, max_tokens)

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        """Call the model with recalled memories."""
        call = self._turns.call(request.messages, _config(), request.runtime)
        recalled = call.begin()
        response = handler(request.override(system_message=_with_recalled(request.system_message, recalled)))
        call.end(response.result)
        return response

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Async version."""
        call = self._turns.call(request.messages, _config(), request.runtime)
        recalled = await call.abegin()
        response = await handler(request.override(system_message=_with_recalled(request.system_message, recalled)))
        await call.aend(response.result)
        return response


def with_memory(
    memory: AnyMemory,
    model: Runnable[Any, Any],
    *,
    scope: ScopeOfRun | None = None,
    session: str | None = None,
    user: str = "user",
    assistant: str = "assistant",
    max_tokens: int = DEFAULT_TOKENS,
) -> Runnable[Any, Any]:
    """Return a chat model with this memory, for the nodes of your own graph.

    It takes messages in any form that a chat model takes, also a text, and returns the model's message. It does what
    ``MemoryMiddleware`` does: ``with_memory(memory, ChatOpenAI(...).bind_tools(tools)).invoke(state["messages"],
    config)``. Raises ``InvalidInput``.
    """
    turns = _Turns(memory, _Runs(RunScope.for_memory(memory, scope), session), user, assistant, max_tokens)

    def call(input: LanguageModelInput, config: RunnableConfig) -> Any:
        messages = _messages(input)
        turn = turns.call(messages, config)
        answer = model.invoke(_joined(messages, turn.begin()), config)
        turn.end([answer])
        return answer

    async def acall(input: LanguageModelInput, config: RunnableConfig) -> Any:
        messages = _messages(input)
        turn = turns.call(messages, config)
        answer = await model.ainvoke(_joined(messages, await turn.abegin()), config)
        await turn.aend([answer])
        return answer

    return RunnableLambda(call, acall, name="model with memory")


@dataclass(frozen=True)
class _Runs:
    """Returns scope and session of a run from its config and its runtime context."""

    scope: RunScope
    session: str | None

    def of(self, config: RunnableConfig | None, runtime: Any = None) -> tuple[Scope, str | None]:
        configurable = (config or {}).get("configurable") or {}
        if runtime is None and config is not None:
            with set_config_context(config) as context:
                runtime = context.run(get_runtime)
        run_context = getattr(runtime, "context", None)
        place = IN_CONTEXT if config is None else IN_CONFIG
        users = {place: configurable.get(USER), **user_field(run_context, "context")}
        if AUTHENTICATED in configurable:
            users[AUTHENTICATED] = configurable[AUTHENTICATED]
        scope = self.scope.of({**configurable, **_fields(run_context)}, users)
        thread = configurable.get(THREAD)
        return scope, self.session if self.session is not None or thread is None else str(thread)


class _Turns:
    """The conversations of all users in a memory."""

    def __init__(self, memory: AnyMemory, runs: _Runs, user: str, assistant: str, max_tokens: int) -> None:
        self.memory = memory
        self.conversations = Conversations(runs.session, user, assistant, max_tokens)
        self._runs = runs

    def call(self, messages: Sequence[BaseMessage], config: RunnableConfig | None, runtime: Any = None) -> _ModelCall:
        return _ModelCall(self, *self._runs.of(config, runtime), messages)


class _ModelCall:
    """One call of a model: ``begin`` returns the recalled text, and ``end`` stores the answer."""

    def __init__(
        self, turns: _Turns, scope: Scope, session: str | None, messages: Sequence[BaseMessage]
    ) -> None:
        self._turns, self._scope, self._session = turns, scope, session
        self._messages = [_protocol_message(message) for message in messages if message.type != "system"]
        self._turn: Turn | None = None

    def begin(self) -> str:
        return _ADAPTER.run_sync(self._turns.memory, self._begin)

    async def abegin(self) -> str:
        return await _ADAPTER.run_async(self._turns.memory, self._begin)

    def end(self, messages: Sequence[BaseMessage]) -> None:
        _ADAPTER.run_sync(self._turns.memory, partial(self._end, messages))

    async def aend(self, messages: Sequence[BaseMessage]) -> None:
        await _ADAPTER.run_async(self._turns.memory, partial(self._end, messages))

    # The methods below run in the memory's event loop.

    async def _begin(self, memory: AsyncMemory) -> str:
        self._conversation = self._turns.conversations.of(self._scope, self._session)
        turn = self._turn = await self._conversation.begin(self._messages, memory)
        return turn.messages[0]["content"] if len(turn.messages) > len(self._messages) else ""

    async def _end(self, messages: Sequence[BaseMessage], memory: AsyncMemory) -> None:
        answer = messages[-1] if messages else None
        if self._turn is not None and isinstance(answer, AIMessage) and not answer.tool_calls:
            await self._conversation.end(self._turn, text_of(answer.content), memory)


def _config() -> RunnableConfig | None:
    """Return the config of the running graph; None in async code of Python 3.10."""
    try:
        return get_config()
    except RuntimeError:
        return None


def _fields(context: Any) -> Mapping[str, Any]:
    """Return the fields of a runtime context: a mapping, a dataclass or a pydantic model."""
    return context if isinstance(context, Mapping) else getattr(context, "__dict__", {})


def _messages(input: LanguageModelInput) -> list[BaseMessage]:
    """Return the input of a chat model as messages. Raises ``InvalidInput``."""
    if isinstance(input, PromptValue):
        input = input.to_messages()
    if isinstance(input, Mapping) or not isinstance(input, (str, Sequence)):
        raise InvalidInput(
            f"a model with memory takes a text or a list of messages, not {type(input).__name__}: "
            'pass state["messages"]'
        )
    messages: list[BaseMessage] = convert_to_messages([input] if isinstance(input, str) else input)
    return messages


def _protocol_message(message: BaseMessage) -> dict[str, Any]:
    return {"role": ROLES.get(message.type, message.type), "content": message.content, "name": message.name}


def _joined(messages: Sequence[BaseMessage], recalled: str) -> list[BaseMessage]:
    """Return the messages with the recalled text in the first system message; some models accept only one."""
    first = messages[0] if messages else None
    system = _with_recalled(first if isinstance(first, SystemMessage) else None, recalled)
    rest = messages[1:] if isinstance(first, SystemMessage) else messages
    return [*rest] if system is None else [system, *rest]


def _with_recalled(system: SystemMessage | None, recalled: str) -> SystemMessage | None:
    """Return the system message with the recalled text at its end."""
    if system is None or not recalled:
        return SystemMessage(recalled) if recalled else system
    content = system.content
    joined = f"{content}\n\n{recalled}" if isinstance(content, str) else [*content, {"type": "text", "text": recalled}]
    return system.model_copy(update={"content": joined})
