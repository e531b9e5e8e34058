"""The default scorer's weights from labelled conversations, and what they are worth where they were not fitted.

Every conversation is stored in a scope of its own and asked its questions through the engine; a scorer that keeps what
it is shown collects the candidates. After that everything is computed from these. Local weights are fitted to the
questions that have an answer (LoCoMo's categories 1 to 4), the constants of the score to all, and to two kinds without
one as well: those of another conversation, which nothing answers here, and those about what one speaker said with
another's name in it. What the walk brings is measured, not fitted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel import AsyncMemory
from zettel.errors import InvalidInput
from zettel.model import Scope
from zettel.query import Candidates, Scores
from zettel.query import Question as Parsed
from zettel.scoring import calibrate, fit
from zettel.scoring.fusion import FEATURES, FusionScorer, local_features
from zettel.search.rank import rank

from . import labels, locomo, two_wiki
from .counting import Asked, Tally, auroc, tally
from .evaluation import Collection, Progress, Question, answering, embedder_called, store
from .machine import Cell, Result, data_file, result

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

K, K_DOCUMENTS = 10, 8
"""Places that hits may take, as in the benchmarks of conversations and of documents."""
SHIPPED = np.array([feature.weight for feature in FEATURES])
SPEAKER = next(place for place, feature in enumerate(FEATURES) if feature.name == "speaker")
CONSTANTS = {name: getattr(calibrate, name) for name in ("BIAS", "NEAR", "COVERAGE", "MISMATCH")}
DIGITS, DIGITS_OF_SCORE = 1, 2
"""Significant digits of what is rounded. More would tell of the questions at hand; but a score moves with its log-odds,
a ranking only with their order."""


class Shown(NamedTuple):
    """A question, what the scorer was shown for it, and the ``Event.id`` of each row."""

    question: Question
    parsed: Parsed
    candidates: Candidates
    events: list[str]


class Conversation(NamedTuple):
    """Its own questions, and two kinds that nothing in it answers: with another's name, and another conversation's."""

    name: str
    own: Sequence[Shown]
    swapped: Sequence[Shown]
    strange: Sequence[Shown]


class Telling(NamedTuple):
    """What the score is made of, (n, 4) with a column of ones, and which questions have an answer."""

    values: Vector
    answered: NDArray[np.bool_]


class Watch:
    """The default scorer, keeping what it was shown last."""

    name = FusionScorer.name

    def __init__(self) -> None:
        self._inner = FusionScorer()
        self.last: tuple[Parsed, Candidates] | None = None

    def score(self, question: Parsed, candidates: Candidates) -> Scores:
        """As ``FusionScorer``."""
        self.last = question, candidates
        return self._inner.score(question, candidates)


async def run(
    paths: Sequence[Path],
    progress: Progress,
    test: Sequence[Path] = (),
    documents: tuple[Path, Path] | None = None,
    embedder: str | None = None,
) -> Result:
    """Fit to the conversations of ``paths``, and measure there, on those of ``test`` and on ``documents``.

    The columns are the weights as fitted, as rounded, as shipped, and, for each conversation, those fitted to all the
    others. Raises ``InvalidInput`` for fewer than two conversations to fit or two of one name, ``BadRecord`` for a
    damaged file.
    """
    collections = [collection for path in (*paths, *test) for collection in read(path)]
    names = [collection.name for collection in collections]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"there are two conversations {twice[0]!r}: name each file once, and differently")
    fitting = sum(len(read(path)) for path in paths)
    if fitting < 2:
        raise InvalidInput("name two conversations or more to fit: weights are judged by leaving one out")
    corpus = [two_wiki.read(*documents)[0]] if documents else []
    model = embedder_called(embedder)
    with TemporaryDirectory(prefix="zettel-fit-") as folder:
        watch = Watch()
        async with AsyncMemory(str(Path(folder) / "fit.db"), embedder=model, scorer=watch) as memory:
            events: dict[str, str] = {}
            for collection in [*collections, *corpus]:
                events |= await _remember(memory, collection, progress)
            conversations = []
            for place, (collection, other) in enumerate(zip(collections, strangers(collections, fitting), strict=True)):
                progress("asking", place, len(collections))
                own = await _ask(memory, watch, collection, collection.questions, events)
                changed = await _ask(memory, watch, collection, swapped(collection), events)
                strange = await _ask(memory, watch, collection, other.questions, events)
                conversations.append(Conversation(collection.name, own, changed, strange))
            shown = [one for docs in corpus for one in await _ask(memory, watch, docs, docs.questions, events)]
    progress("fitting", 0, 1)
    ran_on: dict[str, Cell] = {"fitted to": ", ".join(names[:fitting])}
    if test:
        ran_on["tested on"] = ", ".join(names[fitting:])
    ran_on |= {path.name: data_file(path)["sha256"] for path in (*paths, *test, *(documents or ()))}
    settings = answering(None, (), model, [K, K_DOCUMENTS] if documents else K)
    return _told(conversations, fitting, shown, ran_on, settings)


def read(path: Path) -> list[Collection]:
    """The conversations of a file in LoCoMo's layout, called by the file's name, and their own if there are several; of
    a ``.jsonl`` the collections of labelled questions, see ``labels``."""
    if path.suffix == ".jsonl":
        return labels.read(path)
    found, _ = locomo.read(path)
    several = len(found) > 1
    return [one._replace(name=f"{path.stem}/{one.name}" if several else path.stem) for one in found]


def strangers(collections: Sequence[Collection], fitting: int) -> list[Collection]:
    """For each conversation the next one, whose questions it is asked too; those to fit and those to test apart."""
    fitted, tested = list(collections[:fitting]), list(collections[fitting:])
    rest = tested[1:] + tested[:1] if len(tested) > 1 else fitted[: len(tested)]
    return [*fitted[1:], fitted[0], *rest]


def swapped(collection: Collection) -> list[Question]:
    """Its questions about what one speaker said, each with the next speaker's name in it: nobody answers them.

    Which are meant is told by the name in the question, the first word of it at least, and by who said the evidence.
    """
    said = {str(event.id): event.role for event in collection.events}
    speakers = list(dict.fromkeys(role for role in said.values() if role))
    patterns = {name: re.compile(rf"\b(?:{re.escape(name)}|{re.escape(name.split()[0])})\b") for name in speakers}
    changed = []
    for question in collection.questions:
        if question.group in locomo.MEAN_OF and len(speakers) > 1:
            named = [name for name, pattern in patterns.items() if pattern.search(question.text)]
            if len(named) == 1 and {said[event] for event in question.needed} == set(named):
                other = speakers[(speakers.index(named[0]) + 1) % len(speakers)]
                text = patterns[named[0]].sub(other, question.text)
                changed.append(Question(text, locomo.UNANSWERABLE, frozenset()))
    return changed


async def _remember(memory: AsyncMemory, collection: Collection, progress: Progress) -> dict[str, str]:
    """Store a collection; the ``Event.id`` behind each note."""
    scope = Scope(user=collection.name)
    await store(memory, collection, scope, progress)
    return {note.id: str(event.id) async for event, notes in memory.dump(scope=scope) for note in notes}


async def _ask(
    memory: AsyncMemory, watch: Watch, collection: Collection, questions: Sequence[Question], events: dict[str, str]
) -> list[Shown]:
    """What the scorer is shown when a collection is asked these questions."""
    shown = []
    for question in questions:
        await memory.search(question.text, k=1, scope=Scope(user=collection.name))
        assert watch.last is not None
        parsed, candidates = watch.last
        shown.append(Shown(question, parsed, candidates, [events[id] for id in candidates.ids]))
    return shown


# ----------------------------------------------------------------------------------------------------------------- fit


def labelled(shown: Sequence[Shown]) -> list[fit.Labelled]:
    """Questions with an answer: the pool's raw features and which rows are evidence."""
    told = []
    for one in shown:
        if one.question.group in locomo.MEAN_OF and one.question.needed:
            rows = np.flatnonzero(one.candidates.pool)
            values = local_features(one.parsed, one.candidates, rows)
            positive = np.isin(one.events, sorted(one.question.needed))[rows]
            told.append(fit.Labelled(np.column_stack([values[f.name] for f in FEATURES]), positive))
    return told


def scorer_with(weights: Vector) -> FusionScorer:
    """The default scorer with other weights, (f,) in the order of FEATURES."""
    changed = [replace(feature, weight=float(w)) for feature, w in zip(FEATURES, weights, strict=True)]
    return FusionScorer(features=changed)


def found(shown: Sequence[Shown], weights: Vector, k: int) -> Tally:
    """Recall and perfect answers with these weights; unanswerable questions are left out."""
    scorer = scorer_with(weights)
    asked = []
    for one in shown:
        if one.question.group != locomo.UNANSWERABLE:
            rows = rank(scorer.score(one.parsed, one.candidates), one.candidates, k)
            asked.append(Asked(one.question.group, one.question.needed, [[one.events[row]] for row in rows]))
    return tally(asked, k)


def telling(conversation: Conversation, weights: Vector) -> Telling:
    """What :func:`zettel.scoring.calibrate.calibrate` goes by, for own and strange questions."""
    values, answered = [], []
    for shown, at_home in ((conversation.own, True), (conversation.swapped, False), (conversation.strange, False)):
        for one in shown:
            rows = np.flatnonzero(one.candidates.pool)
            if not len(rows):
                continue
            local = local_features(one.parsed, one.candidates, rows)
            gains = np.column_stack([local[feature.name] for feature in FEATURES]) * weights
            told = calibrate.evidence(gains.sum(axis=1), local["coverage"], gains[:, SPEAKER])
            values.append([1.0, *told])
            answered.append(at_home and one.question.group in locomo.MEAN_OF)
    return Telling(np.array(values).reshape(-1, len(CONSTANTS)), np.array(answered, np.bool_))


def together(parts: Sequence[Telling]) -> Telling:
    """Those of several conversations as one."""
    return Telling(np.concatenate([one.values for one in parts]), np.concatenate([one.answered for one in parts]))


def weigh(groups: Sequence[list[fit.Labelled]], penalty: float) -> Vector:
    """The local weights of several conversations."""
    return fit.fit_listwise([one for group in groups for one in group], penalty)


def calibrated(parts: Sequence[Telling], penalty: float) -> Vector:
    """The score's constants, in the order of CONSTANTS."""
    return fit.fit_logistic(*together(parts), penalty)


# ----------------------------------------------------------------------------------------------------------------- tell


def _told(
    conversations: Sequence[Conversation],
    fitting: int,
    documents: Sequence[Shown],
    ran_on: dict[str, Cell],
    settings: dict[str, Cell],
) -> Result:
    """The table: weights, recall, constants, and how well the score tells."""
    groups = [labelled(conversation.own) for conversation in conversations]
    penalty = fit.best_penalty(groups[:fitting], weigh, lambda group, weights: fit.listwise(group)(weights)[0])
    fitted = weigh(groups[:fitting], penalty)
    kinds = [fitted, fit.rounded(fitted, DIGITS), SHIPPED]
    others = fit.held_out(groups, lambda rest: weigh(rest, penalty))
    rows: list[list[Cell]] = [
        [feature.name, *(_cell(kind[place]) for kind in kinds), None] for place, feature in enumerate(FEATURES)
    ]
    recalls = np.array(
        [
            [found(conversation.own, kind, K).recall for kind in (*kinds, left)]
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
        perfect = [found(documents, kind, K_DOCUMENTS).perfect for kind in kinds]
        rows.append([f"perfect@{K_DOCUMENTS} documents (test)", *map(_cell, perfect), None])

    parts = [telling(conversation, kinds[1]) for conversation in conversations]
    held = fit.best_penalty(parts[:fitting], calibrated, lambda part, odds: fit.logistic(*part)(odds)[0])
    odds = calibrated(parts[:fitting], held)
    constants = [odds, fit.rounded(odds, DIGITS_OF_SCORE), np.array(list(CONSTANTS.values()))]
    rows += [[name, *(_cell(kind[place]) for kind in constants), None] for place, name in enumerate(CONSTANTS)]
    before = [telling(conversation, SHIPPED) for conversation in conversations]
    for of, part in (("fit", slice(fitting)), ("test", slice(fitting, None))):
        if parts[part]:
            now, then = together(parts[part]), together(before[part])
            judged = [judge(now, constants[0]), judge(now, constants[1]), judge(then, constants[2])]
            rows.append([f"AUROC of an answer ({of})", *(one[0] for one in judged), None])
            rows.append([f"Brier score ({of})", *(one[1] for one in judged), None])
    return result(
        bench="scorer fit",
        ran_on=ran_on,
        settings={**settings, "penalty": penalty, "penalty of the score": held},
        columns=["what", "fitted", "rounded", "shipped", "left out"],
        rows=rows,
        notes=[
            "Left out: each conversation with the weights that all the others give.",
            "AUROC and Brier score: questions with an answer against those without one, those with another speaker's "
            "name, and those of another conversation.",
        ],
    )


def judge(part: Telling, odds: Vector) -> tuple[Cell, Cell]:
    """AUROC, None if all questions are of one kind, and Brier score (Brier 1950) of the chance of an answer."""
    chance = fit.chances(part.values, odds)
    area = auroc(chance[part.answered].tolist(), chance[~part.answered].tolist())
    return None if area is None else round(area, 4), _cell(float(np.mean((chance - part.answered) ** 2)))


def _cell(value: float) -> Cell:
    return round(float(value), 4)
