"""The commands ``zettel retention``: how long a scope stores its notes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, cast

import typer

from .common import EVERYWHERE, Common, common, echo, notify, print_json, seconds_of

if TYPE_CHECKING:
    from zettel.model import Retention, Then

app = typer.Typer(help="Limit how long a scope stores its notes.", rich_markup_mode=None)

THEN = typer.Option("delete", "--then", metavar="ACTION", help="delete or archive.")


@app.callback()
def group() -> None:
    """Limit how long a scope stores its notes. Pinned notes stay."""


@app.command(epilog=EVERYWHERE)
def show(ctx: typer.Context) -> None:
    """Show the retention of the scope.

    \b
    Examples:
      zettel retention show --user ann
    """
    options = common(ctx)
    with options.memory() as memory:
        retention = memory.retention()
    _print(options, retention)


@app.command("set", epilog=EVERYWHERE)
def set_(
    ctx: typer.Context,
    max_age: str | None = typer.Argument(None, metavar="[AGE]", help="Longest time in the store, such as 90d."),
    then: str = THEN,
) -> None:
    """Limit how long the scope stores its notes, and choose whether older and expired notes are deleted or archived.

    A job removes older notes each day. Without AGE only notes with an expiry are removed.

    \b
    Examples:
      zettel retention set 90d --user ann
      zettel retention set 365d --then archive
    """
    options = common(ctx)
    age = None if max_age is None else seconds_of(max_age, "AGE")
    with options.memory(create=True) as memory:
        retention = memory.set_retention(age, cast("Then", then))
    _print(options, retention)


@app.command(epilog=EVERYWHERE)
def remove(ctx: typer.Context) -> None:
    """Remove the retention of the scope. This does not restore removed notes.

    \b
    Examples:
      zettel retention remove --user ann
    """
    options = common(ctx)
    with options.memory() as memory:
        removed = memory.remove_retention()
    if options.json:
        print_json({"removed": removed})
    else:
        echo("removed" if removed else "no retention was set")


@app.command(epilog=EVERYWHERE)
def sweep(
    ctx: typer.Context, dry_run: bool = typer.Option(False, "--dry-run", help="Only count; remove nothing.")
) -> None:
    """Remove the expired notes of the scope now, instead of waiting for the job.

    \b
    Examples:
      zettel retention sweep --dry-run
    """
    options = common(ctx)
    with options.memory() as memory:
        swept = memory.sweep(dry_run=dry_run)
    if options.json:
        print_json({**swept._asdict(), "dry_run": dry_run})
        return
    echo(f"{swept.deleted:,} deleted, {swept.archived:,} archived")
    if dry_run:
        notify("zettel: this was a dry run; nothing changed")


def _print(options: Common, retention: Retention | None) -> None:
    if options.json:
        print_json({"retention": retention})
    else:
        echo("no retention is set: notes stay until they expire" if retention is None else _described(retention))


def _described(retention: Retention) -> str:
    action = "archived" if retention.then == "archive" else "deleted"
    if retention.max_age is None:
        return f"notes that expire are {action}"
    return f"notes are {action} after {_period(retention.max_age)}, except pinned ones, and when they expire"


def _period(length: timedelta) -> str:
    days = length / timedelta(days=1)
    return f"{days:g} {'day' if days == 1 else 'days'}"
