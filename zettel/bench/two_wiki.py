"""2WikiMultihopQA: recall of all passages that a question over several documents needs.

Paper: Ho et al. 2020, "Constructing A Multi-hop QA Dataset for Comprehensive Evaluation of Reasoning Steps".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from zettel.embed import load_embedder
from zettel.errors import BadRecord, InvalidInput
from zettel.model import Event

from .baselines import ALL, load_baselines
from .evaluation import (
    LATENCY_COLUMNS,
    OURS,
    Collection,
    Progress,
    Question,
    ablations,
    curves,
    evaluate,
    latency,
    load_scorers,
    run_settings,
    scorer_without,
)
from .metrics import summarize
from .results import Cell, Result, data_file

CORPUS, QUESTIONS = "2wiki-corpus.jsonl", "2wiki-dev.jsonl"
"""File names in a folder."""
GROUP = "2wiki"
"""The category of all questions."""


async def run(
    corpus: Path,
    progress: Progress,
    questions: Path | None = None,
    k: int = 8,
    without: Sequence[str] = (),
    embedder: str | None = None,
    *,
    ablate: bool = False,
    baselines: Sequence[str] = ALL,
    scorers: Sequence[str] = (),
) -> Result:
    """Measure perfect@k and recall@k of zettel and ``baselines``.

    ``ablate`` adds a row without each part of the scorer, ``scorers`` a row for each name. Each line of ``corpus`` is
    ``{"title", "text"}``, each line of ``questions`` ``{"question", "titles"}``; ``corpus`` may be a folder with both.
    Raises ``InvalidInput`` for a missing file, ``BadRecord`` for an invalid line.
    """
    corpus, questions = files(corpus, questions)
    collection, dropped = read(corpus, questions)
    model, scorer = load_embedder(embedder), scorer_without(without)
    simple = load_baselines(baselines, model)
    rankers = load_scorers(scorers)
    outcome = await evaluate(
        [collection], k, scorer, model, progress, baselines=simple.systems,
        scorers=rankers | (ablations() if ablate else {})
    )
    rows: list[list[Cell]] = []
    for system, results in outcome.results.items():
        mean = summarize(results, k)
        rows.append([system, round(mean.perfect, 4), round(mean.recall, 4), mean.questions, *latency(outcome, system)])
    notes = [
        f"{dropped} titles that no passage has were dropped.",
        f"zettel took {outcome.import_seconds:.1f} s for {len(collection.events)} passages and "
        f"{outcome.search_seconds:.1f} s for {len(collection.questions)} questions.",
        *simple.notes,
    ]
    return Result(
        bench="2wiki",
        ran_on={**data_file(corpus), **{f"questions_{key}": value for key, value in data_file(questions).items()}},
        settings=run_settings(scorer, without, model, k),
        columns=["2wiki", f"perfect@{k}", f"recall@{k}", "questions", *LATENCY_COLUMNS],
        rows=rows,
        notes=notes,
        curves=curves(outcome, [OURS, *rankers, *simple.systems], lambda results, k: summarize(results, k).perfect, k),
    )


def files(corpus: Path, questions: Path | None) -> tuple[Path, Path]:
    """Return the paths of both files. Raises ``InvalidInput`` for a missing file."""
    if corpus.is_dir():
        corpus, questions = corpus / CORPUS, questions or corpus / QUESTIONS
    if questions is None:
        questions = corpus.parent / QUESTIONS
    for path in (corpus, questions):
        if not path.is_file():
            raise InvalidInput(f"{path} does not exist: pass the file, or a folder with {CORPUS} and {QUESTIONS}")
    return corpus, questions


def read(corpus: Path, questions: Path) -> tuple[Collection, int]:
    """Return passages as events with titles as ids, their questions, and the number of titles without a passage."""
    events = [
        Event(external_id=line["title"], title=line["title"], content=line["text"])
        for line in _lines(corpus, "title", "text")
    ]
    titles = {str(event.external_id) for event in events}
    answerable, dropped = [], 0
    for line in _lines(questions, "question", "titles"):
        needed = titles.intersection(line["titles"])
        dropped += len(set(line["titles"]) - titles)
        if needed:
            answerable.append(Question(line["question"], GROUP, frozenset(needed)))
    return Collection(corpus.stem, events, answerable), dropped


def _lines(path: Path, *fields: str) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for number, text in enumerate(file, start=1):
            if not text.strip():
                continue
            try:
                line = json.loads(text)
            except json.JSONDecodeError as error:
                raise BadRecord(
                    f"{path}:{number}: invalid JSON: {error.msg.removesuffix(' at')} at character {error.pos}"
                ) from None
            if not isinstance(line, dict) or not all(field in line for field in fields):
                raise BadRecord(f"{path}:{number}: expected an object with {' and '.join(fields)}")
            yield line
