"""Whether what is derived says what the record says, and making it anew where it does not.

The record is: events, each note's first state, its Revisions, MENTIONS. Everything else follows from it: the note's
state and its decided links by the fold, its index by ``zettel.annotate.index``, its place from its event.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from zettel.annotate.index import index_note
from zettel.fold import fold
from zettel.graph.keys import Keys
from zettel.graph.neo4j import hashes, planning, rows, schema, settling, writes
from zettel.graph.neo4j.connection import Connection, Transaction
from zettel.graph.neo4j.reads import told_by
from zettel.model import Job, JobKind, Link, Note, Scope, from_micros

if TYPE_CHECKING:
    from neo4j import Record

CHECKED_AT_ONCE = 500
"""Notes read in one transaction."""

Run: TypeAlias = "Callable[..., Awaitable[list[Record]]]"
"""The rows that a statement answers, in a transaction of its own or in one that is open."""


class Kept(NamedTuple):
    """A note by its record, and what the database says of it."""

    note: Note
    links: tuple[Link, ...]
    told: Mapping[str, Any]


class Placed(NamedTuple):
    """An event of a session, and the place where it belongs."""

    id: str
    session: str
    place: str


class Looked(NamedTuple):
    """A scope as it was found: what is ``derived`` wrongly, a line each, and which notes are ``bare`` of a vector."""

    kept: Sequence[Kept]
    places: Sequence[Placed]
    derived: Sequence[str]
    bare: Sequence[Note]

    @property
    def wrong(self) -> list[str]:
        """All that is wrong, a line each."""
        return [*self.derived, *(f"note {note.id}: it has no vector, and no job will make one" for note in self.bare)]


async def check(connection: Connection, repair: bool) -> list[str]:
    """What is wrong, one line each; with ``repair`` it is mended, each scope in one transaction."""
    found = [f"index {name} is not there" for name in await schema.missing(connection)]
    if found and repair:
        await schema.remake(connection)
    for row in await connection.read("unsettled", scope=None):
        found.append(f"{row['name']}: it is being {'deleted' if row['leaving'] else 'imported'}, or that was cut off")
        if repair:
            await settling.settle(connection, row["scope"])
    for kind, count in (await _orphans(connection)).items():
        if count:
            found.append(f"{kind}: {count} nodes hang on something that is not there")
    if found and repair:
        await connection.writing(_drop_orphans)
    for row in await connection.read("restored"):
        found.append(
            f"{row['name']}: an import of a whole memory is under way or was cut off; its rest is out of sight"
        )
        if repair:
            await connection.writing(partial(settling.drop, row["scope"]))
            await settling.settle(connection, row["scope"])
    for row in await connection.read("check_scopes"):
        scope = Scope.model_validate_json(row["name"])
        if (await _look(connection.read, scope, row)).wrong:
            found += [f"{scope}: {line}" for line in await _look_again(connection, scope, repair)]
    return found


async def _look_again(connection: Connection, scope: Scope, repair: bool) -> list[str]:
    """What is wrong with a scope while nobody writes in it, which may have made it seem so; with ``repair`` it is
    mended on what was read here."""

    async def alone(transaction: Transaction) -> list[str]:
        await transaction.run("scope_touch", scope=scope.key, token=secrets.token_hex(8))
        there = await transaction.run("check_scopes", "scoped", scope=scope.key)
        if not there:  # deleted meanwhile
            return []
        looked = await _look(transaction.run, scope, there[0])
        if repair and looked.derived:
            await _rebuild(transaction, scope, Keys(there[0]["secret"]), looked)
        if repair and looked.bare:
            await _queue(transaction, scope, looked.bare)
        return looked.wrong

    return await connection.writing(alone)


async def _look(run: Run, scope: Scope, row: Mapping[str, Any]) -> Looked:
    kept = await _read(run, scope)
    misplaced, places = await _of_sessions(run, scope)
    derived = [*_of_notes(kept, Keys(row["secret"]), scope), *_of_scope(kept, row), *misplaced]
    without = {one["id"] for one in await run("check_unembedded", scope=scope.key)}
    return Looked(kept, places, derived, [one.note for one in kept if one.note.id in without])


async def _orphans(connection: Connection) -> dict[str, int]:
    """How many nodes of each kind hang on nothing. What goes while it is looked at looks so too: where there seem to be
    any, they are counted again while nobody writes."""

    async def alone(transaction: Transaction) -> dict[str, int]:
        await _lock_all(transaction)
        return dict((await transaction.run("check_orphans"))[0])

    seen = dict((await connection.read("check_orphans"))[0])
    return await connection.writing(alone) if any(seen.values()) else seen


async def _drop_orphans(transaction: Transaction) -> None:
    """Destroy them while nobody writes: what is being written may hang on nothing yet."""
    await _lock_all(transaction)
    await transaction.run("orphans_drop")


async def _lock_all(transaction: Transaction) -> None:
    await transaction.run("store_lock", token=secrets.token_hex(8))
    await transaction.run("scopes_touch", token=secrets.token_hex(8))


async def _read(run: Run, scope: Scope) -> list[Kept]:
    kept: list[Kept] = []
    after = -1
    while page := await run("check_notes", scope=scope.key, after=after, limit=CHECKED_AT_ONCE):
        for row in page:
            note, links = fold(rows.read_note(row["base"]), told_by(row["revisions"]))
            kept.append(Kept(note, links, row))
        after = page[-1]["now"]["seq"]
    return kept


def _of_notes(kept: Sequence[Kept], keys: Keys, scope: Scope) -> Iterator[str]:
    here = {one.note.id for one in kept}
    for note, links, told in kept:
        if rows.read_note(told["now"]) != note:
            yield f"note {note.id}: its state is not what its history says"
        if told["index"] is None:
            yield f"note {note.id}: it has no index"
            continue
        if len(told["events"]) != len(set(note.event_ids)):
            yield f"note {note.id}: an event of it is not there"
            continue
        if _told(told) != _index(note, told["events"], keys, scope) or _held(told) != _wanted(note):
            yield f"note {note.id}: its index is not what its text gives"
        decided = {
            (link.source, link.target, link.type.value, link.weight, link.reason)
            for link in links
            if {link.source, link.target} <= here
        }
        if {tuple(link) for link in told["links"]} != decided:
            yield f"note {note.id}: its links are not what its history says"


def _index(note: Note, events: Sequence[Mapping[str, Any]], keys: Keys, scope: Scope) -> dict[str, Any]:
    """The properties of a note's index node."""
    index = index_note(note)
    rest = hashes.rest_row(note, keys, scope.key)
    found = hashes.index_row(index, keys, scope.key)
    (first,) = [event for event in events if event["id"] == note.event_ids[0]]
    files = {event["file"] for event in events if event["file"] is not None}
    told = {
        "scope": scope.key, "id": note.id, "seq": note.seq, "files": sorted(files), **rest["index"],
    }  # fmt: skip
    if note.archived:
        return told
    told |= {"length": index.length, "words": sorted(found["words"].split()), "often": sorted(found["often"].split())}
    if found["titled"]:
        told["titled"] = scope.key
    if rest["prefix"]:
        told["place"] = rest["prefix"] + first["place"][-31:] + rest["part"]
    return told


def _told(told: Mapping[str, Any]) -> dict[str, Any]:
    """What the index node of a note says, and the note of its files; words in order."""
    index = dict(told["index"]) | {"files": sorted(told["now"].get("files") or ())}
    for moment in ("superseded", "changed"):  # say at most that it once was, and when
        index.pop(moment, None)
    return index | {name: sorted(index[name].split()) for name in ("words", "often") if name in index}


def _held(told: Mapping[str, Any]) -> tuple[set[tuple[Any, ...]], set[str]]:
    return {tuple(term) for term in told["terms"]}, set(told["titles"])


def _wanted(note: Note) -> tuple[set[tuple[Any, ...]], set[str]]:
    if note.archived:
        return set(), set()
    index = index_note(note)
    return {(use.key, use.text, use.kind, use.count) for use in index.terms}, set(index.title_keys)


def _of_scope(kept: Sequence[Kept], row: Mapping[str, Any]) -> Iterator[str]:
    """The scope's sums, from what the notes' index nodes hold."""
    indexed = [one.told["index"] for one in kept if one.told["index"] and "words" in one.told["index"]]
    sums = (len(indexed), sum(index["length"] for index in indexed))
    if sums != (row["notes"], row["tokens"]):
        yield f"it counts {row['notes']} notes with {row['tokens']} tokens, but has {sums[0]} with {sums[1]}"
    counted = Counter(word for index in indexed for word in index["words"].split())
    if counted != {word: count for word, count in row["words"]}:
        yield "its counts of words are not those of its notes"
    lengths: Counter[str] = Counter()
    for index in indexed:
        if "place" in index:
            lengths[hashes.session_in(index["place"])] += index["length"]
    if lengths != Counter(dict(row["sessions"])):
        yield "its lengths of sessions are not those of their notes"
    if row["last"] is not None and row["last"] > row["seq"]:
        yield f"the scope stands at {row['seq']}, but {row['last']} is taken"


async def _of_sessions(run: Run, scope: Scope) -> tuple[list[str], list[Placed]]:
    """Whether events stand in the order of time, and NEXT leads from each to the one after it; where each belongs."""
    places: list[Placed] = []
    last: dict[str, str] = {}
    order: dict[str, list[tuple[str, str, str | None]]] = {}
    wrong = []
    for row in await run("check_events", scope=scope.key):
        session = row["session"]
        at = row["at"]
        last[session] = last.get(session, hashes.NEVER) if at is None else hashes.stands(at)
        place = last[session] + hashes.arrived(row["seq"])
        places.append(Placed(row["id"], session, place))
        if row["place"] != place:
            wrong.append(f"event {row['id']}: it stands at the wrong place of its session")
        order.setdefault(session, []).append((row["place"], row["id"], row["next"]))
    for events in order.values():
        following = sorted(events)
        for (_, id, told), after in zip(following, [*following[1:], None], strict=True):
            if told != (after[1] if after else None):
                wrong.append(f"event {id}: NEXT does not lead to the event after it")
    return wrong, places


async def _rebuild(transaction: Transaction, scope: Scope, keys: Keys, looked: Looked) -> None:
    """Make everything derived of a scope anew."""
    notes = [one for one in looked.kept if len(one.told["events"]) == len(set(one.note.event_ids))]
    plan = planning.rebuilding(scope.key, keys, [(one.note, one.links) for one in notes])
    sessions = sorted({one.session for one in looked.places})
    events = [{"id": one.id, "place": one.place} for one in looked.places]
    states = [{"id": one.note.id, "note": rows.note_row(one.note, scope.key)} for one in notes]
    await transaction.run("derived_drop", scope=scope.key)
    await transaction.run("states_set", scope=scope.key, notes=states)
    await transaction.run("places_set", scope=scope.key, events=events)
    await transaction.run("sessions_mend", scope=scope.key, sessions=sessions, changes=0, never=hashes.NEVER)
    await writes.run(transaction, plan, 0)
    await transaction.run("scope_recount", scope=scope.key, notes=plan.added.notes, tokens=plan.added.tokens)


async def _queue(transaction: Transaction, scope: Scope, notes: Sequence[Note]) -> None:
    """An embed job for each of these notes, in place of one that failed."""
    now = time.time_ns() // 1000
    queued = [
        Job(id=f"j_{secrets.token_hex(10)}", scope=scope, kind=JobKind.EMBED, note=note.id, version=note.version,
            run_at=from_micros(now))
        for note in notes
    ]  # fmt: skip
    told = [rows.job_row(job, number) for number, job in enumerate(queued)]
    await transaction.run("jobs_drop", scope=scope.key, jobs=told)
    await transaction.run("jobs_put", scope=scope.key, jobs=told, now=now, token=secrets.token_hex(8))
