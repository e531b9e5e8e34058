"""The OpenAI Agents SDK's ``Session``: a conversation, item for item, that is memory too.

Its package is called ``agents``. What people and the agent said is found by searches, in this session and in later
ones. Calls of tools, their answers and the model's reasoning are given back as exactly, but are put away in the
archive, and so is an answer that only repeats what a tool recalled: nothing is remembered a second time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
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

from zettel.arguments import checked, require_storable
from zettel.integrations.either import Either, reach, require_memory
from zettel.integrations.plain import plain, storable_text
from zettel.integrations.recalled import repeats
from zettel.integrations.tools import SPECS, MemoryTools, Tool
from zettel.integrations.wholes import parts_of
from zettel.model import Event, Note, Scope, Source
from zettel.transcripts.content_blocks import content_of, parsed

if TYPE_CHECKING:
    from zettel.async_memory import AsyncMemory

SOURCE = Source(file="openai-agents")
"""Tells what a session holds from what else was remembered in the session of the same name."""
SPOKEN = ("user", "assistant")
"""Roles of messages that are talk."""
READING = frozenset(spec.name for spec in SPECS if spec.reads_only)
RECENT = 40
"""Items before what is added that may tell what was recalled for it: a turn with a dozen calls of tools."""


class ZettelSession:
    """A session in a scope of a ``Memory`` or ``AsyncMemory``: ``Runner.run(agent, text, session=this)``.

    ``session_id`` is the session of its events. Raises ``InvalidInput``.
    """

    def __init__(
        self,
        memory: Either,
        session_id: str,
        *,
        scope: Scope | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        require_memory(memory)
        if not isinstance(session_id, str) or not session_id.strip():
            raise InvalidInput(f"session_id={session_id!r} names no session: use a text")
        require_storable("session_id", session_id)
        self.session_id = session_id
        self.session_settings = session_settings
        self._memory = memory
        self._scope = scope or memory.scope

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The last ``limit`` items, the oldest first: all, unless the settings say otherwise."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit < 1:
            return []
        return await reach(self._memory, lambda memory: self._items(memory, limit))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items at the end, all or none, and then put away what is no talk. Raises ``InvalidInput`` for what is not
        JSON, or no item."""
        now = datetime.now(timezone.utc)
        events = [_event_of(item, self.session_id, now) for item in items]
        if events:
            await reach(self._memory, lambda memory: self._add(memory, events))

    async def pop_item(self) -> TResponseInputItem | None:
        """Destroy the last item, with all that was derived from it, and return it; None if there is none."""
        return await reach(self._memory, self._pop)

    async def clear_session(self) -> None:
        """Destroy all items, with all that was derived from them."""
        await reach(self._memory, self._clear)

    async def _items(self, memory: AsyncMemory, limit: int | None) -> list[TResponseInputItem]:
        events = await memory.events(self.session_id, source=SOURCE.file, limit=limit, scope=self._scope)
        return [cast(TResponseInputItem, event.payload) for event in events]

    async def _add(self, memory: AsyncMemory, events: list[Event]) -> None:
        before = await self._items(memory, RECENT)
        ids = await memory.add_many(events, scope=self._scope)
        recalled = _recalled([*before, *(cast(TResponseInputItem, event.payload) for event in events)])
        for id, event in zip(ids, events, strict=True):
            if event.role not in SPOKEN or (event.role == "assistant" and repeats(event.content, recalled)):
                await self._put_away(memory, id)

    async def _put_away(self, memory: AsyncMemory, id: str) -> None:
        """Put an item away that was just added. Whatever somebody else did to it meanwhile: the items are stored."""
        try:
            head = await memory.get(id, scope=self._scope)
        except NotFound:
            return
        assert isinstance(head, Note)
        for part in await parts_of(head, self._scope, memory):
            try:
                await memory.archive(part.id, scope=self._scope)
            except (NotFound, InvalidInput):  # somebody took it, or it is away
                continue

    async def _pop(self, memory: AsyncMemory) -> TResponseInputItem | None:
        while found := await memory.events(self.session_id, source=SOURCE.file, limit=1, scope=self._scope):
            try:
                await memory.delete(found[0].event_id, scope=self._scope)
            except NotFound:  # somebody else took it first
                continue
            return cast(TResponseInputItem, found[0].payload)
        return None

    async def _clear(self, memory: AsyncMemory) -> None:
        events = await memory.events(self.session_id, scope=self._scope)
        own = [event.event_id for event in events if event.source is not None and event.source.file == SOURCE.file]
        if len(own) == len(events):
            await memory.delete(session=self.session_id, scope=self._scope)
            return
        for id in own:
            try:
                await memory.delete(id, scope=self._scope)
            except NotFound:  # somebody else took it first
                continue


def memory_tools(
    memory: Either, *, scope: Scope | None = None, session: str | None = None, read_only: bool = False
) -> list[FunctionTool]:
    """The tools of ``MemoryTools`` as the SDK's: ``Agent(..., tools=memory_tools(memory))``."""
    return [_tool(tool) for tool in MemoryTools(memory, scope=scope, session=session, read_only=read_only)]


def _tool(tool: Tool) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        return json.dumps(await tool.acall(arguments), ensure_ascii=False)

    return FunctionTool(tool.name, tool.description, tool.parameters, invoke, strict_json_schema=False)


def _event_of(item: object, session: str, now: datetime) -> Event:
    """An item as an event: what was said with its words and speaker, all else under the name of what it is.
    What no store searches of it, the payload keeps."""
    if not isinstance(item, Mapping):
        raise InvalidInput(f"{type(item).__name__} is no item of a session: hand in dicts, as the SDK makes them")
    kind, role = item.get("type", "message"), item.get("role")
    said = storable_text(content_of(item.get("content")).text) if kind == "message" and role in SPOKEN else ""
    called = " ".join(str(part) for part in (kind, item.get("name") or role) if part)
    fields = {
        "id": f"openai-agents:{uuid4().hex}",
        "content": said or storable_text(called),
        "role": role if said else None,
        "occurred_at": now,
        "session": session,
        "source": SOURCE,
        "payload": plain("item", item),
    }
    return checked(fields)


def _recalled(items: Iterable[Any]) -> list[dict[str, Any]]:
    """What the tools that read a memory answered, as far as these items tell."""
    calls: set[Any] = set()
    answers: list[dict[str, Any]] = []
    for item in items:
        if item.get("type") == "function_call" and item.get("name") in READING:
            calls.add(item.get("call_id"))
        elif item.get("type") == "function_call_output" and item.get("call_id") in calls:
            answer = parsed(item.get("output"))
            answers += [answer] if isinstance(answer, dict) else []
    return answers
