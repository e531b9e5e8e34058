"""Memories in and out of files: import and export."""

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

from zettel.errors import BadRecord, InvalidInput, JobFailed, UnknownFormat

from . import models
from .common import Common, common, console, remark, say_json, writable
from .import_report import place, show_report

if TYPE_CHECKING:
    from zettel import Memory
    from zettel.exports.report import ExportReport
    from zettel.transcripts import Rejected
    from zettel.transcripts.importing import Progress
    from zettel.transcripts.report import ImportReport

STDIO = "-"
"""Stands for stdin or stdout where a file is named."""

GRAPHITI = "graphiti"

LARGE = 2_000_000
"""Bytes of a transcript, about 10,000 short messages, from which a further process is worth its start."""

SHOWN_LEFT = 5
"""Files of an export that are told by name as changed by somebody else."""


def import_(
    ctx: typer.Context,
    path: str = typer.Argument(
        metavar="PATH",
        help="A transcript, a folder or zip of them, or a whole memory (- for stdin); of Graphiti also its server.",
    ),
    format: str = typer.Option(
        "auto", "--format", help="whatsapp, slack, csv, jsonl, plain, ..., or zettel: a whole memory."
    ),
    conversation: str | None = typer.Option(None, "--conversation", help="Only this one, of a file with several."),
    since: str | None = typer.Option(None, "--since", metavar="TIME", help="Only what happened then or later."),
    until: str | None = typer.Option(None, "--until", metavar="TIME", help="Only what happened before."),
    speaker: list[str] = typer.Option([], "--speaker", metavar="NAME", help="Only what this one said. Repeatable."),
    map_user: list[str] = typer.Option(
        [], "--map-user", metavar="NAME=OTHER", help="Take one name for another. Repeatable."
    ),
    tz: str | None = typer.Option(None, "--tz", metavar="ZONE", help="Of times that tell none, such as Europe/Oslo."),
    column: list[str] = typer.Option(
        [], "--column", metavar="FIELD=NAME", help="Which column of a table is which field. Repeatable."
    ),
    session_gap: float | None = typer.Option(
        None, "--session-gap", metavar="HOURS", help="A silence that ends a session (6 for chats; 0: none does)."
    ),
    redact: bool = typer.Option(
        False, "--redact", help="Take out e-mail addresses, phone and card numbers, and keys, before they are stored."
    ),
    redact_region: str | None = typer.Option(
        None, "--redact-region", metavar="CC", help="The same, and phone numbers as they are told within NO, US, ..."
    ),
    scope_by: str | None = typer.Option(
        None, "--scope-by", metavar="RULE", help="user: a scope for each speaker. channel: one for each place of talk."
    ),
    runner: str | None = typer.Option(
        None, "--runner", metavar="NAME", help="Who does the jobs that follow: here, process, ray or ray:ADDRESS."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Store nothing, and tell what would be."),
    rejected: Path | None = typer.Option(
        None, "--rejected", metavar="FILE", help="Write what could not be stored there, as JSON lines."
    ),
    yes: bool = typer.Option(
        False, "--yes", "-y", help="Do not ask whether a language model (--llm) may cost that much."
    ),
) -> None:
    """Remember transcripts. Running it again adds only what is new.

    A folder or zip is walked; files in it that no format knows are told and left alone. Records that cannot be stored
    are told and left out; the others are stored, and the exit status is 1. A whole memory that was exported as zettel
    comes back as it was, into scopes that are empty, or not at all.

    With --llm it says beforehand what that will cost, and asks; with --budget no more is spent.

    While a large file is read into a store that is a file, a process of its own links what is there, which takes a
    further core; --runner here leaves it to the one process, --runner ray to a cluster (with Neo4j).

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
    from zettel.transcripts.importing import is_whole
    from zettel.transcripts.parts import look
    from zettel.transcripts.wanted import wanted
    from zettel.transcripts.whole import outline

    chosen: dict[str, Any] = {
        "conversation": conversation, "tz": tz, "columns": _pairs(column, "--column"), "since": since, "until": until,
        "speakers": speaker, "map_user": _pairs(map_user, "--map-user"), "session_gap": session_gap,
        "redact": redact, "redact_region": redact_region, "scope_by": scope_by,
    }  # fmt: skip
    asked = wanted(**chosen)
    if scope_by is not None and options.user is not None:
        raise InvalidInput("--scope-by sets the user of each scope: leave --user out")
    if rejected is not None:
        writable(rejected)
        if rejected.exists() and Path(path).exists() and rejected.samefile(path):
            raise InvalidInput(f"--rejected {rejected} would overwrite the file that is imported: name another")
        # There it would be read by the next import, and may be a file of the export now.
        if Path(path).is_dir() and rejected.resolve().is_relative_to(Path(path).resolve()):
            raise InvalidInput(f"--rejected {rejected} lies in the folder that is imported: name a file elsewhere")
    with _on_disk(path, format) as (file, called):
        chosen["source"] = called
        whole = is_whole(file, format)
        if whole and runner is not None:
            raise InvalidInput("a whole memory comes as it was, with nothing to be worked off: leave --runner out")
        # Before a store is made: what cannot be imported leaves nothing behind.
        if not whole:
            asked.require_fit(look(file, format, tables=bool(asked.columns), called=called))
        elif not Path(options.store).exists():
            outline(file)
        if dry_run:
            there = "://" in options.store or Path(options.store).exists()
            looked_at = options if there else replace(options, store=":memory:")
            with looked_at.memory(create=True) as memory, _watched("reading", rejected) as told:
                report = memory.import_transcript(file, format, **chosen, dry_run=True, **told)
            _tell(options, report)
            return
        if options.models and not whole and not models.agreed(options, file, format, chosen, yes):
            remark("zettel: nothing was imported")
            raise typer.Exit(1)
        # A whole memory brings its jobs along. What these would cost nobody was asked.
        opened = options.memory(create=True, works=not whole, runner=None if whole else _runner(options, runner, file))
        with opened as memory, _watched("importing", rejected) as told:
            before = memory.stats()
            report = memory.import_transcript(file, format, **chosen, **told)
            failed = _work_off(memory)
            models.count_use(report, before, memory.stats())
            waits = models.waiting(memory.jobs(), () if whole else options.models)
    if waits is not None:
        remark(f"zettel: {waits}")
    if failed is not None:
        _show(options, report)
        raise failed
    _tell(options, report, whole)


def export(
    ctx: typer.Context,
    path: Path | None = typer.Argument(
        None, metavar="[PATH]", help="The file, or for markdown the folder; stdout if left out, or for -."
    ),
    format: str = typer.Option(
        "auto",
        "--format",
        help="jsonl: the events. markdown: an Obsidian vault. graphml: a graph. zettel: all. "
        "auto: as the file is called, else jsonl.",
    ),
    include: list[str] = typer.Option(
        [], "--include", metavar="WHAT", help="Also notes (jsonl), terms or events (graphml). Repeatable."
    ),
    all_scopes: bool = typer.Option(False, "--all-scopes", help="Of everybody; only as zettel."),
) -> None:
    """Write a memory for people, programs or other stores.

    What is written as jsonl, markdown or zettel, import reads. As jsonl it is the events; as markdown a vault of notes
    with their links, in which files of others, and those changed since, are left alone; as graphml a graph for Gephi.
    As zettel it is the whole memory, with histories, links, vectors and what was deleted as keyed hashes: another
    store takes it in as it was. Such a file holds the scope's secret and is as confidential as the store.

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
        raise typer.BadParameter(f"there are {AUTO}, {', '.join(FORMATS)}", param_hint="--format")
    format = format_for("" if path is None else path, format)
    writer = require_format(format, include)
    if all_scopes and options.scoped:
        raise InvalidInput("--all-scopes means everybody's: leave --tenant, --user and --agent out")
    to: Path | BinaryIO = sys.stdout.buffer if path is None or str(path) == STDIO else path
    if isinstance(to, Path):
        if writer.folder is None:
            writable(to)
    elif options.json:
        raise InvalidInput("--json tells on stdout what was written: name a file to write to")
    with options.memory() as memory, progress_bar("exporting") as progress:
        report = memory.export(to, format, include=include, all_scopes=all_scopes, on_progress=progress)
    if options.json:
        say_json(report)
    elif isinstance(to, Path):
        _show_export(report)
    else:
        to.flush()


def _show_export(report: ExportReport) -> None:
    """What was written, on stderr as what is beside the data itself."""
    counts = {"events": report.events, "notes": report.notes, "terms": report.terms, "links": report.links}
    told = [f"{count:,} {what}" for what, count in counts.items() if count]
    remark(f"{', '.join(told) or '0 events'} written to {report.to}")
    if report.changed or report.removed:
        remark(f"files: {report.changed:,} written, {report.removed:,} removed")
    if report.left:
        named = ", ".join(report.left[:SHOWN_LEFT]) + (", …" if len(report.left) > SHOWN_LEFT else "")
        remark(f"{len(report.left):,} left as they are, for somebody changed them: {named}")


def _tell(options: Common, report: ImportReport, whole: bool = False) -> None:
    """Show a report, and complain about what is wrong in it."""
    _show(options, report)
    if report.rejected:
        first, count = report.rejected[0], report.rejections
        kept = "could be" if report.dry_run else "are"
        rest = f", the others {kept} stored" if count < report.records else ""
        raise BadRecord(
            f"rejected {count:,} of {report.records:,} records{rest}; the first is {place(first)}: {first.reason}"
        )
    if not report.records and not report.left_out and not whole:
        raise InvalidInput(f"{report.file} holds nothing that could be remembered")


def _show(options: Common, report: ImportReport) -> None:
    if options.json:
        say_json(report)
    else:
        show_report(report)


def _pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """``NAME=VALUE`` pairs of texts; a name comes once."""
    pairs: dict[str, str] = {}
    for pair in given:
        name, sign, value = (part.strip() for part in pair.partition("="))
        if not (name and sign and value):
            raise InvalidInput(f"{option} {pair!r}: expected NAME=VALUE")
        if name in pairs:
            raise InvalidInput(f"{option} {pair!r}: {name} has a value already; give it one")
        pairs[name] = value
    return pairs


def _runner(options: Common, named: str | None, file: Path) -> str | None:
    """Who does the jobs that follow an import; None: this process."""
    from zettel.jobs.on_processes import can_start

    if named is not None:
        return named
    # A server works on its own cores, and a language model is waited for.
    alone = "://" in options.store or bool(options.models) or (os.cpu_count() or 1) < 2 or not can_start()
    return None if alone or _bytes(file) < LARGE else "process"


def _bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _work_off(memory: Memory) -> JobFailed | None:
    """Do the jobs that follow an import. One that fails keeps its error and takes nothing from the report."""
    try:
        memory.flush()
    except JobFailed as error:
        return error
    return None


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """A bar on stderr, or nothing where that is no terminal."""
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
def _watched(what: str, rejected: Path | None) -> Iterator[dict[str, Any]]:
    """Who is told of an import while it runs: a bar, and the file that what cannot be stored is written to."""
    with progress_bar(what) as progress:
        if rejected is None:
            yield {"on_progress": progress}
            return
        with rejected.open("w", encoding="utf-8") as file:

            def write(some: Sequence[Rejected]) -> None:
                lines = ({"file": one.file, "place": one.position, "reason": one.reason} for one in some)
                file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)

            yield {"on_progress": progress, "on_rejected": write}


@contextmanager
def _on_disk(path: str, format: str) -> Iterator[tuple[Path, str]]:
    """The file itself and what it is called; of stdin and of a server a copy, for it is read more than once.

    Errors name what the user named.
    """
    if path != STDIO and "://" not in path:
        yield Path(path), str(Path(path))
        return
    with tempfile.TemporaryDirectory(prefix="zettel-") as folder:
        file = Path(folder, STDIO, STDIO)  # formats look at names of files and folders: they have to stay the same
        file.parent.mkdir()
        called = STDIO
        if path == STDIO:
            with file.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            if is_zipfile(file):
                file = file.rename(file.with_suffix(".zip"))
        else:
            called = _fetch(path, format, file)
        try:
            yield file, called
        except (BadRecord, UnknownFormat) as error:
            raise type(error)(str(error).replace(str(file), called)) from None


def _fetch(url: str, format: str, file: Path) -> str:
    """Copy what a Graphiti keeps on a server; what the server is called without user and password."""
    if format != GRAPHITI:
        raise InvalidInput(f"of a server zettel imports what Graphiti keeps there: say --format {GRAPHITI}")
    import anyio

    from zettel.graph.neo4j.graphiti import address_of, fetch

    address = address_of(url)
    anyio.run(fetch, address, file)
    return address.url
