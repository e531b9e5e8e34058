"""The searches in a scope, made from requests: what needs no candidates yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from zettel.core.present import present_micros
from zettel.core.retention import unexpired
from zettel.model import Scope, to_micros
from zettel.ports import Reranker, ScopeState
from zettel.ports.query import Question, SearchRequest
from zettel.search.overview import insights_request, is_abstract, notes_request
from zettel.search.question import parse_question

if TYPE_CHECKING:
    from zettel.ports.query import Floats


class Search(NamedTuple):
    """A request in a scope, its question, and how many of its best notes rerankers read."""

    scope: Scope
    request: SearchRequest
    question: Question
    reads: int


class Place(NamedTuple):
    """A scope, its state, its rerankers, and the question of each request, still without a vector."""

    scope: Scope
    state: ScopeState
    stages: Sequence[Reranker]
    questions: Sequence[Question]


class ScopeSearch:
    """The requests in a scope, as searches for notes and, for abstract questions, for insights.

    ``vectors`` are those of the questions. The searches are as of this moment: an embedder may take a minute.
    """

    def __init__(self, place: Place, requests: Sequence[SearchRequest], vectors: Mapping[str, Floats]) -> None:
        self.scope, state, self.stages, questions = place
        self.requests = [
            replace(request, filter=unexpired(request.filter, state, request.known_at)) for request in requests
        ]
        pairs = [
            (request, _asked(request, question, state.latest, vectors[request.text]))
            for request, question in zip(self.requests, questions, strict=True)
        ]
        reads = max((stage.reads for stage in self.stages), default=0)
        self.abstract = [number for number, request in enumerate(requests) if is_abstract(request)]
        self.notes = [Search(self.scope, notes_request(request), question, reads) for request, question in pairs]
        self.insights = [
            Search(self.scope, insights_request(request), question, 0)
            for request, question in (pairs[number] for number in self.abstract)
        ]


def parsed_questions(requests: Sequence[SearchRequest], latest: Sequence[int]) -> list[list[Question]]:
    """Return the questions in each scope, without vectors; ``latest`` are the times of the scopes' last events."""
    return [[_question(request, time) for request in requests] for time in latest]


def _question(request: SearchRequest, latest: int) -> Question:
    today = request.now or request.as_of
    if today is None:
        return parse_question(request.text, vector=None, today=latest)
    return parse_question(request.text, vector=None, today=to_micros(today), zone=today.tzinfo)


def _asked(request: SearchRequest, question: Question, latest: int, vector: Floats) -> Question:
    """Return a question with its vector (a row of zeros counts as none) and the time at which notes must be true."""
    valid_at = question.valid_at
    if request.now is None and request.as_of is None:
        # An undated replacement is valid from when it was recorded, which may be after the last event.
        valid_at = max(latest, present_micros())
    return replace(question, vector=vector if vector.any() else None, valid_at=valid_at)
