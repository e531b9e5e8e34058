"""Searches per second over HTTP, compared with as many threads that call a memory in their process.

Both sides run in child processes and alternate. The clients share a third process, which sends prepared requests and
reads only status and length of an answer, so that they take little CPU from the server.
"""

from __future__ import annotations

import asyncio
import json
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
from .results import Cell, Result
from .timing import MILLISECONDS
from .zipf import SEED, VERSION, ZipfScope

NOTES = 10_000
QUESTIONS = 300
SEARCHES = 600
"""Searches of each side in each round."""
ROUNDS = 5
K = 10
SHUTDOWN_TIMEOUT = 60.0
"""Seconds."""
_CHILD = "from zettel.bench.http_server import main; main()"


def run(
    notes: int, clients: int, progress: Progress, folder: Path | None = None, embedder: str | None = None
) -> Result:
    """Measure a scope of ``notes`` with ``clients``; ``folder`` stores the scope for the next run."""
    model = load_embedder(embedder)
    scope = ZipfScope(notes)
    questions = [question.text for question in scope.questions(QUESTIONS)]
    with sizes.folder_or_temporary(folder) as parent:
        sizes.prepare(sizes.size_folder(parent, notes), scope, model, progress)
        store = str(sizes.size_folder(parent, notes) / sizes.MEMORY)
        search_arguments: dict[str, Any] = {"questions": questions, "k": K, "clients": clients, "count": SEARCHES}
        in_process: list[dict[str, float]] = []
        over_http: list[dict[str, float]] = []
        for turn in range(ROUNDS):
            progress(f"round {turn + 1}", 2 * turn, 2 * ROUNDS)
            in_process.append(run_in_child(run_threads, store=store, embedder=embedder, **search_arguments))
            progress(f"round {turn + 1}", 2 * turn + 1, 2 * ROUNDS)
            with _server(store, embedder) as (address, key, cpu_seconds):
                client_arguments = {"address": address, "key": key, **search_arguments}
                run_in_child(run_clients, **client_arguments | {"count": SEARCHES_BEFORE})
                before = cpu_seconds()
                over_http.append(run_in_child(run_clients, **client_arguments))
                over_http[-1]["cpu"] = cpu_seconds() - before
    ratios = sorted(ours["seconds"] / theirs["seconds"] for ours, theirs in zip(in_process, over_http, strict=True))
    rows: list[list[Cell]] = [
        [f"over HTTP, {clients} clients", *_rates(over_http)],
        [f"in the process, {clients} threads", *_rates(in_process)],
        ["HTTP ÷ in the process, of each round", *(round(ratios[at], 3) for at in (ROUNDS // 2, 0, -1))],
        ["CPU of the server, ms a search", *_cpu(over_http)],
        ["CPU of the process, ms a search", *_cpu(in_process)],
    ]
    return Result(
        bench="serve",
        ran_on={"notes": notes, "seed": SEED, "messages": f"made up, version {VERSION}"},
        settings=run_settings(None, (), model, K) | {"clients": clients},
        columns=["searches a second", "median", "least", "most"],
        rows=rows,
        notes=[
            f"{SEARCHES:,} searches of each side in each of {ROUNDS} rounds, after {SEARCHES_BEFORE} that are not "
            "counted.",
            "The server is one process with a key and no limit on its rate; its clients share another process and keep "
            "their connections.",
            "CPU is that of all threads of the process.",
        ],
    )


def _rates(rounds: Sequence[dict[str, float]]) -> list[Cell]:
    seconds = [measured["seconds"] for measured in rounds]
    return [round(SEARCHES / value, 1) for value in (median(seconds), max(seconds), min(seconds))]


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
def _server(store: str, embedder: str | None) -> Iterator[tuple[str, str, Callable[[], float]]]:
    """Start a server in a child process; yield its address, a key, and a function that returns its CPU seconds."""
    command, pipe = [sys.executable, "-c", _CHILD], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        requests, answers = process.stdin, process.stdout
        assert requests is not None
        assert answers is not None
        requests.write(json.dumps({"store": store, "embedder": embedder}) + "\n")
        requests.flush()
        started = answers.readline()
        if not started:
            raise ZettelError("the server did not start: see its error above")
        try:
            address, key = json.loads(started)

            def cpu_seconds() -> float:
                requests.write("\n")
                requests.flush()
                return float(answers.readline())

            yield address, key, cpu_seconds
        finally:
            requests.close()
            process.wait(SHUTDOWN_TIMEOUT)


def main() -> None:
    """Serve the store named on stdin, print the address on stdout, and stop when stdin closes."""
    asyncio.run(_serve(**json.loads(sys.stdin.readline())))


async def _serve(store: str, embedder: str | None) -> None:
    from zettel import AsyncMemory
    from zettel.remote.sockets import listening
    from zettel.server.app import application
    from zettel.server.keys import Keys
    from zettel.server.limits import Limits
    from zettel.server.serving import Safety, address_of, logged, server

    limits, safety = Limits(rate=0), Safety()
    with TemporaryDirectory(prefix="zettel-bench-") as folder, logged(False), listening("127.0.0.1", 0) as at:
        keys = Keys(Path(folder) / "keys", create=True)
        _, key = keys.create("bench", "read", None)
        async with AsyncMemory(store, embedder=load_embedder(embedder)) as memory:
            serving = server(application(memory, keys, limits=limits), limits, safety)
            sys.stdout.write(json.dumps([address_of(at, safety), key]) + "\n")
            sys.stdout.flush()
            ended = asyncio.get_running_loop().run_in_executor(None, _print_cpu_seconds)
            ended.add_done_callback(lambda _: setattr(serving, "should_exit", True))
            await serving.serve(sockets=[at])
        keys.close()


def _print_cpu_seconds() -> None:
    """Print this process's CPU seconds for each line on stdin, until it closes."""
    for _ in sys.stdin:
        sys.stdout.write(f"{time.process_time()}\n")
        sys.stdout.flush()
