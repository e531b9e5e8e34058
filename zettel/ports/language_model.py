"""The ports around a language model: the model itself, and the annotator, linker, evolver and reflector that call it.

All of these may use a network, so only jobs call them, never a commit. They call the model through an ``Ask``, which
counts costs, caches answers and stops when the budget is spent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from zettel.errors import InvalidModelOutput

if TYPE_CHECKING:
    from zettel.model import Kind, LinkType, Note, Scope
    from zettel.ports.annotator import Passage


# ----------------------------------------------------------------------------------------------------------- the model


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model.

    ``prompt`` is the name and version of the prompt ("annotate/1"). ``system`` and ``examples`` (pairs of a user's and
    the model's turn) are the same in every request of that prompt, so that providers can cache them. ``user`` is the
    part that changes. ``schema`` is the JSON schema of the answer, an object. ``max_tokens`` limits the answer.
    ``tries`` is the number of earlier invalid answers to the same request.
    """

    prompt: str
    system: str
    examples: tuple[tuple[str, str], ...]
    user: str
    schema: Mapping[str, Any]
    max_tokens: int
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a model: its raw ``text``; ``cut`` is True if it ended at ``max_tokens``.

    ``usd`` is the price in US dollars, None if unknown. ``cached`` is True if it came from the cache, at no cost.
    """

    text: str
    model: str
    cut: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float | None = None
    cached: bool = False


@runtime_checkable
class LanguageModel(Protocol):
    """Sends requests to a language model; ``zettel.LiteLLM`` is the default implementation."""

    name: str
    """A LiteLLM name such as "openai/gpt-4o-mini"."""
    concurrency: int
    """Maximum number of concurrent requests."""

    async def complete(self, request: Request) -> Answer:
        """Return the answer of the model.

        Raises ``ModelUnavailable`` (try again later), ``ModelDenied``, ``InvalidModelOutput``. No error quotes the
        request or the answer.
        """
        ...

    def count_tokens(self, text: str) -> int:
        """Return about how many tokens a text has, without a network call."""
        ...

    def price(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Return the price of these tokens in US dollars; None if unknown."""
        ...


LLM: TypeAlias = "str | Sequence[str] | LanguageModel"
"""A LiteLLM name, several names (the next is called when one fails), or a ``LanguageModel``."""

Ask: TypeAlias = Callable[[Request, Sequence[str]], Awaitable[Answer]]
"""Sends a request. The second argument is the ids of all notes whose text it contains: when one of these notes is
deleted, the cached answer is deleted with it."""

AskFactory: TypeAlias = "Callable[[Scope, Iterable[Note]], Ask]"
"""Returns the ``Ask`` for requests that contain the text of these notes of a scope."""


def no_model(scope: Scope, shown: Iterable[Note]) -> Ask:
    """The ``AskFactory`` of a memory without a model: its ``Ask`` raises ``InvalidModelOutput``."""

    async def refuse(request: Request, notes: Sequence[str]) -> Answer:
        raise InvalidModelOutput(f"{request.prompt} needs a model: open the memory with llm=...")

    return refuse


class InvalidItem(NamedTuple):
    """The reason why an answer has no valid item for a note or group; never quotes the request or the answer."""

    why: str


# ------------------------------------------------------------------------------------------------------------- annotate


class AnnotationItem(NamedTuple):
    """One turn to annotate: ``note`` is its note id, ``event_key`` the caller's own ``Event.id``."""

    note: str
    event_key: str | None
    passage: Passage


class AnnotationRequest(NamedTuple):
    """Turns to annotate together, in order, and the turns just ``before`` them as context."""

    turns: tuple[AnnotationItem, ...]
    before: tuple[AnnotationItem, ...] = ()


class ModelAnnotation(NamedTuple):
    """A model's annotation of one turn. ``importance`` (0..1) and ``kind`` are None where the model gave none.

    ``facts`` are self-contained sentences, which become ``semantic`` notes. ``confidences`` (0..1) are the model's own
    ratings of the first of them; further facts have 1.
    """

    context: str
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    importance: float | None = None
    kind: Kind | None = None
    facts: tuple[str, ...] = ()
    confidences: tuple[float, ...] = ()


class AnnotationResult(NamedTuple):
    """The outcome of an ``AnnotationRequest``: one entry per turn, in order.

    None means that the annotator has nothing for that turn, now or later: the note keeps its fields, without an error.
    ``summary`` is one or two sentences about all turns together, or "". ``model`` and ``prompt`` are its origin.
    """

    turns: tuple[ModelAnnotation | InvalidItem | None, ...]
    summary: str = ""
    model: str | None = None
    prompt: str | None = None


@runtime_checkable
class ModelAnnotator(Protocol):
    """Annotates turns by a model, or from recorded answers. Jobs call it; an ``Annotator`` runs before the commit."""

    name: str
    batch: int
    """Maximum number of turns per request."""
    before: int
    """Maximum number of earlier turns that it takes as context."""
    links: bool
    """True if a model also links the notes that it annotated."""

    async def annotate(self, reading: AnnotationRequest, ask: Ask) -> AnnotationResult:
        """Return one annotation per turn, in order. Raises the errors of ``ask``."""
        ...


# ----------------------------------------------------------------------------------------------------------------- link


class NoteCandidates(NamedTuple):
    """A new note and its candidates, as positions in ``CandidateBatch.others``."""

    note: Note
    others: tuple[int, ...]


class CandidateBatch(NamedTuple):
    """Notes of one request, with all candidates of all of them."""

    notes: tuple[NoteCandidates, ...]
    others: tuple[Note, ...]


class LinkDecision(NamedTuple):
    """A typed link that a model decided on, with its reason."""

    source: str
    target: str
    type: LinkType
    reason: str


class LinkResult(NamedTuple):
    """The outcome of linking a ``CandidateBatch``: for each note, in order, its links (possibly none) or an error."""

    notes: tuple[tuple[LinkDecision, ...] | InvalidItem, ...]
    model: str | None = None
    prompt: str | None = None


class ModelLinker(Protocol):
    """Decides links by a model."""

    batch: int
    """Maximum number of notes per request."""
    offered: int
    """Maximum number of candidates per note."""

    async def link(self, choices: CandidateBatch, ask: Ask) -> LinkResult:
        """Return the links of each note, in order. Raises the errors of ``ask``."""
        ...


# --------------------------------------------------------------------------------------------------------------- evolve


class Rewrite(NamedTuple):
    """New fields for ``note``, with the reason ``why``. The newer note ``because`` caused it. Kind and facts stay."""

    note: str
    because: str
    why: str
    written: ModelAnnotation


class LinkChange(NamedTuple):
    """A link from a newer note, ``because``, to another note, which the model ``makes`` or removes."""

    because: str
    target: str
    why: str
    makes: bool


class EvolutionResult(NamedTuple):
    """The outcome of evolving a ``CandidateBatch`` of new notes and their older neighbours."""

    changes: tuple[Rewrite | LinkChange, ...]
    model: str | None = None
    prompt: str | None = None


class ModelEvolver(Protocol):
    """Rewrites and relinks the neighbours of new notes by a model."""

    batch: int
    """Maximum number of new notes per request."""
    offered: int
    """Maximum number of neighbours per new note."""

    async def evolve(self, choices: CandidateBatch, ask: Ask) -> EvolutionResult:
        """Return the changes to the neighbours. Raises the errors of ``ask``, and ``InvalidModelOutput``."""
        ...


# -------------------------------------------------------------------------------------------------------------- reflect


class ReflectionResult(NamedTuple):
    """The outcome of reflecting on groups of notes: for each group, in order, an insight or an error."""

    insights: tuple[str | InvalidItem, ...]
    model: str | None = None
    prompt: str | None = None


class ModelReflector(Protocol):
    """Writes insights about groups of notes by a model."""

    batch: int
    """Maximum number of groups per request."""
    shown: int
    """Maximum number of notes per group."""

    async def reflect(self, groups: Sequence[Sequence[Note]], ask: Ask) -> ReflectionResult:
        """Return one insight per group, in order. Raises the errors of ``ask``."""
        ...
