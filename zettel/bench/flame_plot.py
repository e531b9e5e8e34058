"""Draws stacks as a flame graph: a bar is a function, its width the share of the samples in it and all that it calls.

The form is by Brendan Gregg, "The Flame Graph", 2016 (doi:10.1145/2909476), here with the outermost function on top.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .plots import OTHERS, PALE, SETTINGS, STRONG

WIDTH, ROW = 11.0, 0.2  # inches
LEAST = 0.004
"""Narrower bars are left out, as a share of all samples."""
CHARACTER = 0.0062
"""The width of a letter, as a share of the picture."""
OURS = "(zettel/"


@dataclass
class Frame:
    """A function in a stack, with the samples in it and the functions that it called."""

    name: str
    samples: int = 0
    called: dict[str, Frame] = field(default_factory=dict)


def tree(stacks: Sequence[tuple[Sequence[str], int]]) -> Frame:
    """Join stacks of frames, outermost first, each with its samples."""
    root = Frame("all")
    for frames, samples in stacks:
        root.samples += samples
        at = root
        for name in frames:
            at = at.called.setdefault(name, Frame(name))
            at.samples += samples
    return root


def bars(root: Frame) -> Iterator[tuple[str, int, float, float]]:
    """Yield name, depth, left end and width of each bar, as shares of all samples; the widest first in each row."""

    def below(frame: Frame, depth: int, left: float) -> Iterator[tuple[str, int, float, float]]:
        for each in sorted(frame.called.values(), key=lambda each: -each.samples):
            width = each.samples / root.samples
            if width >= LEAST:
                yield each.name, depth, left, width
                yield from below(each, depth + 1, left)
            left += width

    yield from below(root, 0, 0.0)


def draw(stacks: Sequence[tuple[Sequence[str], int]], title: str, path: Path) -> None:
    """Write a flame graph as SVG. Frames are texts such as ``rank (zettel/scoring/ranking.py:40)``."""
    import matplotlib
    from matplotlib.figure import Figure

    shown = list(bars(tree(stacks)))
    rows = 1 + max((depth for _, depth, _, _ in shown), default=0)
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH, ROW * rows + 0.5))
        axes = figure.add_axes((0.01, 0.0, 0.98, ROW * rows / (ROW * rows + 0.5)))
        axes.set_axis_off()
        axes.set_xlim(0, 1)
        axes.set_ylim(rows, 0)
        figure.suptitle(title, fontsize=10)
        for name, depth, left, width in shown:
            colour = (STRONG if depth % 2 else "#4f94c4") if OURS in name else PALE
            axes.barh(depth + 0.5, width, left=left, height=0.95, color=colour, edgecolor="white", linewidth=0.4)
            label = name.partition(" (")[0]
            if (letters := int(width / CHARACTER)) >= 3:
                ink = "white" if OURS in name else OTHERS[5]
                short = label if len(label) <= letters else f"{label[: letters - 1]}…"
                axes.text(left + 0.002, depth + 0.5, short, fontsize=6.5, va="center", color=ink)
        figure.savefig(path, format="svg", metadata={"Date": None})
