"""Import rate, memory, disk and later search times by number of synthetic messages.

Imports many scopes of one size, or one long file into one scope. Each import and each round of searches has its own
process, so that peak memory is that of the import.
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

from .child_process import imports, run_in_child, search_scopes
from .evaluation import Progress, run_settings
from .plots import IMPORTING
from .results import Cell, Result, UnitRows, ratio
from .sizes import folder_or_temporary, sorted_sizes
from .timing import percentiles
from .zipf import SEED, VERSION, ZipfScope

SIZES = (10_000, 100_000, 1_000_000)
SCOPE_SIZE = 5_000
"""Messages of a scope, which is years of one user's notes."""
QUESTIONS = 300
WARMING = 100
"""Untimed searches, after a search in each scope, which loads its columns."""
PERCENTILES = (50, 90)
K = 10
BESIDE = 4_000
"""Messages of the file that a long file is compared with: 20 MB."""
JOINED_MESSAGES = 50
"""Synthetic messages per message of a long file: about 5 KB."""
MEGABYTE, MILLI = 1_000_000, 1_000.0
_QUESTIONS_OF = 2**33
"""Second seed of the generator that selects scopes for questions."""


class _Imported(NamedTuple):
    """A filled store, with wall and CPU seconds, and sizes in bytes."""

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
    """Import and search each of ``sizes``, smallest first; files and stores remain in ``folder`` if given.

    Raises ``InvalidInput`` for a size below 1.
    """
    sizes = sorted_sizes(sizes)
    if scope_size < 1:
        raise InvalidInput("a made-up scope has at least one note: name a size from 1")
    measured: list[UnitRows] = []
    with folder_or_temporary(folder) as parent:
        for size in sizes:
            into = _prepare_folder(parent / f"import-{size}")
            scopes = _scopes(size, scope_size)
            progress(f"making {size:,} messages", 0, size)
            files = [
                (_write_events(into / f"{user}.jsonl", ZipfScope(notes, SEED + number)), user)
                for number, (user, notes) in enumerate(scopes.items())
            ]
            done = _import_files(into, files, size, embedder, runner, progress)
            measured.append(_import_rows(done) | _search_rows(done, scopes, embedder, progress))
    first = measured[0]
    for rows in measured:
        for name, unit_of in (("events a second", "rate ÷ smallest"), ("search p50", "search p50 ÷ smallest")):
            rows[unit_of] = (ratio(rows[name][0], first[name][0]), "times")
    return Result(
        bench=IMPORTING,
        data=[],
        ran_on={"seed": SEED, "messages": f"made up, version {VERSION}", "a scope": scope_size},
        settings={**run_settings(None, (), load_embedder(embedder), K), "runner": runner or "here"},
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
    """Import one file of ``messages`` of 5 KB into one scope, compared with one of ``BESIDE`` messages.

    Raises ``InvalidInput`` unless there are more than ``BESIDE``.
    """
    if messages <= BESIDE:
        raise InvalidInput(f"--long {messages}: name more than the {BESIDE:,} messages of the file for comparison")
    measured: list[UnitRows] = []
    with folder_or_temporary(folder) as parent:
        for size in (BESIDE, messages):
            into = _prepare_folder(parent / f"long-{size}")
            progress(f"making {size:,} long messages", 0, size)
            file = _write_events(into / "long.jsonl", _long_messages(size))
            done = _import_files(into, [(file, None)], size, embedder, runner, progress)
            written: UnitRows = {"file": (_megabytes(file.stat().st_size), "MB")}
            measured.append(written | _import_rows(done))
    small, large = measured
    rows: list[list[Cell]] = []
    for name, (cell, unit) in large.items():
        beside = small[name][0]
        assert isinstance(cell, (int, float))
        assert isinstance(beside, (int, float))
        rows.append([name, beside, cell, round(cell - beside, 1) if unit == "MB" else None, unit])
    return Result(
        bench="import of a long file",
        data=[],
        ran_on={"seed": SEED, "messages": f"made up, version {VERSION}", "said at once": JOINED_MESSAGES},
        settings={**run_settings(None, (), load_embedder(embedder), K), "runner": runner or "here"},
        columns=["messages of 5 KB", f"{BESIDE:,}", f"{messages:,}", "more", "unit"],
        rows=rows,
        notes=["One file into one scope, each in a process of its own; peak RSS until the store is closed."],
    )


# data ------------------------------------------------------------------------------------------------------------


def _scopes(size: int, scope_size: int) -> dict[str, int]:
    """Return the number of messages per user."""
    starts = range(0, size, scope_size)
    return {f"user-{number:05}": min(scope_size, size - start) for number, start in enumerate(starts)}


def _long_messages(messages: int) -> Iterator[Event]:
    """Yield messages that join several synthetic messages, with speaker and time of the first."""
    scope = ZipfScope(messages * JOINED_MESSAGES)
    waiting = ((session, message) for session in count() for message in scope.messages(session))
    for number in range(messages):
        joined = list(islice(waiting, JOINED_MESSAGES))
        session, first = joined[0]
        content = " ".join(message.text for _, message in joined)
        yield Event(
            external_id=str(number), content=content, speaker=first.speaker, session=f"s{session}", occurred_at=first.at
        )


def _write_events(path: Path, events: Iterable[Event]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        for event in events:
            file.write(event.model_dump_json(exclude_none=True, exclude_defaults=True) + "\n")
    return path


def _prepare_folder(folder: Path) -> Path:
    """Create the folder, or delete the files of an earlier run."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in ("*.jsonl", "memory.db*"):
        for file in folder.glob(pattern):
            file.unlink()
    return folder


# measured --------------------------------------------------------------------------------------------------------


def _import_files(
    into: Path,
    files: Sequence[tuple[Path, str | None]],
    events: int,
    embedder: str | None,
    runner: str | None,
    progress: Progress,
) -> _Imported:
    progress("importing", 0, events)
    store = into / "memory.db"
    measured: dict[str, Any] = run_in_child(
        imports, store=str(store), embedder=embedder, runner=runner,
        files=[(str(path), user) for path, user in files],
    )  # fmt: skip
    assert measured.pop("events") == events
    disk = sum(path.stat().st_size for path in into.glob(f"{store.name}*"))
    return _Imported(events=events, store=store, disk=disk, **measured)


def _import_rows(done: _Imported) -> UnitRows:
    rows: UnitRows = {
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


def _search_rows(done: _Imported, scopes: dict[str, int], embedder: str | None, progress: Progress) -> UnitRows:
    progress(f"asking {done.events:,} messages", 0, QUESTIONS)
    random = np.random.Generator(np.random.PCG64([SEED, _QUESTIONS_OF]))
    scope_numbers = random.integers(len(scopes), size=WARMING + QUESTIONS)
    synthetic = [ZipfScope(notes, SEED + number) for number, notes in enumerate(scopes.values())]
    users = list(scopes)
    waiting = {
        number: iter(synthetic[number].questions(int((scope_numbers == number).sum())))
        for number in set(scope_numbers.tolist())
    }
    questions = [(users[number], next(waiting[number]).text) for number in scope_numbers.tolist()]
    first = [(user, scope.questions(1)[0].text) for user, scope in zip(users, synthetic, strict=True)]
    _warm_file_cache(done.store)
    answer = run_in_child(
        search_scopes, store=str(done.store), embedder=embedder, questions=[*first, *questions],
        before=len(first) + WARMING, k=K,
    )  # fmt: skip
    times = percentiles(answer["seconds"], PERCENTILES)
    return {f"search p{p}": (value, "ms") for p, value in zip(PERCENTILES, times, strict=True)}


def _warm_file_cache(store: Path) -> None:
    with store.open("rb") as file:
        while file.read(MEGABYTE):
            pass


def _megabytes(size: int) -> float:
    return round(size / MEGABYTE, 1)
