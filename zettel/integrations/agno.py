"""Agno: a store of its learning machine, which recalls and remembers for the user of each run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from zettel.errors import MissingExtra

try:
    from agno.learn.stores.protocol import LearningStore
    from agno.tools.function import Function
except ModuleNotFoundError as error:
    raise MissingExtra("the memory for Agno", "agno") from error

from zettel.async_memory import AsyncMemory
from zettel.core.arguments import checked
from zettel.integrations.conversation_turns import HEAD, RecalledContext, recall, report_answer, tokens_left
from zettel.integrations.json_values import storable_text
from zettel.integrations.run_scope import RunScope, ScopedTools, ScopeOfRun
from zettel.integrations.sync_or_async import Adapter, AnyMemory
from zettel.integrations.tool_answers import as_json
from zettel.integrations.tools import MemoryTools, Tool
from zettel.model import Event, Scope
from zettel.model.hits import DEFAULT_TOKENS

if TYPE_CHECKING:
    from agno.models.message import Message
    from agno.run.base import RunContext

_ADAPTER = Adapter("agno")
SESSIONS = 1000
"""Sessions whose recalled context is cached, the most recent ones."""


class ZettelLearning(LearningStore):  # type: ignore[misc]
    """A ``Memory`` or ``AsyncMemory`` as a store of Agno's learning machine:
    ``Agent(learning=LearningMachine(custom_stores={"zettel": this}))``.

    Before each run it recalls memories about the user's message into the system message, in at most ``max_tokens``,
    and it stores that message; the agent's answers too, with ``Agent(post_hooks=[machine.capture_hook()])``. ``tools``
    adds the memory tools, ``read_only`` only those that read.

    The ``user_id`` of a run is the user of the scope, and its ``session_id`` the session. ``scope`` is the scope
    without that user, the scope of one user, or a function that takes Agno's ``RunContext``. A run without a user
    recalls and stores nothing: Agno logs the error. Raises ``InvalidInput``.
    """

    learning_type = "zettel"
    schema = str
    was_updated = False

    def __init__(
        self,
        memory: AnyMemory,
        *,
        scope: ScopeOfRun | None = None,
        tools: bool = True,
        read_only: bool = False,
        user: str = "user",
        assistant: str = "assistant",
        max_tokens: int = DEFAULT_TOKENS,
    ) -> None:
        self._scope = RunScope.for_memory(memory, scope)
        self._memory = memory
        self._max_tokens = tokens_left(max_tokens, HEAD)
        self._tools = ScopedTools(memory, read_only=read_only) if tools else None
        self._speakers = {"user": user, "assistant": assistant}
        for speaker in self._speakers.values():
            checked({"content": "text", "speaker": speaker})
        self._contexts: LRUCache[tuple[Scope, str | None], RecalledContext] = LRUCache(SESSIONS)

    def recall(
        self, message: str | None = None, user_id: str | None = None, session_id: str | None = None,
        run_context: RunContext | None = None,
    ) -> str:  # fmt: skip
        """Return the memories about a message; "" if there are none. Raises what ``Memory.search`` raises."""
        scope = self._scope_of(user_id, run_context)
        return _ADAPTER.run_sync(self._memory, partial(self._recall, message or "", scope, session_id))

    async def arecall(
        self, message: str | None = None, user_id: str | None = None, session_id: str | None = None,
        run_context: RunContext | None = None,
    ) -> str:  # fmt: skip
        """Async version."""
        scope = self._scope_of(user_id, run_context)
        return await _ADAPTER.run_async(self._memory, partial(self._recall, message or "", scope, session_id))

    def process(
        self, messages: list[Message], user_id: str | None = None, session_id: str | None = None,
        run_context: RunContext | None = None,
    ) -> None:  # fmt: skip
        """Store the new messages of a run, each once. Raises what ``Memory.add_many`` raises."""
        scope = self._scope_of(user_id, run_context)
        _ADAPTER.run_sync(self._memory, partial(self._remember, messages, scope, session_id))

    async def aprocess(
        self, messages: list[Message], user_id: str | None = None, session_id: str | None = None,
        run_context: RunContext | None = None,
    ) -> None:  # fmt: skip
        """Async version."""
        scope = self._scope_of(user_id, run_context)
        await _ADAPTER.run_async(self._memory, partial(self._remember, messages, scope, session_id))

    def build_context(self, data: str) -> str:
        """Return the recalled text for the system message, after a warning that it is data."""
        return f"{HEAD}\n\n{data}" if data else ""

    def instructions(self) -> str:
        """Return no instructions: each tool describes when to call it."""
        return ""

    def get_tools(
        self, user_id: str | None = None, session_id: str | None = None, run_context: RunContext | None = None
    ) -> list[Callable[..., Any]]:
        """Return the memory tools of the run's user."""
        tools = self._tools_of(user_id, session_id, run_context)
        return [_function(tool, _sync(tool)) for tool in tools]

    async def aget_tools(
        self, user_id: str | None = None, session_id: str | None = None, run_context: RunContext | None = None
    ) -> list[Callable[..., Any]]:
        """Async version."""
        tools = self._tools_of(user_id, session_id, run_context)
        return [_function(tool, _async(tool)) for tool in tools]

    def _tools_of(self, user_id: str | None, session_id: str | None, run: Any) -> MemoryTools | tuple[()]:
        return () if self._tools is None else self._tools.of(self._scope_of(user_id, run), session_id)

    def _scope_of(self, user_id: str | None, run: Any) -> Scope:
        return self._scope.of(run, {"user_id": user_id})

    # The methods below run in the memory's event loop.

    async def _recall(self, message: str, scope: Scope, session: str | None, memory: AsyncMemory) -> str:
        question = storable_text(message)
        recalled, context = await recall(memory, question, [], self._max_tokens, scope, self._speakers["user"])
        self._contexts[scope, session] = context
        return recalled

    async def _remember(
        self, messages: Sequence[Message], scope: Scope, session: str | None, memory: AsyncMemory
    ) -> None:
        context = self._contexts.get((scope, session))
        events: list[Event] = []
        for message in messages:
            is_new = message.role in self._speakers and not message.from_history
            text = storable_text(message.get_content_string()) if is_new else ""
            new = context.without(text, own=message.role == "user") if context else text
            if new.strip():
                events.append(self._event(message, new, session))
            if context and text and message.role == "assistant":
                await report_answer(memory, context.search_id, text, scope)
        if events:
            await memory.add_many_report(events, on_conflict="skip", scope=scope)

    def _event(self, message: Message, text: str, session: str | None) -> Event:
        return checked({
            "id": f"agno:{message.id}", "content": text, "speaker": self._speakers[message.role], "role": message.role,
            "occurred_at": datetime.fromtimestamp(message.created_at, timezone.utc), "session": session,
        })  # fmt: skip


def _sync(tool: Tool) -> Callable[..., Any]:
    def call(**arguments: Any) -> str:
        return as_json(tool.call(arguments))

    return call


def _async(tool: Tool) -> Callable[..., Any]:
    async def call(**arguments: Any) -> str:
        return as_json(await tool.acall(arguments))

    return call


def _function(tool: Tool, call: Callable[..., Any]) -> Function:
    return Function(
        name=tool.name, description=tool.description, parameters=tool.parameters, entrypoint=call,
        skip_entrypoint_processing=True,
    )  # fmt: skip
