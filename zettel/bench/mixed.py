"""Conversations and documents in one scope: does either crowd out the other?

Each LoCoMo conversation is remembered together with all passages of 2Wiki, and both are asked about; beside it stands
what each reaches in a scope of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import locomo, two_wiki
from .counting import Asked, tally
from .evaluation import OURS, Collection, Outcome, Progress, answering, embedder_called, evaluate, scorer_without
from .machine import Cell, Result, data_file, result

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
    """recall@10 of both and 2Wiki's perfect@8, apart and mixed. Raises what reading either file raises."""
    talks, _ = locomo.read(path, conversations)
    corpus, questions = two_wiki.files(wiki, None)
    passages, _ = two_wiki.read(corpus, questions)
    model, scorer = embedder_called(embedder), scorer_without(without)
    alone, both = [*talks, passages], [together(talk, passages) for talk in talks]
    apart = await evaluate(alone, K, scorer, model, progress)
    mixed = await evaluate(both, K, scorer, model, progress)
    return result(
        bench="mixed",
        ran_on={
            **data_file(path),
            "conversations": ", ".join(talk.name for talk in talks),
            **{f"2wiki_{key}": value for key, value in data_file(corpus).items()},
            "passages": len(passages.events),
        },
        settings=answering(scorer, without, model, K),
        columns=["recall", "scope", f"LoCoMo 1-4 @{K}", f"2Wiki @{K}", f"2Wiki perfect @{PERFECT_K}"],
        rows=[*_rows(apart, "apart", alone[:-1]), *_rows(mixed, "mixed", both)],
        notes=[
            "apart: each conversation and 2Wiki in a scope of its own; mixed: each conversation in one scope with all "
            "passages.",
            f"zettel took {mixed.remembering:.1f} s to remember the mixed scopes and {mixed.searching:.1f} s for "
            f"{len(mixed.asked['zettel'])} questions.",
        ],
    )


def together(talk: Collection, passages: Collection) -> Collection:
    """A conversation and the passages as one collection, with the questions of both."""
    return Collection(
        f"{talk.name} with {passages.name}",
        [*talk.events, *passages.events],
        [*talk.questions, *passages.questions],
    )


def _rows(outcome: Outcome, scope: str, collections: Sequence[Collection]) -> list[list[Cell]]:
    """Means over all questions of each system, and zettel's over those of each conversation if there are several."""
    rows: list[list[Cell]] = [[system, scope, *_measures(asked)] for system, asked in outcome.asked.items()]
    place = 0
    for collection in collections if len(collections) > 1 else ():
        asked = outcome.asked[OURS][place : place + len(collection.questions)]
        place += len(collection.questions)
        rows.append([f"{OURS}, {collection.name.split()[0]}", scope, *_measures(asked)])
    return rows


def _measures(asked: Sequence[Asked]) -> list[Cell]:
    of_wiki = [one for one in asked if one.group == two_wiki.GROUP]
    measured = (locomo.mean(asked, K).recall, tally(of_wiki, K).recall, tally(of_wiki, PERFECT_K).perfect)
    return [round(measured[0], 4), *(round(value, 4) if of_wiki else None for value in measured[1:])]
