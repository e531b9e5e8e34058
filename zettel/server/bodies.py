"""Request bodies: the arguments of the ``AsyncMemory`` methods as JSON objects, under the same names.

A missing field has the method's default; an unknown one is an error. The memory itself checks values beyond their type,
such as times and kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, create_model

from zettel.model import EDITABLE, Event, Note, OnConflict, Outcome, Role, Scope
from zettel.scoring import Effort

MOST_QUESTIONS = 1_000
"""Questions of one batch: a server answers them in a few seconds."""

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""ISO 8601; without a zone it is UTC."""
Several = list[str] | str
"""Several names, or one."""


class Body(BaseModel):
    """A JSON object without unknown fields."""

    model_config = ConfigDict(extra="forbid")

    def given(self, *without: str) -> dict[str, Any]:
        """Return the fields of the request as arguments; null means the default."""
        fields = {name: getattr(self, name) for name in self.model_fields_set if name not in without}
        return {name: value for name, value in fields.items() if value is not None}


class Add(Event):
    """See ``add``."""

    on_conflict: OnConflict = "error"
    wait: bool = False


class AddMany(Body):
    """See ``add_many``."""

    events: list[Event]
    on_conflict: OnConflict = "error"
    wait: bool = False


class AddManyReport(Body):
    """See ``add_many_report``."""

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
    speaker: str | None = None
    role: Role | None = None
    filter: dict[str, JsonValue] | None = None
    min_score: float | None = None
    current_only: bool | None = None
    archived: bool | None = None
    quarantined: bool | None = None
    scorer: str | None = None
    effort: Effort | None = None
    explain: bool | None = None
    log: bool | None = None
    restore_decayed: bool | None = None


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
    """See ``tune``: ``into`` and ``decoder`` are names in the server's folder of tuned scorers."""

    into: str
    decoder: str | None = None
    scopes: list[Scope] | None = None


_editable: Mapping[str, Any] = {name: (Note.model_fields[name].annotation, None) for name in EDITABLE}
Update = create_model(
    "Update", __base__=Body, __doc__="The fields to set: see ``update``. Null is a value here.", **_editable
)


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


class Check(Body):
    """See ``check``."""

    repair: bool = False
