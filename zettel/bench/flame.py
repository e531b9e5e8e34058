"""Where time goes: samples of all threads during searches, ``add`` and an import, by module and as flame graphs.

Each activity runs in a process of its own under py-spy, which stops it 200 times a second. Waiting threads and imports
do not count.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from zettel import Memory
from zettel.embed import load_embedder
from zettel.errors import InvalidInput, ZettelError

from . import sizes
from .evaluation import Progress, run_settings
from .flame_plot import draw
from .results import Cell, Result
from .zipf import SEED, VERSION, ZipfScope

NOTES = 10_000
SEARCHES, ADDS, IMPORTED = 1_000, 500, 2_000
K, THREADS = 10, 16
RATE = 200
"""Samples a second."""
SHOWN = 15
"""Modules in the table; the last row is all others."""
WAITING = (
    "wait (threading.py", "_wait_for_tstate_lock (threading.py", "get (queue.py", "select (selectors.py",
    "_worker (concurrent/futures/thread.py", "WorkerThread.run (anyio",
)  # fmt: skip
"""Innermost frames of a thread that waits for others."""
IMPORTING = "_find_and_load"
_LINE = re.compile(r":\d+\)$")
Stack: TypeAlias = "tuple[list[str], int]"
"""Frames, outermost first, and samples."""


def run(notes: int, progress: Progress, folder: Path | None, pictures: Path | None, embedder: str | None) -> Result:
    """Measure each activity on a scope of ``notes``; draw flame graphs into ``pictures``, as SVG.

    ``folder`` stores the scope for the next run. Raises ``InvalidInput`` without py-spy.
    """
    if py_spy() is None:
        raise InvalidInput("zettel bench flame needs py-spy: pip install py-spy")
    model = load_embedder(embedder)
    shares: dict[str, Counter[str]] = {}
    with sizes.folder_or_temporary(folder) as parent:
        sizes.prepare(sizes.size_folder(parent, notes), ZipfScope(notes), model, progress)
        store = sizes.size_folder(parent, notes) / sizes.MEMORY
        for place, name in enumerate(ACTIVITIES):
            progress(name, place, len(ACTIVITIES))
            with TemporaryDirectory(prefix="zettel-bench-") as temporary:
                copy = Path(temporary) / sizes.MEMORY
                for file in store.parent.glob(f"{sizes.MEMORY}*"):
                    shutil.copy(file, temporary)
                stacks = sampled(name, copy, notes, embedder)
            shares[name] = by_module(stacks)
            if pictures is not None:
                pictures.mkdir(parents=True, exist_ok=True)
                picture = f"flame-{name.replace(', ', '-').replace(' ', '-')}.svg"
                draw(stacks, f"{name}: share of the busy time", pictures / picture)
    return Result(
        bench="flame",
        data=[],
        ran_on={"notes": notes, "seed": SEED, "messages": f"made up, version {VERSION}"},
        settings=run_settings(None, (), model, K),
        columns=["share of the busy time", *ACTIVITIES],
        rows=_rows(shares),
        notes=[
            f"py-spy, {RATE} samples a second of every thread that does not wait; imports do not count.",
            "A sample counts for the innermost module of zettel; numpy and onnxruntime count for their caller.",
        ],
    )


def py_spy() -> str | None:
    """Return the path of the program, beside Python or on the PATH."""
    return shutil.which("py-spy", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


def sampled(activity: str, store: Path, notes: int, embedder: str | None) -> list[Stack]:
    """Run an activity under py-spy and return the stacks of threads that do not wait. Raises ``ZettelError``."""
    arguments = json.dumps({"activity": activity, "store": str(store), "notes": notes, "embedder": embedder})
    command = [sys.executable, "-c", "from zettel.bench.flame import main; main()", arguments]
    raw = store.with_name("stacks")
    record = [str(py_spy()), "record", "--rate", str(RATE), "--format", "raw", "--output", str(raw), "--", *command]
    done = subprocess.run(record, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not raw.exists():
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise ZettelError(f"py-spy failed: {lines[-1] if lines else f'exit code {done.returncode}'}")
    return busy(raw.read_text(encoding="utf-8").splitlines())


def busy(lines: Sequence[str]) -> list[Stack]:
    """Return the stacks of py-spy's lines, without threads that wait and without imports."""
    stacks = []
    for line in lines:
        frames, _, samples = line.rpartition(" ")
        stack = [_LINE.sub(")", frame) for frame in frames.split(";")]
        if IMPORTING not in frames and not any(waiting in stack[-1] for waiting in WAITING):
            stacks.append((stack, int(samples)))
    return stacks


def by_module(stacks: Sequence[Stack]) -> Counter[str]:
    """Return the samples of each module of zettel."""
    counts: Counter[str] = Counter()
    for stack, samples in stacks:
        ours = next((frame for frame in reversed(stack) if "(zettel/" in frame), None)
        counts[_module(ours) if ours else "other libraries and Python"] += samples
    return counts


def _module(frame: str) -> str:
    """Return the module of a frame such as ``rank (zettel/scoring/ranking.py:40)``."""
    return frame.partition("(")[2].partition(".py")[0].replace("/", ".")


def _rows(shares: dict[str, Counter[str]]) -> list[list[Cell]]:
    """Return the share of each module in each activity, the largest first."""
    totals = {name: max(1, counts.total()) for name, counts in shares.items()}
    weight: defaultdict[str, float] = defaultdict(float)
    for name, counts in shares.items():
        for module, samples in counts.items():
            weight[module] += samples / totals[name]
    shown = sorted(weight, key=lambda module: -weight[module])[:SHOWN]
    rows: list[list[Cell]] = [
        [module, *(round(counts[module] / totals[name], 3) for name, counts in shares.items())] for module in shown
    ]
    rest = [1 - sum(counts[module] for module in shown) / totals[name] for name, counts in shares.items()]
    return [*rows, ["all others", *(round(max(0.0, share), 3) for share in rest)]]


# in the child process ---------------------------------------------------------------------------------------------


def main() -> None:
    """Run the activity that the command line describes as JSON."""
    request = json.loads(sys.argv[1])
    with Memory(request["store"], embedder=load_embedder(request["embedder"])) as memory:
        ACTIVITIES[request["activity"]](memory, ZipfScope(request["notes"]))


def _questions(scope: ZipfScope) -> list[str]:
    return [question.text for question in scope.questions(SEARCHES)]


def _search(memory: Memory, scope: ZipfScope) -> None:
    for question in _questions(scope):
        memory.search(question, k=K, log=False)


def _search_in_threads(memory: Memory, scope: ZipfScope) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda question: memory.search(question, k=K, log=False), _questions(scope)))


def _messages() -> Iterator[str]:
    """Messages that are not in the scope."""
    return (f"{event.speaker}: {event.content} Again." for event in ZipfScope(IMPORTED, seed=SEED + 1))


def _add(memory: Memory, _: ZipfScope) -> None:
    for text in islice(_messages(), ADDS):
        memory.add(text)


def _import(memory: Memory, _: ZipfScope) -> None:
    memory.add_many([{"content": text} for text in _messages()])
    memory.flush()


ACTIVITIES: dict[str, Callable[[Memory, ZipfScope], None]] = {
    "search": _search, f"search, {THREADS} threads": _search_in_threads, "add": _add, "import": _import,
}  # fmt: skip
