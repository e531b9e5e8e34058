"""The command query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import typer

from .common import common, console, day_and_time, echo, print_json
from .filter_options import FilterJson, Kinds, Meta, Session, Since, Speaker, SpokenAs, Tags, Until, conditions

if TYPE_CHECKING:
    from zettel import Note
    from zettel.model import EventRecord, QueryResult, Role

UNKNOWN = "–"
"""The sign of a missing value of a group."""


def query(
    ctx: typer.Context,
    of: str = typer.Option("notes", "--of", metavar="KIND", help="Count notes or events."),
    word: list[str] = typer.Option([], "--word", "-w", help="With this word or all words of a phrase; repeatable: or."),
    term: list[str] = typer.Option([], "--term", help="With this name or tag among their terms; repeatable: or."),
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
        None, "--order", help="time or arrival; of groups count, key, first or last; - before it reverses it."
    ),
    limit: int = typer.Option(20, "--limit", min=0, help="Number of rows; 0 only counts."),
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


def _show(result: QueryResult, of: str) -> None:
    from .layout import heading, in_line

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
        time, text = day_and_time(item.occurred_at), in_line(item.content)
        heading(out, (time, "cyan"), (item.speaker or "", "magenta"), (text, ""))
