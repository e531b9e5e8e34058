"""Drawings of one neighbourhood of notes at several times, one below the other, as SVG or HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape
from math import cos, pi, sin
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zettel.model import Note

WIDTH, HEIGHT = 1200, 620
"""Units of one panel."""
CARD = (262, 92)
LETTERS, WORDS = 35, 38  # characters per line of a card: of its text, and of its keywords
LINES = 3
ACROSS, DOWN = 448, 238  # half axes of the ellipse of neighbours
INSIGHT = "insight"

STYLE = """
  .page { fill: #ffffff } .card { fill: #f5f7fa; stroke: #b9c2cf } .about { stroke: #0b7285; stroke-width: 2.5 }
  .insight { fill: #fdf6ec; stroke: #b4690e } .ink { fill: #1d2733 } .soft { fill: #566273 }
  .learned { fill: #0b7285; font-weight: 700 } .link { stroke: #8793a3; fill: none }
  .DERIVED_FROM { stroke: #b4690e; stroke-dasharray: 4 5 } 
  .SUPERSEDES, .UPDATES, .CONTRADICTS { stroke: #c0392b; stroke-width: 2 }
  text { font-size: 13px } .head { font-size: 18px; font-weight: 650 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #11161d } .card { fill: #19212b; stroke: #46525f } .about { stroke: #54c5d9 }
    .insight { fill: #2a2115; stroke: #f0a94b } .ink { fill: #e8edf3 } .soft { fill: #a3afbd }
    .learned { fill: #54c5d9 }
  }
"""


@dataclass(frozen=True)
class Panel:
    """A neighbourhood at one time: the note ``about`` in the middle, and ``links`` as (source, target, type)."""

    title: str
    about: str
    notes: Sequence[Note]
    links: Sequence[tuple[str, str, str]]


def render_panels(shown: Sequence[Panel], *, bare: bool = False) -> str:
    """Draw all panels. A note has the same place in each; keywords missing in the first panel are highlighted."""
    order = list(dict.fromkeys(note.id for panel in shown for note in panel.notes if note.id != panel.about))
    at = {id: _place(place, len(order)) for place, id in enumerate(order)}
    at |= {panel.about: (WIDTH / 2, HEIGHT / 2 + 18) for panel in shown}
    known = {note.id: set(note.keywords) for note in shown[0].notes}
    drawn = [
        f'<g transform="translate(0 {place * HEIGHT})">{_panel(panel, at, known)}</g>'
        for place, panel in enumerate(shown)
    ]
    height = HEIGHT * len(shown)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f"font-family=\"ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\">\n"
        f"<title>{escape('; '.join(panel.title for panel in shown))}</title>\n<style>{STYLE}</style>\n"
        f'<rect class="page" width="{WIDTH}" height="{height}"/>\n' + "\n".join(drawn) + "\n</svg>\n"
    )
    if bare:
        return svg
    return f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>zettel: evolution</title>\n{svg}</html>\n'


def _panel(panel: Panel, at: dict[str, tuple[float, float]], known: dict[str, set[str]]) -> str:
    parts = [f'<text class="head ink" x="24" y="34">{escape(panel.title)}</text>']
    parts += [_link(at[source], at[target], type) for source, target, type in panel.links]
    for note in panel.notes:
        learned = set(note.keywords) - known.get(note.id, set(note.keywords))
        parts.append(_card(note, at[note.id], learned, about=note.id == panel.about))
    return "\n".join(parts)


def _place(place: int, count: int) -> tuple[float, float]:
    angle = 2 * pi * (place + 0.5) / count - pi / 2
    return WIDTH / 2 + ACROSS * cos(angle), HEIGHT / 2 + 18 + DOWN * sin(angle)


def _link(start: tuple[float, float], end: tuple[float, float], type: str) -> str:
    return (
        f'<line class="link {escape(type)}" x1="{start[0]:.0f}" y1="{start[1]:.0f}" x2="{end[0]:.0f}" '
        f'y2="{end[1]:.0f}"><title>{escape(type)}</title></line>'
    )


def _card(note: Note, at: tuple[float, float], learned: Collection[str], *, about: bool) -> str:
    left, top = at[0] - CARD[0] / 2, at[1] - CARD[1] / 2
    kind = INSIGHT if note.kind.value == INSIGHT else "about" if about else ""
    lines = textwrap.wrap(note.content, LETTERS, max_lines=LINES, placeholder=" …")
    text = "".join(
        f'<text class="ink" x="{left + 12:.0f}" y="{top + 21 + 17 * row:.0f}">{escape(line)}</text>'
        for row, line in enumerate(lines)
    )
    words = " · ".join(
        f'<tspan class="learned">+ {escape(word)}</tspan>' if word in learned else escape(word)
        for word in _fitting(note.keywords, learned)
    )
    return (
        f'<g><title>{escape(note.content)}</title><rect class="card {kind}" x="{left:.0f}" y="{top:.0f}" '
        f'width="{CARD[0]}" height="{CARD[1]}" rx="9"/>{text}'
        f'<text class="soft" x="{left + 12:.0f}" y="{top + CARD[1] - 12:.0f}">{words}</text></g>'
    )


def _fitting(keywords: Sequence[str], learned: Collection[str]) -> list[str]:
    """Return the keywords that fit on one line, in their order; learned ones have precedence."""
    taken: set[str] = set()
    free = WORDS
    for word in sorted(keywords, key=lambda word: word not in learned):
        free -= len(word) + 3
        if free >= 0:
            taken.add(word)
    return [word for word in keywords if word in taken]
