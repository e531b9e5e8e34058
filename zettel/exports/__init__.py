"""Exports: memories out of a store, in a form that people, programs or other stores read.

A format is one small file. Most write one stream of bytes, which goes into a file that is complete or not there;
``markdown`` writes a folder. All of them hold a page of the memory at a time, beside names and ids.
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

from zettel.errors import InvalidInput, UnknownFormat
from zettel.held_files import is_held
from zettel.model import Scope
from zettel.ports import GraphStore

from . import events_jsonl, graphml, vault, whole
from .report import ExportReport
from .unfinished import unfinished
from .work import Progress, Work


class Format(NamedTuple):
    """How a format is written: as ``pages`` of one file, or into a ``folder``."""

    pages: Callable[[Work], AsyncGenerator[bytes, None]] | None = None
    folder: Callable[[Work, Path], Awaitable[None]] | None = None
    parts: tuple[str, ...] = ()
    """What may be included that is not there by itself."""
    scopes: bool = False
    """Whether it can hold several."""


FORMATS: Mapping[str, Format] = {
    "jsonl": Format(events_jsonl.pages, parts=(events_jsonl.NOTES,)),
    "markdown": Format(folder=vault.write),
    "graphml": Format(graphml.pages, parts=(graphml.TERMS, graphml.EVENTS)),
    "zettel": Format(whole.pages, scopes=True),
}
"""What an export can be written as."""
AUTO = "auto"
"""Stands for the format that the ending of a file names, and for ``jsonl`` where it names none."""
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
    """Write scopes to a file, a folder or an open binary file, as ``AsyncMemory.export`` says.

    A file is written beside its name and then moved. Raises ``UnknownFormat``, and ``InvalidInput`` for a path that
    cannot be written.
    """
    format = format_for(to, format)
    writer = require_format(format, include)
    if len(scopes) > 1 and not writer.scopes:
        raise InvalidInput(f"{format} names no scopes: export them one by one, or all of them with format='zettel'")
    path = Path(to) if isinstance(to, (str, Path)) else None
    report = ExportReport(to="-" if path is None else str(path), format=format)
    work = Work(store, scopes, report, frozenset(include), on_progress)
    began = time.perf_counter()
    if isinstance(to, io.TextIOBase):
        raise InvalidInput("an export is written as bytes: open the file with 'wb', or hand in sys.stdout.buffer")
    if writer.pages is not None and not isinstance(to, (str, Path)):
        await _write(writer.pages(work), to)
    elif path is None:
        raise InvalidInput(f"{format} writes a folder of files: name one")
    else:
        try:
            await _write_to(writer, work, path)
        except OSError as error:
            raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from error
    report.seconds = round(time.perf_counter() - began, 3)
    return report


def format_for(to: str | Path | BinaryIO, format: str) -> str:
    """The name of the format that is meant."""
    if not isinstance(to, (str, Path)) and not hasattr(to, "write"):
        raise InvalidInput(f"to={to!r} is nothing to write to: name a file or a folder, or hand in an open binary file")
    if format != AUTO:
        return format
    return _BY_ENDING.get(Path(to).suffix.lower(), "jsonl") if isinstance(to, (str, Path)) else "jsonl"


def require_format(format: str, include: Collection[str] = ()) -> Format:
    """The format of that name, which can include these. Raises ``UnknownFormat``, ``InvalidInput``."""
    if not isinstance(format, str) or format not in FORMATS:
        raise UnknownFormat(f"there is no export format {format!r}; there are {', '.join(FORMATS)}")
    writer = FORMATS[format]
    for part in include:
        if part not in writer.parts:
            known = " and ".join(writer.parts) or "nothing more"
            raise InvalidInput(f"{format} cannot include {part!r}: it takes {known}")
    return writer


def require_writable(path: Path) -> None:
    """Look whether a file can be made at a path, before the work that fills it. Raises ``InvalidInput``."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise InvalidInput(f"{path}: there is no folder {path.parent}; make it first")


async def _write_to(writer: Format, work: Work, path: Path) -> None:
    if writer.folder is not None:
        await writer.folder(work, path)
        return
    assert writer.pages is not None
    async with replacing(path) as file:
        await _write(writer.pages(work), file)


@asynccontextmanager
async def replacing(path: Path) -> AsyncIterator[BinaryIO]:
    """A file that takes the place of the one at a path, with its mode, once all is written; else nothing changes.

    Raises ``InvalidInput`` for a path that no file is to be written at, and ``OSError``.
    """
    require_replaceable(path)
    path = Path(await anyio.to_thread.run_sync(os.path.realpath, path))  # a link goes on leading there
    part = unfinished(path)
    try:
        with part.open("xb") as file:
            if path.exists():
                shutil.copymode(path, part)
            yield file
            file.flush()
            await anyio.to_thread.run_sync(os.fsync, file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def require_replaceable(path: Path) -> None:
    """Look whether a file may be written at a path, over what is there. Raises ``InvalidInput``, also for a store."""
    require_writable(path)
    if path.exists() and not path.is_file():  # a file would be put in its place
        raise InvalidInput(f"{path} is a device or a pipe: write to stdout (-), or hand in an open file")
    if path.is_file() and (is_held(path) or _is_database(path)):
        raise InvalidInput(f"{path} is a database, and maybe a store: name another file")


def _is_database(path: Path) -> bool:
    with path.open("rb") as there:
        return there.read(len(_DATABASE)) == _DATABASE


async def _write(pages: AsyncGenerator[bytes, None], file: BinaryIO) -> None:
    async with aclosing(pages):  # what is broken off must not go on holding the store
        async for page in pages:
            await anyio.to_thread.run_sync(file.write, page)
