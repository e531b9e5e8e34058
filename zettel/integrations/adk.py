"""The Agent Development Kit's memory service: what was said in its sessions, searched by whose they are.

An app and a user of the kit are a scope: the app its agent, the user its user, and the tenant is the memory's own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from zettel.errors import InvalidInput, MissingExtra, NotFound

try:
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types
except ModuleNotFoundError as error:
    raise MissingExtra("the memory service for ADK", "adk") from error

from zettel.arguments import checked, require_storable
from zettel.integrations.either import Either, reach, require_memory
from zettel.integrations.plain import plain, storable_text
from zettel.integrations.recalled import FEWEST_WORDS, Recalled, repeats, spaced
from zettel.integrations.tool_answers import CAUTION
from zettel.integrations.tools import SPECS, MemoryTools, Tool
from zettel.model import Event, Hit, Scope

if TYPE_CHECKING:
    from google.adk.events import Event as AdkEvent
    from google.adk.sessions import Session
    from google.adk.tools.tool_context import ToolContext

    from zettel.async_memory import AsyncMemory

Kept = TypeVar("Kept")
HITS = 10
"""Memories in an answer, unless another number is asked for."""
USER = "user"
"""The author of what the user said."""
READING = frozenset({"load_memory", *(spec.name for spec in SPECS if spec.reads_only)})
"""Tools that answer with what is remembered."""
SCOPES = 100
"""Users of whom it is kept in mind what was recalled for them, with their tools: those who asked last."""


class ZettelMemoryService(BaseMemoryService):  # type: ignore[misc]
    """The memory of all apps and users in a ``Memory`` or ``AsyncMemory``: ``Runner(..., memory_service=this)``.

    A search finds at most ``k`` notes. What was found is kept in mind, so that an answer that only reads it out is not
    remembered again. Raises ``InvalidInput``.
    """

    def __init__(self, memory: Either, *, k: int = HITS) -> None:
        require_memory(memory)
        self._memory = memory
        self._k = k
        self._recalled: OrderedDict[Scope, Recalled] = OrderedDict()

    def scope(self, app_name: str, user_id: str) -> Scope:
        """Where the memories of an app's user are. Raises ``InvalidInput`` for names that name nobody."""
        return scope_of(self._memory, app_name, user_id)

    async def add_session_to_memory(self, session: Session) -> None:
        """Remember what was said in a session. Added again, it brings only what is new, and nothing that was deleted.

        Only words are remembered: no calls of tools, no thoughts, no files, and no answer of an agent that only repeats
        what was recalled. What no store keeps in a text is left out of it, and what is longer than an event may be is
        cut. An event is known by its id, in whatever session it comes.
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
        """The same of some events, with metadata that ``Memory.search`` can filter by; what is remembered already keeps
        its own. Raises ``InvalidEvent``."""
        await self._remember(app_name, user_id, events, session_id, custom_metadata)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember texts. One that a search has found is there already, and is not added. Raises ``InvalidEvent``."""
        scope, common = self.scope(app_name, user_id), plain("custom_metadata", custom_metadata or {})
        told = [(entry.id, _event_of_entry(entry, common)) for entry in memories]
        await reach(self._memory, partial(_add_new, told, scope))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """What answers a question, best first; nothing for one without words."""
        scope = self.scope(app_name, user_id)
        if not query.strip():
            return SearchMemoryResponse()
        hits = await reach(self._memory, lambda memory: memory.search(query, self._k, log=False, scope=scope))
        recalled = self._recalled_in(scope)
        for hit in reversed(hits):
            recalled.show(hit.note)
        return SearchMemoryResponse(memories=[_entry_of(hit) for hit in hits])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Destroy one memory by the id that a search gave it, with what was derived from it, for good.

        Raises ``NotFound``, and ``InvalidInput`` without an id.
        """
        scope = self.scope(app_name, user_id)
        if not memory_id:
            raise InvalidInput("say which memory to delete: memory_id= is the id of an entry that a search found")
        await reach(self._memory, lambda memory: memory.delete(memory_id, scope=scope))
        self._recalled_in(scope).forget(memory_id)

    def _recalled_in(self, scope: Scope) -> Recalled:
        return _kept(self._recalled, scope, Recalled)

    async def _remember(
        self, app_name: str, user_id: str, said: Sequence[AdkEvent], session: str | None,
        metadata: Mapping[str, object] | None,
    ) -> None:  # fmt: skip
        scope, common = self.scope(app_name, user_id), plain("custom_metadata", metadata or {})
        events = [_event_of(event, text, session, common) for event, text in _spoken(said, self._recalled_in(scope))]
        if events:  # skip: what somebody has changed since stays as it is
            await reach(self._memory, lambda memory: memory.remember(events, on_conflict="skip", scope=scope))


def memory_tools(memory: Either, *, read_only: bool = False) -> list[BaseTool]:
    """The tools of ``MemoryTools`` as the kit's: ``Agent(..., tools=memory_tools(memory))``.

    They work on the memory of the app and the user of the session that they are called in.
    """
    scopes = _Scopes(memory, read_only)
    return [_Tool(tool, scopes) for tool in MemoryTools(memory, read_only=read_only)]


def scope_of(memory: Either, app_name: str, user_id: str) -> Scope:
    """The scope of an app's user. Raises ``InvalidInput`` for names that name nobody."""
    for name, value in (("app_name", app_name), ("user_id", user_id)):
        if not isinstance(value, str) or not value.strip():
            raise InvalidInput(f"{name}={value!r} names nobody: use a text")
        require_storable(name, value)
    return Scope(tenant=memory.scope.tenant, user=user_id, agent=app_name)


class _Scopes:
    """The tools of each scope, which know what they have recalled."""

    def __init__(self, memory: Either, read_only: bool) -> None:
        self._memory, self._read_only = memory, read_only
        self._known: OrderedDict[Scope, MemoryTools] = OrderedDict()

    def tools(self, context: ToolContext) -> MemoryTools:
        session = context.session
        scope = scope_of(self._memory, session.app_name, session.user_id)
        return _kept(self._known, scope, lambda: MemoryTools(self._memory, scope=scope, read_only=self._read_only))


def _kept(known: OrderedDict[Scope, Kept], scope: Scope, make: Callable[[], Kept]) -> Kept:
    """What is known of a scope, made anew if it is not, and forgotten when ``SCOPES`` others came after it."""
    if scope not in known:
        known[scope] = make()
    known.move_to_end(scope)
    if len(known) > SCOPES:
        known.popitem(last=False)
    return known[scope]


class _Tool(BaseTool):  # type: ignore[misc]
    def __init__(self, tool: Tool, scopes: _Scopes) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._tool, self._scopes = tool, scopes

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._tool.parameters
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        return await self._scopes.tools(tool_context).acall(self._tool.name, args)


async def _add_new(told: Iterable[tuple[str | None, Event]], scope: Scope, memory: AsyncMemory) -> None:
    new: list[Event] = []
    for id, event in told:
        if id is None or not id.startswith("n_") or not await _holds(memory, id, scope):
            new.append(event)
    if new:
        await memory.add_many(new, scope=scope)


async def _holds(memory: AsyncMemory, id: str, scope: Scope) -> bool:
    try:
        await memory.get(id, scope=scope)
    except NotFound:
        return False
    return True


def _spoken(events: Iterable[AdkEvent], before: Recalled) -> Iterator[tuple[AdkEvent, str]]:
    """What was said, with its words; without what agents read out of the answers of tools, or of what was recalled
    ``before`` they were asked, which stands in no event."""
    recalled: list[dict[str, Any]] = []
    for event in events:
        if event.partial or event.content is None:
            continue
        for part in event.content.parts or ():
            answer = part.function_response
            if answer is not None and answer.name in READING:
                recalled += [{"text": text} for text in _texts(answer.response)]
        text = _words(event.content)
        if text.strip() and (event.author == USER or not (repeats(text, recalled) or _is_told(text, before))):
            yield event, text


def _is_told(text: str, before: Recalled) -> bool:
    """Whether a text only reads out what was recalled; a word or two are an answer, whoever said them before."""
    return spaced(text).count(" ") > FEWEST_WORDS and bool(before.holders(text))


def _words(content: types.Content) -> str:
    """The text of a content, without thoughts."""
    return storable_text("\n".join(part.text for part in content.parts or () if part.text and not part.thought))


def _texts(value: Any) -> Iterator[str]:
    """All texts in an answer of a tool."""
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
        "id": f"adk:{event.id}", "content": text, "role": event.author or None, "occurred_at": when,
        "session": session, "metadata": metadata,
    }  # fmt: skip
    return checked(fields)


def _event_of_entry(entry: MemoryEntry, common: dict[str, Any]) -> Event:
    fields = {
        "id": None if entry.id is None else f"adk:memory:{entry.id}", "content": _words(entry.content),
        "role": entry.author, "occurred_at": entry.timestamp,
        "metadata": {**common, **plain("custom_metadata", entry.custom_metadata)},
    }  # fmt: skip
    return checked(fields)


def _entry_of(hit: Hit) -> MemoryEntry:
    note = hit.note
    parts = [CAUTION, note.content] if note.flags else [note.content]
    known = {"session": note.session, "true_until": note.valid_to.isoformat() if note.valid_to else None}
    return MemoryEntry(
        id=note.id,
        content=types.Content(
            role=USER if note.role == USER else "model", parts=[types.Part(text=text) for text in parts]
        ),
        author=note.role,
        timestamp=note.occurred_at.isoformat() if note.occurred_at else None,
        custom_metadata={
            **note.metadata, "score": hit.score, **{name: value for name, value in known.items() if value}
        },
    )  # fmt: skip
