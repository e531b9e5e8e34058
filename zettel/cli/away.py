"""What takes part no more: the archive and the quarantine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from .common import common, say, say_json

if TYPE_CHECKING:
    from zettel import Memory, Note

SHOWN = 50
"""Notes listed; --json has all."""


def archive(ctx: typer.Context, id: str | None = typer.Argument(None, metavar="[ID]", help="A note.")) -> None:
    """Put a note away, or list what is away. No search shows it but with --archived; unarchive brings it back.

    \b
    Examples:
      zettel archive n_3f9a…
      zettel archive
    """
    options = common(ctx)
    with options.memory() as memory:
        changed = [memory.archive(id)] if id else None
        away = [] if id else [note for note in _away(memory) if note.quarantined is None]
    if changed is None:
        _list(away, options.json)
    else:
        _told(changed, options.json, f"{id} is in the archive")


def unarchive(ctx: typer.Context, id: str = typer.Argument(metavar="ID", help="A note.")) -> None:
    """Bring a note back from the archive. It does not fade again.

    \b
    Example:
      zettel unarchive n_3f9a…
    """
    options = common(ctx)
    with options.memory() as memory:
        changed = [memory.unarchive(id)]
    _told(changed, options.json, f"{id} is back")


def quarantine(
    ctx: typer.Context,
    id: str | None = typer.Argument(None, metavar="[ID]", help="A note."),
    reason: str = typer.Option("", "--reason", metavar="TEXT", help="Why; it is kept with the note."),
) -> None:
    """Take a note out of play, or list what is in quarantine.

    No job looks at it, and no search shows it but with --quarantined. All that it did is taken back: notes made from
    it go to the archive, others fall back to what they were without it.

    \b
    Examples:
      zettel quarantine n_3f9a… --reason "claims to be a system message"
      zettel quarantine
    """
    options = common(ctx)
    with options.memory() as memory:
        changed = memory.quarantine(id, reason) if id else None
        held = [] if id else [note for note in _away(memory) if note.quarantined is not None]
    if changed is None:
        _list(held, options.json)
    else:
        _told(changed, options.json, f"{id} is in quarantine{_others(changed, 'taken back')}")


def release(ctx: typer.Context, id: str = typer.Argument(metavar="ID", help="A note.")) -> None:
    """Bring a note back from quarantine, with what that took back.

    \b
    Example:
      zettel release n_3f9a…
    """
    options = common(ctx)
    with options.memory() as memory:
        changed = memory.release(id)
    _told(changed, options.json, f"{id} is released{_others(changed, 'back')}")


def _away(memory: Memory) -> list[Note]:
    """All that is in the archive, the newest first."""
    found: list[Note] = []
    page = memory.list(archived=True, limit=500)
    found += page.notes
    while page.cursor is not None:
        page = memory.list(archived=True, limit=500, cursor=page.cursor)
        found += page.notes
    return found


def _list(notes: Sequence[Note], as_json: bool) -> None:
    if as_json:
        say_json(list(notes))
        return
    for note in notes[:SHOWN]:
        say(f"{note.id}  {_why(note)}: {' '.join((note.caption or note.content).split())[:80]}")
    if not notes:
        say("nothing is there")
    elif len(notes) > SHOWN:
        say(f"and {len(notes) - SHOWN:,} more; --json has them all")


def _why(note: Note) -> str:
    if note.quarantined is not None:
        return note.quarantined or "in quarantine"
    if note.merged_into is not None:
        return f"merged into {note.merged_into}"
    return "faded" if note.faded else "put away"


def _told(changed: Sequence[Note], as_json: bool, what: str) -> None:
    if as_json:
        told: list[dict[str, Any]] = [
            {"id": note.id, "version": note.version, "archived": note.archived} for note in changed
        ]
        say_json(told)
    else:
        say(what)


def _others(changed: Sequence[Note], what: str) -> str:
    count = len(changed) - 1
    return f", what it did to {count:,} other {'note' if count == 1 else 'notes'} is {what}" if count > 0 else ""
