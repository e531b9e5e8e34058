"""The ports of scorers, which score the candidates of a question, and rerankers, which reorder the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from zettel.errors import ModelError
    from zettel.ports.query import Candidates, Floats, Question, Scores, Shortlist


class Scorer(Protocol):
    """Scores all n candidates of a question in one call. ``name`` appears in ``hit.why.scorer``."""

    name: str

    def score(self, question: Question, candidates: Candidates) -> Scores:
        """Return the scores of all candidates, in row order. Must be pure and fast: it runs in the event loop."""
        ...


@runtime_checkable
class JointScorer(Protocol):
    """Optional for a scorer: it scores several searches in one pass, each as ``score`` would but for rounding."""

    def score_each(self, searches: Sequence[tuple[Question, Candidates]]) -> list[Scores]:
        """Return the scores of the candidates of each search."""
        ...


@runtime_checkable
class AnsweringScorer(Protocol):
    """Optional for a scorer: for a question about a current state, the search checks which notes answer it."""

    answer_depth: int
    """The number of best notes to check; 0 turns the check off."""


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
        """Return for each shortlist (m >= 2 notes) the scores of its notes: (m,) finite floats, higher is better.

        If an entry of the result is a ``ModelError``, its shortlist keeps its order and ``hit.why.scorer`` reports the
        error; a raised ``ModelError`` does so for all shortlists. The call may use the network.
        """
        ...


@runtime_checkable
class UtilityReranker(Reranker, Protocol):
    """A reranker whose shortlists include the usefulness of each note, as feedback reports it."""

    wants_utility: bool
