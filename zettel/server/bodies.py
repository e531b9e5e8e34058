"""What requests look like: the arguments of the public methods as JSON objects, under the same names.

A field that is left out has the method's default; one that no method knows is refused. What a value must be beyond its
type, as a time or a kind, the memory itself says.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from zettel.model import Event, OnConflict, Outcome, Scope
from zettel.scoring import Effort

MOST_QUESTIONS = 1_000
"""Of one batch: what a server answers in some seconds."""

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""ISO 8601; without a zone it is UTC."""
Several = list[str] | str
"""Some names, or one."""


class Body(BaseModel):
    """An object of known fields."""

    model_config = ConfigDict(extra="forbid")

    def given(self, *without: str) -> dict[str, Any]:
        """The fields that the request has, as the method's arguments; those that are null have their defaults."""
        told = {name: getattr(self, name) for name in self.model_fields_set if name not in without}
        return {name: value for name, value in told.items() if value is not None}


class Add(Event):
    """An event, and what to do with it: see ``add``."""

    on_conflict: OnConflict = "error"
    wait: bool = False


class AddMany(Body):
    """See ``add_many``."""

    events: list[Event]
    on_conflict: OnConflict = "error"
    wait: bool = False


class Remember(Body):
    """See ``remember``."""

    events: list[Event]
    on_conflict: OnConflict = "error"


class _Search(Body):
    k: int | None = 10
    as_of: Time | None = None
    known_at: Time | None = None
    since: Time | None = None
    until: Time | None = None
    now: Time | None = None
    kinds: Several | None = None
    tags: Several | None = None
    session: str | None = None
    role: str | None = None
    filter: dict[str, JsonValue] | None = None
    min_score: float | None = None
    current_only: bool | None = None
    archived: bool | None = None
    quarantined: bool | None = None
    scorer: str | None = None
    effort: Effort | None = None
    explain: bool | None = None
    log: bool | None = None
    brings_back: bool | None = None


class Search(_Search):
    """See ``search``."""

    question: str


class SearchMany(_Search):
    """See ``search_many``."""

    questions: list[str] = Field(max_length=MOST_QUESTIONS)


class Context(Search):
    """See ``context``."""

    max_tokens: int | None = None
    profile: bool | None = None


class AnswerContext(Search):
    """See ``answer_context``."""

    rounds: int | None = None
    max_tokens: int | None = None


class Feedback(Body):
    """See ``feedback``."""

    search_id: str
    used: list[str]
    outcome: Outcome | None = None


class Tune(Body):
    """See ``tune``: ``into`` and ``decoder`` are names in the folder that the server keeps such scorers in."""

    into: str
    decoder: str | None = None
    scopes: list[Scope] | None = None


class Update(Body):
    """Fields of a note to be set: see ``update``. Here a null is a value."""

    content: str = ""
    title: str | None = None
    caption: str = ""
    context: str = ""
    keywords: list[str] = []
    tags: list[str] = []
    importance: float = 0.5
    confidence: float = 1.0
    kind: str = "episodic"
    valid_from: Time | None = None
    metadata: dict[str, JsonValue] = {}


class NewLink(Body):
    """See ``link``."""

    source: str
    target: str
    type: str = "RELATES"
    reason: str = ""


class Revert(Body):
    """See ``revert``."""

    version: int


class Quarantine(Body):
    """See ``quarantine``."""

    reason: str = ""


class Evolve(Body):
    """See ``evolve``; without ``wait`` it is ``evolve_later``."""

    wait: bool = True
    timeout: float | None = None


class Flush(Body):
    """See ``flush``."""

    timeout: float | None = None


class RetryJobs(Body):
    """See ``retry_jobs``."""

    id: str | None = None


class WriteSlots(Body):
    """See ``write_slots``."""

    anew: bool = False
    scorer: str | None = None


class Check(Body):
    """See ``check``."""

    repair: bool = False
