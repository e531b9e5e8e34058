"""A memory's graph as one HTML file: an inline SVG, which a script makes interactive."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import pairwise
from string import Template
from typing import TYPE_CHECKING

import numpy as np

from .graph import MemoryGraph
from .layout import layout, ring_positions

if TYPE_CHECKING:
    from datetime import datetime

    from zettel.model import Hit, Link, Note

    from .layout import Array

WIDTH, HEIGHT = 1440.0, 1060.0  # units of the drawing

SEASONS = (
    "#3f6fb0", "#3590b5", "#2fa39b", "#4cab68", "#8aae45", "#c2ac35",
    "#e09a2f", "#dd7a3a", "#d1584d", "#b84a76", "#8c5196", "#645cab",
)  # fmt: skip
"""Colours of the sessions in order of time: a year from winter to winter."""

RADIUS, PER_LINK = 4.5, 1.7  # radius of a note, and its increase per square root of its links
LETTERS = 0.3  # half the width of a letter, in units of its size
TERM_SIZE, PER_NOTE = 14.0, 2.2  # font size of a term, and its increase per square root of its notes
GAP = 2.0  # between nodes
BOW = 0.13  # distance of a link's curve from the straight line, in units of its length

SESSION_PULL, NEXT_PULL, LINK_PULL, TERM_PULL = 1.2, 1.0, 0.4, 0.8  # strengths of the springs

CLIPPED = 220  # characters of a note in its hover title


@dataclass(frozen=True)
class Answered:
    """A question, its expected answer, and the hits."""

    question: str
    as_of: str | None
    answer: str
    hits: Sequence[Hit]


def render_page(
    graph: MemoryGraph, title: str, subtitle: str, answered: Sequence[Answered], components: Sequence[str]
) -> str:
    """Return the HTML file; ``components`` are lines about the parts of this memory."""
    notes = graph.notes
    sessions = list(dict.fromkeys(note.session or "" for note in notes))
    colours = {session: _colour(place, len(sessions)) for place, session in enumerate(sessions)}
    degree = Counter(end for link in graph.links for end in (link.source, link.target))
    radii = [RADIUS + PER_LINK * degree[note.id] ** 0.5 for note in notes]
    sizes = [TERM_SIZE + PER_NOTE * len(ids) ** 0.5 for _, ids in graph.terms]
    places = _places(graph, sessions, radii, sizes)
    at = {note.id: tuple(places[row]) for row, note in enumerate(notes)}
    shades = {note.id: colours[note.session or ""] for note in notes}
    template = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(title),
        subtitle=escape(subtitle),
        width=int(WIDTH),
        height=int(HEIGHT),
        links="\n".join(_next(notes, at, colours) + _term_edges(graph, at, places) + _links(graph.links, at, shades)),
        terms="\n".join(_terms(graph, places, sizes)),
        notes="\n".join(_circle(note, at[note.id], r, colours) for note, r in zip(notes, radii, strict=True)),
        sessions="\n".join(_session(s, notes, colours[s]) for s in sessions),
        kinds="\n".join(_kinds(graph)),
        questions="\n".join(map(_question, answered)),
        components="\n".join(f"<li>{escape(line)}</li>" for line in components),
    )


def _places(graph: MemoryGraph, sessions: Sequence[str], radii: Sequence[float], sizes: Sequence[float]) -> Array:
    """Return positions of notes, then terms, (n, 2). An invisible node per session attracts its notes."""
    row = {note.id: place for place, note in enumerate(graph.notes)}
    edges: dict[tuple[int, int], float] = {}
    for note, following in pairwise(graph.notes):
        pull = NEXT_PULL if note.session == following.session else NEXT_PULL / 4
        edges[row[note.id], row[following.id]] = pull
    for link in graph.links:
        if link.source in row and link.target in row:
            edges[row[link.source], row[link.target]] = LINK_PULL * max(link.weight, 0.1)
    groups = [sessions.index(note.session or "") for note in graph.notes]
    start = ring_positions(groups, len(sessions))
    halves = [(radius + GAP, radius + GAP) for radius in radii]
    anchors = []
    for place, (term, ids) in enumerate(graph.terms):
        for id in ids:
            edges[row[id], len(row) + place] = TERM_PULL
        anchors.append(start[[row[id] for id in sorted(ids)]].mean(axis=0))
        halves.append((sizes[place] * LETTERS * len(term.text) + GAP, sizes[place] / 2 + GAP))
    for place in range(len(sessions)):
        own = [number for number, group in enumerate(groups) if group == place]
        edges |= {(number, len(row) + len(anchors)): SESSION_PULL for number in own}
        anchors.append(start[own].mean(axis=0))
        halves.append((0.0, 0.0))
    start = np.vstack([start, *anchors])
    return layout(start, np.array(halves), edges, WIDTH, HEIGHT)


def _colour(place: int, count: int) -> str:
    """Return a colour of SEASONS; for other than twelve sessions, a mixture of two."""
    spot = place * (len(SEASONS) - 1) / max(count - 1, 1)
    low, share = int(spot), spot - int(spot)
    if share == 0:
        return SEASONS[low]
    ends = [[int(SEASONS[low + step][i : i + 2], 16) for i in (1, 3, 5)] for step in (0, 1)]
    mixed = [round(a + (b - a) * share) for a, b in zip(*ends, strict=True)]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _next(notes: Sequence[Note], at: dict[str, tuple[float, float]], colours: dict[str, str]) -> list[str]:
    return [
        f'<path class="next" d="{_line(at[note.id], at[following.id])}" stroke="{colours[note.session or ""]}"'
        f' data-a="{note.id}" data-b="{following.id}"/>'
        for note, following in pairwise(notes)
        if note.session == following.session
    ]


def _term_edges(graph: MemoryGraph, at: dict[str, tuple[float, float]], places: Array) -> list[str]:
    return [
        f'<path class="has-term" d="{_line(at[id], tuple(places[len(at) + place]))}" data-a="{id}" data-b="t{place}"/>'
        for place, (_, ids) in enumerate(graph.terms)
        for id in sorted(ids)
    ]


def _links(links: Sequence[Link], at: dict[str, tuple[float, float]], colours: dict[str, str]) -> list[str]:
    """Return curves in the colour of the target, mostly the older note."""
    return [
        f'<path class="link {link.type.value}" d="{_curve(at[link.source], at[link.target])}"'
        f' style="--w:{min(max(link.weight, 0.1), 1.0):.2f};--c:{colours[link.target]}"'
        f' data-a="{link.source}" data-b="{link.target}"'
        f' data-label="{escape(f"{link.type.value}: {link.reason}" if link.reason else link.type.value)}"/>'
        for link in links
        if link.source in at and link.target in at
    ]


def _terms(graph: MemoryGraph, places: Array, sizes: Sequence[float]) -> list[str]:
    first = len(graph.notes)
    return [
        f'<text class="term" id="t{place}" x="{places[first + place][0]:.1f}" y="{places[first + place][1]:.1f}"'
        f' font-size="{sizes[place]:.1f}">{escape(term.text)}'
        f"<title>{escape(term.text)}: in {len(ids)} notes</title></text>"
        for place, (term, ids) in enumerate(graph.terms)
    ]


def _circle(note: Note, at: tuple[float, float], radius: float, colours: dict[str, str]) -> str:
    x, y = at
    who = " · ".join(part for part in (note.speaker, _day(note.occurred_at), note.kind.value) if part)
    text = note.content if len(note.content) <= CLIPPED else note.content[:CLIPPED].rstrip() + "…"
    shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
    if note.kind.value != "episodic":  # a rotated square for derived notes
        shape = (
            f'<rect x="{x - radius:.1f}" y="{y - radius:.1f}" width="{2 * radius:.1f}" height="{2 * radius:.1f}"'
            f' rx="2" transform="rotate(45 {x:.1f} {y:.1f})"/>'
        )
    return (
        f'<g class="note" id="{note.id}" fill="{colours[note.session or ""]}"'
        f' data-session="{escape(note.session or "")}" data-who="{escape(who)}"'
        f' data-text="{escape(note.content)}">{shape}'
        f"<title>{escape(who)}\n{escape(text)}</title></g>"
    )


def _session(session: str, notes: Sequence[Note], colour: str) -> str:
    own = [note for note in notes if (note.session or "") == session]
    day = next((_day(note.occurred_at) for note in own if note.occurred_at), "") or session or "no session"
    return (
        f'<li data-session="{escape(session)}"><i style="background:{colour}"></i>{escape(day)}'
        f" <small>{len(own)}</small></li>"
    )


def _kinds(graph: MemoryGraph) -> list[str]:
    """Return the legend of the lines that occur."""
    labels = {
        "RELATES": "relates: similar content",
        "MENTIONS": "mentions: contains the title of the other note",
        "SUPERSEDES": "supersedes: replaces the older fact",
        "UPDATES": "updates: replaces a part of the older note",
        "CONTRADICTS": "contradicts",
        "DERIVED_FROM": "derived from",
    }
    counts = Counter(link.type.value for link in graph.links)
    rows = [(f"link {kind}", labels[kind], count) for kind, count in counts.most_common()]
    steps = sum(note.session == following.session for note, following in pairwise(graph.notes))
    rows.append(("next", "next: follows in the session", steps))
    rows.append(("has-term", "has a term", sum(len(ids) for _, ids in graph.terms)))
    return [
        f'<li><svg width="30" height="10"><path class="{kind}" style="--w:1" d="M2 5H28"/></svg>{what}'
        f" <small>{count}</small></li>"
        for kind, what, count in rows
        if count
    ]


def _question(answered: Answered) -> str:
    when = f' <span class="when">as of {escape(answered.as_of)}</span>' if answered.as_of else ""
    hits = "".join(
        f'<li data-note="{hit.note.id}"><b>{escape(hit.note.speaker or "")}</b> '
        f"<time>{_day(hit.note.occurred_at)}</time> {escape(hit.note.content)} <small>{hit.score:.2f}</small></li>"
        for hit in answered.hits
    )
    ids = escape(json.dumps([hit.note.id for hit in answered.hits]))
    return (
        f'<details data-hits="{ids}"><summary>{escape(answered.question)}{when}</summary>'
        f'<p class="answer">{escape(answered.answer)}</p><ol>{hits}</ol></details>'
    )


def _line(start: tuple[float, float], end: tuple[float, float]) -> str:
    return f"M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}"


def _curve(start: tuple[float, float], end: tuple[float, float]) -> str:
    across, down = end[0] - start[0], end[1] - start[1]
    bend = (start[0] + end[0]) / 2 - down * BOW, (start[1] + end[1]) / 2 + across * BOW
    return f"M{start[0]:.1f} {start[1]:.1f}Q{bend[0]:.1f} {bend[1]:.1f} {end[0]:.1f} {end[1]:.1f}"


def _day(moment: datetime | None) -> str:
    return f"{moment.day} {moment:%B %Y}" if moment else ""
