"""Memory service for Google's Agent Development Kit (ADK).

Each app and user of ADK is one scope: the app is its agent, the user its user, and the tenant is that of the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache
from pydantic import BaseModel

from zettel.errors import InvalidInput, MissingExtra, NotFound

try:
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types
except ModuleNotFoundError as error:
    raise MissingExtra("the memory service for ADK", "adk") from error

from zettel.core.arguments import checked, require_storable
from zettel.integrations.conversation_turns import report_answer
from zettel.integrations.json_values import json_value, storable_text
from zettel.integrations.recalled_text import MIN_WORDS, RecalledNotes, normalized, only_repeats
from zettel.integrations.run_scope import ScopedTools
from zettel.integrations.sync_or_async import Adapter, AnyMemory, require_memory
from zettel.integrations.tool_answers import CAUTION
from zettel.integrations.tools import READ_TOOLS, Tool
from zettel.model import Event, Hit, Scope

if TYPE_CHECKING:
    from google.adk.events import Event as AdkEvent
    from google.adk.sessions import Session
    from google.adk.tools.tool_context import ToolContext

    from zettel.async_memory import AsyncMemory

_ADAPTER = Adapter("adk")
HITS = 10
"""Default number of memories in an answer."""
USER = "user"
"""The author of the user's events."""
RECALLING_TOOLS = READ_TOOLS | {"load_memory"}
"""Tools whose answers contain stored memories."""
SEARCHES = 20
"""Searches of a scope whose use is reported when the session is stored, the most recent ones."""
SCOPES = 100
"""Scopes whose recalled notes are cached, the most recent ones."""


class ZettelMemoryService(BaseMemoryService):  # type: ignore[misc]
    """The memory of all apps and users in a ``Memory`` or ``AsyncMemory``: ``Runner(..., memory_service=this)``.

    A search returns at most ``k`` notes. The service caches them, so that it does not store an answer that only repeats
    them, and reports which of them the session's answers used. Raises ``InvalidInput``.
    """

    def __init__(self, memory: AnyMemory, *, k: int = HITS) -> None:
        require_memory(memory)
        self._memory = memory
        self._k = k
        self._recalled: LRUCache[Scope, RecalledNotes] = LRUCache(SCOPES)
        self._offered: LRUCache[Scope, list[str]] = LRUCache(SCOPES)

    def scope(self, app_name: str, user_id: str) -> Scope:
        """Return the scope of an app and a user. Raises ``InvalidInput`` for empty names."""
        return scope_of(self._memory, app_name, user_id)

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the messages of a session. Adding it again stores only new messages and revives no deleted ones.

        Only text is stored: no tool calls, thoughts or files, and no answers that only repeat recalled memories.
        Characters that no store accepts are removed, and texts beyond the size limit are cut. Events are identified by
        their ids, in any session.
        """
        await self._remember(session.app_name, session.user_id, session.events, session.id, None)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[AdkEvent],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store some events, with metadata that ``Memory.search`` can filter by.

        Events that are already stored keep their metadata. Raises ``InvalidEvent``.
        """
        await self._remember(app_name, user_id, events, session_id, custom_metadata)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store texts. Entries that a search returned are already stored and skipped. Raises ``InvalidEvent``."""
        scope, common = self.scope(app_name, user_id), json_value("custom_metadata", custom_metadata or {})
        entries = [(entry.id, _event_of_entry(entry, common)) for entry in memories]
        await _ADAPTER.run_async(self._memory, partial(_add_new, entries, scope))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the memories that answer a question, best first; none for an empty question."""
        scope = self.scope(app_name, user_id)
        if not query.strip():
            return SearchMemoryResponse()
        hits = await _ADAPTER.run_async(self._memory, lambda memory: memory.search(query, self._k, scope=scope))
        recalled = self._recalled_in(scope)
        for hit in reversed(hits):
            recalled.add(hit.note)
        if hits and hits[0].search_id is not None:
            self._offered[scope] = [*self._offered.get(scope, ()), hits[0].search_id][-SEARCHES:]
        return SearchMemoryResponse(memories=[_entry_of(hit) for hit in hits])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Destroy one memory and everything derived from it. ``memory_id`` is an id from a search.

        Raises ``NotFound``, and ``InvalidInput`` without an id.
        """
        scope = self.scope(app_name, user_id)
        if not memory_id:
            raise InvalidInput("memory_id is missing: pass the id of an entry that search_memory returned")
        await _ADAPTER.run_async(self._memory, lambda memory: memory.delete(memory_id, scope=scope))
        self._recalled_in(scope).remove(memory_id)

    def _recalled_in(self, scope: Scope) -> RecalledNotes:
        return self._recalled.setdefault(scope, RecalledNotes())

    async def _remember(
        self, app_name: str, user_id: str, adk_events: Sequence[AdkEvent], session: str | None,
        metadata: Mapping[str, object] | None,
    ) -> None:  # fmt: skip
        scope, common = self.scope(app_name, user_id), json_value("custom_metadata", metadata or {})
        texts = _new_texts(adk_events, self._recalled_in(scope))
        events = [_event_of(event, text, session, common) for event, text in texts]
        if events:  # skip: notes that were edited since stay as they are
            await _ADAPTER.run_async(
                self._memory, lambda memory: memory.add_many_report(events, on_conflict="skip", scope=scope)
            )
        answer = "\n".join(_words(event.content) for event in adk_events if event.author != USER and event.content)
        if answer:
            for id in self._offered.pop(scope, ()):
                report = partial(report_answer, search_id=id, answer=answer, scope=scope)
                await _ADAPTER.run_async(self._memory, report)


def memory_tools(memory: AnyMemory, *, read_only: bool = False, allow_delete: bool = False) -> list[BaseTool]:
    """Return the tools of ``MemoryTools`` as ADK tools: ``Agent(..., tools=memory_tools(memory))``.

    They work on the scope of the app and user of the calling session. ``allow_delete`` adds ``delete_memory``, which
    cannot be undone.
    """
    scoped = ScopedTools(memory, read_only=read_only, allow_delete=allow_delete)
    return [_Tool(tool, memory, scoped) for tool in scoped.tools]


def scope_of(memory: AnyMemory, app_name: str, user_id: str) -> Scope:
    """Return the scope of an app and a user. Raises ``InvalidInput`` for empty names."""
    for name, value in (("app_name", app_name), ("user_id", user_id)):
        if not isinstance(value, str) or not value.strip():
            raise InvalidInput(f"{name} must be a non-empty string, got {value!r}")
        require_storable(name, value)
    return Scope(tenant=memory.scope.tenant, user=user_id, agent=app_name)


class _Tool(BaseTool):  # type: ignore[misc]
    def __init__(self, tool: Tool, memory: AnyMemory, scoped: ScopedTools) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._tool, self._memory, self._scoped = tool, memory, scoped

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._tool.parameters
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        session = tool_context.session
        scope = scope_of(self._memory, session.app_name, session.user_id)
        return await self._scoped.of(scope).acall(self._tool.name, args)


async def _add_new(entries: Iterable[tuple[str | None, Event]], scope: Scope, memory: AsyncMemory) -> None:
    new: list[Event] = []
    for id, event in entries:
        if id is None or not id.startswith("n_") or not await _exists(memory, id, scope):
            new.append(event)
    if new:
        await memory.add_many(new, scope=scope)


async def _exists(memory: AsyncMemory, id: str, scope: Scope) -> bool:
    try:
        await memory.get(id, scope=scope)
    except NotFound:
        return False
    return True


def _new_texts(events: Iterable[AdkEvent], before: RecalledNotes) -> Iterator[tuple[AdkEvent, str]]:
    """Yield events with their texts, without answers that only repeat tool answers or notes recalled ``before``."""
    recalled: list[dict[str, Any]] = []
    for event in events:
        if event.partial or event.content is None:
            continue
        for part in event.content.parts or ():
            answer = part.function_response
            if answer is not None and answer.name in RECALLING_TOOLS:
                recalled += [{"text": text} for text in _texts(answer.response)]
        text = _words(event.content)
        if text.strip() and (event.author == USER or not (only_repeats(text, recalled) or _is_recalled(text, before))):
            yield event, text


def _is_recalled(text: str, before: RecalledNotes) -> bool:
    """Return whether a text only repeats recalled notes; very short texts never count."""
    return normalized(text).count(" ") > MIN_WORDS and bool(before.source_ids(text))


def _words(content: types.Content) -> str:
    """Return the text of a content, without thoughts."""
    return storable_text("\n".join(part.text for part in content.parts or () if part.text and not part.thought))


def _texts(value: Any) -> Iterator[str]:
    """Yield all strings in the answer of a tool."""
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


def _event_of(event: AdkEvent, text: str, session: str | None, metadata: dict[str, Any]) -> Event:
    try:
        when = datetime.fromtimestamp(event.timestamp, timezone.utc)
    except (OverflowError, ValueError, OSError):
        raise InvalidInput(f"timestamp={event.timestamp} of event {event.id!r} is not a time") from None
    fields = {
        "id": f"adk:{event.id}", "content": text, "speaker": event.author or None, "occurred_at": when,
        "session": session, "metadata": metadata,
    }  # fmt: skip
    return checked(fields)


def _event_of_entry(entry: MemoryEntry, common: dict[str, Any]) -> Event:
    fields = {
        "id": None if entry.id is None else f"adk:memory:{entry.id}", "content": _words(entry.content),
        "speaker": entry.author, "occurred_at": entry.timestamp,
        "metadata": {**common, **json_value("custom_metadata", entry.custom_metadata)},
    }  # fmt: skip
    return checked(fields)


def _entry_of(hit: Hit) -> MemoryEntry:
    note = hit.note
    parts = [CAUTION, note.content] if note.flags else [note.content]
    known = {"session": note.session, "true_until": note.valid_to.isoformat() if note.valid_to else None}
    return MemoryEntry(
        id=note.id,
        content=types.Content(
            role=USER if note.speaker == USER else "model", parts=[types.Part(text=text) for text in parts]
        ),
        author=note.speaker,
        timestamp=note.occurred_at.isoformat() if note.occurred_at else None,
        custom_metadata={
            **note.metadata, "score": hit.score, **{name: value for name, value in known.items() if value}
        },
    )  # fmt: skip
