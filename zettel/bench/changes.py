"""Planted changes of fact: is today's answer first, and under ``as_of`` the one from before?

A folder holds each scope as JSON lines of events, ``NAME.jsonl``, and ``questions.jsonl``: per line a question, the
ids of the event that tells the fact as it is now and of the one that tells it as it was before, and a time between
the two. A hit counts for an event only if it does not rest on the other as well: what was merged from both answers
neither question.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from zettel import AsyncMemory
from zettel.errors import BadRecord, InvalidInput
from zettel.model import Hit, Moment, Scope

from .evaluation import Progress, answering, embedder_called, scorer_without
from .machine import Cell, Result, data_file, result

QUESTIONS = "questions.jsonl"
K = 10
"""Hits that are looked at."""


class Change(BaseModel):
    """A question about a fact that changed; ``marked``: the new statement itself says that something changed."""

    model_config = ConfigDict(frozen=True)

    scope: str
    question: str
    now: str
    before: str
    as_of: Moment
    kind: str
    marked: bool | None = None


class Outcome(NamedTuple):
    """Places of the two events among the hits, 0 the first, None: not there; ``then`` is asked under ``as_of``."""

    change: Change
    now: int | None
    before: int | None
    then: int | None


async def run(folder: Path, progress: Progress, without: Sequence[str] = (), embedder: str | None = None) -> Result:
    """Ask every question twice, for today and as of its time; a row for all, for each kind, marked and unmarked.

    Each scope is imported into a new embedded store and flushed before. Raises ``InvalidInput`` for a missing file or
    an event that is not there, ``BadRecord`` for a damaged line.
    """
    changes = read(folder)
    model, scorer = embedder_called(embedder), scorer_without(without)
    outcomes: list[Outcome] = []
    with TemporaryDirectory(prefix="zettel-bench-") as made:
        async with AsyncMemory(Path(made) / "bench.db", embedder=model, scorer=scorer) as memory:
            for name, asked in changes.items():
                outcomes += await _ask(memory, folder / f"{name}.jsonl", name, asked, progress)
    kinds = dict.fromkeys(outcome.change.kind for outcome in outcomes)
    rows = [
        _row("all", outcomes),
        *(_row(kind, [one for one in outcomes if one.change.kind == kind]) for kind in kinds),
        *(
            _row(name, chosen)
            for name, mark in (("new says so", True), ("new implies it", False))
            if (chosen := [one for one in outcomes if one.change.marked is mark])
        ),
    ]
    return result(
        bench="changes",
        ran_on={**data_file(folder / QUESTIONS), "scopes": len(changes)},
        settings=answering(scorer, without, model, K),
        columns=["changes", "asked", "today first", "as_of: before first", f"today in {K}", f"as_of: before in {K}",
                 "today: before above now", "today: neither first"],
        rows=rows,
        notes=["Shares of the questions asked. A hit that rests on both statements counts for neither."],
    )  # fmt: skip


def read(folder: Path) -> dict[str, list[Change]]:
    """The questions of each scope; raises ``InvalidInput`` naming a missing file, ``BadRecord`` a damaged line."""
    path = folder / QUESTIONS
    if not path.is_file():
        raise InvalidInput(f"{path}: there is no such file")
    changes: defaultdict[str, list[Change]] = defaultdict(list)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            change = Change.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the line"
            raise BadRecord(f"{path}:{number}: {where}: {first['msg']}") from None
        changes[change.scope].append(change)
    if not changes:
        raise InvalidInput(f"{path} holds no questions")
    return dict(changes)


async def _ask(
    memory: AsyncMemory, file: Path, name: str, changes: Sequence[Change], progress: Progress
) -> list[Outcome]:
    scope = Scope(user=name)
    progress(f"remembering {name}", 0, len(changes))
    await memory.import_transcript(file, format="jsonl", scope=scope)
    await memory.flush(scope=scope)
    keys = {record.event_id: str(record.id) async for record, _ in memory.dump(scope=scope)}
    known = set(keys.values())
    outcomes = []
    for done, change in enumerate(changes):
        progress(f"asking {name}", done, len(changes))
        for event in (change.now, change.before):
            if event not in known:
                raise InvalidInput(f"{file} has no event {event!r}, which {change.question!r} needs")
        today = await memory.search(change.question, k=K, scope=scope)
        then = await memory.search(change.question, k=K, as_of=change.as_of, scope=scope)
        outcomes.append(
            Outcome(
                change,
                now=place_of(today, keys, change.now, change.before),
                before=place_of(today, keys, change.before, change.now),
                then=place_of(then, keys, change.before, change.now),
            )
        )
    return outcomes


def place_of(hits: Iterable[Hit], keys: dict[str, str], wanted: str, other: str) -> int | None:
    """Place of the first hit that rests on ``wanted`` and not on ``other``; ``keys``: the ``Event.id`` per event id."""
    for place, hit in enumerate(hits):
        events = {keys[event] for event in hit.note.event_ids}
        if wanted in events and other not in events:
            return place
    return None


def _row(name: str, outcomes: Sequence[Outcome]) -> list[Cell]:
    def share(holds: Callable[[Outcome], bool]) -> float:
        return round(sum(map(holds, outcomes)) / len(outcomes), 4)

    return [
        name,
        len(outcomes),
        share(lambda one: one.now == 0),
        share(lambda one: one.then == 0),
        share(lambda one: one.now is not None),
        share(lambda one: one.then is not None),
        share(lambda one: one.before is not None and (one.now is None or one.before < one.now)),
        share(lambda one: 0 not in (one.now, one.before)),
    ]
