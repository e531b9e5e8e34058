"""The commands query and list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import typer

from .common import common, console, day_and_time, echo, notify, print_json
from .filter_options import FilterJson, Kinds, Meta, Session, Since, Speaker, SpokenAs, Tags, Until, conditions

if TYPE_CHECKING:
    from zettel import Note
    from zettel.model import EventRecord, QueryResult, Role

UNKNOWN = "–"
"""The sign of a missing value of a group."""


def query(
    ctx: typer.Context,
    of: str = typer.Option("notes", "--of", metavar="KIND", help="Count notes or events."),
    word: list[str] = typer.Option(
        [], "--word", "-w", help="Texts with this word, or all words of this phrase. Repeatable: one of them suffices."
    ),
    term: list[str] = typer.Option([], "--term", help="Notes with this name or tag. Repeatable: one of them suffices."),
    kind: Kinds = None,
    tag: Tags = None,
    session: Session = None,
    speaker: Speaker = None,
    role: SpokenAs = None,
    meta: Meta = None,
    filter: FilterJson = None,
    since: Since = None,
    until: Until = None,
    as_of: str | None = typer.Option(None, "--as-of", metavar="TIME", help="Only what was true at this time."),
    archived: bool = typer.Option(False, "--archived", help="Include archived notes. Takes longer."),
    by: list[str] = typer.Option(
        [], "--by", metavar="FIELD",
        help="Group by kind, speaker, role, session, tag or term, year, month, week, day, weekday; repeatable.",
    ),
    tz: str | None = typer.Option(None, "--tz", metavar="ZONE", help="Time zone of days, such as Europe/Oslo."),
    order: str | None = typer.Option(
        None, "--order", help="time or arrival; for groups count, key, first or last. Write - before it to reverse it."
    ),
    limit: int = typer.Option(20, "--limit", min=0, help="Number of rows; 0 prints only the count."),
) -> None:  # fmt: skip
    """Count, group and list notes or events exactly.

    \b
    Examples:
      zettel query --of events --word run --word ran --role user --limit 0
      zettel query --of events --word run --word ran --by month
      zettel query --speaker Ann --since 2024-05-01 --order -time --limit 5
    """
    options = common(ctx)
    kind_of: Any = of  # the memory validates it
    with options.memory() as memory:
        result = memory.query(
            kind_of, words=word, terms=term, kinds=kind, tags=tag, session=session, speaker=speaker,
            role=cast("Role | None", role), filter=conditions(meta, filter), since=since, until=until,
            as_of=as_of, archived=archived, group_by=by, tz=tz, order=order, limit=limit,
        )  # fmt: skip
    if options.json:
        print_json(result)
    else:
        _show(result, of)


def list_(
    ctx: typer.Context,
    kind: Kinds = None,
    tag: Tags = None,
    session: Session = None,
    speaker: Speaker = None,
    role: SpokenAs = None,
    meta: Meta = None,
    filter: FilterJson = None,
    since: Since = None,
    until: Until = None,
    archived: bool = typer.Option(False, "--archived", help="Include archived notes. Takes longer."),
    oldest: bool = typer.Option(False, "--oldest", help="Oldest first."),
    limit: int = typer.Option(20, "-n", "--limit", min=1, help="Number of notes."),
) -> None:
    """List notes with their ids, the last added first.

    \b
    Examples:
      zettel list
      zettel list --tag boat --since 2024-05-01 -n 5
      zettel list --filter '{"price": {"gte": 3}}' --json
    """
    options = common(ctx)
    with options.memory() as memory:
        result = memory.query(
            kinds=kind, tags=tag, session=session, speaker=speaker, role=cast("Role | None", role),
            filter=conditions(meta, filter), since=since, until=until, archived=archived,
            order="arrival" if oldest else "-arrival", limit=limit,
        )  # fmt: skip
        empty = "" if result.notes or options.json else options.why_none_match(memory, speaker)
    if options.json:
        print_json(result.notes)
    elif not result.notes:
        notify(empty)
    else:
        _show_notes(result.notes)
        if result.count > len(result.notes):
            echo(f"and {result.count - len(result.notes):,} more: --limit shows more")


def _show_notes(notes: Sequence[Note]) -> None:
    from .layout import column, day, heading, one_line, who

    out, dates, names = console(), column(map(day, notes)), column(map(who, notes))
    for note in notes:
        heading(out, (note.id, "dim"), (day(note).ljust(dates), "cyan"), (who(note).ljust(names), "magenta"),
                (one_line(note.content), ""))  # fmt: skip


def _show(result: QueryResult, of: str) -> None:
    from .layout import heading, one_line

    span = " to ".join(dict.fromkeys(day_and_time(moment) for moment in (result.first, result.last) if moment))
    echo(f"{result.count:,} {of.removesuffix('s') if result.count == 1 else of}{f', {span}' if span else ''}")
    out = console()
    width = len(f"{max((group.count for group in result.groups), default=0):,}")
    for group in result.groups:
        values = [UNKNOWN if value is None else value for value in group.key.values()]
        heading(out, (f"{group.count:,}".rjust(width), "bold green"), *((value, "cyan") for value in values))
    if result.all_groups > len(result.groups):
        echo(f"and {result.all_groups - len(result.groups):,} more groups")
    items: tuple[Note | EventRecord, ...] = result.notes or result.events
    for item in items:
        time, text = day_and_time(item.occurred_at), one_line(item.content)
        heading(out, (time, "cyan"), (item.speaker or "", "magenta"), (text, ""))
