"""Writes, searches and ``add`` on a Neo4j server, compared with bare Cypher and the embedded store.

Writes are compared with bare statements (``neo4j_writes``), searches and ``add`` with the embedded store. Searches and
writers run in child processes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import anyio

from zettel import Memory
from zettel.embed import load_embedder
from zettel.model import Scope
from zettel.ports import Embedder

from . import neo4j_writes, sizes
from .child_process import (
    SEARCHES_BEFORE,
    adds,
    difference,
    run_in_child,
    searches,
    server_cpu_seconds,
    uncached_searches,
)
from .evaluation import Progress, run_settings
from .metrics import overlap
from .overlap import TENANT
from .results import Cell, Result
from .server_use import ServerUse
from .timing import MILLISECONDS, STAGES, percentiles
from .zipf import SEED, VERSION, ZipfScope

SIZES = (10_000, 100_000)
QUESTIONS = 300  # a round
ROUNDS = 2
"""Each round searches every size on both sides. An untimed round comes first, because the server compiles queries."""
K = 10
PERCENTILES = (50, 95)

WRITERS = 2
ADDED_TO = 1_000
"""Notes before the writers start."""
ADDS_BEFORE, ADDING = 50, 20.0
"""Untimed events of each writer, and seconds of the measurement."""
SESSIONS_APART = 5_000
MOST_ADDED = (WRITERS + 1) * SESSIONS_APART * 40
"""Sessions between the starts of two writers, and size of the synthetic scope."""

UNCACHED_QUESTIONS, PROCESSES = 50, 3
"""Searches of a scope that is not cached, in each of so many new processes."""

BARE, EMBEDDED, CACHED = "bare UNWIND", "embedded", "cached"


class Searched(NamedTuple):
    """Seconds by stage, events of the hits, and CPU seconds of the server, of the searches of the timed rounds."""

    seconds: list[dict[str, float]]
    found: list[list[str]]
    served: list[float]


class Imported(NamedTuple):
    """Notes per second of an import, and CPU seconds of the client and the server; None if unknown."""

    rate: float | None
    client: float | None = None
    served: float | None = None


def run(
    url: str,
    scope_sizes: Sequence[int],
    progress: Progress,
    folder: Path | None = None,
    embedder: str | None = None,
    server_folder: Path | None = None,
) -> Result:
    """Measure the server at ``url``, with searches in synthetic scopes of ``scope_sizes``.

    With a ``folder``, embedded stores and server scopes remain for the next run; otherwise they are deleted. With a
    ``server_folder``, that of ``zettel neo4j up``, also processor time and the server's disk are measured, for which
    the server restarts.

    Raises ``InvalidInput`` for a size below 1, an unusable folder or one of another server, ``LocalServerError`` for
    a folder without a running server, and the errors of opening the store.
    """
    scope_sizes = sizes.sorted_sizes(scope_sizes)
    server = None if server_folder is None else ServerUse(server_folder, url)
    model = load_embedder(embedder)
    inserted = anyio.run(neo4j_writes.measure, url, model, progress)
    rows = [_row(f"insert, batches of {neo4j_writes.BATCH:,}", *inserted.rates, "notes/s", BARE)]
    empty = None if server is None else server.disk_bytes()
    pid = None if server is None else server.pid  # that of the restarted server
    with sizes.folder_or_temporary(folder) as parent:
        try:
            rows += _imports(url, scope_sizes, parent, model, progress, pid)
            rows += _searches(url, scope_sizes, parent, embedder, progress, pid)
            if server is not None and empty is not None:
                disk = (server.disk_bytes() - empty) / sum(scope_sizes)
                rows.append(_alone("disk of the server, all scopes", disk, "bytes a note"))
        finally:
            if folder is None:
                _delete_scopes(url, [_scope(size) for size in scope_sizes], model)
    rows += _adds(url, model, embedder, progress)
    return Result(
        bench="neo4j",
        data=[],
        ran_on={"server": inserted.server, "seed": SEED, "messages": f"made up, version {VERSION}"},
        settings=run_settings(None, (), model, K) | {"store": "neo4j"},
        columns=["measured", "neo4j", "beside", "ratio", "unit", "beside it"],
        rows=rows,
        notes=_notes(),
    )


# searches -------------------------------------------------------------------------------------------------------


def _imports(
    url: str,
    scope_sizes: Sequence[int],
    parent: Path,
    model: Embedder,
    progress: Progress,
    server: int | None,
) -> list[list[Cell]]:
    """Fill both stores with each size, unless they contain it."""
    rows = []
    for size in scope_sizes:
        theirs, _ = sizes.prepare(sizes.size_folder(parent, size), ZipfScope(size), model, progress)[sizes.IMPORT]
        assert isinstance(theirs, float)
        ours = _imported(url, size, model, progress, server)
        rows.append(_row(f"import until flush, {size:,}", ours.rate, theirs, "notes/s"))
        used = {"CPU of the client": ours.client, "CPU of the server": ours.served}
        for name, seconds in used.items():
            if seconds is not None and server is not None:
                rows.append(_alone(f"- import: {name}, {size:,}", seconds * MILLISECONDS / size, "ms a note"))
    return rows


def _imported(url: str, size: int, model: Embedder, progress: Progress, server: int | None) -> Imported:
    """Fill the server's scope; nothing is measured if it was not empty."""
    with Memory(url, embedder=model, scope=_scope(size)) as memory:
        before = memory.stats(scope=_scope(size))
        if before["events"] == size and before["jobs"] == 0:
            return Imported(None)
        served, worked = server_cpu_seconds(server), time.process_time()
        seconds = sizes.import_seconds(memory, ZipfScope(size), progress)
        client, served_after = time.process_time() - worked, server_cpu_seconds(server)
    if before["events"]:
        return Imported(None)
    return Imported(size / seconds, client, difference(served, served_after))


def _searches(
    url: str,
    scope_sizes: Sequence[int],
    parent: Path,
    embedder: str | None,
    progress: Progress,
    server: int | None,
) -> list[list[Cell]]:
    ours = {size: Searched([], [], []) for size in scope_sizes}
    theirs = {size: Searched([], [], []) for size in scope_sizes}
    for turn in range(1 + ROUNDS):
        for place, size in enumerate(scope_sizes):
            progress(f"asking, round {turn + 1}", place, len(scope_sizes))
            texts = [question.text for question in ZipfScope(size).questions(QUESTIONS)]
            arguments: dict[str, Any] = {
                "embedder": embedder, "questions": texts, "k": K, "before": SEARCHES_BEFORE,
            }  # fmt: skip
            embedded = run_in_child(searches, store=str(sizes.size_folder(parent, size) / sizes.MEMORY), **arguments)
            served = run_in_child(searches, store=url, scope=_scope(size).model_dump(), server=server, **arguments)
            if turn:
                for totals, answer in ((ours, served), (theirs, embedded)):
                    totals[size].seconds.extend(answer["seconds"])
                    totals[size].found.extend(answer["found"])
                    totals[size].served.append(answer["served"])
    rows = [row for size in scope_sizes for row in _search_rows(size, ours[size], theirs[size])]
    for place, size in enumerate(scope_sizes):
        progress("asking uncached scopes", place, len(scope_sizes))
        rows += _uncached_rows(url, size, embedder, _median(ours[size]), server)
    smallest = scope_sizes[0]
    for size in scope_sizes[1:]:
        served, embedded = (_median(side[size]) / _median(side[smallest]) for side in (ours, theirs))
        rows.append(_row(f"search p50, {size:,} ÷ {smallest:,}", served, embedded, "times"))
    return rows


def _search_rows(size: int, ours: Searched, theirs: Searched) -> list[list[Cell]]:
    def pair(stage: str) -> list[list[float]]:
        return [percentiles([seconds[stage] for seconds in side.seconds], PERCENTILES) for side in (ours, theirs)]

    rows = [
        _row(f"search p{percentile}, {size:,}", served, embedded, "ms")
        for percentile, served, embedded in zip(PERCENTILES, *pair("search"), strict=True)
    ]
    for stage in STAGES:
        served, embedded = pair(stage)
        rows.append(_row(f"- {stage} p50, {size:,}", served[0], embedded[0], "ms"))
    rows += _served_row(f"- CPU of the server, {size:,}", ours.served, len(ours.seconds))
    shared = round(overlap(ours.found, theirs.found), 4)
    return [*rows, [f"- overlap @{K}, {size:,}", shared, None, None, "of 1", EMBEDDED]]


def _served_row(name: str, served: Sequence[float | None], searches: int) -> list[list[Cell]]:
    """The server's CPU time for a search; no row if it was not measured."""
    known = [seconds for seconds in served if seconds is not None]
    return [_alone(name, sum(known) * MILLISECONDS / searches, "ms a search")] if known else []


def _uncached_rows(url: str, size: int, embedder: str | None, cached: float, server: int | None) -> list[list[Cell]]:
    """Searches in a scope that is not cached: the first of a new process, and later ones."""
    texts = [question.text for question in ZipfScope(size).questions(UNCACHED_QUESTIONS)]
    runs = [
        run_in_child(
            uncached_searches, store=url, embedder=embedder, questions=texts, k=K, scope=_scope(size).model_dump(),
            before=SEARCHES_BEFORE, server=server,
        )
        for _ in range(PROCESSES)
    ]  # fmt: skip
    cold = percentiles([run["first"] for run in runs], PERCENTILES)[0]
    warm = percentiles([seconds for run in runs for seconds in run["seconds"]], PERCENTILES)[0]
    return [
        _row(f"first search, new process, {size:,}", cold, cached, "ms", CACHED),
        _row(f"first search, warm, {size:,}", warm, cached, "ms", CACHED),
        *_served_row(
            f"- CPU of the server, warm, {size:,}", [run["served"] for run in runs], PROCESSES * UNCACHED_QUESTIONS
        ),
    ]


def _median(searched: Searched) -> float:
    return percentiles([seconds["search"] for seconds in searched.seconds], PERCENTILES)[0]


def _scope(size: int) -> Scope:
    return Scope(tenant=TENANT, user=f"made up {VERSION}, {size}")


# writers --------------------------------------------------------------------------------------------------------


def _adds(url: str, model: Embedder, embedder: str | None, progress: Progress) -> list[list[Cell]]:
    """Percentiles of ``add``: all writers in one scope, and each in a scope of its own."""
    rows = []
    for where, scopes in (("one scope", 1), ("a scope each", WRITERS)):
        progress(f"adding, {where}", 0, 1)
        with TemporaryDirectory(prefix="zettel-bench-") as folder:
            sides = [_add_seconds(store, scopes, model, embedder) for store in (url, str(Path(folder) / "added.db"))]
        for percentile, ours, theirs in zip(
            PERCENTILES, *(percentiles(side, PERCENTILES) for side in sides), strict=True
        ):
            rows.append(_row(f"add p{percentile}, {WRITERS} writers, {where}", ours, theirs, "ms"))
    return rows


def _add_seconds(store: str, scopes: int, model: Embedder, embedder: str | None) -> list[float]:
    """Return seconds of each ``add`` while all writers were active."""
    into = [Scope(tenant=TENANT, user=f"add {number}") for number in range(scopes)]
    _delete_scopes(store, into, model)  # from an interrupted run
    try:
        for scope in into:
            with Memory(store, embedder=model, scope=scope) as memory:
                memory.add_many_report(list(islice(ZipfScope(MOST_ADDED), ADDED_TO)))
                memory.flush()
        with TemporaryDirectory(prefix="zettel-bench-") as ready_folder, ThreadPoolExecutor(WRITERS) as pool:
            write = partial(
                run_in_child, adds, store=store, embedder=embedder, notes=MOST_ADDED, before=ADDS_BEFORE,
                writers=WRITERS, ready_folder=ready_folder, seconds=ADDING,
            )  # fmt: skip
            writers = [
                pool.submit(write, scope=into[n % scopes].model_dump(), session=(n + 1) * SESSIONS_APART)
                for n in range(WRITERS)
            ]
            return [seconds for writer in writers for seconds in writer.result()["seconds"]]
    finally:
        _delete_scopes(store, into, model)


def _delete_scopes(store: str, scopes: Sequence[Scope], model: Embedder) -> None:
    with Memory(store, embedder=model) as memory:
        for scope in scopes:
            memory.delete_scope(scope=scope)


# rows -----------------------------------------------------------------------------------------------------------


def _row(name: str, ours: float | None, theirs: float, unit: str, beside: str = EMBEDDED) -> list[Cell]:
    ratio = None if ours is None or not theirs else round(ours / theirs, 2)
    return [name, None if ours is None else round(ours, 2), round(theirs, 2), ratio, unit, beside]


def _alone(name: str, value: float, unit: str) -> list[Cell]:
    return [name, round(value, 2), None, None, unit, None]


def _notes() -> list[str]:
    return [
        f"Insert: {neo4j_writes.BATCHES} batches from an empty scope on, with vectors, Terms, RELATES and MENTIONS, "
        "all made before; the bare side writes the same nodes and relationships, one UNWIND for each label and type, "
        f"one transaction a batch; median of {neo4j_writes.ROUNDS} rounds after {neo4j_writes.WARM_UPS} that are not "
        "counted.",
        f"Searches: {QUESTIONS} questions in each of {ROUNDS} rounds, after one that is not counted; a process for "
        f"each store, size and round, its first {SEARCHES_BEFORE} searches not counted; p50 of parts do not add up to "
        "the whole's.",
        f"First searches: in {PROCESSES} processes for each size, in a scope that is not cached. In a new process, the "
        f"driver connects; warm are {UNCACHED_QUESTIONS} searches after {SEARCHES_BEFORE} that are not counted, with "
        "open connections. Both beside the p50 of a cached scope.",
        "Imports are annotated, embedded and linked; no rate for a scope that was in the server already. CPU is the "
        "processor time of the client's process and of the server's, disk the growth of stores and indexes, without "
        "the log, between two restarts. A server uses the space of deleted data first: measure disk on a new one.",
        f"add: one event after another by {WRITERS} processes, each with its own jobs, for {ADDING:g} s in which all "
        f"are at work; embedding included, into scopes of {ADDED_TO:,} notes.",
    ]
