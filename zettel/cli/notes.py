"""Single notes: add, show, history, revert, delete."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from zettel.errors import InvalidInput

from .common import common, console, day_and_time, key_values, remark, say, say_json

if TYPE_CHECKING:
    from zettel.model import Note, Revision

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
    text = sys.stdin.read() if content == "-" else content
    with options.memory(create=True) as memory:
        made = memory.add(
            text, id=id, title=title, role=role, occurred_at=at, session=session,
            metadata=key_values(metadata, "--meta"),
        )  # fmt: skip
    if options.json:
        say_json({"id": made})
    else:
        say(made)


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
    fields = {name: value for name, value in shown.model_dump(mode="json").items() if value not in NOTHING}
    if fields.get("parts") == 1:
        fields = {name: value for name, value in fields.items() if name not in ("part", "parts")}
    if options.json:
        say_json(shown.model_dump(mode="json") | ({"terms": terms} if terms else {}))
        return
    from .layout import labelled

    rows = [(name, _value(value)) for name, value in fields.items()]
    if terms:
        rows.append(("terms", ", ".join(f"{term.text} ({term.notes})" for term in terms)))
    labelled(console(), rows)


def history(ctx: typer.Context, id: str = typer.Argument(metavar="ID", help="A note.")) -> None:
    """Show every version of a note: what changed, when and why.

    \b
    Example:
      zettel history n_3f9a…
    """
    options = common(ctx)
    with options.memory() as memory:
        revisions = memory.history(id)
    if options.json:
        say_json(revisions)
        return
    from rich.text import Text

    from .layout import paragraph

    out = console()
    before: dict[str, Any] = {}
    for place, revision in enumerate(revisions):
        if place:
            out.print()
        after = _state(revisions[: place + 1])
        cause = ", ".join(part for part in (revision.cause.by, revision.cause.model, revision.cause.prompt) if part)
        heading = Text(f"version {revision.version}", style="bold")
        heading.append(f"  {day_and_time(revision.recorded_at)} UTC  {cause}", style="dim")
        if revision.undoes:
            taken = ", ".join(str(version) for version in revision.undoes)
            heading.append(f"  takes back {taken}", style="yellow")
        if not revision.live:
            heading.append("  taken back", style="yellow")
        paragraph(out, heading, hang=2)
        for line, style in _diff(before, after):
            paragraph(out, Text(line, style=style), indent=2, hang=4)
        for link in revision.links:
            paragraph(out, Text(f"+ {link.type.value} {link.target}  {link.reason}", style="green"), indent=2, hang=4)
        before = after


def revert(
    ctx: typer.Context,
    id: str = typer.Argument(metavar="ID", help="A note."),
    version: int = typer.Argument(metavar="VERSION", help="The version that it shall be again."),
) -> None:
    """Bring a note back to a version it had. What is taken back stays in its history.

    \b
    Example:
      zettel revert n_3f9a… 2
    """
    options = common(ctx)
    with options.memory() as memory:
        note = memory.revert(id, version)
    _told(options.json, note, f"{note.id} is as in version {version} again (now version {note.version})")


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
    if options.json:
        say_json({"deleted": gone})
    else:
        say("1 note is gone" if gone == 1 else f"{gone} notes are gone")


def _told(as_json: bool, note: Note, line: str) -> None:
    if as_json:
        say_json(note)
    else:
        say(line)


def _what(found: Any) -> str:
    text = " ".join(found.content.split())
    return f"“{text[:60]}{'…' if len(text) > 60 else ''}” and all that came from it"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_value(one) for one in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}={_value(one)}" for name, one in value.items() if one is not None)
    return str(value)


def _state(revisions: Sequence[Revision]) -> dict[str, Any]:
    """The fields that these revisions give, in order, without those that a later one of them took back."""
    from zettel.fold import live_versions

    live = live_versions(revisions)
    state: dict[str, Any] = {}
    for revision in revisions:
        if revision.version in live:
            state.update(revision.change)
    return state


def _diff(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str]]:
    """Lines with their colours: a field that went or changed with -, one that came or changed with +."""
    lines: list[tuple[str, str]] = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if old not in (None, "", [], {}):
            lines.append((f"- {name}: {_value(old)}", "red"))
        if new not in (None, "", [], {}):
            lines.append((f"+ {name}: {_value(new)}", "green"))
    return lines
