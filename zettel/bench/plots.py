"""Plots of results as reproducible SVG files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zettel.errors import MissingExtra

from .evaluation import OURS
from .timing import STAGES

if TYPE_CHECKING:
    from .results import Cell, Result

LEARNING = "scorer train"
IMPORTING = "import by size"
STRONG, PALE = "#1b6ca8", "#c9dcea"
"""Colours of zettel."""
OTHERS = ("#8a8a8a", "#d1913c", "#5f9e6e", "#a4596a", "#7d6bb0", "#4d4d4d", "#b8a13a")
PARTS = ("#1b6ca8", "#4f94c4", "#86b8da", "#b5d3e7", "#dbe9f3")
"""Parts of a search, darkest first."""
WIDE, HIGH, GAP = 7.0, 4.2, 0.15  # inches
SETTINGS = {
    "svg.hashsalt": "zettel",  # else ids in the file are random
    "font.size": 10,
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "legend.frameon": False,
}


def draw(result: Result, folder: Path) -> list[Path]:
    """Write the plots of a result to ``folder`` and return their paths, empty if there is nothing to plot.

    Raises ``MissingExtra`` without matplotlib.
    """
    require_matplotlib()
    import matplotlib

    with matplotlib.rc_context(SETTINGS):
        if result.bench == "speed by size":
            return [_saved(_by_size(result), folder / "speed-by-size.svg")]
        if result.bench == IMPORTING:
            return [_saved(_imports(result), folder / "import.svg")]
        if result.bench == LEARNING:
            return [_saved(_by_epoch(result), folder / "scorer-train.svg")]
        if result.curves:
            return [_saved(_by_places(result), folder / f"{result.bench}.svg")]
    return []


def require_matplotlib() -> None:
    """Raise ``MissingExtra`` without matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtra("drawing pictures", "bench") from error


def _by_places(result: Result) -> Any:
    """Plot a line per system: the measure in the first 1, 2, 3, … places."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(WIDE, HIGH), layout="constrained")
    axes = figure.add_subplot()
    best_last = sorted(result.curves.items(), key=lambda item: item[1][-1])
    colours = dict(zip((name for name in result.curves if name != OURS), OTHERS, strict=False))
    for name, values in best_last:
        ours = name == OURS
        axes.plot(
            range(1, len(values) + 1),
            values,
            label=f"{name} ({values[-1]:.2f})",
            color=STRONG if ours else colours[name],
            linewidth=2.6 if ours else 1.4,
            marker="o" if ours else None,
            markersize=4,
        )
    axes.set_ylim(0, 1)
    most = max(len(values) for values in result.curves.values())
    axes.set_xlim(1, most)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("places")
    passages = result.bench == "multihop"
    axes.set_ylabel("questions with all passages found" if passages else "evidence recall, categories 1 to 4")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside right center", title=f"in {most} places")
    return figure


def _by_epoch(result: Result) -> Any:
    """Plot training loss and validation recall after each epoch."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(WIDE, HIGH), layout="constrained")
    loss = figure.add_subplot(xlabel="epoch", ylabel="loss")
    recall = loss.twinx()
    epochs = range(1, len(result.curves["loss"]) + 1)
    loss.plot(epochs, result.curves["loss"], color=OTHERS[0], label="loss")
    recall.plot(epochs, result.curves["recall held out"], color=STRONG, label="recall held out")
    recall.set_ylabel("recall@10")
    recall.grid(visible=False)
    loss.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _by_size(result: Result) -> Any:
    """Plot search times with the flat index's, their stages, and recall, by size."""
    figure, sizes = _wide_figure(result)
    times, parts, recall = figure.subplots(1, 3)

    band = [_row(result, f"search p{p}") for p in (50, 90, 99)]
    times.fill_between(sizes, band[0], band[2], color=PALE, label="zettel, p50 to p99", linewidth=0)
    times.plot(sizes, band[0], color=STRONG, linewidth=2.6, marker="o", label="zettel, p50")
    times.plot(sizes, _row(result, "flat p50"), color=OTHERS[0], marker="o", label="embed + FAISS + FTS5, p50")
    times.set_yscale("log")
    times.set_ylabel("one search, ms")
    times.yaxis.set_major_formatter("{x:g}")

    places = range(len(sizes))
    floor = [0.0] * len(sizes)
    for stage, colour in zip(STAGES, PARTS, strict=True):
        values = _row(result, f"- {stage} p50")
        parts.bar(places, values, bottom=floor, color=colour, label=stage, width=0.6)
        floor = [low + value for low, value in zip(floor, values, strict=True)]
    parts.set_xticks(list(places), [f"{size:,}" for size in sizes])
    parts.set_ylabel("p50 of a search's parts, ms")
    parts.set_xlabel("notes in the scope")
    parts.grid(axis="x", visible=False)

    names = [str(row[0]) for row in result.rows if str(row[0]).startswith("recall @")]
    for name, colour in zip(names, (STRONG, *OTHERS), strict=False):
        recall.plot(
            sizes, _row(result, name), color=colour, marker="o", linewidth=2.6 if colour == STRONG else 1.4,
            label=name.partition(", ")[2],
        )  # fmt: skip
    recall.set_ylim(0, 1.03)
    recall.set_ylabel("the message asked for is in the first 10")
    for axes, columns in ((times, 1), (parts, 3), (recall, 3)):
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns)
    for axes in (times, recall):
        axes.set_xscale("log")
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel("notes in the scope")
    return figure


def _imports(result: Result) -> Any:
    """Plot time, memory and disk of an import, and later search times, by size."""
    figure, sizes = _wide_figure(result)
    panels = {
        "seconds": {"wall time": "until flush", "CPU time": "of the processor"},
        "peak RSS, MB": {"peak RSS": "all", "peak RSS less vector index": "less the vector index"},
        "store file, MB": {"disk": "disk"},
        "one search, ms": {"search p50": "p50", "search p90": "p90"},
    }
    for axes, (label, rows) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        for (name, legend), colour in zip(rows.items(), (STRONG, OTHERS[0]), strict=False):
            axes.plot(sizes, _row(result, name), color=colour, marker="o", label=legend)
        axes.set_xscale("log")
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=30)
        if label.startswith(("seconds", "store")):
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
        else:
            axes.set_ylim(bottom=0)
        axes.minorticks_off()
        axes.set_ylabel(label)
        axes.set_xlabel("messages")
        if len(rows) > 1:
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1))
    return figure


def _wide_figure(result: Result) -> tuple[Any, list[int]]:
    """Return a figure for several panels, and the sizes in the result's columns."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    sizes = [int(column.replace(",", "")) for column in result.columns[1:-1]]
    return Figure(figsize=(1.6 * WIDE, HIGH), layout=ConstrainedLayoutEngine(w_pad=GAP)), sizes


def _row(result: Result, name: str) -> list[float]:
    cells: Sequence[Cell] = next(row for row in result.rows if row[0] == name)
    return [float(cell) for cell in cells[1:-1] if cell is not None]


def _saved(figure: Any, path: Path) -> Path:
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None}, facecolor="white")
    return path
