"""LoCoMo: evidence recall over long conversations.

Categories 1 to 4 make the mean; category 5 asks for what was never said, and its evidence only misleads, so
it stands apart. What goes in is the turns; dates, questions and summaries of the file are not looked at.

Paper: Maharana et al. 2024, "Evaluating Very Long-Term Conversational Memory of LLM Agents".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from zettel.annotate.recorded import RecordedAnnotator
from zettel.errors import InvalidInput
from zettel.model import Event
from zettel.transcripts import locomo

from .beside import ALL, MINILM, beside
from .counting import Asked, Tally, auroc, read_evidence, tally
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

GROUPS = {"1": "multi-hop", "2": "temporal", "3": "open-domain", "4": "single-hop", "5": "adversarial"}
"""LoCoMo's categories of questions."""

MEAN_OF = frozenset("1234")
UNANSWERABLE = "5"
WITHOUT_NOTES = "zettel without notes"
KS = (10, 20)
"""Places that hits may take, as two columns."""


async def run(
    path: Path,
    progress: Progress,
    conversations: Sequence[str] = (),
    ks: Sequence[int] = KS,
    without: Sequence[str] = (),
    embedder: str | None = None,
    *,
    ablate: bool = False,
    others: Sequence[str] = ALL,
    minilm: str = MINILM,
    scorers: Sequence[str] = (),
    notes_file: Path | None = None,
) -> Result:
    """Recall@k of zettel and the ``others`` for each of ``ks``; ``conversations`` by name or number, empty for all.

    ``notes_file`` holds what a model once wrote of the turns of the one conversation (see ``RecordedAnnotator``): it is
    put in as a live model's answers are, and a row tells what the same conversation gives without.

    AUROC says how well the score of zettel's first hit tells questions that have an answer (categories 1 to 4) from
    those that have none (5). ``ablate`` adds a row for each part of the scorer that is left out, ``scorers`` one for
    each of these names. Raises ``InvalidInput`` for a conversation that is not there or a file without questions,
    ``BadRecord`` for a damaged one, and what loading a scorer raises.
    """
    collections, counted = read(path, conversations)
    annotator = None if notes_file is None else _recorded(notes_file, collections)
    model, scorer = embedder_called(embedder), scorer_without(without)
    simple = beside(others, model, minilm)
    rankers = scorers_called(scorers)
    outcome = await evaluate(
        collections, max(ks), scorer, model, progress, others=simple.systems,
        scorers=rankers | (ablations() if ablate else {}), annotator=annotator,
    )  # fmt: skip
    if annotator is not None:
        bare = await evaluate(collections, max(ks), scorer, model, progress, others={})
        outcome.asked[WITHOUT_NOTES], outcome.times[WITHOUT_NOTES] = bare.asked[OURS], bare.times[OURS]
    rows: list[list[Cell]] = []
    for system, asked in outcome.asked.items():
        recalls = [round(tally(chosen, k).recall, 4) for chosen in _groups(asked) for k in ks]
        rows.append([system, *recalls, _telling(asked), *latency(outcome, system)])
    sizes = [tally(chosen, max(ks)).questions for chosen in _groups(outcome.asked[OURS]) for _ in ks]
    rows.append(["asked", *sizes, None, *[None] * len(LATENCY_COLUMNS)])
    turns = sum(len(collection.events) for collection in collections)
    notes = [
        f"Evidence recall in the first {' and '.join(map(str, ks))} places; AUROC of the first hit's score, categories "
        "1-4 against 5; ms for one search.",
        f"{counted.mended} malformed evidence ids were split or mended, {counted.dropped} dropped; "
        f"{counted.without} questions without evidence are not counted in recall.",
        f"zettel took {outcome.remembering:.1f} s for {turns} turns and {outcome.searching:.1f} s for "
        f"{len(outcome.asked[OURS])} questions.",
        *simple.notes,
    ]
    return result(
        bench="locomo",
        ran_on={**data_file(path), "conversations": ", ".join(c.name for c in collections), "turns": turns},
        settings=answering(scorer, without, model, ks) | ({"notes": notes_file.name} if notes_file else {}),
        columns=[
            "recall",
            *(f"{name} @{k}" for name in ("1-4", *GROUPS.values()) for k in ks),
            "AUROC",
            *LATENCY_COLUMNS,
        ],
        rows=rows,
        notes=notes,
        curves=curves(outcome, [OURS, *rankers, *simple.systems], lambda asked, k: mean(asked, k).recall, max(ks)),
    )


def _recorded(file: Path, collections: Sequence[Collection]) -> RecordedAnnotator:
    if len(collections) != 1:
        raise InvalidInput("recorded notes belong to one conversation: name it with --conversation")
    return RecordedAnnotator(file)


def mean(asked: Sequence[Asked], k: int) -> Tally:
    """The tally of categories 1 to 4."""
    return tally([one for one in asked if one.group in MEAN_OF], k)


def _groups(asked: Sequence[Asked]) -> list[list[Asked]]:
    """The questions that make the mean, then those of each category."""
    return [
        [one for one in asked if one.group in MEAN_OF],
        *([one for one in asked if one.group == group] for group in GROUPS),
    ]


def _telling(asked: Sequence[Asked]) -> Cell:
    """AUROC of the first hits' scores; None for a system whose scores mean nothing across questions."""
    scored = [(one.group, one.score) for one in asked if one.score is not None]
    area = auroc(
        [score for group, score in scored if group in MEAN_OF],
        [score for group, score in scored if group == UNANSWERABLE],
    )
    return None if area is None else round(area, 4)


class Counted:
    """What was wrong with a file's evidence."""

    def __init__(self) -> None:
        self.mended = self.dropped = self.without = 0


def read(path: Path, conversations: Sequence[str] = ()) -> tuple[list[Collection], Counted]:
    """The conversations of a file with their questions, ids as the file has them (``D3:7``)."""
    samples = {str(sample.get("sample_id", n)): sample for n, sample in enumerate(locomo.load(path))}
    wanted = [_named(name, list(samples)) for name in conversations] or list(samples)
    counted = Counted()
    collections = []
    for name in wanted:
        events = [one for one in locomo.turns(path, samples[name], None) if isinstance(one, Event)]
        known = {str(event.id) for event in events}
        questions = []
        for entry in samples[name].get("qa", []):
            evidence = read_evidence(entry.get("evidence", []), known)
            counted.mended += evidence.mended
            counted.dropped += evidence.dropped
            counted.without += not evidence.events
            questions.append(Question(entry["question"], str(entry["category"]), evidence.events))
        collections.append(Collection(name, events, questions))
    if not any(question.needed for collection in collections for question in collection.questions):
        raise InvalidInput(f"{path} holds no questions with evidence; this needs LoCoMo's own file")
    return collections, counted


def _named(wanted: str, names: Sequence[str]) -> str:
    for name in names:
        if name == wanted or name.endswith(f"-{wanted}"):
            return name
    raise InvalidInput(f"there is no conversation {wanted!r}; there are {', '.join(names)}")
