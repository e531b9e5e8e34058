"""The commands history and revert: versions of a note as diffs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from zettel.errors import InvalidInput, NotFound

from .common import EMPTY, common, console, day_and_time, echo, print_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from zettel import Memory
    from zettel.model import Link, Revision

SHORT = 40
"""Characters of a caption that only identifies a note."""
TEXT_FIELDS = ("content", "title", "caption", "context")
"""Fields whose old and new values are printed on two lines; other fields fit on one line."""
SHOWN_INPUTS = 3
"""Input notes listed per revision; --json lists all."""
REMOVED, ADDED, MARKED = "red", "green", "yellow"


def history(ctx: typer.Context, id: str = typer.Argument(metavar="ID", help="A note.")) -> None:
    """Show every version of a note as a diff. Each one shows its cause and the notes that it was based on.

    \b
    Examples:
      zettel history n_3f9a…
    """
    options = common(ctx)
    with options.memory() as memory:
        revisions = memory.history(id)
        if not options.json:
            show_history(console(), memory, revisions)
    if options.json:
        print_json(revisions)


def show_history(out: Console, memory: Memory, revisions: Sequence[Revision]) -> None:
    """Print the versions of a note, each as a diff to the previous one."""
    from .layout import paragraph

    names = _names(memory, revisions)
    before: dict[str, Any] = {}
    links: dict[tuple[str, str, str], Link] = {}
    for place, revision in enumerate(revisions):
        if place:
            out.print()
        after, linked = _state(revisions[: place + 1])
        paragraph(out, _heading(revision, names), hang=2)
        lines = [*_diff(before, after), *_links_diff(links, linked, revision.note, names), *_inputs(revision, names)]
        for line in lines:
            paragraph(out, line, indent=2, hang=4)
        before, links = after, linked


def revert(
    ctx: typer.Context,
    id: str | None = typer.Argument(None, metavar="[ID]", help="A note."),
    version: int | None = typer.Argument(None, metavar="[VERSION]", help="The version to restore."),
    effects_of: str | None = typer.Option(
        None, "--effects-of", metavar="NOTE", help="Revert the changes that this note caused in other notes."
    ),
) -> None:
    """Revert a note to an earlier version. Reverted changes stay in its history.

    --effects-of reverts every change that jobs made to other notes because of one note, and archives the notes derived
    from it. The note itself does not change.

    \b
    Examples:
      zettel revert n_3f9a… 2
      zettel revert --effects-of n_3f9a…
    """
    options = common(ctx)
    if effects_of is not None and id is None:
        with options.memory() as memory:
            changed = memory.revert_effects(effects_of)
        if options.json:
            print_json([{"id": note.id, "version": note.version, "archived": note.archived} for note in changed])
            return
        for note in changed:
            state = "archived" if note.archived else "reverted"
            echo(f"{note.id} is {state} (now version {note.version}): {_short(note.caption)}")
        count = len(changed)
        echo(f"effects of {effects_of} reverted: {count} {'note' if count == 1 else 'notes'} changed")
        return
    if effects_of is not None or id is None or version is None:
        raise InvalidInput("pass ID and VERSION, or --effects-of NOTE")
    with options.memory() as memory:
        note = memory.revert(id, version)
    if options.json:
        print_json(note)
    else:
        echo(f"{note.id} is reverted to version {version} (now version {note.version})")


def _names(memory: Memory, revisions: Sequence[Revision]) -> dict[str, str]:
    """Return the captions of all notes that a history names."""
    ids = {revision.cause.note for revision in revisions}
    ids |= {end for revision in revisions for link in revision.links for end in (link.source, link.target)}
    ids |= {read.note for revision in revisions for read in revision.inputs}
    names: dict[str, str] = {}
    for id in sorted(id for id in ids if id is not None):
        try:
            note = memory.get(id)
        except NotFound:  # deleted since
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
        heading.append(f"  reverts {', '.join(map(str, revision.undoes))}", style=MARKED)
    if not revision.live:
        heading.append("  reverted", style=MARKED)
    return heading


def _state(revisions: Sequence[Revision]) -> tuple[dict[str, Any], dict[tuple[str, str, str], Link]]:
    """Return the fields and links after these revisions, without the reverted ones."""
    from zettel.core.fold import live_revisions

    state: dict[str, Any] = {}
    links: dict[tuple[str, str, str], Link] = {}
    for revision in live_revisions(revisions):
        state.update(revision.change)
        for source, target, type in revision.unlinks:
            links.pop((source, type.value, target), None)
        links.update({(link.source, link.type.value, link.target): link for link in revision.links})
    return state, links


def _diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Text]:
    """Return the changed fields: lists by removed and added items, texts on two lines, others on one."""
    from rich.text import Text

    from .layout import in_line

    lines: list[Text] = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new or (old in EMPTY and new in EMPTY):
            continue
        removed, added = in_line(old), in_line(new)
        if isinstance(old, list) and isinstance(new, list):
            removed = in_line([item for item in old if item not in new])
            added = in_line([item for item in new if item not in old])
        elif name not in TEXT_FIELDS and old not in EMPTY and new not in EMPTY:
            lines.append(Text.assemble(f"{name}: ", (removed, REMOVED), " → ", (added, ADDED)))
            continue
        if old not in EMPTY and removed:
            lines.append(Text(f"- {name}: {removed}", style=REMOVED))
        if new not in EMPTY and added:
            lines.append(Text(f"+ {name}: {added}", style=ADDED))
    return lines


def _links_diff(
    before: Mapping[tuple[str, str, str], Link],
    after: Mapping[tuple[str, str, str], Link],
    id: str,
    names: Mapping[str, str],
) -> list[Text]:
    from rich.text import Text

    lines: list[Text] = []
    for sign, style, links, other in (("-", REMOVED, before, after), ("+", ADDED, after, before)):
        for key, link in links.items():
            if key not in other:
                start = "" if link.source == id else f"{link.source}{names.get(link.source, '')} "
                end = f"{link.target}{names.get(link.target, '')}"
                lines.append(Text(f"{sign} {start}{link.type.value} {end}  {link.reason}", style=style))
    return lines


def _inputs(revision: Revision, names: Mapping[str, str]) -> list[Text]:
    """Return a line with the other notes that a revision was based on."""
    from rich.text import Text

    others = [read for read in revision.inputs if read.note != revision.note]
    if not others:
        return []
    shown = [f"{read.note} v{read.version}{names.get(read.note, '')}" for read in others[:SHOWN_INPUTS]]
    more = [f"{len(others) - SHOWN_INPUTS} more"] if len(others) > SHOWN_INPUTS else []
    return [Text(f"based on {', '.join([*shown, *more])}", style="dim")]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 1].rstrip()}…"
