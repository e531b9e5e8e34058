"""Export of memories to files, folders and streams.

Most formats write one stream of bytes into a file, atomically; ``markdown`` writes a folder. All formats read the
memory page by page.
"""

from __future__ import annotations

import io
import os
import shutil
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import anyio.to_thread

from zettel.core.open_files import is_open
from zettel.core.private_files import private, require_no_link
from zettel.errors import InvalidInput, UnknownFormat
from zettel.model import Scope
from zettel.ports import GraphStore

from . import events_jsonl, graphml, memory_file, vault
from .report import ExportReport
from .task import ExportTask, Progress
from .temporary_names import temporary_name
from .tracked_files import require_parent


class ExportFormat(NamedTuple):
    """An export format: ``pages`` writes one file, ``folder`` writes a folder."""

    pages: Callable[[ExportTask], AsyncGenerator[bytes, None]] | None = None
    folder: Callable[[ExportTask, Path], Awaitable[None]] | None = None
    parts: tuple[str, ...] = ()
    """Optional parts for ``include``."""
    scopes: bool = False
    """Whether one export can contain several scopes."""


FORMATS: Mapping[str, ExportFormat] = {
    "jsonl": ExportFormat(events_jsonl.pages, parts=(events_jsonl.NOTES,)),
    "markdown": ExportFormat(folder=vault.write),
    "graphml": ExportFormat(graphml.pages, parts=(graphml.TERMS, graphml.EVENTS)),
    "zettel": ExportFormat(memory_file.pages, scopes=True),
}
"""Export formats by name."""
AUTO = "auto"
"""Selects the format by the suffix of the file, else ``jsonl``."""
_BY_ENDING = {".graphml": "graphml", ".zettel": "zettel"}

_DATABASE = b"SQLite format 3\0"


async def export(
    store: GraphStore,
    scopes: Sequence[Scope],
    to: str | Path | BinaryIO,
    format: str,
    include: Collection[str] = (),
    on_progress: Progress | None = None,
) -> ExportReport:
    """Write scopes to a file, a folder or an open binary file; see ``AsyncMemory.export``.

    Files are replaced atomically. Raises ``UnknownFormat``, and ``InvalidInput`` for a path that cannot be written.
    """
    format = format_for(to, format)
    writer = require_format(format, include)
    if len(scopes) > 1 and not writer.scopes:
        raise InvalidInput(f"{format} cannot contain several scopes: export them one by one, or use format='zettel'")
    path = Path(to) if isinstance(to, (str, Path)) else None
    report = ExportReport(to="-" if path is None else str(path), format=format)
    task = ExportTask(store, scopes, report, frozenset(include), on_progress)
    began = time.perf_counter()
    if isinstance(to, io.TextIOBase):
        raise InvalidInput("to must be a binary file: open it with 'wb', or pass sys.stdout.buffer")
    if writer.pages is not None and not isinstance(to, (str, Path)):
        await _write(writer.pages(task), to)
    elif path is None:
        raise InvalidInput(f"{format} writes a folder: pass the path of one")
    else:
        try:
            if writer.folder is not None:
                await writer.folder(task, path)
            elif writer.pages is not None:
                async with replacing(path) as file:
                    await _write(writer.pages(task), file)
        except OSError as error:
            raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from error
    report.seconds = round(time.perf_counter() - began, 3)
    return report


def format_for(to: str | Path | BinaryIO, format: str) -> str:
    """Return the name of the format for ``to``."""
    if not isinstance(to, (str, Path)) and not hasattr(to, "write"):
        raise InvalidInput(f"to must be a path or an open binary file, not {type(to).__name__}")
    if format != AUTO:
        return format
    return _BY_ENDING.get(Path(to).suffix.lower(), "jsonl") if isinstance(to, (str, Path)) else "jsonl"


def require_format(format: str, include: Collection[str] = ()) -> ExportFormat:
    """Return the format of that name. Raises ``UnknownFormat``, and ``InvalidInput`` if it cannot include a part."""
    if not isinstance(format, str) or format not in FORMATS:
        raise UnknownFormat(f"unknown export format {format!r}: use one of {', '.join(FORMATS)}")
    writer = FORMATS[format]
    for part in include:
        if part not in writer.parts:
            known = " and ".join(writer.parts) or "nothing more"
            raise InvalidInput(f"{format} cannot include {part!r}: it takes {known}")
    return writer


def require_writable(path: Path) -> None:
    """Raise ``InvalidInput`` if no file can be created at a path."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; name a file in it")
    require_parent(path)


@asynccontextmanager
async def replacing(path: Path) -> AsyncIterator[BinaryIO]:
    """Open a file that atomically replaces the one at a path on success, with its mode.

    A new file is readable by its owner only. Raises ``InvalidInput`` for a path that must not be replaced, and
    ``OSError``.
    """
    require_replaceable(path)
    part = temporary_name(path)
    try:
        with await anyio.to_thread.run_sync(_created, part, path) as file:
            yield file
            file.flush()
            await anyio.to_thread.run_sync(os.fsync, file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _created(part: Path, path: Path) -> BinaryIO:
    """Create the file that will replace the one at ``path``."""
    file = open(part, "xb", opener=private)  # noqa: SIM115
    if path.exists():
        shutil.copymode(path, part)
    return file


def require_replaceable(path: Path) -> None:
    """Raise ``InvalidInput`` if the path cannot be replaced: a folder, link, device, pipe or database."""
    require_no_link(path)
    require_writable(path)
    if path.exists() and not path.is_file():  # it would be replaced by a file
        raise InvalidInput(f"{path} is a device or a pipe: write to stdout (-), or pass an open file")
    if path.is_file() and (is_open(path) or _is_database(path)):
        raise InvalidInput(f"{path} is a database, possibly a store: name another file")


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_DATABASE)) == _DATABASE


async def _write(pages: AsyncGenerator[bytes, None], file: BinaryIO) -> None:
    async with aclosing(pages):  # an interrupted export releases the store
        async for page in pages:
            await anyio.to_thread.run_sync(file.write, page)
