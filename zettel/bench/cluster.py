"""Jobs on a Ray cluster of two nodes with a Neo4j server, by number of workers.

One kind of work computes: vectors and links. The other waits: a local HTTP server, which replaces a language model,
takes a fixed time for each answer. Every run does the same work in new scopes.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from zettel.annotate.by_model import LiteLLMAnnotator
from zettel.core.identity import Ordinals
from zettel.embed import load_embedder
from zettel.errors import InvalidInput, MissingExtra, RunnerUnavailable
from zettel.graph import open_store
from zettel.jobs.spec import CLAIM, MODEL_LEASE_SECONDS
from zettel.llm.lite import LiteLLM
from zettel.local.engine import Engine, assemble
from zettel.local.ray_runner import RayRunner
from zettel.model import Event, JobKind, Scope
from zettel.ports.language_model import ModelAnnotation
from zettel.ports.settings import Settings

from .child_process import difference, server_cpu_seconds, tree_cpu_seconds
from .completions import CompletionServer
from .evaluation import Progress
from .overlap import TENANT, store_name
from .replay import Replay, Spoken
from .results import Cell, Result
from .server_use import ServerUse
from .timing import MILLISECONDS
from .zipf import SEED, VERSION, ZipfScope

if TYPE_CHECKING:
    from zettel.ports import GraphStore

ROUNDS = 2
SCOPES = 8
"""Scopes of each work: more than workers, because links of one scope are written one batch at a time."""
ANSWER_SECONDS = 3.0
"""Time of the model server for each answer."""
WARM_UPS = 16
"""Events by which each worker opens the store and loads its models."""
OBJECT_STORE_BYTES = 80 * 2**20
"""Shared memory of a node, little more than Ray's minimum: only batches of jobs pass through it."""
RESERVE_SECONDS = 60.0
"""Seconds in which Ray has to reserve CPUs."""
SYSTEM = {"worker_niceness": 0, "idle_worker_killing_time_threshold_ms": 3_600_000}
"""Settings of Ray. By default it gives its workers the niceness 15, so that other programs on the machine slow them
down, and ends idle ones after a second, so that a run with more workers would start some of them again."""
MODEL = "openai/recorded"


class Work(NamedTuple):
    """One kind of work: events per scope, whether a model is called, and the jobs that warm up a worker."""

    events: int
    calls_model: bool
    warm_up: tuple[JobKind, ...]


WORKS = {
    "computing": Work(50, False, (JobKind.EMBED,)),
    "waiting": Work(24, True, (JobKind.EMBED, JobKind.ANNOTATE)),
}


class Run(NamedTuple):
    """Seconds, CPU seconds of driver and workers and of the server (None if unknown), and calls of a model."""

    seconds: float
    cpu: float | None
    served: float | None
    calls: int


async def run(
    url: str,
    worker_counts: Sequence[int],
    progress: Progress,
    rounds: int = ROUNDS,
    embedder: str | None = None,
    server_folder: Path | None = None,
) -> Result:
    """Measure both kinds of work with each number of workers, in alternating order.

    With a ``server_folder``, that of ``zettel neo4j up``, also the processor time of the server is measured.

    Raises ``InvalidInput`` unless the numbers are positive, no job waits in the store, and the folder is that of the
    store's server; ``MissingExtra`` without Ray; ``LocalServerError`` for a folder without a running server; and the
    errors of opening the store.
    """
    counts = sorted(set(worker_counts))
    if not counts or counts[0] < 1:
        raise InvalidInput("--workers: name numbers of workers from 1, such as 1,2,4")
    if find_spec("ray") is None:
        raise MissingExtra("the benchmark of a cluster", "ray")
    pid = None if server_folder is None else ServerUse(server_folder, url).pid
    server = await _prepare(url)
    settings = Settings(url, embedder=embedder, away=True)
    loads = [os.getloadavg()[0]]
    rows, starts = list[list[Cell]](), list[list[Cell]]()
    began = time.perf_counter()
    with _cluster(counts[-1]) as address:
        starts.append(_last("Ray starts", time.perf_counter() - began, len(counts)))
        for name in WORKS:
            ready, runs = await _measure(name, settings, address, counts, rounds, progress, pid)
            loads.append(os.getloadavg()[0])
            rows += _rows(name, runs)
            starts.append(_last(f"workers start, {name}", ready, len(counts)))
    info = load_embedder(embedder).info
    return Result(
        bench="cluster",
        data=[],
        ran_on={"server": server, "seed": SEED, "messages": f"made up, version {VERSION}"},
        settings={
            "nodes": 2,
            "rounds": rounds,
            "scopes": SCOPES,
            **{f"events, {name}": SCOPES * work.events for name, work in WORKS.items()},
            "answer, s": ANSWER_SECONDS,
            "load": f"{min(loads):.1f} to {max(loads):.1f}",
            "embedder": f"{info.name} ({info.dim}, {info.fingerprint[:12]})",
            "store": "neo4j",
        },
        columns=["measured", *("1 worker" if count == 1 else f"{count} workers" for count in counts), "unit"],
        rows=[*rows, *starts],
        notes=[
            "The two nodes of Ray are on this machine, and share its cores with the driver and, if it runs here, the "
            "server. A worker is a process of Ray with one CPU reserved.",
            "The events are stored before the clock starts, and each work has been done once, because the server "
            f"compiles queries. Cells are the median of {rounds} rounds in alternating order, ratios those of each.",
            "computing: vectors and links. waiting: the same, and annotation and links by a model that takes "
            f"{ANSWER_SECONDS:g} s for each answer. Calls at once are the average.",
            "CPU time is that of the driver and all processes of Ray; that of the server is apart. Workers start until "
            "each of them has opened the store, loaded its models and done a batch. load: the average of a minute.",
        ],
    )


async def _prepare(url: str) -> str:
    """Delete the scopes of an interrupted run; return the server's name. Raises ``InvalidInput`` if jobs wait."""
    store = open_store(url)
    await store.open()
    try:
        await _drop(store, [scope for scope in await store.scopes() if scope.tenant == TENANT])
        if waiting := await store.pending(None):
            wait = "1 job waits" if waiting == 1 else f"{waiting:,} jobs wait"
            raise InvalidInput(f"{wait} in {url}: run `zettel worker --once` first, or use another server")
        return await store_name(store)
    finally:
        await store.close()


# measured -------------------------------------------------------------------------------------------------------


@contextmanager
def _cluster(workers: int) -> Iterator[str]:
    """Start two nodes of Ray with so many CPUs in all; yield their address."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # Ray's telemetry is on by default
    node = {"object_store_memory": OBJECT_STORE_BYTES}
    head = {**node, "num_cpus": workers - workers // 2, "include_dashboard": False, "_system_config": SYSTEM}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        cluster.add_node(num_cpus=workers // 2, **node)
        yield cluster.address
    finally:
        cluster.shutdown()


async def _measure(
    name: str,
    settings: Settings,
    address: str,
    counts: Sequence[int],
    rounds: int,
    progress: Progress,
    server: int | None,
) -> tuple[float, dict[int, list[Run]]]:
    """Return the seconds until all workers have done a batch, and the runs by number of workers."""
    most, runs = counts[-1], {count: list[Run]() for count in counts}
    events, warm_up = _events(name, SCOPES, WORKS[name].events), _events(f"{name} before", most, WARM_UPS)
    replay = Replay(_annotations(chain(*events.values(), *warm_up.values())))
    with CompletionServer(replay, ANSWER_SECONDS) as model:
        if WORKS[name].calls_model:
            settings = replace(settings, llm=LiteLLM(MODEL, api_base=model.url), annotator=LiteLLMAnnotator())

        async def work(workers: int) -> Run:
            return await _work(settings, RayRunner(address, at_once=workers), events, model, most - workers, server)

        progress(f"{name}: starting workers", 0, rounds)
        began = time.perf_counter()
        runner = RayRunner(address)
        async with _engine(settings, runner) as engine:  # stays connected, so that Ray keeps the workers
            async with _stored(engine, warm_up):
                for kind in WORKS[name].warm_up:
                    batches = [await engine.store.claim([kind], CLAIM, MODEL_LEASE_SECONDS, scope) for scope in warm_up]
                    await asyncio.gather(*map(runner.do, batches))
            ready = time.perf_counter() - began
            await work(most)
            for turn in range(rounds):
                for count in counts if turn % 2 == 0 else reversed(counts):
                    progress(f"{name}, {count} workers", turn, rounds)
                    runs[count].append(await work(count))
    return ready, runs


async def _work(
    settings: Settings,
    runner: RayRunner,
    events: Mapping[Scope, list[Event]],
    model: CompletionServer,
    reserved: int,
    server: int | None,
) -> Run:
    """Run the jobs of these events while some CPUs of the cluster are reserved."""
    with _reserved(reserved):
        async with _engine(settings, runner) as engine, _stored(engine, events):
            began, worked, asked = time.perf_counter(), tree_cpu_seconds(), model.asked
            served = server_cpu_seconds(server)
            engine.loop.start()
            await engine.loop.drain(None, None)
            seconds, ended = time.perf_counter() - began, tree_cpu_seconds()
            served_after = server_cpu_seconds(server)
    return Run(seconds, difference(worked, ended), difference(served, served_after), model.asked - asked)


@asynccontextmanager
async def _engine(settings: Settings, runner: RayRunner) -> AsyncIterator[Engine]:
    """Connect a memory to the cluster. Its jobs wait in the queue until its loop starts."""
    await runner.start(settings)
    engine = await assemble(settings, runner)
    try:
        yield engine
    finally:
        await engine.close()


@asynccontextmanager
async def _stored(engine: Engine, events: Mapping[Scope, Sequence[Event]]) -> AsyncIterator[None]:
    """Store the events, and delete their scopes at the end."""
    try:
        for scope, of_scope in events.items():
            await engine.remember(scope, of_scope, "error", Ordinals())
        yield
    finally:
        await _drop(engine.store, events)


async def _drop(store: GraphStore, scopes: Iterable[Scope]) -> None:
    for scope in scopes:
        await store.drop_scope(scope)


@contextmanager
def _reserved(cpus: int) -> Iterator[None]:
    """Reserve CPUs of the cluster, so that fewer workers run. Raises ``RunnerUnavailable``."""
    from ray.util import placement_group, remove_placement_group

    if cpus == 0:
        yield
        return
    group = placement_group([{"CPU": 1}] * cpus, strategy="SPREAD")
    try:
        if not group.wait(RESERVE_SECONDS):
            raise RunnerUnavailable(f"Ray did not reserve {cpus} CPUs in {RESERVE_SECONDS:g} s: run it again")
        yield
    finally:
        remove_placement_group(group)


# data -----------------------------------------------------------------------------------------------------------


def _events(name: str, scopes: int, events: int) -> dict[Scope, list[Event]]:
    return {
        Scope(tenant=TENANT, user=f"{name} {number}"): list(ZipfScope(events, SEED + number))
        for number in range(scopes)
    }


def _annotations(events: Iterable[Event]) -> dict[Spoken, ModelAnnotation]:
    """Return annotations about as long as those of a model, from the words of each event."""
    annotations = {}
    for event in events:
        words = event.content.rstrip(".?").split()
        annotation = ModelAnnotation(f"{event.speaker} writes: {event.content}", tuple(words[:6]), tuple(words[6:8]))
        annotations[Spoken(event.speaker or "", event.content)] = annotation
    return annotations


# rows -----------------------------------------------------------------------------------------------------------


def _rows(name: str, runs: Mapping[int, Sequence[Run]]) -> list[list[Cell]]:
    events = SCOPES * WORKS[name].events
    rates = [[events / run.seconds for run in of_count] for of_count in runs.values()]
    ratios = [[rate / alone for rate, alone in zip(each, rates[0], strict=True)] for each in rates]
    rows: list[list[Cell]] = [
        _row(name, rates, 1, "events/s"),
        ["- least", *(round(min(each), 1) for each in rates), "events/s"],
        ["- most", *(round(max(each), 1) for each in rates), "events/s"],
        _row(f"- ÷ {min(runs)} worker", ratios, 2, "times"),
    ]
    if WORKS[name].calls_model:
        at_once = [[run.calls * ANSWER_SECONDS / run.seconds for run in of_count] for of_count in runs.values()]
        rows.append(_row("- calls at once", at_once, 1, "calls"))
        per_event = [[run.calls / events for run in of_count] for of_count in runs.values()]
        rows.append(_row("- calls an event", per_event, 3, "calls"))
    cpu = [[run.cpu / events * MILLISECONDS for run in each if run.cpu is not None] for each in runs.values()]
    if all(cpu):
        rows.append(_row("- CPU time an event", cpu, 1, "ms"))
    served = [[run.served / events * MILLISECONDS for run in each if run.served is not None] for each in runs.values()]
    if all(served):
        rows.append(_row("- CPU time of the server an event", served, 1, "ms"))
    return rows


def _row(name: str, values: Iterable[Sequence[float]], digits: int, unit: str) -> list[Cell]:
    """Return the median of the values for each number of workers."""
    return [name, *(round(median(each), digits) for each in values), unit]


def _last(name: str, seconds: float, columns: int) -> list[Cell]:
    """Return a row with seconds that were measured with the most workers only."""
    return [name, *[None] * (columns - 1), round(seconds, 1), "s"]
