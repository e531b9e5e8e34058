"""LongMemEval: retrieval of evidence sessions and turns from a haystack of chat sessions, per question.

Reads ``longmemeval_s_cleaned.json``, ``longmemeval_m_cleaned.json`` and ``longmemeval_oracle.json`` of the cleaned
release of September 2025 (``xiaowu0162/longmemeval-cleaned`` on Hugging Face). The first release has the same layout.
Each question has a haystack of its own. The measures are those of ``src/retrieval/eval_utils.py`` in the authors'
repository: ``any@k`` (recall_any), ``all@k`` (recall_all) and NDCG@k, with the mean reciprocal rank beside them.

Two kinds of questions are skipped: the abstention questions (``_abs`` in the id), which have no evidence, as in the
authors' script; and those of which no stored turn is labelled ``has_answer``. The authors store the user's turns only,
so all questions about an answer of the assistant are of the second kind. Their script counts these with any@k 0 and
all@k 1 for every system.

Sessions rank by their first turn in the ranking, as in the authors' ``evaluate_retrieval_turn2session``.

Paper: Wu et al. 2024, "LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from zettel.embed import load_embedder
from zettel.errors import BadRecord, InvalidInput
from zettel.model import Event
from zettel.transcripts import Rejected
from zettel.transcripts.formats import longmemeval
from zettel.transcripts.parsing.json_records import json_records
from zettel.transcripts.parsing.json_values import as_dict

from .baselines import SIMPLE, CachingEmbedder, load_baselines
from .comparison import SIGNIFICANCE, Measure, compare
from .evaluation import OURS, Collection, Progress, Question, evaluate_each, load_scorers, run_settings
from .metrics import QuestionResult, ndcg, ranking, recall_all, recall_any, reciprocal_rank
from .results import Result, data_files

KS = (5, 10)
DEPTH = 10
"""Turns that are searched for each place, because several hits may belong to one session."""
ABSTENTION = "_abs"
LEVELS = ("session", "turn")
FIELDS = {"question_id": str, "question_type": str, "question": str, "haystack_sessions": list}

Turns: TypeAlias = Literal["user", "all"]
"""Turns to store: those of the user, as the authors do, or also those of the assistant."""


@dataclass
class Skipped:
    """Questions and turns that are not counted, by reason."""

    abstention: int = 0
    without_evidence: int = 0
    turns: int = 0


async def run(
    path: Path,
    progress: Progress,
    ks: Sequence[int] = KS,
    turns: Turns = "user",
    embedder: str | None = None,
    *,
    baselines: Sequence[str] = SIMPLE,
    scorers: Sequence[str] = (),
) -> Result:
    """Measure zettel and ``baselines`` on the questions of a file, for each of ``ks``; ``scorers`` adds rows by name.

    One haystack at a time is in memory and in a store. Texts that haystacks share are embedded once. Raises
    ``BadRecord`` for a damaged file, ``InvalidInput`` for one without a question to count, and the errors of
    ``load_scorer``.
    """
    model = CachingEmbedder(load_embedder(embedder))
    simple, rankers, skipped = load_baselines(baselines, model), load_scorers(scorers), Skipped()
    haystacks = read(path, turns, skipped)
    outcome, stored = await evaluate_each(haystacks, max(ks) * DEPTH, model, progress, simple.systems, rankers)
    if not outcome.results:
        raise InvalidInput(f"{path} has no question with evidence: pass a file of LongMemEval")
    asked = outcome.results[OURS]
    measures = {name: measure for level in LEVELS for name, measure in _measures(level, ks).items()}
    for kind in sorted({result.group for result in asked}):
        measures[f"{kind} all@{max(ks)}"] = _of_kind(kind, measures[f"session all@{max(ks)}"])
    columns, rows = compare(outcome, measures, [f"{level} all@{k}" for level in LEVELS for k in ks])
    return Result(
        bench="longmemeval",
        data=data_files([path]),
        ran_on={"questions": len(asked), "turns": stored},
        settings=run_settings(None, (), model, ks) | {"turns stored": turns},
        columns=["retrieval", *columns],
        rows=rows,
        notes=[
            "any@k, all@k: one or all of the evidence is in the first k places; kinds of questions by session; ms for "
            "one search.",
            SIGNIFICANCE,
            f"Skipped: {skipped.abstention} abstention questions, {skipped.without_evidence} questions without a "
            f"labelled turn among those stored, {skipped.turns} empty or damaged turns.",
            f"zettel took {outcome.import_seconds:.1f} s for {stored} turns and {outcome.search_seconds:.1f} s for "
            f"{len(asked)} questions.",
            *simple.notes,
        ],
    )


def read(path: Path, turns: Turns, skipped: Skipped) -> Iterator[Collection]:
    """Yield the haystack of each question that counts, and count the others in ``skipped``. Raises ``BadRecord``."""
    for entry in json_records(path):
        if isinstance(entry, Rejected):
            raise BadRecord(f"{path}: {entry.reason}")
        asked = as_dict(entry.value)
        if missing := [key for key, kind in FIELDS.items() if not isinstance(asked.get(key), kind)]:
            raise BadRecord(
                f"{path}, question {entry.source.position}: {missing[0]} is missing or has another type: pass a file "
                "of LongMemEval"
            )
        if ABSTENTION in asked["question_id"]:
            skipped.abstention += 1
            continue
        events, needed = [], set()
        for event in longmemeval.turns(asked, entry.source):
            if not isinstance(event, Event):
                skipped.turns += 1
            elif turns == "all" or event.role == "user":
                events.append(event.model_copy(update={"metadata": {}}))
                needed |= {str(event.external_id)} if "has_answer" in event.metadata else set()
        if not needed:
            skipped.without_evidence += 1
            continue
        question = Question(asked["question"], asked["question_type"], frozenset(needed))
        yield Collection(asked["question_id"], events, [question])


def _session(turn: str) -> str:
    return turn.rpartition("/")[0]


def _measures(level: str, ks: Sequence[int]) -> dict[str, Measure]:
    """Return the measures of a level by their column."""

    def of(measure: Callable[..., float], *places: int) -> Measure:
        def value(result: QuestionResult) -> float:
            ranked, needed = ranking(result.hits), set(result.needed)
            if level == "session":
                ranked, needed = list(dict.fromkeys(map(_session, ranked))), set(map(_session, needed))
            return measure(ranked, needed, *places)

        return value

    measures = {
        f"{level} {name}@{k}": of(measure, k)
        for k in ks
        for name, measure in (("any", recall_any), ("all", recall_all), ("NDCG", ndcg))
    }
    return measures | {f"{level} MRR": of(reciprocal_rank)}


def _of_kind(kind: str, measure: Measure) -> Measure:
    return lambda result: measure(result) if result.group == kind else None
