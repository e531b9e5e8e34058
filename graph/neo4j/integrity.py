"""Consistency check and repair of derived data.

The store records events, each note's base, its revisions and MENTIONS. Everything else is derived: the note's state
and decided links by the fold, its index by ``zettel.text.index``, its place from its event.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from zettel.core.fold import fold
from zettel.errors import StoreTooNew
from zettel.graph.keys import Keys
from zettel.graph.neo4j import hashes, planning, rows, schema, unfinished, writes
from zettel.graph.neo4j.connection import Neo4jConnection, Transaction
from zettel.graph.neo4j.reads import revisions_of
from zettel.model import Job, JobKind, Link, Note, Scope, from_micros
from zettel.text.index import index_note
from zettel.text.tokens import TOKENS_VERSION

if TYPE_CHECKING:
    from neo4j import Record

PAGE = 500
"""Notes per read."""

Run: TypeAlias = "Callable[..., Awaitable[list[Record]]]"
"""Returns the rows of a statement, in its own transaction or in an open one."""


class CheckedNote(NamedTuple):
    """A note and its links by the fold, and the row that the database contains."""

    note: Note
    links: tuple[Link, ...]
    row: Mapping[str, Any]


class SessionEvent(NamedTuple):
    """An event of a session, and its correct place."""

    id: str
    session: str
    place: str


class ScopeCheck(NamedTuple):
    """A checked scope: a line for each error in derived data, and the notes that lack a vector and a job for one."""

    notes: Sequence[CheckedNote]
    events: Sequence[SessionEvent]
    errors: Sequence[str]
    unembedded: Sequence[Note]

    @property
    def problems(self) -> list[str]:
        """One line per problem."""
        unembedded = (f"note {note.id}: it has no vector, and no job to compute it" for note in self.unembedded)
        return [*self.errors, *unembedded]


async def check(connection: Neo4jConnection, repair: bool) -> list[str]:
    """Return one line per inconsistency; ``repair`` fixes each scope in one transaction."""
    problems = [f"index {name} is missing" for name in await schema.missing(connection)]
    if problems and repair:
        await schema.remake(connection)
    for row in await connection.read("unsettled", scope=None):
        change = "deletion" if row["leaving"] else "import"
        problems.append(f"{row['name']}: its {change} is unfinished or was interrupted")
        if repair:
            await unfinished.settle(connection, row["scope"])
    for kind, count in (await _count_orphans(connection)).items():
        if count:
            problems.append(f"{kind}: {count} nodes belong to a node that does not exist")
    if problems and repair:
        await connection.writing(_drop_orphans)
    for row in await connection.read("restores"):
        problems.append(f"{row['name']}: an import of a whole memory is unfinished or was interrupted")
        if repair:
            await connection.writing(partial(unfinished.drop, row["scope"]))
            await unfinished.settle(connection, row["scope"])
    for row in await connection.read("check_scopes"):
        scope = Scope.model_validate_json(row["name"])
        if (await _check_scope(connection.read, scope, row)).problems:
            problems += [f"{scope}: {line}" for line in await _check_locked(connection, scope, repair)]
    return problems


async def require_tokens(connection: Neo4jConnection) -> None:
    """Rebuild the index if another tokenizer version made it. Raises ``StoreTooNew``."""
    ((version,),) = await connection.read("tokens")
    if version == TOKENS_VERSION:
        return
    if version is not None and version > TOKENS_VERSION:
        raise StoreTooNew(
            f"{connection.url} was indexed by a newer zettel (tokens version {version}; this one knows "
            f"{TOKENS_VERSION}): upgrade zettel"
        )
    if version is not None:
        await check(connection, repair=True)
    await connection.writing(lambda transaction: transaction.run("tokens_set", tokens=TOKENS_VERSION))


async def _check_locked(connection: Neo4jConnection, scope: Scope, repair: bool) -> list[str]:
    """Check a scope under its lock, because concurrent writes may look like errors, and repair it if requested."""

    async def work(transaction: Transaction) -> list[str]:
        await transaction.run("scope_lock", scope=scope.key, token=secrets.token_hex(8))
        scopes = await transaction.run("check_scopes", "scoped", scope=scope.key)
        if not scopes:  # deleted meanwhile
            return []
        report = await _check_scope(transaction.run, scope, scopes[0])
        if repair and report.errors:
            await _rebuild(transaction, scope, Keys(scopes[0]["secret"]), report)
        if repair and report.unembedded:
            await _queue_embed_jobs(transaction, scope, report.unembedded)
        return report.problems

    return await connection.writing(work)


async def _check_scope(run: Run, scope: Scope, row: Mapping[str, Any]) -> ScopeCheck:
    notes = await _checked_notes(run, scope)
    session_errors, events = await _check_sessions(run, scope)
    errors = [*_note_errors(notes, Keys(row["secret"]), scope), *_scope_errors(notes, row), *session_errors]
    unembedded = {note["id"] for note in await run("check_unembedded", scope=scope.key)}
    return ScopeCheck(notes, events, errors, [checked.note for checked in notes if checked.note.id in unembedded])


async def _count_orphans(connection: Neo4jConnection) -> dict[str, int]:
    """Count the orphans of each kind, under a lock if there are any: concurrent deletes may look like orphans."""

    async def work(transaction: Transaction) -> dict[str, int]:
        await _lock_all(transaction)
        return dict((await transaction.run("check_orphans"))[0])

    counts = dict((await connection.read("check_orphans"))[0])
    return await connection.writing(work) if any(counts.values()) else counts


async def _drop_orphans(transaction: Transaction) -> None:
    """Delete orphans under a lock: nodes of a concurrent write may look like orphans."""
    await _lock_all(transaction)
    await transaction.run("orphans_drop")


async def _lock_all(transaction: Transaction) -> None:
    await transaction.run("store_lock", token=secrets.token_hex(8))
    await transaction.run("scopes_lock", token=secrets.token_hex(8))


async def _checked_notes(run: Run, scope: Scope) -> list[CheckedNote]:
    notes: list[CheckedNote] = []
    after = -1
    while page := await run("check_notes", scope=scope.key, after=after, limit=PAGE):
        for row in page:
            note, links = fold(rows.read_note(row["base"]), revisions_of(row["revisions"]))
            notes.append(CheckedNote(note, links, row))
        after = page[-1]["now"]["seq"]
    return notes


def _note_errors(notes: Sequence[CheckedNote], keys: Keys, scope: Scope) -> Iterator[str]:
    existing = {checked.note.id for checked in notes}
    for note, links, row in notes:
        if rows.read_note(row["now"]) != note:
            yield f"note {note.id}: its state differs from its history"
        if row["index"] is None:
            yield f"note {note.id}: it has no index"
            continue
        if len(row["events"]) != len(set(note.event_ids)):
            yield f"note {note.id}: one of its events is missing"
            continue
        stored_names = {tuple(term) for term in row["terms"]}, set(row["titles"])
        if _stored_index(row) != _expected_index(note, row["events"], keys, scope) or stored_names != _names(note):
            yield f"note {note.id}: its index differs from its text"
        decided = {
            (link.source, link.target, link.type.value, link.weight, link.reason)
            for link in links
            if {link.source, link.target} <= existing
        }
        if {tuple(link) for link in row["links"]} != decided:
            yield f"note {note.id}: its links differ from its history"


def _expected_index(note: Note, events: Sequence[Mapping[str, Any]], keys: Keys, scope: Scope) -> dict[str, Any]:
    """Return the properties of a note's index node, by its text."""
    index = index_note(note)
    row = hashes.index_row(note, keys, scope.key)
    words = hashes.words_row(index, keys, scope.key)
    (first,) = [event for event in events if event["id"] == note.event_ids[0]]
    files = {event["file"] for event in events if event["file"] is not None}
    properties = {"scope": scope.key, "id": note.id, "seq": note.seq, "files": sorted(files), **row["index"]}
    if note.archived:
        return properties
    properties |= {name: sorted(words[name].split()) for name in ("words", "often")} | {"length": index.length}
    if words["titled"]:
        properties["titled"] = scope.key
    if row["prefix"]:
        properties["place"] = row["prefix"] + first["place"][-31:] + row["part"]
    return properties


def _stored_index(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored properties of a note's index node and its files, with sorted words."""
    index = dict(row["index"]) | {"files": sorted(row["now"].get("files") or ())}
    for name in ("superseded", "changed"):  # not derived
        index.pop(name, None)
    return index | {name: sorted(index[name].split()) for name in ("words", "often") if name in index}


def _names(note: Note) -> tuple[set[tuple[Any, ...]], set[str]]:
    """Return a note's terms and title keys, by its text."""
    if note.archived:
        return set(), set()
    index = index_note(note)
    return {(use.key, use.text, use.kind, use.count) for use in index.terms}, set(index.title_keys)


def _scope_errors(notes: Sequence[CheckedNote], row: Mapping[str, Any]) -> Iterator[str]:
    """Compare the scope's sums with the index nodes of its notes."""
    indexed = [checked.row["index"] for checked in notes if "words" in (checked.row["index"] or ())]
    sums = (len(indexed), sum(index["length"] for index in indexed))
    if sums != (row["notes"], row["tokens"]):
        yield f"it counts {row['notes']} notes with {row['tokens']} tokens, but has {sums[0]} with {sums[1]}"
    counted = Counter(word for index in indexed for word in index["words"].split())
    if counted != {word: count for word, count in row["words"]}:
        yield "its word counts differ from those of its notes"
    lengths: Counter[str] = Counter()
    for index in indexed:
        if "place" in index:
            lengths[hashes.session_of(index["place"])] += index["length"]
    if lengths != Counter(dict(row["sessions"])):
        yield "its session lengths differ from those of its notes"
    if row["last"] is not None and row["last"] > row["seq"]:
        yield f"its seq is {row['seq']}, but {row['last']} is in use"


async def _check_sessions(run: Run, scope: Scope) -> tuple[list[str], list[SessionEvent]]:
    """Return errors in the order of sessions and in NEXT, and all events with their correct places."""
    correct: list[SessionEvent] = []
    last: dict[str, str] = {}
    stored: dict[str, list[tuple[str, str, str | None]]] = {}
    errors = []
    for row in await run("check_events", scope=scope.key):
        session, at = row["session"], row["at"]
        last[session] = last.get(session, hashes.NO_TIME) if at is None else hashes.time_digits(at)
        place = last[session] + hashes.seq_digits(row["seq"])
        correct.append(SessionEvent(row["id"], session, place))
        if row["place"] != place:
            errors.append(f"event {row['id']}: it is at the wrong place in its session")
        stored.setdefault(session, []).append((row["place"], row["id"], row["next"]))
    for events in stored.values():
        ordered = sorted(events)
        for (_, id, next), after in zip(ordered, [*ordered[1:], None], strict=True):
            if next != (after[1] if after else None):
                errors.append(f"event {id}: NEXT does not lead to the next event")
    return errors, correct


async def _rebuild(transaction: Transaction, scope: Scope, keys: Keys, report: ScopeCheck) -> None:
    """Derive all derived data of a scope again."""
    notes = [checked for checked in report.notes if len(checked.row["events"]) == len(set(checked.note.event_ids))]
    plan = planning.plan_rebuild(scope.key, keys, [(checked.note, checked.links) for checked in notes])
    sessions = sorted({event.session for event in report.events})
    events = [{"id": event.id, "place": event.place} for event in report.events]
    states = [{"id": checked.note.id, "note": rows.note_row(checked.note, scope.key)} for checked in notes]
    await transaction.run("derived_drop", scope=scope.key)
    await transaction.run("states_set", scope=scope.key, notes=states)
    await transaction.run("places_set", scope=scope.key, events=events)
    await transaction.run("sessions_repair", scope=scope.key, sessions=sessions, changes=0, never=hashes.NO_TIME)
    await writes.run(transaction, plan, 0)
    await transaction.run("scope_recount", scope=scope.key, notes=plan.added.notes, tokens=plan.added.tokens)


async def _queue_embed_jobs(transaction: Transaction, scope: Scope, notes: Sequence[Note]) -> None:
    """Queue an embed job for each note, in place of a failed one."""
    now = time.time_ns() // 1000
    jobs = [
        Job(id=f"j_{secrets.token_hex(10)}", scope=scope, kind=JobKind.EMBED, note=note.id, version=note.version,
            run_at=from_micros(now))
        for note in notes
    ]  # fmt: skip
    job_rows = [rows.job_row(job, number) for number, job in enumerate(jobs)]
    await transaction.run("jobs_drop", scope=scope.key, jobs=job_rows)
    await transaction.run("jobs_put", scope=scope.key, jobs=job_rows, now=now, token=secrets.token_hex(8))
