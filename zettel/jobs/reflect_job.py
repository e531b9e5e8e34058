"""The reflect job: writes insights about communities of notes, a profile of the people, and lessons from outcomes.

The job reads the scope once, page by page, and stores only the fields that it needs. Unchanged communities cost only
the comparison. The others get new insights, a few per transaction, written by a model if there is one. The model is
called outside of any transaction. Each commit checks its sources again: if they changed, the job starts again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple

import anyio

from zettel.core.commit import Clock, Commits
from zettel.core.follow_ups import FollowUps, UnfinishedJobs, finish_plan
from zettel.core.paging import archived_pages, pages
from zettel.core.vectors import Vectors
from zettel.evolve.communities import MIN_EVENTS, communities
from zettel.evolve.insights import Member, digest, place
from zettel.evolve.lessons import (
    MAX_BEFORE,
    MAX_OUTCOMES,
    MIN_CONFIDENCE,
    confidence,
    lessons,
    may_report_outcome,
    outcomes,
)
from zettel.evolve.profile import PROFILE, Statement, profile, statements
from zettel.jobs.counters import Counters
from zettel.jobs.derived_notes import DerivedNotes, Draft, Former, former, text_version
from zettel.jobs.retry_limit import RetryLimit
from zettel.jobs.spec import JobContext, JobHandler, JobLane, JobSpec
from zettel.link.near import Binding, binding
from zettel.model import Input, Job, JobKind, Kind, LinkType, Note, Scope
from zettel.ports import GraphStore, ScopeState
from zettel.ports.language_model import AskFactory, InvalidItem, ModelReflector
from zettel.ports.operations import Op, StaleLease
from zettel.text.extraction import terms_of
from zettel.text.index import vector_text

PAGE = 500
"""Notes per page."""
TOGETHER = 10
"""Notes per transaction."""
THEME = "theme"
"""Tag of an insight about a community."""
LESSON = "lesson"
"""Tag of a note about how to act."""
_SOURCE_KINDS = frozenset({Kind.EPISODIC, Kind.SEMANTIC})
"""The kinds of source notes: other kinds are themselves derived. Notes that look like instructions are skipped."""
_TIES = frozenset({LinkType.RELATES, LinkType.MENTIONS, LinkType.SUPERSEDES, LinkType.CONTRADICTS})


class ReflectJob(JobHandler):
    """Writes insights, profiles and lessons for the scopes of a store."""

    def __init__(
        self,
        store: GraphStore,
        commits: Commits,
        vectors: Vectors,
        follow_ups: FollowUps,
        counters: Counters,
        reflector: ModelReflector | None,
        ask_about: AskFactory,
    ) -> None:
        self._store = store
        self._commits = commits
        self._counters = counters
        self._derived_notes = DerivedNotes(store, vectors, follow_ups)
        self._reflector = reflector
        self._ask_about = ask_about

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs]:
        """Reflect on the scope of these jobs."""
        seen = await self._see(scope)
        formers = await self._formers(scope, seen)
        await self._write(scope, await self._profile(scope, seen, formers))
        drafts = await self._lessons(scope, seen, [one for one in formers if one.tag == LESSON])
        for start in range(0, len(drafts), TOGETHER):
            await self._write(scope, drafts[start : start + TOGETHER])
        regions = await self._changed(scope, seen, [one for one in formers if one.tag == THEME])
        lost = [one.former for one in regions if one.former is not None and one.is_lost]
        await self._write(scope, await self._archive_all(scope, lost))
        left = [one for one in regions if not one.is_lost]
        together = TOGETHER if self._reflector is None else self._reflector.batch
        retry_limit = RetryLimit()
        for start in range(0, len(left), together):
            with retry_limit:
                await self._write(scope, await self._told(scope, seen, left[start : start + together]))
        retry_limit.raise_last()
        await self._commits.commit(scope, finish_plan(jobs))
        return []

    # what there is --------------------------------------------------------------------------------------------

    async def _see(self, scope: Scope) -> _ScopeView:
        seen = _ScopeView()
        async for page in pages(self._store, scope, PAGE):
            await self._take(scope, seen, page)
        async for page in archived_pages(self._store, scope, PAGE):
            # Decayed notes remain sources of their insights; other archived notes do not.
            await self._take(scope, seen, [note for note in page if note.faded or note.kind not in _SOURCE_KINDS])
        seen.settle()
        return seen

    async def _take(self, scope: Scope, seen: _ScopeView, notes: Sequence[Note]) -> None:
        for note in notes:
            seen.take(note)
        for link in await self._store.links(scope, [note.id for note in notes]) if notes else ():
            if link.type in _TIES:
                pair = min(link.source, link.target), max(link.source, link.target)
                seen.links[pair] = max(link.weight, seen.links.get(pair, 0.0))

    async def _formers(self, scope: Scope, seen: _ScopeView) -> list[Former]:
        """Return the notes that earlier reflect jobs wrote, archived ones included, in order of arrival."""
        ids = sorted(seen.derived)
        found: list[Former] = []
        for start in range(0, len(ids), PAGE):
            histories = await self._store.histories(scope, ids[start : start + PAGE])
            found += [made for history in histories.values() if (made := former(history)) is not None]
        return sorted(found, key=lambda one: one.note.seq)

    # what lasts of people -------------------------------------------------------------------------------------

    async def _profile(self, scope: Scope, seen: _ScopeView, formers: Iterable[Former]) -> list[Draft]:
        own = next((one for one in formers if one.tag == PROFILE), None)
        if own is not None and own.settled:
            return []
        latest = max((when for _, _, when in seen.said.values() if when is not None), default=None)
        told = profile(seen.statements, seen.speakers, latest, seen.near())
        if told is None:
            return [] if own is None else await self._archive_all(scope, [own])
        notes = await self._notes(scope, told.sources)
        caption = f"Profile of {', '.join(told.people)}"
        return [Draft(Kind.INSIGHT, PROFILE, told.content, caption, (), tuple(notes.values()), own)]

    # how to act -----------------------------------------------------------------------------------------------

    async def _lessons(self, scope: Scope, seen: _ScopeView, formers: Sequence[Former]) -> list[Draft]:
        ended = sorted(seen.ended, key=lambda note: note.seq)[-MAX_OUTCOMES:]
        around = sorted({id for note in ended for id in seen.before(note)})
        turns = await self._store.notes(scope, around) if around else {}
        made = [outcomes(note, [(id, turns[id].content) for id in seen.before(note) if id in turns]) for note in ended]
        told = await anyio.to_thread.run_sync(lessons, [one for several in made for one in several])
        notes = await self._notes(scope, {id for lesson in told for id in lesson.notes})
        uses = await self._store.note_uses(scope, [one.note.id for one in formers])
        left = list(formers)
        drafts: list[Draft] = []
        for lesson in told:
            own = max(left, key=lambda one: len(one.rests_on & set(lesson.notes)), default=None)
            if own is None or own.rests_on.isdisjoint(lesson.notes):
                own = None
            else:
                left.remove(own)
            if own is None or not own.settled:
                sure = confidence(lesson, uses.get(own.note.id) if own else None)
                sources = tuple(notes[id] for id in lesson.notes)
                caption = f"When {lesson.situation}"
                drafts.append(Draft(Kind.PROCEDURAL, LESSON, lesson.content, caption, (), sources, own, sure,
                                    archived=sure < MIN_CONFIDENCE))  # fmt: skip
        gone = [one for one in left if not one.settled and not one.note.archived]
        return drafts + await self._archive_all(scope, gone)

    # what belongs together ------------------------------------------------------------------------------------

    async def _changed(self, scope: Scope, seen: _ScopeView, formers: Sequence[Former]) -> list[_Region]:
        """Return the communities without an insight, or with one made from other notes or other text."""
        held = [one for one in formers if one.settled or one.note.faded or not one.note.archived]
        known = [{seen.event_of[read.note] for read in one.read if read.note in seen.event_of} for one in held]
        found = await anyio.to_thread.run_sync(communities, seen.keys, seen.ties, known)
        regions = [
            _Region(one, tuple(id for event in sorted(events) for id in seen.notes_of[event]), len(events) < MIN_EVENTS)
            for one, events in zip([*held, *[None] * (len(found) - len(held))], found, strict=True)
            if one is None or not one.settled
        ]
        read = await self._read(scope, [id for region in regions if region.former for id in region.notes])
        return [one for one in regions if one.former is None or one.is_lost or _is_changed(one.former, one.notes, read)]

    async def _read(self, scope: Scope, ids: Sequence[str]) -> dict[str, Input]:
        """Return the version of each note that set its text."""
        found: dict[str, Input] = {}
        for start in range(0, len(ids), PAGE):
            histories = await self._store.histories(scope, ids[start : start + PAGE])
            found |= {id: Input(id, text_version(history)) for id, history in histories.items()}
        return found

    async def _notes(self, scope: Scope, ids: Iterable[str]) -> dict[str, Note]:
        """Return these notes. Raises ``StaleLease`` if one was deleted since the scope was read."""
        wanted = sorted(set(ids))
        notes = await self._store.notes(scope, wanted) if wanted else {}
        if len(notes) < len(wanted):
            raise StaleLease("a note was deleted during reflection")
        return notes

    async def _told(self, scope: Scope, seen: _ScopeView, regions: Sequence[_Region]) -> list[Draft]:
        ids = {id for region in regions for id in region.notes}
        notes = await self._notes(scope, ids)
        drafts: list[Draft] = []
        central: list[list[Note]] = []
        for region in regions:
            own = [notes[id] for id in region.notes]
            weights = seen.weights(region.notes)
            members = [Member(note, _binding(note), weights[seen.event_of[note.id]]) for note in own]
            drafts.append(Draft(Kind.INSIGHT, THEME, *digest(members, seen.speakers), tuple(own), region.former))
            central.append([one.note for one in sorted(members, key=lambda one: (-one.weight, place(one.note)))])
        return drafts if self._reflector is None else await self._by_model(scope, self._reflector, drafts, central)

    async def _by_model(
        self, scope: Scope, reflector: ModelReflector, drafts: Sequence[Draft], central: Sequence[Sequence[Note]]
    ) -> list[Draft]:
        """Return the drafts in a model's words; a draft without a valid insight stays extractive."""
        shown = [notes[: reflector.shown] for notes in central]
        result = await reflector.reflect(shown, self._ask_about(scope, [note for notes in shown for note in notes]))
        return [
            draft
            if isinstance(insight, InvalidItem)
            else draft._replace(content=insight, model=result.model, prompt=result.prompt)
            for draft, insight in zip(drafts, result.insights, strict=True)
        ]

    async def _archive_all(self, scope: Scope, formers: Sequence[Former]) -> list[Draft]:
        """Return drafts that archive notes whose sources no longer support them."""
        notes = await self._store.notes(scope, sorted({id for one in formers for id in one.rests_on}))
        drafts: list[Draft] = []
        for one in formers:
            told = one.note.content, one.note.caption, one.note.keywords
            sources = tuple(notes[id] for id in sorted(one.rests_on) if id in notes)
            drafts.append(Draft(one.note.kind, one.tag, *told, sources, one, archived=True))
        return drafts

    # what is written ------------------------------------------------------------------------------------------

    async def _write(self, scope: Scope, drafts: Sequence[Draft]) -> None:
        news = [draft for draft in drafts if draft.is_changed]

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            return await self._derived_notes.ops(scope, news, clock)

        if news and await self._commits.commit(scope, plan):
            self._counters.count(scope, insights=sum(not draft.archived for draft in news))


class _Region(NamedTuple):
    """A community of notes, its existing insight, and whether it has too few notes for one."""

    former: Former | None
    notes: tuple[str, ...]
    is_lost: bool


@dataclass(slots=True)
class _ScopeView:
    """A scope as it was read: notes and key of each event, derived notes, speakers and their statements, and links.

    ``said``: by event, its note, speaker and time. ``turns``: by session, in order. ``ended``: notes about outcomes.
    """

    event_of: dict[str, str] = field(default_factory=dict)
    notes_of: dict[str, list[str]] = field(default_factory=dict)
    keys: dict[str, bytes] = field(default_factory=dict)
    derived: set[str] = field(default_factory=set)
    speakers: set[str] = field(default_factory=set)
    said: dict[str, tuple[str, str, datetime | None]] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    turns: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    ended: list[Note] = field(default_factory=list)
    links: dict[tuple[str, str], float] = field(default_factory=dict)
    ties: dict[tuple[str, str], float] = field(default_factory=dict)
    around: dict[str, dict[str, float]] = field(default_factory=dict)

    def take(self, note: Note) -> None:
        """Add a note."""
        if note.kind not in _SOURCE_KINDS:
            self.derived.add(note.id)
            return
        if note.valid_to is not None or note.flags:
            return
        event = note.event_ids[0]
        self.event_of[note.id] = event
        self.notes_of.setdefault(event, []).append(note.id)
        self.keys.setdefault(event, _key(note))
        if note.speaker:
            self.speakers.add(note.speaker)
            self.said[event] = note.id, note.speaker, note.occurred_at
        if note.session:
            self.turns.setdefault(note.session, []).append((note.seq, note.id))
        self.statements += statements(note)
        if may_report_outcome(note):
            self.ended.append(note)

    def before(self, note: Note) -> list[str]:
        """Return the ids of the turns just before a note in its session, the latest last."""
        turns = self.turns.get(note.session or "", [])
        at = bisect_left(turns, (note.seq, ""))
        return [id for _, id in turns[max(0, at - MAX_BEFORE) : at]]

    def settle(self) -> None:
        """Sort the turns, and turn links between notes into weights between events."""
        for turns in self.turns.values():
            turns.sort()
        for (one, other), weight in self.links.items():
            if one not in self.event_of or other not in self.event_of:
                continue
            first, last = sorted((self.event_of[one], self.event_of[other]))
            if first != last:
                pair = first, last
                self.ties[pair] = max(weight, self.ties.get(pair, 0.0))
        for (one, other), weight in self.ties.items():
            self.around.setdefault(one, {})[other] = weight
            self.around.setdefault(other, {})[one] = weight

    def near(self) -> dict[str, list[tuple[str, datetime]]]:
        """Return by event the linked notes of the same speaker, with their times."""
        found: dict[str, list[tuple[str, datetime]]] = {}
        for event in {one.event for one in self.statements} & self.said.keys():
            for other in sorted(self.around.get(event, {}).keys() & self.said.keys()):
                note, speaker, when = self.said[other]
                if speaker == self.said[event][1] and when is not None:
                    found.setdefault(event, []).append((note, when))
        return found

    def weights(self, notes: Iterable[str]) -> dict[str, float]:
        """Return the sum of the weights from each event of these notes to the others."""
        events = {self.event_of[id] for id in notes}
        return {one: sum(self.around.get(one, {}).get(other, 0.0) for other in sorted(events)) for one in events}


def _is_changed(former: Former, notes: Sequence[str], read: Mapping[str, Input]) -> bool:
    return set(former.read) != {read[id] for id in notes if id in read}


def _binding(note: Note) -> Binding:
    """Return the terms of a note's own text that may link it to others."""
    return binding(terms_of(note.model_copy(update={"authored": ()})))


def _key(note: Note) -> bytes:
    """Return a 16-byte key that orders an event by its content."""
    told = f"{note.occurred_at}\0{note.session}\0{note.part}\0{vector_text(note)}"
    return blake2b(told.encode("utf-8", "replace"), digest_size=16).digest()


def _make(context: JobContext) -> ReflectJob:
    return ReflectJob(
        context.store, context.commits, context.vectors, context.follow_ups, context.counters,
        context.models.reflector, context.ask_about,
    )  # fmt: skip


JOB = JobSpec(JobKind.REFLECT, _make, lane=JobLane.ROUND, round=3, quotes_texts=True)
