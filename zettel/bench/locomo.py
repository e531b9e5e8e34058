"""LoCoMo: evidence recall over long conversations.

Categories 1 to 4 make the mean; category 5 asks for what was never said, and its evidence only misleads, so
it stands apart. What goes in is the turns; dates, questions and summaries of the file are not looked at.

Paper: Maharana et al. 2024, "Evaluating Very Long-Term Conversational Memory of LLM Agents".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from zettel.errors import InvalidInput
from zettel.model import Event
from zettel.transcripts import locomo

from .counting import read_evidence, tally
from .evaluation import Collection, Progress, Question, answering, embedder_called, evaluate, scorer_without
from .machine import Cell, Result, data_file, result

GROUPS = {"1": "multi-hop", "2": "temporal", "3": "open-domain", "4": "single-hop", "5": "adversarial"}
"""LoCoMo's categories of questions."""

MEAN_OF = frozenset("1234")


async def run(
    path: Path,
    progress: Progress,
    conversations: Sequence[str] = (),
    k: int = 10,
    without: Sequence[str] = (),
    embedder: str | None = None,
) -> Result:
    """Recall@k of zettel and the baselines; ``conversations`` by name or number, empty for all.

    Raises ``InvalidInput`` for a conversation that is not there or a file without questions, ``BadRecord``
    for a damaged one.
    """
    collections, counted = read(path, conversations)
    model, scorer = embedder_called(embedder), scorer_without(without)
    outcome = await evaluate(collections, k, scorer, model, progress)
    rows: list[list[Cell]] = []
    for system, asked in outcome.asked.items():
        mean = tally([one for one in asked if one.group in MEAN_OF], k)
        groups = {group: tally([one for one in asked if one.group == group], k) for group in GROUPS}
        rows.append([system, _rounded(mean.recall), *(_rounded(groups[group].recall) for group in GROUPS)])
    sizes = {group: tally([one for one in outcome.asked["zettel"] if one.group == group], k) for group in GROUPS}
    mean_of = sum(sizes[group].questions for group in MEAN_OF)
    rows.append(["questions", mean_of, *(sizes[group].questions for group in GROUPS)])
    turns = sum(len(collection.events) for collection in collections)
    asked_in_all = len(outcome.asked["zettel"])
    notes = [
        f"{counted.mended} malformed evidence ids were split or mended, {counted.dropped} dropped; "
        f"{counted.without} questions without evidence are not counted.",
        f"zettel took {outcome.remembering:.1f} s for {turns} turns and {outcome.searching:.1f} s for "
        f"{asked_in_all} questions.",
    ]
    return result(
        bench="locomo",
        ran_on={**data_file(path), "conversations": ", ".join(c.name for c in collections), "turns": turns},
        settings=answering(scorer, without, model, k),
        columns=[f"recall@{k}", "1-4", *GROUPS.values()],
        rows=rows,
        notes=notes,
    )


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
            if not evidence.events:
                counted.without += 1
                continue
            questions.append(Question(entry["question"], str(entry["category"]), evidence.events))
        collections.append(Collection(name, events, questions))
    if not any(collection.questions for collection in collections):
        raise InvalidInput(f"{path} holds no questions with evidence; this needs LoCoMo's own file")
    return collections, counted


def _named(wanted: str, names: Sequence[str]) -> str:
    for name in names:
        if name == wanted or name.endswith(f"-{wanted}"):
            return name
    raise InvalidInput(f"there is no conversation {wanted!r}; there are {', '.join(names)}")


def _rounded(share: float) -> float:
    return round(share, 4)
