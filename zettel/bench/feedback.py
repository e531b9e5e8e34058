"""Gain of tuning on feedback from simulated users with a hidden preference.

All conversations share one scope. The user gives feedback on some questions; the others measure recall afterwards. The
user sees the first ten hits of the shipped memory decoder and looks at rank p with probability p^-FALL. The user marks
the answers (by label) that match the preference. Recall counts only such answers, on questions that have one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel import AsyncMemory
from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.model import Event, Scope
from zettel.scoring.tuning import propensity

from . import chats
from .evaluation import Collection, Progress, Question, external_ids_by_note, run_settings, store
from .fitting import read
from .locomo import UNANSWERABLE
from .results import Cell, Result, data_files

if TYPE_CHECKING:
    from zettel.model import Hit
    from zettel.ports import Embedder

SHOWN, K = 10, 5
"""Hits that the user sees, and places for the recall afterwards."""
NEWEST = 3
"""One in three turns is among the newest."""
_NUMBER = re.compile(r"\d")
_SETTLED = re.compile(
    r"\b(?:decided?|agreed?|settled|booked|signed|paid|ordered|bought|moved|chose|chosen|confirmed|will|we'll|I'll"
    r"|from now on|instead|no longer)\b",
    re.IGNORECASE,
)
Preference = Callable[[Event], bool]


class LabelledQuestion(NamedTuple):
    """A question and the ids of the events that answer it."""

    text: str
    answers: frozenset[str]


def preferences(collections: Sequence[Collection], seed: int) -> dict[str, Preference]:
    """Return preferences by name; ``seed`` selects the preferred speakers."""
    chance = np.random.default_rng((seed, len(collections)))
    preferred = set()
    for collection in collections:
        speakers = sorted({event.speaker for event in collection.events if event.speaker})
        preferred.add((collection.name, str(chance.choice(speakers))))
    times = sorted(event.occurred_at for collection in collections for event in collection.events if event.occurred_at)
    since = times[len(times) * (NEWEST - 1) // NEWEST]
    return {
        "one speaker": lambda event: (str(event.external_id).partition("/")[0], event.speaker) in preferred,
        "the newest third": lambda event: event.occurred_at is not None and event.occurred_at >= since,
        "figures": lambda event: _NUMBER.search(event.content or "") is not None,
        "what is settled": lambda event: _SETTLED.search(event.content or "") is not None,
    }


def labelled_events(paths: Sequence[Path]) -> tuple[list[Collection], dict[str, Event]]:
    """Return the conversations of files with unique ids, and all events by id."""
    collections = [_with_unique_ids(talk) for path in paths for talk in read(path)]
    return collections, {str(event.external_id): event for talk in collections for event in talk.events}


def labelled_questions(collections: Sequence[Collection]) -> list[LabelledQuestion]:
    """Return the questions that some event answers."""
    return [
        LabelledQuestion(question.text, question.needed)
        for collection in collections
        for question in collection.questions
        if question.needed and question.group != UNANSWERABLE
    ]


def require_later(questions: Sequence[LabelledQuestion], uses: int) -> None:
    """Raise ``InvalidInput`` if ``uses`` leave no questions for the measurement."""
    if len(questions) <= uses:
        raise InvalidInput(f"{uses} of {len(questions)} questions leave none for later: pass a smaller --uses")


def with_means(rows: list[list[Cell]], names: Sequence[str]) -> list[list[Cell]]:
    """Return the rows of each name and seed, then their means by name, and the mean of all."""
    means = [[f"{name}, mean", *mean_row([row for row in rows if str(row[0]).startswith(f"{name}, seed")])]
             for name in names]  # fmt: skip
    return [*rows, *means, ["all, mean", *mean_row(rows)]]


async def run(
    paths: Sequence[Path], progress: Progress, uses: int = 500, seeds: int = 3, embedder: str | None = None
) -> Result:
    """Measure recall with the shipped decoder and with one tuned on ``uses`` searches, for each preference.

    Raises ``InvalidInput`` if no questions are left for the measurement.
    """
    collections, events = labelled_events(paths)
    questions = labelled_questions(collections)
    require_later(questions, uses)
    model = load_embedder(embedder)
    rows: list[list[Cell]] = []
    names = list(preferences(collections, 0))
    for seed in range(seeds):
        for place, name in enumerate(names):
            progress("simulating", seed * len(names) + place, seeds * len(names))
            cells = await _simulate(collections, events, questions, name, uses, seed, model)
            rows.append([f"{name}, seed {seed}", *cells])
    columns = ["preference", "uses", "later", "untuned", "tuned", "difference", "gain before", "gain after", "accepted"]
    return Result(
        bench="feedback",
        data=data_files(chats.files(*paths)),
        ran_on={},
        settings={**run_settings(None, (), model, K), "searches told of": uses, "seeds": seeds, "shown": SHOWN},
        columns=columns,
        rows=with_means(rows, names),
        notes=[
            f"Recall@{K} of questions asked after feedback on {uses} others. Only answers that match the preference "
            "count. Gains are estimated by cross-validation.",
            "A scorer that was not accepted is not used, so the difference is 0.",
        ],
    )


async def _simulate(
    collections: Sequence[Collection],
    events: Mapping[str, Event],
    questions: Sequence[LabelledQuestion],
    name: str,
    uses: int,
    seed: int,
    embedder: Embedder,
) -> list[Cell]:
    """Simulate a user; return used notes, later questions, recall before and after, and tuning's report."""
    matches = preferences(collections, seed)[name]
    chance = np.random.default_rng((seed, len(questions)))
    order = chance.permutation(len(questions))
    first, later = [questions[n] for n in order[:uses]], [questions[n] for n in order[uses:]]
    expected = [
        (question, answers)
        for question in later
        if (answers := frozenset(id for id in question.answers if matches(events[id])))
    ]
    scope = Scope(user="one")
    with TemporaryDirectory(prefix="zettel-feedback-") as folder:
        tuned = str(Path(folder) / "tuned")
        async with AsyncMemory(str(Path(folder) / "one.db"), embedder=embedder, scope=scope) as memory:
            for collection in collections:
                await store(memory, collection, scope, lambda what, done, total: None)
            ids = await external_ids_by_note(memory, scope)
            used = 0
            for question in first:
                hits = await memory.search(question.text, k=SHOWN, scorer="decoder")
                seen = chance.random(len(hits)) < propensity(np.arange(1, len(hits) + 1, dtype=np.float32))
                useful = [
                    hit.note.id
                    for hit, is_seen in zip(hits, seen, strict=True)
                    if is_seen and ids[hit.note.id] in question.answers and matches(events[ids[hit.note.id]])
                ]
                used += len(useful)
                await memory.feedback(str(hits[0].search_id), useful)
            tuning = await memory.tune(tuned)
            untuned = await _recall(memory, expected, ids, "decoder")
            after = await _recall(memory, expected, ids, f"decoder:{tuned}") if tuning.accepted else untuned
    return [used, len(expected), round(untuned, 4), round(after, 4), round(after - untuned, 4),
            tuning.before, tuning.after, int(tuning.accepted)]  # fmt: skip


async def _recall(
    memory: AsyncMemory,
    expected: Sequence[tuple[LabelledQuestion, frozenset[str]]],
    ids: Mapping[str, str],
    scorer: str,
) -> float:
    shares = []
    for question, answers in expected:
        hits: list[Hit] = await memory.search(question.text, k=K, scorer=scorer, log=False)
        shares.append(len(answers & {ids[hit.note.id] for hit in hits}) / len(answers))
    return float(np.mean(shares))


def _with_unique_ids(talk: Collection) -> Collection:
    """Prefix the ids and sessions of a conversation with its name."""
    events = [
        event.model_copy(
            update={"external_id": f"{talk.name}/{event.external_id}", "session": f"{talk.name}/{event.session}"}
        )
        for event in talk.events
    ]
    questions = [
        Question(question.text, question.group, frozenset(f"{talk.name}/{id}" for id in question.needed))
        for question in talk.questions
    ]
    return Collection(talk.name, events, questions)


def mean_row(rows: Sequence[Sequence[Cell]]) -> list[Cell]:
    """Return the mean of each column after the first."""
    return [round(float(np.mean([float(row[place] or 0) for row in rows])), 4) for place in range(1, len(rows[0]))]
