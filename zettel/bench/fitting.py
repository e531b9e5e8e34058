"""Fits the default scorer's weights to labelled conversations and measures them on others.

Each conversation is stored in its own scope, and a recording scorer collects the candidates of its questions. Local
weights are fitted to answerable questions (LoCoMo's categories 1 to 4). The score's constants are fitted to all
questions, to those of another conversation, and to questions with swapped speakers. The graph score is not fitted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel import AsyncMemory
from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.model import Scope
from zettel.ports.query import Candidates, Scores
from zettel.ports.query import Question as Parsed
from zettel.scoring import calibrate, fit
from zettel.scoring.features import FEATURES, local_features
from zettel.scoring.fusion import FusionScorer
from zettel.scoring.ranking import rank

from . import labelled_questions, locomo, two_wiki
from .evaluation import Collection, Progress, Question, external_ids_by_note, run_settings, store, temporary_memory
from .metrics import QuestionResult, RecallSummary, auroc, summarize
from .results import Cell, Result, file_hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

K, K_DOCUMENTS = 10, 8
"""Places for hits, as in the benchmarks of conversations and of documents."""
SHIPPED = np.array([feature.weight for feature in FEATURES])
SPEAKER = next(place for place, feature in enumerate(FEATURES) if feature.name == "speaker")
CONSTANTS = {name: getattr(calibrate, name) for name in ("BIAS", "LOCAL", "COVERAGE", "MISMATCH")}
DIGITS, DIGITS_OF_SCORE = 1, 2
"""Significant digits of rounded weights and constants. More would overfit. A score depends on log-odds, a ranking only
on their order, so the constants need more digits."""


class RecordedSearch(NamedTuple):
    """A question, the scorer's input for it, and the external id of each row."""

    question: Question
    parsed: Parsed
    candidates: Candidates
    events: list[str]


class Conversation(NamedTuple):
    """A conversation's own questions, those with swapped speakers, and those of another conversation."""

    name: str
    own: Sequence[RecordedSearch]
    swapped: Sequence[RecordedSearch]
    foreign: Sequence[RecordedSearch]


class ScoreInputs(NamedTuple):
    """The score's inputs, (n, 4) with a column of ones, and a mask of the answerable questions."""

    values: Vector
    answered: NDArray[np.bool_]


class RecordingScorer:
    """The default scorer, which records its last input."""

    name = FusionScorer.name

    def __init__(self) -> None:
        self._inner = FusionScorer()
        self.last: tuple[Parsed, Candidates] | None = None

    def score(self, question: Parsed, candidates: Candidates) -> Scores:
        self.last = question, candidates
        return self._inner.score(question, candidates)


async def run(
    paths: Sequence[Path],
    progress: Progress,
    test: Sequence[Path] = (),
    documents: tuple[Path, Path] | None = None,
    embedder: str | None = None,
) -> Result:
    """Fit to the conversations of ``paths``; measure on them, on ``test`` and on ``documents``.

    The columns are fitted, rounded and shipped weights, and for each conversation weights fitted to all others. Raises
    ``InvalidInput`` for fewer than two conversations to fit or a duplicate name, ``BadRecord`` for a damaged file.
    """
    collections = [collection for path in (*paths, *test) for collection in read(path)]
    names = [collection.name for collection in collections]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"there are two conversations {duplicates[0]!r}: name each file once, and differently")
    fitting = sum(len(read(path)) for path in paths)
    if fitting < 2:
        raise InvalidInput("name two conversations or more to fit: weights are measured by leaving one out")
    corpus = [two_wiki.read(*documents)[0]] if documents else []
    model = load_embedder(embedder)
    recorder = RecordingScorer()
    async with temporary_memory(embedder=model, scorer=recorder) as memory:
        events: dict[str, str] = {}
        for collection in [*collections, *corpus]:
            events |= await _remember(memory, collection, progress)
        conversations = []
        for place, (collection, other) in enumerate(zip(collections, strangers(collections, fitting), strict=True)):
            progress("asking", place, len(collections))
            own = await _ask(memory, recorder, collection, collection.questions, events)
            changed = await _ask(memory, recorder, collection, swapped(collection), events)
            foreign = await _ask(memory, recorder, collection, other.questions, events)
            conversations.append(Conversation(collection.name, own, changed, foreign))
        shown = [search for docs in corpus for search in await _ask(memory, recorder, docs, docs.questions, events)]
    progress("fitting", 0, 1)
    ran_on: dict[str, Cell] = {"fitted to": ", ".join(names[:fitting])}
    if test:
        ran_on["tested on"] = ", ".join(names[fitting:])
    ran_on |= file_hashes((*paths, *test, *(documents or ())))
    settings = run_settings(None, (), model, [K, K_DOCUMENTS] if documents else K)
    return _result(conversations, fitting, shown, ran_on, settings)


def read(path: Path) -> list[Collection]:
    """Read conversations in LoCoMo's layout, or labelled questions from a ``.jsonl`` file.

    A conversation has the file's name, followed by its own if the file contains several.
    """
    if path.suffix == ".jsonl":
        return labelled_questions.read(path)
    collections, _ = locomo.read(path)
    if len(collections) == 1:
        return [collections[0]._replace(name=path.stem)]
    return [collection._replace(name=f"{path.stem}/{collection.name}") for collection in collections]


def strangers(collections: Sequence[Collection], fitting: int) -> list[Collection]:
    """Return for each conversation the next one, whose questions it cannot answer; fit and test sets stay apart."""
    fitted, tested = list(collections[:fitting]), list(collections[fitting:])
    rest = tested[1:] + tested[:1] if len(tested) > 1 else fitted[: len(tested)]
    return [*fitted[1:], fitted[0], *rest]


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


async def _remember(memory: AsyncMemory, collection: Collection, progress: Progress) -> dict[str, str]:
    """Store a collection; return the external id behind each note."""
    scope = Scope(user=collection.name)
    await store(memory, collection, scope, progress)
    return await external_ids_by_note(memory, scope)


async def _ask(
    memory: AsyncMemory,
    recorder: RecordingScorer,
    collection: Collection,
    questions: Sequence[Question],
    events: dict[str, str],
) -> list[RecordedSearch]:
    """Search for questions in a collection's scope and return the scorer's inputs."""
    shown = []
    for question in questions:
        await memory.search(question.text, k=1, scope=Scope(user=collection.name))
        assert recorder.last is not None
        parsed, candidates = recorder.last
        shown.append(RecordedSearch(question, parsed, candidates, [events[id] for id in candidates.ids]))
    return shown


# ----------------------------------------------------------------------------------------------------------------- fit


def labelled(shown: Sequence[RecordedSearch]) -> list[fit.Labelled]:
    """Return raw features and evidence rows of the candidates, for each answerable question."""
    examples = []
    for search in shown:
        if search.question.group in locomo.MEAN_OF and search.question.needed:
            rows = np.flatnonzero(search.candidates.pool)
            values = local_features(search.parsed, search.candidates, rows)
            positive = np.isin(search.events, sorted(search.question.needed))[rows]
            examples.append(fit.Labelled(np.column_stack([values[f.name] for f in FEATURES]), positive))
    return examples


def scorer_with(weights: Vector) -> FusionScorer:
    """Return the default scorer with other weights, (f,) in the order of FEATURES."""
    changed = [replace(feature, weight=float(w)) for feature, w in zip(FEATURES, weights, strict=True)]
    return FusionScorer(features=changed)


def recall_with(shown: Sequence[RecordedSearch], weights: Vector, k: int) -> RecallSummary:
    """Summarize recall with these weights, without unanswerable questions."""
    scorer = scorer_with(weights)
    results = []
    for search in shown:
        if search.question.group != locomo.UNANSWERABLE:
            rows = rank(scorer.score(search.parsed, search.candidates), search.candidates, k)
            hits = [[search.events[row]] for row in rows]
            results.append(QuestionResult(search.question.group, search.question.needed, hits))
    return summarize(results, k)


def score_evidence(conversation: Conversation, weights: Vector) -> ScoreInputs:
    """Return the inputs of :func:`zettel.scoring.calibrate.calibrate` for all three kinds of questions."""
    values, answered = [], []
    for shown, is_own in ((conversation.own, True), (conversation.swapped, False), (conversation.foreign, False)):
        for search in shown:
            rows = np.flatnonzero(search.candidates.pool)
            if not len(rows):
                continue
            local = local_features(search.parsed, search.candidates, rows)
            gains = np.column_stack([local[feature.name] for feature in FEATURES]) * weights
            inputs = calibrate.evidence(gains.sum(axis=1), local["coverage"], gains[:, SPEAKER])
            values.append([1.0, *inputs])
            answered.append(is_own and search.question.group in locomo.MEAN_OF)
    return ScoreInputs(np.array(values).reshape(-1, len(CONSTANTS)), np.array(answered, np.bool_))


def concatenate(parts: Sequence[ScoreInputs]) -> ScoreInputs:
    """Concatenate the evidence of several conversations."""
    values, answered = zip(*parts, strict=True)
    return ScoreInputs(np.concatenate(values), np.concatenate(answered))


def fit_weights(groups: Sequence[list[fit.Labelled]], penalty: float) -> Vector:
    """Fit the local weights to several conversations."""
    return fit.fit_listwise([example for group in groups for example in group], penalty)


def fit_constants(parts: Sequence[ScoreInputs], penalty: float) -> Vector:
    """Fit the score's constants, in the order of CONSTANTS."""
    return fit.fit_logistic(*concatenate(parts), penalty)


# -------------------------------------------------------------------------------------------------------------- report


def _result(
    conversations: Sequence[Conversation],
    fitting: int,
    documents: Sequence[RecordedSearch],
    ran_on: dict[str, Cell],
    settings: dict[str, Cell],
) -> Result:
    """Return weights, recall, constants and calibration as a table."""
    groups = [labelled(conversation.own) for conversation in conversations]
    penalty = fit.best_penalty(groups[:fitting], fit_weights, lambda group, weights: fit.listwise(group)(weights)[0])
    fitted = fit_weights(groups[:fitting], penalty)
    spans = [np.ptp(question.values, axis=0) for group in groups[:fitting] for question in group]
    varies = np.any(spans, axis=0)
    constant = [feature.name for feature, is_fitted in zip(FEATURES, varies, strict=True) if not is_fitted]
    kinds = [fitted, fit.rounded(fitted, DIGITS), SHIPPED]
    others = fit.leave_one_out(groups, lambda rest: fit_weights(rest, penalty))
    rows: list[list[Cell]] = [
        [feature.name, *(_cell(kind[place]) for kind in kinds), None] for place, feature in enumerate(FEATURES)
    ]
    recalls = np.array(
        [
            [recall_with(conversation.own, kind, K).recall for kind in (*kinds, left)]
            for conversation, left in zip(conversations, others, strict=True)
        ]
    )
    for place, (conversation, recall) in enumerate(zip(conversations, recalls, strict=True)):
        of = "fit" if place < fitting else "test"
        rows.append([f"recall@{K} {conversation.name} ({of})", *map(_cell, recall)])
    rows.append([f"recall@{K} mean (fit)", *map(_cell, recalls[:fitting].mean(axis=0))])
    if len(conversations) > fitting:
        rows.append([f"recall@{K} mean (test)", *map(_cell, recalls[fitting:].mean(axis=0))])
    if documents:
        perfect = [recall_with(documents, kind, K_DOCUMENTS).perfect for kind in kinds]
        rows.append([f"perfect@{K_DOCUMENTS} documents (test)", *map(_cell, perfect), None])

    parts = [score_evidence(conversation, kinds[1]) for conversation in conversations]
    score_penalty = fit.best_penalty(parts[:fitting], fit_constants, lambda part, odds: fit.logistic(*part)(odds)[0])
    odds = fit_constants(parts[:fitting], score_penalty)
    constants = [odds, fit.rounded(odds, DIGITS_OF_SCORE), np.array(list(CONSTANTS.values()))]
    rows += [[name, *(_cell(kind[place]) for kind in constants), None] for place, name in enumerate(CONSTANTS)]
    before = [score_evidence(conversation, SHIPPED) for conversation in conversations]
    for of, part in (("fit", slice(fitting)), ("test", slice(fitting, None))):
        if parts[part]:
            now, then = concatenate(parts[part]), concatenate(before[part])
            measured = [calibration(now, constants[0]), calibration(now, constants[1]), calibration(then, constants[2])]
            rows.append([f"AUROC of an answer ({of})", *(pair[0] for pair in measured), None])
            rows.append([f"Brier score ({of})", *(pair[1] for pair in measured), None])
    return Result(
        bench="scorer fit",
        ran_on=ran_on,
        settings={**settings, "penalty": penalty, "penalty of the score": score_penalty},
        columns=["what", "fitted", "rounded", "shipped", "left out"],
        rows=rows,
        notes=[
            *(f"{name}: the same for all notes of each question, so its weight is 0." for name in constant),
            "Left out: each conversation with the weights that all the others give.",
            "AUROC and Brier score: questions with an answer against those without one, those with another speaker's "
            "name, and those of another conversation.",
        ],
    )


def calibration(part: ScoreInputs, odds: Vector) -> tuple[Cell, Cell]:
    """Return AUROC (None if all questions are of one kind) and Brier score (Brier 1950) of the calibrated score."""
    chance = fit.chances(part.values, odds)
    area = auroc(chance[part.answered].tolist(), chance[~part.answered].tolist())
    return None if area is None else round(area, 4), _cell(float(np.mean((chance - part.answered) ** 2)))


def _cell(value: float) -> Cell:
    return round(float(value), 4)
