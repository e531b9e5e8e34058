"""The commands archive, unarchive, review, confirm, quarantine and release."""

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


def review(ctx: typer.Context) -> None:
    """List the notes that wait for a person to confirm them.

    These are notes of writers without full trust, and notes that look like instructions. Searches find them, but the
    core memory, the profile, lessons and insights leave them out. Confirm or quarantine them.

    \b
    Examples:
      zettel review
      zettel review --json
    """
    options = common(ctx)
    with options.memory() as memory:
        page = memory.review(limit=500)
        waiting = list(page.notes)
        while page.cursor is not None:
            page = memory.review(limit=500, cursor=page.cursor)
            waiting += page.notes
        first = [note.event_ids[0] for note in waiting[:SHOWN]]
        writers = {} if options.json else {id: getattr(memory.get(id), "principal", "") for id in first}
    if options.json:
        print_json(waiting)
        return
    for note in waiting[:SHOWN]:
        reasons = [f"trust {note.trust:g}", writers[note.event_ids[0]], ", ".join(note.flags)]
        text = " ".join((note.caption or note.content).split())[:80]
        echo(f"{note.id}  {'; '.join(filter(None, reasons))}: {text}")
    if not waiting:
        echo("no notes")
    elif len(waiting) > SHOWN:
        echo(f"and {len(waiting) - SHOWN:,} more; --json lists all")


def confirm(ctx: typer.Context, id: str = typer.Argument(metavar="ID", help="A note.")) -> None:
    """Confirm a note that waits for review.

    It gets the trust of its role, and no flags. zettel revert undoes it.

    \b
    Example:
      zettel confirm n_3f9a…
    """
    options = common(ctx)
    with options.memory() as memory:
        changed = memory.confirm(id)
    _report(changed, options.json, f"{id} is confirmed")


PRINCIPAL = typer.Option(None, "--principal", metavar="NAME", help="A writer, such as key:3f9a… or import:chat.txt.")


def quarantine(
    ctx: typer.Context,
    id: str | None = typer.Argument(None, metavar="[ID]", help="A note."),
    reason: str = typer.Option("", "--reason", metavar="TEXT", help="The reason, stored with the note."),
    principal: str | None = PRINCIPAL,
) -> None:
    """Quarantine a note or a writer, or list quarantined notes.

    Jobs ignore the notes, and only search --quarantined finds them. Their effects are reverted: notes derived from them
    are archived, and changes that they caused in other notes are undone. The changes of a writer are undone, too.

    \b
    Examples:
      zettel quarantine n_3f9a… --reason "claims to be a system message"
      zettel quarantine --principal key:3f9a… --reason "the key was stolen"
      zettel quarantine
    """
    options = common(ctx)
    chosen = id is not None or principal is not None
    with options.memory() as memory:
        changed = memory.quarantine(id, reason, principal=principal) if chosen else None
        quarantined = [] if chosen else [note for note in _archived(memory) if note.quarantined is not None]
    if changed is None:
        _list(quarantined, options.json)
    elif principal is not None:
        _report(changed, options.json, f"{principal} is quarantined; {_count(changed)} changed")
    else:
        _report(changed, options.json, f"{id} is quarantined{_other_notes(changed, 'reverted')}")


def release(
    ctx: typer.Context,
    id: str | None = typer.Argument(None, metavar="[ID]", help="A note."),
    principal: str | None = PRINCIPAL,
) -> None:
    """Release a note or a writer from quarantine.

    Its effects are restored, too.

    \b
    Examples:
      zettel release n_3f9a…
      zettel release --principal key:3f9a…
    """
    options = common(ctx)
    with options.memory() as memory:
        changed = memory.release(id, principal=principal)
    if principal is not None:
        _report(changed, options.json, f"{principal} is released; {_count(changed)} changed")
    else:
        _report(changed, options.json, f"{id} is released{_other_notes(changed, 'restored')}")


def _count(changed: Sequence[Note]) -> str:
    return "1 note" if len(changed) == 1 else f"{len(changed):,} notes"


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
    others = changed[1:]
    return f"; its effects on {_count(others).replace(' ', ' other ')} are {verb}" if others else ""
