"""A Neo4j server, measured beside what does the same without one, all in one run.

Writes stand beside bare statements (``inserting``), searches beside the embedded store on the same events and
questions, ``add`` beside the embedded store with as many writers. Searches and writers have processes of their own.
"""

from __future__ import annotations

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

from . import inserting, sizes
from .counting import overlap
from .evaluation import Progress, answering
from .machine import Cell, Result, result
from .overlap import TENANT
from .probe import SEARCHES_BEFORE, in_fresh_process
from .timing import STAGES, percentiles
from .zipf import SEED, VERSION, ZipfScope

SIZES = (10_000, 100_000)
QUESTIONS = 300  # a round
ROUNDS = 2
"""In each round every size is asked on both sides. One more comes first and is not counted: the server compiles what it
runs often, and the first size that is asked would pay for it."""
K = 10
PERCENTILES = (50, 95)

WRITERS = 2
ADDED_TO = 1_000
"""Notes that are there before the writers begin."""
ADDS_BEFORE, ADDING = 50, 20.0
"""Events that each writer adds before it counts as being at work; seconds in which all of them are."""
SESSIONS_APART = 5_000
MOST_ADDED = (WRITERS + 1) * SESSIONS_APART * 40
"""Sessions from one writer's first to the next one's, and the size of the made-up scope that these are of."""

BARE, EMBEDDED = "bare UNWIND", "embedded"


class Searched(NamedTuple):
    """One store's answers of the counted rounds: seconds by stage, and for each question the events found."""

    seconds: list[dict[str, float]]
    found: list[list[str]]


def run(
    url: str, chosen: Sequence[int], progress: Progress, folder: Path | None = None, embedder: str | None = None
) -> Result:
    """Measure the server at ``url``, searches in made-up scopes of the ``chosen`` sizes.

    With a ``folder``, the embedded stores are kept in it and the scopes in the server, for the next run; else all that
    was made is deleted. Raises ``InvalidInput`` for a size below 1 or an unusable folder, and what opening raises.
    """
    chosen = sizes.in_order(chosen)
    model = load_embedder(embedder)
    inserted = anyio.run(inserting.measure, url, model, progress)
    rows = [_row(f"insert, batches of {inserting.BATCH:,}", *inserted.rates, "notes/s", BARE)]
    with sizes.kept_in(folder) as kept:
        try:
            rows += _imports(url, chosen, kept, model, progress)
            rows += _searches(url, chosen, kept, embedder, progress)
        finally:
            if folder is None:
                _forget(url, [_scope(size) for size in chosen], model)
    rows += _adds(url, model, embedder, progress)
    return result(
        bench="neo4j",
        ran_on={"server": inserted.server, "seed": SEED, "messages": f"made up, version {VERSION}"},
        settings=answering(None, (), model, K) | {"store": "neo4j"},
        columns=["measured", "neo4j", "beside", "ratio", "unit", "beside it"],
        rows=rows,
        notes=_notes(),
    )


# searches -------------------------------------------------------------------------------------------------------


def _imports(url: str, chosen: Sequence[int], kept: Path, model: Embedder, progress: Progress) -> list[list[Cell]]:
    """Fill both sides with each size, unless that was done before."""
    rows = []
    for size in chosen:
        theirs, _ = sizes.made(sizes.folder_of(kept, size), ZipfScope(size), model, progress)[sizes.IMPORT]
        assert isinstance(theirs, float)
        ours = _import_rate(url, size, model, progress)
        rows.append(_row(f"import until flush, {size:,}", ours, theirs, "notes/s"))
    return rows


def _import_rate(url: str, size: int, model: Embedder, progress: Progress) -> float | None:
    """Fill the server's scope; None if something of it was there, of a run that was kept or cut off."""
    with Memory(url, embedder=model, scope=_scope(size)) as memory:
        there = memory.stats(scope=_scope(size))
        if there["events"] == size and there["jobs"] == 0:
            return None
        seconds = sizes.import_seconds(memory, ZipfScope(size), progress)
    return None if there["events"] else size / seconds


def _searches(
    url: str, chosen: Sequence[int], kept: Path, embedder: str | None, progress: Progress
) -> list[list[Cell]]:
    ours = {size: Searched([], []) for size in chosen}
    theirs = {size: Searched([], []) for size in chosen}
    for turn in range(1 + ROUNDS):
        for place, size in enumerate(chosen):
            progress(f"asking, round {turn + 1}", place, len(chosen))
            texts = [question.text for question in ZipfScope(size).questions(QUESTIONS)]
            asked: dict[str, Any] = {
                "what": "searches", "embedder": embedder, "questions": texts, "k": K, "before": SEARCHES_BEFORE,
            }  # fmt: skip
            embedded = in_fresh_process(store=str(sizes.folder_of(kept, size) / sizes.MEMORY), **asked)
            served = in_fresh_process(store=url, scope=_scope(size).model_dump(), **asked)
            if turn:
                for answers, told in ((ours, served), (theirs, embedded)):
                    answers[size].seconds.extend(told["seconds"])
                    answers[size].found.extend(told["found"])
    rows = [row for size in chosen for row in _search_rows(size, ours[size], theirs[size])]
    smallest = chosen[0]
    for size in chosen[1:]:
        served, embedded = (_median(side[size]) / _median(side[smallest]) for side in (ours, theirs))
        rows.append(_row(f"search p50, {size:,} ÷ {smallest:,}", served, embedded, "times"))
    return rows


def _search_rows(size: int, ours: Searched, theirs: Searched) -> list[list[Cell]]:
    def pair(stage: str) -> list[list[float]]:
        return [percentiles([one[stage] for one in side.seconds], PERCENTILES) for side in (ours, theirs)]

    rows = [
        _row(f"search p{percentile}, {size:,}", served, embedded, "ms")
        for percentile, served, embedded in zip(PERCENTILES, *pair("search"), strict=True)
    ]
    for stage in STAGES:
        served, embedded = pair(stage)
        rows.append(_row(f"- {stage} p50, {size:,}", served[0], embedded[0], "ms"))
    shared = round(overlap(ours.found, theirs.found), 4)
    return [*rows, [f"- overlap @{K}, {size:,}", shared, None, None, "of 1", EMBEDDED]]


def _median(searched: Searched) -> float:
    return percentiles([one["search"] for one in searched.seconds], PERCENTILES)[0]


def _scope(size: int) -> Scope:
    return Scope(tenant=TENANT, user=f"made up {VERSION}, {size}")


# writers --------------------------------------------------------------------------------------------------------


def _adds(url: str, model: Embedder, embedder: str | None, progress: Progress) -> list[list[Cell]]:
    """Percentiles of ``add``: all writers in one scope, and each in a scope of its own."""
    rows = []
    for where, scopes in (("one scope", 1), ("a scope each", WRITERS)):
        progress(f"adding, {where}", 0, 1)
        with TemporaryDirectory(prefix="zettel-bench-") as folder:
            sides = [_added(store, scopes, model, embedder) for store in (url, str(Path(folder) / "added.db"))]
        for percentile, ours, theirs in zip(
            PERCENTILES, *(percentiles(side, PERCENTILES) for side in sides), strict=True
        ):
            rows.append(_row(f"add p{percentile}, {WRITERS} writers, {where}", ours, theirs, "ms"))
    return rows


def _added(store: str, scopes: int, model: Embedder, embedder: str | None) -> list[float]:
    """Seconds of each ``add`` of all writers, while all of them were at work."""
    into = [Scope(tenant=TENANT, user=f"add {number}") for number in range(scopes)]
    _forget(store, into, model)  # what a run left that was cut off
    try:
        for scope in into:
            with Memory(store, embedder=model, scope=scope) as memory:
                memory.remember(list(islice(ZipfScope(MOST_ADDED), ADDED_TO)))
                memory.flush()
        with TemporaryDirectory(prefix="zettel-bench-") as meeting, ThreadPoolExecutor(WRITERS) as pool:
            write = partial(
                in_fresh_process, what="adds", store=store, embedder=embedder, notes=MOST_ADDED, before=ADDS_BEFORE,
                writers=WRITERS, meeting=meeting, seconds=ADDING,
            )  # fmt: skip
            writers = [
                pool.submit(write, scope=into[n % scopes].model_dump(), session=(n + 1) * SESSIONS_APART)
                for n in range(WRITERS)
            ]
            return [seconds for writer in writers for seconds in writer.result()["seconds"]]
    finally:
        _forget(store, into, model)


def _forget(store: str, scopes: Sequence[Scope], model: Embedder) -> None:
    with Memory(store, embedder=model) as memory:
        for scope in scopes:
            memory.delete_scope(scope=scope)


# rows -----------------------------------------------------------------------------------------------------------


def _row(name: str, ours: float | None, theirs: float, unit: str, beside: str = EMBEDDED) -> list[Cell]:
    ratio = None if ours is None or not theirs else round(ours / theirs, 2)
    return [name, None if ours is None else round(ours, 2), round(theirs, 2), ratio, unit, beside]


def _notes() -> list[str]:
    return [
        f"Insert: {inserting.BATCHES} batches from an empty scope on, with vectors, Terms, RELATES and MENTIONS, all "
        "made before; the bare side writes the same nodes and relationships, one UNWIND for each label and type, one "
        f"transaction a batch; median of {inserting.ROUNDS} rounds after {inserting.WARM_UPS} that are not counted.",
        f"Searches: {QUESTIONS} questions in each of {ROUNDS} rounds, after one that is not counted; a process for "
        f"each store, size and round, its first {SEARCHES_BEFORE} searches not counted; p50 of parts do not add up to "
        "the whole's.",
        "Imports are annotated, embedded and linked; no rate for a scope that was in the server already.",
        f"add: one event after another by {WRITERS} processes, each with its own jobs, for {ADDING:g} s in which all "
        f"are at work; embedding included, into scopes of {ADDED_TO:,} notes.",
    ]
