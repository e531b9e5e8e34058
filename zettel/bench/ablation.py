"""Ablation of the search: recall@k with all of its parts, and what it loses or gains without each, on several data.

Leaves out each part of the default scorer and each later step of a search, and adds rerankers, another embedder and
the insights that ``evolve`` writes. Every row searches the same store, but for the last ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch

import numpy as np

from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.model import Scope
from zettel.ports import Embedder
from zettel.scoring import ScorerSpec

from . import chats, fitting, multihop
from .evaluation import (
    OURS,
    Collection,
    Outcome,
    Progress,
    ablations,
    load_scorers,
    remember,
    run_settings,
    search,
    temporary_memory,
)
from .metrics import QuestionResult, recall
from .results import Cell, Result, data_files

if TYPE_CHECKING:
    from zettel.ports.query import Floats

K = 10
"""Places of the measured recall."""
STATIC = "static"
OTHER_EMBEDDER = f"with the {STATIC} embedder"
EVOLVED, EVOLVED_WITHOUT = "after evolve", "after evolve, without insights"
STEPS = {
    "without near-ties": ("near_ties", lambda *_: ()),
    "without replaced parts": ("updates", lambda *_: {}),
    "without votes on conflicts": ("disputes", lambda *_: ()),
    "without doubtful notes last": ("is_doubtful", lambda *_: False),
}
"""Steps after the scorer by row name: the function of ``zettel.search.searcher``, and what replaces it."""
DIGITS = 4


class Data(NamedTuple):
    """Data to measure on, with its column's name."""

    name: str
    collections: Sequence[Collection]
    files: Sequence[Path]


def read(specs: Sequence[str]) -> list[Data]:
    """Read ``NAME=PATH[,PATH…]`` each; a path is a chat, a conversation, a folder of chats, or a folder with 2Wiki.

    Questions without an answer are left out. Raises ``InvalidInput`` for a malformed or repeated name, a missing file
    or data without questions, ``BadRecord`` for damaged files.
    """
    data: list[Data] = []
    for spec in specs:
        name, sign, paths = spec.partition("=")
        if not (name and sign and paths) or name in [each.name for each in data]:
            raise InvalidInput(f"{spec!r} must be NAME=PATH[,PATH], each name once, such as chats=tests/data/chats")
        files, collections = _read([Path(path) for path in paths.split(",")])
        if not any(collection.questions for collection in collections):
            raise InvalidInput(f"{spec!r} has no question with an answer")
        data.append(Data(name, collections, files))
    return data


def _read(paths: Sequence[Path]) -> tuple[list[Path], list[Collection]]:
    files: list[Path] = []
    collections: list[Collection] = []
    for path in paths:
        if not path.exists():
            raise InvalidInput(f"the file {path} does not exist")
        if (path / multihop.CORPUS).is_file():
            pair = multihop.files(path, None)
            collections.append(multihop.read(*pair)[0])
            files += pair
        else:
            collections += fitting.read(path)
            files += chats.files(path)
    answered = [
        each._replace(questions=[question for question in each.questions if fitting.is_answered(question)])
        for each in collections
    ]
    return files, answered


async def run(
    specs: Sequence[str], progress: Progress, scorers: Sequence[str] = (), embedder: str | None = None
) -> Result:
    """Measure every row on each of ``specs`` (see :func:`read`); ``scorers`` adds rows of rerankers by name.

    A cell of a later row is its recall minus that of the first. "±" is the standard error of this difference over
    questions. Raises the errors of :func:`read` and ``load_scorer``.
    """
    data = read(specs)
    model = load_embedder(embedder)
    rankers: dict[str, ScorerSpec] = {OURS: None, **ablations(), **load_scorers(scorers)}
    columns = [await _recalls(each.collections, rankers, model, progress) for each in data]
    rows: list[list[Cell]] = []
    for name in columns[0]:
        cells: list[Cell] = [name]
        for values in columns:
            cells += _cells(values[name], None if name == OURS else values[OURS])
        rows.append(cells)
    rows.append(["asked", *(cell for values in columns for cell in (len(values[OURS]), None))])
    return Result(
        bench="ablation",
        data=data_files(file for each in data for file in each.files),
        ran_on={},
        settings=run_settings(None, (), model, K),
        columns=["recall", *(head for each in data for head in (each.name, f"± {each.name}"))],
        rows=rows,
        notes=[
            f"Recall@{K} of the first row; in later rows, the difference from it, and the standard error of this "
            "difference over questions.",
            f"'{EVOLVED}' searches the same notes after evolve; insights take as many places as they have events.",
        ],
    )


async def _recalls(
    collections: Sequence[Collection], rankers: Mapping[str, ScorerSpec], model: Embedder, progress: Progress
) -> dict[str, Floats]:
    """Return the recall of each question, by row name."""
    outcome = Outcome({}, {}, 0.0)
    for collection in collections:
        async with temporary_memory(embedder=model) as memory:
            ids = await remember(memory, collection, progress)
            ask = partial(search, memory, collection=collection, event_ids=ids, k=K, outcome=outcome, progress=progress)
            for name, spec in rankers.items():
                await ask(name=name, scorer=spec)
            for name, (step, replacement) in STEPS.items():
                with patch(f"zettel.search.searcher.{step}", replacement):
                    await ask(name=name, scorer=None)
            await memory.evolve(scope=Scope(user=collection.name))
            await ask(name=EVOLVED, scorer=None)
            with patch("zettel.search.scope_search.is_abstract", lambda _: False):
                await ask(name=EVOLVED_WITHOUT, scorer=None)
        async with temporary_memory(embedder=load_embedder(STATIC)) as memory:
            ids = await remember(memory, collection, progress)
            await search(memory, OTHER_EMBEDDER, None, collection, ids, K, outcome, progress)
    return {name: _each(results) for name, results in outcome.results.items()}


def _each(results: Sequence[QuestionResult]) -> Floats:
    return np.array([recall(result.hits, result.needed, K) for result in results])


def _cells(values: Floats, whole: Floats | None) -> list[Cell]:
    """Return the mean, or the mean difference from the whole, with its standard error."""
    if whole is None:
        return [round(float(values.mean()), DIGITS), None]
    difference = values - whole
    error = float(difference.std(ddof=1)) / len(difference) ** 0.5 if len(difference) > 1 else None
    return [round(float(difference.mean()), DIGITS), None if error is None else round(error, DIGITS)]
