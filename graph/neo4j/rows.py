"""Conversion between events, notes, revisions or jobs and node properties.

People read a note's properties in Neo4j Browser, so empty values are omitted. Payload and metadata are stored as JSON
text; metadata also as flat ``key=value`` strings for filters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from enum import Enum
from typing import Any

from zettel.graph.bodies import body_of
from zettel.model import (
    EventRecord,
    Job,
    JobKind,
    JobState,
    Link,
    LinkType,
    LoggedSearch,
    ModelUse,
    Note,
    NoteUse,
    Revision,
    Scope,
    Source,
    as_metadata_pairs,
    from_micros,
    to_micros,
)
from zettel.ports.operations import PutAnswer

NOTE_TIMES = ("occurred_at", "valid_from", "valid_to", "expires_at", "recorded_at")
_DEFAULTS = {name: field.get_default(call_default_factory=True) for name, field in Note.model_fields.items()}
_ALWAYS = frozenset({"kind", "importance", "confidence", "version"})
_OWN_FORM = frozenset({"metadata"})


def note_row(note: Note, scope: str) -> dict[str, Any]:
    """Return a note's properties: fields that differ from their defaults, and ``_ALWAYS`` those that queries use."""
    row: dict[str, Any] = {"scope": scope}
    for name, default in _DEFAULTS.items():
        value = getattr(note, name)
        if name not in _OWN_FORM and (value != default or name in _ALWAYS):
            row[name] = list(value) if isinstance(value, tuple) else value.value if isinstance(value, Enum) else value
    if note.metadata:
        row |= {"metadata": list(as_metadata_pairs(note.metadata)), "metadata_json": as_json(note.metadata)}
    return row


def read_note(row: Mapping[str, Any]) -> Note:
    """The inverse of :func:`note_row`; times are microseconds."""
    fields = {name: row[name] for name in Note.model_fields if row.get(name) is not None}
    fields.update((name, from_micros(fields[name])) for name in NOTE_TIMES if name in fields)
    fields["occurrences"] = [from_micros(time) for time in fields.get("occurrences", ())]
    fields["metadata"] = json.loads(row["metadata_json"]) if row.get("metadata_json") else {}
    return Note(**fields)


def event_row(event: EventRecord, identity: str, scope: str) -> dict[str, Any]:
    """Return an event's properties."""
    row: dict[str, Any] = {
        "title": event.title, "content": event.content or None,
        "speaker": event.speaker, "role": event.role, "session": event.session,
        "occurred_at": event.occurred_at, "recorded_at": event.recorded_at, "expires_at": event.expires_at,
        "payload": None if event.payload is None else as_json(event.payload),
        "metadata": as_json(event.metadata) if event.metadata else None,
        "file": event.source.file if event.source else None,
        "position": event.source.position if event.source else None,
        "key": event.external_id, "revises": event.revises, "principal": event.principal or None,
        "ceiling": None if event.ceiling == 1 else event.ceiling,
        "identity": identity, "seq": event.seq, "scope": scope,
        "id": event.event_id,
    }  # fmt: skip
    return {name: value for name, value in row.items() if value is not None}


def read_event(row: Mapping[str, Any]) -> EventRecord:
    """The inverse of :func:`event_row`; times are microseconds."""
    return EventRecord(
        event_id=row["id"],
        external_id=row.get("key"),
        title=row.get("title"),
        content=row.get("content", ""),
        speaker=row.get("speaker"),
        role=row.get("role"),
        session=row.get("session"),
        occurred_at=None if row.get("occurred_at") is None else from_micros(row["occurred_at"]),
        recorded_at=from_micros(row["recorded_at"]),
        expires_at=None if row.get("expires_at") is None else from_micros(row["expires_at"]),
        payload=json.loads(row["payload"]) if "payload" in row else None,
        metadata=json.loads(row["metadata"]) if "metadata" in row else {},
        source=Source(file=row["file"], position=row.get("position")) if "file" in row else None,
        revises=row.get("revises"),
        principal=row.get("principal", ""),
        ceiling=row.get("ceiling", 1.0),
        seq=row["seq"],
    )


def revision_row(revision: Revision, scope: str) -> dict[str, Any]:
    """Return a revision's properties: its JSON, and the fields that people query."""
    principal = {"principal": revision.principal} if revision.principal else {}
    return principal | {
        "caption": f"version {revision.version} by {revision.cause.by}", "version": revision.version,
        "by": revision.cause.by, "recorded_at": revision.recorded_at, "seq": revision.seq,
        "body": body_of(revision), "scope": scope, "id": f"{revision.note}/{revision.version}",
    }  # fmt: skip


def cited_notes(revision: Revision) -> list[str]:
    """Return the ids of a revision's inputs, of its cause, and of the other ends of its links."""
    cited = {source.note for source in revision.inputs} | {link.target for link in revision.links}
    cited |= {link.source for link in revision.links if link.source != revision.note}
    return sorted(cited | ({revision.cause.note} if revision.cause.note is not None else set()))


def link_row(link: Link) -> dict[str, Any]:
    """Return a link's ends and its relationship's properties."""
    properties = {"weight": link.weight, "reason": link.reason, "recorded_at": link.recorded_at}
    return {"source": link.source, "target": link.target, "link": properties}


def read_link(row: Mapping[str, Any]) -> Link:
    """The inverse of :func:`link_row`, for a row of ``links.cypher``."""
    return Link(
        source=row["source"],
        target=row["target"],
        type=LinkType(row["type"]),
        weight=row["weight"],
        reason=row["reason"],
        recorded_at=from_micros(row["recorded_at"]),
    )


def job_row(job: Job, number: int) -> dict[str, Any]:
    """Return a job's unique key and its other properties."""
    properties = {
        "id": job.id, "priority": job.priority, "run_at": to_micros(job.run_at), "attempts": job.attempts,
        "state": job.state.value, "error": job.error, "lease_until": 0, "number": number,
    }  # fmt: skip
    return {"kind": job.kind.value, "note": job.note or "", "version": job.version, "job": properties}


def read_job(row: Mapping[str, Any]) -> Job:
    """The inverse of :func:`job_row`, with the scope's name."""
    return Job(
        id=row["id"],
        scope=Scope.model_validate_json(row["scope_name"]),
        kind=JobKind(row["kind"]),
        note=row["note"] or None,
        version=row["version"],
        priority=row["priority"],
        run_at=from_micros(row["run_at"]),
        attempts=row["attempts"],
        state=JobState(row["state"]),
        token=row.get("token"),
        error=row.get("error"),
    )


def answer_row(op: PutAnswer, scope: str) -> dict[str, Any]:
    """Return an answer's properties."""
    notes = len(set(op.notes))
    caption = f"answer about {notes} note{'' if notes == 1 else 's'}"
    return {"caption": caption, "text": op.text, "notes": notes, "scope": scope, "key": op.key}


def use_row(use: ModelUse) -> dict[str, Any]:
    """Return the cost of a model, with the day as text."""
    return use.model_dump(exclude={"day"}) | {"day": use.day.isoformat()}


def read_use(row: Mapping[str, Any]) -> ModelUse:
    """The inverse of :func:`use_row`."""
    return ModelUse(**dict(row) | {"day": date.fromisoformat(row["day"])})


def search_row(search: LoggedSearch, scope: str) -> dict[str, Any]:
    """Return a logged search's properties: its JSON, and the fields that people query."""
    notes = len({hit.note for hit in search.hits})
    return {
        "question": search.question, "asked_at": search.asked_at, "outcome": search.outcome, "notes": notes,
        "body": body_of(search), "scope": scope, "id": search.id,
    }  # fmt: skip


def usage_row(note: str, use: NoteUse, scope: str) -> dict[str, Any]:
    """Return a note's feedback as a list of one row of properties, or an empty list for a note without feedback."""
    caption = f"used {use.times} time{'' if use.times == 1 else 's'}"
    row = use._asdict() | {"caption": caption, "scope": scope, "note": note}
    return {"note": note, "usage": [row] if use.times else []}


def read_usage(row: Mapping[str, Any]) -> NoteUse:
    """The inverse of :func:`usage_row`, for a row of ``note_uses.cypher``."""
    if row["times"] is None:
        return NoteUse(from_micros(row["recorded_at"]))
    return NoteUse(from_micros(row["since"]), row["times"], row["successes"], row["failures"])


def as_json(value: Any) -> str:
    """Return a JSON value as text, escaped only if UTF-8 cannot encode it."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # lone surrogates: JSON can escape them
        return json.dumps(value)
    return text
