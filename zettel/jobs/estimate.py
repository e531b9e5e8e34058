"""Estimates the cost of annotating and linking turns by a language model, without calling it.

The annotator builds its requests, and the estimate counts their tokens. The lengths of answers and of link requests are
unknown, so measured averages replace them.
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

ANSWER_TOKENS = {"annotate": 96, "annotate-lean": 67}
"""Answer tokens per turn, by prompt: the average of a strong model on two long chats, 784 turns."""
DEFAULT_ANSWER_TOKENS = 96
"""Answer tokens per turn for other prompts."""
LINK_REQUEST_TOKENS, LINK_ANSWER_TOKENS = 104, 25
"""Tokens per note of a link request without its prompt, and of its answer, measured on the same chats."""
EMPTY_ANSWER = '{"notes": []}'
"""The answer that replaces the answers of a model."""


async def waiting(store: GraphStore) -> list[Unread]:
    """Return the turns of all scopes that wait for a model."""
    notes: dict[Scope, list[str]] = {}
    for job in await store.jobs(None):
        if job.kind is JobKind.ANNOTATE and job.state is not JobState.FAILED and job.note:
            notes.setdefault(job.scope, []).append(job.note)
    return [
        Unread(note.session, Passage(note.content, note.title, note.speaker, note.occurred_at), scope)
        for scope, ids in notes.items()
        for note in (await store.notes(scope, ids)).values()
    ]


async def estimate(turns: Sequence[Unread], annotator: ModelAnnotator, model: LanguageModel) -> Estimate:
    """Estimate the cost of annotating and linking these turns, in order of arrival, without calling ``model``."""
    turns = [turn for turn in turns if not is_filler(turn.passage.content, implied_role(turn.passage.speaker))]
    scopes: dict[Scope, list[Unread]] = {}  # requests never mix scopes
    for turn in turns:
        scopes.setdefault(turn.scope, []).append(turn)
    count_constant = lru_cache(maxsize=8)(model.count_tokens)
    calls = request_tokens = answer_tokens = per_turn = 0

    def count(request: Request) -> int:
        return count_constant(_constant(request)) + model.count_tokens(request.user)

    async def ask(request: Request, notes: Sequence[str]) -> Answer:
        nonlocal calls, request_tokens, per_turn
        calls += 1
        request_tokens += await anyio.to_thread.run_sync(count, request)
        per_turn = ANSWER_TOKENS.get(request.prompt.partition("/")[0], DEFAULT_ANSWER_TOKENS)
        return Answer(text=EMPTY_ANSWER, model=model.name)

    for request in chain.from_iterable(_requests(of_scope, annotator) for of_scope in scopes.values()):
        await annotator.annotate(request, ask)
        answer_tokens += len(request.turns) * per_turn
    if annotator.links:
        linker = LiteLLMLinker()
        prompt = Request(*linker.prompt, user="", schema=LINK_SCHEMA, max_tokens=0)
        claim = READ_AHEAD * annotator.batch
        link_calls = sum(
            ceil(min(claim, len(of_scope) - start) / linker.batch)
            for of_scope in scopes.values()
            for start in range(0, len(of_scope), claim)
        )
        calls += link_calls
        request_tokens += link_calls * await anyio.to_thread.run_sync(count, prompt) + len(turns) * LINK_REQUEST_TOKENS
        answer_tokens += len(turns) * LINK_ANSWER_TOKENS
    usd = await anyio.to_thread.run_sync(model.price, request_tokens, answer_tokens)
    return Estimate(model.name, len(turns), calls, request_tokens, answer_tokens, usd)


def _constant(request: Request) -> str:
    """Return the constant part of the requests of a prompt."""
    shown = (part for example in request.examples for part in example)
    return "".join((request.system, *shown, json.dumps(request.schema)))


def _requests(turns: Sequence[Unread], annotator: ModelAnnotator) -> Iterator[AnnotationRequest]:
    """Group turns about like the annotate job: by session, long sessions in pieces, short sessions together."""
    claim = READ_AHEAD * annotator.batch
    for start in range(0, len(turns), claim):
        sessions: dict[str | None, list[AnnotationItem]] = {}
        for position, turn in enumerate(turns[start : start + claim], start):
            sessions.setdefault(turn.session, []).append(AnnotationItem(f"n_{position}", None, turn.passage))
        stretches: list[AnnotationRequest] = []
        for items in sessions.values():
            for first, last in _cuts(len(items), annotator.batch):
                if stretches and first == 0 and len(stretches[-1].turns) + last <= annotator.batch:
                    joined = (*stretches[-1].turns, *items[:last])
                    stretches[-1] = stretches[-1]._replace(turns=joined)
                else:
                    before = items[max(0, first - annotator.before) : first]
                    stretches.append(AnnotationRequest(tuple(items[first:last]), tuple(before)))
        yield from stretches


def _cuts(count: int, most: int) -> list[tuple[int, int]]:
    """Return (start, end) of the pieces of a session; a long session is cut into pieces of medium length."""
    pieces = 1 if count <= most else ceil(2 * count / (min(LEAST, most) + most))
    borders = [count * piece // pieces for piece in range(pieces + 1)]
    return list(pairwise(borders))
