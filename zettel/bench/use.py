"""Gain of learning from use, for simulated agents with a hidden preference that never give feedback.

All conversations share one scope. An agent answers questions through ``zettel.wrap`` with a scripted model. The model
reads the memories in its prompt, and states in its own words those that answer the question (by label) and match the
preference; it overlooks some. zettel sees only the answer. Recall is measured afterwards on other questions: of the
answers that match the preference, the share among the first K notes of the conversations, with and without the learned
preferences.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np

import zettel
from zettel import AsyncMemory
from zettel.embed import load_embedder
from zettel.integrations.recalled_text import normalized
from zettel.model import Event, Scope
from zettel.search.learned import learned_preferences

from . import chats
from .evaluation import Collection, Progress, external_ids_by_note, run_settings, store
from .feedback import (
    K,
    LabelledQuestion,
    Preference,
    labelled_events,
    labelled_questions,
    preferences,
    require_later,
    with_means,
)
from .results import Cell, Result, data_files

OVERLOOKED = 0.2
"""Chance that the model overlooks a memory in its prompt."""
DROPPED = 0.4
"""Share of the words of a memory that its answer leaves out."""
SEARCHED = 60
"""Hits of a later search, of which the first K notes of the conversations count: the agent's own turns do not."""
UNKNOWN = "I do not know that, I am afraid."
SCOPE = Scope(user="one")


class ScriptedModel:
    """An async chat client whose answers use the memories in the prompt that answer and match a preference."""

    def __init__(self, events: Mapping[str, Event], matches: Preference, seed: int) -> None:
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))
        self.question = LabelledQuestion("", frozenset())
        self.used: list[str] = []
        self._events, self._matches = events, matches
        self._chance = np.random.default_rng((seed, 7))

    async def _create(self, *, messages: Sequence[Mapping[str, Any]], **_: Any) -> Any:
        prompt = normalized("\n".join(str(message["content"]) for message in messages if message["role"] == "system"))
        self.used = [
            id
            for id in sorted(self.question.answers)
            if self._matches(self._events[id])
            and normalized(self._events[id].content or "") in prompt
            and self._chance.random() >= OVERLOOKED
        ]
        answer = " ".join(self._in_own_words(self._events[id].content or "") for id in self.used) or UNKNOWN
        message = SimpleNamespace(role="assistant", content=answer, name=None)
        return SimpleNamespace(choices=[SimpleNamespace(index=0, message=message)])

    def _in_own_words(self, text: str) -> str:
        """Return a sentence with some of the words of a text, in another order."""
        words = text.split()
        chosen = self._chance.permutation(len(words))[: max(1, round(len(words) * (1 - DROPPED)))]
        return f"From what I remember: {' '.join(words[place] for place in chosen)}."


async def run(
    paths: Sequence[Path], progress: Progress, uses: int = 500, seeds: int = 3, embedder: str | None = None
) -> Result:
    """Measure recall with and without the preferences learned from ``uses`` answers, for each hidden preference.

    Raises ``InvalidInput`` if no questions are left for the measurement.
    """
    collections, events = labelled_events(paths)
    questions = labelled_questions(collections)
    require_later(questions, uses)
    model = load_embedder(embedder)
    names = list(preferences(collections, 0))
    rows: list[list[Cell]] = []
    with TemporaryDirectory(prefix="zettel-use-") as folder:
        base = Path(folder) / "base.db"
        async with AsyncMemory(base, embedder=model, scope=SCOPE) as memory:
            for collection in collections:
                await store(memory, collection, SCOPE, lambda what, done, total: None)
        for seed in range(seeds):
            for place, name in enumerate(names):
                progress("simulating", seed * len(names) + place, seeds * len(names))
                own = Path(folder) / "own.db"
                for path in base.parent.glob("own.db*"):
                    path.unlink()
                shutil.copy(base, own)
                matches = preferences(collections, seed)[name]
                async with AsyncMemory(own, embedder=model, scope=SCOPE) as memory:
                    cells = await _simulate(memory, collections, events, questions, matches, uses, seed)
                rows.append([f"{name}, seed {seed}", *cells])
    return Result(
        bench="feedback",
        data=data_files(chats.files(*paths)),
        ran_on={},
        settings={**run_settings(None, (), model, K), "answers": uses, "seeds": seeds, "through": "wrap"},
        columns=["preference", "used", "reported", "right", "later", "untuned", "tuned", "difference", "accepted"],
        rows=with_means(rows, names),
        notes=[
            f"Recall@{K} of questions asked after {uses} others were answered through wrap, without feedback. Only "
            "answers that match the preference count. Used: notes that the model used; reported: notes that zettel "
            "recognised in its answers; right: the share of these that the model used.",
            "Preferences that are not accepted are not applied, so the difference is 0.",
        ],
    )


async def _simulate(
    memory: AsyncMemory,
    collections: Sequence[Collection],
    events: Mapping[str, Event],
    questions: Sequence[LabelledQuestion],
    matches: Preference,
    uses: int,
    seed: int,
) -> list[Cell]:
    """Simulate an agent; return used, reported and right notes, later questions, recall without and with learning."""
    order = np.random.default_rng((seed, len(questions))).permutation(len(questions))
    ids = await external_ids_by_note(memory, SCOPE)
    model = ScriptedModel(events, matches, seed)
    client = zettel.wrap(memory, model, session="agent")
    used: dict[str, list[str]] = {}
    for place in order[:uses]:
        model.question = questions[place]
        await client.chat.completions.create(messages=[{"role": "user", "content": model.question.text}])
        used[model.question.text] = model.used
    await memory.flush()
    reported = [(search.question, id) for search in await memory.searches() for id in search.used or ()]
    right = sum(ids.get(id) in used.get(question, ()) for question, id in reported)
    expected = [
        (questions[place], answers)
        for place in order[uses:]
        if (answers := frozenset(id for id in questions[place].answers if matches(events[id])))
    ]
    untuned = await _recall(memory, expected, ids, "fusion")
    tuned = await _recall(memory, expected, ids, None)
    engine = memory._backend.memory.engine  # type: ignore[attr-defined]
    accepted = await learned_preferences(engine.store, SCOPE) is not None
    return [sum(map(len, used.values())), len(reported), round(right / max(len(reported), 1), 4), len(expected),
            round(untuned, 4), round(tuned, 4), round(tuned - untuned, 4), int(accepted)]  # fmt: skip


async def _recall(
    memory: AsyncMemory,
    expected: Sequence[tuple[LabelledQuestion, frozenset[str]]],
    ids: Mapping[str, str],
    scorer: str | None,
) -> float:
    shares = []
    for question, answers in expected:
        hits = await memory.search(question.text, k=SEARCHED, scorer=scorer, log=False)
        first = [ids[hit.note.id] for hit in hits if hit.note.id in ids][:K]
        shares.append(len(answers.intersection(first)) / len(answers))
    return float(np.mean(shares))
