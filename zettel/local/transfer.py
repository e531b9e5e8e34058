"""Operations that import and export transcripts and whole memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import anyio.to_thread

from zettel.core.arguments import names_of, require_path
from zettel.core.authority import FULL_TRUST
from zettel.core.principals import acting, acting_as
from zettel.errors import InvalidInput, PermissionDenied
from zettel.local.local_memory import LocalMemory
from zettel.model import MAX_NAME, EventRecord, Note, Scope

if TYPE_CHECKING:
    from zettel.exports.report import ExportReport
    from zettel.model import Estimate
    from zettel.transcripts.importing import Progress
    from zettel.transcripts.options import ImportOptions
    from zettel.transcripts.report import ImportReport, OnRejected


async def import_transcript(
    memory: LocalMemory,
    path: str | Path,
    format: str = "auto",
    *,
    source: str | None = None,
    trust: float = 1.0,
    dry_run: bool = False,
    on_progress: Progress | None = None,
    on_rejected: OnRejected | None = None,
    scope: Scope | None = None,
    **selection: Any,
) -> ImportReport:
    """``selection`` are the arguments of ``import_options``."""
    path = require_path("path", path)
    if source is not None and not isinstance(source, str):  # the name of a file, which need not be text throughout
        raise InvalidInput(f"source must be a str, not {type(source).__name__}")
    from zettel.transcripts.options import import_options
    from zettel.transcripts.redaction import Redactor

    options = import_options(**selection)
    name = source or str(path)
    if options.redact:
        name = Redactor(options.region, Counter()).file(name)
    engine, _ = memory.use(scope)
    with acting_as(_principal(engine.guard.cleaned(name)), trust):
        return await _import(memory, path, format, source, dry_run, on_progress, on_rejected, scope, options)


async def _import(
    memory: LocalMemory,
    path: Path,
    format: str,
    source: str | None,
    dry_run: bool,
    on_progress: Progress | None,
    on_rejected: OnRejected | None,
    scope: Scope | None,
    options: ImportOptions,
) -> ImportReport:
    from zettel.transcripts import archive_tree, importing, sources
    from zettel.transcripts.options import ImportOptions
    from zettel.transcripts.report import ImportReport
    from zettel.transcripts.scopes import part_of

    engine, named = memory.use(scope)
    dry_run = bool(dry_run)
    part = part_of(options.scope_by)
    if options.scope_by is not None and getattr(named, part) is not None:
        raise InvalidInput(
            f"scope_by={options.scope_by!r} sets the {part} of each scope: leave the {part} {getattr(named, part)!r} "
            "out of scope="
        )
    if importing.is_memory_file(path, format):
        if options != ImportOptions() or dry_run:
            raise InvalidInput(
                f"{source or path} contains whole memories: import it without filters, redact=, scope_by= and dry_run="
            )
        if acting().trust < FULL_TRUST:
            raise PermissionDenied("a whole memory contains the trust in its notes: restore it with full trust")
        into = named if scope is not None or named != Scope() else None
        report = await importing.import_memory_file(engine.restoring, path, into, source or str(path), on_progress)
        engine.loop.wake()
        return report
    transcript = await anyio.to_thread.run_sync(
        partial(sources.find_parts, path, format, tables=bool(options.columns), called=source)
    )
    report = ImportReport(file=archive_tree.as_text(source or str(path)), format=transcript.format, dry_run=dry_run)
    work = importing.TranscriptImport(engine, transcript, options, report, named, on_progress, on_rejected)
    if not dry_run:
        await work.run()
        return report
    from zettel.jobs.estimate import estimate, waiting

    reads = engine.llm_client is not None and engine.reader is not None
    turns = await waiting(engine.store) if reads else None
    await work.preview(turns)
    if turns is not None and engine.llm_client is not None and engine.reader is not None:
        report.estimate = await estimate(turns, engine.reader, engine.llm_client.model)
    return report


def _principal(source: str) -> str:
    """Return the principal of an import; file names need not be text throughout."""
    from zettel.transcripts.archive_tree import as_text

    return "import:" + as_text(source)[: MAX_NAME - len("import:")]


async def estimate_import(
    memory: LocalMemory, path: str | Path, format: str = "auto", *, scope: Scope | None = None, **selection: Any
) -> Estimate:
    """``selection`` are the other arguments of ``import_transcript``."""
    from zettel.transcripts.importing import is_memory_file

    engine, named = memory.use(scope)
    if engine.llm_client is None or engine.reader is None:
        raise InvalidInput("an import without a language model costs nothing: open the memory with llm=")
    path = require_path("path", path)
    if is_memory_file(path, format):
        raise InvalidInput(f"{path} contains a whole memory: restoring it calls no model")
    report = await import_transcript(memory, path, format, dry_run=True, scope=named, **selection)
    assert report.estimate is not None
    return report.estimate


async def export(
    memory: LocalMemory,
    to: str | Path | BinaryIO,
    format: str = "auto",
    *,
    include: Iterable[str] = (),
    all_scopes: bool = False,
    on_progress: Progress | None = None,
    scope: Scope | None = None,
) -> ExportReport:
    from zettel.exports import export

    engine, scope = memory.use(scope)
    scopes = (await engine.store.scopes() if all_scopes else []) or [scope]
    included = names_of("include", include)
    return await export(engine.store, scopes, to, format, included, on_progress)


async def dump(
    memory: LocalMemory, *, scope: Scope | None = None
) -> AsyncIterator[tuple[EventRecord, tuple[Note, ...]]]:
    engine, scope = memory.use(scope)
    async for entry in engine.store.dump(scope):
        yield entry
