"""The wire format: answers as JSON and back to the values of ``zettel.model``, without loss.

Times are ISO 8601 in UTC. An answer is always a JSON object: a value itself, or a list under a name.
The server encodes and the client decodes with the same ``ResponseType``; each is one call into pydantic.
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


class ResponseType(Generic[T]):
    """Encodes and decodes one kind of answer; ``shape`` is its pydantic model."""

    def __init__(self, shape: Callable[[], type[BaseModel]], name: str | None = None) -> None:
        self._shape = shape
        self._name = name

    @cached_property
    def shape(self) -> type[BaseModel]:
        """The pydantic model, built on first use: some values are expensive to import."""
        return self._shape()

    def encode(self, value: T) -> bytes:
        """Return the value as JSON in UTF-8."""
        return encode(value if self._name is None else {self._name: value})

    def decode(self, body: bytes) -> T:
        """Return the value of a JSON answer. Raises ``ServerUnreachable`` if a zettel server cannot have sent it."""
        answer = _read(self.shape, body)
        if isinstance(answer, RootModel):
            return cast(T, answer.root)
        return cast(T, answer if self._name is None else getattr(answer, self._name))


class _Fields(ResponseType[T]):
    """A named tuple, as an object of its fields."""

    def __init__(self, kind: Callable[[], type[T]]) -> None:
        super().__init__(lambda: _object(cast("type[Any]", kind())))
        self._kind = kind

    def encode(self, value: T) -> bytes:
        return encode(cast(Any, value)._asdict())

    def decode(self, body: bytes) -> T:
        return self._kind()(**dict(_read(self.shape, body)))


class _Outcomes(ResponseType["list[model.Remembered]"]):
    """The outcomes of events: a list of named tuples, each as an object of its fields."""

    def __init__(self) -> None:
        super().__init__(lambda: _shape("Remembered", {"events": (list[_object(model.Remembered)], ...)}))  # type: ignore[misc]

    def encode(self, value: list[model.Remembered]) -> bytes:
        return encode({"events": [outcome._asdict() for outcome in value]})

    def decode(self, body: bytes) -> list[model.Remembered]:
        answer: Any = _read(self.shape, body)
        return [model.Remembered(**dict(outcome)) for outcome in answer.events]


def _object(kind: type[Any]) -> type[BaseModel]:
    """Return a model with the fields of a named tuple."""
    hints, defaults = get_type_hints(kind), kind._field_defaults
    fields: dict[str, Any] = {name: (hint, defaults.get(name, ...)) for name, hint in hints.items()}
    return _shape(kind.__name__, fields)


def _shape(called: str, fields: dict[str, Any]) -> type[BaseModel]:
    return cast("type[BaseModel]", create_model(called, **fields))


def _under(name: str, kind: Any, called: str) -> ResponseType[Any]:
    return ResponseType(lambda: _shape(called, {name: (kind, ...)}), name)


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
    from zettel.model import Estimate

    return Estimate


class Entry(BaseModel):
    """An event with its notes: a line of a dump."""

    event: model.EventRecord
    notes: tuple[model.Note, ...]


NoteOrEvent = RootModel[model.Note | model.EventRecord]
Stats = RootModel[dict[str, Any]]

ADDED: ResponseType[str] = _under("id", str, "Added")
ADDED_MANY: ResponseType[list[str]] = _under("ids", list[str], "AddedMany")
REMEMBERED: ResponseType[list[model.Remembered]] = _Outcomes()
EVENTS: ResponseType[list[model.EventRecord]] = _under("events", list[model.EventRecord], "Events")
DELETED: ResponseType[int] = _under("deleted", int, "Deleted")

HITS: ResponseType[list[model.Hit]] = _under("hits", list[model.Hit], "Hits")
HITS_MANY: ResponseType[list[list[model.Hit]]] = _under("hits", list[list[model.Hit]], "HitsOfEach")
CONTEXT: ResponseType[str] = _under("context", str, "Context")
EXAMPLES: ResponseType[list[model.Example]] = _under("examples", list[model.Example], "Examples")
QUERIED: ResponseType[model.QueryResult] = ResponseType(lambda: model.QueryResult)
GATHERED: ResponseType[Any] = ResponseType(_gathered)
SEARCHES: ResponseType[list[model.LoggedSearch]] = _under("searches", list[model.LoggedSearch], "Searches")
TUNED: ResponseType[model.Tuned] = _Fields(lambda: model.Tuned)

PAGE: ResponseType[model.Page] = ResponseType(lambda: model.Page)
NOTE: ResponseType[model.Note] = ResponseType(lambda: model.Note)
NOTE_OR_EVENT: ResponseType[model.Note | model.EventRecord] = ResponseType(lambda: NoteOrEvent)
NOTES: ResponseType[list[model.Note]] = _under("notes", list[model.Note], "Notes")
HISTORY: ResponseType[list[model.Revision]] = _under("revisions", list[model.Revision], "History")
LINK: ResponseType[model.Link] = ResponseType(lambda: model.Link)
LINKS: ResponseType[list[model.Link]] = _under("links", list[model.Link], "Links")
NEIGHBORS: ResponseType[list[model.Neighbor]] = _under("neighbors", list[model.Neighbor], "Neighbors")
GRAPH: ResponseType[model.Graph] = ResponseType(lambda: model.Graph)
TERMS: ResponseType[list[model.Term]] = _under("terms", list[model.Term], "Terms")
ENTITIES: ResponseType[model.EntityPage] = ResponseType(lambda: model.EntityPage)
ENTITY: ResponseType[model.EntityDetails] = ResponseType(lambda: model.EntityDetails)
CONFLICTS: ResponseType[list[model.Conflict]] = _under("conflicts", list[model.Conflict], "Conflicts")

EVOLVED: ResponseType[model.Evolved] = _Fields(lambda: model.Evolved)
QUEUED: ResponseType[bool] = _under("queued", bool, "Queued")
JOBS: ResponseType[list[model.Job]] = _under("jobs", list[model.Job], "Jobs")
JOB: ResponseType[model.Job] = ResponseType(lambda: model.Job)
RETRIED: ResponseType[int] = _under("retried", int, "Retried")
STATS: ResponseType[dict[str, Any]] = ResponseType(lambda: Stats)
USAGE: ResponseType[model.Usage] = ResponseType(lambda: model.Usage)
SCOPES: ResponseType[list[model.Scope]] = _under("scopes", list[model.Scope], "Scopes")
RIGHT: ResponseType[str] = _under("right", str, "KeyRight")
RETENTION: ResponseType[model.Retention | None] = _under("retention", model.Retention | None, "ScopeRetention")
RETENTION_SET: ResponseType[model.Retention] = ResponseType(lambda: model.Retention)
REMOVED: ResponseType[bool] = _under("removed", bool, "Removed")
SWEPT: ResponseType[model.Swept] = _Fields(lambda: model.Swept)
EMBEDDED: ResponseType[int] = _under("embedded", int, "Embedded")
PROBLEMS: ResponseType[list[str]] = _under("problems", list[str], "Problems")

IMPORTED: ResponseType[Any] = ResponseType(_import_report)
ESTIMATE: ResponseType[Any] = _Fields(_estimate)
EXPORTED: ResponseType[Any] = ResponseType(_export_report)
"""Sent in the header ``EXPORT_HEADER`` of an export; the body is the exported file."""
EXPORT_HEADER = "Zettel-Report"
ENTRY: ResponseType[Entry] = ResponseType(lambda: Entry)
"""One line of a dump."""


def encode(value: Any) -> bytes:
    """Return a value as JSON in UTF-8. NaN and Infinity are written as such, and the server rejects them.

    Raises ``InvalidInput`` for a value that JSON cannot express.
    """
    try:
        return to_json(value, inf_nan_mode="constants")
    except ValueError as error:  # a payload may contain a lone surrogate: JSON can escape it, UTF-8 cannot encode it
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
    try:  # pydantic's parser rejects lone surrogates
        return shape.model_validate(json.loads(body))
    except (ValueError, RecursionError):
        where = ".".join(map(str, complaint["loc"][:4])) or "answer"
        raise ServerUnreachable(f"the answer is not from a zettel server: {where}: {complaint['msg']}") from None


# --------------------------------------------------------------------------------------------------------------- errors


class ErrorDetail(BaseModel):
    """The class of an error in ``zettel.errors``, and its message."""

    type: str
    message: str


class ErrorBody(BaseModel):
    """The body of every answer with a status of 400 or more."""

    error: ErrorDetail


STATUS: Mapping[type[ZettelError], int] = {
    errors.BadRequest: 400,
    errors.InvalidKey: 401,
    errors.PermissionDenied: 403,
    errors.NotFound: 404,
    errors.RequestTimeout: 408,
    errors.IdentityConflict: 409,
    errors.EventDeleted: 410,
    errors.TooLarge: 413,
    errors.InvalidInput: 422,
    errors.TooManyRequests: 429,
    errors.MissingExtra: 501,
    errors.ModelError: 502,
    errors.ModelUnavailable: 503,
    errors.BudgetSpent: 503,
    errors.EmbedderUnavailable: 503,
    errors.AuditError: 503,
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
"""The HTTP status of an error is that of its nearest base class in this table."""


def status_of(error: ZettelError) -> int:
    """Return the HTTP status of an error."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def error_body(error: ZettelError) -> bytes:
    """Return the body of an error answer."""
    return encode({"error": {"type": type(error).__name__, "message": " ".join(str(error).split())}})


def error_of(status: int, body: bytes, retry_after: float | None = None) -> ZettelError:
    """Return the error of an answer in its own class, or a ``ServerError`` if a zettel server did not send it."""
    try:
        detail = cast(ErrorBody, _read(ErrorBody, body)).error
    except ServerUnreachable:
        return ServerError(f"the server answered with status {status} and no reason: is it a zettel server?")
    kind = getattr(errors, detail.type, None)
    if not (isinstance(kind, type) and issubclass(kind, ZettelError)):
        return ServerError(f"{detail.type}: {detail.message}")
    error: ZettelError = kind.__new__(kind)
    ZettelError.__init__(error, detail.message)
    if isinstance(error, (errors.ServerBusy, errors.ModelUnavailable)):
        error.retry_after = retry_after
    return error
