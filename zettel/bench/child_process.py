"""Measurements in a child process, independent of earlier work in the parent.

``run_in_child`` sends a request to this module as JSON on stdin and reads the answer from stdout.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import count, cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zettel.errors import ZettelError

if TYPE_CHECKING:
    from zettel import Memory

_BEGAN = time.perf_counter()  # before zettel is imported, because opening a store includes the import

SEARCHES_BEFORE = 100
"""Searches before resident memory is read, so that lazily loaded data is included."""
START_TIMEOUT = 120.0
"""Seconds that a writer waits for the others."""
SIDES, POLL_SECONDS = 2, 0.02
"""Processes that run ``chat`` at the same time, and seconds between two checks for the other one."""
_PROCESSES = Path("/proc")
_TICKS = slice(11, 15)
"""Positions of utime, stime and those of ended children in ``/proc/PID/stat`` after the name, see proc(5)."""
_CHILD = "from zettel.bench.child_process import main; main()"


def run_in_child(function: Callable[..., dict[str, Any]], **arguments: Any) -> Any:
    """Call a module-level function in a new process; arguments and answer are JSON. Raises ``ZettelError``."""
    request = {"module": function.__module__, "function": function.__name__, "arguments": arguments}
    done = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=json.dumps(request),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env=os.environ,
    )
    if done.returncode != 0:
        raise ZettelError(f"{function.__name__} failed in a child process: see its error above")
    return json.loads(done.stdout)


def main() -> None:
    """Answer the request on stdin."""
    request = json.load(sys.stdin)
    function = getattr(import_module(request["module"]), request["function"])
    sys.stdout.write(json.dumps(function(**request["arguments"])))


def searches(
    store: str,
    embedder: str | None,
    questions: Sequence[str],
    k: int,
    scope: dict[str, str] | None = None,
    before: int = SEARCHES_BEFORE,
    server: int | None = None,
) -> dict[str, Any]:
    """Open a store and search in its default scope or in ``scope``; ``server`` is the process id of its server.

    Returns ``opened``, seconds from the start of the process, without Python's own start, to the first answer; ``rss``,
    bytes after ``before`` untimed searches, None if unknown; ``seconds``, per question those of each stage;
    ``served``, CPU seconds of the server for all questions, None if unknown; and ``found``, per question the external
    ids of the hits' events.
    """
    from zettel import Memory, Scope
    from zettel.bench.timing import StageTimer
    from zettel.embed import load_embedder
    from zettel.graph import open_store
    from zettel.scoring.fusion import FusionScorer

    stage_timer = StageTimer()
    opened_store = open_store(store)
    with Memory(
        stage_timer.store(opened_store),
        embedder=stage_timer.embedder(load_embedder(embedder)),
        scorer=stage_timer.scorer(FusionScorer()),
        scope=Scope(**scope or {}),
    ) as memory:
        memory.search(questions[0], k=k)
        opened = time.perf_counter() - _BEGAN
        for question in islice(cycle(questions), before - 1):
            memory.search(question, k=k)
        while getattr(opened_store, "is_loading", False):  # a store in Neo4j
            time.sleep(POLL_SECONDS)
        rss = resident_bytes()
        seconds, found = [], []
        worked = server_cpu_seconds(server)
        for question in questions:
            stage_timer.begin()
            hits = memory.search(question, k=k)
            seconds.append(stage_timer.end())
            found.append([hit.note.event_ids[0] for hit in hits])
        measured = {"seconds": seconds, "served": difference(worked, server_cpu_seconds(server))}
        return {"opened": opened, "rss": rss, **measured, "found": _external_ids(memory, found)}


def uncached_searches(
    store: str,
    embedder: str | None,
    questions: Sequence[str],
    k: int,
    scope: dict[str, str],
    before: int,
    server: int | None = None,
) -> dict[str, Any]:
    """Open a store in Neo4j and search in a scope that is never cached; ``server`` is the process id of the server.

    Returns ``first``, seconds of the first search of this process; ``seconds``, those of each question after
    ``before`` searches; and ``served``, CPU seconds of the server for these questions, None if unknown.
    """
    import anyio

    from zettel import Memory, Scope
    from zettel.embed import load_embedder
    from zettel.graph.neo4j import scope_cache

    scope_cache.AT_ONCE, scope_cache.PAUSE = -1, math.inf
    model = load_embedder(embedder)
    anyio.run(model.embed, questions[:1])  # loads it
    seconds = []
    with Memory(store, embedder=model, scope=Scope(**scope)) as memory:

        def search(question: str) -> None:
            began = time.perf_counter()
            memory.search(question, k=k)
            seconds.append(time.perf_counter() - began)

        for question in islice(cycle(questions), before):
            search(question)
        worked = server_cpu_seconds(server)
        for question in questions:
            search(question)
        served = difference(worked, server_cpu_seconds(server))
    return {"first": seconds[0], "seconds": seconds[before:], "served": served}


def server_cpu_seconds(pid: int | None) -> float | None:
    """Return the CPU seconds of a server's process since its start; None without one or without ``/proc``."""
    return None if pid is None else tree_cpu_seconds(pid)


def difference(began: float | None, ended: float | None) -> float | None:
    """Return the difference of two times; None if one is unknown."""
    return None if began is None or ended is None else ended - began


def flat(folder: str, embedder: str | None, questions: Sequence[str], k: int) -> dict[str, Any]:
    """Search both indices of ``zettel.bench.flat_index``."""
    import anyio

    from zettel.bench.flat_index import search
    from zettel.embed import load_embedder

    answers = anyio.run(search, Path(folder), questions, load_embedder(embedder), k)
    return {
        "seconds": [answer.seconds for answer in answers],
        "by_vector": [list(map(str, answer.by_vector)) for answer in answers],
        "by_text": [list(map(str, answer.by_text)) for answer in answers],
    }


def adds(
    store: str,
    embedder: str | None,
    scope: dict[str, str],
    notes: int,
    session: int,
    before: int,
    writers: int,
    ready_folder: str,
    seconds: float,
) -> dict[str, Any]:
    """Add the messages of a synthetic scope of ``notes`` one by one, starting with ``session``.

    After ``before`` messages a writer creates a file in ``ready_folder`` and goes on. When all ``writers`` are ready,
    it measures for ``seconds``. Returns ``seconds`` of each event. Raises ``ZettelError`` on timeout.
    """
    import anyio

    from zettel import AsyncMemory, Scope
    from zettel.bench.zipf import ZipfScope
    from zettel.embed import load_embedder

    synthetic = ZipfScope(notes)
    waiting = (event for number in count(session) for event in synthetic.session(number))

    def ready_count() -> int:
        return len(os.listdir(ready_folder))

    async def add_all() -> list[float]:
        async with AsyncMemory(store, embedder=load_embedder(embedder), scope=Scope(**scope)) as memory:

            async def add() -> float:
                event = next(waiting)
                began = time.perf_counter()
                await memory.add_many([event])
                return time.perf_counter() - began

            for _ in range(before):
                await add()
            (Path(ready_folder) / str(session)).touch()
            deadline = time.monotonic() + START_TIMEOUT
            while ready_count() < writers:
                await add()
                if time.monotonic() > deadline:
                    raise ZettelError(f"not all {writers} writers were ready within {START_TIMEOUT:g} s: try again")
            end = time.monotonic() + seconds
            durations = []
            while time.monotonic() < end:
                durations.append(await add())
            return durations

    return {"seconds": anyio.run(add_all)}


def chat(
    store: str,
    embedder: str | None,
    events: Sequence[dict[str, Any]],
    before: int,
    pace: float,
    delay: float,
    ready_folder: str,
    model: tuple[str, str] | None,
) -> dict[str, Any]:
    """Add the turns of a chat, one every ``pace`` seconds; return ``seconds`` of each ``add``.

    The first ``before`` turns are processed and not timed. A file in ``ready_folder`` then marks this process as ready.
    It starts ``delay`` seconds after the other is ready. ``model`` is a name and an address. Raises ``ZettelError`` on
    timeout.
    """
    import anyio

    from zettel import AsyncMemory, Event, LiteLLM
    from zettel.embed import load_embedder

    turns = [Event(**event) for event in events]
    llm = None if model is None else LiteLLM(model[0], api_base=model[1])

    async def add_all() -> list[float]:
        async with AsyncMemory(store, llm=llm, embedder=load_embedder(embedder)) as memory:
            for turn in turns[:before]:
                await memory.add_many([turn])
            await memory.flush()
            (Path(ready_folder) / Path(store).name).touch()
            deadline = time.monotonic() + START_TIMEOUT
            while len(os.listdir(ready_folder)) < SIDES:
                await anyio.sleep(POLL_SECONDS)
                if time.monotonic() > deadline:
                    raise ZettelError(f"the other process was not ready within {START_TIMEOUT:g} s: try again")
            due = time.perf_counter() + delay
            durations = []
            for turn in turns[before:]:
                await anyio.sleep(max(0.0, due - time.perf_counter()))
                began = time.perf_counter()
                await memory.add_many([turn])
                durations.append(time.perf_counter() - began)
                due += pace
            return durations

    return {"seconds": anyio.run(add_all)}


def imports(
    store: str, embedder: str | None, files: Sequence[tuple[str, str | None]], runner: str | None
) -> dict[str, Any]:
    """Import transcripts, each into the scope of its user, and flush.

    Returns ``wall`` and ``cpu`` seconds, CPU time of all threads and job processes; ``peak``, the sum of the peak RSS
    of all processes in bytes, None if unknown; ``vectors``, bytes of the vector index; and ``events``, their number.
    """
    from zettel import Memory, Scope
    from zettel.embed import load_embedder

    with Memory(store, embedder=load_embedder(embedder), runner=runner) as memory:
        began, worked = time.perf_counter(), time.process_time()
        for path, user in files:
            memory.import_transcript(path, "jsonl", scope=Scope(user=user))
        memory.flush()
        measured = {"wall": time.perf_counter() - began, "cpu": time.process_time() - worked}
        stats = memory.stats()
        others = [_process_memory("VmHWM", child) or 0 for child in _children()]
    ended = os.times()
    measured["cpu"] += ended.children_user + ended.children_system
    own = _process_memory("VmHWM")
    peak = None if own is None else own + sum(others)
    return {**measured, "peak": peak, "vectors": stats["vector_bytes"], "events": stats["events"]}


def search_scopes(
    store: str, embedder: str | None, questions: Sequence[tuple[str, str]], before: int, k: int
) -> dict[str, Any]:
    """Search for each question in the scope of its user; return ``seconds`` of all but the first ``before``."""
    from zettel import Memory, Scope
    from zettel.embed import load_embedder

    seconds = []
    with Memory(store, embedder=load_embedder(embedder)) as memory:
        for user, text in questions:
            began = time.perf_counter()
            memory.search(text, k=k, scope=Scope(user=user))
            seconds.append(time.perf_counter() - began)
    return {"seconds": seconds[before:]}


def resident_bytes() -> int | None:
    """Return this process's memory in RAM; None without ``/proc``."""
    return _process_memory("VmRSS")


def _process_memory(field: str, process: str = "self") -> int | None:
    """Return a field of ``/proc/PID/status`` in bytes; unlike ``getrusage`` it excludes the parent process."""
    status = _PROCESSES / process / "status"
    if not status.exists():
        return None
    for line in status.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024  # /proc counts in KiB
    return None


def tree_cpu_seconds(pid: int | None = None) -> float | None:
    """Return the CPU seconds of a process, by default this one, and of all its descendants; None without ``/proc``."""
    root = "self" if pid is None else str(pid)
    if not (_PROCESSES / root / "stat").exists():
        return None
    ticks, waiting = 0, [root]
    while waiting:
        process = waiting.pop()
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            fields = (_PROCESSES / process / "stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[_TICKS]))
            waiting += _children(process)
    return ticks / os.sysconf("SC_CLK_TCK")


def _children(process: str = "self") -> list[str]:
    """Return the ids of a process's children."""
    return [child for file in _PROCESSES.glob(f"{process}/task/*/children") for child in file.read_text().split()]


def _external_ids(memory: Memory, found: Sequence[Sequence[str]]) -> list[list[str]]:
    ids: dict[str, str] = {}
    for event in {event for hits in found for event in hits}:
        record = memory.get(event)
        ids[event] = str(record.external_id)
    return [[ids[event] for event in hits] for hits in found]
