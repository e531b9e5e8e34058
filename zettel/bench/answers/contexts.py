"""Contexts for questions within a token budget: by zettel, by flat vectors, by BM25, and the full text.

All are counted by zettel's ``estimate_tokens``. Baselines add messages, long ones by parts, in the order of their rank
while these fit, and list them by time under a heading for each day, as zettel does.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from zettel import AsyncMemory
from zettel.bench.baselines import BM25, CachingEmbedder, best_places, indexed_text
from zettel.bench.evaluation import Collection, Progress, store, temporary_memory
from zettel.core.vectors import embed_questions
from zettel.errors import InvalidInput
from zettel.model import Event, Scope
from zettel.ports import Embedder
from zettel.search.pack import cut, estimate_tokens
from zettel.text.parts import split_parts

from .datasets import Asked, Conversation

if TYPE_CHECKING:
    from zettel.ports.query import Floats

OURS, FULL = "zettel", "full"
SYSTEMS = (OURS, "vectors", "bm25", FULL)
DEPTH = 200
"""Parts of a ranking that are tried; a context of 1,500 tokens contains about 40 short ones."""
_NO_DATE = datetime.max.replace(tzinfo=timezone.utc)


class Built(NamedTuple):
    """A context of a question, with the seconds that it took."""

    question: Asked
    system: str
    text: str
    tokens: int
    seconds: float


class SharedTexts(CachingEmbedder):
    """Embeds each text once, and each question as often as it is asked: that is a part of the time of a context."""

    async def embed_questions(self, texts: Sequence[str]) -> Floats:
        return await embed_questions(self._inner, texts)


class ContextBuilder(Protocol):
    """Builds contexts over the events that were added so far."""

    async def add(self, events: Sequence[Event]) -> None:
        """Add events that follow the earlier ones."""
        ...

    async def context(self, question: Asked) -> str:
        """Return the context of a question."""
        ...


def require_systems(names: Sequence[str]) -> None:
    """Check names of systems. Raises ``InvalidInput``."""
    unknown = [name for name in names if name not in SYSTEMS]
    if unknown or not names:
        raise InvalidInput(f"unknown context {', '.join(unknown)!r}: use one or more of {', '.join(SYSTEMS)}")


async def contexts(
    conversation: Conversation, systems: Sequence[str], max_tokens: int, embedder: Embedder, progress: Progress
) -> AsyncGenerator[Built, None]:
    """Yield the contexts of the questions of a conversation, each over the events before it."""
    async with temporary_memory(embedder=embedder) as memory:
        scope = Scope(user=conversation.name)
        builders: dict[str, ContextBuilder] = {}
        for system in systems:
            if system == OURS:
                builders[system] = ZettelContexts(memory, scope, max_tokens, progress)
            elif system == FULL:
                builders[system] = FullText()
            else:
                ranker = Vectors(embedder) if system == "vectors" else Words()
                builders[system] = RankedContexts(ranker, max_tokens)
        added = 0
        for place, question in enumerate(conversation.questions):
            progress(f"contexts of {conversation.name}", place, len(conversation.questions))
            new = conversation.events[added : question.after]
            added = max(added, question.after)
            for system, builder in builders.items():
                if new:
                    await builder.add(new)
                began = time.perf_counter()
                text = await builder.context(question)
                seconds = time.perf_counter() - began
                yield Built(question, system, text, estimate_tokens(text), seconds)


class ZettelContexts:
    """Contexts by ``AsyncMemory.context``."""

    def __init__(self, memory: AsyncMemory, scope: Scope, max_tokens: int, progress: Progress) -> None:
        self._memory, self._scope, self._max_tokens, self._progress = memory, scope, max_tokens, progress

    async def add(self, events: Sequence[Event]) -> None:
        name = self._scope.user or ""
        await store(self._memory, Collection(name, events, ()), self._scope, self._progress)

    async def context(self, question: Asked) -> str:
        return await self._memory.context(
            question.text, self._max_tokens, scope=self._scope, now=question.today
        )


class Ranker(Protocol):
    """Ranks the events that were added so far."""

    async def add(self, events: Sequence[Event]) -> None: ...

    async def rank(self, question: str) -> list[int]:
        """Return the places of the best DEPTH of them, best first."""
        ...


class Vectors:
    """Cosine between the question and every event."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._rows: Floats | None = None

    async def add(self, events: Sequence[Event]) -> None:
        new = await self._embedder.embed([indexed_text(event) for event in events])
        self._rows = new if self._rows is None else np.concatenate([self._rows, new])

    async def rank(self, question: str) -> list[int]:
        if self._rows is None:
            return []
        (vector,) = await embed_questions(self._embedder, [question])
        return best_places(self._rows @ vector, DEPTH)


class Words:
    """BM25."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._index = BM25([])

    async def add(self, events: Sequence[Event]) -> None:
        self._events += events
        self._index = BM25(self._events)

    async def rank(self, question: str) -> list[int]:
        return self._index.rank(question, DEPTH)


class RankedContexts:
    """The best events of a ranking that fit. Long events are split into parts, as zettel splits them."""

    def __init__(self, ranker: Ranker, max_tokens: int) -> None:
        self._ranker, self._max_tokens = ranker, max_tokens
        self._events: list[Event] = []

    async def add(self, events: Sequence[Event]) -> None:
        parts = [
            event.model_copy(update={"content": part}) for event in events for part in split_parts(event.content)
        ]
        self._events += parts
        await self._ranker.add(parts)

    async def context(self, question: Asked) -> str:
        return packed(self._events, await self._ranker.rank(question.text), self._max_tokens)


class FullText:
    """All events."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    async def add(self, events: Sequence[Event]) -> None:
        self._events += events

    async def context(self, question: Asked) -> str:
        return rendered(self._events)


def packed(events: Sequence[Event], ranked: Sequence[int], max_tokens: int) -> str:
    """Return the events that fit, chosen by their places in ``ranked``, best first; the best one is cut if too long."""
    chosen: list[int] = []
    used = 0
    for place in ranked:
        if used + estimate_tokens(events[place].content) > max_tokens:
            continue
        more = sorted([*chosen, place])
        tokens = estimate_tokens(rendered([events[each] for each in more]))
        if tokens <= max_tokens:
            chosen, used = more, tokens
    if not chosen and ranked:
        return cut(rendered([events[ranked[0]]]), max_tokens)
    return rendered([events[each] for each in chosen])


def rendered(events: Sequence[Event]) -> str:
    """Return events by time, under a heading for each day, with time and speaker."""
    lines: list[str] = []
    heading = ""
    for event in sorted(events, key=lambda event: event.occurred_at or _NO_DATE):
        when = event.occurred_at
        day = f"## {when:%A}, {when.date().isoformat()}" if when else f"## session {event.session}"
        if day != heading:
            lines += ["", day] if lines else [day]
            heading = day
        clock = f"{when:%H:%M} " if when else ""
        speaker = f"{event.speaker or event.role}: " if event.speaker or event.role else ""
        lines.append(f"- {clock}{speaker}{event.content.strip()}")
    return "\n".join(lines)
