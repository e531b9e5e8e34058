"""Events, notes, Revisions and jobs as properties, and back.

A note's properties are what people read in Neo4j Browser, so what says nothing is left out. Payload and metadata may
be any JSON and are kept as text; metadata also as flat ``key=value`` strings, for filters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any

from zettel.batch import PutAnswer
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

NOTE_TIMES = ("occurred_at", "valid_from", "valid_to", "recorded_at")
_LISTS = ("keywords", "tags", "event_ids", "authored", "flags")
_ALWAYS = ("content", "kind", "importance", "confidence")


def note_row(note: Note, scope: str) -> dict[str, Any]:
    """A note's properties. The end of its validity is derived whenever it is read."""
    row: dict[str, Any] = {
        "caption": note.caption or None, "title": note.title, "content": note.content, "context": note.context or None,
        "kind": note.kind.value, "keywords": list(note.keywords), "tags": list(note.tags),
        "importance": note.importance, "confidence": note.confidence, "role": note.role, "session": note.session,
        "occurred_at": note.occurred_at, "valid_from": note.valid_from, "recorded_at": note.recorded_at,
        "event_ids": list(note.event_ids), "metadata": list(as_metadata_pairs(note.metadata)),
        "metadata_json": as_json(note.metadata) if note.metadata else None, "authored": list(note.authored),
        "archived": note.archived or None, "merged_into": note.merged_into, "faded": note.faded or None,
        "quarantined": note.quarantined, "flags": list(note.flags), "trust": note.trust if note.trust < 1 else None,
        "part": note.part or None, "parts": note.parts if note.parts > 1 else None,
        "seq": note.seq, "version": note.version, "scope": scope, "id": note.id,
    }  # fmt: skip
    return {name: value for name, value in row.items() if value is not None and value != []}


def read_note(row: Mapping[str, Any]) -> Note:
    """The inverse of :func:`note_row`; times are microseconds."""
    fields = {name: row[name] for name in Note.model_fields if row.get(name) is not None}
    fields.update((name, from_micros(fields[name])) for name in NOTE_TIMES if name in fields)
    fields.update((name, tuple(fields[name])) for name in _LISTS if name in fields)
    fields["metadata"] = json.loads(row["metadata_json"]) if row.get("metadata_json") else {}
    return Note(**fields)


def event_row(event: EventRecord, identity: str, scope: str) -> dict[str, Any]:
    """An event's properties."""
    row: dict[str, Any] = {
        "title": event.title, "content": event.content or None, "role": event.role, "session": event.session,
        "occurred_at": event.occurred_at, "recorded_at": event.recorded_at,
        "payload": None if event.payload is None else as_json(event.payload),
        "metadata": as_json(event.metadata) if event.metadata else None,
        "file": event.source.file if event.source else None,
        "position": event.source.position if event.source else None,
        "key": event.id, "revises": event.revises, "identity": identity, "seq": event.seq, "scope": scope,
        "id": event.event_id,
    }  # fmt: skip
    return {name: value for name, value in row.items() if value is not None}


def read_event(row: Mapping[str, Any]) -> EventRecord:
    """The inverse of :func:`event_row`; times are microseconds."""
    return EventRecord(
        event_id=row["id"],
        id=row.get("key"),
        title=row.get("title"),
        content=row.get("content", ""),
        role=row.get("role"),
        session=row.get("session"),
        occurred_at=None if row.get("occurred_at") is None else from_micros(row["occurred_at"]),
        recorded_at=from_micros(row["recorded_at"]),
        payload=json.loads(row["payload"]) if "payload" in row else None,
        metadata=json.loads(row["metadata"]) if "metadata" in row else {},
        source=Source(file=row["file"], position=row.get("position")) if "file" in row else None,
        revises=row.get("revises"),
        seq=row["seq"],
    )


def revision_row(revision: Revision, scope: str) -> dict[str, Any]:
    """A Revision's properties: all of it as JSON, and what people look for by itself."""
    return {
        "caption": f"version {revision.version} by {revision.cause.by}", "version": revision.version,
        "by": revision.cause.by, "recorded_at": revision.recorded_at, "seq": revision.seq,
        "body": body_of(revision), "scope": scope, "id": f"{revision.note}/{revision.version}",
    }  # fmt: skip


def cited_by(revision: Revision) -> list[str]:
    """The notes that stood before a Revision: its inputs, its cause, the ends of its links."""
    cited = {read.note for read in revision.inputs} | {link.target for link in revision.links}
    cited |= {link.source for link in revision.links if link.source != revision.note}
    return sorted(cited | ({revision.cause.note} if revision.cause.note is not None else set()))


def link_row(link: Link) -> dict[str, Any]:
    """A link as it is stored: its ends, and the relationship's properties."""
    told = {"weight": link.weight, "reason": link.reason, "recorded_at": link.recorded_at}
    return {"source": link.source, "target": link.target, "link": told}


def read_link(row: Mapping[str, Any]) -> Link:
    """The inverse of :func:`link_row`, from a row of ``links.cypher``."""
    return Link(
        source=row["source"],
        target=row["target"],
        type=LinkType(row["type"]),
        weight=row["weight"],
        reason=row["reason"],
        recorded_at=from_micros(row["recorded_at"]),
    )


def job_row(job: Job, number: int) -> dict[str, Any]:
    """A job as it is queued: what it is known by, and the rest."""
    told = {
        "id": job.id, "priority": job.priority, "run_at": to_micros(job.run_at), "attempts": job.attempts,
        "state": job.state.value, "error": job.error, "lease_until": 0, "number": number,
    }  # fmt: skip
    return {"kind": job.kind.value, "note": job.note or "", "version": job.version, "job": told}


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
    """An answer's properties."""
    notes = len(set(op.notes))
    caption = f"answer about {notes} note{'' if notes == 1 else 's'}"
    return {"caption": caption, "text": op.text, "notes": notes, "scope": scope, "key": op.key}


def use_row(use: ModelUse) -> dict[str, Any]:
    """What a model has cost; the day as text."""
    return use.model_dump(exclude={"day"}) | {"day": use.day.isoformat()}


def read_use(row: Mapping[str, Any]) -> ModelUse:
    """The inverse of :func:`use_row`."""
    return ModelUse(**dict(row) | {"day": date.fromisoformat(row["day"])})


def search_row(search: LoggedSearch, scope: str) -> dict[str, Any]:
    """A logged search's properties: all of it as JSON, and what people look for by itself."""
    notes = len({hit.note for hit in search.hits})
    return {
        "question": search.question, "asked_at": search.asked_at, "outcome": search.outcome, "notes": notes,
        "body": body_of(search), "scope": scope, "id": search.id,
    }  # fmt: skip


def usage_row(note: str, use: NoteUse, scope: str) -> dict[str, Any]:
    """What feedback says of a note: its properties, in a list; an empty one for a note that was never of use."""
    caption = f"used {use.times} time{'' if use.times == 1 else 's'}"
    row = use._asdict() | {"caption": caption, "scope": scope, "note": note}
    return {"note": note, "usage": [row] if use.times else []}


def read_usage(row: Mapping[str, Any]) -> NoteUse:
    """The inverse of :func:`usage_row`, from a row of ``note_uses.cypher``."""
    if row["times"] is None:
        return NoteUse(from_micros(row["recorded_at"]))
    return NoteUse(from_micros(row["since"]), row["times"], row["successes"], row["failures"])


def as_json(value: Any) -> str:
    """Any JSON value as text, readable where UTF-8 can hold it."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # lone surrogates: JSON can escape them
        return json.dumps(value)
    return text
