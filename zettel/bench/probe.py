"""What a process of its own measures: how soon a store answers, how long its searches take, and how much memory.

``in_fresh_process`` starts this module with a request on stdin and reads the answer from stdout, as JSON, so that
nothing that the measuring process did before is in the numbers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import count, cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zettel.errors import ZettelError

if TYPE_CHECKING:
    from zettel import Memory

_BEGAN = time.perf_counter()  # before anything of zettel but its errors is read: what follows is opening

SEARCHES_BEFORE = 100
"""Searches after which the resident memory is read: what is loaded when first needed is there by then."""
MEETING = 120.0
"""Seconds that a writer waits for the others, adding all the time."""
SIDES, LOOK = 2, 0.02
"""Those that a ``chat`` is added on at the same time, and seconds between two looks whether the other is there."""
_PROCESSES = Path("/proc")
_CHILD = "from zettel.bench.probe import main; main()"


def in_fresh_process(**request: Any) -> Any:
    """The answer of another process to a request; ``what`` names one of ASKS. Raises ``ZettelError`` if it fails."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=json.dumps(request),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env=os.environ,
    )
    if done.returncode != 0:
        raise ZettelError(f"the process that measures {request['what']} failed; what it said stands above")
    return json.loads(done.stdout)


def main() -> None:
    """Read a request, answer it."""
    request = json.load(sys.stdin)
    answer = ASKS[request.pop("what")](**request)
    sys.stdout.write(json.dumps(answer))


def searches(
    store: str,
    embedder: str | None,
    questions: Sequence[str],
    k: int,
    scope: dict[str, str] | None = None,
    before: int = SEARCHES_BEFORE,
) -> dict[str, Any]:
    """Open a store and ask it, in its default scope or another.

    ``opened``: seconds from the start of this process, Python's own apart, to the first answer. ``rss``: bytes after
    ``before`` searches that are not counted, None where the system does not tell. ``seconds``: for each question those
    of its stages. ``found``: for each question the ``Event.id`` behind each hit.
    """
    from zettel import Memory, Scope
    from zettel.bench.timing import StageWatch
    from zettel.embed import load_embedder
    from zettel.graph import open_store
    from zettel.scoring.fusion import FusionScorer

    watch = StageWatch()
    with Memory(
        watch.store(open_store(store)),
        embedder=watch.embedder(load_embedder(embedder)),
        scorer=watch.scorer(FusionScorer()),
        scope=Scope(**scope or {}),
    ) as memory:
        memory.search(questions[0], k=k)
        opened = time.perf_counter() - _BEGAN
        for question in islice(cycle(questions), before - 1):
            memory.search(question, k=k)
        rss = resident_bytes()
        seconds, found = [], []
        for question in questions:
            watch.begin()
            hits = memory.search(question, k=k)
            seconds.append(watch.end())
            found.append([hit.note.event_ids[0] for hit in hits])
        return {"opened": opened, "rss": rss, "seconds": seconds, "found": _own_ids(memory, found)}


def flat(folder: str, embedder: str | None, questions: Sequence[str], k: int) -> dict[str, Any]:
    """The same questions put to the two indices of ``zettel.bench.flat``."""
    import anyio

    from zettel.bench.flat import ask
    from zettel.embed import load_embedder

    answers = anyio.run(ask, Path(folder), questions, load_embedder(embedder), k)
    return {
        "seconds": [one.seconds for one in answers],
        "by_vector": [list(map(str, one.by_vector)) for one in answers],
        "by_text": [list(map(str, one.by_text)) for one in answers],
    }


def adds(
    store: str,
    embedder: str | None,
    scope: dict[str, str],
    notes: int,
    session: int,
    before: int,
    writers: int,
    meeting: str,
    seconds: float,
) -> dict[str, Any]:
    """Add the messages of a made-up scope of ``notes`` one by one, from a ``session`` of it on.

    A writer that has added as many as ``before`` leaves a file in the folder ``meeting`` and goes on; when all
    ``writers`` are there, it is measured for so many ``seconds``: ``seconds`` are those of each event. Raises
    ``ZettelError`` if the others do not come.
    """
    import anyio

    from zettel import AsyncMemory, Scope
    from zettel.bench.zipf import ZipfScope
    from zettel.embed import load_embedder

    made_up = ZipfScope(notes)
    waiting = (event for number in count(session) for event in made_up.session(number))

    def at_work() -> int:
        return len(os.listdir(meeting))

    async def add_all() -> list[float]:
        async with AsyncMemory(store, embedder=load_embedder(embedder), scope=Scope(**scope)) as memory:

            async def add() -> float:
                event = next(waiting)
                began = time.perf_counter()
                await memory.add_many([event])
                return time.perf_counter() - began

            for _ in range(before):
                await add()
            (Path(meeting) / str(session)).touch()
            given_up = time.monotonic() + MEETING
            while at_work() < writers:
                await add()
                if time.monotonic() > given_up:
                    raise ZettelError(f"only one of {writers} writers came within {MEETING:g} s")
            end = time.monotonic() + seconds
            taken = []
            while time.monotonic() < end:
                taken.append(await add())
            return taken

    return {"seconds": anyio.run(add_all)}


def chat(
    store: str,
    embedder: str | None,
    events: Sequence[dict[str, Any]],
    before: int,
    pace: float,
    delay: float,
    meeting: str,
    model: tuple[str, str] | None,
) -> dict[str, Any]:
    """Add the turns of a chat, one every ``pace`` seconds: ``seconds`` are those of each ``add``.

    The first ``before`` are worked off and not counted. A file in the folder ``meeting`` then says so; both sides that
    are compared begin ``delay`` seconds after the other is there. ``model``: its name and where it is, if there is one.
    Raises ``ZettelError`` if the other does not come.
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
            (Path(meeting) / Path(store).name).touch()
            given_up = time.monotonic() + MEETING
            while len(os.listdir(meeting)) < SIDES:
                await anyio.sleep(LOOK)
                if time.monotonic() > given_up:
                    raise ZettelError(f"the other side did not come within {MEETING:g} s")
            due = time.perf_counter() + delay
            taken = []
            for turn in turns[before:]:
                await anyio.sleep(max(0.0, due - time.perf_counter()))
                began = time.perf_counter()
                await memory.add_many([turn])
                taken.append(time.perf_counter() - began)
                due += pace
            return taken

    return {"seconds": anyio.run(add_all)}


def imports(
    store: str, embedder: str | None, files: Sequence[tuple[str, str | None]], runner: str | None
) -> dict[str, Any]:
    """Import transcripts, each into the scope of its user, and flush.

    ``wall`` and ``cpu``: seconds that this took, the latter of all threads and of processes that did jobs. ``peak``:
    the most bytes that this process ever had in RAM, and with them the most of each of the others; None where the
    system does not tell. ``vectors``: bytes of the vector index. ``events``: how many.
    """
    from zettel import Memory, Scope
    from zettel.embed import load_embedder

    with Memory(store, embedder=load_embedder(embedder), runner=runner) as memory:
        began, worked = time.perf_counter(), time.process_time()
        for path, user in files:
            memory.import_transcript(path, "jsonl", scope=Scope(user=user))
        memory.flush()
        taken = {"wall": time.perf_counter() - began, "cpu": time.process_time() - worked}
        told = memory.stats()
        others = [_told_by_system("VmHWM", of) or 0 for of in _children()]
    ended = os.times()
    taken["cpu"] += ended.children_user + ended.children_system
    own = _told_by_system("VmHWM")
    peak = None if own is None else own + sum(others)
    return {**taken, "peak": peak, "vectors": told["vector_bytes"], "events": told["events"]}


def asks_scopes(
    store: str, embedder: str | None, questions: Sequence[tuple[str, str]], before: int, k: int
) -> dict[str, Any]:
    """Ask a store, each question in the scope of its user: ``seconds`` of each after the first ``before``."""
    from zettel import Memory, Scope
    from zettel.embed import load_embedder

    seconds = []
    with Memory(store, embedder=load_embedder(embedder)) as memory:
        for user, text in questions:
            began = time.perf_counter()
            memory.search(text, k=k, scope=Scope(user=user))
            seconds.append(time.perf_counter() - began)
    return {"seconds": seconds[before:]}


def threads(**asked: Any) -> dict[str, Any]:
    """See ``zettel.bench.serving.threads``."""
    from zettel.bench import serving

    return serving.threads(**asked)


def clients(**asked: Any) -> dict[str, Any]:
    """See ``zettel.bench.serving.clients``."""
    from zettel.bench import serving

    return serving.clients(**asked)


ASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "searches": searches, "flat": flat, "adds": adds, "chat": chat, "imports": imports, "asks_scopes": asks_scopes,
    "threads": threads, "clients": clients,
}  # fmt: skip
"""What can be asked of a fresh process."""


def resident_bytes() -> int | None:
    """Memory of this process that is in RAM now; None where ``/proc`` does not tell."""
    return _told_by_system("VmRSS")


def _told_by_system(what: str, process: str = "self") -> int | None:
    """Bytes; of that program alone, where what ``getrusage`` tells begins with the process that started it."""
    status = _PROCESSES / process / "status"
    if not status.exists():
        return None
    for line in status.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024  # /proc counts in KiB
    return None


def _children() -> list[str]:
    """The processes that this one has started, as far as the system tells."""
    return [one for file in _PROCESSES.glob("self/task/*/children") for one in file.read_text().split()]


def _own_ids(memory: Memory, found: Sequence[Sequence[str]]) -> list[list[str]]:
    ids: dict[str, str] = {}
    for event in {event for hits in found for event in hits}:
        record = memory.get(event)
        ids[event] = str(record.id)
    return [[ids[event] for event in hits] for hits in found]
