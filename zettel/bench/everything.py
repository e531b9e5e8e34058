"""All benchmarks in one go, each result written as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import anyio

from zettel.errors import InvalidInput

from . import importing, locomo, mixed, overlap, pictures, sizes, speed, two_wiki
from .beside import ALL, MINILM
from .evaluation import Progress
from .machine import Result

CONVERSATIONS = "locomo*.json"
"""What LoCoMo's file is called in a folder of data; 2Wiki's two files are named in ``two_wiki``."""

Measure: TypeAlias = Callable[[], Result]


def run(
    data: Path,
    into: Path,
    drawn: Path,
    progress: Progress,
    notes: Sequence[int] = sizes.SIZES,
    kept: Path | None = None,
    embedder: str | None = None,
    others: Sequence[str] = ALL,
) -> Iterator[Result]:
    """Yield each result after it was written to the folder ``into`` as JSON, and its pictures to ``drawn``.

    Raises ``InvalidInput`` before anything is measured if ``data`` lacks a file, ``MissingExtra`` without matplotlib,
    and what the benchmarks raise.
    """
    talk = conversations_in(data)
    two_wiki.files(data, None)
    pictures.require_matplotlib()
    whole: dict[str, Any] = {"embedder": embedder, "ablate": True, "others": others}
    measures: dict[str, Measure] = {
        "locomo": lambda: anyio.run(partial(locomo.run, talk, progress, **whole)),
        "2wiki": lambda: anyio.run(partial(two_wiki.run, data, progress, **whole)),
        "mixed": lambda: anyio.run(partial(mixed.run, talk, data, progress, embedder=embedder)),
        "overlap": lambda: anyio.run(partial(overlap.run, talk, progress, notes=overlap.NOTES, embedder=embedder)),
        "speed": lambda: speed.run(talk, progress, MINILM, embedder),
        "speed-by-size": lambda: sizes.run(notes, progress, kept, embedder),
        "import": lambda: importing.run(notes, progress, embedder=embedder),
    }
    for name, measure in measures.items():
        result = measure()
        result.write(into / f"{name}.json")
        pictures.draw(result, drawn)
        yield result


def conversations_in(data: Path) -> Path:
    """LoCoMo's one file in a folder; raises ``InvalidInput`` if there is none, or more than one."""
    found = sorted(data.glob(CONVERSATIONS))
    if len(found) != 1:
        told = ", ".join(path.name for path in found) or "none"
        raise InvalidInput(f"{data}: expected one {CONVERSATIONS} in it, there is {told}")
    return found[0]
