"""``zettel demo --evolution``: notes before and after evolving, a history as a diff, one revert and one deletion."""

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

    from .gather import Gathered
    from .panels import Panel

PAGE = "zettel-evolution.html"
ABOUT = "The door leaked again"
"""How the note begins whose neighbourhood is shown: it does not say which door."""
BEFORE, AFTER = "Before: as the messages arrived", "After: what the notes around it had to tell"
DELETED = "I mended the door of Ostara"
"""How the message begins that is deleted, and its repetition."""


def chapter(memory: Memory, terminal: Console, page: Path) -> dict[str, Any]:
    """Print and draw the tour; return what ``--json`` prints."""
    from rich.text import Text

    from .gather import gather
    from .panels import panels

    events = json.loads(files(__package__).joinpath("neighbourhood.json").read_text(encoding="utf-8"))
    ids = memory.add_many(events)
    memory.flush()
    about = _begins(memory, ids, ABOUT)
    before = gather(memory)
    paragraph(terminal, Text("Two potters and their kiln: notes that evolve", style="bold"))
    terminal.print(Text(f"{len(events)} messages added.\n"))

    changed = memory.evolve()
    paragraph(terminal, Text("zettel evolve", style="bold cyan").append(f"  {_told(changed)}", style=""))
    after = gather(memory)
    for note in _insights(memory):
        paragraph(terminal, Text(f"A new insight: {note.content}"), indent=2)

    paragraph(terminal, Text(f"\nzettel history {about}", style="bold cyan"))
    show_history(terminal, memory, memory.history(about))

    learned = _note(memory, about)
    reverted = memory.revert(about, learned.version - 1)
    paragraph(terminal, Text(f"\nzettel revert {about} {learned.version - 1}", style="bold cyan"))
    paragraph(terminal, Text(f"keywords: {_listed(learned)} → {_listed(reverted)}; history has both"), indent=2)

    doomed = _begins(memory, ids, DELETED)
    events_of_it = set(_note(memory, doomed).event_ids)
    rests_on_it = [note.id for note in _insights(memory) if not events_of_it.isdisjoint(note.event_ids)]
    memory.delete(doomed)
    memory.flush()
    left = {note.id for note in _insights(memory)}
    gone = [id for id in rests_on_it if id not in left]
    paragraph(terminal, Text(f"\nzettel delete {doomed}", style="bold cyan"))
    paragraph(
        terminal, Text(f"deleted with its repetition, and {len(gone)} of the insights, which quoted it"), indent=2
    )

    near = _near(about, before, after)
    drawn = [_panel(BEFORE, about, near, before), _panel(AFTER, about, near, after)]
    page.write_text(panels(drawn, bare=page.suffix == ".svg"), encoding="utf-8")
    paragraph(terminal, Text("\nBefore and after, drawn: ").append(str(page), style="bold cyan"))
    return {
        "evolved": changed._asdict(),
        "note": about,
        "learned": list(learned.keywords),
        "reverted": list(reverted.keywords),
        "deleted": {"note": doomed, "insights": gone},
        "page": str(page),
    }


def _near(about: str, before: Gathered, after: Gathered) -> set[str]:
    """A note, what was linked with it, what was linked with that, and the insights that were made from it."""
    near = {about}
    for _ in range(2):
        near |= {
            end for link in before.links for end in (link.source, link.target) if {link.source, link.target} & near
        }
    return near | {link.source for link in after.links if link.target == about}


def _panel(title: str, about: str, near: set[str], graph: Gathered) -> Panel:
    from .panels import Panel

    links = [(link.source, link.target, link.type.value) for link in graph.links]
    shown = {note.id for note in graph.notes} & near
    notes = [note for note in graph.notes if note.id in shown]
    return Panel(title, about, notes, sorted(link for link in links if {*link[:2]} <= shown))


def _insights(memory: Memory) -> Sequence[Note]:
    return memory.list(kinds=["insight"]).notes


def _begins(memory: Memory, ids: Sequence[str], words: str) -> str:
    return next(id for id in ids if _note(memory, id).content.startswith(words))


def _note(memory: Memory, id: str) -> Note:
    note = memory.get(id)
    assert not isinstance(note, EventRecord)
    return note


def _listed(note: Note) -> str:
    return ", ".join(note.keywords)


def _told(changed: Evolved) -> str:
    return ", ".join(f"{count} {name}" for name, count in changed._asdict().items() if count)
