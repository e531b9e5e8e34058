"""Links of changed facts in pairs of messages: how many changes are found, and how many links are wrong.

A file has a pair per line (:class:`Pair`). Both messages are added to a scope of their own, without a model. A change
is found if the second message then supersedes or updates the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from zettel import AsyncMemory
from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.model import Event, LinkType, Scope

from .evaluation import Progress, temporary_memory
from .json_records import lines_of, record
from .results import Cell, Result, data_files

AT_ONCE = 50
"""Pairs that are added together."""
CHANGES = (LinkType.SUPERSEDES, LinkType.UPDATES)


class Pair(BaseModel):
    """Two messages of a speaker, and whether the second changes a fact of the first, at once or later."""

    model_config = ConfigDict(frozen=True)

    first: Event
    second: Event
    change: Literal["yes", "later", "no"]


class Outcome(NamedTuple):
    pair: Pair
    linked: bool


async def run(paths: Sequence[Path], progress: Progress, embedder: str | None = None) -> Result:
    """Measure each file. Raises ``InvalidInput`` for a missing or empty file, ``BadRecord`` for a damaged line."""
    files = {path: read(path) for path in paths}
    model = load_embedder(embedder)
    rows = []
    async with temporary_memory(embedder=model) as memory:
        for path, pairs in files.items():
            rows.append(_row(path.stem, await _outcomes(memory, path.stem, pairs, progress)))
    return Result(
        bench="pairs",
        data=data_files(paths),
        ran_on={"pairs": sum(map(len, files.values()))},
        settings={"language model": "none", "embedder": model.info.name, "store": "embedded"},
        columns=["pairs", "in all", "changes", "found", "recall", "other links", "precision"],
        rows=rows,
        notes=[
            "Found: the second message supersedes or updates the first. Other links are such links in pairs without a "
            "change."
        ],
    )


def read(path: Path) -> list[Pair]:
    """Read pairs. Raises ``InvalidInput`` for a missing or empty file, ``BadRecord`` for a damaged line."""
    pairs = [record(Pair, f"{path}:{number}", line) for number, line in enumerate(lines_of(path), start=1)]
    if not pairs:
        raise InvalidInput(f"{path} contains no pairs: add one per line")
    return pairs


async def _outcomes(memory: AsyncMemory, name: str, pairs: Sequence[Pair], progress: Progress) -> list[Outcome]:
    outcomes = []
    for start in range(0, len(pairs), AT_ONCE):
        progress(f"adding {name}", start, len(pairs))
        chosen = {Scope(user=f"{name} {start + place}"): pair for place, pair in enumerate(pairs[start:][:AT_ONCE])}
        for scope, pair in chosen.items():
            await memory.add_many([pair.first, pair.second], scope=scope)
        await memory.flush()
        outcomes += [Outcome(pair, await _is_linked(memory, scope)) for scope, pair in chosen.items()]
    return outcomes


async def _is_linked(memory: AsyncMemory, scope: Scope) -> bool:
    """Return whether a note of the scope supersedes or updates another."""
    page = await memory.list(scope=scope)
    return any([link.type in CHANGES for note in page.notes for link in await memory.links(note.id, scope=scope)])


def _row(name: str, outcomes: Sequence[Outcome]) -> list[Cell]:
    linked = [outcome.linked for outcome in outcomes if outcome.pair.change != "no"]
    found = sum(linked)
    others = sum(outcome.linked for outcome in outcomes if outcome.pair.change == "no")
    recall = round(found / len(linked), 4) if linked else None
    precision = round(found / (found + others), 4) if found + others else None
    return [name, len(outcomes), len(linked), found, recall, others, precision]
