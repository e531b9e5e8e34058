"""Routes for what goes in and out as files: imports, exports and dumps."""

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

from zettel.errors import InvalidInput, NotAllowed, TooLarge, ZettelError
from zettel.server import wire
from zettel.server.asking import At, Reading, Writing, json_texts, told
from zettel.server.bodies import Time
from zettel.transcripts import WHOLE
from zettel.transcripts.by_scope import ScopeBy
from zettel.transcripts.importing import is_whole
from zettel.transcripts.trees import unpacked_bytes

routes = APIRouter(prefix="/v1", tags=["files"])

STREAMED = frozenset({"/v1/import", "/v1/import/estimate"})
"""Whose bodies go to a file as they come; the limit for these is another one."""
CHUNK = 65_536
"""Bytes of a file sent at once."""
LONGEST_NAME = 200
"""Bytes of a file's name that are kept: file systems take 255."""

_BINARY = {"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {
    "type": "string", "format": "binary", "description": "The transcript, or a zip of several."}}}}}  # fmt: skip


async def options(
    format: str = "auto",
    name: Annotated[str, Query(description="What the file is called, which formats look at.")] = "transcript",
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
    """The arguments of an import."""
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
async def import_transcript(at: Writing, options: Options, request: Request, dry_run: bool = False) -> Response:
    """Remember a transcript, which is the body as it is; running it again adds only what is new."""
    if options["scope_by"] is not None:
        at.require_all("to give speakers or channels scopes of their own")
    if options["format"] == WHOLE:
        _require_admin(at)
    async with _received(request, options.pop("name"), options["source"]) as path:
        if is_whole(path, options["format"]):
            _require_admin(at)
        report = await at.memory.import_transcript(path, **options, dry_run=dry_run, scope=at.scope)
    if not at.opens_all:
        report.estimate = None  # it counts what waits in other scopes too
    return told(wire.IMPORTED, report)


@routes.post("/import/estimate", response_model=wire.ESTIMATE.shape, openapi_extra=_BINARY)
async def estimate_import(at: Writing, options: Options, request: Request) -> Response:
    """About what the language model will be asked if this transcript is imported; stores nothing."""
    at.require_all("an estimate counts what waits in all scopes, and")
    async with _received(request, options.pop("name"), options["source"]) as path:
        return told(wire.ESTIMATE, await at.memory.estimate_import(path, **options, scope=at.scope))


@routes.get("/export", response_class=StreamingResponse)
async def export(
    at: Reading,
    format: str = "jsonl",
    include: Annotated[list[str] | None, Query()] = None,
    all_scopes: bool = False,
) -> Response:
    """The scope as one file, of the format jsonl, graphml or zettel; the report is in a header.

    It is written to a file of the server first, so that an error is told, and a slow client holds nothing up.
    """
    if all_scopes:
        at.require_all("to export all scopes")
    if format == WHOLE:
        _require_admin(at)
    if format == "markdown":
        raise InvalidInput("markdown is a folder of files: export it beside the store, with `zettel export`")
    file = TemporaryFile()  # noqa: SIM115 - closed when it was sent
    try:
        report = await at.memory.export(file, format, include=include or (), all_scopes=all_scopes, scope=at.scope)
        size = file.tell()
        file.seek(0)
    except BaseException:
        file.close()
        raise
    headers = {wire.EXPORT_HEADER: wire.EXPORTED.encode(report).decode("ascii"), "Content-Length": str(size)}
    return StreamingResponse(_sent(file), media_type="application/octet-stream", headers=headers)


@routes.get("/dump", response_class=StreamingResponse)
async def dump(at: Reading) -> Response:
    """Every event of the scope with its notes, in the order of arrival: a JSON object on each line."""

    async def lines() -> AsyncIterator[bytes]:
        async for event, notes in at.memory.dump(scope=at.scope):
            yield wire.ENTRY.encode(wire.Entry.model_construct(event=event, notes=notes)) + b"\n"

    return StreamingResponse(lines(), media_type="application/jsonl")


def _require_admin(at: At) -> None:
    """Raise ``NotAllowed`` unless the key may read and set what stands in a whole memory."""
    if at.key is not None and not at.key.may("admin"):
        raise NotAllowed("a whole memory holds its scope's secret: this needs a key with the right to admin")


@asynccontextmanager
async def _received(request: Request, name: str, source: str) -> AsyncIterator[Path]:
    """The body as a file called ``name``, for formats look at that; gone afterwards. Errors call it ``source``."""
    with TemporaryDirectory(prefix="zettel-import-") as folder:
        path = Path(folder) / file_name(name)
        async with await anyio.open_file(path, "wb") as file:
            async for chunk in request.stream():
                await file.write(chunk)
        try:
            most: int = request.app.state.unpacked
            if await anyio.to_thread.run_sync(unpacked_bytes, path) > most:
                told = f"{source} would unpack to more than the {most:,} bytes that this server takes"
                raise TooLarge(f"{told}: send less")
            yield path
        except ZettelError as error:  # where the file lies here is nobody's business
            error.args = (str(error).replace(str(path), source).replace(folder, source),)
            raise


def file_name(name: str) -> str:
    """The last part of a path as a name that a file can have."""
    last = re.split(r"[/\\]", name)[-1]
    safe = re.sub(r"[\x00-\x1f]", "_", last).encode("utf-8", "replace")[-LONGEST_NAME:].decode("utf-8", "ignore")
    return safe.lstrip(".") or "transcript"


def _sent(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while chunk := file.read(CHUNK):
            yield chunk
