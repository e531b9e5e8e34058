"""Planted changes of fact: is today's answer first, and under ``as_of`` the one from before?

A folder holds each scope as JSON lines of events, ``NAME.jsonl``, and ``questions.jsonl``: per line a question, the
ids of the event that tells the fact as it is now and of the one that tells it as it was before, and a time between
the two. A hit counts for an event only if it does not rest on the other as well: what was merged from both answers
neither question.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from zettel import AsyncMemory
from zettel.annotate.by_model import LiteLLMAnnotator
from zettel.annotate.recorded import RecordedAnnotator
from zettel.errors import BadRecord, InvalidInput
from zettel.llm.lite import LiteLLM
from zettel.llm.ports import Reading, Turn, Written, nobody
from zettel.model import Event, Hit, Moment, Scope
from zettel.ports import Passage
from zettel.transcripts import events_jsonl

from .completions import CompletionServer
from .evaluation import Progress, answering, embedder_called, scorer_without
from .machine import Cell, Result, data_file, result
from .replay import Replay, Spoken, lines

QUESTIONS = "questions.jsonl"
NOTES, REPLACES = "notes.jsonl", "replaces.jsonl"
"""What a model wrote of each event, as ``RecordedAnnotator`` reads it, and which fact it says replaces which."""
MODEL = "openai/recorded"
K = 10
"""Hits that are looked at."""


class Change(BaseModel):
    """A question about a fact that changed; ``marked``: the new statement itself says that something changed."""

    model_config = ConfigDict(frozen=True)

    scope: str
    question: str
    now: str
    before: str
    as_of: Moment
    kind: str
    marked: bool | None = None


class Outcome(NamedTuple):
    """Places of the two events among the hits, 0 the first, None: not there; ``then`` is asked under ``as_of``."""

    change: Change
    now: int | None
    before: int | None
    then: int | None


class Replaces(BaseModel):
    """That one fact replaces another, as a model would decide when it sees both."""

    model_config = ConfigDict(frozen=True)

    scope: str
    newer: str
    older: str


class Deciding(Replay):
    """Answers with recorded notes, and decides that a fact replaces another where that was recorded of the two."""

    def __init__(self, written: Mapping[Spoken, Written], replaces: Iterable[Replaces]) -> None:
        super().__init__(written, facts=0.0)
        self.pairs = {(one.newer, one.older) for one in replaces}
        self.offered: set[tuple[str, str]] = set()

    def links(self, asked: str) -> Iterator[dict[str, Any]]:
        """SUPERSEDES for the pairs that are offered, and nothing else."""
        told = {line["id"]: line for part in ("notes:", "others:") for line in _part(asked, part)}
        for card in _part(asked, "notes:"):
            for other in card.get("to", []):
                if (pair := (card["note"], told[other]["note"])) in self.pairs:
                    self.offered.add(pair)
                    yield {"from": card["id"], "to": other, "type": "SUPERSEDES", "reason": "this changed"}


def _part(asked: str, head: str) -> Iterable[dict[str, Any]]:
    """The cards after one of the two headings."""
    rest = asked.partition(f"{head}\n")[2]
    return lines(rest.partition("others:\n")[0].strip()) if rest else ()


async def run(
    folder: Path,
    progress: Progress,
    without: Sequence[str] = (),
    embedder: str | None = None,
    recorded: Path | None = None,
) -> Result:
    """Ask every question twice, for today and as of its time; a row for all, for each kind, marked and unmarked.

    Each scope is imported into a new embedded store and flushed before. ``recorded`` is a folder with what a model says
    (``NOTES`` and ``REPLACES``): a server on this machine says it over HTTP. Raises ``InvalidInput`` for a missing file
    or an event that is not there, ``BadRecord`` for a damaged line.
    """
    changes = read(folder)
    model, scorer = embedder_called(embedder), scorer_without(without)
    outcomes: list[Outcome] = []
    notes = ["Shares of the questions asked. A hit that rests on both statements counts for neither."]
    async with AsyncExitStack() as stack:
        made = stack.enter_context(TemporaryDirectory(prefix="zettel-bench-"))
        more: dict[str, Any] = {}
        if recorded is not None:
            deciding = await _deciding(folder, recorded, changes)
            server = stack.enter_context(CompletionServer(deciding))
            more = {"llm": LiteLLM(MODEL, api_base=server.url), "annotator": LiteLLMAnnotator()}
        memory = await stack.enter_async_context(
            AsyncMemory(Path(made) / "bench.db", embedder=model, scorer=scorer, **more)
        )
        for name, asked in changes.items():
            outcomes += await _ask(memory, folder / f"{name}.jsonl", name, asked, progress)
        if recorded is not None:
            share = len(deciding.offered) / max(len(deciding.pairs), 1)
            notes.append(f"A model's answers replayed over HTTP; {share:.1%} of the replaced facts were offered to it.")
    kinds = dict.fromkeys(outcome.change.kind for outcome in outcomes)
    rows = [
        _row("all", outcomes),
        *(_row(kind, [one for one in outcomes if one.change.kind == kind]) for kind in kinds),
        *(
            _row(name, chosen)
            for name, mark in (("new says so", True), ("new implies it", False))
            if (chosen := [one for one in outcomes if one.change.marked is mark])
        ),
    ]
    return result(
        bench="changes",
        ran_on={**data_file(folder / QUESTIONS), "scopes": len(changes)},
        settings=answering(scorer, without, model, K) | ({"model": f"{MODEL}, replayed"} if recorded else {}),
        columns=["changes", "asked", "today first", "as_of: before first", f"today in {K}", f"as_of: before in {K}",
                 "today: before above now", "today: neither first"],
        rows=rows,
        notes=notes,
    )  # fmt: skip


def read(folder: Path) -> dict[str, list[Change]]:
    """The questions of each scope; raises ``InvalidInput`` naming a missing file, ``BadRecord`` a damaged line."""
    path = folder / QUESTIONS
    changes: defaultdict[str, list[Change]] = defaultdict(list)
    for number, line in enumerate(data(path).read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            change = Change.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the line"
            raise BadRecord(f"{path}:{number}: {where}: {first['msg']}") from None
        changes[change.scope].append(change)
    if not changes:
        raise InvalidInput(f"{path} holds no questions")
    return dict(changes)


async def _deciding(folder: Path, recorded: Path, scopes: Iterable[str]) -> Deciding:
    """A model that answers from the files of a folder."""
    annotator = RecordedAnnotator(recorded / NOTES)
    written: dict[Spoken, Written] = {}
    for scope in scopes:
        events = [one for one in events_jsonl.read(data(folder / f"{scope}.jsonl")) if isinstance(one, Event)]
        turns = [Turn(str(e.id), str(e.id), Passage(e.content, None, e.role, e.occurred_at)) for e in events]
        wrote = await annotator.annotate(Reading(tuple(turns)), nobody(Scope(), ()))
        pairs = zip(events, wrote.turns, strict=True)
        written |= {Spoken(e.role or "", e.content): one for e, one in pairs if isinstance(one, Written)}
    rows = data(recorded / REPLACES).read_text(encoding="utf-8").splitlines()
    try:
        return Deciding(written, [Replaces.model_validate_json(row) for row in rows])
    except ValidationError as error:
        raise BadRecord(f"{recorded / REPLACES}: {error.errors()[0]['msg']}") from None


def data(path: Path) -> Path:
    """The path, if there is a file."""
    if not path.is_file():
        raise InvalidInput(f"{path}: there is no such file")
    return path


async def _ask(
    memory: AsyncMemory, file: Path, name: str, changes: Sequence[Change], progress: Progress
) -> list[Outcome]:
    scope = Scope(user=name)
    progress(f"remembering {name}", 0, len(changes))
    await memory.import_transcript(file, format="jsonl", scope=scope)
    await memory.flush(scope=scope)
    keys = {record.event_id: str(record.id) async for record, _ in memory.dump(scope=scope)}
    known = set(keys.values())
    outcomes = []
    for done, change in enumerate(changes):
        progress(f"asking {name}", done, len(changes))
        for event in (change.now, change.before):
            if event not in known:
                raise InvalidInput(f"{file} has no event {event!r}, which {change.question!r} needs")
        today = await memory.search(change.question, k=K, scope=scope)
        then = await memory.search(change.question, k=K, as_of=change.as_of, scope=scope)
        outcomes.append(
            Outcome(
                change,
                now=place_of(today, keys, change.now, change.before),
                before=place_of(today, keys, change.before, change.now),
                then=place_of(then, keys, change.before, change.now),
            )
        )
    return outcomes


def place_of(hits: Iterable[Hit], keys: dict[str, str], wanted: str, other: str) -> int | None:
    """Place of the first hit that rests on ``wanted`` and not on ``other``; ``keys``: the ``Event.id`` per event id."""
    for place, hit in enumerate(hits):
        events = {keys[event] for event in hit.note.event_ids}
        if wanted in events and other not in events:
            return place
    return None


def _row(name: str, outcomes: Sequence[Outcome]) -> list[Cell]:
    def share(holds: Callable[[Outcome], bool]) -> float:
        return round(sum(map(holds, outcomes)) / len(outcomes), 4)

    return [
        name,
        len(outcomes),
        share(lambda one: one.now == 0),
        share(lambda one: one.then == 0),
        share(lambda one: one.now is not None),
        share(lambda one: one.then is not None),
        share(lambda one: one.before is not None and (one.now is None or one.before < one.now)),
        share(lambda one: 0 not in (one.now, one.before)),
    ]
