"""Recall on conversations and documents that share a scope, compared with separate scopes.

Each LoCoMo conversation is stored together with all passages of 2Wiki.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from zettel.embed import load_embedder

from . import locomo, multihop
from .evaluation import OURS, Collection, Outcome, Progress, evaluate, run_settings, scorer_without
from .metrics import QuestionResult, summarize
from .results import Cell, Result, data_files

K = 10
"""Places for the recall of both."""
PERFECT_K = 8
"""Places among which all passages of a 2Wiki question must be."""


async def run(
    path: Path,
    wiki: Path,
    progress: Progress,
    conversations: Sequence[str] = (),
    without: Sequence[str] = (),
    embedder: str | None = None,
) -> Result:
    """Measure recall@10 of both and 2Wiki's perfect@8, apart and mixed. Raises the errors of both readers."""
    talks, _ = locomo.read(path, conversations)
    corpus, questions = multihop.files(wiki, None)
    passages, _ = multihop.read(corpus, questions)
    model, scorer = load_embedder(embedder), scorer_without(without)
    alone, both = [*talks, passages], [merged(talk, passages) for talk in talks]
    apart = await evaluate(alone, K, scorer, model, progress)
    mixed = await evaluate(both, K, scorer, model, progress)
    return Result(
        bench="mixed",
        data=data_files([path, corpus, questions]),
        ran_on={"conversations": ", ".join(talk.name for talk in talks), "passages": len(passages.events)},
        settings=run_settings(scorer, without, model, K),
        columns=["recall", "scope", f"LoCoMo 1-4 @{K}", f"2Wiki @{K}", f"2Wiki perfect @{PERFECT_K}"],
        rows=[*_rows(apart, "apart", alone[:-1]), *_rows(mixed, "mixed", both)],
        notes=[
            "apart: each conversation and 2Wiki in a scope of its own; mixed: each conversation in one scope with all "
            "passages.",
            f"zettel took {mixed.import_seconds:.1f} s to remember the mixed scopes and "
            f"{mixed.search_seconds:.1f} s for {len(mixed.results[OURS])} questions.",
        ],
    )


def merged(talk: Collection, passages: Collection) -> Collection:
    """Merge a conversation and the passages into one collection."""
    return Collection(
        f"{talk.name} with {passages.name}",
        [*talk.events, *passages.events],
        [*talk.questions, *passages.questions],
    )


def _rows(outcome: Outcome, scope: str, collections: Sequence[Collection]) -> list[list[Cell]]:
    """Return the means of each system, and zettel's of each conversation if there are several."""
    rows: list[list[Cell]] = [[system, scope, *_measures(results)] for system, results in outcome.results.items()]
    place = 0
    for collection in collections if len(collections) > 1 else ():
        results = outcome.results[OURS][place : place + len(collection.questions)]
        place += len(collection.questions)
        rows.append([f"{OURS}, {collection.name.split()[0]}", scope, *_measures(results)])
    return rows


def _measures(results: Sequence[QuestionResult]) -> list[Cell]:
    wiki = [result for result in results if result.group not in locomo.GROUPS]
    wiki_means = (summarize(wiki, K).recall, summarize(wiki, PERFECT_K).perfect)
    return [round(locomo.mean(results, K).recall, 4), *(round(value, 4) if wiki else None for value in wiki_means)]
