"""Strands Agents: a memory store for its ``MemoryManager``, and the memory tools."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from zettel.errors import MissingExtra

try:
    from strands.memory import ExtractionConfig, InvocationTrigger, MemoryEntry, MemoryStore
    from strands.tools import PythonAgentTool
except ModuleNotFoundError as error:
    raise MissingExtra("the memory for Strands Agents", "strands") from error

from zettel.core.arguments import checked
from zettel.core.messages import text_of
from zettel.integrations.conversation_turns import RecalledContext, report_answer
from zettel.integrations.json_values import json_value, storable_text
from zettel.integrations.note_access import event_fields
from zettel.integrations.run_scope import RunScope, ScopedTools, ScopeOfRun, user_field
from zettel.integrations.sync_or_async import Adapter, AnyMemory, require_memory
from zettel.integrations.tools import Tool
from zettel.llm.prompt_lines import date_of
from zettel.model import Event, Hit, Scope
from zettel.search.question_kind import asks_about_past

if TYPE_CHECKING:
    from strands.memory import AddMessagesContext, SearchOptions
    from strands.types.content import Message
    from strands.types.tools import AgentTool, ToolResult, ToolUse

    from zettel.async_memory import AsyncMemory

_ADAPTER = Adapter("strands")
HITS = 5
"""Default number of memories in an answer."""
DESCRIPTION = "Messages and facts of earlier conversations."


class ZettelMemoryStore(MemoryStore):  # type: ignore[misc]
    """One scope of a ``Memory`` or ``AsyncMemory`` as a store: ``MemoryManager(stores=[this])``.

    The manager searches it before each model call, and it stores the messages of each invocation without a model. A
    search returns at most ``max_search_results`` notes, without notes that look like instructions to a model.
    Sentences of an answer that repeat them are not stored, and the notes that it used are reported. ``session`` is the
    session of stored messages, by default a new one; ``user`` and ``assistant`` name the speakers. An agent of Strands
    is one conversation, so each user has a store of their own. Raises ``InvalidInput``.
    """

    def __init__(
        self,
        memory: AnyMemory,
        *,
        scope: Scope | None = None,
        session: str | None = None,
        user: str = "user",
        assistant: str = "assistant",
        name: str = "zettel",
        description: str = DESCRIPTION,
        max_search_results: int = HITS,
        writable: bool = True,
        extraction: ExtractionConfig | bool | None = None,
    ) -> None:
        require_memory(memory)
        self.name, self.description, self.max_search_results = name, description, max_search_results
        self.writable = writable
        each_turn = ExtractionConfig(trigger=InvocationTrigger()) if writable else None
        self.extraction = each_turn if extraction is None else extraction
        self._memory, self._scope = memory, scope or memory.scope
        self._conversation = secrets.token_hex(4)
        self._session = session or self._conversation
        self._speakers = {"user": user, "assistant": assistant}
        self._recalled = RecalledContext([], "", user)
        for role in self._speakers:  # validates the arguments now
            self._event(role, "text", None)

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Return the memories that answer a question, best first, each with its day and speaker.

        The metadata contains ``id``, ``score`` and the fields of the event. Raises what ``Memory.search`` raises.
        """
        k = (options or {}).get("max_search_results") or self.max_search_results
        current = not asks_about_past(query)
        search = partial(_search, query, k, current, self._scope)
        hits = await _ADAPTER.run_async(self._memory, search) if query.strip() else []
        entries = [_entry(hit) for hit in hits if not hit.note.flags]
        self._recalled = RecalledContext(hits, "\n".join(entry.content for entry in entries), self._speakers["user"])
        return entries

    async def add(self, content: str, metadata: dict[str, Any] | None = None) -> None:
        """Store one text, with metadata that ``Memory.search`` can filter by. Raises ``InvalidEvent``."""
        fields = json_value("metadata", metadata or {})
        event = checked({"content": storable_text(content), "session": self._session, "metadata": fields})
        await _ADAPTER.run_async(self._memory, lambda memory: memory.add_many([event], scope=self._scope))

    async def add_messages(self, messages: list[Message], context: AddMessagesContext | None = None) -> None:
        """Store the texts of messages; a repeated call stores them once.

        Raises what ``Memory.add_many`` and ``Memory.feedback`` raise.
        """
        numbers = None if context is None else context.sequence_numbers
        recalled, events = self._recalled, []
        for place, message in enumerate(messages):
            text = recalled.without(_text(message), own=message["role"] == "user")
            if text:
                events.append(self._event(message["role"], text, None if numbers is None else numbers[place]))
        answer = "\n".join(_text(message) for message in messages if message["role"] == "assistant")
        await _ADAPTER.run_async(self._memory, partial(self._store, events, recalled.search_id, answer))

    async def _store(self, events: Sequence[Event], search_id: str | None, answer: str, memory: AsyncMemory) -> None:
        if events:
            await memory.add_many_report(events, on_conflict="skip", scope=self._scope)
        await report_answer(memory, search_id, answer, self._scope)

    def _event(self, role: str, text: str, number: int | None) -> Event:
        identity = json.dumps([self._conversation, number, role, text])
        id = f"strands:{hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()}"
        return checked({
            "id": None if number is None else id, "content": text, "speaker": self._speakers[role], "role": role,
            "occurred_at": datetime.now(timezone.utc), "session": self._session,
        })  # fmt: skip


def memory_tools(
    memory: AnyMemory, *, scope: ScopeOfRun | None = None, session: str | None = None, read_only: bool = False
) -> list[AgentTool]:
    """Return the tools of ``MemoryTools`` as tools of Strands: ``Agent(tools=memory_tools(memory))``.

    If the ``invocation_state`` of a call has ``user_id``, it is the user of the scope. ``scope`` is the scope without
    that user, the scope of one user, or a function that takes the ``invocation_state``. An empty ``user_id``, or
    another user than that of the scope, is an error that the model receives. Raises ``InvalidInput``.
    """
    scopes = RunScope.for_memory(memory, scope)
    scoped = ScopedTools(memory, read_only=read_only)

    def tool_of(tool: Tool) -> AgentTool:
        async def invoke(tool_use: ToolUse, **invocation_state: Any) -> ToolResult:
            tools = scoped.of(scopes.of(invocation_state, user_field(invocation_state, "invocation_state")), session)
            answer = await tools.acall(tool.name, tool_use["input"])
            status = "error" if "error" in answer else "success"
            return {"toolUseId": tool_use["toolUseId"], "status": status, "content": [{"json": answer}]}

        spec = {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.parameters}}
        return PythonAgentTool(tool.name, spec, invoke)

    return [tool_of(tool) for tool in scoped.tools]


async def _search(query: str, k: int, current: bool, scope: Scope, memory: AsyncMemory) -> list[Hit]:
    return await memory.search(query, k, current_only=current, scope=scope)


def _text(message: Message) -> str:
    """Return the text of a message, without NUL characters and up to the size limit."""
    return storable_text(text_of(message["content"])).strip()


def _entry(hit: Hit) -> MemoryEntry:
    note = hit.note
    head = " ".join(part for part in (date_of(note), note.speaker or note.title) if part)
    metadata = {**note.metadata, "id": note.id, "score": hit.score, **event_fields(note)}
    return MemoryEntry(content=f"{head}: {note.content}" if head else note.content, metadata=metadata)
