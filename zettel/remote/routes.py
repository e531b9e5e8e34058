"""The HTTP route of each operation: method, path, the shape of the answer, and the right that it requires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from zettel.remote import wire
from zettel.remote.wire import ResponseType

Right = Literal["read", "write", "admin"]
"""``read`` reads and searches. ``write`` also adds and changes; all of it can be reverted. ``admin`` also deletes and
maintains the whole store. Each right includes the previous ones."""
Section = Literal["events", "files", "notes", "search", "upkeep"]
"""A section of the OpenAPI description."""


class Route(NamedTuple):
    """How to request one operation. Arguments named in ``path`` go there, the others into the query or the body.

    ``answer`` is None for an empty answer. ``flattened`` names an argument whose items are sent as arguments.
    """

    section: Section
    right: Right
    verb: str
    path: str
    answer: ResponseType[Any] | None
    flattened: str | None = None


MOST_EVENTS = 500
"""Events of one request."""
MOST_QUESTIONS = 50
"""Questions of one request; a client splits longer lists."""
ROUTES: Mapping[str, Route] = {
    "add_many_report": Route("events", "write", "POST", "/v1/events/report", wire.REMEMBERED),
    "add_fact": Route("events", "write", "POST", "/v1/facts", wire.ADDED),
    "events": Route("events", "read", "GET", "/v1/events", wire.EVENTS),
    "search_many": Route("search", "read", "POST", "/v1/search/batch", wire.HITS_MANY),
    "context": Route("search", "read", "POST", "/v1/context", wire.CONTEXT, "search"),
    "answer_context": Route("search", "read", "POST", "/v1/answer-context", wire.GATHERED, "search"),
    "session_context": Route("search", "read", "GET", "/v1/session-context", wire.CONTEXT),
    "query": Route("search", "read", "POST", "/v1/query", wire.QUERIED),
    "examples": Route("search", "read", "POST", "/v1/examples", wire.EXAMPLES),
    "feedback": Route("search", "write", "POST", "/v1/feedback", None),
    "searches": Route("search", "read", "GET", "/v1/searches", wire.SEARCHES),
    "tune": Route("search", "admin", "POST", "/v1/tune", wire.TUNED),
    "get": Route("notes", "read", "GET", "/v1/notes/{id}", wire.NOTE_OR_EVENT),
    "list": Route("notes", "read", "GET", "/v1/notes", wire.PAGE),
    "links": Route("notes", "read", "GET", "/v1/notes/{id}/links", wire.LINKS),
    "neighbors": Route("notes", "read", "GET", "/v1/notes/{id}/neighbors", wire.NEIGHBORS),
    "graph": Route("notes", "read", "GET", "/v1/graph", wire.GRAPH),
    "conflicts": Route("notes", "read", "GET", "/v1/conflicts", wire.CONFLICTS),
    "terms": Route("notes", "read", "GET", "/v1/notes/{id}/terms", wire.TERMS),
    "entities": Route("notes", "read", "GET", "/v1/entities", wire.ENTITIES),
    "entity": Route("notes", "read", "GET", "/v1/entities/details", wire.ENTITY),
    "merge_entities": Route("notes", "write", "POST", "/v1/entities/merge", wire.NOTE),
    "split_entity": Route("notes", "write", "POST", "/v1/entities/split", wire.NOTE),
    "history": Route("notes", "read", "GET", "/v1/notes/{id}/history", wire.HISTORY),
    "update": Route("notes", "write", "PATCH", "/v1/notes/{id}", wire.NOTE, "fields"),
    "link": Route("notes", "write", "POST", "/v1/links", wire.LINK),
    "unlink": Route("notes", "write", "DELETE", "/v1/links", wire.LINK),
    "resolve": Route("notes", "write", "POST", "/v1/conflicts/resolve", wire.LINK),
    "revert": Route("notes", "write", "POST", "/v1/notes/{id}/revert", wire.NOTE),
    "revert_effects": Route("notes", "write", "POST", "/v1/notes/{id}/revert-effects", wire.NOTES),
    "archive": Route("notes", "write", "POST", "/v1/notes/{id}/archive", wire.NOTE),
    "unarchive": Route("notes", "write", "POST", "/v1/notes/{id}/unarchive", wire.NOTE),
    "review": Route("notes", "read", "GET", "/v1/review", wire.PAGE),
    "confirm": Route("notes", "write", "POST", "/v1/notes/{id}/confirm", wire.NOTES),
    "quarantine": Route("notes", "write", "POST", "/v1/notes/{id}/quarantine", wire.NOTES),
    "release": Route("notes", "write", "POST", "/v1/notes/{id}/release", wire.NOTES),
    "delete": Route("notes", "admin", "DELETE", "/v1/notes/{id}", wire.DELETED),
    "retention": Route("upkeep", "read", "GET", "/v1/retention", wire.RETENTION),
    "set_retention": Route("upkeep", "admin", "POST", "/v1/retention", wire.RETENTION_SET),
    "remove_retention": Route("upkeep", "admin", "DELETE", "/v1/retention", wire.REMOVED),
    "sweep": Route("upkeep", "admin", "POST", "/v1/sweep", wire.SWEPT),
    "delete_scope": Route("upkeep", "admin", "DELETE", "/v1/scope", wire.DELETED),
    "import_transcript": Route("files", "write", "POST", "/v1/import", wire.IMPORTED),
    "estimate_import": Route("files", "write", "POST", "/v1/import/estimate", wire.ESTIMATE),
    "export": Route("files", "read", "GET", "/v1/export", wire.EXPORTED),
    "dump": Route("files", "read", "GET", "/v1/dump", wire.ENTRY),
    "scopes": Route("upkeep", "read", "GET", "/v1/scopes", wire.SCOPES),
    "flush": Route("upkeep", "write", "POST", "/v1/flush", None),
    "evolve": Route("upkeep", "write", "POST", "/v1/evolve", wire.EVOLVED),
    "evolve_later": Route("upkeep", "write", "POST", "/v1/evolve", wire.QUEUED),
    "jobs": Route("upkeep", "read", "GET", "/v1/jobs", wire.JOBS),
    "retry_jobs": Route("upkeep", "write", "POST", "/v1/jobs/retry", wire.RETRIED),
    "cancel_job": Route("upkeep", "admin", "POST", "/v1/jobs/{id}/cancel", wire.JOB),
    "reembed": Route("upkeep", "admin", "POST", "/v1/reembed", wire.EMBEDDED),
    "stats": Route("upkeep", "read", "GET", "/v1/stats", wire.STATS),
    "usage": Route("upkeep", "read", "GET", "/v1/usage", wire.USAGE),
    "check": Route("upkeep", "admin", "POST", "/v1/check", wire.PROBLEMS),
}
COMPOSED: Mapping[str, Route] = {
    "add": Route("events", "write", "POST", "/v1/events", wire.ADDED),
    "add_many": Route("events", "write", "POST", "/v1/events/batch", wire.ADDED_MANY),
    "add_messages": Route("events", "write", "POST", "/v1/events/messages", wire.ADDED_MANY),
    "search": Route("search", "read", "POST", "/v1/search", wire.HITS),
}
"""Routes of methods that ``AsyncMemory`` composes of operations. Only other clients request them."""
DELETE_EVENTS = Route("events", "admin", "DELETE", "/v1/events", wire.DELETED)
"""``delete`` by source or session."""
QUARANTINE_PRINCIPAL = Route("notes", "admin", "POST", "/v1/principals/quarantine", wire.NOTES)
"""``quarantine`` of a principal."""
RELEASE_PRINCIPAL = Route("notes", "admin", "POST", "/v1/principals/release", wire.NOTES)
"""``release`` of a principal."""
KEY_RIGHT = Route("upkeep", "read", "GET", "/v1/right", wire.RIGHT)
"""The right of the request's key in a scope."""
OF_PRINCIPALS = {"quarantine": QUARANTINE_PRINCIPAL, "release": RELEASE_PRINCIPAL}
"""The routes of operations without an id."""
