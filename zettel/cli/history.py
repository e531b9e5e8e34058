"""A note's history as a diff: what each version changed, and why; and what is taken back of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from zettel.errors import InvalidInput, NotFound

from .common import common, console, day_and_time, say, say_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from zettel import Memory
    from zettel.model import Link, Revision

NOTHING: tuple[Any, ...] = (None, "", [], {})
"""Values of fields that people are not shown."""
SHORT = 40
"""Characters of a caption where it only says which note is meant."""
WORDED = ("content", "title", "caption", "context")
"""Fields of which old and new stand below each other; those of others stand in one line."""
SHOWN_INPUTS = 3
"""Notes that are named of those that stood before whoever decided; --json has all."""
WENT, CAME, MARKED = "red", "green", "yellow"


def history(ctx: typer.Context, id: str = typer.Argument(metavar="ID", help="A note.")) -> None:
    """Show every version of a note as a diff. With each stand its cause and the notes it was decided on.

    \b
    Example:
      zettel history n_3f9a…
    """
    options = common(ctx)
    with options.memory() as memory:
        revisions = memory.history(id)
        if not options.json:
            show_history(console(), memory, revisions)
    if options.json:
        say_json(revisions)


def show_history(out: Console, memory: Memory, revisions: Sequence[Revision]) -> None:
    """Print the versions of a note, each as a diff to the one before."""
    from .layout import paragraph

    names = _names(memory, revisions)
    before: dict[str, Any] = {}
    links: dict[tuple[str, str, str], Link] = {}
    for place, revision in enumerate(revisions):
        if place:
            out.print()
        after, linked = _state(revisions[: place + 1])
        paragraph(out, _heading(revision, names), hang=2)
        told = [*_diff(before, after), *_links_diff(links, linked, revision.note, names), *_inputs(revision, names)]
        for line in told:
            paragraph(out, line, indent=2, hang=4)
        before, links = after, linked


def revert(
    ctx: typer.Context,
    id: str | None = typer.Argument(None, metavar="[ID]", help="A note."),
    version: int | None = typer.Argument(None, metavar="[VERSION]", help="The version that it shall be again."),
    caused_by: str | None = typer.Option(
        None, "--caused-by", metavar="NOTE", help="Take back all that this note did to others."
    ),
) -> None:
    """Bring a note back to a version it had. What is taken back stays in its history.

    With --caused-by, all that jobs changed about other notes because of one note is taken back, and what was derived
    from it goes to the archive; the note itself stays.

    \b
    Examples:
      zettel revert n_3f9a… 2
      zettel revert --caused-by n_3f9a…
    """
    options = common(ctx)
    if caused_by is not None and id is None:
        with options.memory() as memory:
            changed = memory.take_back(caused_by)
        if options.json:
            say_json([{"id": note.id, "version": note.version, "archived": note.archived} for note in changed])
            return
        for note in changed:
            became = "in the archive" if note.archived else "without what was taken back"
            say(f"{note.id} is {became} (now version {note.version}): {_short(note.caption)}")
        count = len(changed)
        say(f"all that {caused_by} did is taken back: {count} {'note was' if count == 1 else 'notes were'} changed")
        return
    if caused_by is not None or id is None or version is None:
        raise InvalidInput("say what to take back: ID and VERSION, or --caused-by NOTE")
    with options.memory() as memory:
        note = memory.revert(id, version)
    if options.json:
        say_json(note)
    else:
        say(f"{note.id} is as in version {version} again (now version {note.version})")


def _names(memory: Memory, revisions: Sequence[Revision]) -> dict[str, str]:
    """Captions of all notes that a history names."""
    told = {revision.cause.note for revision in revisions} - {None}
    told |= {end for revision in revisions for link in revision.links for end in (link.source, link.target)}
    told |= {read.note for revision in revisions for read in revision.inputs}
    names: dict[str, str] = {}
    for id in sorted(one for one in told if one is not None):
        try:
            note = memory.get(id)
        except NotFound:  # deleted meanwhile
            continue
        names[id] = f" “{_short(getattr(note, 'caption', '') or note.content)}”"
    return names


def _heading(revision: Revision, names: Mapping[str, str]) -> Text:
    from rich.text import Text

    cause = ", ".join(part for part in (revision.cause.by, revision.cause.model, revision.cause.prompt) if part)
    heading = Text(f"version {revision.version}", style="bold")
    heading.append(f"  {day_and_time(revision.recorded_at)} UTC  {cause}", style="dim")
    if revision.cause.note not in (None, revision.note):
        heading.append(f"  because of {revision.cause.note}{names.get(revision.cause.note or '', '')}", style="dim")
    if revision.cause.reason:
        heading.append(f": {revision.cause.reason}", style="dim")
    if revision.undoes:
        heading.append(f"  takes back {', '.join(map(str, revision.undoes))}", style=MARKED)
    if not revision.live:
        heading.append("  taken back", style=MARKED)
    return heading


def _state(revisions: Sequence[Revision]) -> tuple[dict[str, Any], dict[tuple[str, str, str], Link]]:
    """The fields and links that these revisions give, in order, without those that a later one of them took back."""
    from zettel.fold import live_revisions

    state: dict[str, Any] = {}
    links: dict[tuple[str, str, str], Link] = {}
    for revision in live_revisions(revisions):
        state.update(revision.change)
        links.update({(link.source, link.type.value, link.target): link for link in revision.links})
    return state, links


def _diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Text]:
    """What became of each field: a list by what went and what came, wording in two lines, else both in one."""
    from rich.text import Text

    from .layout import in_line

    lines: list[Text] = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new or (old in NOTHING and new in NOTHING):
            continue
        went, came = in_line(old), in_line(new)
        if isinstance(old, list) and isinstance(new, list):
            went = in_line([one for one in old if one not in new])
            came = in_line([one for one in new if one not in old])
        elif name not in WORDED and old not in NOTHING and new not in NOTHING:
            lines.append(Text.assemble(f"{name}: ", (went, WENT), " → ", (came, CAME)))
            continue
        if old not in NOTHING and went:
            lines.append(Text(f"- {name}: {went}", style=WENT))
        if new not in NOTHING and came:
            lines.append(Text(f"+ {name}: {came}", style=CAME))
    return lines


def _links_diff(
    before: Mapping[tuple[str, str, str], Link],
    after: Mapping[tuple[str, str, str], Link],
    id: str,
    names: Mapping[str, str],
) -> list[Text]:
    from rich.text import Text

    lines: list[Text] = []
    for sign, style, there, other in (("-", WENT, before, after), ("+", CAME, after, before)):
        for key, link in there.items():
            if key not in other:
                start = "" if link.source == id else f"{link.source}{names.get(link.source, '')} "
                end = f"{link.target}{names.get(link.target, '')}"
                lines.append(Text(f"{sign} {start}{link.type.value} {end}  {link.reason}", style=style))
    return lines


def _inputs(revision: Revision, names: Mapping[str, str]) -> list[Text]:
    """The notes that stood before whoever decided, without the note itself."""
    from rich.text import Text

    others = [read for read in revision.inputs if read.note != revision.note]
    if not others:
        return []
    shown = [f"{read.note} v{read.version}{names.get(read.note, '')}" for read in others[:SHOWN_INPUTS]]
    more = [f"{len(others) - SHOWN_INPUTS} more"] if len(others) > SHOWN_INPUTS else []
    return [Text(f"decided on {', '.join([*shown, *more])}", style="dim")]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 1].rstrip()}…"
