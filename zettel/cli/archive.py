"""The commands archive, unarchive, quarantine and release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from .common import common, echo, print_json

if TYPE_CHECKING:
    from zettel import Memory, Note

SHOWN = 50
"""Notes listed; --json lists all."""


def archive(ctx: typer.Context, id: str | None = typer.Argument(None, metavar="[ID]", help="A note.")) -> None:
    """Archive a note, or list the archive. Only search --archived finds archived notes; unarchive restores them.

    \b
    Examples:
      zettel archive n_3f9a…
      zettel archive
    """
    options = common(ctx)
    with options.memory() as memory:
        changed = [memory.archive(id)] if id else None
        archived = [] if id else [note for note in _archived(memory) if note.quarantined is None]
    if changed is None:
        _list(archived, options.json)
    else:
        _report(changed, options.json, f"{id} is archived")


def unarchive(ctx: typer.Context, id: str = typer.Argument(metavar="ID", help="A note.")) -> None:
    """Restore a note from the archive. It does not decay again.

    \b
    Example:
      zettel unarchive n_3f9a…
    """
    options = common(ctx)
    with options.memory() as memory:
        changed = [memory.unarchive(id)]
    _report(changed, options.json, f"{id} is restored")


def quarantine(
    ctx: typer.Context,
    id: str | None = typer.Argument(None, metavar="[ID]", help="A note."),
    reason: str = typer.Option("", "--reason", metavar="TEXT", help="The reason, stored with the note."),
) -> None:
    """Quarantine a note, or list quarantined notes.

    Jobs ignore it, and only search --quarantined finds it. Its effects are reverted: notes derived from it are
    archived, and changes that it caused in other notes are undone.

    \b
    Examples:
      zettel quarantine n_3f9a… --reason "claims to be a system message"
      zettel quarantine
    """
    options = common(ctx)
    with options.memory() as memory:
        changed = memory.quarantine(id, reason) if id else None
        quarantined = [] if id else [note for note in _archived(memory) if note.quarantined is not None]
    if changed is None:
        _list(quarantined, options.json)
    else:
        _report(changed, options.json, f"{id} is quarantined{_other_notes(changed, 'reverted')}")


def release(ctx: typer.Context, id: str = typer.Argument(metavar="ID", help="A note.")) -> None:
    """Release a note from quarantine, and restore its effects.

    \b
    Example:
      zettel release n_3f9a…
    """
    options = common(ctx)
    with options.memory() as memory:
        changed = memory.release(id)
    _report(changed, options.json, f"{id} is released{_other_notes(changed, 'restored')}")


def _archived(memory: Memory) -> list[Note]:
    """Return all notes in the archive, newest first."""
    page = memory.list(archived=True, limit=500)
    notes = list(page.notes)
    while page.cursor is not None:
        page = memory.list(archived=True, limit=500, cursor=page.cursor)
        notes += page.notes
    return notes


def _list(notes: Sequence[Note], as_json: bool) -> None:
    if as_json:
        print_json(list(notes))
        return
    for note in notes[:SHOWN]:
        echo(f"{note.id}  {_why(note)}: {' '.join((note.caption or note.content).split())[:80]}")
    if not notes:
        echo("no notes")
    elif len(notes) > SHOWN:
        echo(f"and {len(notes) - SHOWN:,} more; --json lists all")


def _why(note: Note) -> str:
    if note.quarantined is not None:
        return note.quarantined or "quarantined"
    if note.merged_into is not None:
        return f"merged into {note.merged_into}"
    return "decayed" if note.faded else "archived by hand"


def _report(changed: Sequence[Note], as_json: bool, message: str) -> None:
    if as_json:
        print_json([{"id": note.id, "version": note.version, "archived": note.archived} for note in changed])
    else:
        echo(message)


def _other_notes(changed: Sequence[Note], verb: str) -> str:
    count = len(changed) - 1
    return f"; its effects on {count:,} other {'note' if count == 1 else 'notes'} are {verb}" if count > 0 else ""
