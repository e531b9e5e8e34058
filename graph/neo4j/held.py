"""Scopes held in memory, as columns: what a search asks of the database is only what changed since the last one.

A scope is read piece by piece, one with each search, and until all of it is there the database answers. A scope that is
too large for that is never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

import anyio
import numpy as np

from zettel.graph.columnar.candidates import gather
from zettel.graph.columnar.columns import GONE, Columns, as_ints
from zettel.graph.columnar.growing import Names, Table
from zettel.graph.columnar.taking import take_links, take_notes
from zettel.graph.keys import ENTRY, FACET, TITLE, Keys
from zettel.graph.neo4j import hashes
from zettel.graph.neo4j.connection import Connection
from zettel.model import TIME_MIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zettel.query import Bools, Candidates, Ints, Query

MOST_NOTES = 250_000
"""Notes held, of all scopes together: some 600 MB. The scopes that were not asked for longest go first."""
AT_ONCE = 1_000
"""Notes read with one search while a scope is not held whole: about a tenth of a second."""
MOST_BEHIND = 5_000
"""Changes that are caught up with at once; after more, the scope is read anew, piece by piece."""


Of: TypeAlias = tuple[str, int]
"""A scope's key and a vector set."""


class Placed(Columns):
    """Columns of notes whose place in their session the database keeps."""

    def __init__(self, dim: int) -> None:
        super().__init__(0, dim)
        self.stands = Table(time=(np.int64, ()))
        """Where each row's first event stands in time."""

    def _order_times(self, affected: Bools, rows: Ints) -> Ints:
        times: Ints = self.stands["time"][rows]
        return times


@dataclass
class Held:
    """What is held of a scope that was ``born`` then; with the numbers of notes their ``seq``."""

    columns: Placed
    born: int | None = None
    since: int = -1
    """The scope's count of changes that all of this has seen."""
    changes: int = -1
    """The count as it was read last."""
    seq: int = 0
    """The scope's, as it was read last."""
    whole: bool = False
    used: bool = False
    """Whether feedback was told of any note."""
    archived: bool = False
    """Whether any note is archived."""
    names: dict[int, str] = field(default_factory=dict)
    """Terms by key."""
    events: Names = field(default_factory=Names)
    links: list[tuple[Any, ...]] = field(default_factory=list)
    """Those of a scope that is not held whole: what they lead to may be missing yet."""

    @property
    def last(self) -> int:
        """The highest number of a note, or -1."""
        return int(self.columns.notes["number"][-1]) if self.columns.rows else -1


class HeldScopes:
    """The scopes that were searched."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._held: dict[Of, Held] = {}
        self._locks: WeakValueDictionary[Of, anyio.Lock] = WeakValueDictionary()
        self._large: set[Of] = set()
        self._seen: dict[Of, tuple[int, int]] = {}
        """Of scopes that are not held, when they were born and their count of changes, as they were read last."""

    def forget(self) -> None:
        """Let go of all."""
        self._held.clear()

    async def candidates(self, query: Query, keys: Keys, dim: int) -> Candidates | None:
        """The candidates for a question about what is known now, or None: then the database is to be asked.

        Many may ask at once; one of them brings the scope in step.
        """
        of = query.scope.key, query.space
        lock = self._locks.setdefault(of, anyio.Lock())
        held = self._held.get(of)
        if lock.locked() and (held is None or not held.whole):
            return None  # somebody reads the next piece
        async with lock:
            held = await self._in_step(of, keys, dim)
            if held is None or not held.whole:
                return None
            # Nothing is awaited from here on, so nobody else changes the columns or asks them meanwhile.
            names = held.names
            return gather(
                held.columns,
                query,
                keys,
                lambda asked: [names[key] for key in asked.tolist()],
                used=held.used,
                archived=held.archived,
            )

    async def _in_step(self, of: Of, keys: Keys, dim: int) -> Held | None:
        if of in self._large:
            return None
        held = self._held.pop(of, None) or Held(Placed(dim))
        told = await self._connection.read(
            "scope_since",
            *(() if held.whole else ("growing",)),
            scope=of[0],
            space=of[1],
            born=held.born,
            since=held.since,
            changes=held.changes,
            seq=held.seq,
            behind=MOST_BEHIND,
            after=held.last,
            most=AT_ONCE,
        )
        if not told:
            return None
        (state,) = told
        now = state["born"], state["changes"]
        if state["notes"] > MOST_NOTES:
            self._large.add(of)
            return None
        if held.born is None:
            # Who reads while a batch is being written may see a part of it. Once its count was seen before, the batch
            # is as old as a round trip.
            settled = self._seen.pop(of, None) == now
            if state["floor"] == state["changes"] and not settled:
                self._seen[of] = now
                return None
            held.born, held.since = state["born"], state["changes"] - (not settled)
        elif not _goes_on(held, state):
            self._seen[of] = now
            return None
        if not _take(held, state, keys):
            return None
        self._held[of] = held  # last: most recently used
        while len(self._held) > 1 and sum(one.columns.rows for one in self._held.values()) > MOST_NOTES:
            del self._held[next(iter(self._held))]
        return held


def _goes_on(held: Held, state: Mapping[str, Any]) -> bool:
    """Whether what was read can be added to what is held; ``scope_since.cypher`` asks the same."""
    if held.born != state["born"] or state["floor"] > held.changes:  # something went, and nothing tells what
        return False
    return not held.whole or state["seq"] - held.seq <= MOST_BEHIND


def _take(held: Held, state: Mapping[str, Any], keys: Keys) -> bool:
    """Take in what was read; False if notes came out of their order, as when half a batch was seen."""
    told = sorted((hashes.unpacked([row[0]])[0], row) for row in state["told"])
    columns = held.columns
    numbers = as_ints([rest[0] for rest, _ in told])
    new = columns.rows_of(numbers) == GONE
    if new.any() and numbers[new][0] <= held.last:
        return False
    if told:
        affected = take_notes(columns, [_note(held, rest, row, keys) for rest, row in told])
        columns.settle()
        _place(columns, numbers, [row[1] for _, row in told])
        affected.discard(-1)
        columns.arrange(as_ints(sorted(affected)))
    links = [
        (rest[0], target, rest[0], recorded_at, type, weight)
        for rest, row in told
        for target, type, weight, recorded_at in row[12]
    ]
    if held.whole:
        take_links(columns, numbers, links)
        held.since = min(held.changes, state["changes"])  # what came after it, the next search reads again
    else:
        held.links += links
        if len(told) < AT_ONCE:
            take_links(columns, columns.notes["number"], held.links)
            held.links, held.whole = [], True
    held.changes, held.seq = max(held.changes, state["changes"]), state["seq"]
    held.used, held.archived = state["used"], state["archived"]
    columns.touched()
    return True


def _note(held: Held, rest: Sequence[Any], row: Sequence[Any], keys: Keys) -> tuple[Any, ...]:
    """A note as ``take_notes`` wants it."""
    seq, id, kind, role, _, event, occurred_at, valid_from, asks = rest
    _, place, length, words, often, session, tags, metadata, files, vector, terms, titles, _ = row
    held.names.update((keys.term(name), name) for name in terms)
    others = [(keys.title(name), TITLE) for name in titles]
    others += [(keys.tag(tag), FACET) for tag in tags or ()]
    others += [(keys.metadata(pair), FACET) for pair in metadata or ()]
    others += [(keys.source(file), FACET) for file in files or ()]
    uses = np.array([(keys.term(name), 1) for name in terms], ENTRY)
    return (
        seq, seq, held.events.number(event), hashes.event_seq(place), 0, occurred_at, valid_from, TIME_MIN, length or 0,
        asks, words is None, id, kind, role, session, _words(words, often) + np.array(others, ENTRY).tobytes(),
        uses.tobytes(), vector,
    )  # fmt: skip


def _words(words: str | None, often: str | None) -> bytes:
    """The entries of words as ``hashes.index_row`` tells them."""
    if not words:
        return b""
    entries = np.ones(words.count(" ") + 1, ENTRY)
    entries["key"] = np.frombuffer(bytes.fromhex(words), ">i8")
    for told in (often or "").split():
        word, _, count = told.partition("=")
        entries["count"][words.index(word) // hashes.WORD] = int(count)
    return entries.tobytes()


def _place(columns: Placed, numbers: Ints, places: Iterable[str | None]) -> None:
    """Keep where notes stand in their sessions."""
    columns.stands.append(time=np.zeros(columns.rows - columns.stands.used, np.int64))
    columns.stands["time"][columns.rows_of(numbers)] = as_ints([hashes.stood(place) for place in places])
