"""A scope in memory: everything that candidates are chosen by, as columns.

Rows stand for notes and keep their place: a note that goes is marked, and so are the entries, Terms and links of one
that changes (their row becomes ``GONE``), until so much is marked that reading the scope anew is cheaper. Masks over
rows have one place more than there are rows, which is False, so that ``GONE`` is never visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.model import TIME_MIN, Kind, LinkType

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from zettel.query import Bools, Floats, Ints

GONE = -1
KINDS = tuple(kind.value for kind in Kind)
LINK_TYPES = tuple(LinkType)
_FIRST_ROOM = 256


class Table:
    """Columns of one length that grow at the end; a column is one- or two-dimensional."""

    def __init__(self, **kinds: tuple[DTypeLike, tuple[int, ...]]) -> None:
        self._columns = {name: np.zeros((_FIRST_ROOM, *shape), dtype) for name, (dtype, shape) in kinds.items()}
        self.used = 0

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name][: self.used]

    def append(self, **columns: NDArray[Any]) -> None:
        """Add rows: every column, all of one length."""
        added = len(next(iter(columns.values())))
        for name, room in self._columns.items():
            if self.used + added > len(room):
                wider = np.zeros((max(2 * len(room), self.used + added), *room.shape[1:]), room.dtype)
                wider[: self.used] = room[: self.used]
                self._columns[name] = wider
            self._columns[name][self.used : self.used + added] = columns[name]
        self.used += added

    def keep(self, mask: Bools) -> None:
        """Leave only these rows."""
        for name in self._columns:
            self._columns[name] = self[name][mask]
        self.used = int(mask.sum())

    def copied(self) -> Table:
        """The same, to be changed apart."""
        copy = Table()
        copy._columns = {name: self[name].copy() for name in self._columns}
        copy.used = self.used
        return copy

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return sum(column.nbytes for column in self._columns.values())


class Names:
    """Strings by small numbers, in the order they came."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._number: dict[str, int] = {}

    def number(self, name: str | None) -> int:
        """The number of a name, a new one if need be; None is -1."""
        if name is None:
            return -1
        number = self._number.setdefault(name, len(self.all))
        if number == len(self.all):
            self.all.append(name)
        return number

    def known(self, name: str) -> int:
        """The number of a name, or -1."""
        return self._number.get(name, -1)

    def copied(self) -> Names:
        """The same, to be added to apart."""
        copy = Names()
        copy.all, copy._number = self.all.copy(), self._number.copy()
        return copy


_INT, _SMALL, _FLAG = (np.int64, ()), (np.int32, ()), (np.bool_, ())


class Columns:
    """One scope's notes with the vectors of one set, as they stood at the scope's count ``changed``."""

    def __init__(self, scope: int, dim: int) -> None:
        self.scope = scope
        self.dim = dim
        self.changed = -1
        self.ids: list[str] = []
        self.notes = Table(
            number=_INT, seq=_INT, event=_INT, event_seq=_INT, part=_INT, kind=_SMALL, role=_SMALL, session=_SMALL,
            occurred_at=_INT, valid_from=_INT, recorded_at=_INT, length=_INT, asks=_FLAG, shown=_FLAG, alive=_FLAG,
            embedded=_FLAG, vector=(np.float32, (dim,)),
        )  # fmt: skip
        self.entries = Table(key=_INT, low=(np.uint16, ()), count=_SMALL, row=_SMALL)
        self.terms = Table(term=_SMALL, count=_SMALL, row=_SMALL)
        self.links = Table(source=_SMALL, target=_SMALL, type=_SMALL, owner=_SMALL, weight=(np.float32, ()),
                           recorded_at=_INT)  # fmt: skip
        self.events = Table(number=_INT, session=_SMALL, seq=_INT, occurred_at=_INT, order_time=_INT)
        self.roles, self.sessions = Names(), Names()
        self.term_keys = Table(key=_INT)
        self.term_names: list[str] = []
        self._term_numbers: dict[int, int] = {}
        self.order: Ints = np.zeros(0, np.int64)
        """Rows that have a session, each session's together and in the order of NEXT."""
        self.session_sums: dict[int, Floats] = {}
        """Sums of the vectors of a session's shown notes, as far as they were asked for."""

    @property
    def rows(self) -> int:
        """Notes, those that are gone included."""
        return self.notes.used

    @property
    def nbytes(self) -> int:
        """Memory taken, roughly: strings count as 100 bytes."""
        tables = (self.notes, self.entries, self.terms, self.links, self.events)
        return sum(table.nbytes for table in tables) + 100 * (len(self.ids) + 2 * len(self.term_names))

    def rows_of(self, numbers: Ints) -> Ints:
        """Rows of notes by their numbers, GONE for unknown ones. Numbers only grow, so rows are in their order."""
        return _places(self.notes["number"], numbers)

    def mask(self, rows: Iterable[int] | Ints) -> Bools:
        """A mask over rows, with its place for GONE."""
        mask = np.zeros(self.rows + 1, bool)
        mask[np.asarray(rows, np.int64)] = True
        mask[GONE] = False
        return mask

    def clear(self, rows: Ints, *, links: bool = True) -> None:
        """Mark what hangs on these rows as gone."""
        cleared = self.mask(rows)
        for table in (self.entries, self.terms):
            table["row"][cleared[table["row"]]] = GONE
        if links:
            self.links["source"][cleared[self.links["source"]]] = GONE

    def post(self, rows: Ints, keys: Ints, counts: NDArray[np.int32]) -> None:
        """Add entries."""
        self.entries.append(key=keys, low=keys.astype(np.uint64).astype(np.uint16), count=counts, row=rows)

    def hold(self, rows: Ints, keys: Ints, counts: NDArray[np.int32]) -> None:
        """Add Terms by their keys; ``term_names`` must get the names of new keys."""
        distinct, inverse = np.unique(keys, return_inverse=True)
        known = self._term_numbers
        fresh = [key for key in distinct.tolist() if key not in known]
        known.update(zip(fresh, range(len(known), len(known) + len(fresh)), strict=True))
        self.term_keys.append(key=as_ints(fresh))
        numbers = np.array([known[key] for key in distinct.tolist()], np.int32)
        self.terms.append(term=numbers[inverse], count=counts, row=rows)

    def term_number(self, key: int) -> int:
        """A Term's number by its key, GONE if no note ever held it."""
        return self._term_numbers.get(key, GONE)

    @property
    def unnamed_terms(self) -> list[int]:
        """Keys of Terms whose names are still to be appended to ``term_names``."""
        unnamed: list[int] = self.term_keys["key"][len(self.term_names) :].tolist()
        return unnamed

    def compact(self) -> None:
        """Drop what is marked once it is the larger part."""
        for table, end in ((self.entries, "row"), (self.terms, "row"), (self.links, "source")):
            kept = table[end] != GONE
            if 2 * int(kept.sum()) < table.used:
                table.keep(kept)

    def arrange(self, sessions: Ints) -> None:
        """Bring these sessions' events, and then their notes, into the order of NEXT."""
        affected = np.zeros(len(self.sessions.all) + 1, bool)
        affected[sessions] = True
        affected[-1] = False  # no session
        events = np.flatnonzero(affected[self.events["session"]])
        self.events["order_time"][events] = order_times(
            self.events["session"][events], self.events["seq"][events], self.events["occurred_at"][events]
        )
        mine = np.flatnonzero(affected[self.notes["session"]] & self.notes["alive"])
        places = _places(self.events["number"], self.notes["event"][mine])
        times = np.append(self.events["order_time"], TIME_MIN)[places]
        notes = self.notes
        sort = np.lexsort(
            (notes["seq"][mine], notes["part"][mine], notes["event_seq"][mine], times, notes["session"][mine])
        )
        session = notes["session"][self.order]
        others = self.order[(session >= 0) & ~affected[session] & notes["alive"][self.order]]
        self.order = np.concatenate([others, mine[sort]])
        for session in np.unique(sessions).tolist():
            self.session_sums.pop(session, None)

    def copied(self) -> Columns:
        """The same, to be changed apart."""
        copy = Columns(self.scope, self.dim)
        copy.changed = self.changed
        copy.ids = self.ids
        for name in ("notes", "entries", "terms", "links", "events", "term_keys", "roles", "sessions"):
            setattr(copy, name, getattr(self, name).copied())
        copy.term_names, copy._term_numbers = self.term_names.copy(), self._term_numbers.copy()
        copy.order = self.order
        return copy


def order_times(session: Ints, seq: Ints, occurred_at: Ints) -> Ints:
    """Where events stand in time within their sessions: (m,) each -> (m,) microseconds.

    A dated event stands where it occurred; an undated one where the last dated one of its session that arrived before
    it stands (lower ``seq``), or first.
    """
    sort = np.lexsort((seq, session))
    place = np.arange(len(sort))
    ranked, dated = session[sort], occurred_at[sort] != TIME_MIN
    starts = np.maximum.accumulate(np.where(np.append(True, ranked[1:] != ranked[:-1])[: len(sort)], place, 0))
    last = np.maximum.accumulate(np.where(dated, place, -1))
    times = np.empty(len(sort), np.int64)
    times[sort] = np.where(last >= starts, occurred_at[sort][last], TIME_MIN)
    return times


def _places(sorted_numbers: Ints, wanted: Ints) -> Ints:
    """Positions of numbers among ascending ones, GONE where they are not."""
    if len(sorted_numbers) == 0:
        return np.full(len(wanted), GONE, np.int64)
    places = np.searchsorted(sorted_numbers, wanted)
    places[places == len(sorted_numbers)] = 0
    return np.where(sorted_numbers[places] == wanted, places, GONE)


def as_ints(values: Sequence[Any]) -> Ints:
    """Whole numbers as a column."""
    return np.array(values, np.int64)
