"""How answers go over HTTP as JSON, and come back as the values of ``zettel.model``, without loss.

Times are ISO 8601 in UTC. An answer is always a JSON object: a value as it is, or what several make up under a name.
The server encodes and the client decodes with the same ``Answer``; both are one call of pydantic's compiled code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, TypeVar, cast, get_type_hints

from pydantic import BaseModel, RootModel, ValidationError, create_model
from pydantic_core import to_json

from zettel import errors, model
from zettel.errors import InvalidInput, ServerError, ServerUnreachable, ZettelError

T = TypeVar("T")


class Answer(Generic[T]):
    """How one sort of answer goes: ``shape`` is what it looks like, as a pydantic model."""

    def __init__(self, shape: Callable[[], type[BaseModel]], name: str | None = None) -> None:
        self._shape = shape
        self._name = name

    @cached_property
    def shape(self) -> type[BaseModel]:
        """Made when first needed: some values live beside much code, which a client may do without."""
        return self._shape()

    def encode(self, value: T) -> bytes:
        """The value as JSON in UTF-8."""
        return encode(value if self._name is None else {self._name: value})

    def decode(self, body: bytes) -> T:
        """The inverse. Raises ``ServerUnreachable`` for what is no such answer: then no zettel server gave it."""
        found = _read(self.shape, body)
        if isinstance(found, RootModel):
            return cast(T, found.root)
        return cast(T, found if self._name is None else getattr(found, self._name))


class _Fields(Answer[T]):
    """A named tuple, as an object of its fields."""

    def __init__(self, kind: Callable[[], type[T]]) -> None:
        super().__init__(lambda: _object(cast("type[Any]", kind())))
        self._kind = kind

    def encode(self, value: T) -> bytes:
        return encode(cast(Any, value)._asdict())

    def decode(self, body: bytes) -> T:
        return self._kind()(**dict(_read(self.shape, body)))


class _Outcomes(Answer["list[model.Remembered]"]):
    """What became of events: a list of named tuples, each as an object of its fields."""

    def __init__(self) -> None:
        super().__init__(lambda: _shape("Remembered", {"events": (list[_object(model.Remembered)], ...)}))  # type: ignore[misc]

    def encode(self, value: list[model.Remembered]) -> bytes:
        return encode({"events": [one._asdict() for one in value]})

    def decode(self, body: bytes) -> list[model.Remembered]:
        found: Any = _read(self.shape, body)
        return [model.Remembered(**dict(one)) for one in found.events]


def _object(kind: type[Any]) -> type[BaseModel]:
    """A model with the fields of a named tuple."""
    hints, defaults = get_type_hints(kind), kind._field_defaults
    fields: dict[str, Any] = {name: (hint, defaults.get(name, ...)) for name, hint in hints.items()}
    return _shape(kind.__name__, fields)


def _shape(called: str, fields: dict[str, Any]) -> type[BaseModel]:
    return cast("type[BaseModel]", create_model(called, **fields))


def _under(name: str, kind: Any, called: str) -> Answer[Any]:
    return Answer(lambda: _shape(called, {name: (kind, ...)}), name)


def _gathered() -> type[BaseModel]:
    from zettel.search.gather import Gathered

    return Gathered


def _import_report() -> type[BaseModel]:
    from zettel.transcripts.report import ImportReport

    return ImportReport


def _export_report() -> type[BaseModel]:
    from zettel.exports.report import ExportReport

    return ExportReport


def _estimate() -> type[Any]:
    from zettel.llm.estimate import Estimate

    return Estimate


class Entry(BaseModel):
    """An event with its notes: a line of a dump."""

    event: model.EventRecord
    notes: tuple[model.Note, ...]


NoteOrEvent = RootModel[model.Note | model.EventRecord]
Stats = RootModel[dict[str, Any]]

ADDED: Answer[str] = _under("id", str, "Added")
ADDED_MANY: Answer[list[str]] = _under("ids", list[str], "AddedMany")
REMEMBERED: Answer[list[model.Remembered]] = _Outcomes()
EVENTS: Answer[list[model.EventRecord]] = _under("events", list[model.EventRecord], "Events")
DELETED: Answer[int] = _under("deleted", int, "Deleted")

HITS: Answer[list[model.Hit]] = _under("hits", list[model.Hit], "Hits")
HITS_MANY: Answer[list[list[model.Hit]]] = _under("hits", list[list[model.Hit]], "HitsOfEach")
CONTEXT: Answer[str] = _under("context", str, "Context")
GATHERED: Answer[Any] = Answer(_gathered)
SEARCHES: Answer[list[model.LoggedSearch]] = _under("searches", list[model.LoggedSearch], "Searches")
TUNED: Answer[model.Tuned] = _Fields(lambda: model.Tuned)

PAGE: Answer[model.Page] = Answer(lambda: model.Page)
NOTE: Answer[model.Note] = Answer(lambda: model.Note)
NOTE_OR_EVENT: Answer[model.Note | model.EventRecord] = Answer(lambda: NoteOrEvent)
NOTES: Answer[list[model.Note]] = _under("notes", list[model.Note], "Notes")
HISTORY: Answer[list[model.Revision]] = _under("revisions", list[model.Revision], "History")
LINK: Answer[model.Link] = Answer(lambda: model.Link)
LINKS: Answer[list[model.Link]] = _under("links", list[model.Link], "Links")
NEIGHBORS: Answer[list[model.Neighbor]] = _under("neighbors", list[model.Neighbor], "Neighbors")
GRAPH: Answer[model.Graph] = Answer(lambda: model.Graph)
TERMS: Answer[list[model.Term]] = _under("terms", list[model.Term], "Terms")
CONFLICTS: Answer[list[model.Conflict]] = _under("conflicts", list[model.Conflict], "Conflicts")

EVOLVED: Answer[model.Evolved] = _Fields(lambda: model.Evolved)
QUEUED: Answer[bool] = _under("queued", bool, "Queued")
JOBS: Answer[list[model.Job]] = _under("jobs", list[model.Job], "Jobs")
JOB: Answer[model.Job] = Answer(lambda: model.Job)
RETRIED: Answer[int] = _under("retried", int, "Retried")
STATS: Answer[dict[str, Any]] = Answer(lambda: Stats)
SCOPES: Answer[list[model.Scope]] = _under("scopes", list[model.Scope], "Scopes")
EMBEDDED: Answer[int] = _under("embedded", int, "Embedded")
WRITTEN: Answer[int] = _under("written", int, "Written")
PROBLEMS: Answer[list[str]] = _under("problems", list[str], "Problems")

IMPORTED: Answer[Any] = Answer(_import_report)
ESTIMATE: Answer[Any] = _Fields(_estimate)
EXPORTED: Answer[Any] = Answer(_export_report)
"""Goes in the header ``EXPORT_HEADER`` of an export, whose body is what was written."""
EXPORT_HEADER = "Zettel-Report"
ENTRY: Answer[Entry] = Answer(lambda: Entry)
"""One line of a dump."""


def encode(value: Any) -> bytes:
    """Any value or mapping as JSON in UTF-8; what JSON cannot say is told as NaN or Infinity, for the server to refuse.

    Raises ``InvalidInput`` for what is no JSON.
    """
    try:
        return to_json(value, inf_nan_mode="constants")
    except ValueError as error:  # a lone surrogate, which a payload may hold and JSON can say, but not in UTF-8
        if "surrogates" not in str(error):
            raise InvalidInput(f"cannot be sent as JSON: {error}") from None
    try:
        return json.dumps(value, default=_plain).encode("ascii")
    except TypeError as error:
        raise InvalidInput(f"cannot be sent as JSON: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} is not JSON")


def _read(shape: type[BaseModel], body: bytes) -> BaseModel:
    try:
        return shape.model_validate_json(body)
    except ValidationError as error:
        complaint = error.errors(include_url=False, include_context=False, include_input=False)[0]
    try:  # pydantic's reader knows no lone surrogates
        return shape.model_validate(json.loads(body))
    except (ValueError, RecursionError):
        where = ".".join(map(str, complaint["loc"][:4])) or "answer"
        raise ServerUnreachable(f"that is no answer of a zettel server: {where}: {complaint['msg']}") from None


# --------------------------------------------------------------------------------------------------------------- errors


class ErrorDetail(BaseModel):
    """Which class of ``zettel.errors`` it is, and what it says."""

    type: str
    message: str


class ErrorBody(BaseModel):
    """What every answer with a status of 400 or more looks like."""

    error: ErrorDetail


STATUS: Mapping[type[ZettelError], int] = {
    errors.BadRequest: 400,
    errors.KeyRefused: 401,
    errors.NotAllowed: 403,
    errors.NotFound: 404,
    errors.TooSlow: 408,
    errors.IdentityConflict: 409,
    errors.WasDeleted: 410,
    errors.TooLarge: 413,
    errors.InvalidInput: 422,
    errors.TooManyRequests: 429,
    errors.MissingExtra: 501,
    errors.ModelError: 502,
    errors.ModelUnavailable: 503,
    errors.BudgetSpent: 503,
    errors.EmbedderUnavailable: 503,
    errors.StoreBusy: 503,
    errors.StoreReadOnly: 503,
    errors.StoreUnreachable: 503,
    errors.MemoryClosed: 503,
    errors.RunnerUnavailable: 503,
    errors.ServerBusy: 503,
    errors.FlushTimeout: 504,
    errors.StoreFull: 507,
    errors.ZettelError: 500,
}
"""By the nearest class that stands here."""


def status_of(error: ZettelError) -> int:
    """The HTTP status of an error."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def error_body(error: ZettelError) -> bytes:
    """The body that tells an error."""
    return encode({"error": {"type": type(error).__name__, "message": " ".join(str(error).split())}})


def error_of(status: int, body: bytes, retry_after: float | None = None) -> ZettelError:
    """The error that an answer tells, of its own class; what no zettel server says becomes a ``ServerError``."""
    try:
        told = cast(ErrorBody, _read(ErrorBody, body)).error
    except ServerUnreachable:
        return ServerError(f"the server answered with status {status} and no reason: is it a zettel server?")
    kind = getattr(errors, told.type, None)
    if not (isinstance(kind, type) and issubclass(kind, ZettelError)):
        return ServerError(f"{told.type}: {told.message}")
    error: ZettelError = kind.__new__(kind)
    ZettelError.__init__(error, told.message)
    if isinstance(error, (errors.ServerBusy, errors.ModelUnavailable)):
        error.retry_after = retry_after
    return error
