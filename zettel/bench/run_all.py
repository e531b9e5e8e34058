"""Runs all benchmarks of the documentation and writes each result when it is ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import anyio

from zettel.errors import InvalidInput

from . import imports, locomo, mixed, multihop, overlap, plots, sizes, speed
from .baselines import ALL, MINILM
from .evaluation import Progress
from .results import Result

CONVERSATIONS = "locomo*.json"
"""Name of LoCoMo's file in a data folder; ``multihop`` names those with passages."""

Measure: TypeAlias = Callable[[], Result]


def run(
    data: Path,
    into: Path,
    plot_folder: Path,
    progress: Progress,
    notes: Sequence[int] = sizes.SIZES,
    store_folder: Path | None = None,
    embedder: str | None = None,
    baselines: Sequence[str] = ALL,
) -> Iterator[Result]:
    """Write each result to the folder ``into`` as JSON and its plots to ``plot_folder``, and yield it.

    Raises ``InvalidInput`` if ``data`` lacks a file and ``MissingExtra`` without matplotlib, both before measuring, and
    the errors of the benchmarks.
    """
    locomo_file = find_locomo(data)
    multihop.files(data, None)
    plots.require_matplotlib()
    options: dict[str, Any] = {"embedder": embedder, "ablate": True, "baselines": baselines}
    measures: dict[str, Measure] = {
        "locomo": lambda: anyio.run(partial(locomo.run, locomo_file, progress, **options)),
        "2wiki": lambda: anyio.run(partial(multihop.run, data, progress, **options)),
        "mixed": lambda: anyio.run(partial(mixed.run, locomo_file, data, progress, embedder=embedder)),
        "overlap": lambda: anyio.run(
            partial(overlap.run, locomo_file, progress, notes=overlap.NOTES, embedder=embedder)
        ),
        "speed": lambda: speed.run(locomo_file, progress, MINILM, embedder),
        "speed-by-size": lambda: sizes.run(notes, progress, store_folder, embedder),
        "import": lambda: imports.run(notes, progress, embedder=embedder),
    }
    for name, measure in measures.items():
        result = measure()
        result.write(into / f"{name}.json")
        plots.draw(result, plot_folder)
        yield result


def find_locomo(data: Path) -> Path:
    """Return the path of LoCoMo's file in a folder. Raises ``InvalidInput`` unless there is one."""
    paths = sorted(data.glob(CONVERSATIONS))
    if len(paths) != 1:
        names = ", ".join(path.name for path in paths) or "none"
        raise InvalidInput(f"{data}: expected one file {CONVERSATIONS}, got {names}")
    return paths[0]
