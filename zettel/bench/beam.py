"""Chats with an assistant: recall of the messages that answer, per kind of question.

Reads our own chats and those of BEAM, see ``zettel.bench.chats``. Evidence is counted by messages: all parts of a long
answer are one.

Paper: Tavakoli et al. 2025, "Beyond a Million Tokens: Benchmarking and Enhancing Long-Term Memory in LLMs".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from zettel.embed import load_embedder
from zettel.errors import InvalidInput

from . import chats
from .baselines import ALL, load_baselines
from .evaluation import (
    LATENCY_COLUMNS,
    OURS,
    Collection,
    Progress,
    ablations,
    curves,
    evaluate,
    latency,
    load_scorers,
    run_settings,
    scorer_without,
)
from .metrics import QuestionResult, auroc, summarize
from .results import Cell, Result, file_hashes

KS = (1, 10, 40)
"""Places that hits may take: the first hit, a prompt with few, a prompt with many."""


async def run(
    path: Path,
    progress: Progress,
    names: Sequence[str] = (),
    ks: Sequence[int] = KS,
    without: Sequence[str] = (),
    embedder: str | None = None,
    *,
    ablate: bool = False,
    baselines: Sequence[str] = ALL,
    scorers: Sequence[str] = (),
) -> Result:
    """Measure recall@k of zettel and ``baselines`` for each of ``ks``, in all and per kind of question.

    ``names`` selects chats, empty for all. ``ablate`` adds a row without each part of the scorer, ``scorers`` a row for
    each name. AUROC compares the first hit's score on questions with and without an answer. Raises ``InvalidInput`` for
    an unknown chat, and the errors of ``chats.read`` and ``load_scorer``.
    """
    collections = select(chats.read(path), names)
    model, scorer = load_embedder(embedder), scorer_without(without)
    simple = load_baselines(baselines, model)
    rankers = load_scorers(scorers)
    outcome = await evaluate(
        collections, max(ks), scorer, model, progress, baselines=simple.systems,
        scorers=rankers | (ablations() if ablate else {}),
    )  # fmt: skip
    asked = outcome.results[OURS]
    kinds = sorted({result.group for result in asked if result.needed})
    groups: list[tuple[str, str | None]] = [("all", None), *((kind, kind) for kind in kinds)]
    rows: list[list[Cell]] = []
    for system, results in outcome.results.items():
        recalls = [round(summarize(_of_kind(results, kind), k).recall, 4) for _, kind in groups for k in ks]
        rows.append([system, *recalls, _auroc(results), *latency(outcome, system)])
    sizes = [summarize(_of_kind(asked, kind), max(ks)).questions for _, kind in groups for _ in ks]
    unanswerable = sum(not result.needed for result in asked)
    rows.append(["asked", *sizes, unanswerable, *[None] * len(LATENCY_COLUMNS)])
    messages = sum(len(collection.events) for collection in collections)
    return Result(
        bench="beam",
        ran_on={
            **_source(path),
            "chats": ", ".join(collection.name for collection in collections),
            "messages": messages,
        },
        settings=run_settings(scorer, without, model, ks),
        columns=[
            "recall", *(f"{name} @{k}" for name, _ in groups for k in ks), "AUROC", *LATENCY_COLUMNS,
        ],
        rows=rows,
        notes=[
            f"Recall of the messages that answer, in the first {', '.join(map(str, ks))} places, each chat in its "
            f"scope; AUROC of the first hit's score, questions with an answer against {unanswerable} without one; ms "
            "for one search.",
            f"zettel took {outcome.import_seconds:.1f} s for {messages} messages and {outcome.search_seconds:.1f} s "
            f"for {len(asked)} questions.",
            *simple.notes,
        ],
        curves=curves(outcome, [OURS, *rankers, *simple.systems], lambda found, k: summarize(found, k).recall, max(ks)),
    )  # fmt: skip


def _source(path: Path) -> dict[str, Cell]:
    return {"folder": path.name} if path.is_dir() else dict(file_hashes((path,)))


def select(collections: Sequence[Collection], names: Sequence[str]) -> list[Collection]:
    """Return the chats with these names, all of them without names. Raises ``InvalidInput`` for an unknown one."""
    known = [collection.name for collection in collections]
    if unknown := [name for name in names if name not in known]:
        raise InvalidInput(f"unknown chat {unknown[0]!r}: name one of {', '.join(known)}")
    return [collection for collection in collections if not names or collection.name in names]


def _of_kind(results: Sequence[QuestionResult], kind: str | None) -> list[QuestionResult]:
    return [result for result in results if kind in (None, result.group)]


def _auroc(results: Sequence[QuestionResult]) -> Cell:
    """Return the AUROC of the first hits' scores; None for a baseline, which has no calibrated scores."""
    answered = [result.score for result in results if result.score is not None and result.needed]
    unanswered = [result.score for result in results if result.score is not None and not result.needed]
    area = auroc(answered, unanswered)
    return None if area is None else round(area, 4)
