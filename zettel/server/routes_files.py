"""Routes for imports, exports and dumps."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Annotated, Any, BinaryIO

import anyio.to_thread
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from zettel.errors import InvalidInput, PermissionDenied, TooLarge, ZettelError
from zettel.remote import wire
from zettel.server.access import Access, RequestAccess, respond, scope_of
from zettel.server.endpoints import endpoint, query_of
from zettel.transcripts import MEMORY_FILE_FORMAT
from zettel.transcripts.archive_tree import unpacked_bytes
from zettel.transcripts.importing import is_memory_file

routes = APIRouter()

STREAMED = frozenset({"/v1/import", "/v1/import/estimate"})
"""Routes that stream their body to a file, with the upload limit."""
CHUNK = 65_536
"""Bytes of one chunk."""
LONGEST_NAME = 200
"""Longest file name in bytes: file systems allow 255."""

_BINARY = {"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {
    "type": "string", "format": "binary", "description": "The transcript, or a zip of several."}}}}}  # fmt: skip

Options = Annotated[dict[str, Any], Depends(query_of("estimate_import", without="path"))]
"""The arguments of an import, which are in the query because the body is the file."""
Name = Annotated[str, Query(description="What the file is called, which formats look at.")]


@endpoint(routes, "import_transcript", openapi_extra=_BINARY)
async def import_transcript(
    access: RequestAccess, options: Options, request: Request, name: Name = "transcript", dry_run: bool = False
) -> Response:
    """The body is the file."""
    if options["scope_by"] is not None:
        access.require_all("scope_by=")
    if options["edits"]:
        access.require_admin("an import with edits=, which may let stored events expire,")
    if options["format"] == MEMORY_FILE_FORMAT:
        _require_admin(access)
    async with _received(request, name, options) as path:
        if is_memory_file(path, options["format"]):
            _require_admin(access)
        report = await access.memory.import_transcript(path, **options, dry_run=dry_run, scope=access.scope)
    if not access.opens_all:
        report.estimate = None  # it includes turns of other scopes
    return respond(wire.IMPORTED, report)


@endpoint(routes, "estimate_import", openapi_extra=_BINARY)
async def estimate_import(
    access: RequestAccess, options: Options, request: Request, name: Name = "transcript"
) -> Response:
    """The body is the file."""
    access.require_all("an estimate, which includes all scopes,")
    async with _received(request, name, options) as path:
        return respond(wire.ESTIMATE, await access.memory.estimate_import(path, **options, scope=access.scope))


@endpoint(routes, "export", response_model=None, response_class=StreamingResponse)
async def export(
    access: RequestAccess,
    format: str = "jsonl",
    include: Annotated[list[str] | None, Query()] = None,
    all_scopes: bool = False,
) -> Response:
    """The answer is a file of the format jsonl, graphml or zettel; the header ``Zettel-Report`` contains the report.

    The server writes a temporary file first, so that errors are reported and slow clients block nothing.
    """
    if all_scopes:
        access.require_all("exporting all scopes")
    if format == MEMORY_FILE_FORMAT:
        _require_admin(access)
    if format == "markdown":
        raise InvalidInput("markdown is a folder of files: export it on the server with `zettel export`")
    file = TemporaryFile()  # noqa: SIM115 - closed when it was sent
    try:
        report = await access.memory.export(
            file, format, include=include or (), all_scopes=all_scopes, scope=access.scope
        )
        size = file.tell()
        file.seek(0)
    except BaseException:
        file.close()
        raise
    headers = {wire.EXPORT_HEADER: wire.EXPORTED.encode(report).decode("ascii"), "Content-Length": str(size)}
    return StreamingResponse(_sent(file), media_type="application/octet-stream", headers=headers)


@endpoint(routes, "dump", response_model=None, response_class=StreamingResponse)
async def dump(access: RequestAccess) -> Response:
    """The answer has one JSON object per line."""

    async def lines() -> AsyncIterator[bytes]:
        async for event, notes in access.memory.dump(scope=access.scope):
            yield wire.ENTRY.encode(wire.Entry.model_construct(event=event, notes=notes)) + b"\n"

    return StreamingResponse(lines(), media_type="application/jsonl")


def _require_admin(access: Access) -> None:
    """Raise ``PermissionDenied`` unless the key may read and restore whole memories of the scope."""
    if access.key is not None and not access.key.may("admin"):
        raise PermissionDenied("a whole memory contains its scope's secret: use a key with the right admin")
    scope_of(access.key, access.scope)


@asynccontextmanager
async def _received(request: Request, name: str, options: dict[str, Any]) -> AsyncIterator[Path]:
    """Write the body to a temporary file called ``name``. Reports and errors call it by the option ``source``."""
    source = options["source"] = name if options["source"] is None else options["source"]
    with TemporaryDirectory(prefix="zettel-import-") as folder:
        path = Path(folder) / file_name(name)
        async with await anyio.open_file(path, "wb") as file:
            async for chunk in request.stream():
                await file.write(chunk)
        try:
            most: int = request.app.state.unpacked
            if await anyio.to_thread.run_sync(unpacked_bytes, path) > most:
                raise TooLarge(f"{source} unpacks to more than the limit of {most:,} bytes: send less")
            yield path
        except ZettelError as error:  # errors must not contain the server's path
            error.args = (str(error).replace(str(path), source).replace(folder, source),)
            raise


def file_name(name: str) -> str:
    """Return the last part of a path as a valid file name."""
    last = re.split(r"[/\\]", name)[-1]
    safe = re.sub(r"[\x00-\x1f]", "_", last).encode("utf-8", "replace")[-LONGEST_NAME:].decode("utf-8", "ignore")
    return safe.lstrip(".") or "transcript"


def _sent(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while chunk := file.read(CHUNK):
            yield chunk
