"""What a server costs: searches a second of clients over HTTP, beside as many threads that call a memory themselves.

Both sides have a process of their own, with the same store, questions and arguments, and take turns. The clients share
a third process, which sends what it prepared before and looks at no more of an answer than its status and its length,
so that it takes little of the machine from the server: what is measured is the server.
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
from .evaluation import Progress, answering
from .machine import Cell, Result, result
from .probe import SEARCHES_BEFORE, in_fresh_process
from .timing import MILLISECONDS
from .zipf import SEED, VERSION, ZipfScope

NOTES = 10_000
CLIENTS = 16
QUESTIONS = 300
SEARCHES = 600
"""Of each side in each round: some seconds' worth."""
ROUNDS = 5
K = 10
PATIENCE = 60.0
"""Seconds for the server to say where it is."""
_CHILD = "from zettel.bench.serving import main; main()"


def run(
    notes: int, clients: int, progress: Progress, folder: Path | None = None, embedder: str | None = None
) -> Result:
    """Measure a scope of so many notes with so many clients; ``folder`` keeps the store for the next run."""
    model = load_embedder(embedder)
    scope = ZipfScope(notes)
    questions = [question.text for question in scope.questions(QUESTIONS)]
    with sizes.kept_in(folder) as kept:
        sizes.made(sizes.folder_of(kept, notes), scope, model, progress)
        store = str(sizes.folder_of(kept, notes) / sizes.MEMORY)
        asked: dict[str, Any] = {"questions": questions, "k": K, "clients": clients, "count": SEARCHES}
        called: list[dict[str, float]] = []
        served: list[dict[str, float]] = []
        for turn in range(ROUNDS):
            progress(f"round {turn + 1}", 2 * turn, 2 * ROUNDS)
            called.append(in_fresh_process(what="threads", store=store, embedder=embedder, **asked))
            progress(f"round {turn + 1}", 2 * turn + 1, 2 * ROUNDS)
            with _server(store, embedder) as (address, key, worked):
                reach: dict[str, Any] = {"what": "clients", "address": address, "key": key}
                in_fresh_process(**reach | asked | {"count": SEARCHES_BEFORE})
                before = worked()
                served.append(in_fresh_process(**reach, **asked))
                served[-1]["cpu"] = worked() - before
    ratios = sorted(one["seconds"] / other["seconds"] for one, other in zip(called, served, strict=True))
    rows: list[list[Cell]] = [
        [f"over HTTP, {clients} clients", *_rates(served)],
        [f"in the process, {clients} threads", *_rates(called)],
        ["HTTP ÷ in the process, of each round", *(round(ratios[at], 3) for at in (ROUNDS // 2, 0, -1))],
        ["CPU of the server, ms a search", *_cpu(served)],
        ["CPU of the process, ms a search", *_cpu(called)],
    ]
    return result(
        bench="serve",
        ran_on={"notes": notes, "seed": SEED, "messages": f"made up, version {VERSION}"},
        settings=answering(None, (), model, K) | {"clients": clients},
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


def _rates(taken: Sequence[dict[str, float]]) -> list[Cell]:
    seconds = [one["seconds"] for one in taken]
    return [round(SEARCHES / one, 1) for one in (median(seconds), max(seconds), min(seconds))]


def _cpu(taken: Sequence[dict[str, float]]) -> list[Cell]:
    each = [one["cpu"] / SEARCHES * MILLISECONDS for one in taken]
    return [round(one, 2) for one in (median(each), min(each), max(each))]


# one process each -----------------------------------------------------------------------------------------------


def threads(
    store: str, embedder: str | None, questions: Sequence[str], k: int, clients: int, count: int
) -> dict[str, Any]:
    """``seconds`` that so many threads take to ask an open memory ``count`` questions, and those of the ``cpu``."""
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


def clients(address: str, key: str, questions: Sequence[str], k: int, clients: int, count: int) -> dict[str, Any]:
    """``seconds`` that so many clients of a server take to ask it ``count`` questions."""
    at = urlsplit(address)
    requests = [_request(at.netloc, key, {"question": question, "k": k}) for question in questions]

    async def one(waiting: Iterator[bytes]) -> None:
        reader, writer = await asyncio.open_connection(at.hostname, at.port)
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
        await asyncio.gather(*(one(waiting) for _ in range(clients)))
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
    """A server in a process of its own: its address, a key, and what tells the seconds of CPU that it took by now."""
    command, pipe = [sys.executable, "-c", _CHILD], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as on:
        to, said = on.stdin, on.stdout
        assert to is not None
        assert said is not None
        to.write(json.dumps({"store": store, "embedder": embedder}) + "\n")
        to.flush()
        told = said.readline()
        if not told:
            raise ZettelError("the server did not start; what it said stands above")
        try:
            address, key = json.loads(told)

            def worked() -> float:
                to.write("\n")
                to.flush()
                return float(said.readline())

            yield address, key, worked
        finally:
            to.close()
            on.wait(PATIENCE)


def main() -> None:
    """Serve the store that a line on stdin names, say where on stdout, and end with stdin."""
    asyncio.run(_serve(**json.loads(sys.stdin.readline())))


async def _serve(store: str, embedder: str | None) -> None:
    from zettel import AsyncMemory
    from zettel.server.app import application
    from zettel.server.keys import Keys
    from zettel.server.limits import Limits
    from zettel.server.serving import Safety, address_of, logged, server
    from zettel.server.sockets import listening

    limits, safety = Limits(rate=0), Safety()
    with TemporaryDirectory(prefix="zettel-bench-") as folder, logged(False), listening("127.0.0.1", 0) as at:
        keys = Keys(Path(folder) / "keys", create=True)
        _, key = keys.create("bench", "read", None)
        async with AsyncMemory(store, embedder=load_embedder(embedder)) as memory:
            serving = server(application(memory, keys, limits=limits), limits, safety)
            sys.stdout.write(json.dumps([address_of(at, safety), key]) + "\n")
            sys.stdout.flush()
            ended = asyncio.get_running_loop().run_in_executor(None, _tell_cpu)
            ended.add_done_callback(lambda _: setattr(serving, "should_exit", True))
            await serving.serve(sockets=[at])
        keys.close()


def _tell_cpu() -> None:
    """For each line on stdin, the seconds of CPU that this process has taken, until stdin ends."""
    for _ in sys.stdin:
        sys.stdout.write(f"{time.process_time()}\n")
        sys.stdout.flush()
