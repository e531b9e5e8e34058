"""Upload and download of files between a client and a server."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import anyio
import anyio.to_thread

from zettel.errors import InvalidInput
from zettel.exports import replacing
from zettel.remote.wire import encode
from zettel.transcripts.archive_tree import files

CHUNK = 1 << 18
"""Bytes of one chunk."""


def in_query(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as query parameters: lists as repeated parameters, objects as JSON, without None."""
    query: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or callable(value):
            continue
        if isinstance(value, Mapping):
            query[name] = encode(dict(value)).decode()
        elif isinstance(value, datetime):
            query[name] = value.isoformat()
        elif isinstance(value, Iterable) and not isinstance(value, str):
            query[name] = [str(getattr(item, "value", item)) for item in value]
        else:
            query[name] = getattr(value, "value", value)
    return query


@asynccontextmanager
async def upload_of(path: Path) -> AsyncIterator[tuple[str, AsyncIterator[bytes]]]:
    """Return the name and the chunks of a file; a folder becomes a zip. Raises ``InvalidInput`` if it is unreadable."""
    name = str(path)
    with tempfile.TemporaryDirectory(prefix="zettel-send-") as folder:
        try:
            if await anyio.Path(path).is_dir():
                path, name = await anyio.to_thread.run_sync(_zipped, path, Path(folder) / "folder.zip"), f"{name}.zip"
            async with await anyio.open_file(path, "rb") as file:

                async def chunks() -> AsyncIterator[bytes]:
                    while chunk := await file.read(CHUNK):
                        yield chunk

                yield name, chunks()
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error


def _zipped(folder: Path, to: Path) -> Path:
    """Zip the files that an import of the folder would read: no links and no hidden files."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for file in files(folder):
            archive.write(folder / file.name, file.name)
    return to


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Split chunks into lines at ``\\n`` only: JSON may contain other line separators."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
    if rest:
        yield rest


async def save(chunks: AsyncIterator[bytes], to: str | Path | BinaryIO) -> None:
    """Write chunks to an open file, or to a path, where the file is complete or absent."""
    if not isinstance(to, (str, Path)):
        async for chunk in chunks:
            await anyio.to_thread.run_sync(to.write, chunk)
        return
    try:
        async with replacing(Path(to)) as file:
            async for chunk in chunks:
                await anyio.to_thread.run_sync(file.write, chunk)
    except OSError as error:
        raise InvalidInput(f"{to} cannot be written: {error.strerror or error}") from error
