"""Searches per second of many clients at once: threads in one process, and clients of a server with processes.

Both are compared with one thread times the cores. The sides run in child processes and alternate. The clients share a
process, which sends prepared requests and reads only status and length of an answer, so that they take little of the
processor from the server.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from zettel.embed import load_embedder
from zettel.errors import ZettelError

from . import sizes
from .child_process import SEARCHES_BEFORE, run_in_child
from .evaluation import Progress, run_settings
from .results import Cell, Result, usable_cores
from .timing import MILLISECONDS
from .zipf import SEED, VERSION, ZipfScope

NOTES = 10_000
QUESTIONS = 300
SEARCHES = 600
"""Searches of each side in each round."""
ROUNDS = 5
K = 10
SHUTDOWN_TIMEOUT, POLL_SECONDS = 60.0, 0.05
"""Seconds."""


def run(
    notes: int, clients: int, progress: Progress, folder: Path | None = None, embedder: str | None = None
) -> Result:
    """Measure a scope of ``notes`` with ``clients``; ``folder`` stores the scope for the next run."""
    model, cores = load_embedder(embedder), usable_cores()
    scope = ZipfScope(notes)
    questions = [question.text for question in scope.questions(QUESTIONS)]
    with sizes.folder_or_temporary(folder) as parent:
        sizes.prepare(sizes.size_folder(parent, notes), scope, model, progress)
        store = str(sizes.size_folder(parent, notes) / sizes.MEMORY)
        arguments: dict[str, Any] = {"questions": questions, "k": K, "count": SEARCHES}

        def in_threads(threads: int) -> dict[str, float]:
            measured: dict[str, float] = run_in_child(
                run_threads, store=store, embedder=embedder, clients=threads, **arguments
            )
            return measured

        def over_http(workers: int) -> dict[str, float]:
            with _server(store, embedder, workers) as (address, key):
                of_clients = {"address": address, "key": key, "clients": clients, **arguments}
                run_in_child(run_clients, **of_clients | {"count": SEARCHES_BEFORE * workers})
                measured: dict[str, float] = run_in_child(run_clients, **of_clients)
                return measured

        several = f"{cores} processes" if cores > 1 else "one process"
        sides: dict[str, Callable[[], dict[str, float]]] = {
            "in the process, one thread": lambda: in_threads(1),
            f"in the process, {clients} threads": lambda: in_threads(clients),
            f"over HTTP, {clients} clients, one process": lambda: over_http(1),
            f"over HTTP, {clients} clients, {several}": lambda: over_http(cores),
        }
        measured: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
        for turn in range(ROUNDS):
            for place, (name, side) in enumerate(sides.items()):
                progress(f"round {turn + 1}", turn * len(sides) + place, ROUNDS * len(sides))
                measured[name].append(side())
    alone, threads, _, processes = measured.values()
    return Result(
        bench="serve",
        data=[],
        ran_on={"notes": notes, "seed": SEED, "messages": f"made up, version {VERSION}"},
        settings=run_settings(None, (), model, K) | {"clients": clients},
        columns=["searches a second", "median", "least", "most"],
        rows=[
            *([name, *_rates(rounds)] for name, rounds in measured.items()),
            [f"{clients} threads ÷ one × {cores} cores", *_shares(threads, alone, cores)],
            [f"HTTP, {several} ÷ one thread × {cores} cores", *_shares(processes, alone, cores)],
            ["processor time in one thread, ms a search", *_cpu(alone)],
            [f"processor time in {clients} threads, ms a search", *_cpu(threads)],
        ],
        notes=[
            f"{SEARCHES:,} searches of each side in each of {ROUNDS} rounds, after {SEARCHES_BEFORE} in each process "
            "that are not counted.",
            "The server has a key and no limit on its rate; its clients share another process and keep their "
            "connections.",
            "Ratios are those of each round.",
        ],
    )


def _rates(rounds: Sequence[dict[str, float]]) -> list[Cell]:
    seconds = [measured["seconds"] for measured in rounds]
    return [round(SEARCHES / value, 1) for value in (median(seconds), max(seconds), min(seconds))]


def _shares(rounds: Sequence[dict[str, float]], alone: Sequence[dict[str, float]], cores: int) -> list[Cell]:
    """Return median, least and most of the rate of a side, as a share of the rate of one thread times the cores."""
    shares = [one["seconds"] / side["seconds"] / cores for side, one in zip(rounds, alone, strict=True)]
    return [round(value, 3) for value in (median(shares), min(shares), max(shares))]


def _cpu(rounds: Sequence[dict[str, float]]) -> list[Cell]:
    milliseconds = [measured["cpu"] / SEARCHES * MILLISECONDS for measured in rounds]
    return [round(value, 2) for value in (median(milliseconds), min(milliseconds), max(milliseconds))]


# child processes ------------------------------------------------------------------------------------------------


def run_threads(
    store: str, embedder: str | None, questions: Sequence[str], k: int, clients: int, count: int
) -> dict[str, Any]:
    """Run ``count`` searches in so many threads; return wall ``seconds`` and ``cpu`` seconds."""
    from zettel import Memory

    with Memory(store, embedder=load_embedder(embedder)) as memory, ThreadPoolExecutor(clients) as pool:

        def ask(question: str) -> int:
            return len(memory.search(question, k=k))

        def all_of(count: int) -> None:
            assert sum(pool.map(ask, islice(cycle(questions), count)))

        all_of(SEARCHES_BEFORE)
        began, worked = time.perf_counter(), time.process_time()
        all_of(count)
        return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - worked}


def run_clients(address: str, key: str, questions: Sequence[str], k: int, clients: int, count: int) -> dict[str, Any]:
    """Run ``count`` searches with so many clients of a server; return ``seconds``."""
    url = urlsplit(address)
    requests = [_request(url.netloc, key, {"question": question, "k": k}) for question in questions]

    async def send(waiting: Iterator[bytes]) -> None:
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        with closing(writer):
            for request in waiting:
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                if not head.startswith(b"HTTP/1.1 200 "):
                    raise ZettelError(f"the server answered {head.splitlines()[0].decode()}")
                length = next(line for line in head.lower().splitlines() if line.startswith(b"content-length:"))
                await reader.readexactly(int(length.partition(b":")[2]))
        await writer.wait_closed()

    async def all_of(count: int) -> float:
        waiting = islice(cycle(requests), count)
        began = time.perf_counter()
        await asyncio.gather(*(send(waiting) for _ in range(clients)))
        return time.perf_counter() - began

    return {"seconds": asyncio.run(all_of(count))}


def _request(host: str, key: str, body: dict[str, Any]) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST /v1/search HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


@contextmanager
def _server(store: str, embedder: str | None, workers: int) -> Iterator[tuple[str, str]]:
    """Run ``zettel serve``; yield its address and a key."""
    from zettel.server.keys import Keys

    with TemporaryDirectory(prefix="zettel-bench-") as folder:
        file, log = Path(folder) / "keys", Path(folder) / "log"
        with closing(Keys(file, create=True)) as keys:
            _, key = keys.create("bench", "read", None)
        command = [sys.executable, "-m", "zettel", "serve", "--store", store, "--keys", str(file), "--port", "0"]
        command += ["--rate", "0", "--workers", str(workers), *(("--embedder", embedder) if embedder else ())]
        with log.open("w") as into, subprocess.Popen(command, stderr=into) as process:
            try:
                while " at http" not in (text := log.read_text()):
                    if process.poll() is not None:
                        raise ZettelError(f"the server did not start: {text.strip()}")
                    time.sleep(POLL_SECONDS)
                yield text.partition(" at ")[2].split()[0], key
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(SHUTDOWN_TIMEOUT)
