"""Scorers and rerankers: candidates to scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from zettel.errors import ModelError
    from zettel.ports.query import Candidates, Floats, Question, Scores, Shortlist


class Scorer(Protocol):
    """Scores all candidates of a question."""

    name: str

    def score(self, question: Question, candidates: Candidates) -> Scores:
        """Scores in row order, (n,). A pure, fast function: it runs in the event loop."""
        ...


@runtime_checkable
class AnsweringScorer(Protocol):
    """Optional part of a scorer: of a question about a current state, the best notes are read for their answers."""

    answer_depth: int
    """The number of best notes to read; 0 reads none."""


@runtime_checkable
class Reranker(Protocol):
    """Reorders the best ``reads`` notes of each question.

    ``name`` appears in ``hit.why.scorer``. ``wants_vectors``: the shortlists include the notes' vectors, which costs a
    read of the store.
    """

    name: str
    reads: int
    wants_vectors: bool

    async def rerank(
        self, questions: Sequence[Question], shortlists: Sequence[Shortlist]
    ) -> Sequence[Floats | ModelError]:
        """A score for each note, (m,) finite floats for each shortlist of two or more notes; higher is better.

        A returned ``ModelError`` leaves the order of its shortlist unchanged, and ``hit.why.scorer`` reports it; a
        raised one does so for all shortlists. Called outside transactions, so it may use the network.
        """
        ...


@runtime_checkable
class UtilityReranker(Reranker, Protocol):
    """A reranker whose shortlists include the usefulness of each note, as feedback reports it."""

    wants_utility: bool
