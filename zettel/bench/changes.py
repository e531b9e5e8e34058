"""Rank of the current and, under ``as_of``, the former statement of facts that changed.

A folder contains each scope as JSON lines of events, ``NAME.jsonl``, and ``questions.jsonl``: per line a question, the
ids of the current and the former event, and a time between the two. A hit counts for an event only if its note is not
based on the other one as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from zettel import AsyncMemory
from zettel.annotate.by_model import LiteLLMAnnotator
from zettel.embed import load_embedder
from zettel.errors import BadRecord, InvalidInput
from zettel.llm.lite import LiteLLM
from zettel.model import Event, Hit, Moment, Scope
from zettel.ports.language_model import ModelAnnotation
from zettel.transcripts.formats import events_jsonl

from .completions import CompletionServer
from .evaluation import Progress, run_settings, scorer_without, temporary_memory
from .json_records import lines_of, record
from .metrics import first_place
from .replay import Replay, Spoken, json_lines, recorded_annotations
from .results import Cell, Result, data_files

QUESTIONS = "questions.jsonl"
NOTES, REPLACES = "notes.jsonl", "replaces.jsonl"
"""Recorded notes of each event, read by ``RecordedAnnotator``, and recorded replacements of facts."""
MODEL = "openai/recorded"
K = 10
"""Hits of a search."""


class Change(BaseModel):
    """A question about a changed fact; ``marked``: the new statement mentions the change."""

    model_config = ConfigDict(frozen=True)

    scope: str
    question: str
    now: str
    before: str
    as_of: Moment
    kind: str
    marked: bool | None = None


class ChangeRanks(NamedTuple):
    """Ranks of both events, from 0, None if missing; ``then`` is the former event's rank under ``as_of``."""

    change: Change
    now: int | None
    before: int | None
    then: int | None


class Replaces(BaseModel):
    """A recorded decision that one fact replaces another."""

    model_config = ConfigDict(frozen=True)

    scope: str
    newer: str
    older: str


class ReplacementReplay(Replay):
    """Replays recorded notes and recorded replacements of facts."""

    def __init__(self, recorded: Mapping[Spoken, ModelAnnotation], replaces: Iterable[Replaces]) -> None:
        super().__init__(recorded, facts=0.0)
        self.pairs = {(replacement.newer, replacement.older) for replacement in replaces}
        self.offered: set[tuple[str, str]] = set()

    def links(self, prompt: str) -> Iterator[dict[str, Any]]:
        """Yield SUPERSEDES for recorded pairs."""
        cards = {card["id"]: card for part in ("notes:", "others:") for card in _part(prompt, part)}
        for card in _part(prompt, "notes:"):
            for other in card.get("to", []):
                if (pair := (card["note"], cards[other]["note"])) in self.pairs:
                    self.offered.add(pair)
                    yield {"from": card["id"], "to": other, "type": "SUPERSEDES", "reason": "this changed"}


def _part(prompt: str, head: str) -> Iterable[dict[str, Any]]:
    """Return the cards after one of the two headings."""
    rest = prompt.partition(f"{head}\n")[2]
    return json_lines(rest.partition("others:\n")[0].strip()) if rest else ()


async def run(
    folder: Path,
    progress: Progress,
    without: Sequence[str] = (),
    embedder: str | None = None,
    recorded: Path | None = None,
) -> Result:
    """Search for each question twice, for today and under ``as_of``; report all, each kind, marked and unmarked.

    Each scope is imported into a new embedded store. A local HTTP server replays the model's answers in the folder
    ``recorded`` (``NOTES`` and ``REPLACES``). Raises ``InvalidInput`` for a missing file or event, ``BadRecord`` for a
    damaged line.
    """
    changes = read(folder)
    model, scorer = load_embedder(embedder), scorer_without(without)
    outcomes: list[ChangeRanks] = []
    notes = ["Shares of the questions. A hit that is based on both statements counts for neither."]
    async with AsyncExitStack() as stack:
        model_arguments: dict[str, Any] = {}
        if recorded is not None:
            replay = await _load_replay(folder, recorded, changes)
            server = stack.enter_context(CompletionServer(replay))
            model_arguments = {"llm": LiteLLM(MODEL, api_base=server.url), "annotator": LiteLLMAnnotator()}
        memory = await stack.enter_async_context(temporary_memory(embedder=model, scorer=scorer, **model_arguments))
        for name, scope_changes in changes.items():
            outcomes += await _ask(memory, folder / f"{name}.jsonl", name, scope_changes, progress)
        if recorded is not None:
            share = len(replay.offered) / max(len(replay.pairs), 1)
            notes.append(f"A model's answers replayed over HTTP; {share:.1%} of the replaced facts were offered to it.")
    files = [folder / QUESTIONS, *(folder / f"{name}.jsonl" for name in changes)]
    if recorded is not None:
        files += [recorded / NOTES, recorded / REPLACES]
    kinds = dict.fromkeys(outcome.change.kind for outcome in outcomes)
    rows = [
        _row("all", outcomes),
        *(_row(kind, [outcome for outcome in outcomes if outcome.change.kind == kind]) for kind in kinds),
        *(
            _row(name, chosen)
            for name, mark in (("new says so", True), ("new implies it", False))
            if (chosen := [outcome for outcome in outcomes if outcome.change.marked is mark])
        ),
    ]
    return Result(
        bench="changes",
        data=data_files(files),
        ran_on={"scopes": len(changes)},
        settings=run_settings(scorer, without, model, K) | ({"model": f"{MODEL}, replayed"} if recorded else {}),
        columns=["changes", "asked", "today first", "as_of: before first", f"today in {K}", f"as_of: before in {K}",
                 "today: before above now", "today: neither first"],
        rows=rows,
        notes=notes,
    )  # fmt: skip


def read(folder: Path) -> dict[str, list[Change]]:
    """Read each scope's questions. Raises ``InvalidInput`` for a missing file, ``BadRecord`` for a damaged line."""
    path = folder / QUESTIONS
    changes: defaultdict[str, list[Change]] = defaultdict(list)
    for number, line in enumerate(lines_of(existing(path)), start=1):
        if line.strip():
            change = record(Change, f"{path}:{number}", line)
            changes[change.scope].append(change)
    if not changes:
        raise InvalidInput(f"{path} contains no questions: add one per line")
    return dict(changes)


async def _load_replay(folder: Path, recorded: Path, scopes: Iterable[str]) -> ReplacementReplay:
    """Load a model's answers from the folder ``recorded``."""
    annotations: dict[Spoken, ModelAnnotation] = {}
    for scope in scopes:
        records = events_jsonl.read(existing(folder / f"{scope}.jsonl"))
        events = [record for record in records if isinstance(record, Event)]
        annotations |= await recorded_annotations(recorded / NOTES, events)
    rows = existing(recorded / REPLACES).read_text(encoding="utf-8").splitlines()
    try:
        return ReplacementReplay(annotations, [Replaces.model_validate_json(row) for row in rows])
    except ValidationError as error:
        raise BadRecord(f"{recorded / REPLACES}: {error.errors()[0]['msg']}") from None


def existing(path: Path) -> Path:
    """Return the path if the file exists. Raises ``InvalidInput``."""
    if not path.is_file():
        raise InvalidInput(f"{path} does not exist: pass a folder that contains it")
    return path


async def _ask(
    memory: AsyncMemory, file: Path, name: str, changes: Sequence[Change], progress: Progress
) -> list[ChangeRanks]:
    scope = Scope(user=name)
    progress(f"remembering {name}", 0, len(changes))
    await memory.import_transcript(file, format="jsonl", scope=scope)
    await memory.flush(scope=scope)
    external_ids = {record.event_id: str(record.external_id) async for record, _ in memory.dump(scope=scope)}
    known = set(external_ids.values())
    outcomes = []
    for done, change in enumerate(changes):
        progress(f"asking {name}", done, len(changes))
        for event in (change.now, change.before):
            if event not in known:
                raise InvalidInput(f"{file} has no event {event!r}, which {change.question!r} needs")
        today = await memory.search(change.question, k=K, scope=scope)
        then = await memory.search(change.question, k=K, as_of=change.as_of, scope=scope)
        outcomes.append(
            ChangeRanks(
                change,
                now=place_of(today, external_ids, change.now, change.before),
                before=place_of(today, external_ids, change.before, change.now),
                then=place_of(then, external_ids, change.before, change.now),
            )
        )
    return outcomes


def place_of(hits: Iterable[Hit], external_ids: dict[str, str], event: str, other: str) -> int | None:
    """Return the rank, from 0, of the first hit based on ``event`` and not on ``other``."""
    return first_place(([external_ids[id] for id in hit.note.event_ids] for hit in hits), {event}, {other})


def _row(name: str, outcomes: Sequence[ChangeRanks]) -> list[Cell]:
    def share(matches: Callable[[ChangeRanks], bool]) -> float:
        return round(sum(map(matches, outcomes)) / len(outcomes), 4)

    return [
        name,
        len(outcomes),
        share(lambda ranks: ranks.now == 0),
        share(lambda ranks: ranks.then == 0),
        share(lambda ranks: ranks.now is not None),
        share(lambda ranks: ranks.then is not None),
        share(lambda ranks: ranks.before is not None and (ranks.now is None or ranks.before < ranks.now)),
        share(lambda ranks: 0 not in (ranks.now, ranks.before)),
    ]
