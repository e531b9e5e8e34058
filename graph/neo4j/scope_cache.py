"""Scopes cached in memory as columns; a search then reads only the changes since the last one.

The first search loads a small scope. A larger one is loaded page by page in the background, and the database answers
until it is complete. Scopes above ``MAX_NOTES`` are never cached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

import anyio
import numpy as np

from zettel.errors import MemoryClosed, StoreError
from zettel.graph.columnar.candidates import gather
from zettel.graph.columnar.columns import MISSING, Columns, as_ints
from zettel.graph.columnar.ingest import take_links, take_notes
from zettel.graph.columnar.tables import StringTable, Table
from zettel.graph.keys import ENTRY, FACET, TITLE, Keys
from zettel.graph.neo4j import hashes
from zettel.graph.neo4j.connection import Neo4jConnection
from zettel.model import TIME_MAX, TIME_MIN, implied_role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zettel.ports.query import Bools, Candidates, Ints, Query

MAX_NOTES = 250_000
"""Most notes in the cache, over all scopes: some 600 MB. The least recently used scopes are dropped."""
AT_ONCE = 250
"""Most notes of a scope that a search loads itself: faster than the statements that answer without them."""
PAGE = 1_000
"""Notes loaded at once: about a tenth of a second."""
PAUSE = 0.2
"""Seconds before each page in the background, in which the server answers searches."""
LOAD_ATTEMPTS = 3
"""Reads without a page after which the background gives up, for example while the scope is deleted."""
MAX_BEHIND = 5_000
"""Most changes read with one search; after more changes the scope is loaded again, page by page."""


CacheKey: TypeAlias = tuple[str, int]
"""A scope's key and a vector set."""


class SessionColumns(Columns):
    """Columns of notes whose time within their session the database stores."""

    def __init__(self, dim: int) -> None:
        super().__init__(0, dim)
        self.session_times = Table(time=(np.int64, ()))
        """The time of each row's first event in its session."""

    def _order_times(self, affected: Bools, rows: Ints) -> Ints:
        times: Ints = self.session_times["time"][rows]
        return times


@dataclass
class Neo4jScope:
    """A cached scope with the creation time ``born``. A note's number in the columns is its ``seq``."""

    columns: SessionColumns
    born: int | None = None
    since: int = -1
    """The scope's change count that all of the columns include."""
    changes: int = -1
    """The change count at the last read."""
    seq: int = 0
    """The scope's ``seq`` at the last read."""
    complete: bool = False
    used: bool = False
    """True if any note has feedback."""
    archived: bool = False
    """True if any note is archived."""
    names: dict[int, str] = field(default_factory=dict)
    """Terms by key."""
    events: StringTable = field(default_factory=StringTable)
    links: list[tuple[Any, ...]] = field(default_factory=list)
    """Links of an incomplete scope, whose targets may be missing."""

    @property
    def last(self) -> int:
        """The highest note number, or -1."""
        return int(self.columns.notes["number"][-1]) if self.columns.rows else -1


class Neo4jScopeCache:
    """The scopes that were searched."""

    def __init__(self, connection: Neo4jConnection) -> None:
        self._connection = connection
        self._cached: dict[CacheKey, Neo4jScope] = {}
        self._locks: WeakValueDictionary[CacheKey, anyio.Lock] = WeakValueDictionary()
        self._loading: dict[CacheKey, asyncio.Task[None]] = {}
        self._large: set[CacheKey] = set()
        self._seen: dict[CacheKey, tuple[int, int]] = {}
        """Creation time and change count of scopes outside the cache, at the last read."""

    @property
    def is_loading(self) -> bool:
        """True while a scope is loaded in the background."""
        return bool(self._loading)

    def clear(self) -> None:
        """Drop all scopes."""
        self._cached.clear()

    async def close(self) -> None:
        """Drop all scopes, and end the loading in the background."""
        self.clear()
        loading = list(self._loading.values())
        for task in loading:
            task.cancel()
        await asyncio.gather(*loading, return_exceptions=True)

    async def candidates(
        self,
        query: Query,
        keys: Keys,
        dim: int,
        notes: int,
        matching: Sequence[str] | None = None,
        expired: Sequence[str] = (),
    ) -> Candidates | None:
        """Return the candidates of a query about the present, or None while the scope is incomplete.

        ``notes`` is the size of the scope, about. ``matching`` are the notes that meet the filter's ``where``, if it
        has one, and ``expired`` those that do not meet its ``unexpired_at``.

        Of several concurrent searches, one reads the changes of the scope.
        """
        key = query.scope.key, query.space
        lock = self._lock(key)
        cached = self._cached.get(key)
        if (cached is None or not cached.complete) and (notes > AT_ONCE or lock.locked()):
            return None  # the background or another search loads the next page
        async with lock:
            scope = await self._updated(key, keys, dim)
            if scope is None or not scope.complete:
                return None
            # No await from here on, so that no other task changes or reads the columns.
            names = scope.names
            return gather(
                scope.columns,
                query,
                keys,
                lambda term_keys: [names[key] for key in term_keys.tolist()],
                used=scope.used,
                archived=scope.archived,
                matching=_allowed(scope.columns, matching, expired),
            )

    def _lock(self, key: CacheKey) -> anyio.Lock:
        return self._locks.setdefault(key, anyio.Lock())

    def load_in_background(self, query: Query, keys: Keys, dim: int, notes: int) -> None:
        """Load the scope of a query that the database has answered, unless its searches load it or it is too large."""
        key = query.scope.key, query.space
        if notes > AT_ONCE and key not in self._large and key not in self._loading:
            task = asyncio.create_task(self._load(key, keys, dim), name="zettel neo4j scope")
            self._loading[key] = task
            task.add_done_callback(lambda _: self._loading.pop(key, None))

    async def _load(self, key: CacheKey, keys: Keys, dim: int) -> None:
        """Load a scope page by page."""
        attempts = 0
        with suppress(StoreError, MemoryClosed):  # the next search reports it, and starts again
            while attempts < LOAD_ATTEMPTS and key not in self._large:
                await anyio.sleep(PAUSE)
                async with self._lock(key):
                    scope = await self._updated(key, keys, dim)
                if scope is None:
                    attempts += 1
                elif scope.complete:
                    return

    async def _updated(self, key: CacheKey, keys: Keys, dim: int) -> Neo4jScope | None:
        """Return a scope after one read of its changes or of its next page; None if it cannot be cached yet."""
        if key in self._large:
            return None
        scope = self._cached.pop(key, None) or Neo4jScope(SessionColumns(dim))
        states = await self._connection.read(
            "scope_changes",
            *(() if scope.complete else ("loading",)),
            scope=key[0],
            space=key[1],
            born=scope.born,
            since=scope.since,
            changes=scope.changes,
            seq=scope.seq,
            behind=MAX_BEHIND,
            after=scope.last,
            limit=PAGE,
        )
        if not states:
            return None
        (state,) = states
        now = state["born"], state["changes"]
        if state["notes"] > MAX_NOTES:
            self._large.add(key)
            return None
        if scope.born is None:
            # A read during the commit of a batch may see a part of it. If an earlier read saw the same count, the
            # commit is at least a round trip old.
            settled = self._seen.pop(key, None) == now
            if state["floor"] == state["changes"] and not settled:
                self._seen[key] = now
                return None
            scope.born, scope.since = state["born"], state["changes"] - (not settled)
        elif not _is_continuation(scope, state):
            self._seen[key] = now
            return None
        if not _take(scope, state, keys):
            return None
        self._cached[key] = scope  # last: most recently used
        while len(self._cached) > 1 and sum(other.columns.rows for other in self._cached.values()) > MAX_NOTES:
            del self._cached[next(iter(self._cached))]
        return scope


def _is_continuation(scope: Neo4jScope, state: Mapping[str, Any]) -> bool:
    """Return if the rows can be added to the cached ones. ``scope_changes.cypher`` checks the same."""
    if scope.born != state["born"] or state["floor"] > scope.changes:  # notes were erased, and no change lists them
        return False
    return not scope.complete or state["seq"] - scope.seq <= MAX_BEHIND


def _take(scope: Neo4jScope, state: Mapping[str, Any], keys: Keys) -> bool:
    """Add rows to the columns; return False if notes arrive out of order, as after a read of half a batch."""
    changed = sorted((hashes.unpack_rows([row[0]])[0], row) for row in state["rows"])
    columns = scope.columns
    numbers = as_ints([fields[0] for fields, _ in changed])
    new = columns.rows_of(numbers) == MISSING
    if new.any() and numbers[new][0] <= scope.last:
        return False
    if changed:
        affected = take_notes(columns, [_note(scope, fields, row, keys) for fields, row in changed])
        columns.merge_segments()
        _put_session_times(columns, numbers, [row[1] for _, row in changed])
        affected.discard(-1)
        columns.arrange(as_ints(sorted(affected)))
    links = [
        (fields[0], target, fields[0], recorded_at, type, weight)
        for fields, row in changed
        for target, type, weight, recorded_at in row[12]
    ]
    if scope.complete:
        take_links(columns, numbers, links)
        scope.since = min(scope.changes, state["changes"])  # the next search reads the later changes again
    else:
        scope.links += links
        if len(changed) < PAGE:
            take_links(columns, columns.notes["number"], scope.links)
            scope.links, scope.complete = [], True
    scope.changes, scope.seq = max(scope.changes, state["changes"]), state["seq"]
    scope.used, scope.archived = state["used"], state["archived"]
    columns.end_update()
    return True


def _note(scope: Neo4jScope, fields: Sequence[Any], row: Sequence[Any], keys: Keys) -> tuple[Any, ...]:
    """Return a note in the form that ``take_notes`` requires."""
    seq, id, kind, speaker, _, event, occurred_at, valid_from, is_question, *written = fields
    role = written[0] if written else implied_role(speaker)  # rows of zettel 0.1 contain no role
    valid_to = written[1] if len(written) > 1 else TIME_MAX
    _, place, length, words, often, session, tags, metadata, files, vector, terms, titles, _ = row
    scope.names.update((keys.term(name), name) for name in terms)
    others = [(keys.title(name), TITLE) for name in titles]
    others += [(keys.tag(tag), FACET) for tag in tags or ()]
    others += [(keys.metadata(pair), FACET) for pair in metadata or ()]
    others += [(keys.source(file), FACET) for file in files or ()]
    uses = np.array([(keys.term(name), 1) for name in terms], ENTRY)
    return (
        seq, seq, scope.events.number(event), hashes.event_seq(place), 0, occurred_at, valid_from, valid_to, TIME_MIN,
        length or 0, is_question, words is None, id, kind, speaker, role, session,
        _word_entries(words, often) + np.array(others, ENTRY).tobytes(), uses.tobytes(), vector,
    )  # fmt: skip


def _word_entries(words: str | None, often: str | None) -> bytes:
    """Return the packed entries of the words that ``hashes.words_row`` returns."""
    if not words:
        return b""
    entries = np.ones(words.count(" ") + 1, ENTRY)
    entries["key"] = np.frombuffer(bytes.fromhex(words), ">i8")
    for counted in (often or "").split():
        word, _, count = counted.partition("=")
        entries["count"][words.index(word) // hashes.HASH_STRIDE] = int(count)
    return entries.tobytes()


def _put_session_times(columns: SessionColumns, numbers: Ints, places: Iterable[str | None]) -> None:
    """Store the times of notes within their sessions."""
    columns.session_times.append(time=np.zeros(columns.rows - columns.session_times.used, np.int64))
    columns.session_times["time"][columns.rows_of(numbers)] = as_ints([hashes.time_of(place) for place in places])


def _allowed(columns: SessionColumns, matching: Sequence[str] | None, expired: Sequence[str]) -> Bools | None:
    """Return which rows are notes of ``matching`` (if any) that are not expired, (rows + 1,); None for all rows."""
    if matching is None and not expired:
        return None
    chosen = {*columns.ids} if matching is None else {*matching}
    chosen.difference_update(expired)
    return np.array([*(id in chosen for id in columns.ids), False], bool)
