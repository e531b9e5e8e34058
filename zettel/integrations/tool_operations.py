"""The operations of the memory tools: what each does with a memory of a fixed scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zettel.async_memory import AsyncMemory
from zettel.core.arguments import moment_of, require_storable
from zettel.core.authority import is_trusted, may_replace
from zettel.core.conditions import filter_from_json
from zettel.errors import EventDeleted, InvalidInput, ZettelError
from zettel.integrations import tool_answers, tool_arguments
from zettel.integrations.recalled_text import RecalledNotes, contains_line, normalized
from zettel.integrations.whole_events import correct, parts_of, whole_of
from zettel.model import Link, Note, Scope
from zettel.model.tags import PINNED, RESERVED_TAGS, without_reserved
from zettel.text.instructions import authored_flags

Answer = dict[str, Any]

UNPINNABLE = "it is not by a person, or it looks like instructions, so only a person can pin it"
"""Why a tool does not pin a memory."""


class ToolOperations:
    """The operations of the tools. All of them run in the memory's event loop, so they never run in parallel."""

    def __init__(self, scope: Scope, session: str | None, read_only: bool) -> None:
        self._scope = scope
        self._session = session
        self._read_only = read_only
        self._recalled = RecalledNotes()

    async def add(self, memory: AsyncMemory, args: tool_arguments.Add) -> Answer:
        when = moment_of("when", args.when)
        for tag in args.tags or ():  # check all tags before the first write
            require_storable("tags", tag)
        if when is None and (known_id := await self._recalled_id(memory, args.text)):
            return {"stored": False, "id": known_id, "why": "this was recalled from memory: it is stored already"}
        try:
            id = await memory.add(
                args.text, speaker=args.who, occurred_at=when, title=args.title, session=self._session,
                expires_at=args.expires_at, scope=self._scope,
            )  # fmt: skip
        except EventDeleted:
            raise EventDeleted("this memory was deleted on request: do not store it again") from None
        is_pinned = args.pinned and _may_pin(await self._note(memory, id))
        if tags := dict.fromkeys([*without_reserved(args.tags or ()), *([PINNED] if is_pinned else ())]):
            await memory.update(id, tags=list(tags), scope=self._scope)
        refused = {"pinned": False, "why": UNPINNABLE} if args.pinned and not is_pinned else {}
        return {"stored": True, "id": id, **refused}

    async def search(self, memory: AsyncMemory, args: tool_arguments.Search) -> Answer:
        hits = await memory.search(
            args.query, args.limit, speaker=args.who, since=args.since, until=args.until, as_of=args.as_of,
            tags=args.tags, filter=_conditions(args.filter), archived=args.archived, log=not self._read_only,
            restore_decayed=not self._read_only, scope=self._scope,
        )  # fmt: skip
        for hit in hits:
            self._recalled.add(hit.note)
        search = {"search_id": hits[0].search_id} if hits and hits[0].search_id else {}
        return {"already_stored": True, **search, "memories": tool_answers.search_answer(hits)}

    async def report(self, memory: AsyncMemory, args: tool_arguments.Report) -> Answer:
        await memory.feedback(args.search_id, args.used, args.outcome, scope=self._scope)
        return {"recorded": True, "search_id": args.search_id}

    async def query(self, memory: AsyncMemory, args: tool_arguments.Query) -> Answer:
        conditions: dict[str, Any] = {
            "words": args.words, "speaker": args.who, "since": args.since, "until": args.until,
            "session": args.session, "tags": args.tags, "filter": _conditions(args.filter), "scope": self._scope,
        }  # fmt: skip
        by = ["speaker" if field == "who" else field for field in args.group_by or ()]
        counted = await memory.query("events", **conditions, group_by=by, limit=args.limit if by else 0)
        answer = tool_answers.query_answer(counted)
        if by or not args.limit:
            return answer
        order = "-time" if args.newest_first else "time"
        listed = await memory.query(kinds=["episodic"], **conditions, order=order, limit=args.limit)
        for note in listed.notes:
            self._recalled.add(note)
        memories = [tool_answers.summary(note, tool_answers.SHOWN_CHARS) for note in listed.notes]
        return {"already_stored": True, **answer, "memories": memories}

    async def get(self, memory: AsyncMemory, args: tool_arguments.Get) -> Answer:
        note = await self._note(memory, args.id)
        links: list[Link] = []
        others: dict[str, Note] = {}
        for id in dict.fromkeys((note.id, args.id)):  # a search may have returned a later part
            links += await memory.links(id, scope=self._scope)
            others |= {near.note.id: near.note for near in await memory.neighbors(id, 1, scope=self._scope)}
        self._recalled.add(note)
        return {"already_stored": True, **tool_answers.details(note, links, others)}

    async def entity(self, memory: AsyncMemory, args: tool_arguments.Entity) -> Answer:
        entity = await memory.entity(args.name, limit=tool_answers.SHOWN_OF_ENTITY, scope=self._scope)
        for note in entity.timeline:
            self._recalled.add(note)
        return {"already_stored": True, **tool_answers.entity_answer(entity)}

    async def update(self, memory: AsyncMemory, args: tool_arguments.Update) -> Answer:
        note = await self._note(memory, args.id)
        given = {"content": args.text, "title": args.title, "importance": args.importance}
        fields: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        worded = note.model_copy(update={name: fields[name] for name in ("content", "title") if name in fields})
        if args.pinned and not _may_pin(worded):
            raise InvalidInput(f"{note.id} cannot be pinned: {UNPINNABLE}")
        was_pinned = "tags" in note.authored and PINNED in note.tags
        loses_pin = was_pinned and not {*authored_flags(worded)} <= {*authored_flags(note)}
        if args.tags is not None or args.pinned is not None or loses_pin:
            is_pinned = was_pinned and not loses_pin if args.pinned is None else args.pinned
            fields["tags"] = _with_tags(note, args.tags, is_pinned)
        if not fields:
            raise InvalidInput("nothing to change: give text, title, tags, importance or pinned")
        changed = await correct(note.id, fields, self._scope, memory)
        for id in (note.id, args.id):
            self._recalled.remove(id)
        names = sorted(tool_answers.NAMES.get(field, field) for field in fields)
        unpinned = {"pinned": False, "why": UNPINNABLE} if loses_pin else {}
        return {"id": changed.id, "version": changed.version, "changed": names, **unpinned}

    async def delete(self, memory: AsyncMemory, args: tool_arguments.Delete) -> Answer:
        _require_note(args.id)
        count = await memory.delete(args.id, scope=self._scope)
        self._recalled.remove(args.id)
        return {"deleted": count}

    async def archive(self, memory: AsyncMemory, args: tool_arguments.Archive) -> Answer:
        parts = await parts_of(await self._note(memory, args.id), self._scope, memory)
        for part in reversed(parts):  # the first part last: until then a search finds the memory
            if not part.archived:
                await memory.archive(part.id, scope=self._scope)
        for id in (parts[0].id, args.id):
            self._recalled.remove(id)
        return {"archived": True, "id": parts[0].id}

    async def restore(self, memory: AsyncMemory, args: tool_arguments.Restore) -> Answer:
        parts = await parts_of(await self._note(memory, args.id), self._scope, memory)
        for part in parts:
            if part.archived:
                await memory.unarchive(part.id, scope=self._scope)
        return {"restored": True, "id": parts[0].id}

    async def link(self, memory: AsyncMemory, args: tool_arguments.Link) -> Answer:
        source, target = [await self._note(memory, id) for id in (args.source, args.target)]
        if args.type == "supersedes" and not may_replace(source, target):
            raise InvalidInput(f"{source.id} has less trust than {target.id}: link them with contradicts")
        link = await memory.link(args.source, args.target, args.type, reason=args.reason, scope=self._scope)
        return {"linked": True, "from": link.source, "to": link.target, "type": args.type}

    async def unlink(self, memory: AsyncMemory, args: tool_arguments.Unlink) -> Answer:
        for id in (args.source, args.target):
            await self._note(memory, id)
        link = await memory.unlink(args.source, args.target, args.type, scope=self._scope)
        return {"unlinked": True, "from": link.source, "to": link.target, "type": args.type}

    async def history(self, memory: AsyncMemory, args: tool_arguments.History) -> Answer:
        note = await self._note(memory, args.id)
        return {"id": note.id, **tool_answers.history_answer(await memory.history(note.id, scope=self._scope))}

    async def _note(self, memory: AsyncMemory, id: str) -> Note:
        """Return a note with the content of all its parts.

        Raises ``NotFound``, and ``InvalidInput`` for a quarantined note.
        """
        _require_note(id)
        note = await memory.get(id, scope=self._scope)
        assert isinstance(note, Note)
        if note.quarantined is not None:
            raise InvalidInput(f"{id} is quarantined: only a person can read it")
        return await whole_of(note, self._scope, memory)

    async def _recalled_id(self, memory: AsyncMemory, text: str) -> str | None:
        """Return the id of the note that a text was recalled from, if the note still contains it."""
        ids = self._recalled.source_ids(text)
        lines = [normalized(line) for line in text.splitlines()]
        for id in ids:
            try:
                note = await self._note(memory, id)
            except ZettelError:  # deleted or quarantined concurrently
                self._recalled.remove(id)
                return None
            content = normalized(note.content)
            if note.archived or not any(contains_line(content, line) for line in lines):
                self._recalled.remove(id)
                return None
        return ids[0] if ids else None


def _may_pin(note: Note) -> bool:
    """Return whether a tool may pin a note, by its writer and the content of all its parts."""
    return is_trusted(note) and not authored_flags(note)


def _with_tags(note: Note, tags: Sequence[str] | None, is_pinned: bool) -> list[str]:
    """Return the tags of a note with other tags by a tool (None: with its own), which sets no reserved ones."""
    reserved = [tag for tag in note.tags if tag in RESERVED_TAGS and tag != PINNED]
    others = without_reserved(note.tags if tags is None else tags)
    return [*dict.fromkeys([*others, *reserved]), *([PINNED] if is_pinned else [])]


def _require_note(id: str) -> None:
    if not id.startswith("n_"):
        raise InvalidInput(f"{id!r} is not the id of a memory: use an id that begins with n_ from search_memories")


def _conditions(filter: str | None) -> dict[str, Any] | None:
    return filter_from_json("filter", filter) if filter else None
