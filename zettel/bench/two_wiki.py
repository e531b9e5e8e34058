"""2WikiMultihopQA: does one search bring all the passages that a question over several documents needs?

Paper: Ho et al. 2020, "Constructing A Multi-hop QA Dataset for Comprehensive Evaluation of Reasoning Steps".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from zettel.errors import BadRecord, InvalidInput
from zettel.model import Event

from .beside import ALL, MINILM, beside
from .counting import tally
from .evaluation import (
    LATENCY_COLUMNS,
    OURS,
    Collection,
    Progress,
    Question,
    ablations,
    answering,
    curves,
    embedder_called,
    evaluate,
    latency,
    scorer_without,
    scorers_called,
)
from .machine import Cell, Result, data_file, result

CORPUS, QUESTIONS = "2wiki-corpus.jsonl", "2wiki-dev.jsonl"
"""What the files are called in a folder."""
GROUP = "2wiki"
"""The one category of its questions."""


async def run(
    corpus: Path,
    progress: Progress,
    questions: Path | None = None,
    k: int = 8,
    without: Sequence[str] = (),
    embedder: str | None = None,
    *,
    ablate: bool = False,
    others: Sequence[str] = ALL,
    minilm: str = MINILM,
    scorers: Sequence[str] = (),
) -> Result:
    """perfect@k and recall@k of zettel and the ``others``.

    ``ablate`` adds a row for each part of the scorer left out, ``scorers`` one for each of these names.

    ``corpus`` has ``{"title", "text"}`` on each line, ``questions`` ``{"question", "titles"}``; a folder
    holds both under their usual names. Raises ``InvalidInput`` for a missing file, ``BadRecord`` for a line
    of another kind.
    """
    corpus, questions = files(corpus, questions)
    collection, dropped = read(corpus, questions)
    model, scorer = embedder_called(embedder), scorer_without(without)
    simple = beside(others, model, minilm)
    rankers = scorers_called(scorers)
    outcome = await evaluate(
        [collection], k, scorer, model, progress, others=simple.systems,
        scorers=rankers | (ablations() if ablate else {})
    )
    rows: list[list[Cell]] = []
    for system, asked in outcome.asked.items():
        mean = tally(asked, k)
        rows.append([system, round(mean.perfect, 4), round(mean.recall, 4), mean.questions, *latency(outcome, system)])
    notes = [
        f"{dropped} titles that no passage has were dropped.",
        f"zettel took {outcome.remembering:.1f} s for {len(collection.events)} passages and "
        f"{outcome.searching:.1f} s for {len(collection.questions)} questions.",
        *simple.notes,
    ]
    return result(
        bench="2wiki",
        ran_on={**data_file(corpus), **{f"questions_{key}": value for key, value in data_file(questions).items()}},
        settings=answering(scorer, without, model, k),
        columns=["2wiki", f"perfect@{k}", f"recall@{k}", "questions", *LATENCY_COLUMNS],
        rows=rows,
        notes=notes,
        curves=curves(outcome, [OURS, *rankers, *simple.systems], lambda asked, k: tally(asked, k).perfect, k),
    )


def files(corpus: Path, questions: Path | None) -> tuple[Path, Path]:
    """The two files that are meant; raises ``InvalidInput`` naming one that is missing."""
    if corpus.is_dir():
        corpus, questions = corpus / CORPUS, questions or corpus / QUESTIONS
    if questions is None:
        questions = corpus.parent / QUESTIONS
    for path in (corpus, questions):
        if not path.is_file():
            raise InvalidInput(f"{path}: there is no such file")
    return corpus, questions


def read(corpus: Path, questions: Path) -> tuple[Collection, int]:
    """The passages as events with their titles as ids, the questions, and how many titles named no passage."""
    events = [
        Event(id=line["title"], title=line["title"], content=line["text"]) for line in _lines(corpus, "title", "text")
    ]
    titles = {str(event.id) for event in events}
    asked, dropped = [], 0
    for line in _lines(questions, "question", "titles"):
        needed = titles.intersection(line["titles"])
        dropped += len(set(line["titles"]) - titles)
        if needed:
            asked.append(Question(line["question"], GROUP, frozenset(needed)))
    return Collection(corpus.stem, events, asked), dropped


def _lines(path: Path, *fields: str) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for number, text in enumerate(file, start=1):
            if not text.strip():
                continue
            try:
                line = json.loads(text)
            except json.JSONDecodeError as error:
                raise BadRecord(
                    f"{path}:{number}: no JSON: {error.msg.removesuffix(' at')} at character {error.pos}"
                ) from None
            if not isinstance(line, dict) or not all(field in line for field in fields):
                raise BadRecord(f"{path}:{number}: expected an object with {' and '.join(fields)}")
            yield line
