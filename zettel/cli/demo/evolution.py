"""``zettel demo --evolution``: notes before and after evolving, a history, a revert and a deletion."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zettel.cli.history import show_history
from zettel.cli.layout import paragraph
from zettel.model import EventRecord

if TYPE_CHECKING:
    from rich.console import Console

    from zettel import Memory
    from zettel.model import Evolved, Note

    from .graph import MemoryGraph
    from .panels import Panel

PAGE = "zettel-evolution.html"
CENTRE = "The door leaked again"
"""Start of the note whose neighbourhood is shown; it does not name the door."""
BEFORE, AFTER = "Before: as the messages arrived", "After: keywords from neighbouring notes"
DELETED = "I mended the door of Ostara"
"""Start of the message that is deleted with its repetition."""


def run_tour(memory: Memory, terminal: Console, page: Path) -> dict[str, Any]:
    """Print and draw the tour; return the report for ``--json``."""
    from rich.text import Text

    from .graph import read_graph
    from .panels import render_panels

    events = json.loads(files(__package__).joinpath("neighbourhood.json").read_text(encoding="utf-8"))
    ids = memory.add_many(events)
    memory.flush()
    centre = _find(memory, ids, CENTRE)
    before = read_graph(memory)
    paragraph(terminal, Text("Two potters and their kiln: notes that evolve", style="bold"))
    terminal.print(Text(f"{len(events)} messages added.\n"))

    changed = memory.evolve()
    paragraph(terminal, Text("zettel evolve", style="bold cyan").append(f"  {_counts(changed)}", style=""))
    after = read_graph(memory)
    for note in _insights(memory):
        paragraph(terminal, Text(f"A new insight: {note.content}"), indent=2)

    paragraph(terminal, Text(f"\nzettel history {centre}", style="bold cyan"))
    show_history(terminal, memory, memory.history(centre))

    evolved = _note(memory, centre)
    reverted = memory.revert(centre, evolved.version - 1)
    paragraph(terminal, Text(f"\nzettel revert {centre} {evolved.version - 1}", style="bold cyan"))
    paragraph(terminal, Text(f"keywords: {_keywords(evolved)} → {_keywords(reverted)}; history has both"), indent=2)

    repeated = _find(memory, ids, DELETED)
    deleted_events = set(_note(memory, repeated).event_ids)
    derived = [note.id for note in _insights(memory) if not deleted_events.isdisjoint(note.event_ids)]
    memory.delete(repeated)
    memory.flush()
    left = {note.id for note in _insights(memory)}
    deleted_ids = [id for id in derived if id not in left]
    paragraph(terminal, Text(f"\nzettel delete {repeated}", style="bold cyan"))
    effect = f"deleted with its repetition, and {len(deleted_ids)} of the insights, which quoted it"
    paragraph(terminal, Text(effect), indent=2)

    shown_ids = _neighbourhood(centre, before, after)
    drawn = [_panel(BEFORE, centre, shown_ids, before), _panel(AFTER, centre, shown_ids, after)]
    page.write_text(render_panels(drawn, bare=page.suffix == ".svg"), encoding="utf-8")
    paragraph(terminal, Text("\nBefore and after, drawn: ").append(str(page), style="bold cyan"))
    return {
        "evolved": changed._asdict(),
        "note": centre,
        "learned": list(evolved.keywords),
        "reverted": list(reverted.keywords),
        "deleted": {"note": repeated, "insights": deleted_ids},
        "page": str(page),
    }


def _neighbourhood(centre: str, before: MemoryGraph, after: MemoryGraph) -> set[str]:
    """Return the ids of a note, of notes at most two links away, and of insights derived from it."""
    shown_ids = {centre}
    for _ in range(2):
        shown_ids |= {
            end for link in before.links for end in (link.source, link.target) if {link.source, link.target} & shown_ids
        }
    return shown_ids | {link.source for link in after.links if link.target == centre}


def _panel(title: str, centre: str, shown_ids: set[str], graph: MemoryGraph) -> Panel:
    from .panels import Panel

    links = [(link.source, link.target, link.type.value) for link in graph.links]
    shown = {note.id for note in graph.notes} & shown_ids
    notes = [note for note in graph.notes if note.id in shown]
    return Panel(title, centre, notes, sorted(link for link in links if {*link[:2]} <= shown))


def _insights(memory: Memory) -> Sequence[Note]:
    return memory.list(kinds=["insight"]).notes


def _find(memory: Memory, ids: Sequence[str], words: str) -> str:
    return next(id for id in ids if _note(memory, id).content.startswith(words))


def _note(memory: Memory, id: str) -> Note:
    note = memory.get(id)
    assert not isinstance(note, EventRecord)
    return note


def _keywords(note: Note) -> str:
    return ", ".join(note.keywords)


def _counts(changed: Evolved) -> str:
    return ", ".join(f"{count} {name}" for name, count in changed._asdict().items() if count)
