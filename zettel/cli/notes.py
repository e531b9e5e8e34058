"""Single notes: add, show, delete."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from zettel.errors import InvalidInput

from .common import common, console, key_values, remark, say, say_json

if TYPE_CHECKING:
    from zettel import Memory, Note
    from zettel.model import EventRecord

NOTHING: tuple[Any, ...] = (None, "", [], {})
"""Values of fields that people are not shown."""


def add(
    ctx: typer.Context,
    content: str = typer.Argument(metavar="TEXT", help="What happened; - reads it from stdin."),
    role: str | None = typer.Option(None, "--role", help="Who said or did it."),
    session: str | None = typer.Option(None, "--session", help="The conversation it belongs to."),
    title: str | None = typer.Option(None, "--title", help="A title that other notes may name it by."),
    at: str | None = typer.Option(None, "--at", metavar="TIME", help="When it happened, as 2024-05-01T09:00Z."),
    id: str | None = typer.Option(None, "--id", help="Your own key for it; the same key is stored once."),
    metadata: list[str] = typer.Option([], "--meta", metavar="NAME=VALUE", help="Anything to filter by."),
) -> None:
    """Remember one event.

    \b
    Examples:
      zettel add "Ann moved to Oslo." --role Ann --at 2024-05-01T09:00Z
      pbpaste | zettel add - --title "Minutes of May" --meta project=fjord
    """
    options = common(ctx)
    text = _from_stdin() if content == "-" else content
    with options.memory(create=True) as memory:
        made = memory.add(
            text, id=id, title=title, role=role, occurred_at=at, session=session,
            metadata=key_values(metadata, "--meta"),
        )  # fmt: skip
    if options.json:
        say_json({"id": made})
    else:
        say(made)


def _from_stdin() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        at = f"byte {error.start + 1}, {error.reason}"
        raise InvalidInput(f"stdin is not {error.encoding} ({at}): convert it first, as iconv does") from None


def show(ctx: typer.Context, id: str = typer.Argument(metavar="ID", help="A note (n_…) or an event (e_…).")) -> None:
    """Show a note with all its fields, or an event.

    \b
    Example:
      zettel show n_3f9a…
    """
    options = common(ctx)
    with options.memory() as memory:
        shown = memory.get(id)
        terms = memory.terms(id) if id.startswith("n_") else []
        origins = _origins(memory, shown)
    fields = {name: value for name, value in shown.model_dump(mode="json").items() if value not in NOTHING}
    if not fields.get("faded"):
        fields.pop("faded", None)
    if fields.get("parts") == 1:
        fields = {name: value for name, value in fields.items() if name not in ("part", "parts")}
    if options.json:
        say_json(shown.model_dump(mode="json") | ({"terms": terms} if terms else {}))
        return
    from .layout import in_line, labelled

    rows = [(name, in_line(value)) for name, value in fields.items()]
    if origins:
        rows.append(("from", "; ".join(origins)))
    if terms:
        rows.append(("terms", ", ".join(f"{term.text} ({term.notes})" for term in terms)))
    labelled(console(), rows)


def _origins(memory: Memory, shown: Note | EventRecord) -> list[str]:
    """Who said what a note rests on, and where that was read."""
    found: dict[str, None] = {}
    for id in getattr(shown, "event_ids", ()):
        event = memory.get(id)
        told = ", ".join(str(part) for part in (event.role, getattr(event, "source", None)) if part)
        found.update({told: None} if told else {})
    return list(found)


def delete(
    ctx: typer.Context,
    id: str | None = typer.Argument(None, metavar="[ID]", help="A note or an event."),
    source: str | None = typer.Option(None, "--source", metavar="FILE", help="All that was read from this file."),
    session: str | None = typer.Option(None, "--session", metavar="NAME", help="All of this session."),
    scope: bool = typer.Option(False, "--scope", help="All of the scope that --tenant, --user, --agent name."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask."),
) -> None:
    """Destroy events and notes for good. What was derived from them goes too.

    \b
    Examples:
      zettel delete n_3f9a…
      zettel delete --source chat.json --yes
      zettel delete --scope --user ann
    """
    options = common(ctx)
    if sum([id is not None, source is not None, session is not None, scope]) != 1:
        raise InvalidInput("say what to delete, one of: an ID, --source, --session, --scope")
    with options.memory() as memory:
        if id is not None:
            what = _what(memory.get(id))
        elif scope:
            what = f"all of {options.scope()} ({memory.stats(scope=options.scope())['notes']} notes)"
        else:
            what = f"all from the file {source}" if source is not None else f"all of the session {session}"
        if not yes and not sys.stdin.isatty():
            raise InvalidInput(f"this would destroy {what}, and nobody can be asked here: --yes does it")
        if not yes and not typer.confirm(f"Destroy {what}, for good?", err=True):
            remark("zettel: nothing was deleted")
            raise typer.Exit(1)
        gone = memory.delete_scope() if scope else memory.delete(id, source=source, session=session)
    if not gone and not scope:
        raise InvalidInput(f"{what} is nothing in this scope: `zettel show NOTE` tells where a note is from")
    if options.json:
        say_json({"deleted": gone})
    else:
        say("1 note is gone" if gone == 1 else f"{gone} notes are gone")


def _what(found: Any) -> str:
    text = " ".join(found.content.split())
    return f"“{text[:60]}{'…' if len(text) > 60 else ''}” and all that came from it"
