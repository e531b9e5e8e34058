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
from zettel.server.access import Access, ReadAccess, WriteAccess, json_texts, respond
from zettel.server.bodies import Time
from zettel.transcripts import MEMORY_FILE_FORMAT
from zettel.transcripts.archive_tree import unpacked_bytes
from zettel.transcripts.importing import is_memory_file
from zettel.transcripts.scopes import ScopeBy

routes = APIRouter(prefix="/v1", tags=["files"])

STREAMED = frozenset({"/v1/import", "/v1/import/estimate"})
"""Routes that stream their body to a file, with the upload limit."""
CHUNK = 65_536
"""Bytes of one chunk."""
LONGEST_NAME = 200
"""Longest file name in bytes: file systems allow 255."""

_BINARY = {"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {
    "type": "string", "format": "binary", "description": "The transcript, or a zip of several."}}}}}  # fmt: skip


async def options(
    format: str = "auto",
    name: Annotated[str, Query(description="What the file is called, which formats look access.")] = "transcript",
    source: Annotated[str | None, Query(description="What reports and events call it, if not so.")] = None,
    conversation: str | None = None,
    tz: str | None = None,
    columns: Annotated[str | None, Query(description="As a JSON object.")] = None,
    since: Time | None = None,
    until: Time | None = None,
    speakers: Annotated[list[str] | None, Query()] = None,
    map_user: Annotated[str | None, Query(description="As a JSON object.")] = None,
    session_gap: float | None = None,
    redact: bool = False,
    redact_region: str | None = None,
    scope_by: ScopeBy | None = None,
) -> dict[str, Any]:
    """Return the arguments of an import."""
    return {
        "format": format, "name": name, "source": name if source is None else source,
        "conversation": conversation, "tz": tz,
        "columns": None if columns is None else json_texts("columns", columns),
        "since": since, "until": until, "speakers": speakers,
        "map_user": None if map_user is None else json_texts("map_user", map_user),
        "session_gap": session_gap, "redact": redact, "redact_region": redact_region, "scope_by": scope_by,
    }  # fmt: skip


Options = Annotated[dict[str, Any], Depends(options)]


@routes.post("/import", response_model=wire.IMPORTED.shape, openapi_extra=_BINARY)
async def import_transcript(access: WriteAccess, options: Options, request: Request, dry_run: bool = False) -> Response:
    """Import the transcript in the body. A second import adds only new events."""
    if options["scope_by"] is not None:
        access.require_all("scope_by=")
    if options["format"] == MEMORY_FILE_FORMAT:
        _require_admin(access)
    async with _received(request, options.pop("name"), options["source"]) as path:
        if is_memory_file(path, options["format"]):
            _require_admin(access)
        report = await access.memory.import_transcript(path, **options, dry_run=dry_run, scope=access.scope)
    if not access.opens_all:
        report.estimate = None  # it includes turns of other scopes
    return respond(wire.IMPORTED, report)


@routes.post("/import/estimate", response_model=wire.ESTIMATE.shape, openapi_extra=_BINARY)
async def estimate_import(access: WriteAccess, options: Options, request: Request) -> Response:
    """Estimate the language model calls of an import; stores nothing."""
    access.require_all("an estimate, which includes all scopes,")
    async with _received(request, options.pop("name"), options["source"]) as path:
        return respond(wire.ESTIMATE, await access.memory.estimate_import(path, **options, scope=access.scope))


@routes.get("/export", response_class=StreamingResponse)
async def export(
    access: ReadAccess,
    format: str = "jsonl",
    include: Annotated[list[str] | None, Query()] = None,
    all_scopes: bool = False,
) -> Response:
    """Return the scope as one file of the format jsonl, graphml or zettel; a header contains the report.

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


@routes.get("/dump", response_class=StreamingResponse)
async def dump(access: ReadAccess) -> Response:
    """Stream every event of the scope with its notes, in the order of arrival, as JSON lines."""

    async def lines() -> AsyncIterator[bytes]:
        async for event, notes in access.memory.dump(scope=access.scope):
            yield wire.ENTRY.encode(wire.Entry.model_construct(event=event, notes=notes)) + b"\n"

    return StreamingResponse(lines(), media_type="application/jsonl")


def _require_admin(access: Access) -> None:
    """Raise ``PermissionDenied`` unless the key may read and restore whole memories."""
    if access.key is not None and not access.key.may("admin"):
        raise PermissionDenied("a whole memory contains its scope's secret: use a key with the right admin")


@asynccontextmanager
async def _received(request: Request, name: str, source: str) -> AsyncIterator[Path]:
    """Write the body to a temporary file called ``name``. Errors call it ``source``."""
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
