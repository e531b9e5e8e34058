"""Transcripts and whole memories, into a memory and out of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import anyio.to_thread

from zettel.arguments import Time, require_path, some
from zettel.errors import InvalidInput
from zettel.face.adding import Adding
from zettel.model import EventRecord, Note, Scope

if TYPE_CHECKING:
    from zettel.exports.report import ExportReport
    from zettel.llm.estimate import Estimate
    from zettel.transcripts.by_scope import ScopeBy
    from zettel.transcripts.importing import Progress
    from zettel.transcripts.report import ImportReport, OnRejected


class Transferring(Adding):
    """What brings files in and writes files out."""

    async def import_transcript(
        self,
        path: str | Path,
        format: str = "auto",
        *,
        conversation: str | None = None,
        tz: str | None = None,
        columns: Mapping[str, str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        speakers: Iterable[str] | None = None,
        map_user: Mapping[str, str] | None = None,
        session_gap: float | None = None,
        redact: bool = False,
        redact_region: str | None = None,
        scope_by: ScopeBy | None = None,
        source: str | None = None,
        dry_run: bool = False,
        on_progress: Progress | None = None,
        on_rejected: OnRejected | None = None,
        scope: Scope | None = None,
    ) -> ImportReport:
        """Remember a transcript, or all that are in a folder or zip; running it again adds only what is new.

        ``conversation`` takes the one of that name. ``tz`` (Europe/Oslo) is the zone of times that tell none in formats
        that know none, and of ``since`` (included) and ``until`` (excluded); undated records are left out by these.
        ``columns`` says which column of a table is which field of an event, as {"content": "Text"}. ``speakers`` are
        the only ones wanted, by the names that ``map_user`` gives: {"Bob": "Robert"} has Robert say what Bob said.
        ``session_gap`` is the silence in hours that ends a session of messages that have none (0: they get none; by
        default 6 for chats). ``redact`` takes e-mail addresses, phone numbers, card numbers and keys out before
        anything is stored, and ``redact_region`` (NO) also phone numbers as they are told within that country.
        ``scope_by`` has each speaker (``user``) or place where things are said (``channel``) be the user of a scope.
        ``source`` is what reports and events call the path. A ``dry_run`` stores nothing and reports what would be.
        ``on_progress`` is told the records read and those in all, ``on_rejected`` what cannot be stored, as it comes:
        the report holds the first of it.

        A file of the format ``zettel`` brings whole memories back as they were exported: a single one comes into
        ``scope``, or this memory's own one if it has a name; else each keeps its own. Raises ``UnknownFormat``,
        ``BadRecord``, ``MissingExtra`` to redact without the packages of ``[redact]``, and ``InvalidInput``, also for a
        whole memory that would come into a scope that is not empty.
        """
        from zettel.transcripts import importing, parts, trees, wanted
        from zettel.transcripts.report import ImportReport

        engine, named = await self._use(scope)
        path = require_path("path", path)
        if source is not None and not isinstance(source, str):  # the name of a file, which need not be text throughout
            raise InvalidInput(f"source is one text, and not of type {type(source).__name__}")
        dry_run = bool(dry_run)
        chosen = wanted.wanted(
            conversation, tz, columns, since, until, speakers, map_user, session_gap, redact, redact_region, scope_by
        )
        if scope_by is not None and named.user is not None:
            raise InvalidInput(f"scope_by={scope_by!r} sets the user of each scope, and {named.user!r} is named too")
        if importing.is_whole(path, format):
            if chosen != wanted.Wanted() or dry_run:
                raise InvalidInput(
                    f"{source or path} holds whole memories: no conversation, time or speaker can be taken out of "
                    "them, nothing is redacted or put into other scopes, and there is no dry run"
                )
            into = named if scope is not None or named != Scope() else None
            report = await importing.import_whole(engine.restoring, path, into, source or str(path), on_progress)
            engine.loop.wake()
            return report
        transcript = await anyio.to_thread.run_sync(
            partial(parts.look, path, format, tables=bool(columns), called=source)
        )
        report = ImportReport(file=trees.as_text(source or str(path)), format=transcript.format, dry_run=dry_run)
        told: dict[str, Any] = {"on_progress": on_progress, "on_rejected": on_rejected}
        if not dry_run:
            await importing.import_parts(self, engine, transcript, chosen, report, scope=named, **told)
            return report
        from zettel.llm.estimate import estimate, waiting

        reads = engine.desk is not None and engine.reader is not None
        turns = await waiting(engine.store) if reads else None
        await importing.foresee(engine, transcript, chosen, report, scope=named, unread=turns, **told)
        if turns is not None and engine.desk is not None and engine.reader is not None:
            report.estimate = await estimate(turns, engine.reader, engine.desk.model)
        return report

    async def estimate_import(
        self,
        path: str | Path,
        format: str = "auto",
        *,
        conversation: str | None = None,
        tz: str | None = None,
        columns: Mapping[str, str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        speakers: Iterable[str] | None = None,
        map_user: Mapping[str, str] | None = None,
        session_gap: float | None = None,
        redact: bool = False,
        redact_region: str | None = None,
        scope_by: ScopeBy | None = None,
        source: str | None = None,
        scope: Scope | None = None,
    ) -> Estimate:
        """About what the language model will be asked if this transcript is imported. Asks nothing, stores nothing.

        What is known already is not read again; turns that wait for the model, in any scope, are counted with the new
        ones. Raises ``InvalidInput`` without a model or for a whole memory, and what ``import_transcript`` raises.
        """
        from zettel.transcripts.importing import is_whole

        engine, named = await self._use(scope)
        if engine.desk is None or engine.reader is None:
            raise InvalidInput("without a language model an import costs nothing: open the memory with llm=...")
        path = require_path("path", path)
        if is_whole(path, format):
            raise InvalidInput(f"{path} holds a whole memory: no model is asked to bring it back")
        report = await self.import_transcript(
            path, format, conversation=conversation, tz=tz, columns=columns, since=since, until=until,
            speakers=speakers, map_user=map_user, session_gap=session_gap, redact=redact, redact_region=redact_region,
            scope_by=scope_by, source=source, dry_run=True, scope=named,
        )  # fmt: skip
        assert report.estimate is not None
        return report.estimate

    async def export(
        self,
        to: str | Path | BinaryIO,
        format: str = "auto",
        *,
        include: Iterable[str] = (),
        all_scopes: bool = False,
        on_progress: Progress | None = None,
        scope: Scope | None = None,
    ) -> ExportReport:
        """Write a scope to a file, an open binary one or a folder; how much was written.

        ``jsonl``: every event, a line each, to be imported as a transcript; ``include=["notes"]`` adds the notes to be
        read. ``markdown``: an Obsidian vault in a folder, a file for each note; files that zettel did not write, or
        that were changed since, are never touched. ``graphml``: notes and links for Gephi and the like, and with
        ``include=["terms", "events"]`` these. ``zettel``: all there is, with histories, links, vectors and tombstones,
        to be brought back by ``import_transcript`` in any store as it was, of ``all_scopes`` if asked; it holds the
        scope's secret too. Unless told, a file called .graphml or .zettel is written as that, and all else as
        ``jsonl``. A file is complete or not there. ``on_progress`` is told what is done and what there is.
        Raises ``UnknownFormat``, ``InvalidInput``.
        """
        from zettel.exports import export

        engine, scope = await self._use(scope)
        scopes = (await engine.store.scopes() if all_scopes else []) or [scope]
        wanted = some("include", include)
        return await export(engine.store, scopes, to, format, wanted, on_progress)

    async def dump(self, *, scope: Scope | None = None) -> AsyncIterator[tuple[EventRecord, tuple[Note, ...]]]:
        """Every event of a scope with its notes, in the order of arrival, streaming."""
        engine, scope = await self._use(scope)
        async for entry in engine.store.dump(scope):
            yield entry
