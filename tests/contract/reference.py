"""The exhaustive store: keeps everything in dictionaries and takes every visible note for a candidate.

Slow, volatile and obviously right: what other stores answer is compared with what this one answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from tests.contract.reference_books import Books, Kept
from zettel import ports
from zettel.annotate.extractive import is_question
from zettel.annotate.index import index_note
from zettel.batch import NoteIndex
from zettel.fold import fold, live_versions
from zettel.model import (
    TIME_MAX,
    TIME_MIN,
    EventRecord,
    Kind,
    Link,
    LinkType,
    Note,
    Scope,
    Term,
    from_micros,
    to_micros,
)
from zettel.model import as_metadata_pairs as flat
from zettel.query import Candidates, Filter, Query, ScopeStats, Seed
from zettel.search.pool import RARE_TERM_DF

Cells = Sequence[tuple[int, int]]


class View:
    """A scope as two clocks let it be seen; ``visible`` are the notes that statistics count, in ``seq`` order."""

    def __init__(self, kept: Kept, as_of: int | None = None, known_at: int | None = None) -> None:
        by = TIME_MAX if known_at is None else known_at
        known = sorted((n for n in kept.bases.values() if to_micros(n.recorded_at) <= by), key=lambda n: n.seq)
        folded = {base.id: fold(base, kept.revisions[base.id], known_at) for base in known}
        self.notes = {id: note for id, (note, _) in folded.items()}
        links = [link for _, decided in folded.values() for link in decided] + list(kept.mentions.values())
        links = [x for x in links if {x.source, x.target} <= self.notes.keys() and to_micros(x.recorded_at) <= by]
        self.links = sorted(links, key=lambda link: (link.source, link.type.value, link.target))
        self.start = {id: to_micros(n.valid_from) if n.valid_from else TIME_MIN for id, n in self.notes.items()}
        seen = {id for id in self.notes if as_of is None or self.start[id] <= as_of}
        self.end = dict.fromkeys(self.notes, TIME_MAX)
        for link in self.links:
            if link.type is LinkType.SUPERSEDES and link.source in seen:
                start = self.start[link.source]  # what always held replaces from when that was found out
                start = to_micros(link.recorded_at) if start == TIME_MIN else start
                self.end[link.target] = min(self.end[link.target], start)
                told = from_micros(self.end[link.target])
                self.notes[link.target] = self.notes[link.target].model_copy(update={"valid_to": told})
        self.visible = [note for id, note in self.notes.items() if id in seen and not note.archived]
        self.row = {note.id: row for row, note in enumerate(self.visible)}
        self.tokens: dict[str, list[tuple[int, int]]] = defaultdict(list)  # where each stands: (row, count)
        self.terms: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.index: list[NoteIndex] = []
        for row, note in enumerate(self.visible):
            if (note.id, note.version) not in kept.indexes:
                kept.indexes[note.id, note.version] = index_note(note)
            self.index.append(kept.indexes[note.id, note.version])
            for token, count in self.index[row].tokens.items():
                self.tokens[token].append((row, count))
            for use in self.index[row].terms:
                self.terms[use.key].append((row, use.count))
        place: dict[str, tuple[int, int]] = {}  # of events in their session: an undated one follows the last dated one
        last: dict[str | None, int] = defaultdict(lambda: TIME_MIN)
        for event in sorted(kept.events.values(), key=lambda event: event.seq):
            last[event.session] = to_micros(event.occurred_at) if event.occurred_at else last[event.session]
            place[event.event_id] = (last[event.session], event.seq)
        self.sessions: dict[str, list[int]] = defaultdict(list)
        for *_, row in sorted((*place[n.event_ids[0]], n.part, row) for row, n in enumerate(self.visible) if n.session):
            self.sessions[self.visible[row].session or ""].append(row)


def passes(note: Note, wanted: Filter, kept: Kept) -> bool:
    """Whether a filter lets a note through."""
    when = to_micros(note.occurred_at) if note.occurred_at else None
    files = {event.source.file for id in note.event_ids if (event := kept.events.get(id)) and event.source}
    return (
        (not wanted.kinds or note.kind.value in wanted.kinds)
        and (not wanted.tags or not set(wanted.tags).isdisjoint(note.tags))
        and wanted.session in (None, note.session)
        and wanted.role in (None, note.role)
        and (wanted.since is None or (when is not None and when >= wanted.since))
        and (wanted.until is None or (when is not None and when < wanted.until))
        and set(wanted.metadata) <= set(flat(note.metadata))
        and (wanted.source is None or wanted.source in files)
    )


def matrix(columns: Sequence[Cells], rows: int) -> csr_array:
    """(rows, columns) counts, from the (row, count) of each column."""
    cells = [(row, column, count) for column, held in enumerate(columns) for row, count in held]
    row, column, count = np.array(cells, np.int64).reshape(-1, 3).T
    return csr_array((count.astype(np.float32), (row, column)), shape=(rows, len(columns)))


def whole(note: Note) -> str:
    """What a note may be a part of: its event, or (if it was derived) itself."""
    return note.event_ids[0] if note.kind is Kind.EPISODIC else note.id


def exhaustive(query: Query, kept: Kept, dim: int) -> Candidates:
    """Every visible note, every allowed one in the pool, with all links and Terms between them."""
    view = View(kept, query.as_of, query.known_at) if query.as_of or query.known_at else kept.view(View)
    notes, n, names = view.visible, len(view.visible), set(query.names)
    terms = sorted(key for key, held in view.terms.items() if key in names or 2 <= len(held) <= RARE_TERM_DF)
    pool = np.array([passes(note, query.filter, kept) for note in notes], bool)
    uses = matrix([[use for use in view.terms[key] if pool[use[0]]] for key in terms], n).tocoo()
    asked = matrix([view.tokens.get(token, ()) for token in query.tokens], n)
    length = np.array([index.length for index in view.index], np.int64)
    occurred = np.array([to_micros(x.occurred_at) if x.occurred_at else TIME_MIN for x in notes], np.int64)
    # The vector of a note that was reworded after ``known_at`` says what was not yet known.
    later = {x.id for x in notes if index_note(x) != index_note(kept.view(View).notes[x.id])} if query.known_at else ()
    stored = [None if x.id in later else kept.vectors.get((query.space, x.id)) for x in notes]
    vectors = np.array([np.zeros(dim) if row is None else row for row in stored], np.float32).reshape(n, dim)
    timely = [t != TIME_MIN and any(start <= t < end for start, end in query.times) for t in occurred.tolist()]
    seeds = (vectors.any(axis=1) & (query.vector is not None)) * int(Seed.VECTOR)
    seeds |= (np.diff(asked.indptr) > 0) * int(Seed.TEXT) | np.array(timely, int) * int(Seed.TIME)
    seeds |= np.array([bool(names & {*index.title_keys}) for index in view.index], int) * int(Seed.TITLE)
    for key in names & view.terms.keys():
        seeds[[row for row, _ in view.terms[key]]] |= int(Seed.TERM)
    session, before, after = np.full((3, n), -1, np.int64)
    for number, rows in enumerate(view.sessions.values()):
        session[rows], before[rows[1:]], after[rows[:-1]] = number, rows[:-1], rows[1:]
    member = matrix([[(session[row], 1)] if session[row] >= 0 else [] for row in range(n)], len(view.sessions))
    links = [link for link in view.links if link.source in view.row and link.target in view.row]
    events = {key: number for number, key in enumerate(dict.fromkeys(map(whole, notes)))}
    roles = [*dict.fromkeys(note.role for note in notes if note.role is not None)]
    return Candidates(
        ids=tuple(view.row), pool=pool, seeds=seeds,
        seq=np.array([x.seq for x in notes], np.int64), event=np.array([events[whole(x)] for x in notes], np.int64),
        kind=np.array([[*Kind].index(note.kind) for note in notes], np.int64), role_names=tuple(roles),
        role=np.array([roles.index(x.role) if x.role in roles else -1 for x in notes], np.int64),
        session=session, previous=before, next=after, occurred_at=occurred, length=length, tf=asked.toarray(),
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
        term_note=uses.row.astype(np.int64), term_index=uses.col.astype(np.int64),
        session_tf=(member @ asked).toarray(), session_length=np.asarray(member @ length, np.int64),
        stats=ScopeStats(n, int(length.sum()), np.diff(asked.tocsc().indptr).astype(np.int64), bool(kept.used),
                         any(note.archived for note in kept.view(View).notes.values())),
    )  # fmt: skip


class ReferenceStore(Books):
    """A GraphStore that holds all in memory. Writes, jobs and vector sets are kept by ``Books``."""

    name = "reference"

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def candidates(self, query: Query) -> Candidates:
        return exhaustive(query, self.of(query.scope), self.dim(query.space))

    async def lookup(self, scope: Scope, ask: ports.Lookup) -> ports.Found:
        kept = self.of(scope)
        view = kept.view(View)
        events = {}
        for id, event in kept.events.items():  # in seq order, so that the newest stays
            if (identity := kept.identities[id]) in ask.identities:
                held = [view.notes[x] for x in await self.notes_of(scope, [id]) if kept.bases[x].kind is Kind.EPISODIC]
                events[identity] = (event, tuple(x.id for x in sorted(held, key=lambda note: note.part)))
        titled = [(note, key) for note, index in zip(view.visible, view.index, strict=True) for key in index.title_keys]
        return ports.Found(
            events=events,
            tombstones=frozenset(set(ask.identities) & kept.tombstones.keys()),
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
        return {id: note for id in ids if (note := self.of(scope).view(View).notes.get(id))}

    async def events(self, scope: Scope, ids: Sequence[str]) -> dict[str, EventRecord]:
        return {id: event for id in ids if (event := self.of(scope).events.get(id))}

    async def page(self, scope: Scope, filter: Filter, after: int, limit: int) -> list[Note]:
        kept = self.of(scope)
        found = (x for x in kept.view(View).visible if x.seq > after and passes(x, filter, kept))
        return [note for note, _ in zip(found, range(limit), strict=False)]

    async def archived(self, scope: Scope, before: int, limit: int) -> list[Note]:
        away = [note for note in self.of(scope).view(View).notes.values() if note.archived and note.seq < before]
        return sorted(away, key=lambda note: -note.seq)[:limit]

    async def histories(self, scope: Scope, ids: Sequence[str]) -> dict[str, ports.NoteHistory]:
        kept, told = self.of(scope), {}
        for id in (id for id in ids if id in kept.bases):
            live = live_versions(kept.revisions[id])
            all_ = tuple(r.model_copy(update={"live": r.version in live}) for r in kept.revisions[id])
            told[id] = ports.NoteHistory(kept.bases[id], all_)
        return told

    async def links(self, scope: Scope, notes: Sequence[str]) -> list[Link]:
        asked = set(notes)
        return [x for x in self.of(scope).view(View).links if x.source in asked or x.target in asked]

    async def terms(self, scope: Scope, note: str) -> list[Term]:
        view = self.of(scope).view(View)
        uses = view.index[view.row[note]].terms if note in view.row else ()
        return [Term(key=x.key, text=x.text, kind=x.kind, notes=len(view.terms[x.key])) for x in uses]

    async def uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, tuple[ports.TermUse, ...]]:
        view = self.of(scope).view(View)
        return {note: view.index[view.row[note]].terms for note in notes if note in view.row}

    async def optimize(self, scope: Scope, space: int) -> None: ...

    async def near(self, scope: Scope, notes: Sequence[str], space: int, k: int) -> list[ports.Near]:
        kept, asked = self.of(scope), set(notes)
        have = [note for note in kept.view(View).visible if (space, note.id) in kept.vectors]
        rows = np.array([kept.vectors[space, note.id] for note in have], np.float32)
        told = []
        for row in (row for row, note in enumerate(have) if note.id in asked):
            cosines = rows[:row] @ rows[row]
            order = np.argsort(-cosines, kind="stable")[:k]
            told.append(ports.Near(have[row].id, tuple((have[i].id, float(cosines[i])) for i in order)))
        return told
