"""Export: memories out of a store, streaming, into a file that is complete or not there."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import anyio.to_thread
from pydantic_core import to_jsonable_python

from zettel import __version__
from zettel.batch import PutEvent
from zettel.errors import InvalidInput, UnknownFormat
from zettel.model import Scope
from zettel.ports import GraphStore
from zettel.transcripts.whole import Lines, record, vectors_record

Pages = AsyncIterator[tuple[bytes, int]]
"""Some lines of an export, and how many events are among them."""

DUMPED = 256
"""Events of a readable export written at once."""


async def whole(store: GraphStore, scopes: Sequence[Scope]) -> Pages:
    """All that the scopes hold, each in one state, so that another store can take it in as it was."""
    lines = Lines()
    yield lines.header(__version__), 0
    spaces = await store.spaces()
    sets = {space.id: number for number, space in enumerate(spaces, start=1)}
    yield b"".join(lines.line(vectors_record(sets[space.id], space)) for space in spaces), 0
    for scope in scopes:
        async for page in store.whole(scope):
            told = b"".join(lines.line(one) for kept in page for one in record(kept, scope, sets))
            yield told, sum(isinstance(kept, PutEvent) for kept in page)
    yield lines.end(), 0


async def readable(store: GraphStore, scopes: Sequence[Scope]) -> Pages:
    """Every event with its notes, an object on each line: to be read, and imported as a transcript."""
    if len(scopes) > 1:
        raise InvalidInput("jsonl names no scopes: export them one by one, or all of them with format='zettel'")
    for scope in scopes:
        told: list[bytes] = []
        async for event, notes in store.dump(scope):
            told.append(_line(to_jsonable_python(event) | {"notes": to_jsonable_python(notes)}))
            if len(told) == DUMPED:
                yield b"".join(told), len(told)
                told = []
        yield b"".join(told), len(told)


FORMATS: Mapping[str, Callable[[GraphStore, Sequence[Scope]], Pages]] = {"jsonl": readable, "zettel": whole}
"""What an export can be written as."""


async def export(store: GraphStore, scopes: Sequence[Scope], to: str | Path | BinaryIO, format: str) -> int:
    """Write scopes to a file or an open binary one; how many events there were.

    A file is written beside its name and then moved. Raises ``UnknownFormat``, and ``InvalidInput`` for a path where
    no file can be made.
    """
    if format not in FORMATS:
        raise UnknownFormat(f"there is no export format {format!r}; there are {', '.join(FORMATS)}")
    pages = FORMATS[format](store, scopes)
    if not isinstance(to, (str, Path)):
        return await _write(pages, to)
    path = Path(to)
    require_writable(path)
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            written = await _write(pages, file)
            file.flush()
            await anyio.to_thread.run_sync(os.fsync, file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return written


def require_writable(path: Path) -> None:
    """Look whether a file can be made at a path, before the work that fills it. Raises ``InvalidInput``."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise InvalidInput(f"{path}: there is no folder {path.parent}; make it first")


async def _write(pages: Pages, file: BinaryIO) -> int:
    written = 0
    async for lines, events in pages:
        await anyio.to_thread.run_sync(file.write, lines)
        written += events
    return written


def _line(value: dict[str, Any]) -> bytes:
    try:
        return (json.dumps(value, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:  # a payload's lone surrogates: JSON can escape them, UTF-8 cannot hold them
        return (json.dumps(value) + "\n").encode()
