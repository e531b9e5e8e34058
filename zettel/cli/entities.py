"""The commands entities and entity: who and what the notes name; merges and splits of names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from zettel.errors import InvalidInput

from .common import common, console, echo, notify, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from zettel import Memory
    from zettel.model import EntityDetails, EntityKind, Note

SNIPPET = 146
"""Characters of a note in the timeline: two lines on 80 columns."""
MERGE, SPLIT = "merge", "split"


def entities(
    ctx: typer.Context,
    kind: str | None = typer.Option(None, "--kind", metavar="KIND", help="person, organisation, place or thing."),
    limit: int = typer.Option(50, "--limit", min=1, help="Number of entities, the most frequent first."),
    cursor: str | None = typer.Option(None, "--cursor", metavar="TEXT", help="Continue after an earlier page."),
) -> None:
    """List persons, organisations, places and things in the notes.

    \b
    Examples:
      zettel entities
      zettel entities --kind person --json
    """
    options = common(ctx)
    chosen: EntityKind | None = kind  # type: ignore[assignment]  # checked by the memory
    with options.memory() as memory:
        page = memory.entities(kind=chosen, limit=limit, cursor=cursor)
    if options.json:
        print_json(page)
        return
    from .layout import column, heading

    if not page.entities:
        notify("zettel: the notes name no entity of a known kind")
        return
    names, kinds = column(each.name for each in page.entities), column(each.kind or "" for each in page.entities)
    counts = column(str(each.notes) for each in page.entities)
    out = console()
    for each in page.entities:
        heading(
            out,
            (str(each.notes).rjust(counts), "bold green"),
            (each.name.ljust(names), "bold"),
            ((each.kind or "").ljust(kinds), "cyan"),
            (", ".join(each.aliases), "dim"),
        )
    if page.cursor is not None:
        notify(f"zettel: there are more: --cursor {page.cursor}")


def entity(
    ctx: typer.Context,
    words: list[str] = typer.Argument(
        metavar="NAME | merge NAME OTHER | split NAME OTHER", help="A name of the entity."
    ),
    reason: str = typer.Option("", "--reason", metavar="TEXT", help="The reason of a merge or split, stored with it."),
    limit: int = typer.Option(10, "--limit", min=1, help="Number of facts, dated notes and neighbours."),
) -> None:
    """Show an entity: its facts, timeline and neighbours. Or merge two names into one entity, or split them.

    revert with the printed id and version 1 reverts a merge or a split.

    \b
    Examples:
      zettel entity Ann
      zettel entity "my wife" --json
      zettel entity merge "Ann Berg" Annie --reason "her nickname"
      zettel entity split Ann "Ann Berg"
    """
    options = common(ctx)
    decides = words[0] in (MERGE, SPLIT) and len(words) > 1
    if len(words) != (3 if decides else 1):
        raise InvalidInput('write one name, or merge or split and two names; quote names with spaces: "Ann Berg"')
    with options.memory() as memory:
        if decides:
            note = _decide(memory, words, reason)
        else:
            details = memory.entity(words[0], limit=limit)
    if options.json:
        print_json(note if decides else details)
    elif decides:
        echo(f"{note.content} ({note.id})")
    else:
        _show(console(), details)


def _decide(memory: Memory, words: list[str], reason: str) -> Note:
    decide = memory.merge_entities if words[0] == MERGE else memory.split_entity
    return decide(words[1], words[2], reason=reason)


def _show(out: Console, entity: EntityDetails) -> None:
    from rich.text import Text

    from .layout import INDENT, column, day, heading, note_text, paragraph, who

    count = "1 note" if entity.notes == 1 else f"{entity.notes} notes"
    heading(out, (entity.name, "bold"), (entity.kind or "", "cyan"), (count, "green"))
    for merge in entity.merges:
        id = f" ({merge.note})" if merge.note else ""
        why = f": {merge.reason}" if merge.reason else ""
        paragraph(out, Text(f"{' = '.join(merge.names)}, by {merge.by}{why}{id}", style="dim"), indent=2, hang=2)
    if entity.facts:
        out.print()
        paragraph(out, Text("Facts", style="bold"))
    for fact in entity.facts:
        since = fact.valid_from.date().isoformat() if fact.valid_from else ""
        until = f" until {fact.valid_to.date().isoformat()}" if fact.valid_to else ""
        outdated = " (outdated)" if not fact.current and not until else ""
        text = f"{since}{until}  {fact.attribute}: {fact.text}{outdated}".strip()
        paragraph(out, Text(text, style="" if fact.current else "dim strike"), indent=2, hang=4)
    if entity.timeline:
        out.print()
        paragraph(out, Text("Timeline", style="bold"))
    names = column(map(who, entity.timeline))
    for note in entity.timeline:
        heading(out, (f"  {day(note)}", "cyan"), (who(note).ljust(names), "magenta"), (note.id, "dim"))
        paragraph(out, note_text(note, SNIPPET), indent=INDENT)
    if entity.neighbors:
        out.print()
        paragraph(out, Text("Named together", style="bold"))
        paragraph(out, Text(", ".join(f"{near.name} ({near.count})" for near in entity.neighbors)), indent=2)
