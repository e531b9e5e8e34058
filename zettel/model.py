"""The words of zettel as values: what a memory holds and what it answers.

All of them are pydantic models; those that are never changed in place are frozen. Times are timezone-aware and kept
in UTC; a naive time is taken as UTC.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from enum import Enum
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

MAX_CONTENT_BYTES = 1_000_000
"""Longest content of one event, in UTF-8 bytes: beyond it, a file was pasted where a message belongs."""

MAX_NESTING = 100
"""Deepest list or object inside a payload or metadata: readers of JSON give up not far beyond."""
MAX_DIGITS = 4000
"""Longest whole number in a payload or metadata: Python reads no number of more than 4,300 digits."""

TIME_MIN = -(2**62)
"""Stands for "always was" where a time in microseconds must not be null."""
TIME_MAX = 2**62
"""Stands for "never ends" where a time in microseconds must not be null."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970-01-01 UTC, exactly; a naive ``moment`` is taken as UTC."""
    return (in_utc(moment) - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The inverse of :func:`to_micros`."""
    return _EPOCH + timedelta(microseconds=micros)


def in_utc(moment: datetime) -> datetime:
    """The same moment in UTC; a naive one is taken as UTC."""
    if moment.tzinfo is timezone.utc:
        return moment
    if moment.tzinfo is None:
        return moment.replace(tzinfo=timezone.utc)
    try:
        return moment.astimezone(timezone.utc)
    except OverflowError:  # year 1 or 9999 shifted out of the calendar
        raise ValueError(f"{moment.isoformat()} lies outside the calendar in UTC") from None


def in_own_zone(moment: datetime) -> datetime:
    """The moment as it is, a naive one in UTC. Raises ``ValueError`` where UTC has no such moment."""
    utc = in_utc(moment)
    return utc if moment.tzinfo is None else moment


def storable(text: str) -> str:
    """The text, or ``ValueError`` if it holds what no store can keep."""
    if "\x00" in text:
        raise ValueError("holds a NUL character")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"holds a lone surrogate at character {error.start}") from None
    return text


_NO_YEAR = 100_000_000
"""Seconds since 1970 that any number has which is meant: smaller ones are years and days, such as 20240501."""


def _no_bare_number(moment: Any) -> Any:
    # Read as seconds since 1970, "2024" and 20240501 would be moments of that year.
    is_small = isinstance(moment, (int, float)) and abs(moment) < _NO_YEAR
    is_written = isinstance(moment, str) and moment.strip().lstrip("+-").replace(".", "", 1).isdecimal()
    if is_small or is_written:
        raise ValueError(f"{moment!r} is a number, not a time: use ISO 8601 such as 2024-05-01T09:00Z")
    return moment


def _as_source(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) else value


def _short(name: str) -> str:
    if len(name) > MAX_NAME:
        raise ValueError(f"holds {len(name):,} characters, and a name at most {MAX_NAME:,}")
    return name


MAX_NAME = 1000
"""Characters of what things are looked up by as a whole: more than any index of names takes would be 8,000 bytes."""

Text = Annotated[str, AfterValidator(storable)]
Name = Annotated[Text, AfterValidator(_short)]
Moment = Annotated[datetime, BeforeValidator(_no_bare_number), AfterValidator(in_utc)]
LocalMoment = Annotated[datetime, BeforeValidator(_no_bare_number), AfterValidator(in_own_zone)]
"""A moment whose day counts too, which is another one in another zone."""


class Kind(str, Enum):
    """What sort of note it is."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"
    INSIGHT = "insight"


class LinkType(str, Enum):
    """How one note stands to another."""

    RELATES = "RELATES"
    MENTIONS = "MENTIONS"
    SUPERSEDES = "SUPERSEDES"
    CONTRADICTS = "CONTRADICTS"
    DERIVED_FROM = "DERIVED_FROM"


class JobKind(str, Enum):
    """What durable work there is."""

    EMBED = "embed"
    ANNOTATE = "annotate"
    LINK = "link"
    EVOLVE = "evolve"
    MERGE = "merge"
    REFLECT = "reflect"
    DECAY = "decay"
    REEMBED = "reembed"
    PURGE = "purge"


SIDE_BY_SIDE = frozenset({JobKind.EMBED, JobKind.ANNOTATE})
"""Jobs of one scope that may be done in any order, and at the same time: each looks only at its own notes and at those
before them as they arrived. The others build on what was done before."""


class JobState(str, Enum):
    """Where a job stands; a job that is done is no longer there."""

    QUEUED = "queued"
    RUNNING = "running"
    FAILED = "failed"


class Frozen(BaseModel):
    """A value: never changed in place, and strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Scope(Frozen):
    """Whose memory it is. Matched exactly: a part left out is a part of the name, not a wildcard."""

    tenant: Text | None = None
    user: Text | None = None
    agent: Text | None = None

    @cached_property
    def key(self) -> str:
        """An opaque name for stores: 32 hexadecimal digits, equal only for equal scopes."""
        parts = json.dumps([self.tenant, self.user, self.agent])
        return hashlib.blake2b(parts.encode(), digest_size=16, person=b"zettel.scope").hexdigest()

    def __str__(self) -> str:
        named = [f"{name}={part!r}" for name, part in self.model_dump().items() if part is not None]
        return ", ".join(named) or "the default scope"


class Source(Frozen):
    """Where an event was read: a file and a place in it."""

    file: Name
    position: Text | None = None

    def __str__(self) -> str:
        return self.file if self.position is None else f"{self.file}:{self.position}"


class Event(Frozen):
    """What happened, verbatim.

    ``id`` is the caller's own key for it, if there is one. ``content`` or ``payload`` (any JSON value, given back
    exactly) must say something. ``occurred_at`` is when it happened; a naive time is taken as UTC, and None means
    that nobody knows: it is never replaced by the time of import.
    """

    content: Text = ""
    id: Text | None = None
    title: Text | None = None
    role: Text | None = None
    occurred_at: Moment | None = None
    session: Name | None = None
    source: Annotated[Source | None, BeforeValidator(_as_source)] = None
    payload: JsonValue = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


def said_by(event: Event) -> str:
    """What its notes hold: the content, or of a payload without any the JSON it is, so that its values can be asked
    for."""
    if event.content.strip():
        return event.content
    try:
        return storable(json.dumps(event.payload, ensure_ascii=False))
    except ValueError:  # lone surrogates: they can be told escaped
        return json.dumps(event.payload)


class EventRecord(Event):
    """An event as the store keeps it: with its own id, its place in the order of arrival and when it was recorded."""

    event_id: str
    seq: int
    recorded_at: Moment
    revises: str | None = None
    """The ``event_id`` that this one replaces, when an import brought other content for the same identity."""


class Note(Frozen):
    """The zettel: a piece of memory that is found, linked and improved.

    ``event_ids`` is never empty. A long event has several notes, ``part`` 0 (the head) to ``parts`` - 1.
    ``valid_to`` is derived from SUPERSEDES links whenever the note is read. ``authored`` names the fields that a model
    or a person wrote, which are searched together with the content; the others were extracted from it. An ``archived``
    note is kept, with its links and its history, but no search and no list shows it unless asked to; ``merged_into``
    is the note that speaks for it since, ``faded`` tells that nobody had needed it, and ``quarantined`` why somebody
    did not want it to take part any more. ``trust`` follows from who said it and from ``flags``: what in it looks like
    instructions to a model.
    """

    id: str
    kind: Kind = Kind.EPISODIC
    content: str
    title: str | None = None
    caption: str = ""
    context: str = ""
    keywords: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    importance: float = Field(default=0.5, ge=0, le=1)
    confidence: float = Field(default=1.0, ge=0, le=1)
    event_ids: tuple[str, ...] = Field(min_length=1)
    part: int = 0
    parts: int = 1
    role: str | None = None
    session: str | None = None
    occurred_at: Moment | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    authored: tuple[str, ...] = ()
    archived: bool = False
    merged_into: str | None = None
    faded: bool = False
    quarantined: Text | None = None
    flags: tuple[str, ...] = ()
    trust: float = Field(default=1.0, ge=0, le=1)
    seq: int
    recorded_at: Moment
    version: int = 1


EDITABLE = ("content", "title", "caption", "context", "keywords", "tags", "importance", "confidence", "kind",
            "valid_from", "metadata")  # fmt: skip
"""The fields of a note that a Revision may change."""


class Term(Frozen):
    """An index entry: a keyword, a tag, or a named thing. ``key`` is its normal form, ``notes`` how many hold it."""

    key: str
    text: str
    kind: str
    notes: int


class Link(Frozen):
    """A typed, weighted, directed link between two notes, with the reason it was made for."""

    source: str
    target: str
    type: LinkType
    weight: float = 1.0
    reason: str = ""
    recorded_at: Moment


class Cause(Frozen):
    """Who changed a note: a person (``by="user"``), or a job with the note, model and prompt behind it, and the reason
    that it gave."""

    by: str
    note: str | None = None
    model: str | None = None
    prompt: str | None = None
    reason: str = ""


class Input(NamedTuple):
    """A note that stood before whoever decided a change, in the version it then had."""

    note: str
    version: int


class Revision(Frozen):
    """One change to a note.

    ``change`` holds the fields that were set, ``links`` those that were added, ``undoes`` the versions that this one
    took back. ``extracted`` names those of the set fields that were computed from the content and not written by a
    model or a person. ``live`` tells whether the change still counts.
    """

    note: str
    version: int
    seq: int
    recorded_at: Moment
    change: dict[str, JsonValue] = Field(default_factory=dict)
    links: tuple[Link, ...] = ()
    undoes: tuple[int, ...] = ()
    extracted: tuple[str, ...] = ()
    cause: Cause
    inputs: tuple[Input, ...] = ()
    live: bool = True


class Job(Frozen):
    """Durable work. Unique per (scope, kind, note, version); a lease with a token tells who is at it."""

    id: str
    scope: Scope
    kind: JobKind
    note: str | None = None
    version: int = 0
    priority: int = 0
    run_at: Moment
    attempts: int = 0
    state: JobState = JobState.QUEUED
    token: str | None = None
    error: str | None = None


class ModelUse(Frozen):
    """What a language model has cost on one day (UTC): calls, their tokens, and US dollars as far as prices are known.

    ``hits`` are questions that a kept answer served.
    """

    day: date
    model: str
    calls: int = 0
    hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0


class NoteUse(NamedTuple):
    """What feedback says of a note: how many searches it was of use for, and how many of these ended well or badly.

    ``since`` is when it last was or, of a note that never was, when it was recorded.
    """

    since: datetime
    times: int = 0
    successes: int = 0
    failures: int = 0


class Proved(NamedTuple):
    """How a note proved by the log of searches: of those that something was told of, how many had it among their hits,
    and how many of these it was ``good`` for: of use, and not ending in a failure."""

    shown: int
    good: int


class Tuned(NamedTuple):
    """What tuning a scorer brought.

    ``searches`` were learned from, in ``useful`` of which something was of use, ``uses`` notes in all. ``before`` and
    ``after`` are the gain of these notes by the order of the scorer as it was and as tuned, on searches held back, and
    ``error`` the standard error of the difference: see ``zettel.scoring.tuning.judge``. Only if it is better by more
    than chance is it ``accepted``, and written.
    """

    accepted: bool
    searches: int
    useful: int
    uses: int
    before: float
    after: float
    error: float


Outcome = Literal["success", "failure"]
"""How what a search was for ended."""


class LoggedHit(Frozen):
    """A hit as it was given, in the version that the note then had; ``features`` are values times weights."""

    note: str
    version: int
    score: float
    features: dict[str, float]


class LoggedSearch(Frozen):
    """A search that found something, in the log: its question, its hits from the best on, and what was told of them.

    ``used`` are the notes that were of use, None before anybody said so.
    """

    id: str
    question: str
    asked_at: Moment
    scorer: str
    hits: tuple[LoggedHit, ...]
    used: tuple[str, ...] | None = None
    outcome: Outcome | None = None


class Step(Frozen):
    """One step of the path that led to a hit: from what the question names or from a note, over a link, to the next.

    ``name`` is for people; ``note`` is the id of the note that was passed.
    """

    kind: str
    name: str
    over: str = ""
    note: str | None = None


class Why(Frozen):
    """How a hit came about.

    ``seeds`` are the ways it entered the pool, ``features`` each feature's value times its weight, ``near`` the local
    score, ``walk`` the share of the walk that ended on the note, ``path`` the strongest way the walk took there,
    ``time`` what its validity has to do with it, ``strength`` how faint the note is if that lowered its score.
    """

    scorer: str
    seeds: tuple[str, ...] = ()
    features: dict[str, float] = Field(default_factory=dict)
    near: float = 0.0
    walk: float = 0.0
    path: tuple[Step, ...] = ()
    time: str = ""
    strength: float | None = None
    superseded_by: str | None = None


class Hit(Frozen):
    """A note that was found; ``score`` is calibrated: 0 (surely not) to 1 (surely an answer).

    ``search_id`` is what ``feedback`` calls the search by, None if it was not logged.
    """

    note: Note
    score: float
    why: Why
    search_id: str | None = None


class Page(Frozen):
    """Some notes of a scope in the order of arrival; ``cursor`` asks for the next ones, None: these were the last."""

    notes: tuple[Note, ...]
    cursor: str | None


class Evolved(NamedTuple):
    """What evolving changed: notes that were revised, notes that were merged into others, new insights, and notes that
    had faded and were archived."""

    revised: int
    merged: int
    insights: int
    archived: int = 0


class Graph(Frozen):
    """Some notes and all links between them; ``cursor`` asks for the next notes, None: these were the last."""

    notes: tuple[Note, ...]
    links: tuple[Link, ...]
    cursor: str | None = None


class Conflict(Frozen):
    """Two notes that say otherwise of the same, and nobody knows which is right: ``note``, which arrived later or is of
    a later time, says so of ``other``."""

    note: Note
    other: Note
    reason: str
    recorded_at: Moment


class Neighbor(Frozen):
    """A note that can be reached over links, in how many hops, and the last link on the shortest way."""

    note: Note
    hops: int
    link: Link


OnConflict = Literal["error", "skip", "revise"]
"""What to do with other content for an identity that is there already."""
Status = Literal["added", "existing", "revised", "skipped", "deleted"]


class Remembered(NamedTuple):
    """What became of one event: the id of its head note (None if it was deleted here before), and how.

    ``flagged``: it was written, and something in it looks like instructions to a model.
    """

    id: str | None
    status: Status
    flagged: bool = False


def as_metadata_pairs(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Metadata as flat ``key=value`` strings, the form that filters are matched on in every store."""
    return tuple(
        f"{key}={value if isinstance(value, str) else json.dumps(value, sort_keys=True)}"
        for key, value in sorted(metadata.items())
    )
