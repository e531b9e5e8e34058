"""Abstract questions: whether an insight comes first, covers the right notes, and is short; and borders of segments.

A folder has one file per conversation, with labels by hand::

    {"of": "../chats/bakery-books.json", "part": "fit", "borders": ["S1:5"], "topics": {"deck oven": "S4:9-10 S6:9-10"},
     "questions": [{"question": "Tell me about the deck oven.", "topics": ["deck oven"]},
                   {"question": "Recap our conversation of 5 May.", "session": "3"}]}

``of`` is a chat in our layout or a conversation in LoCoMo's layout. ``borders`` are the messages that change the topic
within a session. Each conversation is stored in its own scope, and evolves once before the questions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from zettel import AsyncMemory
from zettel.embed import load_embedder
from zettel.errors import BadRecord, InvalidInput
from zettel.evolve.segments import Turn, borders_for, segments, unit
from zettel.model import Event, Hit, Kind, Scope
from zettel.ports import Embedder
from zettel.search.pack import estimate_tokens

from . import fitting
from .evaluation import Collection, Progress, remember, run_settings, temporary_memory
from .results import Cell, Result, data_files

K = 10
"""Hits of a search."""
FIRST = 3
"""Places in which the insight must be."""
COVERED, PURE = 1 / 2, 1 / 3
"""An insight covers a topic if it has half of the topic's notes, and a third of its own notes are about the topic."""
_RANGE = re.compile(r"(?P<session>[A-Z]+\d+):(?P<first>\d+)-(?P<last>\d+)")


class AbstractQuestion(BaseModel):
    """A question about topics, one of which is enough, or about a session."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str
    topics: list[str] = []
    session: str | None = None


class Labels(BaseModel):
    """The labels of a conversation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    of: str
    part: Literal["fit", "test"]
    borders: list[str]
    topics: dict[str, str]
    questions: list[AbstractQuestion]


class Answer(NamedTuple):
    """The result of a question.

    ``reached`` is the share of the labelled notes behind the insights among the first hits, None if the question is
    about several topics. ``tokens`` are those of these insights and of the labelled notes.
    """

    part: str
    is_first: bool
    is_covered: bool
    reached: float | None
    tokens: tuple[int, int]


class Borders(NamedTuple):
    """Numbers of borders in a conversation. ``has_roles``: it is a chat with an assistant."""

    part: str
    has_roles: bool
    labelled: int
    found: int
    right: int


def read(folder: Path) -> dict[str, tuple[Labels, Collection]]:
    """Read the labels of a folder with their conversations, by file name, in this order.

    Raises ``InvalidInput`` without a file, ``BadRecord`` for a damaged one or an unknown message or topic.
    """
    found = {}
    for file in sorted(folder.glob("*.json")):
        try:
            labels = Labels.model_validate_json(file.read_bytes())
        except ValidationError as error:
            raise BadRecord(f"{file} has no labels of topics: {error.errors()[0]['msg']}") from error
        (collection,) = fitting.read((file.parent / labels.of).resolve())
        known = {str(event.external_id) for event in collection.events}
        named = {topic for question in labels.questions for topic in question.topics}
        if unknown := sorted(set(labels.borders) - known) + sorted(named - labels.topics.keys()):
            raise BadRecord(f"{file}: unknown message or topic {unknown[0]!r}")
        found[file.name] = labels, collection
    if not found:
        raise InvalidInput(f"{folder} has no labelled topics: name a folder such as tests/data/topics")
    return found


async def run(folder: Path, progress: Progress, embedder: str | None = None) -> Result:
    """Measure the abstract questions and the borders of a folder."""
    model = load_embedder(embedder)
    answers: list[Answer] = []
    borders: list[Borders] = []
    labelled = read(folder)
    for labels, collection in labelled.values():
        async with temporary_memory(embedder=model) as memory:
            answers += await _answers(memory, labels, collection, progress)
        borders.append(await _borders(labels, collection, model))
    parts = sorted({labels.part for labels, _ in labelled.values()})
    rows = [_row(part, answers, borders) for part in parts]
    return Result(
        bench="overview",
        data=data_files(folder / file for name, (labels, _) in labelled.items() for file in (name, labels.of)),
        ran_on={},
        settings=run_settings(None, (), model, K),
        columns=["part", "questions", "insight first", "covered", "reached", "tokens", "F1 chats", "F1 talks"],
        rows=rows,
        notes=[
            f"covered: one of the first {FIRST} hits is an insight with at least half of the notes of a topic that the "
            "question is about, and at least a third of its notes are about it.",
            f"reached: share of the labelled notes behind the insights among the first {FIRST} hits, for questions "
            "about one topic or session. tokens: those of these insights, divided by those of the labelled notes.",
            "F1: borders of segments against labelled changes of topic within a session.",
        ],
    )


def _row(part: str, answers: Sequence[Answer], borders: Sequence[Borders]) -> list[Cell]:
    own = [answer for answer in answers if answer.part == part]
    reached = [answer for answer in own if answer.reached is not None]
    tokens = sum(answer.tokens[0] for answer in reached) / max(sum(answer.tokens[1] for answer in reached), 1)
    return [
        part,
        len(own),
        _mean([answer.is_first for answer in own]),
        _mean([answer.is_covered for answer in own]),
        _mean([answer.reached or 0.0 for answer in reached]),
        round(tokens, 4),
        _f1([each for each in borders if each.part == part and each.has_roles]),
        _f1([each for each in borders if each.part == part and not each.has_roles]),
    ]


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


def _f1(borders: Sequence[Borders]) -> float | None:
    total = sum(each.labelled + each.found for each in borders)
    return round(2 * sum(each.right for each in borders) / total, 4) if total else None


async def _answers(memory: AsyncMemory, labels: Labels, collection: Collection, progress: Progress) -> list[Answer]:
    scope = Scope(user=collection.name)
    events = await remember(memory, collection, progress)
    await memory.evolve(scope=scope)
    tokens = {str(event.external_id): estimate_tokens(event.content or "") for event in collection.events}
    answers = []
    for place, question in enumerate(labels.questions):
        progress(f"asking {collection.name}", place, len(labels.questions))
        hits = await memory.search(question.question, k=K, scope=scope, log=False)
        answers.append(_answer(labels, question, _wanted(labels, question, collection), hits, events, tokens))
    return answers


def _wanted(labels: Labels, question: AbstractQuestion, collection: Collection) -> list[set[str]]:
    """Return the messages of each topic, or of the session, that a question is about."""
    if question.session is None:
        return [_expanded(labels.topics[topic], collection.events) for topic in question.topics]
    session = re.compile(rf"[A-Z]+{re.escape(question.session)}:")
    return [{str(event.external_id) for event in collection.events if session.match(str(event.external_id))}]


def _expanded(ranges: str, events: Sequence[Event]) -> set[str]:
    known = {str(event.external_id) for event in events}
    return known & {
        f"{match['session']}:{number}"
        for match in _RANGE.finditer(ranges)
        for number in range(int(match["first"]), int(match["last"]) + 1)
    }


def _answer(
    labels: Labels,
    question: AbstractQuestion,
    wanted: Sequence[set[str]],
    hits: Sequence[Hit],
    events: Mapping[str, str],
    tokens: Mapping[str, int],
) -> Answer:
    insights = [hit for hit in hits[:FIRST] if hit.note.kind is Kind.INSIGHT]
    covers = [{events[event] for event in hit.note.event_ids} for hit in insights]
    is_covered = any(
        len(cover & topic) >= COVERED * len(topic) and len(cover & topic) >= PURE * len(cover)
        for cover in covers
        for topic in wanted
    )
    reached = None
    if len(wanted) == 1:
        reached = len(set().union(*covers) & wanted[0]) / len(wanted[0])
    return Answer(
        labels.part,
        bool(hits) and hits[0].note.kind is Kind.INSIGHT,
        is_covered,
        reached,
        (sum(estimate_tokens(hit.note.content) for hit in insights), sum(tokens[id] for id in set().union(*wanted))),
    )


async def _borders(labels: Labels, collection: Collection, embedder: Embedder) -> Borders:
    """Return the borders that the segments of the sessions have in common with the labels."""
    events = collection.events
    rows = await embedder.embed([f"{event.speaker}: {event.content}" if event.speaker else event.content or ""
                                 for event in events])  # fmt: skip
    sessions: dict[str | None, list[int]] = {}
    for place, event in enumerate(events):
        sessions.setdefault(event.session, []).append(place)
    found: set[str] = set()
    for places in sessions.values():
        turns = [Turn(unit(rows[at]), events[at].role in ("assistant", "tool"), events[at].occurred_at)
                 for at in places]  # fmt: skip
        starts = [start for start, _ in segments(turns, borders_for(embedder.info.name))]
        found |= {str(events[places[start]].external_id) for start in starts[1:]}
    right = len(found & set(labels.borders))
    has_roles = any(event.role == "assistant" for event in events)
    return Borders(labels.part, has_roles, len(labels.borders), len(found), right)
