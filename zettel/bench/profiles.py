"""Facts of fact sheets in the profile of a user, and lines of the profile that are outdated.

A chat in :mod:`zettel.bench.chats`' layout has a fact sheet of the same name: ``{"current": [fact, …], "outdated":
[fact, …]}``, each fact ``{"kind", "fact", "any_of": ["Leeds"], "evidence": ["S1:3"]}``. A line of the profile states a
fact if it quotes one of its messages, by date, and contains one of the strings. The weights of cues can be fitted to
the sheets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from zettel import AsyncMemory
from zettel.embed import load_embedder
from zettel.errors import BadRecord, InvalidInput
from zettel.evolve.about import Place, inputs
from zettel.evolve.profile import (
    MAX_STATEMENT,
    MIN_STATEMENT,
    SHOWN_WEIGHT,
    Statement,
    current,
    render,
    shown_to_model,
    statements,
)
from zettel.evolve.profile_by_model import LiteLLMProfiler
from zettel.llm.lite import LiteLLM
from zettel.llm.prompt_lines import clip
from zettel.model import Event, Kind, Scope
from zettel.model.tags import PROFILE
from zettel.text.asserted import own_words
from zettel.text.extraction import sentences
from zettel.text.frames import Language
from zettel.text.language_files import ABOUT_NUMBERS, language

from . import chats
from .changes import MODEL
from .completions import CompletionServer
from .evaluation import Collection, Progress, run_settings, store, temporary_memory
from .results import Cell, Result, data_files

RIDGE = 4.0
"""Penalty on the squared weights of standardised inputs."""
STEPS = 30
"""Newton steps of the fit; it converges in a few."""
_LINE = re.compile(r"- [^:]+: (?P<text>.*?)(?: \((?P<day>\d{4}-\d\d-\d\d)\))?$")


class SheetFact(BaseModel):
    """A fact on a sheet: strings, one of which a statement of it contains, and the messages that state it."""

    model_config = ConfigDict(frozen=True)

    kind: str
    fact: str
    any_of: tuple[str, ...]
    evidence: frozenset[str]

    def is_in(self, text: str) -> bool:
        """Return whether a text contains one of the strings from its start of a word."""
        return any(re.search(rf"(?<!\w){re.escape(string.lower())}", text.lower()) for string in self.any_of)


class FactSheet(BaseModel):
    """The facts that are true of a user at the end of a chat, and those that were."""

    model_config = ConfigDict(frozen=True)

    current: tuple[SheetFact, ...]
    outdated: tuple[SheetFact, ...] = ()


class _Outcome(NamedTuple):
    name: str
    facts: int
    present: int
    lines: int
    outdated: int


async def run(
    paths: Sequence[Path],
    sheets: Path,
    progress: Progress,
    embedder: str | None = None,
    fit: Path | None = None,
    recorded: Path | None = None,
) -> Result:
    """Measure the profile of each chat's user after ``evolve``; or ``fit`` the weights of this language file.

    ``recorded`` is a folder with a model's lines for each chat, ``NAME.json``, which a local HTTP server replays.

    Raises ``InvalidInput`` without chats or sheets, ``BadRecord`` for a damaged file.
    """
    collections = [collection for path in paths for collection in chats.read(path)]
    read = {collection.name: read_sheet(sheets, collection.name) for collection in collections}
    folders = [folder for folder in (sheets, recorded) if folder is not None]
    files = [*chats.files(*paths), *(folder / f"{name}.json" for folder in folders for name in read)]
    if fit is not None:
        write_weights(fit, *fitted(collections, read, language(fit.stem)))
        return Result(
            bench="profile fit", data=data_files(files), ran_on={}, settings={"ridge": RIDGE}, columns=["chats"],
            rows=[[len(collections)]], notes=[f"weights written to {fit}"],
        )  # fmt: skip
    model = load_embedder(embedder)
    outcomes: list[_Outcome] = []
    async with temporary_memory(embedder=model) as memory:
        for collection in collections:
            progress("profiles", len(outcomes), len(collections))
            scope = Scope(user=collection.name)
            await store(memory, collection, scope, progress)
            if recorded is None:
                await memory.evolve(scope=scope)
                profiles = (await memory.list(kinds=[Kind.INSIGHT], tags=[PROFILE], limit=1, scope=scope)).notes
                content = profiles[0].content if profiles else ""
            else:
                content = await _by_model(memory, scope, recorded / f"{collection.name}.json")
            outcomes.append(_judged(collection, read[collection.name], content))
    rows: list[list[Cell]] = [_row(outcome) for outcome in outcomes]
    total = _Outcome("all", *(sum(values) for values in zip(*(outcome[1:] for outcome in outcomes), strict=True)))
    return Result(
        bench="profile",
        data=data_files(files),
        ran_on={},
        settings=run_settings(None, (), model, []),
        columns=["chat", "facts", "present", "share", "lines", "outdated", "share outdated"],
        rows=[*rows, _row(total)],
        notes=[
            "present: facts of the sheet that a line of the profile states; outdated: lines that state a fact which is "
            "not true at the end of the chat, and none that is."
        ],
    )


def read_sheet(folder: Path, name: str) -> FactSheet:
    """Read the sheet of a chat. Raises ``InvalidInput`` if it is missing, ``BadRecord`` if it is damaged."""
    path = folder / f"{name}.json"
    try:
        return FactSheet.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise InvalidInput(f"the chat {name} has no fact sheet: {path} is missing") from None
    except ValidationError as error:
        raise BadRecord(f"{path} is not a fact sheet: {error}") from error


async def _by_model(memory: AsyncMemory, scope: Scope, path: Path) -> str:
    """Return the profile that a model writes, whose recorded lines name statements by their words."""
    recorded = _recorded_lines(path)
    found: list[Statement] = []
    cursor = None
    while True:
        page = await memory.list(kinds=[Kind.EPISODIC], limit=500, cursor=cursor, scope=scope)
        found += [statement for note in page.notes for statement in statements(note, SHOWN_WEIGHT)]
        cursor = page.cursor
        if cursor is None:
            break

    def reply(request: dict[str, Any]) -> str:
        shown = [json.loads(line) for line in request["messages"][-1]["content"].splitlines()[1:]]
        ids = {each["text"]: each["id"] for each in shown}
        lines = [
            {**line, "by": shown[0]["by"], "of": [ids[text] for text in line["statements"] if text in ids]}
            for line in recorded
        ]
        return json.dumps({"profile": lines})

    spoken = current(found, {statement.person for statement in found})
    seen = shown_to_model(spoken)
    with CompletionServer(reply) as server:
        model = LiteLLM(MODEL, api_base=server.url)
        lines, _ = await LiteLLMProfiler().lines(seen, lambda request, _: model.complete(request))
    profile = render(lines)
    return profile.content if profile else ""


def _recorded_lines(path: Path) -> list[dict[str, Any]]:
    try:
        lines: list[dict[str, Any]] = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise InvalidInput(f"the recorded profile {path} is missing") from None
    except ValueError as error:
        raise BadRecord(f"{path} contains invalid JSON: {error}") from error
    return lines


def _judged(collection: Collection, sheet: FactSheet, content: str) -> _Outcome:
    lines = [match for line in content.splitlines() if (match := _LINE.match(line))]
    days = {str(event.external_id): _day(event) for event in collection.events}

    def stated(fact: SheetFact, line: re.Match[str]) -> bool:
        return fact.is_in(line["text"]) and line["day"] in {days.get(id) for id in fact.evidence}

    present = [fact for fact in sheet.current if any(stated(fact, line) for line in lines)]
    outdated = [
        line
        for line in lines
        if any(stated(fact, line) for fact in sheet.outdated) and not any(stated(fact, line) for fact in sheet.current)
    ]
    return _Outcome(collection.name, len(sheet.current), len(present), len(lines), len(outdated))


def _day(event: Event) -> str | None:
    return event.occurred_at.date().isoformat() if event.occurred_at else None


def _row(outcome: _Outcome) -> list[Cell]:
    name, facts, present, lines, outdated = outcome
    return [name, facts, present, round(present / facts, 3) if facts else None, lines, outdated,
            round(outdated / lines, 3) if lines else None]  # fmt: skip


# ----------------------------------------------------------------------------------------------------------------- fit


def fitted(
    collections: Sequence[Collection], sheets: dict[str, FactSheet], of: Language
) -> tuple[list[float], float]:
    """Fit the weights of the cues and numbers, and the bias, to the sentences that state a current fact.

    Logistic regression with a ridge, by Newton's method (Hastie et al. 2009, "The Elements of Statistical Learning",
    section 4.4.1).
    """
    rows: list[list[float]] = []
    is_fact: list[bool] = []
    for collection in collections:
        for event in collection.events:
            if event.role != "user":
                continue
            spoken = sentences(own_words(event.content or "", of))
            for number, sentence in enumerate(spoken):
                if len(sentence) >= MIN_STATEMENT:
                    rows.append(inputs(sentence, Place(number, len(spoken)), of))
                    facts = sheets[collection.name].current
                    shown = clip(sentence, MAX_STATEMENT)
                    is_fact.append(any(event.external_id in fact.evidence and fact.is_in(shown) for fact in facts))
    values, targets = np.array(rows), np.array(is_fact, float)
    mean, scale = values.mean(axis=0), values.std(axis=0) + 1e-6
    design = np.column_stack([(values - mean) / scale, np.ones(len(values))])
    ridge = np.diag([RIDGE] * values.shape[1] + [0.0])
    weights = np.zeros(design.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-design @ weights))
        gradient = design.T @ (targets - chance) - ridge @ weights
        curvature = (design * (chance * (1 - chance))[:, None]).T @ design + ridge
        weights += np.linalg.solve(curvature, gradient)
    plain = weights[:-1] / scale
    return plain.tolist(), float(weights[-1] - plain @ mean)


def write_weights(path: Path, weights: Sequence[float], bias: float) -> None:
    """Write fitted weights into a language file, and leave all other lines as they are."""
    text = path.read_text("utf-8")
    data = json.loads(text)
    cues = [[cue, round(weight, 3)] for (cue, _), weight in zip(data["about"], weights, strict=False)]
    numbers = dict(zip(ABOUT_NUMBERS, (round(weight, 3) for weight in weights[len(cues) :]), strict=True))
    shown = ",\n".join(f"  {json.dumps(cue, ensure_ascii=False)}" for cue in cues)
    text = re.sub(r' "about": \[\n.*?\n \],', lambda _: f' "about": [\n{shown}\n ],', text, flags=re.DOTALL)
    both = json.dumps(numbers | {"bias": round(bias, 3)})
    path.write_text(re.sub(r' "about_numbers": \{.*?\},', lambda _: f' "about_numbers": {both},', text), "utf-8")
