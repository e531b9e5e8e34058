"""Fits the default scorer to labelled memories of three kinds, and measures it on others.

Each memory is stored in its own scope, and a recording scorer collects the candidates of its questions. The local
score is fitted to questions with an answer. The calibration is fitted to these and to questions without one: its own,
those of another memory, those with another speaker's name, and both kinds asked of small cuts of a memory. The graph
score is not fitted.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from zettel import AsyncMemory
from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.model import ROLES, Scope
from zettel.ports.query import Candidates, Scores
from zettel.ports.query import Question as Parsed
from zettel.scoring.calibrate import ANSWER_FEATURES
from zettel.scoring.features import FEATURE_NAMES, feature_table
from zettel.scoring.fusion import FusionScorer
from zettel.scoring.network_fit import FitSettings, Judged, Labelled, fit_calibration, fit_local
from zettel.scoring.networks import ScoreModels
from zettel.scoring.ranking import rank

from . import chats, labelled_questions, locomo, multihop
from .baselines import CachingEmbedder
from .evaluation import Collection, Progress, Question, external_ids_by_note, run_settings, store, temporary_memory
from .metrics import QuestionResult, auroc, calibration_error, summarize
from .results import Cell, Result, data_files

K, K_DOCUMENTS = 10, 8
"""Places for hits, as in the benchmarks of conversations and of documents."""
CUT_SIZES = (3, 10, 30, 100)
"""Messages in a cut of a memory, for the calibration of small memories."""
CUTS = 3
"""Cuts of each size of a chat. Of other memories, of which there are more, one each."""
ASKED_OF_CUT = 4
"""Questions of a cut with an answer, and as many without one, at most."""
SIZES = (5, 20, 60, 150)
SIZE_NAMES = ("up to 4 notes", "5 to 19 notes", "20 to 59 notes", "60 to 149 notes", "150 notes and more")
"""Sizes of memories for which the median score is reported."""
FEW_NOTES = 60
"""Notes up to which a memory counts as a kind of its own for the calibration."""
REPETITION = 0.3
"""Weight of an assistant's message that repeats one of the user, as evidence."""
SHARES = {"talk": 0.3, "chat": 0.6, "documents": 0.1}
"""Weights of the kinds of memory in the local score. We have few questions about documents, and links answer most."""
_USER, _ASSISTANT = ROLES.index("user"), ROLES.index("assistant")


class RecordedSearch(NamedTuple):
    """A question, the scorer's input for it, and the external id of each row."""

    question: Question
    parsed: Parsed
    candidates: Candidates
    events: list[str]


class Recorded(NamedTuple):
    """The searches of a memory: its own questions, and those for the calibration alone."""

    name: str
    kind: str
    own: Sequence[RecordedSearch]
    calibration: Sequence[RecordedSearch]


class RecordingScorer:
    """A scorer that records its last input and leaves the order to the candidates' vectors."""

    name = FusionScorer.name

    def __init__(self) -> None:
        self.last: tuple[Parsed, Candidates] | None = None

    def score(self, question: Parsed, candidates: Candidates) -> Scores:
        self.last = question, candidates
        zeros = np.zeros(len(candidates.ids), np.float32)
        return Scores(zeros, zeros, zeros, zeros[:, None][:, :0], (), lambda _: -1)


async def run(
    paths: Sequence[Path],
    progress: Progress,
    test: Sequence[Path] = (),
    documents: tuple[Path, Path] | None = None,
    embedder: str | None = None,
    out: Path | None = None,
    settings: FitSettings | None = None,
) -> Result:
    """Fit to the memories of ``paths`` and to ``documents``; measure on them and on ``test``.

    ``out`` is a folder for the weights. Raises ``InvalidInput`` for fewer than two memories to fit or a duplicate name,
    ``BadRecord`` for a damaged file, ``MissingExtra`` without torch or scipy.
    """
    settings = settings or FitSettings()
    fitting = [collection for path in paths for collection in read(path)]
    testing = [collection for path in test for collection in read(path)]
    if documents:
        fitting += [multihop.read(*documents)[0]]
    names = [collection.name for collection in (*fitting, *testing)]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"there are two memories {duplicates[0]!r}: name each file once, and differently")
    if len(fitting) < 2:
        raise InvalidInput("name two memories or more to fit")
    model = CachingEmbedder(load_embedder(embedder))  # cuts repeat messages
    recorder = RecordingScorer()
    recorded: list[Recorded] = []
    async with temporary_memory(embedder=model, scorer=recorder) as memory:
        for group in (fitting, testing):
            for place, collection in enumerate(group):
                progress("recording searches", len(recorded), len(names))
                recorded.append(await _record(memory, recorder, collection, group[(place + 1) % len(group)]))
    fit, tested = recorded[: len(fitting)], recorded[len(fitting) :]
    examples = [example for each in fit for example in labelled(each)]
    shares = {kind: SHARES[kind] for kind in {example.kind for example in examples}}
    local = fit_local(examples, FEATURE_NAMES, settings, shares, lambda done, total: progress("fitting", done, total))
    judged = judged_questions(FusionScorer(models=ScoreModels(local, local)), fit)
    models = ScoreModels(local, fit_calibration(judged, ANSWER_FEATURES))
    if out is not None:
        models.save(out)
    scorers = FusionScorer(models=models), FusionScorer()
    ran_on: dict[str, Cell] = {"fitted to": ", ".join(each.name for each in fit)}
    if tested:
        ran_on["tested on"] = ", ".join(each.name for each in tested)
    return Result(
        bench="scorer fit",
        data=data_files(chats.files(*paths, *test, *(documents or ()))),
        ran_on=ran_on,
        settings=run_settings(None, (), model, [K, K_DOCUMENTS]) | {
            "networks": settings.networks, "epochs": settings.epochs, "seed": settings.seed,
        },
        columns=["what", "questions", "fitted", "shipped"],
        rows=[row for of, part in (("fit", fit), ("test", tested)) for row in _rows(part, of, *scorers)],
        notes=[
            f"Recall@{K} of each kind of memory, of documents perfect@{K_DOCUMENTS}; AUROC and expected calibration "
            "error of the first hit's score on questions with and without an answer, cuts of the memories included.",
        ],
    )  # fmt: skip


def read(path: Path) -> list[Collection]:
    """Read chats with an assistant, conversations in LoCoMo's layout, or labelled questions from a ``.jsonl`` file.

    A conversation has the file's name, followed by its own if the file contains several. Raises ``BadRecord``.
    """
    if path.suffix == ".jsonl" and not _starts_as_chat(path):
        return labelled_questions.read(path)
    if path.is_dir() or _starts_as_chat(path):
        return chats.read(path)
    collections, _ = locomo.read(path)
    if len(collections) == 1:
        return [collections[0]._replace(name=path.stem)]
    return [collection._replace(name=f"{path.stem}/{collection.name}") for collection in collections]


def _starts_as_chat(path: Path) -> bool:
    """Return whether a file, or its first line, is a chat."""
    if path.suffix == ".gz":
        return True
    try:
        with path.open("rb") as file:
            content = file.readline() if path.suffix == ".jsonl" else file.read()
        return chats.is_chat(json.loads(content))
    except (OSError, ValueError):
        return False


def kind_of(collection: Collection) -> str:
    """Return "chat" for a chat with an assistant, "talk" for one among people, else "documents"."""
    if any(event.role for event in collection.events):
        return "chat"
    return "talk" if any(event.session for event in collection.events) else "documents"


def is_answered(question: Question) -> bool:
    """Return whether a question has an answer. LoCoMo's unanswerable ones name messages that only mislead."""
    return bool(question.needed) and question.group != locomo.UNANSWERABLE


def cuts(collection: Collection, count: int = CUTS, seed: int = 0) -> list[Collection]:
    """Return ``count`` small cuts of each size around the evidence of a question.

    Each has questions that it answers and questions that it does not.
    """
    chooser = random.Random(f"{seed} {collection.name}")
    ids = [str(event.external_id) for event in collection.events]
    place = {id: number for number, id in enumerate(ids)}
    asked = [question for question in collection.questions if is_answered(question) and len(question.needed) == 1]
    result = []
    for size in CUT_SIZES:
        for number in range(count if asked and len(ids) > size else 0):
            first = min(place[id] for id in chooser.choice(asked).needed)
            start = max(0, min(first - chooser.randrange(size), len(ids) - size))
            inside = set(ids[start : start + size])
            answered = [question for question in asked if question.needed <= inside]
            others = [question for question in asked if not question.needed & inside]
            others += [question for question in collection.questions if not question.needed]
            chooser.shuffle(answered)
            chooser.shuffle(others)
            unanswered = [question._replace(needed=frozenset()) for question in others[:ASKED_OF_CUT]]
            events = collection.events[start : start + size]
            name = f"{collection.name}/{size}/{number}"
            result.append(Collection(name, events, [*answered[:ASKED_OF_CUT], *unanswered]))
    return result


def swapped(collection: Collection) -> list[Question]:
    """Return the questions about one speaker with the next speaker's name, which makes them unanswerable.

    A question qualifies if it names one speaker, by the first name at least, and no one else states the evidence.
    """
    speaker_of = {str(event.external_id): event.speaker for event in collection.events}
    speakers = list(dict.fromkeys(speaker for speaker in speaker_of.values() if speaker))
    patterns = {name: re.compile(rf"\b(?:{re.escape(name)}|{re.escape(name.split()[0])})\b") for name in speakers}
    changed = []
    for question in collection.questions:
        if question.group in locomo.MEAN_OF and len(speakers) > 1:
            named = [name for name, pattern in patterns.items() if pattern.search(question.text)]
            if len(named) == 1 and {speaker_of[event] for event in question.needed} == set(named):
                other = speakers[(speakers.index(named[0]) + 1) % len(speakers)]
                text = patterns[named[0]].sub(other, question.text)
                changed.append(Question(text, locomo.UNANSWERABLE, frozenset()))
    return changed


async def _record(
    memory: AsyncMemory, recorder: RecordingScorer, collection: Collection, other: Collection
) -> Recorded:
    quiet = lambda *_: None  # noqa: E731
    own = await _ask(memory, recorder, collection, collection.questions, quiet)
    kind = kind_of(collection)
    foreign = [question._replace(needed=frozenset()) for question in other.questions]
    calibration = list(own)
    if other is not collection:
        calibration += await _ask(memory, recorder, collection, foreign, quiet)
    calibration += await _ask(memory, recorder, collection, swapped(collection), quiet)
    for cut in cuts(collection, CUTS if kind == "chat" else 1):
        calibration += await _ask(memory, recorder, cut, cut.questions, quiet)
    return Recorded(collection.name, kind, own, calibration)


async def _ask(
    memory: AsyncMemory,
    recorder: RecordingScorer,
    collection: Collection,
    questions: Sequence[Question],
    progress: Progress,
) -> list[RecordedSearch]:
    """Search for questions in a collection's scope, which is filled first if it is new; return the scorer's inputs."""
    scope = Scope(user=collection.name)
    if not (await memory.stats(scope=scope))["notes"]:
        await store(memory, collection, scope, progress)
    events = await external_ids_by_note(memory, scope)
    searches = []
    for question in questions:
        await memory.search(question.text, k=1, scope=scope)
        assert recorder.last is not None
        parsed, candidates = recorder.last
        candidates = replace(candidates, ids=tuple(candidates.ids), term_keys=tuple(candidates.term_keys))
        searches.append(RecordedSearch(question, parsed, candidates, [events[id] for id in candidates.ids]))
    return searches


# ----------------------------------------------------------------------------------------------------------------- fit


def labelled(recorded: Recorded) -> list[Labelled]:
    """Return features and evidence of the candidates, for each question with an answer.

    The message of a user is evidence in full. An assistant's message that repeats it counts as REPETITION.
    """
    examples = []
    for search in recorded.own:
        rows = np.flatnonzero(search.candidates.pool)
        if is_answered(search.question) and len(rows):
            table = feature_table(search.parsed, search.candidates)
            names, event = np.unique([search.events[row] for row in rows], return_inverse=True)
            evidence = np.isin(names, sorted(search.question.needed)).astype(np.float32)
            role = np.full(len(names), -1)
            role[event] = search.candidates.role[rows]
            if (role[evidence > 0] == _USER).any():
                evidence[(evidence > 0) & (role == _ASSISTANT)] = REPETITION
            examples.append(Labelled(table.values, event, evidence, recorded.kind))
    return examples


def judged_questions(scorer: FusionScorer, recorded: Sequence[Recorded]) -> list[Judged]:
    """Return the evidence for an answer of each search, and whether there is one."""
    judged = []
    for each in recorded:
        for search in each.calibration:
            evidence = scorer.evidence(search.parsed, search.candidates)
            if evidence is not None:
                judged.append(Judged(evidence, is_answered(search.question), _calibration_kind(each, search)))
    return judged


def _calibration_kind(recorded: Recorded, search: RecordedSearch) -> str:
    """Return the kind of memory, apart for memories of few notes."""
    return f"{recorded.kind}, few notes" if search.candidates.stats.notes <= FEW_NOTES else recorded.kind


# -------------------------------------------------------------------------------------------------------------- report


def _rows(recorded: Sequence[Recorded], of: str, *scorers: FusionScorer) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for kind in dict.fromkeys(each.kind for each in recorded):
        searches = [search for each in recorded if each.kind == kind for search in each.own]
        k = K_DOCUMENTS if kind == "documents" else K
        summaries = [summarize(results(searches, scorer, k), k) for scorer in scorers]
        values = [summary.perfect if kind == "documents" else summary.recall for summary in summaries]
        name = f"perfect@{k}" if kind == "documents" else f"recall@{k}"
        rows.append([f"{name} {kind} ({of})", summaries[0].questions, *(round(value, 4) for value in values)])
    searches = [search for each in recorded for search in each.calibration]
    if searches:
        scored = [[_first_score(search, scorer) for search in searches] for scorer in scorers]
        answered = [is_answered(search.question) for search in searches]
        areas = [auroc(*_by_answer(scores, answered)) for scores in scored]
        errors = [calibration_error(scores, answered) for scores in scored]
        rows.append([f"AUROC ({of})", len(searches), *(None if area is None else round(area, 4) for area in areas)])
        rows.append([f"calibration error ({of})", len(searches), *(round(error, 4) for error in errors)])
        for name, low, high in zip(SIZE_NAMES, (0, *SIZES), (*SIZES, math.inf), strict=True):
            of_size = [search for search in searches if low <= search.candidates.stats.notes < high]
            rows += _medians(of_size, f"{name} ({of})", scorers)
    return rows


def _medians(searches: Sequence[RecordedSearch], of: str, scorers: Sequence[FusionScorer]) -> list[list[Cell]]:
    """Return the median score of a first hit that is right, and that of questions without an answer."""
    right: list[list[float]] = []
    unanswered: list[list[float]] = []
    for scorer in scorers:
        scores = [(search, scorer.score(search.parsed, search.candidates)) for search in searches]
        right.append([_first(scored) for search, scored in scores if _is_right(search, scored)])
        unanswered.append([_first(scored) for search, scored in scores if not is_answered(search.question)])
    return [
        [f"median score, {what}, {of}", len(groups[-1]), *(round(median(group), 4) for group in groups)]
        for what, groups in (("right first hit", right), ("no answer", unanswered))
        if all(groups)
    ]


def _is_right(search: RecordedSearch, scores: Scores) -> bool:
    """Return whether the first hit is evidence of the question."""
    if not is_answered(search.question):
        return False
    rows = rank(scores, search.candidates, 1)
    return bool(rows) and search.events[rows[0]] in search.question.needed


def results(searches: Sequence[RecordedSearch], scorer: FusionScorer, k: int) -> list[QuestionResult]:
    """Return the first ``k`` hits of each question with an answer."""
    found = []
    for search in searches:
        if is_answered(search.question):
            rows = rank(scorer.score(search.parsed, search.candidates), search.candidates, k)
            hits = [[search.events[row]] for row in rows]
            found.append(QuestionResult(search.question.group, search.question.needed, hits))
    return found


def _first_score(search: RecordedSearch, scorer: FusionScorer) -> float:
    return _first(scorer.score(search.parsed, search.candidates))


def _first(scores: Scores) -> float:
    return float(scores.score.max(initial=0.0))


def _by_answer(scores: Sequence[float], answered: Sequence[bool]) -> tuple[list[float], list[float]]:
    """Return the scores of questions with and without an answer."""
    pairs = list(zip(scores, answered, strict=True))
    return [score for score, is_one in pairs if is_one], [score for score, is_one in pairs if not is_one]
