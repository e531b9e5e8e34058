"""Estimates the cost of annotating and linking turns by a language model, without calling it.

The annotator builds its requests, and their tokens are counted instead of sent. The lengths of answers and of link
requests are not known before, so measured averages replace them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from math import ceil

import anyio

from zettel.annotate.segments import LEAST
from zettel.jobs.spec import READ_AHEAD
from zettel.link.by_model import SCHEMA as LINK_SCHEMA
from zettel.link.by_model import LiteLLMLinker
from zettel.model import Estimate, JobKind, JobState, Scope, implied_role
from zettel.ports import GraphStore, Passage
from zettel.ports.language_model import (
    AnnotationItem,
    AnnotationRequest,
    Answer,
    LanguageModel,
    ModelAnnotator,
    Request,
)
from zettel.ports.unread import Unread
from zettel.text.filler import is_filler

ANSWERED = {"annotate": 96, "annotate-lean": 67}
"""Tokens of an answer for each turn, by prompt: what a strong model wrote of two long chats, 784 turns."""
ANSWERED_USUALLY = 96
"""The same for other prompts."""
LINK_ASKED, LINK_ANSWERED = 104, 25
"""Tokens for each note of a question about links, beside its prompt, and of the answer; measured in the same way."""
NOTHING = '{"notes": []}'
"""The empty answer that replaces real ones."""


async def waiting(store: GraphStore) -> list[Unread]:
    """Return the turns of all scopes that wait for a model."""
    notes: dict[Scope, list[str]] = {}
    for job in await store.jobs(None):
        if job.kind is JobKind.ANNOTATE and job.state is not JobState.FAILED and job.note:
            notes.setdefault(job.scope, []).append(job.note)
    read = [(scope, note) for scope, ids in notes.items() for note in (await store.notes(scope, ids)).values()]
    return [
        Unread(note.session, Passage(note.content, note.title, note.speaker, note.occurred_at), scope)
        for scope, note in read
    ]


async def estimate(turns: Sequence[Unread], annotator: ModelAnnotator, model: LanguageModel) -> Estimate:
    """Estimate the cost of annotating and linking these turns, in order of arrival, without calling ``model``."""
    read = [turn for turn in turns if not is_filler(turn.passage.content, implied_role(turn.passage.speaker))]
    scopes: dict[Scope, list[Unread]] = {}  # requests never mix scopes
    for turn in read:
        scopes.setdefault(turn.scope, []).append(turn)
    count = lru_cache(maxsize=8)(model.count_tokens)  # the constant part of each request
    calls = asked = answered = 0
    each = 0  # tokens of an answer for each turn

    def weigh(request: Request) -> int:
        return count(_constant(request)) + model.count_tokens(request.user)

    async def ask(request: Request, notes: Sequence[str]) -> Answer:
        nonlocal calls, asked, each
        calls += 1
        asked += await anyio.to_thread.run_sync(weigh, request)
        each = ANSWERED.get(request.prompt.partition("/")[0], ANSWERED_USUALLY)
        return Answer(text=NOTHING, model=model.name)

    for reading in chain.from_iterable(_readings(one, annotator) for one in scopes.values()):
        await annotator.annotate(reading, ask)
        answered += len(reading.turns) * each
    if annotator.links:
        linker = LiteLLMLinker()
        prompt = Request(*linker.prompt, user="", schema=LINK_SCHEMA, max_tokens=0)
        claim = READ_AHEAD * annotator.batch
        linking = sum(
            ceil(min(claim, len(one) - start) / linker.batch)
            for one in scopes.values()
            for start in range(0, len(one), claim)
        )
        calls += linking
        asked += linking * await anyio.to_thread.run_sync(count, _constant(prompt)) + len(read) * LINK_ASKED
        answered += len(read) * LINK_ANSWERED
    usd = await anyio.to_thread.run_sync(model.price, asked, answered)
    return Estimate(model.name, len(read), calls, asked, answered, usd)


def _constant(request: Request) -> str:
    """Return the constant part of the requests of a prompt."""
    shown = (part for example in request.examples for part in example)
    return "".join((request.system, *shown, json.dumps(request.schema)))


def _readings(turns: Sequence[Unread], annotator: ModelAnnotator) -> Iterator[AnnotationRequest]:
    """Group turns about as the job does: by session, cut where topics change, short sessions together."""
    claim = READ_AHEAD * annotator.batch
    for start in range(0, len(turns), claim):
        sessions: dict[str | None, list[AnnotationItem]] = {}
        for place, turn in enumerate(turns[start : start + claim], start):
            sessions.setdefault(turn.session, []).append(AnnotationItem(f"n_{place}", None, turn.passage))
        stretches: list[AnnotationRequest] = []
        for said in sessions.values():
            for first, last in _cuts(len(said), annotator.batch):
                if stretches and first == 0 and len(stretches[-1].turns) + last <= annotator.batch:
                    joined = (*stretches[-1].turns, *said[:last])
                    stretches[-1] = stretches[-1]._replace(turns=joined)
                else:
                    before = said[max(0, first - annotator.before) : first]
                    stretches.append(AnnotationRequest(tuple(said[first:last]), tuple(before)))
        yield from stretches


def _cuts(count: int, most: int) -> list[tuple[int, int]]:
    """Return (start, end) of the pieces of a session, which have a medium length if it is cut."""
    pieces = 1 if count <= most else ceil(2 * count / (min(LEAST, most) + most))
    borders = [count * piece // pieces for piece in range(pieces + 1)]
    return list(pairwise(borders))
