"""How times, memory and recall grow with a scope: made-up scopes of several sizes, beside a flat index over the same.

Every measurement has a process of its own. The denominator, ``flat``, is what a simple system does for one question,
taken in the same run: embed it, scan all vectors with FAISS, ask FTS5. Recall is that of the message whose words a
question has, so it tells whether a scope's size hides what was said, and nothing of meaning.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import anyio

from zettel import Memory, __version__
from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.ports import Embedder

from . import flat
from .evaluation import BATCH, Progress, answering
from .machine import Cell, Result, result, usable_cores
from .probe import SEARCHES_BEFORE, in_fresh_process
from .timing import PERCENTILES, STAGES, percentiles
from .zipf import SEED, VERSION, MadeQuestion, ZipfScope

SIZES = (10_000, 100_000, 1_000_000)
QUESTIONS = 300  # enough for a 99th percentile
K = 10
MEGABYTE = 1_000_000
FLAT_PARTS = ("embed", "scan", "FTS5")
MEMORY = "memory.db"
IMPORT = "import, until flush"
MADE = "made.json"
"""Written last, so a folder that has it is complete; says what was made and how long that took."""


class Measured(NamedTuple):
    """One size: name of a row to its value, and the units of the rows."""

    notes: int
    rows: dict[str, tuple[Cell, str]]


def run(sizes: Sequence[int], progress: Progress, folder: Path | None = None, embedder: str | None = None) -> Result:
    """Measure each of ``sizes``, smallest first; ``folder`` keeps the stores for the next run and is made if need be.

    Raises ``InvalidInput`` for a size below 1 or a folder with stores of other messages.
    """
    sizes = in_order(sizes)
    model = load_embedder(embedder)
    with kept_in(folder) as kept:
        measured = [_measure(size, kept, model, embedder, progress) for size in sizes]
    first = measured[0]
    for one in measured:
        one.rows["search p50 ÷ smallest"] = (_ratio(one.rows["search p50"][0], first.rows["search p50"][0]), "times")
    return result(
        bench="speed by size",
        ran_on={"seed": SEED, "messages": f"made up, version {VERSION}", "kept": "yes" if folder else None},
        settings=answering(None, (), model, K),
        columns=["made-up notes", *(f"{size:,}" for size in sizes), "unit"],
        rows=[[name, *(one.rows[name][0] for one in measured), unit] for name, (_, unit) in first.rows.items()],
        notes=_notes(bool(folder)),
    )


def in_order(sizes: Sequence[int]) -> list[int]:
    """Each once, smallest first. Raises ``InvalidInput`` for a size below 1, and for none."""
    if not sizes or min(sizes) < 1:
        raise InvalidInput("a made-up scope has at least one note")
    return sorted(set(sizes))


def folder_of(kept: Path, size: int) -> Path:
    """Where in the folder of those that are kept the scope of a size is."""
    return kept / f"made-up-{size}"


def _measure(size: int, kept: Path, model: Embedder, embedder: str | None, progress: Progress) -> Measured:
    scope = ZipfScope(size)
    folder = folder_of(kept, size)
    rate = made(folder, scope, model, progress)
    questions = scope.questions(QUESTIONS)
    asked: dict[str, Any] = {"embedder": embedder, "questions": [one.text for one in questions], "k": K}
    progress(f"asking {size:,} notes", 0, 3)
    ours = in_fresh_process(what="searches", store=str(folder / MEMORY), **asked)
    progress(f"asking {size:,} notes", 1, 3)
    with TemporaryDirectory(prefix="zettel-bench-") as temporary:
        empty = in_fresh_process(what="searches", store=str(Path(temporary) / "empty.db"), **asked)
    progress(f"asking {size:,} notes", 2, 3)
    theirs = in_fresh_process(what="flat", folder=str(folder), **asked)
    found = {"zettel": ours["found"], "vectors": theirs["by_vector"], "FTS5": theirs["by_text"]}
    times, space = _times(ours, theirs), _space(ours, empty, folder, size)
    return Measured(size, {**rate, **times, **space, **_recalls(questions, found)})


def made(folder: Path, scope: ZipfScope, model: Embedder, progress: Progress) -> dict[str, tuple[Cell, str]]:
    """Make the store and the flat indices unless they are there; the rate at which the store was filled."""
    mark = folder / MADE
    wanted = {"notes": scope.notes, "seed": SEED, "version": VERSION, "embedder": model.info.fingerprint}
    if mark.exists():
        told = json.loads(mark.read_text(encoding="utf-8"))
        if {key: told.get(key) for key in wanted} != wanted:
            raise InvalidInput(f"{folder} holds other made-up notes than these: delete it, or name another --store")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(f"{MEMORY}*"):  # by a run that was cut off
            left.unlink()
        with Memory(folder / MEMORY, embedder=model) as memory:
            seconds = import_seconds(memory, scope, progress)
            memory.search(scope.questions(1)[0].text, log=False)  # whoever has searched leaves a snapshot
        progress(f"indexing {scope.notes:,} notes flat", 0, 1)
        anyio.run(flat.build, folder, scope, model)
        taken = datetime.now(timezone.utc).isoformat(timespec="seconds")
        told = {**wanted, "import_seconds": seconds, "taken_at": taken, "zettel": __version__}
        mark.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    return {IMPORT: (round(scope.notes / told["import_seconds"], 1), "notes/s")}


def import_seconds(memory: Memory, scope: ZipfScope, progress: Progress) -> float:
    """How long it takes to remember all messages and to flush."""
    waiting = iter(scope)
    done = 0
    began = time.perf_counter()
    while batch := list(islice(waiting, BATCH)):
        progress("importing", done, scope.notes)
        memory.remember(batch)
        done += len(batch)
    progress("flushing", done, scope.notes)
    memory.flush()
    return time.perf_counter() - began


def _times(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, tuple[Cell, str]]:
    rows: dict[str, tuple[Cell, str]] = {"open and first answer": (round(ours["opened"], 2), "s")}
    whole = _percentile_rows("search", [one["search"] for one in ours["seconds"]])
    simple = _percentile_rows("flat", [one["all"] for one in theirs["seconds"]])
    rows |= whole
    for stage in STAGES:
        rows |= _percentile_rows(f"- {stage}", [one[stage] for one in ours["seconds"]])
    rows |= simple
    for part in FLAT_PARTS:
        rows |= _percentile_rows(f"- flat: {part}", [one[part] for one in theirs["seconds"]])
    rows["search p50 ÷ flat p50"] = (_ratio(whole["search p50"][0], simple["flat p50"][0]), "times")
    return rows


def _percentile_rows(name: str, seconds: Sequence[float]) -> dict[str, tuple[Cell, str]]:
    return {f"{name} p{p}": (value, "ms") for p, value in zip(PERCENTILES, percentiles(seconds), strict=True)}


def _space(ours: dict[str, Any], empty: dict[str, Any], folder: Path, size: int) -> dict[str, tuple[Cell, str]]:
    files = sum(path.stat().st_size for path in folder.glob(f"{MEMORY}*"))
    rows: dict[str, tuple[Cell, str]] = {"store file": (round(files / MEGABYTE, 1), "MB")}
    if ours["rss"] is not None:
        rows[f"RSS after {SEARCHES_BEFORE} searches"] = (round(ours["rss"] / MEGABYTE, 1), "MB")
        rows["RSS with an empty store"] = (round(empty["rss"] / MEGABYTE, 1), "MB")
        rows["memory per note"] = (round((ours["rss"] - empty["rss"]) / size), "bytes")
    return rows


def _recalls(questions: Sequence[MadeQuestion], found: dict[str, list[list[str]]]) -> dict[str, tuple[Cell, str]]:
    """The share of questions whose message is among the first K, by each system."""
    rows: dict[str, tuple[Cell, str]] = {}
    for system, hits in found.items():
        share = sum(one.source in ids[:K] for one, ids in zip(questions, hits, strict=True)) / len(questions)
        rows[f"recall @{K}, {system}"] = (round(share, 4), "of 1")
    return rows


def _ratio(one: Cell, other: Cell) -> Cell:
    assert isinstance(one, (int, float))
    assert isinstance(other, (int, float))
    return round(one / other, 2)


def _notes(kept: bool) -> list[str]:
    notes = [
        f"{QUESTIONS} questions a size; flat: embed, FAISS IndexFlatIP over all vectors and an FTS5 query without stop "
        f"words, each for the best {K}; FAISS on one core or {usable_cores()}, whichever is quicker.",
        "search is embed, candidates, score, fetch and the rest; p50 of parts do not add up to that of the whole.",
        "Opening counts zettel's imports, not Python's own start; the files are in the system's cache.",
        f"Memory per note: RSS after {SEARCHES_BEFORE} searches, less RSS with an empty store after the same.",
    ]
    if kept:
        notes.append("Stores kept from an earlier run have the import rate of that run.")
    return notes


@contextmanager
def kept_in(folder: Path | None) -> Iterator[Path]:
    """The folder, or a new one that is gone after."""
    if folder is not None:
        yield folder
        return
    with TemporaryDirectory(prefix="zettel-bench-") as temporary:
        yield Path(temporary)
