"""How answers stand in a terminal: a heading, and below it text that is indented and broken at the terminal's width.

Lines are broken here and not by a table, so that a long text has the whole width and no spaces trail behind it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .common import day_and_time

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from zettel.model import Note

INDENT = 6  # columns of what stands below a heading: as wide as a score and the gap after it
NARROWEST = 20  # columns left for text, however narrow the terminal is
WIDEST_NAME = 20  # columns of a speaker's name

_VISIBLE = (
    {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"}
    | {0x7F: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
)
"""Signs for control characters, which a terminal would obey if they stood in a text."""


def paragraph(out: Console, text: Text, *, indent: int = 0, hang: int = 0) -> None:
    """Print a text, indented; its second and further lines ``hang`` columns more."""
    from rich.text import Text

    for place, line in enumerate(_lines(out, text, indent + hang)):
        out.print(Text(" " * (indent + (hang if place else 0))).append(line), soft_wrap=True)


def labelled(out: Console, rows: Iterable[tuple[str, str]], *, indent: int = 0, style: str = "") -> None:
    """Print names in a column, each with its text beside it."""
    from rich.text import Text

    told = list(rows)
    widest = max((len(name) for name, _ in told), default=0) + 2
    for name, value in told:
        for place, line in enumerate(_lines(out, Text(value, style=style), indent + widest)):
            label = Text(" " * indent + ("" if place else name).ljust(widest), style=style or "cyan")
            out.print(Text.assemble(label, line), soft_wrap=True)


def heading(out: Console, *parts: tuple[str, str]) -> None:
    """Print one line of (text, style) parts, two columns apart; padded ones keep their width."""
    from rich.text import Text

    line = Text("  ").join([Text(text.translate(_VISIBLE), style=style) for text, style in parts if text])
    line.rstrip()
    out.print(line, soft_wrap=True)


def when(note: Note) -> str:
    """When it happened, to the minute; the day alone where no more is known; empty if not even that is."""
    told = day_and_time(note.occurred_at)
    return told.removesuffix(" 00:00")


def day(note: Note) -> str:
    """The day it happened; empty if that is not known."""
    return when(note)[: len("2024-05-01")]


def who(note: Note) -> str:
    """Who said or did it, not longer than a column of names may be wide."""
    name = note.role or ""
    return name if len(name) <= WIDEST_NAME else f"{name[: WIDEST_NAME - 1]}…"


def column(cells: Iterable[str]) -> int:
    """How wide a column must be for the widest of its cells."""
    return max(map(len, cells), default=0)


def said(note: Note, most: int | None = None) -> Text:
    """What the note says, as one paragraph, after its title; of the content ``most`` characters."""
    from rich.text import Text

    content = " ".join(note.content.split())
    if most is not None and len(content) > most:
        content = f"{content[: most - 1].rstrip()}…"
    text = Text(f"{note.title}: " if note.title else "", style="bold")
    return text.append(content, style="not bold")


def in_line(value: Any) -> str:
    """A field's value in one line."""
    if isinstance(value, list):
        return ", ".join(in_line(one) for one in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}={in_line(one)}" for name, one in value.items() if one is not None)
    return str(value)


def _lines(out: Console, text: Text, margin: int) -> Iterable[Any]:
    """The text broken into lines that fit beside a margin."""
    text = text.copy()
    text.plain = text.plain.translate(_VISIBLE)  # sign for sign, so its styles stay where they are
    lines = text.wrap(out, max(out.width - margin, NARROWEST), tab_size=4)
    for line in lines:
        line.rstrip()
    return lines or [text]
