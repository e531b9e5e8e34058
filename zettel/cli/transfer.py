"""Memories in and out of files: import and export."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from zettel.errors import BadRecord, InvalidInput, JobFailed

from .common import common, console, plain, remark, say_json, writable

if TYPE_CHECKING:
    from zettel import Memory
    from zettel.transcripts.importing import ImportReport, Progress

SHOWN_REJECTIONS = 10
"""Rejected records told in the table; --json has all."""


def import_(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="The transcript."),
    format: str = typer.Option("auto", "--format", help="locomo, jsonl, plain, or another that is installed."),
    conversation: str | None = typer.Option(None, "--conversation", help="Only this one, of a file with several."),
) -> None:
    """Remember a transcript. Running it again adds only what is new.

    Records that cannot be stored are told and left out; the others are stored, and the exit status is 1.

    \b
    Examples:
      zettel import chat.txt
      zettel import locomo.json --conversation conv-1 --user ann
      zettel import events.jsonl --json
    """
    options = common(ctx)
    from zettel.transcripts import choose

    choose(path, format)  # before a store is made: a wrong path leaves nothing behind
    with options.memory(create=True) as memory, progress_bar("importing") as progress:
        report = memory.import_transcript(path, format, conversation=conversation, on_progress=progress)
        failed = _work_off(memory)
    if options.json:
        say_json(report)
    else:
        show_report(report)
    if failed is not None:
        raise failed
    if report.rejected:
        first, count = report.rejected[0], len(report.rejected)
        rest = ", the others are stored" if count < report.records else ""
        raise BadRecord(
            f"rejected {count:,} of {report.records:,} records{rest}; "
            f"the first is {first.file}:{first.position}: {first.reason}"
        )
    if not report.records:
        raise InvalidInput(f"{path} holds nothing that could be remembered")


def export(
    ctx: typer.Context,
    path: Path | None = typer.Argument(None, metavar="[FILE]", help="Where to; stdout if left out."),
    format: str = typer.Option("jsonl", "--format", help="jsonl: an event on each line, with its notes."),
) -> None:
    """Write all events of a scope with their notes. What this writes, import reads.

    \b
    Examples:
      zettel export backup.jsonl
      zettel export --user ann | gzip > ann.jsonl.gz
    """
    options = common(ctx)
    if format != "jsonl":
        raise typer.BadParameter("there is only jsonl", param_hint="--format")
    if path is not None:
        writable(path)
    written = 0
    with options.memory() as memory, _out(path) as out:
        for event, notes in memory.dump():
            line = plain(event) | {"notes": plain(notes)}
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
            written += 1
    if path is not None:
        remark(f"{written} events written to {path}")


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
    ]
    for count, what in counts:
        if count or what == "added":
            table.add_row(f"{count:,}", what)
    out.print(Text(f"{report.file} ({report.format}), {report.seconds:.1f} s"))
    out.print(table)
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
def _out(path: Path | None) -> Iterator[Any]:
    """Where an export goes. A file is complete or not there: it is written beside its name and then moved."""
    if path is None:
        import sys

        yield sys.stdout
        sys.stdout.flush()
        return
    unfinished = path.with_name(f".{path.name}.unfinished")
    with unfinished.open("w", encoding="utf-8") as file:
        yield file
    unfinished.replace(path)
