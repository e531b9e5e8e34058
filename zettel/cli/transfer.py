"""Memories in and out of files: import and export."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import typer

from zettel.errors import BadRecord, InvalidInput, JobFailed

from . import models
from .common import common, console, remark, say_json, writable

if TYPE_CHECKING:
    from zettel import Memory
    from zettel.transcripts.importing import ImportReport, Progress

STDIO = "-"
"""Stands for stdin or stdout where a file is named."""

SHOWN_REJECTIONS = 10
"""Rejected records told in the table; --json has all."""


def import_(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="The transcript, or a whole memory (- for stdin)."),
    format: str = typer.Option(
        "auto", "--format", help="locomo, jsonl, plain, another that is installed, or zettel: a whole memory."
    ),
    conversation: str | None = typer.Option(None, "--conversation", help="Only this one, of a file with several."),
    yes: bool = typer.Option(
        False, "--yes", "-y", help="Do not ask whether a language model (--llm) may cost that much."
    ),
) -> None:
    """Remember a transcript. Running it again adds only what is new.

    Records that cannot be stored are told and left out; the others are stored, and the exit status is 1. A whole
    memory that was exported as zettel comes back as it was, into scopes that are empty, or not at all.

    With --llm it says beforehand what that will cost, and asks; with --budget no more is spent.

    \b
    Examples:
      zettel import chat.txt
      zettel import chat.txt --llm openai/gpt-4o-mini --budget usd=1,per=import
      zettel import locomo.json --conversation conv-1 --user ann
      zettel import events.jsonl --json
      zettel import ann.zettel --store other.db
    """
    options = common(ctx)
    from zettel.transcripts import choose
    from zettel.transcripts.importing import is_whole
    from zettel.transcripts.whole import outline

    with _on_disk(path, format) as file:
        whole = is_whole(file, format)
        # Before a store is made: what cannot be imported leaves nothing behind.
        if not whole:
            choose(file, format)
        elif not Path(options.store).exists():
            outline(file)
        if options.models and not whole and not models.agreed(options, file, format, conversation, yes):
            remark("zettel: nothing was imported")
            raise typer.Exit(1)
        # A whole memory brings its jobs along. What these would cost nobody was asked.
        with options.memory(create=True, works=not whole) as memory, progress_bar("importing") as progress:
            before = memory.stats()
            report = memory.import_transcript(file, format, conversation=conversation, on_progress=progress)
            failed = _work_off(memory)
            models.count_use(report, before, memory.stats())
            waits = models.waiting(memory.jobs(), () if whole else options.models)
    report.file = str(path)
    if options.json:
        say_json(report)
    else:
        show_report(report)
    if waits is not None:
        remark(f"zettel: {waits}")
    if failed is not None:
        raise failed
    if report.rejected:
        first, count = report.rejected[0], len(report.rejected)
        rest = ", the others are stored" if count < report.records else ""
        raise BadRecord(
            f"rejected {count:,} of {report.records:,} records{rest}; "
            f"the first is {first.file}:{first.position}: {first.reason}"
        )
    if not report.records and not whole:
        raise InvalidInput(f"{path} holds nothing that could be remembered")


def export(
    ctx: typer.Context,
    path: Path | None = typer.Argument(None, metavar="[FILE]", help="Where to; stdout if left out, or for -."),
    format: str = typer.Option(
        "jsonl", "--format", help="jsonl: an event on each line, with its notes. zettel: all there is, to move it."
    ),
    all_scopes: bool = typer.Option(False, "--all-scopes", help="Of everybody; only as zettel."),
) -> None:
    """Write all events of a scope with their notes. What this writes, import reads.

    As zettel it writes the whole memory, with histories, links, vectors and what was deleted as keyed hashes: another
    store takes it in as it was. Such a file holds the scope's secret and is as confidential as the store.

    \b
    Examples:
      zettel export backup.jsonl
      zettel export --user ann | gzip > ann.jsonl.gz
      zettel export --format zettel --all-scopes all.zettel
    """
    options = common(ctx)
    from zettel.export import FORMATS

    if format not in FORMATS:
        raise typer.BadParameter(f"there are {', '.join(FORMATS)}", param_hint="--format")
    if all_scopes and options.scoped:
        raise InvalidInput("--all-scopes means everybody's: leave --tenant, --user and --agent out")
    to: Path | BinaryIO = sys.stdout.buffer if path is None or str(path) == STDIO else path
    if isinstance(to, Path):
        writable(to)
    with options.memory() as memory:
        written = memory.export(to, format, all_scopes=all_scopes)
    if isinstance(to, Path):
        remark(f"{written} events written to {path}")
    else:
        to.flush()


def show_report(report: ImportReport) -> None:
    """What became of a file's records, as a table on stdout."""
    from rich.table import Table
    from rich.text import Text

    from .layout import paragraph

    out = console()
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(justify="right", style="bold")
    table.add_column()
    counts = [
        (report.added, "added"),
        (report.existing, "known before"),
        (report.revised, "revised, their content had changed"),
        (report.deleted, "left out, deleted here before"),
        (len(report.rejected), "rejected"),
        (report.flagged, "flagged: what they say looks like instructions to a model"),
    ]
    for count, what in counts:
        if count or what == "added":
            table.add_row(f"{count:,}", what)
    out.print(Text(f"{report.file} ({report.format}), {report.seconds:.1f} s"))
    out.print(table)
    if asked := models.used(report.model_dump()):
        out.print(Text(f"language model: {asked}"))
    for one in report.rejected[:SHOWN_REJECTIONS]:
        paragraph(out, Text(f"{one.file}:{one.position}: {one.reason}", style="yellow"), indent=2, hang=2)
    if len(report.rejected) > SHOWN_REJECTIONS:
        out.print(Text(f"  and {len(report.rejected) - SHOWN_REJECTIONS} more; --json has them all", style="yellow"))


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
def _on_disk(path: Path, format: str) -> Iterator[Path]:
    """The file itself; of stdin a copy, for a whole memory is read twice. Errors name what the user named."""
    if str(path) != STDIO:
        yield path
        return
    from zettel.transcripts.importing import is_whole

    with tempfile.NamedTemporaryFile(prefix="zettel-") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        file = Path(copy.name)
        if not is_whole(file, format):
            raise InvalidInput("from stdin zettel reads whole memories only (--format zettel); name a file")
        try:
            yield file
        except BadRecord as error:
            raise BadRecord(str(error).replace(copy.name, STDIO)) from None
