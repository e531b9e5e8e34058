"""MemoryAgentBench, conflict resolution: does a search find the newest version of a fact, and before the older ones?

Reads ``Conflict_Resolution-00000-of-00001.parquet`` (``ai-hyz/MemoryAgentBench`` on Hugging Face, release of 2025), or
JSON lines with the same fields: ``context`` ("Here is a list of facts:", then a numbered fact per line; a larger number
is newer), ``questions``, ``answers`` and ``metadata.source``. Each fact is an event, stored in order of the numbers.

The authors publish answers, not the facts behind them, and measure the answers of a model. Here the current fact of a
question is the newest that ends with an answer, among those that share most words with the question. Questions without
one are skipped, also if a still newer version contradicts it. So are all multi-hop questions: they do not name the
subject of the fact that they need.

Paper: Hu, Wang and McAuley 2025, "Evaluating Memory in LLM Agents via Incremental Multi-Turn Interactions".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from zettel.embed import load_embedder
from zettel.errors import BadRecord, InvalidInput, MissingExtra
from zettel.model import Event
from zettel.text.tokens import tokenize
from zettel.transcripts import Rejected
from zettel.transcripts.parsing.json_records import json_records
from zettel.transcripts.parsing.json_values import as_dict, as_list

from .baselines import SIMPLE, CachingEmbedder, load_baselines
from .comparison import SIGNIFICANCE, Measure, compare
from .evaluation import OURS, Collection, Progress, Question, evaluate_each, load_scorers, run_settings
from .metrics import QuestionResult, ranking, recall
from .results import Result, data_files

KS = (1, 5, 10)
SINGLE_HOP = "factconsolidation_sh"
"""Begin of the source of single-hop questions."""
CURRENT_FIRST = "current first"
_FACT = re.compile(r"\s*(\d+)\.\s+(\S.*?)\s*")


class Current(NamedTuple):
    """Numbers of the current fact of a question and of its older versions."""

    number: int
    older: tuple[int, ...]


@dataclass
class Labels:
    """Older versions by the id of the current fact, and the numbers of questions that are not counted."""

    older: dict[str, frozenset[str]] = field(default_factory=dict)
    multi_hop: int = 0
    without_fact: int = 0


async def run(
    path: Path,
    progress: Progress,
    ks: Sequence[int] = KS,
    embedder: str | None = None,
    *,
    baselines: Sequence[str] = SIMPLE,
    scorers: Sequence[str] = (),
) -> Result:
    """Measure zettel and ``baselines`` on the single-hop questions, for each of ``ks``; ``scorers`` adds rows by name.

    Each list of facts has a store of its own. Raises ``BadRecord`` for a damaged file, ``InvalidInput`` for one without
    a question to count, ``MissingExtra`` without pyarrow, and the errors of ``load_scorer``.
    """
    model = CachingEmbedder(load_embedder(embedder))
    simple, rankers, labels = load_baselines(baselines, model), load_scorers(scorers), Labels()
    lists = read(path, labels)
    outcome, facts = await evaluate_each(lists, max(ks), model, progress, simple.systems, rankers)
    if not outcome.results:
        raise InvalidInput(f"{path} has no single-hop question to count: pass MemoryAgentBench's conflict resolution")
    sources = sorted({result.group for result in outcome.results[OURS]})
    measures: dict[str, Measure] = {f"recall@{k}": _recall(k) for k in ks}
    measures[CURRENT_FIRST] = _current_first(labels.older)
    measures |= {f"{source.removeprefix(SINGLE_HOP + '_')} @{max(ks)}": _recall(max(ks), source) for source in sources}
    columns, rows = compare(outcome, measures, [*(f"recall@{k}" for k in ks), CURRENT_FIRST])
    return Result(
        bench="memoryagentbench",
        data=data_files([path]),
        ran_on={"facts": facts},
        settings=run_settings(None, (), model, ks),
        columns=["current facts", *columns],
        rows=rows,
        notes=[
            f"recall@k: the current fact is in the first k places; {CURRENT_FIRST}: it is in the first {max(ks)} and "
            "not after an older version, for questions whose fact has one; ms for one search.",
            SIGNIFICANCE,
            f"Skipped: {labels.multi_hop} multi-hop questions, {labels.without_fact} questions whose current fact is "
            "unknown.",
            f"zettel took {outcome.import_seconds:.1f} s for {facts} facts and {outcome.search_seconds:.1f} s for "
            f"{len(outcome.results[OURS])} questions.",
            *simple.notes,
        ],
    )


def read(path: Path, labels: Labels) -> Iterator[Collection]:
    """Yield the facts of each row with its questions, and fill ``labels``. Raises ``BadRecord``, ``MissingExtra``."""
    for number, row in enumerate(_rows(path), start=1):
        context, questions, answers = row.get("context"), as_list(row.get("questions")), as_list(row.get("answers"))
        source = as_dict(row.get("metadata")).get("source")
        if not isinstance(context, str) or not isinstance(source, str) or not len(questions) == len(answers) > 0:
            raise BadRecord(
                f"{path}, row {number}: expected context, metadata.source, questions, and answers to each of them"
            )
        if not source.startswith(SINGLE_HOP):
            labels.multi_hop += len(questions)
            continue
        lines = map(_FACT.fullmatch, context.splitlines())
        facts = {int(line[1]): line[2] for line in lines if line is not None}
        counted = []
        for question, accepted in zip(questions, answers, strict=True):
            current = current_fact(facts, str(question), [str(answer) for answer in as_list(accepted)])
            if current is None:
                labels.without_fact += 1
                continue
            id = f"{source}/{current.number}"
            labels.older[id] = frozenset(f"{source}/{older}" for older in current.older)
            counted.append(Question(str(question), source, frozenset([id])))
        if counted:
            events = [Event(external_id=f"{source}/{serial}", content=facts[serial]) for serial in sorted(facts)]
            yield Collection(source, events, counted)


def current_fact(facts: Mapping[int, str], question: str, answers: Sequence[str]) -> Current | None:
    """Return the current fact of a single-hop question and its older versions; None without one.

    Versions of a fact are equal up to their end. The current one ends with one of the ``answers``.
    """
    stripped = {number: fact.rstrip(". ") for number, fact in facts.items()}
    begins: dict[int, str] = {}
    for number, fact in stripped.items():
        for answer in answers:
            if answer and fact.lower().endswith(f" {answer.lower()}"):
                begins[number] = fact[: -len(answer)]
    if not begins:
        return None
    asked = set(tokenize(question))
    shared = {number: len(asked.intersection(tokenize(begin))) for number, begin in begins.items()}
    current = max(begins, key=lambda number: (shared[number], number))
    versions = [number for number, fact in stripped.items() if fact.startswith(begins[current])]
    if max(versions) > current:
        return None
    return Current(current, tuple(sorted(number for number in versions if stripped[number] != stripped[current])))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if path.suffix != ".parquet":
        for entry in json_records(path):
            if isinstance(entry, Rejected):
                raise BadRecord(f"{path}:{entry.position}: {entry.reason}")
            yield as_dict(entry.value)
        return
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtra("reading Parquet files", "parquet") from error
    try:
        yield from parquet.read_table(path).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise BadRecord(f"{path} is not a Parquet file: {' '.join(str(error).split())}") from error


def _recall(k: int, source: str | None = None) -> Measure:
    def measure(result: QuestionResult) -> float | None:
        return recall(result.hits, result.needed, k) if source in (None, result.group) else None

    return measure


def _current_first(older: Mapping[str, frozenset[str]]) -> Measure:
    def measure(result: QuestionResult) -> float | None:
        (current,) = result.needed
        if not older[current]:
            return None
        versions = [id for id in ranking(result.hits) if id == current or id in older[current]]
        return float(versions[:1] == [current])

    return measure
