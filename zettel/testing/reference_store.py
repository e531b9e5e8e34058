"""The reference store: slow, in memory, with every visible note as a candidate. Other stores must agree with it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from zettel import ports
from zettel.core.fold import fold, live_versions
from zettel.core.selection import Selected, ordered, selected, tally
from zettel.model import (
    ROLES,
    TIME_MAX,
    TIME_MIN,
    EventRecord,
    Kind,
    Link,
    LinkType,
    Note,
    NoteIndex,
    Scope,
    Term,
    TermUse,
    from_micros,
    to_micros,
)
from zettel.ports.candidate_rules import RARE_TERM_DF, passes
from zettel.ports.expiry import expired
from zettel.ports.query import Candidates, Filter, Query, ScopeStats, Seed, Selection, Tally
from zettel.testing.reference_records import ReferenceRecords, ScopeTables
from zettel.text.extraction import is_question
from zettel.text.index import index_note

if TYPE_CHECKING:
    from zettel.ports.query import Floats


class ScopeView:
    """A scope at ``as_of`` and ``known_at``. ``visible`` are the notes that statistics count, in ``seq`` order."""

    def __init__(self, tables: ScopeTables, as_of: int | None = None, known_at: int | None = None) -> None:
        latest = TIME_MAX if known_at is None else known_at
        known = sorted((n for n in tables.bases.values() if to_micros(n.recorded_at) <= latest), key=lambda n: n.seq)
        folded = {base.id: fold(base, tables.revisions[base.id], known_at) for base in known}
        self.notes = {id: note for id, (note, _) in folded.items()}
        links = [link for _, note_links in folded.values() for link in note_links] + list(tables.mentions.values())
        links = [x for x in links if {x.source, x.target} <= self.notes.keys() and to_micros(x.recorded_at) <= latest]
        self.links = sorted(links, key=lambda link: (link.source, link.type.value, link.target))
        self.start = {id: to_micros(n.valid_from) if n.valid_from else TIME_MIN for id, n in self.notes.items()}
        valid = {id for id in self.notes if as_of is None or self.start[id] <= as_of}
        by_hand = {id: to_micros(note.valid_to) for id, note in self.notes.items() if note.valid_to}
        self.end = dict.fromkeys(self.notes, TIME_MAX) | {
            id: end for id, end in by_hand.items() if as_of is None or end <= as_of
        }
        for link in self.links:
            if link.type is LinkType.SUPERSEDES and link.source in valid and link.target not in by_hand:
                start = self.start[link.source]  # an undated source replaces from its recording on
                start = to_micros(link.recorded_at) if start == TIME_MIN else start
                self.end[link.target] = min(self.end[link.target], start)
                end = from_micros(self.end[link.target])
                self.notes[link.target] = self.notes[link.target].model_copy(update={"valid_to": end})
        self.visible = [note for id, note in self.notes.items() if id in valid and not note.archived]
        self.row = {note.id: row for row, note in enumerate(self.visible)}
        self.tokens: dict[str, list[tuple[int, int]]] = defaultdict(list)  # postings: (row, count)
        self.terms: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.index: list[NoteIndex] = []
        for row, note in enumerate(self.visible):
            if (note.id, note.version) not in tables.indexes:
                tables.indexes[note.id, note.version] = index_note(note)
            self.index.append(tables.indexes[note.id, note.version])
            for token, count in self.index[row].tokens.items():
                self.tokens[token].append((row, count))
            for use in self.index[row].terms:
                self.terms[use.key].append((row, use.count))
        place: dict[str, tuple[int, int]] = {}  # of an event in its session; undated events follow the last dated one
        last: dict[str | None, int] = defaultdict(lambda: TIME_MIN)
        for event in sorted(tables.events.values(), key=lambda event: event.seq):
            last[event.session] = to_micros(event.occurred_at) if event.occurred_at else last[event.session]
            place[event.event_id] = (last[event.session], event.seq)
        self.sessions: dict[str, list[int]] = defaultdict(list)
        for *_, row in sorted((*place[n.event_ids[0]], n.part, row) for row, n in enumerate(self.visible) if n.session):
            self.sessions[self.visible[row].session or ""].append(row)


def is_allowed(note: Note, filter: Filter, tables: ScopeTables) -> bool:
    """True if the note passes the filter."""
    files = {event.source.file for id in note.event_ids if (event := tables.events.get(id)) and event.source}
    return passes(note, filter) and filter.source in (None, *files)


def term_counts(view: ScopeView, tokens: Sequence[str]) -> Floats:
    """Counts of each token in each visible note, (notes, tokens)."""
    counts = np.zeros((len(view.visible), len(tokens)), np.float32)
    for column, token in enumerate(tokens):
        for row, count in view.tokens.get(token, ()):
            counts[row, column] = count
    return counts


def source_of(note: Note) -> str:
    """The event of an episodic note, else the note itself. Notes of one source are its parts."""
    return note.event_ids[0] if note.kind is Kind.EPISODIC else note.id


def exhaustive(query: Query, tables: ScopeTables, dim: int) -> Candidates:
    """Every visible note, with all links and terms between them. The pool contains the notes that pass the filter."""
    view = ScopeView(tables, query.as_of, query.known_at) if query.as_of or query.known_at else tables.view(ScopeView)
    notes, n, names = view.visible, len(view.visible), set(query.names)
    terms = sorted(key for key, rows in view.terms.items() if key in names or 2 <= len(rows) <= RARE_TERM_DF)
    pool = np.array([is_allowed(note, query.filter, tables) for note in notes], bool)
    uses = sorted({(row, column) for column, key in enumerate(terms) for row, _ in view.terms[key] if pool[row]})
    term_note, term_index = np.array(uses, np.int64).reshape(-1, 2).T
    tf = term_counts(view, query.tokens)
    length = np.array([index.length for index in view.index], np.int64)
    occurred = np.array([to_micros(x.occurred_at) if x.occurred_at else TIME_MIN for x in notes], np.int64)
    # A note reworded after ``known_at`` has no vector: it would contain later knowledge.
    current = tables.view(ScopeView).notes
    later = {x.id for x in notes if index_note(x) != index_note(current[x.id])} if query.known_at else ()
    stored = [None if x.id in later else tables.vectors.get((query.space, x.id)) for x in notes]
    vectors = np.array([np.zeros(dim) if row is None else row for row in stored], np.float32).reshape(n, dim)
    in_times = [t != TIME_MIN and any(start <= t < end for start, end in query.times) for t in occurred.tolist()]
    seeds = (vectors.any(axis=1) & (query.vector is not None)) * int(Seed.VECTOR)
    seeds |= tf.any(axis=1) * int(Seed.TEXT) | np.array(in_times, int) * int(Seed.TIME)
    seeds |= np.array([bool(names & {*index.title_keys}) for index in view.index], int) * int(Seed.TITLE)
    for key in names & view.terms.keys():
        seeds[[row for row, _ in view.terms[key]]] |= int(Seed.TERM)
    session, before, after = np.full((3, n), -1, np.int64)
    session_rows = list(view.sessions.values())
    for number, rows in enumerate(session_rows):
        session[rows], before[rows[1:]], after[rows[:-1]] = number, rows[:-1], rows[1:]
    links = [link for link in view.links if link.source in view.row and link.target in view.row]
    events = {key: number for number, key in enumerate(dict.fromkeys(map(source_of, notes)))}
    speakers = [*dict.fromkeys(note.speaker for note in notes if note.speaker is not None)]
    return Candidates(
        ids=tuple(view.row), pool=pool, seeds=seeds,
        seq=np.array([x.seq for x in notes], np.int64), event=np.array([events[source_of(x)] for x in notes], np.int64),
        kind=np.array([[*Kind].index(note.kind) for note in notes], np.int64), speaker_names=tuple(speakers),
        speaker=np.array([speakers.index(x.speaker) if x.speaker in speakers else -1 for x in notes], np.int64),
        role=np.array([(None, *ROLES).index(x.role) - 1 for x in notes], np.int64),
        session=session, previous=before, next=after, occurred_at=occurred, length=length, tf=tf,
        cosine=np.zeros(n, np.float32) if query.vector is None else vectors @ query.vector,
        valid_from=np.array([view.start[id] for id in view.row], np.int64),
        valid_to=np.array([view.end[id] for id in view.row], np.int64),
        is_question=np.array([is_question(note.content) for note in notes], bool),
        link_source=np.array([view.row[link.source] for link in links], np.int64),
        link_target=np.array([view.row[link.target] for link in links], np.int64),
        link_type=np.array([[*LinkType].index(x.type) for x in links], np.int64),
        link_weight=np.array([x.weight for x in links], np.float32),
        term_keys=tuple(terms), term_df=np.array([len(view.terms[key]) for key in terms], np.int64),
        term_named=np.array([key in names for key in terms], bool),
        term_note=term_note, term_index=term_index,
        session_tf=np.array([tf[rows].sum(axis=0) for rows in session_rows], np.float32).reshape(
            len(session_rows), len(query.tokens)),
        session_length=np.array([length[rows].sum() for rows in session_rows], np.int64),
        stats=ScopeStats(n, int(length.sum()), np.count_nonzero(tf, axis=0).astype(np.int64), bool(tables.used),
                         any(note.archived for note in current.values())),
    )  # fmt: skip


class ReferenceStore(ReferenceRecords):
    """A GraphStore in memory. ``ReferenceRecords`` has its writes, jobs and vector sets."""

    name = "reference"

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def state(self, scope: Scope) -> ports.ScopeState:
        tables = self.tables(scope)
        notes = tables.view(ScopeView).notes.values()
        ends = [to_micros(note.expires_at) for note in notes if note.expires_at and not note.archived]
        return tables.state._replace(expires=min(ends, default=TIME_MAX))

    async def candidates(self, query: Query) -> Candidates:
        return exhaustive(query, self.tables(query.scope), self.dim(query.space))

    async def lookup(self, scope: Scope, ask: ports.LookupQuery) -> ports.LookupResult:
        tables = self.tables(scope)
        view = tables.view(ScopeView)
        events = {}
        for id, event in tables.events.items():  # in seq order: the newest wins
            if (identity := tables.identities[id]) in ask.identities:
                parts = [x for x in await self.notes_of(scope, [id]) if tables.bases[x].kind is Kind.EPISODIC]
                events[identity] = (event, tuple(sorted(parts, key=lambda note: view.notes[note].part)))
        titled = [(note, key) for note, index in zip(view.visible, view.index, strict=True) for key in index.title_keys]
        return ports.LookupResult(
            events=events,
            tombstones=frozenset(set(ask.identities) & tables.tombstones.keys()),
            named={name: ids for name in ask.names if (ids := tuple(n.id for n, key in titled if key == name))},
            naming={
                title: tuple(n for n, x in zip(view.visible, view.index, strict=True) if set(tokens) <= x.tokens.keys())
                for title, tokens in ask.titles
            },
            has_titles=bool(titled),
            notes=len(view.visible),
            df={token: len(view.tokens.get(token, ())) for token in ask.tokens},
        )

    async def notes(self, scope: Scope, ids: Sequence[str]) -> dict[str, Note]:
        return {id: note for id in ids if (note := self.tables(scope).view(ScopeView).notes.get(id))}

    async def events(self, scope: Scope, ids: Sequence[str]) -> dict[str, EventRecord]:
        return {id: event for id in ids if (event := self.tables(scope).events.get(id))}

    async def page(self, scope: Scope, filter: Filter, after: int, limit: int) -> list[Note]:
        tables = self.tables(scope)
        matches = (x for x in tables.view(ScopeView).visible if x.seq > after and is_allowed(x, filter, tables))
        return list(islice(matches, limit))

    async def tally(self, scope: Scope, selection: Selection, by: Sequence[str]) -> list[Tally]:
        return tally(self._selected(scope, selection), by)

    async def select(self, scope: Scope, selection: Selection, order: str, limit: int) -> list[str]:
        return ordered(self._selected(scope, selection), order)[:limit]

    def _selected(self, scope: Scope, selection: Selection) -> list[Selected]:
        tables = self.tables(scope)
        return selected(tables.view(ScopeView).visible, tables.events, selection)

    async def archived(self, scope: Scope, before: int, limit: int) -> list[Note]:
        notes = self.tables(scope).view(ScopeView).notes.values()
        archived = [note for note in notes if note.archived and note.seq < before]
        return sorted(archived, key=lambda note: -note.seq)[:limit]

    async def expired(
        self, scope: Scope, until: int, after: tuple[int, int], limit: int, archived: bool = False
    ) -> list[Note]:
        notes = self.tables(scope).view(ScopeView).notes.values()
        placed = {(to_micros(note.expires_at), note.seq): note for note in notes if note.expires_at}
        placed = {place: note for place, note in placed.items() if expired(note, until) and note.archived == archived}
        return [placed[place] for place in sorted(placed) if place > after][:limit]

    async def histories(self, scope: Scope, ids: Sequence[str]) -> dict[str, ports.NoteHistory]:
        tables, histories = self.tables(scope), {}
        for id in (id for id in ids if id in tables.bases):
            live = live_versions(tables.revisions[id])
            all_ = tuple(r.model_copy(update={"live": r.version in live}) for r in tables.revisions[id])
            histories[id] = ports.NoteHistory(tables.bases[id], all_)
        return histories

    async def recent(self, scope: Scope, ids: Sequence[str]) -> dict[str, ports.NoteHistory]:
        return await self.histories(scope, ids)

    async def links(self, scope: Scope, notes: Sequence[str]) -> list[Link]:
        return [x for x in self.tables(scope).view(ScopeView).links if not {x.source, x.target}.isdisjoint(notes)]

    async def terms(self, scope: Scope, note: str) -> list[Term]:
        view = self.tables(scope).view(ScopeView)
        uses = view.index[view.row[note]].terms if note in view.row else ()
        return [Term(key=x.key, text=x.text, kind=x.kind, notes=len(view.terms[x.key])) for x in uses]

    async def uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, tuple[TermUse, ...]]:
        view = self.tables(scope).view(ScopeView)
        return {note: view.index[view.row[note]].terms for note in notes if note in view.row}

    async def optimize(self, scope: Scope, space: int) -> None: ...

    async def near(self, scope: Scope, notes: Sequence[str], space: int, k: int) -> list[ports.NearestNotes]:
        tables, wanted = self.tables(scope), set(notes)
        ids = [note.id for note in tables.view(ScopeView).visible if (space, note.id) in tables.vectors]
        vectors = np.array([tables.vectors[space, id] for id in ids], np.float32)
        nearest = []
        for row in (row for row, id in enumerate(ids) if id in wanted):
            cosines = vectors[:row] @ vectors[row]
            order = np.argsort(-cosines, kind="stable")[:k]
            nearest.append(ports.NearestNotes(ids[row], tuple((ids[i], float(cosines[i])) for i in order)))
        return nearest
