"""The seams around a language model: what it is asked, what it answers, and who reads and links notes with its help.

An annotator or a linker of this kind talks to a network, so it never stands before a commit: jobs call it. It asks
through the ``Ask`` it is handed, which counts the cost, keeps the answers and stops when the budget is spent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from zettel.errors import ModelUnusable

if TYPE_CHECKING:
    from zettel.model import Kind, LinkType, Note, Scope
    from zettel.ports import Passage


# ----------------------------------------------------------------------------------------------------------- the model


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model.

    ``prompt`` names the prompt with its version ("annotate/1"). ``system`` and ``examples`` (a user's turn and the
    model's each) are the same in every request of that prompt, so that providers can cache them; ``user`` is what
    changes. ``schema`` is the JSON schema of the answer, an object. ``max_tokens`` bounds the answer. ``tries``: how
    often the very same was answered of late, to no use, so that more of the same is of none either.
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
    """What a model said: ``text`` as it came, ``cut`` if it ended at ``max_tokens``.

    ``usd`` is None where the price is not known. ``cached``: it was kept from before and cost nothing now.
    """

    text: str
    model: str
    cut: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float | None = None
    cached: bool = False


class LanguageModel(Protocol):
    """Answers requests."""

    name: str
    """As people write it, such as "openai/gpt-4o-mini"."""
    concurrency: int
    """Requests that may be under way at once."""

    async def complete(self, request: Request) -> Answer:
        """Raises ``ModelUnavailable`` (worth another try), ``ModelDenied``, ``ModelUnusable``; no error quotes what was
        asked or answered."""
        ...

    def count_tokens(self, text: str) -> int:
        """About how many tokens a text has; never asks the network."""
        ...

    def price(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """What that many tokens cost, in US dollars; None: not known."""
        ...


LLM: TypeAlias = "str | Sequence[str] | LanguageModel"
"""A model as people name it: a LiteLLM name, several of which the next is asked when one fails, or a LanguageModel."""

Ask: TypeAlias = Callable[[Request, Sequence[str]], Awaitable[Answer]]
"""A request, with the ids of all notes whose text stands in it: with any of them the kept answer is erased."""

Asker: TypeAlias = "Callable[[Scope, Iterable[Note]], Ask]"
"""The ``Ask`` of whoever puts the wording of these notes of a scope into requests."""


def nobody(scope: Scope, shown: Iterable[Note]) -> Ask:
    """Stands for an ``Asker`` where there is no model."""

    async def refuse(request: Request, notes: Sequence[str]) -> Answer:
        raise ModelUnusable(f"{request.prompt} needs a model: open the memory with llm=...")

    return refuse


# ------------------------------------------------------------------------------------------------------------- annotate


class Turn(NamedTuple):
    """A note as an annotator reads it: ``note`` is its id, ``event_key`` the ``Event.id`` that the caller gave."""

    note: str
    event_key: str | None
    passage: Passage


class Reading(NamedTuple):
    """Turns to be annotated together, in order, and those just before them, which help to understand."""

    turns: tuple[Turn, ...]
    before: tuple[Turn, ...] = ()


class Written(NamedTuple):
    """What a model wrote of one turn. ``importance`` 0..1 and ``kind`` are None where it said nothing of them.

    ``facts`` are sentences that hold by themselves, which become ``semantic`` notes.
    """

    context: str
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    importance: float | None = None
    kind: Kind | None = None
    facts: tuple[str, ...] = ()


class Flaw(NamedTuple):
    """Why there is no valid answer for a turn; never quotes what was asked or answered."""

    why: str


class Wrote(NamedTuple):
    """The outcome of a Reading: for each turn, in order, what was written or what was wrong.

    None: nobody has written of that turn nor will, so it stays as it is, and that is no error.
    ``summary`` is one sentence or two about all turns together, empty if there is none. ``model`` and ``prompt`` say
    who wrote it.
    """

    turns: tuple[Written | Flaw | None, ...]
    summary: str = ""
    model: str | None = None
    prompt: str | None = None


class ModelAnnotator(Protocol):
    """Turns to note fields by way of a model (or of what one once said)."""

    remote: bool
    """True: so it is told from an ``Annotator`` that is fit to stand before a commit."""
    name: str
    batch: int
    """Turns read together at most."""
    before: int
    """Turns just before the first that it wants to see."""
    links: bool
    """Whether the notes it wrote are to be linked by a model too."""

    async def annotate(self, reading: Reading, ask: Ask) -> Wrote:
        """Raises what ``ask`` raises."""
        ...


# ----------------------------------------------------------------------------------------------------------------- link


class Choice(NamedTuple):
    """A note that wants links, and which of the ``others`` of a ``Choices`` may be linked, by their positions there."""

    note: Note
    others: tuple[int, ...]


class Choices(NamedTuple):
    """Notes that want links together, with all that may be linked to."""

    notes: tuple[Choice, ...]
    others: tuple[Note, ...]


class Decision(NamedTuple):
    """A typed link that a model decided on, with its reason."""

    source: str
    target: str
    type: LinkType
    reason: str


class Linked(NamedTuple):
    """The outcome of Choices: for each note, in order, its links (none is an answer too) or what was wrong."""

    notes: tuple[tuple[Decision, ...] | Flaw, ...]
    model: str | None = None
    prompt: str | None = None


class ModelLinker(Protocol):
    """Decides links by way of a model."""

    batch: int
    """Notes asked about together at most."""
    offered: int
    """Older notes it may choose from for one note."""

    async def link(self, choices: Choices, ask: Ask) -> Linked:
        """Raises what ``ask`` raises."""
        ...


# --------------------------------------------------------------------------------------------------------------- evolve


class Rewrite(NamedTuple):
    """What a model makes of a note since it knows of a newer one, ``because`` of which it does so. Kind and facts are
    not asked for."""

    note: str
    because: str
    why: str
    written: Written


class Retie(NamedTuple):
    """A link from a newer note, ``because``, to another one, that a model ``makes`` or wants gone."""

    because: str
    target: str
    why: str
    makes: bool


class Rewrote(NamedTuple):
    """The outcome of Choices of new notes and the older ones near them."""

    changes: tuple[Rewrite | Retie, ...]
    model: str | None = None
    prompt: str | None = None


class ModelEvolver(Protocol):
    """Rewrites and relinks the neighbours of new notes by way of a model."""

    batch: int
    """New notes asked about together at most."""
    offered: int
    """Neighbours of each that are shown."""

    async def evolve(self, choices: Choices, ask: Ask) -> Rewrote:
        """Raises what ``ask`` raises, and ``ModelUnusable``."""
        ...


# -------------------------------------------------------------------------------------------------------------- reflect


class Reflected(NamedTuple):
    """What a model says of groups of notes that belong together: for each, in order, an insight or what was wrong."""

    insights: tuple[str | Flaw, ...]
    model: str | None = None
    prompt: str | None = None


class ModelReflector(Protocol):
    """Tells what notes that belong together show, by way of a model."""

    batch: int
    """Groups asked about together at most."""
    shown: int
    """Notes of each that it is shown at most."""

    async def reflect(self, groups: Sequence[Sequence[Note]], ask: Ask) -> Reflected:
        """Raises what ``ask`` raises."""
        ...
