"""The commands import and export."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from zipfile import is_zipfile

import typer

from zettel.core.private_files import private
from zettel.errors import BadRecord, InvalidInput, JobFailed, UnknownFormat

from . import model_costs
from .common import Common, common, console, notify, print_json, require_writable
from .import_report import place, show_report

if TYPE_CHECKING:
    from zettel import Memory
    from zettel.exports.report import ExportReport
    from zettel.transcripts import Rejected
    from zettel.transcripts.importing import Progress
    from zettel.transcripts.report import ImportReport

STDIO = "-"
"""Path of stdin or stdout."""

GRAPHITI = "graphiti"

LARGE = 2_000_000
"""Size of a transcript, about 10,000 short messages, from which a second process pays off."""

SHOWN_USERS = 5
"""Users of mem0 that a warning lists."""

SHOWN_LEFT = 5
"""Files listed that an export left alone because others changed them."""


def import_(
    ctx: typer.Context,
    path: str = typer.Argument(
        metavar="PATH",
        help="A transcript, a folder or zip of transcripts, or a memory file (- for stdin); for Graphiti, its server.",
    ),
    format: str = typer.Option(
        "auto", "--format", help="whatsapp, slack, csv, jsonl, plain, ..., or zettel: a memory file."
    ),
    conversation: str | None = typer.Option(None, "--conversation", help="Import only this conversation of the file."),
    since: str | None = typer.Option(None, "--since", metavar="TIME", help="Import only events at this time or later."),
    until: str | None = typer.Option(None, "--until", metavar="TIME", help="Import only events before this time."),
    speaker: list[str] = typer.Option([], "--speaker", metavar="NAME", help="Import only this speaker. Repeatable."),
    map_user: list[str] = typer.Option(
        [], "--map-user", metavar="NAME=OTHER", help="Replace one speaker name by another. Repeatable."
    ),
    tz: str | None = typer.Option(
        None, "--tz", metavar="ZONE", help="Time zone of times without one, such as Europe/Oslo."
    ),
    column: list[str] = typer.Option(
        [], "--column", metavar="FIELD=NAME", help="Map a field to a column of a table. Repeatable."
    ),
    session_gap: float | None = typer.Option(
        None, "--session-gap", metavar="HOURS", help="Gap that starts a new session (chats: 6 by default; 0: never)."
    ),
    redact: bool = typer.Option(
        False, "--redact", help="Remove e-mail addresses, phone and card numbers, and keys before storing."
    ),
    redact_region: str | None = typer.Option(
        None, "--redact-region", metavar="CC", help="Like --redact, with national phone numbers of NO, US, ..."
    ),
    scope_by: str | None = typer.Option(
        None, "--scope-by", metavar="RULE", help="One scope per speaker (user), channel, or project of a coding agent."
    ),
    edits: bool = typer.Option(
        False, "--edits", help="Apply edited notes of an exported vault, and newer versions of records of other files."
    ),
    trust: float = typer.Option(
        1.0, "--trust", min=0, max=1, help="Highest trust in the records, 0 to 1. Below 1, records wait for a review."
    ),
    runner: str | None = typer.Option(
        None, "--runner", metavar="NAME", help="Where the jobs after the import run: here, process, ray or ray:ADDRESS."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Store nothing; only report."),
    rejected: Path | None = typer.Option(
        None, "--rejected", metavar="FILE", help="Write rejected records to FILE as JSON lines."
    ),
    yes: bool = typer.Option(False, "--yes", "-y", help="Accept the cost of a language model (--llm) without asking."),
) -> None:
    """Import transcripts. Running the same import again adds only new records.

    Folders and zips are read recursively; files of unknown format are reported and skipped. Invalid records are
    rejected, all others are stored, and the exit status is 1. A memory file in the format zettel is restored as it
    was, all or nothing, into empty scopes.

    With --llm the estimated cost is shown first and has to be confirmed; --budget limits the cost.

    A large import into a file starts a second process for jobs, which uses a second core; --runner here disables it,
    and --runner ray uses a cluster (with Neo4j).

    \b
    Examples:
      zettel import chat.txt
      zettel import exports/ --dry-run
      zettel import "WhatsApp Chat with Ann.zip" --tz Europe/Oslo --map-user "Annie=Ann"
      zettel import tickets.csv --column content=Text --since 2024-01-01
      zettel import chat.txt --llm openai/gpt-4o-mini --budget usd=1,per=import
      zettel import locomo.json --conversation conv-1 --user ann
      zettel import slack.zip --redact --scope-by channel --tenant acme
      zettel import ann.zettel --store other.db
      zettel import --format graphiti neo4j://localhost:7687
    """
    options = common(ctx)
    from zettel.core.memory_file import read_index
    from zettel.transcripts import importing
    from zettel.transcripts.options import import_options
    from zettel.transcripts.scopes import part_of
    from zettel.transcripts.sources import find_parts

    selection: dict[str, Any] = {
        "conversation": conversation, "tz": tz, "columns": _pairs(column, "--column"), "since": since, "until": until,
        "speakers": speaker, "map_user": _pairs(map_user, "--map-user"), "session_gap": session_gap,
        "redact": redact, "redact_region": redact_region, "scope_by": scope_by, "edits": edits,
    }  # fmt: skip
    import_filter = import_options(**selection)
    part = part_of(import_filter.scope_by)
    if scope_by is not None and getattr(options, part) is not None:
        raise InvalidInput(f"--scope-by {scope_by} sets the {part} of each scope: leave --{part} out")
    if rejected is not None:
        require_writable(rejected)
        if rejected.exists() and Path(path).exists() and rejected.samefile(path):
            raise InvalidInput(f"--rejected {rejected} would overwrite the file that is imported: name another")
        # The next import would read it there, and it may be a file of the export.
        if Path(path).is_dir() and rejected.resolve().is_relative_to(Path(path).resolve()):
            raise InvalidInput(f"--rejected {rejected} is in the folder that is imported: name a file elsewhere")
    with _on_disk(path, format) as (file, display_name):
        selection |= {"source": display_name, "trust": trust}
        is_memory_file = importing.is_memory_file(file, format)
        if is_memory_file and runner is not None:
            raise InvalidInput("a memory file is restored without running jobs: leave --runner out")
        # Check the file before a store is created, so that a failed import leaves nothing behind.
        if not is_memory_file:
            tables = bool(import_filter.columns)
            import_filter.check_columns(find_parts(file, format, tables=tables, called=display_name))
        elif not Path(options.store).exists():
            read_index(file)
        if dry_run:
            exists = "://" in options.store or Path(options.store).exists()
            compared = options if exists else replace(options, store=":memory:")
            with compared.memory(create=True) as memory, _callbacks("reading", rejected) as callbacks:
                report = memory.import_transcript(file, format, **selection, dry_run=True, **callbacks)
            _finish(options, report)
            return
        calls_model = bool(options.models) and not is_memory_file
        if calls_model and not model_costs.confirm_cost(options, file, format, selection, yes):
            notify("zettel: nothing was imported")
            raise typer.Exit(1)
        # A memory file contains its jobs, whose cost was not confirmed: they wait for a worker.
        job_runner = None if is_memory_file else _runner(options, runner, file)
        opened = options.memory(create=True, run_llm_jobs=not is_memory_file, runner=job_runner)
        with opened as memory, _callbacks("importing", rejected) as callbacks:
            before = memory.stats()
            report = memory.import_transcript(file, format, **selection, **callbacks)
            failed = _run_jobs(memory)
            model_costs.count_use(report, before, memory.stats())
            waits = model_costs.waiting(memory.jobs(), () if is_memory_file else options.models)
    if waits is not None:
        notify(f"zettel: {waits}")
    if failed is not None:
        _show(options, report)
        raise failed
    _finish(options, report, is_memory_file)


def export(
    ctx: typer.Context,
    path: Path | None = typer.Argument(
        None, metavar="[PATH]", help="The file, or the folder for markdown; - or nothing for stdout."
    ),
    format: str = typer.Option(
        "auto",
        "--format",
        help="jsonl: the events. markdown: an Obsidian vault. graphml: a graph. zettel: everything. "
        "auto: by the file's suffix, else jsonl.",
    ),
    include: list[str] = typer.Option(
        [], "--include", metavar="WHAT", help="Also notes (jsonl), terms or events (graphml). Repeatable."
    ),
    all_scopes: bool = typer.Option(False, "--all-scopes", help="Export every scope; only as zettel."),
) -> None:
    """Export a memory to a file, a folder or stdout.

    jsonl contains the events. markdown is a vault of notes with their links; files that others wrote or changed are
    left alone. graphml is a graph for Gephi. zettel is the complete memory with histories, links, vectors and the keyed
    hashes of deleted events; it contains the secret of the scope and is as confidential as the store. zettel import
    reads all formats but graphml.

    \b
    Examples:
      zettel export backup.jsonl
      zettel export --user ann | gzip > ann.jsonl.gz
      zettel export --format markdown vault
      zettel export ann.graphml --include terms
      zettel export --all-scopes all.zettel
    """
    options = common(ctx)
    from zettel.exports import AUTO, FORMATS, format_for, require_format

    if format not in {AUTO, *FORMATS}:
        raise typer.BadParameter(f"use {AUTO}, {', '.join(FORMATS)}", param_hint="--format")
    format = format_for("" if path is None else path, format)
    writer = require_format(format, include)
    if all_scopes and options.scoped:
        raise InvalidInput("--all-scopes exports every scope: leave --tenant, --user and --agent out")
    to: Path | BinaryIO = sys.stdout.buffer if path is None or str(path) == STDIO else path
    if isinstance(to, Path):
        if writer.folder is None:
            require_writable(to)
    elif options.json:
        raise InvalidInput("--json prints the report on stdout: name a file for the export")
    with options.memory() as memory, progress_bar("exporting") as progress:
        report = memory.export(to, format, include=include, all_scopes=all_scopes, on_progress=progress)
        complete = all_scopes or options.json or report.events or report.notes
        empty = "" if complete else options.why_empty(memory, "no events to export")
    if options.json:
        print_json(report)
    elif isinstance(to, Path):
        _show_export(report)
    else:
        to.flush()
    if empty:
        notify(empty)


def _show_export(report: ExportReport) -> None:
    """Print the report on stderr."""
    counts = {"events": report.events, "notes": report.notes, "terms": report.terms, "links": report.links}
    parts = [f"{count:,} {name}" for name, count in counts.items() if count]
    notify(f"{', '.join(parts) or '0 events'} written to {report.to}")
    if report.changed or report.removed:
        notify(f"files: {report.changed:,} written, {report.removed:,} removed")
    if report.edited:
        names = ", ".join(report.edited[:SHOWN_LEFT]) + (", …" if len(report.edited) > SHOWN_LEFT else "")
        notify(f"files skipped because somebody changed them: {len(report.edited):,} ({names})")


def _finish(options: Common, report: ImportReport, is_memory_file: bool = False) -> None:
    """Print a report. Raises ``BadRecord`` if records were rejected, or if there were none."""
    _show(options, report)
    _advise(report)
    if report.rejected_records:
        first, count = report.rejected_records[0], report.rejected
        verb = "could be" if report.dry_run else "are"
        rest = f", the others {verb} stored" if count < report.records else ""
        raise BadRecord(
            f"rejected {count:,} of {report.records:,} records{rest}; the first is {place(first)}: {first.reason}"
        )
    if not report.records and not report.skipped and not is_memory_file:
        raise BadRecord(f"{report.file} contains no events")


def _advise(report: ImportReport) -> None:
    """Warn if the memories of several users of mem0 are in one scope."""
    if "mem0" in report.format.split(", ") and len(report.speakers) > 1 and not report.scopes:
        names = list(report.speakers)
        named = ", ".join(names[:SHOWN_USERS]) + (", …" if len(names) > SHOWN_USERS else "")
        several = f"these are memories of several users or agents ({named}) in one scope"
        notify(f"zettel: {several}: --scope-by user splits them")


def _show(options: Common, report: ImportReport) -> None:
    if options.json:
        print_json(report)
    else:
        show_report(report)


def _pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """Parse ``NAME=VALUE`` pairs. Each name may occur once."""
    pairs: dict[str, str] = {}
    for pair in texts:
        name, sign, value = (part.strip() for part in pair.partition("="))
        if not (name and sign and value):
            raise InvalidInput(f"{option} {pair!r}: expected NAME=VALUE")
        if name in pairs:
            raise InvalidInput(f"{option} {pair!r}: {name} already has a value; give it once")
        pairs[name] = value
    return pairs


def _runner(options: Common, named: str | None, file: Path) -> str | None:
    """Return the runner of the jobs that follow an import; None for this process."""
    from zettel.local.process_runner import can_start

    if named is not None:
        return named
    # A server has its own cores, and with a language model the process mostly waits.
    single = "://" in options.store or bool(options.models) or (os.cpu_count() or 1) < 2 or not can_start()
    return None if single or _bytes(file) < LARGE else "process"


def _bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _run_jobs(memory: Memory) -> JobFailed | None:
    """Run the jobs that follow an import; return the error if one fails, so that the report is still printed."""
    try:
        memory.flush()
    except JobFailed as error:
        return error
    return None


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """Show a progress bar on stderr if it is a terminal."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(what, total=None)

        def move(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield move


@contextmanager
def _callbacks(what: str, rejected: Path | None) -> Iterator[dict[str, Any]]:
    """Yield the callbacks of an import: the progress bar, and the writer of rejected records."""
    with progress_bar(what) as progress:
        if rejected is None:
            yield {"on_progress": progress}
            return
        with open(rejected, "w", encoding="utf-8", opener=private) as file:

            def write(records: Sequence[Rejected]) -> None:
                lines = ({"file": row.file, "place": row.position, "reason": row.reason} for row in records)
                file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)

            yield {"on_progress": progress, "on_rejected": write}


@contextmanager
def _on_disk(path: str, format: str) -> Iterator[tuple[Path, str]]:
    """Yield the file and its display name. Stdin and servers are copied, because imports read them more than once.

    Errors contain the name that the user passed.
    """
    if path != STDIO and "://" not in path:
        yield Path(path), str(Path(path))
        return
    with tempfile.TemporaryDirectory(prefix="zettel-") as folder:
        file = Path(folder, STDIO, STDIO)  # formats look at file and folder names, which must not vary
        file.parent.mkdir()
        display_name = STDIO
        if path == STDIO:
            with file.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            if is_zipfile(file):
                file = file.rename(file.with_suffix(".zip"))
        else:
            display_name = _fetch(path, format, file)
        try:
            yield file, display_name
        except (BadRecord, UnknownFormat) as error:
            raise type(error)(str(error).replace(str(file), display_name)) from None


def _fetch(url: str, format: str, file: Path) -> str:
    """Copy a Graphiti graph from a server; return its URL without user and password."""
    if format != GRAPHITI:
        raise InvalidInput(f"only Graphiti can be imported from a server: pass --format {GRAPHITI}")
    import anyio

    from zettel.graph.neo4j.graphiti import address_of, fetch

    address = address_of(url)
    anyio.run(fetch, address, file)
    return address.url
