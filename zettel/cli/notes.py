"""The commands add, show and delete."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

import typer

from zettel.errors import InvalidInput, NotFound

from .common import (
    EMPTY,
    ROLE_HELP,
    common,
    console,
    echo,
    key_values,
    notify,
    print_json,
    require_consent,
    seconds_of,
)

if TYPE_CHECKING:
    from zettel import Memory, Note
    from zettel.model import EventRecord, OnConflict, Role


def add(
    ctx: typer.Context,
    content: str = typer.Argument(metavar="TEXT", help="Text of the event; - reads it from stdin."),
    speaker: str | None = typer.Option(None, "--speaker", help="The name of the speaker."),
    role: str | None = typer.Option(None, "--role", help=ROLE_HELP),
    session: str | None = typer.Option(None, "--session", help="The conversation to which the event belongs."),
    title: str | None = typer.Option(None, "--title", help="A title. Notes that mention it get a link."),
    at: str | None = typer.Option(None, "--at", metavar="TIME", help="Time of the event, such as 2024-05-01T09:00Z."),
    id: str | None = typer.Option(None, "--id", help="Your own id. zettel stores each id once."),
    metadata: list[str] = typer.Option([], "--meta", metavar="NAME=VALUE", help="Metadata to filter by. Repeatable."),
    tag: list[str] = typer.Option([], "--tag", help="A tag for the note. Repeatable."),
    importance: float | None = typer.Option(None, "--importance", min=0, max=1, help="Importance from 0 to 1."),
    pin: bool = typer.Option(False, "--pin", help="Put the note into every prompt. It never decays."),
    ttl: str | None = typer.Option(
        None, "--ttl", metavar="PERIOD", help="Let the event expire after this period, such as 30d or 12h."
    ),
    expires_at: str | None = typer.Option(
        None, "--expires-at", metavar="TIME", help="Let the event expire at this time."
    ),
    on_conflict: str = typer.Option(
        "error", "--on-conflict", help="What happens if the --id has other content: error, skip or revise."
    ),
) -> None:
    """Store one event and print the id of its note.

    \b
    Examples:
      zettel add "Ann moved to Oslo." --speaker Ann --at 2024-05-01T09:00Z
      pbpaste | zettel add - --title "Minutes of May" --meta project=fjord
      zettel add "The door code is 4711." --ttl 7d
    """
    options = common(ctx)
    text = _read_stdin() if content == "-" else content
    with options.memory(create=True) as memory:
        note_id = memory.add(
            text, id=id, title=title, speaker=speaker, role=cast("Role | None", role), occurred_at=at, session=session,
            metadata=key_values(metadata, "--meta"), tags=tag, importance=importance, pinned=pin,
            expires_at=expires_at, ttl=None if ttl is None else seconds_of(ttl, "--ttl"),
            on_conflict=cast("OnConflict", on_conflict),
        )  # fmt: skip
    if options.json:
        print_json({"id": note_id})
    else:
        echo(note_id)


def _read_stdin() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        at = f"byte {error.start + 1}, {error.reason}"
        raise InvalidInput(f"stdin is not {error.encoding} ({at}): convert it first, for example with iconv") from None


def show(ctx: typer.Context, id: str = typer.Argument(metavar="ID", help="A note (n_…) or an event (e_…).")) -> None:
    """Show all fields of a note or an event.

    \b
    Examples:
      zettel show n_3f9a…
    """
    options = common(ctx)
    with options.memory() as memory:
        shown = memory.get(id)
        terms = [] if hasattr(shown, "event_id") else memory.terms(id)
        origins = _origins(memory, shown)
    fields = {name: value for name, value in shown.model_dump(mode="json").items() if value not in EMPTY}
    if not fields.get("faded"):
        fields.pop("faded", None)
    if fields.get("ceiling") == 1:
        fields.pop("ceiling")
    if fields.get("parts") == 1:
        fields = {name: value for name, value in fields.items() if name not in ("part", "parts")}
    if options.json:
        print_json(shown.model_dump(mode="json") | ({"terms": terms} if terms else {}))
        return
    from .layout import in_line, labelled

    rows = [(name, in_line(value)) for name, value in fields.items()]
    if origins:
        rows.append(("from", "; ".join(origins)))
    if terms:
        rows.append(("terms", ", ".join(f"{term.text} ({term.notes})" for term in terms)))
    labelled(console(), rows)


def _origins(memory: Memory, shown: Note | EventRecord) -> list[str]:
    """Return the speakers, sources and principals of the events of a note."""
    origins: dict[str, None] = {}
    for id in getattr(shown, "event_ids", ()):
        event = memory.get(id)
        parts = (event.speaker, getattr(event, "source", None), getattr(event, "principal", None))
        origin = ", ".join(str(part) for part in parts if part)
        origins.update({origin: None} if origin else {})
    return list(origins)


def delete(
    ctx: typer.Context,
    id: str | None = typer.Argument(None, metavar="[ID]", help="A note or an event."),
    source: str | None = typer.Option(None, "--source", metavar="FILE", help="Everything imported from this file."),
    session: str | None = typer.Option(None, "--session", metavar="NAME", help="Everything in this session."),
    scope: bool = typer.Option(False, "--scope", help="Everything in the scope of --tenant, --user and --agent."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Delete without asking."),
) -> None:
    """Delete events and notes for good. Everything derived from them is deleted too.

    \b
    Examples:
      zettel delete n_3f9a…
      zettel delete --source chat.json --yes
      zettel delete --scope --user ann
    """
    options = common(ctx)
    if sum([id is not None, source is not None, session is not None, scope]) != 1:
        raise InvalidInput("pass exactly one of: an ID, --source, --session, --scope")
    with options.memory() as memory:
        if id is not None:
            target = _described(memory.get(id))
        elif scope:
            notes = memory.stats(scope=options.scope())["notes"]
            if not notes and options.scope() not in memory.scopes():  # a scope without notes may have tombstones
                notify(options.no_notes())
                raise typer.Exit(1)
            target = f"all of {options.scope()} ({notes} notes)"
        elif session is not None:
            if not any(memory.list(session=session, archived=hidden, limit=1).notes for hidden in (False, True)):
                hint = "`zettel query --by session` lists them"
                raise NotFound(f"the sessions of {options.scope()}", [session], hint)
            target = f"the session {session}"
        else:
            target = f"everything from the file {source}"
        require_consent(yes, f"this would delete {target}")
        if not yes and not typer.confirm(f"Delete {target} for good?", err=True):
            notify("zettel: nothing was deleted")
            raise typer.Exit(1)
        count = memory.delete_scope() if scope else memory.delete(id, source=source, session=session)
    if not count and not scope:
        raise NotFound(f"the sources of {options.scope()}", [source], "`zettel show NOTE` prints its source")
    if options.json:
        print_json({"deleted": count})
    else:
        echo("1 note deleted" if count == 1 else f"{count} notes deleted")


def _described(record: Any) -> str:
    text = " ".join(record.content.split())
    return f"“{text[:60]}{'…' if len(text) > 60 else ''}” and everything derived from it"
