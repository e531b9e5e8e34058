"""Files on their way between a client and a server: sent as they are read, kept whole or not at all."""

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
from zettel.server.wire import encode
from zettel.transcripts.trees import files

CHUNK = 1 << 18
"""Bytes sent at once."""


def in_query(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as parameters of a query: several values as several parameters, objects as JSON, none where None is."""
    told: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or callable(value):
            continue
        if isinstance(value, Mapping):
            told[name] = encode(dict(value)).decode()
        elif isinstance(value, datetime):
            told[name] = value.isoformat()
        elif isinstance(value, Iterable) and not isinstance(value, str):
            told[name] = [str(getattr(one, "value", one)) for one in value]
        else:
            told[name] = getattr(value, "value", value)
    return told


@asynccontextmanager
async def sendable(path: Path) -> AsyncIterator[tuple[str, AsyncIterator[bytes]]]:
    """What a file is called, and what is in it, piece by piece; a folder is sent as a zip.

    Raises ``InvalidInput`` for what cannot be read.
    """
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
    """What an import of the folder would read: no links, and nothing hidden."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for file in files(folder):
            archive.write(folder / file.name, file.name)
    return to


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of what comes, without their ends: those of bytes, for JSON may hold other ends of lines."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
    if rest:
        yield rest


async def keep(chunks: AsyncIterator[bytes], to: str | Path | BinaryIO) -> None:
    """Write what comes to a file, which is complete or not there, or to an open one."""
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
