"""Imports by size: made-up messages from files, until everything is annotated, linked and durable, and then searched.

Many scopes of one size, as a team's users are, or one long file in one scope. Each import has a process of its own, and
so has each round of searches: peak memory is that of the import alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.model import Event

from .evaluation import Progress, answering
from .machine import Cell, Result, result
from .pictures import IMPORTING
from .probe import in_fresh_process
from .sizes import in_order, kept_in
from .timing import percentiles
from .zipf import SEED, VERSION, ZipfScope

SIZES = (10_000, 100_000, 1_000_000)
SCOPE_SIZE = 5_000
"""Messages of a scope: years of one user's notes. 10,000 of them are two scopes, a million are 200."""
QUESTIONS = 300
WARMING = 100
"""Searches that are not counted, after one in each scope that has its columns read."""
PERCENTILES = (50, 90)
K = 10
BESIDE = 4_000
"""Messages of the file that a long one is compared with: 20 MB."""
SAID_AT_ONCE = 50
"""Made-up messages that one of a long file says one after the other: about 5 KB."""
MEGABYTE, MILLI = 1_000_000, 1_000.0
_QUESTIONS_OF = 2**33
"""With the seed: random numbers of their own for which scopes are asked."""

Rows = dict[str, tuple[Cell, str]]


class _Imported(NamedTuple):
    """A store that was filled, and what that took: seconds, seconds of the processor, bytes."""

    events: int
    store: Path
    wall: float
    cpu: float
    peak: int | None
    vectors: int
    disk: int


def run(
    sizes: Sequence[int],
    progress: Progress,
    scope_size: int = SCOPE_SIZE,
    folder: Path | None = None,
    embedder: str | None = None,
    runner: str | None = None,
) -> Result:
    """Import and search each of ``sizes``, smallest first; files and stores are left in ``folder`` if one is named.

    Raises ``InvalidInput`` for a size below 1.
    """
    sizes = in_order(sizes)
    if scope_size < 1:
        raise InvalidInput("a made-up scope has at least one note")
    measured: list[Rows] = []
    with kept_in(folder) as kept:
        for size in sizes:
            into = _emptied(kept / f"import-{size}")
            scopes = _scopes(size, scope_size)
            progress(f"making {size:,} messages", 0, size)
            files = [
                (_written(into / f"{user}.jsonl", ZipfScope(notes, SEED + number)), user)
                for number, (user, notes) in enumerate(scopes.items())
            ]
            done = _imported(into, files, size, embedder, runner, progress)
            measured.append(_import_rows(done) | _search_rows(done, scopes, embedder, progress))
    first = measured[0]
    for rows in measured:
        for name, unit_of in (("events a second", "rate ÷ smallest"), ("search p50", "search p50 ÷ smallest")):
            rows[unit_of] = (_ratio(rows[name][0], first[name][0]), "times")
    return result(
        bench=IMPORTING,
        ran_on={"seed": SEED, "messages": f"made up, version {VERSION}", "a scope": scope_size},
        settings={**answering(None, (), load_embedder(embedder), K), "runner": runner or "here"},
        columns=["messages", *(f"{size:,}" for size in sizes), "unit"],
        rows=[[name, *(rows[name][0] for rows in measured), unit] for name, (_, unit) in first.items()],
        notes=[
            "An import counts until flush returns, jobs included, and has a process of its own, or with a runner "
            "several; CPU time and peak RSS, the most until the store is closed, are those of all of them. The vector "
            "index is that of `zettel stats`, disk the store's files.",
            f"Searches: {QUESTIONS} questions to scopes taken at random, in another process, after one question to "
            f"each scope and {WARMING} more that are not counted. The file is read once before, so that the system has "
            "it in its cache, and no disk is measured.",
        ],
    )


def run_long(
    messages: int,
    progress: Progress,
    folder: Path | None = None,
    embedder: str | None = None,
    runner: str | None = None,
) -> Result:
    """Import one file of so many messages of 5 KB into one scope, beside one of ``BESIDE``.

    Raises ``InvalidInput`` for fewer than these.
    """
    if messages <= BESIDE:
        raise InvalidInput(f"--long {messages}: name more than the {BESIDE:,} messages it is compared with")
    measured: list[Rows] = []
    with kept_in(folder) as kept:
        for size in (BESIDE, messages):
            into = _emptied(kept / f"long-{size}")
            progress(f"making {size:,} long messages", 0, size)
            file = _written(into / "long.jsonl", _long_messages(size))
            done = _imported(into, [(file, None)], size, embedder, runner, progress)
            written: Rows = {"file": (_megabytes(file.stat().st_size), "MB")}
            measured.append(written | _import_rows(done))
    small, large = measured
    rows: list[list[Cell]] = []
    for name, (cell, unit) in large.items():
        beside = small[name][0]
        assert isinstance(cell, (int, float))
        assert isinstance(beside, (int, float))
        rows.append([name, beside, cell, round(cell - beside, 1) if unit == "MB" else None, unit])
    return result(
        bench="import of a long file",
        ran_on={"seed": SEED, "messages": f"made up, version {VERSION}", "said at once": SAID_AT_ONCE},
        settings={**answering(None, (), load_embedder(embedder), K), "runner": runner or "here"},
        columns=["messages of 5 KB", f"{BESIDE:,}", f"{messages:,}", "more", "unit"],
        rows=rows,
        notes=["One file into one scope, each in a process of its own; peak RSS until the store is closed."],
    )


# made up ---------------------------------------------------------------------------------------------------------


def _scopes(size: int, scope_size: int) -> dict[str, int]:
    """The users of the scopes, and how many messages each has."""
    starts = range(0, size, scope_size)
    return {f"user-{number:05}": min(scope_size, size - start) for number, start in enumerate(starts)}


def _long_messages(messages: int) -> Iterator[Event]:
    """Each says what several messages of a made-up scope say, in its first one's name and time."""
    scope = ZipfScope(messages * SAID_AT_ONCE)
    waiting = ((session, one) for session in count() for one in scope.said(session))
    for number in range(messages):
        some = list(islice(waiting, SAID_AT_ONCE))
        session, first = some[0]
        content = " ".join(one.text for _, one in some)
        yield Event(id=str(number), content=content, role=first.role, session=f"s{session}", occurred_at=first.at)


def _written(path: Path, events: Iterable[Event]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        for event in events:
            file.write(event.model_dump_json(exclude_none=True, exclude_defaults=True) + "\n")
    return path


def _emptied(folder: Path) -> Path:
    """A folder of ours, without what an earlier run left in it."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in ("*.jsonl", "memory.db*"):
        for left in folder.glob(pattern):
            left.unlink()
    return folder


# measured --------------------------------------------------------------------------------------------------------


def _imported(
    into: Path,
    files: Sequence[tuple[Path, str | None]],
    events: int,
    embedder: str | None,
    runner: str | None,
    progress: Progress,
) -> _Imported:
    progress("importing", 0, events)
    store = into / "memory.db"
    told: dict[str, Any] = in_fresh_process(
        what="imports", store=str(store), embedder=embedder, runner=runner,
        files=[(str(path), user) for path, user in files],
    )  # fmt: skip
    assert told.pop("events") == events, "all of it is there"
    disk = sum(path.stat().st_size for path in into.glob(f"{store.name}*"))
    return _Imported(events=events, store=store, disk=disk, **told)


def _import_rows(done: _Imported) -> Rows:
    rows: Rows = {
        "events a second": (round(done.events / done.wall, 1), "a second"),
        "wall time": (round(done.wall, 2), "s"),
        "CPU time": (round(done.cpu, 2), "s"),
        "CPU time an event": (round(done.cpu / done.events * MILLI, 3), "ms"),
        "vector index": (_megabytes(done.vectors), "MB"),
    }
    if done.peak is not None:
        rows["peak RSS"] = (_megabytes(done.peak), "MB")
        rows["peak RSS less vector index"] = (_megabytes(done.peak - done.vectors), "MB")
    rows["disk"] = (_megabytes(done.disk), "MB")
    rows["disk an event"] = (round(done.disk / done.events), "bytes")
    return rows


def _search_rows(done: _Imported, scopes: dict[str, int], embedder: str | None, progress: Progress) -> Rows:
    progress(f"asking {done.events:,} messages", 0, QUESTIONS)
    taken = np.random.Generator(np.random.PCG64([SEED, _QUESTIONS_OF])).integers(len(scopes), size=WARMING + QUESTIONS)
    made = [ZipfScope(notes, SEED + number) for number, notes in enumerate(scopes.values())]
    users = list(scopes)
    asked = {number: iter(made[number].questions(int((taken == number).sum()))) for number in set(taken.tolist())}
    questions = [(users[number], next(asked[number]).text) for number in taken.tolist()]
    first = [(user, one.questions(1)[0].text) for user, one in zip(users, made, strict=True)]
    _into_cache(done.store)
    told = in_fresh_process(
        what="asks_scopes", store=str(done.store), embedder=embedder, questions=[*first, *questions],
        before=len(first) + WARMING, k=K,
    )  # fmt: skip
    found = percentiles(told["seconds"], PERCENTILES)
    return {f"search p{p}": (value, "ms") for p, value in zip(PERCENTILES, found, strict=True)}


def _into_cache(store: Path) -> None:
    with store.open("rb") as file:
        while file.read(MEGABYTE):
            pass


def _megabytes(size: int) -> float:
    return round(size / MEGABYTE, 1)


def _ratio(one: Cell, other: Cell) -> Cell:
    assert isinstance(one, (int, float))
    assert isinstance(other, (int, float))
    return round(one / other, 2)
