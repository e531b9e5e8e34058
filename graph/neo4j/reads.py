"""Reading what was asked for by id or in order: events, notes, their histories, links and Terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zettel.fold import live_versions
from zettel.graph.bodies import read_body
from zettel.graph.keys import Keys
from zettel.graph.neo4j import hashes, rows
from zettel.graph.neo4j.connection import Connection
from zettel.model import EventRecord, Link, Note, Revision, Scope, Term, from_micros
from zettel.ports import Found, Lookup, NoteHistory, TermUse
from zettel.query import Filter

if TYPE_CHECKING:
    from neo4j import Record


def filter_values(filter: Filter) -> dict[str, Any]:
    """The parameters of ``parts/allowed.cypher``."""
    return {
        "kinds": list(filter.kinds),
        "tags": list(filter.tags),
        "session": filter.session,
        "role": filter.role,
        "since": None if filter.since is None else from_micros(filter.since),
        "until": None if filter.until is None else from_micros(filter.until),
        "pairs": list(filter.metadata),
        "file": filter.source,
    }


async def notes(connection: Connection, scope: Scope, ids: Sequence[str]) -> dict[str, Note]:
    """Those of the notes that are there, by id."""
    if not ids:
        return {}
    told = await connection.read("notes", scope=scope.key, ids=list(dict.fromkeys(ids)))
    found = [rows.read_note(row["note"]) for row in told]
    return {note.id: note for note in found}


async def events(connection: Connection, scope: Scope, ids: Sequence[str]) -> dict[str, EventRecord]:
    """Those of the events that are there, by id."""
    if not ids:
        return {}
    told = await connection.read("events", scope=scope.key, ids=list(dict.fromkeys(ids)))
    found = [rows.read_event(row["event"]) for row in told]
    return {event.event_id: event for event in found}


async def page(connection: Connection, scope: Scope, filter: Filter, after: int, limit: int) -> list[Note]:
    """Notes past ``after`` that the filter lets through, archived ones left out."""
    told = await connection.read("page", scope=scope.key, after=after, limit=limit, **filter_values(filter))
    return [rows.read_note(row["note"]) for row in told]


async def archived(connection: Connection, scope: Scope, before: int, limit: int) -> list[Note]:
    """Archived notes from the newest on, those of lower ``seq`` than ``before``."""
    told = await connection.read("archived", scope=scope.key, before=before, limit=limit)
    return [rows.read_note(row["note"]) for row in told]


async def histories(connection: Connection, scope: Scope, ids: Sequence[str]) -> dict[str, NoteHistory]:
    """Base and Revisions of those of the notes that are there."""
    if not ids:
        return {}
    told = await connection.read("histories", scope=scope.key, ids=list(dict.fromkeys(ids)))
    return {row["base"]["id"]: NoteHistory(rows.read_note(row["base"]), told_by(row["revisions"])) for row in told}


def told_by(bodies: Sequence[str]) -> tuple[Revision, ...]:
    """A note's Revisions, each knowing whether it counts."""
    revisions = [read_body(Revision, body) for body in bodies]
    live = live_versions(revisions)
    return tuple(
        r if r.live == (r.version in live) else r.model_copy(update={"live": r.version in live}) for r in revisions
    )


async def citing(connection: Connection, scope: Scope, ids: Sequence[str]) -> tuple[Revision, ...]:
    """Revisions that one of these notes stood before, by ``seq``."""
    told = await connection.read("citing", scope=scope.key, ids=list(ids))
    found = [r for row in told for r in told_by(row["revisions"]) if r.version in row["versions"]]
    return tuple(sorted(found, key=lambda revision: revision.seq))


async def links(connection: Connection, scope: Scope, ids: Sequence[str]) -> list[Link]:
    """Links that start or end at one of these notes, by (source, type, target)."""
    return [rows.read_link(row) for row in await connection.read("links", scope=scope.key, ids=list(ids))]


async def terms(connection: Connection, scope: Scope, note: str) -> list[Term]:
    """A note's Terms by key, each with how many notes of the scope hold it; none of an archived note."""
    told = await connection.read("uses", scope=scope.key, ids=[note])
    return [
        Term(key=key, text=text, kind=kind, notes=held) for row in told for key, text, kind, _, held in row["terms"]
    ]


async def uses(connection: Connection, scope: Scope, ids: Sequence[str]) -> dict[str, tuple[TermUse, ...]]:
    """The Terms of those of the notes that are there and not archived, as their index has them."""
    told = await connection.read("uses", scope=scope.key, ids=list(dict.fromkeys(ids)))
    return {
        row["id"]: tuple(TermUse(key, text, kind, count) for key, text, kind, count, _ in row["terms"]) for row in told
    }


async def dump_page(
    connection: Connection, scope: Scope, after: int, limit: int
) -> list[tuple[EventRecord, tuple[Note, ...]]]:
    """The next events past ``after`` in ``seq`` order, each with the notes that now rest on it, by ``seq``."""
    told = await connection.read("dump", scope=scope.key, after=after, limit=limit)
    return [(rows.read_event(row["event"]), tuple(map(rows.read_note, row["notes"]))) for row in told]


async def look_up(connection: Connection, scope: Scope, keys: Keys, ask: Lookup) -> Found:
    """Answer a Lookup. ``df`` counts notes that are not archived, as ``notes`` does."""
    told = await _looked_up(connection, scope, keys, ask)
    return await _found(connection, scope, keys, ask, told[0] if told else None)


async def survey(connection: Connection, scope: Scope, keys: Keys, ask: Lookup) -> tuple[Record, Found] | None:
    """The row of ``state.cypher`` and the answer to a Lookup; None if the scope is not there, or has another secret."""
    told = await _looked_up(connection, scope, keys, ask, "standing")
    if not told or told[0]["secret"] != keys.secret:
        return None
    return told[0], await _found(connection, scope, keys, ask, told[0])


async def _looked_up(connection: Connection, scope: Scope, keys: Keys, ask: Lookup, *flags: str) -> list[Record]:
    titles = [
        {"name": title, "words": " AND ".join(hashes.word(keys, token) for token in tokens)}
        for title, tokens in ask.titles
        if tokens
    ]
    asked: dict[str, Any] = {"identities": list(ask.identities), "names": list(ask.names), "titles": titles}
    asked["words"] = [hashes.word(keys, token) for token in ask.tokens]
    wanted = [name for name, values in asked.items() if values]
    return await connection.read("lookup", *wanted, *flags, scope=scope.key, **asked)


async def _found(connection: Connection, scope: Scope, keys: Keys, ask: Lookup, row: Record | None) -> Found:
    df = dict.fromkeys(ask.tokens, 0)
    if row is None:
        return Found(events={}, tombstones=frozenset(), named={}, naming={}, has_titles=False, notes=0, df=df)
    tokens = {hashes.word(keys, token): token for token in ask.tokens}
    df.update((tokens[name], count) for name, count in row["df"])
    naming = _grouped(row["naming"])
    read = await notes(connection, scope, sorted({id for ids in naming.values() for id in ids}))
    return Found(
        events={one["identity"]: (rows.read_event(one["event"]), tuple(one["notes"])) for one in row["events"]},
        tombstones=frozenset(row["tombstones"]),
        named={name: tuple(ids) for name, ids in _grouped(row["named"]).items()},
        naming={title: tuple(read[id] for id in ids if id in read) for title, ids in naming.items()},
        has_titles=row["titled"],
        notes=row["notes"] if ask.tokens else 0,
        df=df if ask.tokens else {},
    )


def _grouped(pairs: Sequence[tuple[str, str]]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
