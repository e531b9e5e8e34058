"""Layout of text in a terminal: headings and indented, wrapped paragraphs.

The module wraps lines itself, because a table leaves width unused and adds trailing spaces.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .common import day_and_time
from .terminal import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from zettel.model import Note

INDENT = 6  # columns of text below a heading: the width of a score and its gap
NARROWEST = 20  # least columns of text in a narrow terminal
WIDEST_NAME = 20  # columns of a speaker's name


def paragraph(out: Console, text: Text, *, indent: int = 0, hang: int = 0) -> None:
    """Print a text, indented; its second and later lines by ``hang`` more columns."""
    from rich.text import Text

    for place, line in enumerate(_lines(out, text, indent + hang)):
        out.print(Text(" " * (indent + (hang if place else 0))).append(line), soft_wrap=True)


def labelled(out: Console, rows: Iterable[tuple[str, str]], *, indent: int = 0, style: str = "") -> None:
    """Print (label, text) pairs in two columns."""
    from rich.text import Text

    pairs = list(rows)
    widest = max((len(name) for name, _ in pairs), default=0) + 2
    for name, value in pairs:
        for place, line in enumerate(_lines(out, Text(value, style=style), indent + widest)):
            label = Text(" " * indent + ("" if place else name).ljust(widest), style=style or "cyan")
            out.print(Text.assemble(label, line), soft_wrap=True)


def heading(out: Console, *parts: tuple[str, str]) -> None:
    """Print one line of (text, style) parts, two columns apart; padded parts keep their width."""
    from rich.text import Text

    line = Text("  ").join([Text(printable(text), style=style) for text, style in parts if text])
    line.rstrip()
    out.print(line, soft_wrap=True)


def when(note: Note) -> str:
    """Return the date to the minute; only the day if no time is known; empty if no date is known."""
    return day_and_time(note.occurred_at).removesuffix(" 00:00")


def day(note: Note) -> str:
    """Return the day; empty if it is not known."""
    return when(note)[: len("2024-05-01")]


def who(note: Note) -> str:
    """Return the speaker, cut to the width of the column."""
    name = note.speaker or ""
    return name if len(name) <= WIDEST_NAME else f"{name[: WIDEST_NAME - 1]}…"


def column(cells: Iterable[str]) -> int:
    """Return the width of a column with these cells."""
    return max(map(len, cells), default=0)


def note_text(note: Note, max_chars: int | None = None, text: str | None = None) -> Text:
    """Return the title and content of a note as one paragraph; the content in at most ``max_chars``.

    ``text`` replaces the content.
    """
    from rich.text import Text

    content = one_line(note.content if text is None else text)
    if max_chars is not None and len(content) > max_chars:
        content = f"{content[: max_chars - 1].rstrip()}…"
    title = Text(f"{note.title}: " if note.title else "", style="bold")
    return title.append(content, style="not bold")


def one_line(text: str) -> str:
    """Return a text without line breaks."""
    return " ".join(text.split())


def in_line(value: Any) -> str:
    """Return a field's value as text, a list and a dict on one line."""
    if isinstance(value, list):
        return ", ".join(in_line(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}={in_line(item)}" for name, item in value.items() if item is not None)
    return str(value)


def _lines(out: Console, text: Text, margin: int) -> Iterable[Any]:
    """Wrap the text into lines that fit beside a margin."""
    text = text.copy()
    text.plain = printable(text.plain)  # before lines are measured and wrapped
    lines = text.wrap(out, max(out.width - margin, NARROWEST), tab_size=4)
    for line in lines:
        line.rstrip()
    return lines or [text]
