"""A ``Session`` for the OpenAI Agents SDK (package ``agents``): stores a conversation item by item, as a memory.

Searches find the messages of users and agents, in this and in later sessions. Tool calls, tool answers and reasoning
are returned exactly but archived, and so are answers that only repeat what a tool recalled. The session reports to the
memory which recalled notes an answer used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from zettel.errors import InvalidInput, MissingExtra, NotFound

try:
    from agents import FunctionTool, TResponseInputItem
    from agents.memory import SessionSettings
    from agents.tool_context import ToolContext
except ModuleNotFoundError as error:
    raise MissingExtra("the session for OpenAI Agents", "openai-agents") from error

from zettel.core.arguments import checked, require_storable
from zettel.integrations.conversation_turns import report_answer
from zettel.integrations.json_values import json_value, storable_text
from zettel.integrations.note_access import delete_existing
from zettel.integrations.recalled_text import only_repeats
from zettel.integrations.run_scope import RunScope, ScopedTools, ScopeOfRun, user_field
from zettel.integrations.sync_or_async import Adapter, AnyMemory, require_memory
from zettel.integrations.tool_answers import as_json
from zettel.integrations.tools import READ_TOOLS, Tool
from zettel.integrations.whole_events import parts_of
from zettel.model import Event, Note, Scope, Source
from zettel.transcripts.parsing.content_blocks import content_of, parsed

if TYPE_CHECKING:
    from zettel.async_memory import AsyncMemory

_ADAPTER = Adapter("openai-agents")
SOURCE = Source(file="openai-agents")
"""Distinguishes the items of a session from other events with the same session name."""
SPEAKERS = ("user", "assistant")
"""Roles of messages that stay searchable."""
RECENT = 40
"""Earlier items that are checked for recalled memories: a turn with a dozen tool calls."""


class ZettelSession:
    """A session in a scope of a ``Memory`` or ``AsyncMemory``: ``Runner.run(agent, text, session=this)``.

    ``session_id`` is the session of its events. Raises ``InvalidInput``.
    """

    def __init__(
        self,
        memory: AnyMemory,
        session_id: str,
        *,
        scope: Scope | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        require_memory(memory)
        if not isinstance(session_id, str) or not session_id.strip():
            raise InvalidInput(f"session_id must be a non-empty string, got {session_id!r}")
        require_storable("session_id", session_id)
        self.session_id = session_id
        self.session_settings = session_settings
        self._memory = memory
        self._scope = scope or memory.scope

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the last ``limit`` items, oldest first; by default the limit of the settings, or all."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit < 1:
            return []
        return await _ADAPTER.run_async(self._memory, lambda memory: self._items(memory, limit))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items in one transaction, then archive those that are not messages. Raises ``InvalidInput``."""
        now = datetime.now(timezone.utc)
        events = [_event_of(item, self.session_id, now) for item in items]
        if events:
            await _ADAPTER.run_async(self._memory, lambda memory: self._add(memory, events))

    async def pop_item(self) -> TResponseInputItem | None:
        """Destroy the last item, with everything derived from it, and return it; None if there is none."""
        return await _ADAPTER.run_async(self._memory, self._pop)

    async def clear_session(self) -> None:
        """Destroy all items, with everything derived from them."""
        await _ADAPTER.run_async(self._memory, self._clear)

    async def _items(self, memory: AsyncMemory, limit: int | None) -> list[TResponseInputItem]:
        events = await memory.events(self.session_id, source=SOURCE.file, limit=limit, scope=self._scope)
        return [cast(TResponseInputItem, event.payload) for event in events]

    async def _add(self, memory: AsyncMemory, events: list[Event]) -> None:
        before = await self._items(memory, RECENT)
        ids = await memory.add_many(events, scope=self._scope)
        items = [*before, *(cast(TResponseInputItem, event.payload) for event in events)]
        recalled = _recalled(items)
        for id, event in zip(ids, events, strict=True):
            if event.speaker not in SPEAKERS or (
                event.speaker == "assistant" and only_repeats(event.content, recalled)
            ):
                await self._archive(memory, id)
        for search_id, answer in _answered(items, len(before)):
            await report_answer(memory, search_id, answer, self._scope)

    async def _archive(self, memory: AsyncMemory, id: str) -> None:
        """Archive an item that was just added; concurrent changes by others are not an error."""
        try:
            head = await memory.get(id, scope=self._scope)
        except NotFound:
            return
        assert isinstance(head, Note)
        for part in await parts_of(head, self._scope, memory):
            try:
                await memory.archive(part.id, scope=self._scope)
            except (NotFound, InvalidInput):  # deleted or archived concurrently
                continue

    async def _pop(self, memory: AsyncMemory) -> TResponseInputItem | None:
        while events := await memory.events(self.session_id, source=SOURCE.file, limit=1, scope=self._scope):
            if await delete_existing(memory, self._scope, events[0].event_id):
                return cast(TResponseInputItem, events[0].payload)
        return None

    async def _clear(self, memory: AsyncMemory) -> None:
        events = await memory.events(self.session_id, scope=self._scope)
        own = [event.event_id for event in events if event.source is not None and event.source.file == SOURCE.file]
        if len(own) == len(events):
            await memory.delete(session=self.session_id, scope=self._scope)
            return
        for id in own:
            await delete_existing(memory, self._scope, id)


def memory_tools(
    memory: AnyMemory, *, scope: ScopeOfRun | None = None, session: str | None = None, read_only: bool = False
) -> list[FunctionTool]:
    """Return the tools of ``MemoryTools`` as SDK tools: ``Agent(..., tools=memory_tools(memory))``.

    If the context of a run has a field ``user_id``, it is the user of the scope. ``scope`` is the scope without that
    user, the scope of one user, or a function that takes the ``ToolContext``. A context with an empty ``user_id``, or
    with another user than the scope, raises ``InvalidInput`` in the run.
    """
    scopes = RunScope.for_memory(memory, scope)
    scoped = ScopedTools(memory, read_only=read_only)

    def tool_of(tool: Tool) -> FunctionTool:
        async def invoke(context: ToolContext[Any], arguments: str) -> str:
            user = user_field(context.context, "context")
            return as_json(await scoped.of(scopes.of(context, user), session).acall(tool.name, arguments))

        return FunctionTool(tool.name, tool.description, tool.parameters, invoke, strict_json_schema=False)

    return [tool_of(tool) for tool in scoped.tools]


def _event_of(item: object, session: str, now: datetime) -> Event:
    """Return the event of an item: messages with text and speaker, other items under their type.

    The payload contains the exact item.
    """
    if not isinstance(item, Mapping):
        raise InvalidInput(f"an item of a session must be a dict, got {type(item).__name__}")
    kind, role = item.get("type", "message"), item.get("role")
    text = storable_text(content_of(item.get("content")).text) if kind == "message" and role in SPEAKERS else ""
    label = " ".join(str(part) for part in (kind, item.get("name") or role) if part)
    fields = {
        "id": f"openai-agents:{uuid4().hex}",
        "content": text or storable_text(label),
        "speaker": role if text else None,
        "occurred_at": now,
        "session": session,
        "source": SOURCE,
        "payload": json_value("item", item),
    }
    return checked(fields)


def _recalled(items: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the answers of memory tools among these items."""
    calls: set[Any] = set()
    answers: list[dict[str, Any]] = []
    for item in items:
        if item.get("type") == "function_call" and item.get("name") in READ_TOOLS:
            calls.add(item.get("call_id"))
        elif item.get("type") == "function_call_output" and item.get("call_id") in calls:
            answer = parsed(item.get("output"))
            answers += [answer] if isinstance(answer, dict) else []
    return answers


def _answered(items: Sequence[Any], first: int) -> Iterator[tuple[str, str]]:
    """Yield each search of a memory tool with the agent's next message, for the messages from ``items[first]`` on."""
    start = 0
    for place, item in enumerate(items):
        if item.get("type", "message") == "message" and item.get("role") == "assistant":
            if place >= first:
                for answer in _recalled(items[start:place]):
                    if "search_id" in answer:
                        yield str(answer["search_id"]), content_of(item.get("content")).text
            start = place + 1
