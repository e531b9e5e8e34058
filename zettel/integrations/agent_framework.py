"""Microsoft Agent Framework: a context provider, which recalls and remembers for the user of each session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from zettel.errors import MissingExtra

try:
    from agent_framework import ContextProvider, FunctionTool
except ModuleNotFoundError as error:
    raise MissingExtra("the memory for Microsoft Agent Framework", "agent-framework") from error

from zettel.async_memory import AsyncMemory
from zettel.integrations.conversation_turns import Conversation, Conversations, Turn
from zettel.integrations.run_scope import RunScope, ScopedTools, ScopeOfRun
from zettel.integrations.sync_or_async import Adapter, AnyMemory
from zettel.integrations.tool_answers import as_json
from zettel.integrations.tools import Tool
from zettel.model import Scope
from zettel.model.hits import DEFAULT_TOKENS

if TYPE_CHECKING:
    from agent_framework import AgentSession, Message, SessionContext, SupportsAgentRun

_ADAPTER = Adapter("agent-framework")
USER = "user_id"
"""Key of a session's state."""


class ZettelContextProvider(ContextProvider):  # type: ignore[misc]
    """A ``Memory`` or ``AsyncMemory`` as a context provider: ``Agent(..., context_providers=[this])``.

    Before each run it stores the user's messages and appends memories about them to the instructions, in at most
    ``max_tokens``; afterwards it stores the agent's answer and reports the notes that it used. Recalled text is not
    stored again. ``tools`` adds the memory tools, ``read_only`` only those that read.

    ``session.state["user_id"]`` is the user of the scope, and the ``session_id`` is the session. ``scope`` is the scope
    without that user, the scope of one user, or a function that takes the ``AgentSession``. ``user`` and ``assistant``
    name the speakers. Raises ``InvalidInput``; so does a run without a user.
    """

    def __init__(
        self,
        memory: AnyMemory,
        *,
        scope: ScopeOfRun | None = None,
        session: str | None = None,
        tools: bool = True,
        read_only: bool = False,
        user: str = "user",
        assistant: str = "assistant",
        max_tokens: int = DEFAULT_TOKENS,
        source_id: str = "zettel",
    ) -> None:
        super().__init__(source_id)
        self._scope = RunScope.for_memory(memory, scope)
        self._memory = memory
        self._conversations = Conversations(session, user, assistant, max_tokens)
        self._tools = ScopedTools(memory, read_only=read_only) if tools else None

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store the user's messages, and add memories and tools to the run. Raises what ``Memory.search`` raises."""
        scope = self._scope.of(session, {f"session.state['{USER}']": session.state.get(USER)})
        messages = [_protocol_message(message) for message in context.get_messages(include_input=True)]
        begin = partial(self._begin, scope, session.session_id, messages)
        _, turn = context.metadata[self.source_id] = await _ADAPTER.run_async(self._memory, begin)
        if len(turn.messages) > len(messages):
            context.extend_instructions(self.source_id, turn.messages[0]["content"])
        if self._tools is not None:
            context.extend_tools(self.source_id, [_tool(tool) for tool in self._tools.of(scope, session.session_id)])

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store the agent's answer. Raises what ``Memory.add_many`` and ``Memory.feedback`` raise."""
        conversation, turn = context.metadata[self.source_id]
        answer = context.response.text if context.response is not None else ""
        await _ADAPTER.run_async(self._memory, partial(conversation.end, turn, answer))

    async def _begin(
        self, scope: Scope, session: str, messages: Sequence[dict[str, Any]], memory: AsyncMemory
    ) -> tuple[Conversation, Turn]:
        conversation = self._conversations.of(scope, session)
        return conversation, await conversation.begin(messages, memory)


def _protocol_message(message: Message) -> dict[str, Any]:
    return {"role": str(message.role), "content": message.text, "name": message.author_name}


def _tool(tool: Tool) -> FunctionTool:
    async def call(**arguments: Any) -> str:
        return as_json(await tool.acall(arguments))

    function: Callable[..., Any] = call
    return FunctionTool(name=tool.name, description=tool.description, func=function, input_model=tool.parameters)
