"""Anthropic's memory tool (``memory_20250818``): Claude reads and writes files under ``/memories``, which are notes.

A file is an event of the assistant, found by its path in the metadata, ``{"tool": "memory_20250818", "path": …}``. An
edit is a revision of its notes, and so is a rename. Directories are prefixes of paths. The answers are those of the
local tool in Anthropic's SDK.
"""

from __future__ import annotations

import posixpath
import secrets
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

from pydantic import ValidationError

from zettel.errors import IdentityConflict, InvalidInput, MissingExtra, ZettelError

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
except ModuleNotFoundError as error:
    raise MissingExtra("Anthropic's memory tool", "anthropic") from error

from zettel.async_memory import AsyncMemory
from zettel.core.arguments import checked, first_complaint
from zettel.core.authority import require_authority
from zettel.core.principals import acting_as
from zettel.integrations.note_access import all_notes, delete_existing
from zettel.integrations.sync_or_async import AnyMemory, require_memory, run_async, run_sync, writing
from zettel.integrations.whole_events import correct, parts_of, whole_of
from zettel.model import Event, Note, Scope

ROOT = "/memories"
TOOL = "memory_20250818"
"""The value of the metadata key ``tool`` in the notes of all files."""
DEPTH = 2
"""Levels that the view of a directory lists."""
MAX_LINES = 999_999
NUMBER_WIDTH = 6
"""Width of line numbers."""
CONTEXT_LINES = 2
"""Lines before and after an edit that its answer shows."""

Operation: TypeAlias = Callable[[AsyncMemory, Any], Awaitable[str]]


class ZettelMemoryTool(BetaAbstractMemoryTool):  # type: ignore[misc]
    """The files of one scope of a ``Memory``: ``client.beta.messages.tool_runner(..., tools=[this])``.

    ``delete`` archives the notes of a file, which searches with ``archived=True`` still find; ``allow_delete`` destroys
    them with all versions. ``trust`` (0 to 1) is the highest trust in what the tool writes, and ``principal`` the
    recorded writer, see ``zettel.acting_as``. ``cache_control`` is Anthropic's.

    Commands return text, and raise Anthropic's ``ToolError``, which the model sees. Raises ``InvalidInput``.

    Example: ``ZettelMemoryTool(memory, scope=Scope(user="ann")).call({"command": "view", "path": "/memories"})``.
    """

    def __init__(
        self,
        memory: AnyMemory,
        *,
        scope: Scope | None = None,
        allow_delete: bool = False,
        trust: float = 1.0,
        principal: str = "tool:memory",
        cache_control: Any = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        if isinstance(memory, AsyncMemory):
            raise InvalidInput("an AsyncMemory has to be awaited: use AsyncZettelMemoryTool")
        self._files = _Files(memory, scope, allow_delete, trust, principal)

    def view(self, command: Any) -> str:
        """Return a file with line numbers, or the files and directories of a directory with their sizes."""
        return self._files.run(self._files.view, command)

    def create(self, command: Any) -> str:
        """Store a new file."""
        return self._files.run(self._files.create, command)

    def str_replace(self, command: Any) -> str:
        """Replace a text that occurs once in a file."""
        return self._files.run(self._files.str_replace, command)

    def insert(self, command: Any) -> str:
        """Insert text after a line of a file; after line 0 is its beginning."""
        return self._files.run(self._files.insert, command)

    def delete(self, command: Any) -> str:
        """Delete a file, or all files of a directory."""
        return self._files.run(self._files.delete, command)

    def rename(self, command: Any) -> str:
        """Give a file, or all files of a directory, a new path. The files of a directory change one by one."""
        return self._files.run(self._files.rename, command)

    def clear_all_memory(self) -> str:
        """Delete all files, like ``delete``."""
        return self._files.run(self._files.clear, None)


class AsyncZettelMemoryTool(BetaAsyncAbstractMemoryTool):  # type: ignore[misc]
    """``ZettelMemoryTool`` for ``AsyncAnthropic``, with a ``Memory`` or an ``AsyncMemory``."""

    def __init__(
        self,
        memory: AnyMemory,
        *,
        scope: Scope | None = None,
        allow_delete: bool = False,
        trust: float = 1.0,
        principal: str = "tool:memory",
        cache_control: Any = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = _Files(memory, scope, allow_delete, trust, principal)

    async def view(self, command: Any) -> str:
        """See ``ZettelMemoryTool.view``."""
        return await self._files.arun(self._files.view, command)

    async def create(self, command: Any) -> str:
        """See ``ZettelMemoryTool.create``."""
        return await self._files.arun(self._files.create, command)

    async def str_replace(self, command: Any) -> str:
        """See ``ZettelMemoryTool.str_replace``."""
        return await self._files.arun(self._files.str_replace, command)

    async def insert(self, command: Any) -> str:
        """See ``ZettelMemoryTool.insert``."""
        return await self._files.arun(self._files.insert, command)

    async def delete(self, command: Any) -> str:
        """See ``ZettelMemoryTool.delete``."""
        return await self._files.arun(self._files.delete, command)

    async def rename(self, command: Any) -> str:
        """See ``ZettelMemoryTool.rename``."""
        return await self._files.arun(self._files.rename, command)

    async def clear_all_memory(self) -> str:
        """See ``ZettelMemoryTool.clear_all_memory``."""
        return await self._files.arun(self._files.clear, None)


class _Files:
    """The commands of the tool. They run in the memory's event loop, one at a time."""

    def __init__(
        self, memory: AnyMemory, scope: Scope | None, allow_delete: bool, trust: float, principal: str
    ) -> None:
        require_memory(memory)
        with acting_as(principal, trust):  # raises before the first command
            self._principal, self._trust = principal, trust
        self._memory = memory
        self._scope = scope or memory.scope
        self._allow_delete = allow_delete

    def run(self, operation: Operation, command: Any) -> str:
        return run_sync(self._memory, partial(self._do, operation, command))

    async def arun(self, operation: Operation, command: Any) -> str:
        return await run_async(self._memory, partial(self._do, operation, command))

    async def _do(self, operation: Operation, command: Any, memory: AsyncMemory) -> str:
        try:
            command = _complete(command)
            async with writing(memory):
                with acting_as(self._principal, self._trust):
                    return await operation(memory, command)
        except ZettelError as error:
            raise ToolError(" ".join(str(error).split())) from error

    async def view(self, memory: AsyncMemory, command: Any) -> str:
        path = resolved(command.path)
        files = await self._load(memory)
        if path in files:
            lines = (await self._read(memory, files[path])).split("\n")
            if len(lines) > MAX_LINES:
                raise ToolError(f"File {command.path} exceeds maximum line limit of 999,999 lines.")
            first, last = command.view_range if command.view_range and len(command.view_range) == 2 else (1, -1)
            start = max(1, first) - 1
            shown = lines[start : len(lines) if last == -1 else last]
            return f"Here's the content of {command.path} with line numbers:\n" + _numbered(shown, start + 1)
        inside = _inside(files, path)
        if not inside and path != ROOT:
            raise _missing(command.path)
        sizes: dict[tuple[str, ...], int] = defaultdict(int)
        directories: set[tuple[str, ...]] = set()
        for name, note in inside.items():
            steps = tuple(name.removeprefix(f"{path}/").split("/"))
            if any(step.startswith(".") for step in steps):
                continue
            size = len((await self._read(memory, note)).encode())
            for depth in range(min(len(steps), DEPTH) + 1):
                sizes[steps[:depth]] += size
            directories |= {steps[:depth] for depth in range(len(steps))}
        lines = [f"{_size(sizes[()])}\t{path}"]
        for steps in sorted(sizes):
            if steps:
                lines.append(f"{_size(sizes[steps])}\t{path}/{'/'.join(steps)}{'/' if steps in directories else ''}")
        header = f"Here're the files and directories up to {DEPTH} levels deep in {path}, excluding hidden items:"
        return "\n".join([header, *lines])

    async def create(self, memory: AsyncMemory, command: Any) -> str:
        path = resolved(command.path)
        for external_id in (f"memories{path.removeprefix(ROOT)}", f"memories/{secrets.token_hex(8)}"):
            files = await self._load(memory, quarantined=True)
            if path == ROOT or path in files or _inside(files, path):
                raise ToolError(f"File {command.path} already exists")
            _require_directory(files, path)
            event = _event(path, command.file_text, external_id)
            try:
                (outcome,) = await memory.add_many_report([event], scope=self._scope)
            except IdentityConflict:  # the id belongs to a renamed or archived file, or another process was faster
                continue
            if outcome.status == "added":  # else the id belongs to a deleted file, or to one with the same text
                return f"File created successfully at: {command.path}"
        raise ToolError(f"File {command.path} could not be created, please try again.")

    async def str_replace(self, memory: AsyncMemory, command: Any) -> str:
        note = await self._file(memory, command.path)
        text, old = await self._read(memory, note), command.old_str
        if not old:
            raise ToolError("No replacement was performed, old_str is empty.")
        if old not in text:
            raise ToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}.")
        before, *more = text.split(old)
        if len(more) > 1:
            lines = [before.count("\n") + 1]
            for piece in more[:-1]:
                lines.append(lines[-1] + (old + piece).count("\n"))
            raise ToolError(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
                f"{', '.join(map(str, lines))}. Please ensure it is unique"
            )
        line = before.count("\n")
        changed = before + command.new_str + more[0]
        await self._write(memory, note, changed)
        start = max(0, line - CONTEXT_LINES)
        snippet = changed.split("\n")[start : line + CONTEXT_LINES + 1]
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            + _numbered(snippet, start + 1)
        )

    async def insert(self, memory: AsyncMemory, command: Any) -> str:
        note = await self._file(memory, command.path)
        lines = (await self._read(memory, note)).split("\n")
        if lines[-1] == "":
            lines.pop()
        if not 0 <= command.insert_line <= len(lines):
            raise ToolError(
                f"Invalid `insert_line` parameter: {command.insert_line}. It should be within the range "
                f"[0, {len(lines)}]."
            )
        lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
        text = "\n".join(lines)
        await self._write(memory, note, text if text.endswith("\n") else f"{text}\n")
        return f"The file {command.path} has been edited."

    async def delete(self, memory: AsyncMemory, command: Any) -> str:
        path = resolved(command.path)
        if path == ROOT:
            raise ToolError(f"Cannot delete the {ROOT} directory itself")
        files = await self._load(memory)
        doomed = [files[path]] if path in files else list(_inside(files, path).values())
        if not doomed:
            raise ToolError(f"The path {command.path} does not exist")
        for note in doomed:
            await self._remove(memory, note)
        return f"Successfully deleted {command.path}"

    async def rename(self, memory: AsyncMemory, command: Any) -> str:
        old, new = resolved(command.old_path), resolved(command.new_path)
        if old == ROOT:
            raise ToolError(f"Cannot rename the {ROOT} directory itself")
        files = await self._load(memory, quarantined=True)
        if new == ROOT or new in files or _inside(files, new):
            raise ToolError(f"The destination {command.new_path} already exists")
        moved = {old: files[old]} if old in files else _inside(files, old)
        if not moved or any(note.quarantined is not None for note in moved.values()):
            raise ToolError(f"The path {command.old_path} does not exist")
        if new.startswith(f"{old}/"):
            raise ToolError(f"Cannot move {command.old_path} into itself")
        _require_directory(files, new)
        for path, note in moved.items():
            target = new + path.removeprefix(old)
            for part in await parts_of(note, self._scope, memory):
                metadata = {**part.metadata, "path": target}
                await memory.update(part.id, title=_title(target), metadata=metadata, scope=self._scope)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    async def clear(self, memory: AsyncMemory, command: None) -> str:
        for note in (await self._load(memory)).values():
            await self._remove(memory, note)
        return "All memory cleared"

    async def _load(self, memory: AsyncMemory, *, quarantined: bool = False) -> dict[str, Note]:
        """Return the first note of each file by path; decayed and merged notes are files like the others."""
        files: dict[str, Note] = {}
        for archived in (False, True):
            async for note in all_notes(memory, filter={"tool": TOOL}, archived=archived, scope=self._scope):
                path = note.metadata.get("path")
                if isinstance(path, str) and note.part == 0 and (quarantined or note.quarantined is None):
                    files.setdefault(path, note)
        return files

    async def _file(self, memory: AsyncMemory, given: str) -> Note:
        path = resolved(given)
        files = await self._load(memory)
        if path in files:
            return files[path]
        if path == ROOT or _inside(files, path):
            raise ToolError(f"The path {given} is not a file.")
        raise _missing(given)

    async def _read(self, memory: AsyncMemory, note: Note) -> str:
        blank = note.metadata.get("blank")
        return blank if isinstance(blank, str) else (await whole_of(note, self._scope, memory)).content

    async def _write(self, memory: AsyncMemory, note: Note, text: str) -> None:
        """Write a new version of a file. Raises ``PermissionDenied`` for a file of higher trust."""
        require_authority(note)
        path: Any = note.metadata["path"]
        event = _event(path, text, note.external_id)
        (outcome,) = await memory.add_many_report([event], on_conflict="revise", scope=self._scope)
        if outcome.id is None:  # deleted concurrently
            raise _missing(path)
        if outcome.id != note.id:  # a principal of another trust has ids of its own
            await self._archive(memory, note)
        elif outcome.status == "existing":  # the text of the last event, which a person has edited since
            await correct(note.id, {"content": event.content, "metadata": event.metadata}, self._scope, memory)

    async def _remove(self, memory: AsyncMemory, note: Note) -> None:
        if self._allow_delete:
            await delete_existing(memory, self._scope, note.event_ids[0])
        else:
            await self._archive(memory, note)

    async def _archive(self, memory: AsyncMemory, note: Note) -> None:
        """Archive a file. Its notes lose the path, so that no later file of this path is a version of it."""
        for part in reversed(await parts_of(note, self._scope, memory)):
            metadata = {"deleted_path" if key == "path" else key: value for key, value in part.metadata.items()}
            await memory.update(part.id, metadata=metadata, scope=self._scope)
            if not part.archived:
                await memory.archive(part.id, scope=self._scope)


def _complete(command: Any) -> Any:
    """Return a command of which all arguments have their types; the SDK passes on what the model wrote.

    Raises ``InvalidInput``.
    """
    try:
        return None if command is None else type(command).model_validate(command.model_dump(warnings=False))
    except ValidationError as error:
        raise InvalidInput(first_complaint(error)) from None


def resolved(path: str) -> str:
    """Return a path under ``/memories`` without ``.``, ``..`` and double slashes. Raises ``ToolError``."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Path must start with {ROOT}, got: {path}")
    if any(character < " " for character in path):
        raise ToolError(f"Path must not contain control characters, got: {path!r}")
    normal = posixpath.normpath(path)
    if normal != ROOT and not normal.startswith(f"{ROOT}/"):
        raise ToolError(f"Path {path} would escape {ROOT} directory")
    return normal


def _event(path: str, text: str, external_id: str | None) -> Event:
    """Return the event of a file; a blank text, which no event may have, is in the metadata.

    Raises ``InvalidInput``.
    """
    blank = {} if text.strip() else {"blank": text}
    return checked({
        "content": text if text.strip() else path, "external_id": external_id, "title": _title(path),
        "role": "assistant", "metadata": {"tool": TOOL, "path": path, **blank},
    })  # fmt: skip


def _title(path: str) -> str:
    return path.removeprefix(f"{ROOT}/")


def _inside(files: dict[str, Note], directory: str) -> dict[str, Note]:
    return {path: note for path, note in files.items() if path.startswith(f"{directory}/")}


def _require_directory(files: dict[str, Note], path: str) -> None:
    """Raise ``ToolError`` if a directory above this path is a file."""
    parent = posixpath.dirname(path)
    while parent != ROOT:
        if parent in files:
            raise ToolError(f"The path {parent} is not a directory.")
        parent = posixpath.dirname(parent)


def _missing(path: str) -> ToolError:
    return ToolError(f"The path {path} does not exist. Please provide a valid path.")


def _numbered(lines: list[str], start: int) -> str:
    return "\n".join(f"{number:>{NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, start))


def _size(count: int) -> str:
    """Return a size such as 0B, 512B, 1.5K."""
    amount, units = float(count), ["B", "K", "M", "G"]
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{amount:.0f}{units[0]}" if amount.is_integer() else f"{amount:.1f}{units[0]}"
