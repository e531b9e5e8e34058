"""One scope in memory as columns: everything that candidate selection reads.

Rows are notes in ``seq`` order and never move: deleted notes are marked, until there are so many that a reload is
cheaper. A changed note gets new words, terms, links and vector. Masks over rows have one extra place at the end, always
False, so ``MISSING`` is never visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from zettel.graph.columnar.ivf import IvfLists, empty_index
from zettel.graph.columnar.segments import InvertedIndex
from zettel.graph.columnar.tables import KeyTable, RowLists, StringTable, Table
from zettel.model import ROLES, TIME_MIN, Kind, LinkType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.model import Note
    from zettel.ports.query import Bools, Ints

MISSING = -1
"""Index that means no row, session, speaker or term."""
KINDS = tuple(kind.value for kind in Kind)
ROLE_NUMBERS: Mapping[str | None, int] = {None: -1, **{role: number for number, role in enumerate(ROLES)}}
LINK_TYPES = tuple(LinkType)
_SUPERSEDES = LINK_TYPES.index(LinkType.SUPERSEDES)

_INT, _SMALL, _TINY, _FLAG = (np.int64, ()), (np.int32, ()), (np.int8, ()), (np.bool_, ())
_MAX_COUNT = np.iinfo(np.int16).max
"""Upper bound of a word's count in one note."""
LINKED = np.dtype([("type", np.int8), ("weight", np.float32), ("recorded_at", np.int64)])
"""A link in the index of its target."""


class LazyStrings(Sequence[str]):
    """Strings by number, fetched together at the first access."""

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
    """The visible rows of a scope at a valid time, with their statistics."""

    visible: Bools  # (rows + 1,)
    notes: int
    tokens: int
    order: Ints  # visible rows with a session, by session, in the order of NEXT
    place: NDArray[np.int32]  # (rows + 1,) of a row in ``order``, -1 without a session
    speaker_names: tuple[str, ...]  # speakers of visible notes
    speaker: Ints  # (speakers + 1,) place of a speaker in ``speaker_names``, -1 if missing there
    usual: bool
    """If these are all unarchived notes, so cached counts apply."""

    def of_session(self, columns: Columns) -> tuple[Ints, Ints]:
        """Return the first place of each session in ``order``, (sessions + 1,), and the tokens before each place."""
        session = columns.notes["session"][self.order]
        starts = np.searchsorted(session, np.arange(len(columns.sessions.all) + 1))
        return starts, np.append(0, np.cumsum(columns.notes["length"][self.order], dtype=np.int64))


class Columns:
    """One scope's notes with the vectors of one set, in the state of the scope's counter ``changed``."""

    def __init__(self, scope: int, dim: int, ivf: IvfLists | None = None) -> None:
        self.scope = scope
        self.dim = dim
        self.changed = -1
        self.event_seq = -1
        """All events up to this ``seq`` were read; ``events`` contains those of sessions."""
        self.ids: list[str] = []
        self.notes = Table(
            number=_INT, seq=_INT, event=_INT, event_seq=_INT, part=_SMALL, kind=_TINY, speaker=_SMALL, role=_TINY,
            session=_SMALL, occurred_at=_INT, valid_from=_INT, valid_to=_INT, recorded_at=_INT, length=_SMALL,
            stamp=_INT, asks=_FLAG, shown=_FLAG, alive=_FLAG,
        )  # fmt: skip
        self.ivf = ivf
        """The saved inverted lists of a large scope."""
        self.vectors = empty_index(dim, ivf)
        self.words = InvertedIndex(np.int16)
        """Rows by the key of a word, facet or title; the value is the entry's count."""
        self.terms = RowLists(term=_SMALL, count=(np.int16, ()))
        self.holders = InvertedIndex(np.int16)
        """Rows by term number; the value is the term's count."""
        self.links = RowLists(target=_SMALL, type=_TINY, owner=_SMALL, weight=(np.float32, ()), recorded_at=_INT)
        self.linking = InvertedIndex(LINKED)
        """Rows by the target row of their links."""
        self.events = Table(number=_INT, session=_SMALL, seq=_INT, occurred_at=_INT, order_time=_INT)
        self.speakers, self.sessions = StringTable(), StringTable()
        self.term_df = Table(notes=_SMALL)
        """Number of shown notes with each term."""
        self.term_numbers = KeyTable()
        """Term numbers by key; the file contains the names."""
        self.former_names: dict[int, str] = {}
        """For columns of a past moment: names by key of terms that may be deleted from the file."""
        self.meeting: dict[str, tuple[int, Bools]] = {}
        """By condition of recent filters: the state in which rows were compared, and which rows met it."""
        self.former_notes: dict[int, Note] = {}
        """For columns of a past moment: by row, the state of the notes that changed since."""
        self.snapshot_damaged = False
        """If the scope's snapshot turned out to be damaged."""
        self.order: Ints = np.zeros(0, np.int32)
        """Rows with a session, by session, in the order of NEXT."""
        self._view: View | None = None
        self._sessions_at: tuple[Ints, Ints] | None = None
        self._superseded: Bools | None = None
        self.reset_scratch()

    def reset_scratch(self) -> None:
        """Discard the scratch array, after an exception left marks in it."""
        self._scratch: NDArray[np.int32] = np.zeros(0, np.int32)

    @property
    def rows(self) -> int:
        """Return the number of notes, including deleted ones."""
        return self.notes.used

    @property
    def nbytes(self) -> int:
        """Return the approximate memory used: a string counts as 100 bytes."""
        tables = (self.notes, self.vectors, self.words, self.terms, self.holders, self.links, self.linking, self.events)
        return sum(table.nbytes for table in tables) + self.term_numbers.nbytes + 100 * len(self.ids)

    def rows_of(self, numbers: Ints) -> Ints:
        """Return the rows of notes by number, MISSING for unknown ones. Numbers grow, so rows are in their order."""
        return places_of(self.notes["number"], numbers)

    def shown(self) -> Bools:
        """Return which rows are neither archived nor deleted."""
        shown: Bools = self.notes["shown"] & self.notes["alive"]
        return shown

    def visible(self) -> Bools:
        """Return :meth:`shown` with an additional place for MISSING."""
        return self.view(None).visible

    def mask(self, rows: Iterable[int] | Ints) -> Bools:
        """Return a mask over rows, with a place for MISSING."""
        mask = np.zeros(self.rows + 1, bool)
        mask[np.asarray(rows, np.int64)] = True
        mask[MISSING] = False
        return mask

    # views ----------------------------------------------------------------------------------------------------

    def end_update(self) -> None:
        """Merge segments and discard cached views after a change."""
        self.merge_segments()
        self._view = self._sessions_at = self._superseded = None

    def merge_segments(self) -> None:
        """Merge segments of the indices, so that there are few."""
        for index in (self.words, self.holders, self.linking):
            index.merge()

    def view(self, as_of: int | None) -> View:
        """Return the visible rows; ``as_of`` (microseconds) excludes notes not yet valid."""
        if as_of is None:
            if self._view is None:
                self._view = self._build_view(self.shown(), usual=True)
            return self._view
        return self._build_view(self.shown() & (self.notes["valid_from"] <= as_of), usual=False)

    def _build_view(self, shown: Bools, *, usual: bool) -> View:
        visible = np.append(shown, False)
        order = self.order[visible[self.order]]
        place = np.full(self.rows + 1, MISSING, np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        tokens = int(self.notes["length"][shown].sum(dtype=np.int64))
        has_notes = np.zeros(len(self.speakers.all) + 1, bool)
        has_notes[self.notes["speaker"][shown]] = True
        has_notes[MISSING] = False
        speaker = np.where(has_notes, np.cumsum(has_notes) - 1, MISSING)
        speaker_names = tuple(compress(self.speakers.all, has_notes))
        return View(visible, int(shown.sum()), tokens, order, place, speaker_names, speaker, usual)

    def sessions_of(self, view: View) -> tuple[Ints, Ints]:
        """Return :meth:`View.of_session`, cached for the usual view."""
        if not view.usual:
            return view.of_session(self)
        if self._sessions_at is None:
            self._sessions_at = view.of_session(self)
        return self._sessions_at

    def scratch(self) -> NDArray[np.int32]:
        """Return an array of -1 with a place for every row or term, and one more. Callers restore the -1.

        Columns answer one query at a time.
        """
        size = max(self.rows, self.term_df.used) + 1
        if len(self._scratch) < size:
            self._scratch = np.full(size + size // 8, MISSING, np.int32)
        return self._scratch

    def distinct(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return each row or term once, in order of first occurrence, and the place of every number among them.

        Sorting takes longer.
        """
        place, count = self.scratch(), np.arange(len(numbers), dtype=np.int32)
        place[numbers[::-1]] = count[::-1]  # the first occurrence is written last
        unique: Ints = numbers[place[numbers] == count]
        place[unique] = count[: len(unique)]
        inverse = place[numbers].astype(np.int64)
        place[unique] = MISSING
        return unique, inverse

    def among(self, numbers: Ints, wanted: Ints) -> Bools:
        """Return which of these rows or terms are among the wanted ones."""
        place = self.scratch()
        place[wanted] = 1
        is_wanted: Bools = place[numbers] != MISSING
        place[wanted] = MISSING
        return is_wanted

    def superseded(self) -> Bools:
        """Return which rows may have a replacement, (rows + 1,)."""
        if self._superseded is None:
            self._superseded = self.mask(self.links["target"][self.links["type"] == _SUPERSEDES])
        return self._superseded

    # words, terms, links and sessions of rows -----------------------------------------------------------------

    def post(self, rows: Ints, keys: Ints, counts: NDArray[np.integer]) -> None:
        """Add the entries of rows without entries."""
        self.words.post(rows, keys, np.minimum(counts, _MAX_COUNT).astype(np.int16))

    def set_terms(self, rows: Ints, sizes: Ints, keys: Ints, counts: NDArray[np.integer]) -> None:
        """Set the terms of rows, ``sizes`` of the keys each."""
        numbers, counts = self.term_numbers.take(keys), np.minimum(counts, _MAX_COUNT).astype(np.int16)
        self.term_df.append(notes=np.zeros(len(self.term_numbers.keys) - self.term_df.used, np.int32))
        self.terms.put(rows, sizes, term=numbers, count=counts)
        holders = np.repeat(rows, sizes)
        self.holders.post(holders, numbers.astype(np.int64), counts)
        self._count_terms(holders, numbers, 1)

    def release(self, rows: Ints) -> None:
        """Remove entries and terms of these rows, before their flag ``shown`` changes."""
        owner, places = self.terms.take(rows)
        self._count_terms(rows[owner], self.terms["term"][places], -1)
        self.words.drop(rows)
        self.terms.drop(rows)
        self.holders.drop(rows)

    def _count_terms(self, rows: Ints, terms: NDArray[np.integer], step: int) -> None:
        shown = self.notes["shown"][rows] & self.notes["alive"][rows]
        np.add.at(self.term_df["notes"], terms[shown], step)

    def link(self, rows: Ints, sizes: Ints, **links: NDArray[Any]) -> None:
        """Replace the outgoing links of rows, ``sizes`` each."""
        self.linking.drop(rows)
        self.links.put(rows, sizes, **links)
        value = np.empty(int(sizes.sum()), LINKED)
        for name in value.dtype.names or ():
            value[name] = links[name]
        self.linking.post(np.repeat(rows, sizes), links["target"].astype(np.int64), value)

    def unlink(self, rows: Ints) -> None:
        """Remove the outgoing links of these rows."""
        self.links.drop(rows)
        self.linking.drop(rows)

    def arrange(self, sessions: Ints) -> None:
        """Sort the events of these sessions, and then their notes, into the order of NEXT."""
        affected = np.zeros(len(self.sessions.all) + 1, bool)
        affected[sessions] = True
        affected[-1] = False  # no session
        notes = self.notes
        rows = np.flatnonzero(affected[notes["session"]] & notes["alive"])
        times = self._order_times(affected, rows)
        rows = rows[np.lexsort((notes["seq"][rows], notes["part"][rows], notes["event_seq"][rows], times))]
        session = notes["session"][self.order]
        others = self.order[(session >= 0) & ~affected[session] & notes["alive"][self.order]]
        order = np.concatenate([others, rows.astype(np.int32)])
        self.order = order[np.argsort(notes["session"][order], kind="stable")]

    def _order_times(self, affected: Bools, rows: Ints) -> Ints:
        """Return the times of these rows' events in the order of NEXT; the rows are of ``affected`` sessions."""
        events = np.flatnonzero(affected[self.events["session"]])
        self.events["order_time"][events] = order_times(
            self.events["session"][events], self.events["seq"][events], self.events["occurred_at"][events]
        )
        places = places_of(self.events["number"], self.notes["event"][rows])
        times: Ints = np.append(self.events["order_time"], TIME_MIN)[places]
        return times

    def copy(self) -> Columns:
        """Return an independent copy; its vectors can be dropped, not put."""
        copy = Columns(self.scope, self.dim)
        copy.vectors, copy.changed = self.vectors.copy(), self.changed
        copy.ids = self.ids
        for name in (
            "notes", "words", "terms", "holders", "links", "linking", "events", "term_df", "term_numbers", "speakers",
            "sessions",
        ):  # fmt: skip
            setattr(copy, name, getattr(self, name).copy())
        copy.order = self.order
        return copy


def order_times(session: Ints, seq: Ints, occurred_at: Ints) -> Ints:
    """Return the times that order events within their sessions: (m,) each -> (m,) microseconds.

    An undated event takes the time of the last dated event of its session with lower ``seq``. Without one it is first.
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
    """Return the positions of numbers among ascending ones, MISSING for unknown numbers."""
    if len(sorted_numbers) == 0:
        return np.full(len(wanted), MISSING, np.int64)
    places = np.searchsorted(sorted_numbers, wanted)
    places[places == len(sorted_numbers)] = 0
    return np.where(sorted_numbers[places] == wanted, places, MISSING)


def as_ints(values: Sequence[Any]) -> Ints:
    """Return whole numbers as a column."""
    return np.array(values, np.int64)
