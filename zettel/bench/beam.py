"""Chats with an assistant: recall of the messages that answer, per kind of question.

Reads our own chats and those of BEAM, see ``zettel.bench.chats``. Evidence is counted by messages: all parts of a long
answer are one.

Paper: Tavakoli et al. 2025, "Beyond a Million Tokens: Benchmarking and Enhancing Long-Term Memory in LLMs".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from zettel.embed import load_embedder
from zettel.errors import InvalidInput

from . import chats
from .baselines import ALL, load_baselines
from .comparison import SIGNIFICANCE, Measure, compare
from .evaluation import (
    OURS,
    Collection,
    Outcome,
    Progress,
    Question,
    ablations,
    curves,
    evaluate,
    load_scorers,
    run_settings,
    scorer_without,
)
from .metrics import QuestionResult, auroc, events_at, first_place, kendall_tau, ranking, recall, summarize
from .results import Result, data_files

KS = (1, 10, 40)
"""Places that hits may take: the first hit, a prompt with few, a prompt with many."""
ORDER_KINDS = ("event_ordering", "order")
"""Kinds of questions about the order of events: BEAM's, and that of our own chats."""
FOREIGN, FOREIGN_QUESTIONS = "another chat", 10
"""Kind of the questions of the next chat, and how many of them each chat gets."""


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
    changed: Path | None = None,
) -> Result:
    """Measure recall@k of zettel and ``baselines`` for each of ``ks``, in all and per kind of question.

    ``names`` selects chats, empty for all. ``ablate`` adds a row without each part of the scorer, ``scorers`` a row for
    each name. AUROC compares the first hit's score on questions with and without an answer. Each of several chats is
    also asked some questions of the next one. ``changed`` is a file of changed facts (``chats.read_changed``): for
    their questions, today's message should rank before the former one. Raises ``InvalidInput`` for an unknown chat, and
    the errors of ``chats.read``, ``chats.read_changed`` and ``load_scorer``.
    """
    collections = _with_foreign_questions(select(chats.read(path), names))
    model, scorer = load_embedder(embedder), scorer_without(without)
    simple = load_baselines(baselines, model)
    rankers = load_scorers(scorers)
    facts = chats.read_changed(changed) if changed else {}
    outcome = await evaluate(
        collections, max(ks), scorer, model, progress, baselines=simple.systems,
        scorers=rankers | (ablations() if ablate else {}),
    )  # fmt: skip
    notes = _changed_notes(outcome, collections, facts)
    outcome = _by_place(outcome, collections)
    asked = outcome.results[OURS]
    kinds = sorted({result.group for result in asked if result.needed})
    groups: list[tuple[str, str | None]] = [("all", None), *((kind, kind) for kind in kinds)]
    measures = {f"{name} @{k}": _recall(kind, k) for name, kind in groups for k in ks}
    if set(kinds).intersection(ORDER_KINDS):
        measures[f"tau @{max(ks)}"] = _order(max(ks))
        notes.append(
            "tau: Kendall's tau of the order in which a search returns the evidence of questions about an "
            "order, against its order in the chat: 1 for the same order, 0 for chance; for questions with two or "
            "more messages found, which differ by system. A search ranks by relevance. BEAM's own tau rates the order "
            "of events in an answer."
        )
    columns, rows = compare(outcome, measures, [f"all @{k}" for k in ks], _is_answerable)
    unanswerable = sum(_is_answerable(result) is False for result in asked)
    notes += _foreign_notes(asked)
    messages = sum(len(collection.events) for collection in collections)
    return Result(
        bench="beam",
        data=data_files([*chats.files(path), *([changed] if changed else [])]),
        ran_on={"chats": ", ".join(collection.name for collection in collections), "messages": messages},
        settings=run_settings(scorer, without, model, ks),
        columns=["recall", *columns],
        rows=rows,
        notes=[
            f"Recall of the messages that answer, in the first {', '.join(map(str, ks))} places, each chat in its "
            f"scope; AUROC of the first hit's score, questions with an answer against {unanswerable} without one; ms "
            "for one search.",
            SIGNIFICANCE,
            *notes,
            f"zettel took {outcome.import_seconds:.1f} s for {messages} messages and {outcome.search_seconds:.1f} s "
            f"for {len(asked)} questions.",
            *simple.notes,
        ],
        curves=curves(outcome, [OURS, *rankers, *simple.systems], lambda found, k: summarize(found, k).recall, max(ks)),
    )  # fmt: skip


def _with_foreign_questions(collections: Sequence[Collection]) -> list[Collection]:
    """Return the chats, each also with questions of the next one, which nothing in it answers."""
    if len(collections) == 1:
        return list(collections)
    extended = []
    for collection, following in zip(collections, [*collections[1:], collections[0]], strict=True):
        step = max(len(following.questions) // FOREIGN_QUESTIONS, 1)
        chosen = following.questions[::step][:FOREIGN_QUESTIONS]
        foreign = [Question(question.text, FOREIGN, frozenset()) for question in chosen]
        extended.append(collection._replace(questions=[*collection.questions, *foreign]))
    return extended


def _is_answerable(result: QuestionResult) -> bool | None:
    return None if result.group == FOREIGN else bool(result.needed)


def _foreign_notes(asked: Sequence[QuestionResult]) -> list[str]:
    """Say how well the first hit's score separates the questions of another chat."""
    own = [result.score for result in asked if result.needed and result.score is not None]
    foreign = [result.score for result in asked if result.group == FOREIGN and result.score is not None]
    area = auroc(own, foreign)
    if area is None:
        return []
    return [
        f"{len(foreign)} questions are those of another chat, which nothing answers. The first hit's score separates "
        f"them with an AUROC of {area:.3f}; its median is {median(foreign):.2f} for them, and {median(own):.2f} for "
        "questions with an answer."
    ]


def _changed_notes(
    outcome: Outcome, collections: Sequence[Collection], facts: Mapping[tuple[str, str], chats.ChangedFact]
) -> list[str]:
    """Say for how many questions about a changed fact each system ranks today's message before the former one."""
    if not facts:
        return []
    questions = [(collection.name, question.text) for collection in collections for question in collection.questions]
    counts = []
    for system, results in outcome.results.items():
        pairs = [(facts[key], result) for key, result in zip(questions, results, strict=True) if key in facts]
        right = sum(
            _place(result, fact.now, fact.before) < _place(result, fact.before, fact.now) for fact, result in pairs
        )
        counts.append(f"{system} {right} of {len(pairs)}")
    return [f"Today's message ranks before the former one for questions about a changed fact: {', '.join(counts)}."]


def _place(result: QuestionResult, needed: frozenset[str], other: frozenset[str]) -> float:
    """Return the rank of the first hit of a needed message; infinity without one."""
    place = first_place(result.hits, needed, other)
    return math.inf if place is None else place


def _by_place(outcome: Outcome, collections: Sequence[Collection]) -> Outcome:
    """Return an outcome with each message named by its place in its chat, so that the order is known."""
    places = [
        {str(event.external_id): str(place) for place, event in enumerate(collection.events)}
        for collection in collections
        for _ in collection.questions
    ]
    results = {
        name: [
            result._replace(
                needed=frozenset(of[id] for id in result.needed), hits=[[of[id] for id in hit] for hit in result.hits]
            )
            for of, result in zip(places, found, strict=True)
        ]
        for name, found in outcome.results.items()
    }
    return outcome._replace(results=results)


def select(collections: Sequence[Collection], names: Sequence[str]) -> list[Collection]:
    """Return the chats with these names, all of them without names. Raises ``InvalidInput`` for an unknown one."""
    known = [collection.name for collection in collections]
    if unknown := [name for name in names if name not in known]:
        raise InvalidInput(f"unknown chat {unknown[0]!r}: name one of {', '.join(known)}")
    return [collection for collection in collections if not names or collection.name in names]


def _order(k: int) -> Measure:
    """Return Kendall's tau of the found evidence of a question about an order, None for other questions."""

    def measure(result: QuestionResult) -> float | None:
        if result.group not in ORDER_KINDS:
            return None
        found = events_at(result.hits, k) & result.needed
        return kendall_tau([int(place) for place in ranking(result.hits) if place in found])

    return measure


def _recall(kind: str | None, k: int) -> Measure:
    def measure(result: QuestionResult) -> float | None:
        return recall(result.hits, result.needed, k) if result.needed and kind in (None, result.group) else None

    return measure
