"""Import rate, search times and cold starts, compared with MiniLM's embedding rate.

An import is timed until ``flush()`` returns. MiniLM's rate is that of embedding the same turns with all-MiniLM-L6-v2:
batches of 64, all cores, weights loaded. Both are the best of three.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from zettel import Memory
from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.model import Event
from zettel.ports import Embedder
from zettel.transcripts import choose
from zettel.transcripts.formats import locomo

from .baselines import silence_transformers
from .evaluation import Progress, run_settings
from .results import Cell, Result, data_files, usable_cores
from .timing import MILLISECONDS, PERCENTILES, percentiles

TRIES = 3
COLD_TRIES = 5  # process starts vary more
MINILM_BATCH = 64  # texts
QUESTIONS = 300  # enough for a 99th percentile

_CLI = "from zettel.cli import main; main()"


def run(path: Path, progress: Progress, minilm: str, embedder: str | None = None) -> Result:
    """Measure a transcript. Without the extra ``torch``, MiniLM's rate is missing and a note gives the reason."""
    events = [record for record in choose(path).read(path) if isinstance(record, Event)]
    if not events:
        raise InvalidInput(f"{path} contains no readable turn: pass a transcript")
    model = load_embedder(embedder)
    rows: list[list[Cell]] = []
    notes: list[str] = []
    with TemporaryDirectory(prefix="zettel-bench-") as folder:
        store = Path(folder) / "speed.db"
        seconds = _import_seconds(path, Path(folder), model, progress)
        rate = len(events) / seconds
        rows.append(["import until flush", round(rate, 1), "turns/s"])
        bare = _minilm_seconds([event.content for event in events], minilm, progress, notes)
        if bare is not None:
            rows.append(["all-MiniLM-L6-v2 embedding alone", round(len(events) / bare, 1), "turns/s"])
            rows.append(["import / MiniLM", round(rate * bare / len(events), 2), "times"])
        with Memory(store, embedder=model) as memory:
            memory.import_transcript(path)
            memory.flush()
            times = _search_seconds(memory, _questions(path, events), progress)
        rows += [[f"search p{p}", value, "ms"] for p, value in zip(PERCENTILES, percentiles(times), strict=True)]
        for what, command in _cold_commands(store, embedder).items():
            progress(f"starting {what}", 0, COLD_TRIES)
            rows.append([f"cold: {what}", round(_cold_seconds(command) * MILLISECONDS), "ms"])
    notes.append(f"{len(events)} turns in one scope; import and MiniLM best of {TRIES}; {len(times)} searches;")
    notes.append(f"cold times are the median of {COLD_TRIES} processes, Python's own start included.")
    return Result(
        bench="speed",
        data=data_files([path]),
        ran_on={"turns": len(events)},
        settings=run_settings(None, (), model, k=10),
        columns=["speed", "value", "unit"],
        rows=rows,
        notes=notes,
    )


def _import_seconds(path: Path, folder: Path, embedder: Embedder, progress: Progress) -> float:
    times = []
    for attempt in range(TRIES):
        progress("importing", attempt, TRIES)
        with Memory(folder / f"import-{attempt}.db", embedder=embedder) as memory:
            began = time.perf_counter()
            memory.import_transcript(path)
            memory.flush()
            times.append(time.perf_counter() - began)
    return min(times)


def _minilm_seconds(texts: Sequence[str], name: str, progress: Progress, notes: list[str]) -> float | None:
    if find_spec("sentence_transformers") is None:
        notes.append('MiniLM\'s own rate needs more packages: pip install "zettel-graph[torch]".')
        return None
    import torch
    from sentence_transformers import SentenceTransformer

    from zettel.embed.transformer import find_model

    silence_transformers()
    torch.set_num_threads(usable_cores())
    model = SentenceTransformer(str(find_model(name)), device="cpu", local_files_only=True)
    model.encode(
        list(texts[:MINILM_BATCH]), batch_size=MINILM_BATCH, show_progress_bar=False
    )  # the first batch also warms up
    times = []
    for attempt in range(TRIES):
        progress("embedding with MiniLM", attempt, TRIES)
        began = time.perf_counter()
        model.encode(list(texts), batch_size=MINILM_BATCH, show_progress_bar=False)
        times.append(time.perf_counter() - began)
    return min(times)


def _questions(path: Path, events: Sequence[Event]) -> list[str]:
    """Return LoCoMo's questions, or for another file turns spread over the whole."""
    questions: list[str] = []
    if choose(path).name == locomo.name:
        questions = [entry["question"] for sample in locomo.load(path) for entry in sample.get("qa", [])]
    questions = questions or [event.content for event in events]
    return questions[:: max(1, len(questions) // QUESTIONS)][:QUESTIONS]


def _search_seconds(memory: Memory, questions: Sequence[str], progress: Progress) -> list[float]:
    memory.search(questions[0])  # loads what is loaded once
    times = []
    for place, question in enumerate(questions):
        progress("searching", place, len(questions))
        began = time.perf_counter()
        memory.search(question, k=10)
        times.append(time.perf_counter() - began)
    return times


def _cold_commands(store: Path, embedder: str | None) -> dict[str, list[str]]:
    chosen = ["--embedder", embedder] if embedder else []
    return {
        "python alone": ["-c", "pass"],
        "import zettel": ["-c", "import zettel"],
        "from zettel import Memory, Event, Scope": ["-c", "from zettel import Memory, Event, Scope"],
        "zettel --help": ["-c", _CLI, "--help"],
        "zettel search": ["-c", _CLI, "search", "What was said first?", "--store", str(store), *chosen],
    }


def _cold_seconds(arguments: Sequence[str]) -> float:
    times = []
    for _ in range(COLD_TRIES):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=os.environ)
        times.append(time.perf_counter() - began)
    return median(times)
