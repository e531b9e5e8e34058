"""A scope in memory: everything that candidates are chosen by, as columns.

Rows stand for notes and keep their place, in the order of ``seq``: a note that goes is marked, until so many are that
reading the scope anew is cheaper. What hangs on a row (words, Terms, links, its vector) is put anew when the note
changes. Masks over rows have one place more than there are rows, which is False, so that ``GONE`` is never visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from zettel.graph.columnar.growing import Lists, Names, Numbers, Table
from zettel.graph.columnar.nearest import Flat, Nearest
from zettel.graph.columnar.segments import Index
from zettel.model import TIME_MIN, Kind, LinkType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.graph.embedded.lists import Listed
    from zettel.query import Bools, Ints

GONE = -1
KINDS = tuple(kind.value for kind in Kind)
LINK_TYPES = tuple(LinkType)

_INT, _SMALL, _TINY, _FLAG = (np.int64, ()), (np.int32, ()), (np.int8, ()), (np.bool_, ())
_MOST = np.iinfo(np.int16).max
"""A word that stands more often in one note is counted so often."""
LINKED = np.dtype([("type", np.int8), ("weight", np.float32), ("recorded_at", np.int64)])
"""What is known of a link where it leads to."""


class Picked(Sequence[str]):
    """Strings by their numbers, fetched together when the first of them is asked for."""

    def __init__(self, numbers: Ints, fetch: Callable[[Ints], Sequence[str]]) -> None:
        self._numbers, self._fetch = numbers, fetch
        self._fetched: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if self._fetched is None:
            self._fetched = self._fetch(self._numbers)
        return self._fetched[place]


@dataclass(frozen=True, slots=True)
class View:
    """What two clocks let be seen of a scope, and what is counted over it."""

    visible: Bools  # (rows + 1,)
    notes: int
    tokens: int
    order: Ints  # visible rows that have a session, each session's together and in the order of NEXT
    place: NDArray[np.int32]  # (rows + 1,) of a row in ``order``, -1: it has no session
    role_names: tuple[str, ...]  # of those who said visible notes
    role: Ints  # (roles + 1,) of a role in ``role_names``, -1: it said none of them
    usual: bool
    """Whether these are all notes that are shown, so that what is counted once and for all holds."""

    def of_session(self, columns: Columns) -> tuple[Ints, Ints]:
        """Where each session's rows begin in ``order``, (sessions + 1,), and the tokens before each place of it."""
        session = columns.notes["session"][self.order]
        starts = np.searchsorted(session, np.arange(len(columns.sessions.all) + 1))
        return starts, np.append(0, np.cumsum(columns.notes["length"][self.order], dtype=np.int64))


class Columns:
    """One scope's notes with the vectors of one set, as they stood at the scope's count ``changed``."""

    def __init__(self, scope: int, dim: int, listed: Listed | None = None) -> None:
        self.scope = scope
        self.dim = dim
        self.changed = -1
        self.ids: list[str] = []
        self.notes = Table(
            number=_INT, seq=_INT, event=_INT, event_seq=_INT, part=_SMALL, kind=_TINY, role=_SMALL, session=_SMALL,
            occurred_at=_INT, valid_from=_INT, recorded_at=_INT, length=_SMALL, stamp=_INT, asks=_FLAG, shown=_FLAG,
            alive=_FLAG,
        )  # fmt: skip
        self.listed = listed
        """The inverted lists that the store keeps of this scope, if it is large."""
        self.vectors: Nearest = Flat(dim) if listed is None else listed.inverted()
        self.words = Index(np.int16)
        """Rows by the key of a word, a facet or a title; the value is the entry's count."""
        self.terms = Lists(term=_SMALL, count=(np.int16, ()))
        self.holders = Index(np.int16)
        """Rows by the number of a Term; the value is its count."""
        self.links = Lists(target=_SMALL, type=_TINY, owner=_SMALL, weight=(np.float32, ()), recorded_at=_INT)
        self.linking = Index(LINKED)
        """Rows by the row that their links lead to."""
        self.events = Table(number=_INT, session=_SMALL, seq=_INT, occurred_at=_INT, order_time=_INT)
        self.roles, self.sessions = Names(), Names()
        self.term_df = Table(notes=_SMALL)
        """Per Term, how many shown notes hold it."""
        self.term_numbers = Numbers()
        """Terms by number, of their keys; what they are called stands in the file."""
        self.former_names: dict[int, str] = {}
        """Of columns taken back to a moment: names of Terms by key that the file may have forgotten since."""
        self.misled = False
        """Whether there was a snapshot of them that turned out to be damaged."""
        self.order: Ints = np.zeros(0, np.int32)
        """Rows that have a session, each session's together and in the order of NEXT."""
        self._view: View | None = None
        self._sessions_at: tuple[Ints, Ints] | None = None
        self.clean()

    def clean(self) -> None:
        """Scratch anew: whoever was broken off has left marks in it."""
        self._scratch: NDArray[np.int32] = np.zeros(0, np.int32)
        self._sums: NDArray[np.float64] = np.zeros(0)

    @property
    def rows(self) -> int:
        """Notes, those that are gone included."""
        return self.notes.used

    @property
    def nbytes(self) -> int:
        """Memory taken, roughly: strings count as 100 bytes."""
        tables = (self.notes, self.vectors, self.words, self.terms, self.holders, self.links, self.linking, self.events)
        return sum(table.nbytes for table in tables) + self.term_numbers.nbytes + 100 * len(self.ids)

    def rows_of(self, numbers: Ints) -> Ints:
        """Rows of notes by their numbers, GONE for unknown ones. Numbers only grow, so rows are in their order."""
        return places_of(self.notes["number"], numbers)

    def shown(self) -> Bools:
        """Which rows are shown."""
        shown: Bools = self.notes["shown"] & self.notes["alive"]
        return shown

    def visible(self) -> Bools:
        """The same, with a place for GONE."""
        return self.view(None).visible

    def mask(self, rows: Iterable[int] | Ints) -> Bools:
        """A mask over rows, with its place for GONE."""
        mask = np.zeros(self.rows + 1, bool)
        mask[np.asarray(rows, np.int64)] = True
        mask[GONE] = False
        return mask

    # what is seen ---------------------------------------------------------------------------------------------

    def touched(self) -> None:
        """Something changed: what was counted holds no more."""
        self.settle()
        self._view = self._sessions_at = None

    def settle(self) -> None:
        """Keep the segments of the indices few."""
        for index in (self.words, self.holders, self.linking):
            index.settle()

    def view(self, as_of: int | None) -> View:
        """What is to be seen of these columns; ``as_of`` (microseconds) leaves out what was not yet valid."""
        if as_of is None:
            if self._view is None:
                self._view = self._seen(self.notes["shown"] & self.notes["alive"], usual=True)
            return self._view
        notes = self.notes
        return self._seen(notes["shown"] & notes["alive"] & (notes["valid_from"] <= as_of), usual=False)

    def _seen(self, seen: Bools, *, usual: bool) -> View:
        visible = np.append(seen, False)
        order = self.order[visible[self.order]]
        place = np.full(self.rows + 1, GONE, np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        tokens = int(self.notes["length"][seen].sum(dtype=np.int64))
        there = np.zeros(len(self.roles.all) + 1, bool)
        there[self.notes["role"][seen]] = True
        there[GONE] = False
        role = np.where(there, np.cumsum(there) - 1, GONE)
        role_names = tuple(compress(self.roles.all, there))
        return View(visible, int(seen.sum()), tokens, order, place, role_names, role, usual)

    def sessions_of(self, view: View) -> tuple[Ints, Ints]:
        """See :meth:`View.of_session`; counted once for the usual view."""
        if not view.usual:
            return view.of_session(self)
        if self._sessions_at is None:
            self._sessions_at = view.of_session(self)
        return self._sessions_at

    def scratch(self) -> NDArray[np.int32]:
        """A place for every row and for every Term, and one more: all -1, which whoever writes into it leaves so.

        One question at a time is asked of columns.
        """
        size = max(self.rows, self.term_df.used) + 1
        if len(self._scratch) < size:
            self._scratch = np.full(size + size // 8, GONE, np.int32)
        return self._scratch

    def distinct(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Of rows or Terms: each once, as they first come, and the place of every one among them.

        Sorting takes longer.
        """
        place, count = self.scratch(), np.arange(len(numbers), dtype=np.int32)
        place[numbers[::-1]] = count[::-1]  # of equals the last one written stays
        each: Ints = numbers[place[numbers] == count]
        place[each] = count[: len(each)]
        inverse = place[numbers].astype(np.int64)
        place[each] = GONE
        return each, inverse

    def among(self, numbers: Ints, wanted: Ints) -> Bools:
        """Which of these rows or Terms are among the wanted ones."""
        place = self.scratch()
        place[wanted] = 1
        there: Bools = place[numbers] != GONE
        place[wanted] = GONE
        return there

    def sums(self) -> NDArray[np.float64]:
        """(rows + 1,) of 0, which whoever writes into it leaves so."""
        if len(self._sums) < self.rows + 1:
            self._sums = np.zeros(self.rows + 1 + self.rows // 8)
        return self._sums

    # what hangs on rows ---------------------------------------------------------------------------------------

    def post(self, rows: Ints, keys: Ints, counts: NDArray[np.integer]) -> None:
        """Add entries of rows that have none."""
        self.words.post(rows, keys, np.minimum(counts, _MOST).astype(np.int16))

    def hold(self, rows: Ints, sizes: Ints, keys: Ints, counts: NDArray[np.integer]) -> None:
        """Give rows their Terms, ``sizes`` of the keys to each."""
        numbers, counts = self.term_numbers.take(keys), np.minimum(counts, _MOST).astype(np.int16)
        self.term_df.append(notes=np.zeros(len(self.term_numbers.keys) - self.term_df.used, np.int32))
        self.terms.put(rows, sizes, term=numbers, count=counts)
        holders = np.repeat(rows, sizes)
        self.holders.post(holders, numbers.astype(np.int64), counts)
        self._count_terms(holders, numbers, 1)

    def release(self, rows: Ints) -> None:
        """Take entries and Terms from these rows; their flag ``shown`` must still be what it was."""
        whose, places = self.terms.take(rows)
        self._count_terms(rows[whose], self.terms["term"][places], -1)
        self.words.drop(rows)
        self.terms.drop(rows)
        self.holders.drop(rows)

    def _count_terms(self, rows: Ints, terms: NDArray[np.integer], step: int) -> None:
        shown = self.notes["shown"][rows] & self.notes["alive"][rows]
        np.add.at(self.term_df["notes"], terms[shown], step)

    def link(self, rows: Ints, sizes: Ints, **links: NDArray[Any]) -> None:
        """Give rows the links that start there, ``sizes`` to each, in place of those they had."""
        self.linking.drop(rows)
        self.links.put(rows, sizes, **links)
        value = np.empty(int(sizes.sum()), LINKED)
        for name in value.dtype.names or ():
            value[name] = links[name]
        self.linking.post(np.repeat(rows, sizes), links["target"].astype(np.int64), value)

    def unlink(self, rows: Ints) -> None:
        """Take the links that start there from these rows."""
        self.links.drop(rows)
        self.linking.drop(rows)

    def arrange(self, sessions: Ints) -> None:
        """Bring these sessions' events, and then their notes, into the order of NEXT."""
        affected = np.zeros(len(self.sessions.all) + 1, bool)
        affected[sessions] = True
        affected[-1] = False  # no session
        mine = np.flatnonzero(affected[self.notes["session"]] & self.notes["alive"])
        times = self._order_times(affected, mine)
        notes = self.notes
        mine = mine[np.lexsort((notes["seq"][mine], notes["part"][mine], notes["event_seq"][mine], times))]
        session = notes["session"][self.order]
        others = self.order[(session >= 0) & ~affected[session] & notes["alive"][self.order]]
        order = np.concatenate([others, mine.astype(np.int32)])
        self.order = order[np.argsort(notes["session"][order], kind="stable")]

    def _order_times(self, affected: Bools, rows: Ints) -> Ints:
        """Where these rows' events stand in time; they are of the ``affected`` sessions."""
        events = np.flatnonzero(affected[self.events["session"]])
        self.events["order_time"][events] = order_times(
            self.events["session"][events], self.events["seq"][events], self.events["occurred_at"][events]
        )
        places = places_of(self.events["number"], self.notes["event"][rows])
        times: Ints = np.append(self.events["order_time"], TIME_MIN)[places]
        return times

    def copied(self) -> Columns:
        """The same, to be changed apart; vectors may be dropped from it, not put."""
        copy = Columns(self.scope, self.dim)
        copy.vectors, copy.changed = self.vectors.copied(), self.changed
        copy.ids = self.ids
        for name in (
            "notes", "words", "terms", "holders", "links", "linking", "events", "term_df", "term_numbers", "roles",
            "sessions",
        ):  # fmt: skip
            setattr(copy, name, getattr(self, name).copied())
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


def places_of(sorted_numbers: Ints, wanted: Ints) -> Ints:
    """Positions of numbers among ascending ones, GONE where they are not."""
    if len(sorted_numbers) == 0:
        return np.full(len(wanted), GONE, np.int64)
    places = np.searchsorted(sorted_numbers, wanted)
    places[places == len(sorted_numbers)] = 0
    return np.where(sorted_numbers[places] == wanted, places, GONE)


def as_ints(values: Sequence[Any]) -> Ints:
    """Whole numbers as a column."""
    return np.array(values, np.int64)
