"""LoCoMo: evidence recall over long conversations, by turn or by session.

Categories 1 to 4 make the mean. Category 5, questions without an answer, is reported apart. Only turns are stored;
summaries of the file are ignored.

Paper: Maharana et al. 2024, "Evaluating Very Long-Term Conversational Memory of LLM Agents".
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from zettel.annotate.recorded import RecordedAnnotator
from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.model import Event
from zettel.transcripts.formats import locomo

from .baselines import ALL, load_baselines
from .comparison import SIGNIFICANCE, Measure, compare
from .evaluation import (
    OURS,
    Collection,
    Progress,
    Question,
    ablations,
    by_session,
    curves,
    evaluate,
    load_scorers,
    run_settings,
    scorer_without,
)
from .metrics import QuestionResult, RecallSummary, read_evidence, recall, summarize
from .results import Result, data_files

GROUPS = {"1": "multi-hop", "2": "temporal", "3": "open-domain", "4": "single-hop", "5": "adversarial"}
"""LoCoMo's categories of questions."""

MEAN_OF = frozenset("1234")
UNANSWERABLE = "5"
ANSWERABLE = "1-4"
"""Column name of the mean."""
Level: TypeAlias = Literal["turn", "session"]
SESSION_DEPTH = 10
"""Turns that are searched for each place of a session, because several hits may belong to one session."""
WITHOUT_NOTES = "zettel without notes"
KS = (10, 20)
"""Places that hits may take."""


async def run(
    path: Path,
    progress: Progress,
    conversations: Sequence[str] = (),
    ks: Sequence[int] = KS,
    without: Sequence[str] = (),
    embedder: str | None = None,
    *,
    ablate: bool = False,
    baselines: Sequence[str] = ALL,
    scorers: Sequence[str] = (),
    notes_file: Path | None = None,
    level: Level = "turn",
) -> Result:
    """Measure recall@k of zettel and ``baselines`` for each of ``ks``.

    ``conversations`` selects by name or number, empty for all. ``notes_file`` contains recorded notes of one
    conversation (see ``RecordedAnnotator``); a further row has recall without them. ``ablate`` adds a row without each
    part of the scorer, ``scorers`` a row for each name. ``level="session"`` measures the recall of sessions, in the
    order of their first hit, among SESSION_DEPTH times as many turns. AUROC compares the first hit's score on
    answerable (1 to 4) and unanswerable questions (5).

    Raises ``InvalidInput`` for an unknown conversation or a file without questions, ``BadRecord`` for a damaged file,
    and the errors of ``load_scorer``.
    """
    collections, problems = read(path, conversations)
    annotator = None if notes_file is None else _recorded(notes_file, collections)
    model, scorer = load_embedder(embedder), scorer_without(without)
    simple = load_baselines(baselines, model)
    rankers = load_scorers(scorers)
    depth = max(ks) * (SESSION_DEPTH if level == "session" else 1)
    outcome = await evaluate(
        collections, depth, scorer, model, progress, baselines=simple.systems,
        scorers=rankers | (ablations() if ablate else {}), annotator=annotator,
    )  # fmt: skip
    if annotator is not None:
        bare = await evaluate(collections, depth, scorer, model, progress, baselines={})
        outcome.results[WITHOUT_NOTES] = bare.results[OURS]
        outcome.times[WITHOUT_NOTES] = bare.times[OURS]
    if level == "session":
        outcome = by_session(outcome, collections)
    groups = {ANSWERABLE: MEAN_OF, **{name: frozenset([category]) for category, name in GROUPS.items()}}
    measures = {f"{name} @{k}": _recall(categories, k) for name, categories in groups.items() for k in ks}
    columns, rows = compare(outcome, measures, [f"{ANSWERABLE} @{k}" for k in ks], _is_answerable)
    turns = sum(len(collection.events) for collection in collections)
    notes = [
        f"Evidence recall in the first {' and '.join(map(str, ks))} places; AUROC of the first hit's score, categories "
        "1-4 against 5; ms for one search.",
        SIGNIFICANCE,
        f"{problems.repaired} malformed evidence ids were split or mended, {problems.dropped} dropped; "
        f"{problems.without} questions without evidence are not counted in recall.",
        f"zettel took {outcome.import_seconds:.1f} s for {turns} turns and {outcome.search_seconds:.1f} s for "
        f"{len(outcome.results[OURS])} questions.",
        *simple.notes,
    ]
    return Result(
        bench="locomo",
        data=data_files([path, *([notes_file] if notes_file else [])]),
        ran_on={"conversations": ", ".join(c.name for c in collections), "turns": turns},
        settings=run_settings(scorer, without, model, ks)
        | {"level": level}
        | ({"notes": notes_file.name} if notes_file else {}),
        columns=["recall" if level == "turn" else "recall of sessions", *columns],
        rows=rows,
        notes=notes,
        curves=curves(outcome, [OURS, *rankers, *simple.systems], lambda results, k: mean(results, k).recall, max(ks)),
    )


def _recorded(file: Path, collections: Sequence[Collection]) -> RecordedAnnotator:
    if len(collections) != 1:
        raise InvalidInput("recorded notes belong to one conversation: name it with --conversation")
    return RecordedAnnotator(file)


def mean(results: Sequence[QuestionResult], k: int) -> RecallSummary:
    """Summarize categories 1 to 4."""
    return summarize(answerable(results), k)


def answerable(results: Sequence[QuestionResult]) -> list[QuestionResult]:
    """Select categories 1 to 4."""
    return [result for result in results if result.group in MEAN_OF]


def _recall(categories: Container[str], k: int) -> Measure:
    def measure(result: QuestionResult) -> float | None:
        return recall(result.hits, result.needed, k) if result.needed and result.group in categories else None

    return measure


def _is_answerable(result: QuestionResult) -> bool | None:
    return {UNANSWERABLE: False, **dict.fromkeys(MEAN_OF, True)}.get(result.group)


@dataclass
class EvidenceProblems:
    """Evidence ids that were repaired or dropped, and questions without evidence."""

    repaired: int = 0
    dropped: int = 0
    without: int = 0


def read(path: Path, conversations: Sequence[str] = ()) -> tuple[list[Collection], EvidenceProblems]:
    """Return the conversations of a file with their questions; event ids are the file's (``D3:7``)."""
    samples = {str(sample.get("sample_id", n)): sample for n, sample in enumerate(locomo.load(path))}
    names = [_full_name(name, list(samples)) for name in conversations] or list(samples)
    problems = EvidenceProblems()
    collections = []
    for name in names:
        events = [turn for turn in locomo.turns(path, samples[name], None) if isinstance(turn, Event)]
        known = {str(event.external_id) for event in events}
        questions = []
        for entry in samples[name].get("qa", []):
            evidence = read_evidence(entry.get("evidence", []), known)
            problems.repaired += evidence.repaired
            problems.dropped += evidence.dropped
            problems.without += not evidence.events
            questions.append(Question(entry["question"], str(entry["category"]), evidence.events))
        collections.append(Collection(name, events, questions))
    if not any(question.needed for collection in collections for question in collection.questions):
        raise InvalidInput(f"{path} contains no questions with evidence: pass LoCoMo's own file")
    return collections, problems


def _full_name(conversation: str, names: Sequence[str]) -> str:
    for name in names:
        if name == conversation or name.endswith(f"-{conversation}"):
            return name
    raise InvalidInput(f"unknown conversation {conversation!r}: use one of {', '.join(names)}")
