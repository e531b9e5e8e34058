"""Search times, memory and recall by scope size, on synthetic scopes, compared with a flat index.

Each measurement has its own process. The flat index embeds the question, scans all vectors with FAISS and queries FTS5.
Recall is that of the message with the question's words, so it measures the effect of size, not of meaning.
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
from typing import Any

import anyio

from zettel import Memory
from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.ports import Embedder
from zettel.version import VERSION as ZETTEL_VERSION

from . import flat_index
from .child_process import SEARCHES_BEFORE, flat, run_in_child, searches
from .evaluation import BATCH, Progress, run_settings
from .results import Result, UnitRows, ratio, usable_cores
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
"""Written last, so that its presence marks a complete folder; contains settings and import time."""


def run(sizes: Sequence[int], progress: Progress, folder: Path | None = None, embedder: str | None = None) -> Result:
    """Measure each of ``sizes``, smallest first; ``folder`` stores the scopes for the next run.

    Raises ``InvalidInput`` for a size below 1 or a folder with other messages.
    """
    sizes = sorted_sizes(sizes)
    model = load_embedder(embedder)
    with folder_or_temporary(folder) as parent:
        measured = [_measure(size, parent, model, embedder, progress) for size in sizes]
    first = measured[0]
    for rows in measured:
        rows["search p50 ÷ smallest"] = (ratio(rows["search p50"][0], first["search p50"][0]), "times")
    return Result(
        bench="speed by size",
        data=[],
        ran_on={"seed": SEED, "messages": f"made up, version {VERSION}", "kept": "yes" if folder else None},
        settings=run_settings(None, (), model, K),
        columns=["made-up notes", *(f"{size:,}" for size in sizes), "unit"],
        rows=[[name, *(rows[name][0] for rows in measured), unit] for name, (_, unit) in first.items()],
        notes=_notes(bool(folder)),
    )


def sorted_sizes(sizes: Sequence[int]) -> list[int]:
    """Return distinct sizes, smallest first. Raises ``InvalidInput`` for a size below 1 or an empty list."""
    if not sizes or min(sizes) < 1:
        raise InvalidInput("a made-up scope has at least one note: name sizes from 1")
    return sorted(set(sizes))


def size_folder(parent: Path, size: int) -> Path:
    """Return the folder for a scope of this size."""
    return parent / f"made-up-{size}"


def _measure(size: int, parent: Path, model: Embedder, embedder: str | None, progress: Progress) -> UnitRows:
    scope = ZipfScope(size)
    folder = size_folder(parent, size)
    rate = prepare(folder, scope, model, progress)
    if not (folder / flat_index.VECTORS).exists():
        progress(f"indexing {scope.notes:,} notes flat", 0, 1)
        anyio.run(flat_index.build, folder, scope, model)
    questions = scope.questions(QUESTIONS)
    search_arguments: dict[str, Any] = {
        "embedder": embedder, "questions": [question.text for question in questions], "k": K,
    }  # fmt: skip
    progress(f"asking {size:,} notes", 0, 3)
    ours = run_in_child(searches, store=str(folder / MEMORY), **search_arguments)
    progress(f"asking {size:,} notes", 1, 3)
    with TemporaryDirectory(prefix="zettel-bench-") as temporary:
        empty = run_in_child(searches, store=str(Path(temporary) / "empty.db"), **search_arguments)
    progress(f"asking {size:,} notes", 2, 3)
    theirs = run_in_child(flat, folder=str(folder), **search_arguments)
    hits = {"zettel": ours["found"], "vectors": theirs["by_vector"], "FTS5": theirs["by_text"]}
    times, space = _times(ours, theirs), _space(ours, empty, folder, size)
    return {**rate, **times, **space, **_recalls(questions, hits)}


def prepare(folder: Path, scope: ZipfScope, model: Embedder, progress: Progress) -> UnitRows:
    """Create the store if missing; return its import rate."""
    mark = folder / MADE
    settings = {"notes": scope.notes, "seed": SEED, "version": VERSION, "embedder": model.info.fingerprint}
    if mark.exists():
        record = json.loads(mark.read_text(encoding="utf-8"))
        if {key: record.get(key) for key in settings} != settings:
            raise InvalidInput(f"{folder} contains other made-up notes: delete it, or name another --store")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        for file in (*folder.glob(f"{MEMORY}*"), *folder.glob(f"{flat_index.VECTORS}*")):  # from an interrupted run
            file.unlink()
        with Memory(folder / MEMORY, embedder=model) as memory:
            seconds = import_seconds(memory, scope, progress)
            memory.search(scope.questions(1)[0].text, log=False)  # the first search writes a snapshot
        taken_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        record = {**settings, "import_seconds": seconds, "taken_at": taken_at, "zettel": ZETTEL_VERSION}
        mark.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return {IMPORT: (round(scope.notes / record["import_seconds"], 1), "notes/s")}


def import_seconds(memory: Memory, scope: ZipfScope, progress: Progress) -> float:
    """Return the seconds to add all messages and flush."""
    waiting = iter(scope)
    done = 0
    began = time.perf_counter()
    while batch := list(islice(waiting, BATCH)):
        progress("importing", done, scope.notes)
        memory.add_many_report(batch)
        done += len(batch)
    progress("flushing", done, scope.notes)
    memory.flush()
    return time.perf_counter() - began


def _times(ours: dict[str, Any], theirs: dict[str, Any]) -> UnitRows:
    rows: UnitRows = {"open and first answer": (round(ours["opened"], 2), "s")}
    search = _percentile_rows("search", [seconds["search"] for seconds in ours["seconds"]])
    flat = _percentile_rows("flat", [seconds["all"] for seconds in theirs["seconds"]])
    rows |= search
    for stage in STAGES:
        rows |= _percentile_rows(f"- {stage}", [seconds[stage] for seconds in ours["seconds"]])
    rows |= flat
    for part in FLAT_PARTS:
        rows |= _percentile_rows(f"- flat: {part}", [seconds[part] for seconds in theirs["seconds"]])
    rows["search p50 ÷ flat p50"] = (ratio(search["search p50"][0], flat["flat p50"][0]), "times")
    return rows


def _percentile_rows(name: str, seconds: Sequence[float]) -> UnitRows:
    return {f"{name} p{p}": (value, "ms") for p, value in zip(PERCENTILES, percentiles(seconds), strict=True)}


def _space(ours: dict[str, Any], empty: dict[str, Any], folder: Path, size: int) -> UnitRows:
    files = sum(path.stat().st_size for path in folder.glob(f"{MEMORY}*"))
    rows: UnitRows = {"store file": (round(files / MEGABYTE, 1), "MB")}
    if ours["rss"] is not None:
        rows[f"RSS after {SEARCHES_BEFORE} searches"] = (round(ours["rss"] / MEGABYTE, 1), "MB")
        rows["RSS with an empty store"] = (round(empty["rss"] / MEGABYTE, 1), "MB")
        rows["memory per note"] = (round((ours["rss"] - empty["rss"]) / size), "bytes")
    return rows


def _recalls(questions: Sequence[MadeQuestion], hits_by_system: dict[str, list[list[str]]]) -> UnitRows:
    """Return the share of questions with their message among the first K, by system."""
    rows: UnitRows = {}
    for system, hits in hits_by_system.items():
        share = sum(question.source in ids[:K] for question, ids in zip(questions, hits, strict=True)) / len(questions)
        rows[f"recall @{K}, {system}"] = (round(share, 4), "of 1")
    return rows


def _notes(is_stored: bool) -> list[str]:
    notes = [
        f"{QUESTIONS} questions a size; flat: embed, FAISS IndexFlatIP over all vectors and an FTS5 query without stop "
        f"words, each for the best {K}; FAISS on one core or {usable_cores()}, whichever is quicker.",
        "search is embed, candidates, score, fetch and the rest; p50 of parts do not add up to that of the whole.",
        "Settings counts zettel's imports, not Python's own start; the files are in the system's cache.",
        f"Memory per note: RSS after {SEARCHES_BEFORE} searches, less RSS with an empty store after the same.",
    ]
    if is_stored:
        notes.append("A store of an earlier run has the import rate of that run.")
    return notes


@contextmanager
def folder_or_temporary(folder: Path | None) -> Iterator[Path]:
    """Yield the folder, or a temporary one."""
    if folder is not None:
        yield folder
        return
    with TemporaryDirectory(prefix="zettel-bench-") as temporary:
        yield Path(temporary)
