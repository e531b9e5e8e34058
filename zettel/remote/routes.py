"""The HTTP route of each operation: method, path, and the shape of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from zettel.remote import wire
from zettel.remote.wire import ResponseType


class Route(NamedTuple):
    """How to request one operation. Arguments named in ``path`` go there, the others into the query or the body.

    ``answer`` is None for an empty answer. ``flattened`` names an argument whose items are sent as arguments.
    """

    verb: str
    path: str
    answer: ResponseType[Any] | None
    flattened: str | None = None


ROUTES: Mapping[str, Route] = {
    "add_many_report": Route("POST", "/v1/events/report", wire.REMEMBERED),
    "search_many": Route("POST", "/v1/search/batch", wire.HITS_MANY),
    "context": Route("POST", "/v1/context", wire.CONTEXT, "search"),
    "answer_context": Route("POST", "/v1/answer-context", wire.GATHERED, "search"),
    "feedback": Route("POST", "/v1/feedback", None),
    "searches": Route("GET", "/v1/searches", wire.SEARCHES),
    "tune": Route("POST", "/v1/tune", wire.TUNED),
    "get": Route("GET", "/v1/notes/{id}", wire.NOTE_OR_EVENT),
    "list": Route("GET", "/v1/notes", wire.PAGE),
    "events": Route("GET", "/v1/events", wire.EVENTS),
    "links": Route("GET", "/v1/notes/{id}/links", wire.LINKS),
    "neighbors": Route("GET", "/v1/notes/{id}/neighbors", wire.NEIGHBORS),
    "graph": Route("GET", "/v1/graph", wire.GRAPH),
    "conflicts": Route("GET", "/v1/conflicts", wire.CONFLICTS),
    "terms": Route("GET", "/v1/notes/{id}/terms", wire.TERMS),
    "history": Route("GET", "/v1/notes/{id}/history", wire.HISTORY),
    "update": Route("PATCH", "/v1/notes/{id}", wire.NOTE, "fields"),
    "link": Route("POST", "/v1/links", wire.LINK),
    "revert": Route("POST", "/v1/notes/{id}/revert", wire.NOTE),
    "revert_effects": Route("POST", "/v1/notes/{id}/revert-effects", wire.NOTES),
    "archive": Route("POST", "/v1/notes/{id}/archive", wire.NOTE),
    "unarchive": Route("POST", "/v1/notes/{id}/unarchive", wire.NOTE),
    "quarantine": Route("POST", "/v1/notes/{id}/quarantine", wire.NOTES),
    "release": Route("POST", "/v1/notes/{id}/release", wire.NOTES),
    "delete": Route("DELETE", "/v1/notes/{id}", wire.DELETED),
    "delete_scope": Route("DELETE", "/v1/scope", wire.DELETED),
    "import_transcript": Route("POST", "/v1/import", wire.IMPORTED),
    "estimate_import": Route("POST", "/v1/import/estimate", wire.ESTIMATE),
    "export": Route("GET", "/v1/export", wire.EXPORTED),
    "dump": Route("GET", "/v1/dump", wire.ENTRY),
    "scopes": Route("GET", "/v1/scopes", wire.SCOPES),
    "flush": Route("POST", "/v1/flush", None),
    "evolve": Route("POST", "/v1/evolve", wire.EVOLVED),
    "evolve_later": Route("POST", "/v1/evolve", wire.QUEUED),
    "jobs": Route("GET", "/v1/jobs", wire.JOBS),
    "retry_jobs": Route("POST", "/v1/jobs/retry", wire.RETRIED),
    "cancel_job": Route("POST", "/v1/jobs/{id}/cancel", wire.JOB),
    "reembed": Route("POST", "/v1/reembed", wire.EMBEDDED),
    "stats": Route("GET", "/v1/stats", wire.STATS),
    "check": Route("POST", "/v1/check", wire.PROBLEMS),
}
DELETE_EVENTS = Route("DELETE", "/v1/events", wire.DELETED)
"""``delete`` by source or session."""
