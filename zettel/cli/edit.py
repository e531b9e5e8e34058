"""The commands edit and link."""

from __future__ import annotations

from typing import Any

import typer

from zettel.errors import InvalidInput

from .common import common, echo, key_values, print_json


def edit(
    ctx: typer.Context,
    id: str = typer.Argument(metavar="ID", help="A note, or your own id of an event."),
    text: str | None = typer.Option(None, "--text", help="The new text."),
    title: str | None = typer.Option(None, "--title", help="The new title; an empty one removes it."),
    tag: list[str] | None = typer.Option(None, "--tag", help="The tags that replace those of the note; repeatable."),
    importance: float | None = typer.Option(None, "--importance", min=0, max=1, help="Importance from 0 to 1."),
    pin: bool | None = typer.Option(None, "--pin/--unpin", help="Put the note into every prompt, or undo that."),
    valid_from: str | None = typer.Option(None, "--valid-from", metavar="TIME", help="Start of its validity."),
    valid_to: str | None = typer.Option(None, "--valid-to", metavar="TIME", help="End of its validity."),
    expires_at: str | None = typer.Option(
        None, "--expires-at", metavar="TIME", help="Time when the note expires; an empty one removes the expiry."
    ),
    meta: list[str] | None = typer.Option(None, "--meta", metavar="NAME=VALUE", help="Metadata to set; repeatable."),
) -> None:  # fmt: skip
    """Change a note, as a new version.

    history shows its versions, and revert undoes the change.

    \b
    Examples:
      zettel edit n_3f9a… --text "Ann moved to Oslo in May." --importance 0.9
      zettel edit n_3f9a… --pin --tag home
    """
    options = common(ctx)
    fields: dict[str, Any] = {
        "content": text, "importance": importance, "valid_from": valid_from, "valid_to": valid_to, "tags": tag
    }  # fmt: skip
    fields = {name: value for name, value in fields.items() if value is not None}
    fields |= {} if title is None else {"title": title or None}
    fields |= {} if expires_at is None else {"expires_at": expires_at or None}
    with options.memory() as memory:
        note: Any = memory.get(id)
        if not hasattr(note, "tags"):
            raise InvalidInput(f"{id} is an event, and events never change: edit its note")
        if meta:
            fields["metadata"] = note.metadata | key_values(meta, "--meta")
        if pin is not None:
            others = [name for name in fields.get("tags", note.tags) if name != "pinned"]
            fields["tags"] = [*others, *(["pinned"] if pin else [])]
        if not fields:
            choices = "--text, --title, --tag, --importance, --pin, --meta, --expires-at or a validity"
            raise InvalidInput(f"name what to change: {choices}")
        changed = memory.update(id, **fields)
    if options.json:
        print_json(changed)
    else:
        echo(f"{changed.id} is at version {changed.version}; `zettel revert {changed.id} {note.version}` undoes this")


def link(
    ctx: typer.Context,
    source: str = typer.Argument(metavar="SOURCE", help="The note that the link starts from; the newer one."),
    target: str = typer.Argument(metavar="TARGET", help="The note that it leads to."),
    type: str = typer.Option("RELATES", "--type", metavar="TYPE", help="RELATES, SUPERSEDES, UPDATES or CONTRADICTS."),
    reason: str = typer.Option("", "--reason", help="Why, in one sentence."),
) -> None:
    """Link two notes. unlink removes the link.

    \b
    Examples:
      zettel link n_3f9a… n_81c2… --reason "the same boat"
      zettel link n_3f9a… n_81c2… --type SUPERSEDES
    """
    options = common(ctx)
    with options.memory() as memory:
        made = memory.link(source, target, type, reason=reason)
    if options.json:
        print_json(made)
    else:
        echo(f"{made.source} —{made.type.value}→ {made.target}")
