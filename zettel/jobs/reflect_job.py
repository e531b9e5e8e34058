"""The reflect job: writes insights about communities of notes, a profile of the people, and lessons from outcomes.

The job reads the scope once, page by page, and keeps only the fields that it needs in memory. It skips unchanged
communities. Changed communities get new insights, a few per transaction. If a model is configured, it writes them; the
job calls it outside of any transaction. Each commit checks its sources again: if they changed, the job starts again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from itertools import groupby
from typing import NamedTuple

import anyio

from zettel.core.authority import is_on_probation
from zettel.core.commit import Clock, Commits
from zettel.core.follow_ups import UnfinishedJobs, finish_plan
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
from zettel.evolve.profile import (
    LEAST_WEIGHT,
    SHOWN_WEIGHT,
    Statement,
    current,
    profile,
    render,
    shown_to_model,
    statements,
)
from zettel.evolve.profile_by_model import LiteLLMProfiler
from zettel.jobs.counters import Counters
from zettel.jobs.derived_notes import DerivedNote, DerivedNotes, Draft, derived_note, text_version
from zettel.jobs.retry_limit import RetryLimit
from zettel.jobs.spec import JobContext, JobHandler, JobSpec
from zettel.link.near import Binding, binding
from zettel.model import REPLACING, Input, Job, JobKind, Kind, LinkType, Note, Scope
from zettel.model.tags import LESSON, PROFILE, THEME
from zettel.ports import GraphStore, ScopeState
from zettel.ports.language_model import AskFactory, InvalidItem, ModelReflector
from zettel.ports.operations import Op, StaleLease
from zettel.text.extraction import terms_of
from zettel.text.index import vector_text

PAGE = 500
"""Notes per page."""
BATCH = 10
"""Notes per transaction."""
_SOURCE_KINDS = frozenset({Kind.EPISODIC, Kind.SEMANTIC})
"""The kinds of source notes: other kinds are derived. Notes that look like instructions are skipped, too."""
_TIES = frozenset({LinkType.RELATES, LinkType.MENTIONS, *REPLACING, LinkType.CONTRADICTS})


class ReflectJob(JobHandler):
    """Writes insights, profiles and lessons for the scopes of a store."""

    def __init__(
        self,
        store: GraphStore,
        commits: Commits,
        vectors: Vectors,
        counters: Counters,
        reflector: ModelReflector | None,
        profiler: LiteLLMProfiler | None,
        ask_about: AskFactory,
    ) -> None:
        self._store = store
        self._commits = commits
        self._counters = counters
        self._writer = DerivedNotes(store, vectors)
        self._reflector = reflector
        self._profiler = profiler
        self._ask_about = ask_about

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs]:
        """Reflect on the scope of these jobs."""
        view = await self._load_view(scope)
        derived = await self._load_derived(scope, view)
        await self._write(scope, await self._profile(scope, view, derived))
        drafts = await self._lessons(scope, view, [note for note in derived if note.tag == LESSON])
        for start in range(0, len(drafts), BATCH):
            await self._write(scope, drafts[start : start + BATCH])
        regions = await self._changed_regions(scope, view, [note for note in derived if note.tag == THEME])
        unsupported = [region.existing for region in regions if region.existing is not None and region.is_too_small]
        await self._write(scope, await self._archive_all(scope, unsupported))
        regions = [region for region in regions if not region.is_too_small]
        retry_limit = RetryLimit()
        for batch in self._batches(view, regions):
            with retry_limit:
                await self._write(scope, await self._insights(scope, view, batch))
        retry_limit.raise_last()
        await self._commits.commit(scope, finish_plan(jobs))
        return []

    def _batches(self, view: _ScopeView, regions: Sequence[_Region]) -> Iterator[Sequence[_Region]]:
        """Split regions into requests. Those of different trust never share one, because it limits the trust of all."""
        size = BATCH if self._reflector is None else self._reflector.batch
        for _, group in groupby(sorted(regions, key=view.trust), key=view.trust):
            level = [*group]
            yield from (level[start : start + size] for start in range(0, len(level), size))

    # reading ---------------------------------------------------------------------------------------------------

    async def _load_view(self, scope: Scope) -> _ScopeView:
        view = _ScopeView(LEAST_WEIGHT if self._profiler is None else SHOWN_WEIGHT)
        async for page in pages(self._store, scope, PAGE):
            await self._add(scope, view, page)
        async for page in archived_pages(self._store, scope, PAGE):
            # Decayed notes remain sources of their insights; other archived notes do not.
            await self._add(scope, view, [note for note in page if note.faded or note.kind not in _SOURCE_KINDS])
        view.finish()
        return view

    async def _add(self, scope: Scope, view: _ScopeView, notes: Sequence[Note]) -> None:
        for note in notes:
            view.add(note)
        for link in await self._store.links(scope, [note.id for note in notes]) if notes else ():
            if link.type in _TIES:
                pair = min(link.source, link.target), max(link.source, link.target)
                view.links[pair] = max(link.weight, view.links.get(pair, 0.0))

    async def _load_derived(self, scope: Scope, view: _ScopeView) -> list[DerivedNote]:
        """Return the notes that earlier reflect jobs wrote, archived ones included, in order of arrival."""
        ids = sorted(view.derived)
        derived: list[DerivedNote] = []
        for start in range(0, len(ids), PAGE):
            histories = await self._store.histories(scope, ids[start : start + PAGE])
            derived += [note for history in histories.values() if (note := derived_note(history)) is not None]
        return sorted(derived, key=lambda existing: existing.note.seq)

    # profile ---------------------------------------------------------------------------------------------------

    async def _profile(self, scope: Scope, view: _ScopeView, derived: Iterable[DerivedNote]) -> list[Draft]:
        existing = next((existing for existing in derived if existing.tag == PROFILE), None)
        if existing is not None and existing.is_settled:
            return []
        latest = max((when for _, _, when in view.spoken.values() if when is not None), default=None)
        likely = [statement for statement in view.statements if statement.weight >= LEAST_WEIGHT]
        new, model = profile(likely, view.speakers, latest), None
        if new is None:
            return [] if existing is None else await self._archive_all(scope, [existing])
        shown: tuple[Note, ...] = ()
        if self._profiler is not None:
            asked = shown_to_model(current(view.statements, view.speakers))
            shown = tuple((await self._notes(scope, {statement.note.id for statement in asked})).values())
            lines, model = await self._profiler.lines(asked, self._ask_about(scope, shown))
            new = render(lines) or new
        notes = await self._notes(scope, new.sources)
        caption = f"Profile of {', '.join(new.people)}"
        draft = Draft(Kind.INSIGHT, PROFILE, new.content, caption, (), tuple(notes.values()), existing)
        if model is not None and self._profiler is not None:
            draft = draft._replace(model=model, prompt=self._profiler.prompt.name, shown=shown)
        return [draft]

    # lessons ---------------------------------------------------------------------------------------------------

    async def _lessons(self, scope: Scope, view: _ScopeView, derived: Sequence[DerivedNote]) -> list[Draft]:
        reports = sorted(view.reports, key=lambda note: note.seq)[-MAX_OUTCOMES:]
        before = sorted({id for note in reports for id in view.before(note)})
        turns = await self._store.notes(scope, before) if before else {}
        reported = [
            outcome
            for note in reports
            for outcome in outcomes(note, [(id, turns[id].content) for id in view.before(note) if id in turns])
        ]
        learned = await anyio.to_thread.run_sync(lessons, reported)
        notes = await self._notes(scope, {id for lesson in learned for id in lesson.notes})
        uses = await self._store.note_uses(scope, [existing.note.id for existing in derived])
        remaining = list(derived)
        settled = {existing.note.content for existing in derived if existing.is_settled}
        drafts: list[Draft] = []
        for lesson in learned:
            if lesson.content in settled:
                continue
            own = max(remaining, key=lambda existing: len(existing.source_ids & set(lesson.notes)), default=None)
            if own is None or own.source_ids.isdisjoint(lesson.notes):
                own = None
            else:
                remaining.remove(own)
            if own is None or not own.is_settled:
                value = confidence(lesson, uses.get(own.note.id) if own else None)
                sources = tuple(notes[id] for id in lesson.notes)
                caption = f"When {lesson.situation}"
                drafts.append(Draft(Kind.PROCEDURAL, LESSON, lesson.content, caption, (), sources, own, value,
                                    archived=value < MIN_CONFIDENCE))  # fmt: skip
        unsupported = [existing for existing in remaining if not existing.is_settled and not existing.note.archived]
        return drafts + await self._archive_all(scope, unsupported)

    # insights --------------------------------------------------------------------------------------------------

    async def _changed_regions(self, scope: Scope, view: _ScopeView, derived: Sequence[DerivedNote]) -> list[_Region]:
        """Return the communities without an insight, or with one made from other notes or other text."""
        current = [own for own in derived if own.is_settled or own.note.faded or not own.note.archived]
        known = [{view.event_of[id] for id in own.source_ids if id in view.event_of} for own in current]
        groups = await anyio.to_thread.run_sync(communities, view.keys, view.ties, known)
        regions = [
            _Region(own, tuple(id for event in sorted(group) for id in view.notes_of[event]), len(group) < MIN_EVENTS)
            for own, group in zip([*current, *[None] * (len(groups) - len(current))], groups, strict=True)
            if own is None or not own.is_settled
        ]
        inputs = await self._inputs(scope, [id for region in regions if region.existing for id in region.notes])
        return [
            region
            for region in regions
            if region.existing is None or region.is_too_small or _is_changed(region.existing, region.notes, inputs)
        ]

    async def _inputs(self, scope: Scope, ids: Sequence[str]) -> dict[str, Input]:
        """Return the version of each note that set its text."""
        inputs: dict[str, Input] = {}
        for start in range(0, len(ids), PAGE):
            histories = await self._store.histories(scope, ids[start : start + PAGE])
            inputs |= {id: Input(id, text_version(history)) for id, history in histories.items()}
        return inputs

    async def _notes(self, scope: Scope, ids: Iterable[str]) -> dict[str, Note]:
        """Return these notes. Raises ``StaleLease`` if one was deleted since the scope was read."""
        unique = sorted(set(ids))
        notes = await self._store.notes(scope, unique) if unique else {}
        if len(notes) < len(unique):
            raise StaleLease("a note was deleted during reflection")
        return notes

    async def _insights(self, scope: Scope, view: _ScopeView, regions: Sequence[_Region]) -> list[Draft]:
        ids = {id for region in regions for id in region.notes}
        notes = await self._notes(scope, ids)
        drafts: list[Draft] = []
        central: list[list[Note]] = []
        for region in regions:
            own = [notes[id] for id in region.notes]
            weights = view.weights(region.notes)
            members = [Member(note, _binding(note), weights[view.event_of[note.id]]) for note in own]
            drafts.append(Draft(Kind.INSIGHT, THEME, *digest(members, view.speakers), tuple(own), region.existing))
            members.sort(key=lambda member: (-member.weight, place(member.note)))
            central.append([member.note for member in members])
        return drafts if self._reflector is None else await self._by_model(scope, self._reflector, drafts, central)

    async def _by_model(
        self, scope: Scope, reflector: ModelReflector, drafts: Sequence[Draft], central: Sequence[Sequence[Note]]
    ) -> list[Draft]:
        """Return the drafts in a model's words; a draft without a valid insight stays extractive."""
        groups = [notes[: reflector.shown] for notes in central]
        shown = tuple(note for notes in groups for note in notes)
        result = await reflector.reflect(groups, self._ask_about(scope, shown))
        return [
            draft
            if isinstance(insight, InvalidItem)
            else draft._replace(content=insight, model=result.model, prompt=result.prompt, shown=shown)
            for draft, insight in zip(drafts, result.insights, strict=True)
        ]

    async def _archive_all(self, scope: Scope, derived: Sequence[DerivedNote]) -> list[Draft]:
        """Return drafts that archive derived notes, because their sources do not support them any more."""
        notes = await self._store.notes(scope, sorted({id for existing in derived for id in existing.source_ids}))
        drafts: list[Draft] = []
        for existing in derived:
            fields = existing.note.content, existing.note.caption, existing.note.keywords
            sources = tuple(notes[id] for id in sorted(existing.source_ids) if id in notes)
            drafts.append(Draft(existing.note.kind, existing.tag, *fields, sources, existing, archived=True))
        return drafts

    # writing ---------------------------------------------------------------------------------------------------

    async def _write(self, scope: Scope, drafts: Sequence[Draft]) -> None:
        changed = [draft for draft in drafts if draft.is_changed]

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            return await self._writer.ops(scope, changed, clock)

        if changed and await self._commits.commit(scope, plan):
            self._counters.count(scope, insights=sum(not draft.archived for draft in changed))


class _Region(NamedTuple):
    """A community of notes, its existing insight, and whether it has too few notes for one."""

    existing: DerivedNote | None
    notes: tuple[str, ...]
    is_too_small: bool


@dataclass(slots=True)
class _ScopeView:
    """The fields of a scope that the job needs.

    ``least``: the lowest weight of statements. ``spoken``: the note, speaker and time of each event. ``turns``: the
    turns of each session, in order; ``tasks``: those of users. ``reports``: notes that may report outcomes. ``ties``:
    link weights between events. ``tied``: the linked events of each event. ``doubted``: the trust of notes without
    full trust.
    """

    least: float
    event_of: dict[str, str] = field(default_factory=dict)
    notes_of: dict[str, list[str]] = field(default_factory=dict)
    keys: dict[str, bytes] = field(default_factory=dict)
    derived: set[str] = field(default_factory=set)
    speakers: set[str] = field(default_factory=set)
    spoken: dict[str, tuple[str, str, datetime | None]] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    turns: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    tasks: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    reports: list[Note] = field(default_factory=list)
    links: dict[tuple[str, str], float] = field(default_factory=dict)
    ties: dict[tuple[str, str], float] = field(default_factory=dict)
    tied: dict[str, dict[str, float]] = field(default_factory=dict)
    doubted: dict[str, float] = field(default_factory=dict)

    def add(self, note: Note) -> None:
        """Add a note."""
        if note.kind not in _SOURCE_KINDS:
            self.derived.add(note.id)
            return
        if note.valid_to is not None or is_on_probation(note):
            return
        if note.trust < 1:
            self.doubted[note.id] = note.trust
        event = note.event_ids[0]
        self.event_of[note.id] = event
        self.notes_of.setdefault(event, []).append(note.id)
        self.keys.setdefault(event, _key(note))
        if note.speaker:
            self.speakers.add(note.speaker)
            self.spoken[event] = note.id, note.speaker, note.occurred_at
        if note.session:
            self.turns.setdefault(note.session, []).append((note.seq, note.id))
            if note.role == "user":
                self.tasks.setdefault(note.session, []).append((note.seq, note.id))
        self.statements += statements(note, self.least)
        if may_report_outcome(note):
            self.reports.append(note)

    def trust(self, region: _Region) -> float:
        """Return the lowest trust in a note of a region."""
        return min(self.doubted.get(id, 1.0) for id in region.notes)

    def before(self, note: Note) -> list[str]:
        """Return the ids of the turns just before a note in its session, the latest last.

        Before the result of a tool, these are the task and the turn just before.
        """
        turns = self.turns.get(note.session or "", [])
        at = bisect_left(turns, (note.seq, ""))
        if note.role == "tool":
            tasks = self.tasks.get(note.session or "", [])
            place = bisect_left(tasks, (note.seq, ""))
            return [tasks[place - 1][1], turns[at - 1][1]] if place else []
        return [id for _, id in turns[max(0, at - MAX_BEFORE) : at]]

    def finish(self) -> None:
        """Sort the turns, and convert links between notes to weights between events."""
        for turns in (*self.turns.values(), *self.tasks.values()):
            turns.sort()
        for (source, target), weight in self.links.items():
            if source not in self.event_of or target not in self.event_of:
                continue
            first, last = sorted((self.event_of[source], self.event_of[target]))
            if first != last:
                pair = first, last
                self.ties[pair] = max(weight, self.ties.get(pair, 0.0))
        for (first, last), weight in self.ties.items():
            self.tied.setdefault(first, {})[last] = weight
            self.tied.setdefault(last, {})[first] = weight

    def weights(self, notes: Iterable[str]) -> dict[str, float]:
        """Return for each event of these notes the sum of its weights to the other events."""
        events = {self.event_of[id] for id in notes}
        return {event: sum(self.tied.get(event, {}).get(other, 0.0) for other in sorted(events)) for event in events}


def _is_changed(existing: DerivedNote, notes: Sequence[str], inputs: Mapping[str, Input]) -> bool:
    return set(existing.sources) != {inputs[id] for id in notes if id in inputs}


def _binding(note: Note) -> Binding:
    """Return the terms of a note's own text that may link it to others."""
    return binding(terms_of(note.model_copy(update={"authored": ()})))


def _key(note: Note) -> bytes:
    """Return a 16-byte key that orders an event by its content."""
    text = f"{note.occurred_at}\0{note.session}\0{note.part}\0{vector_text(note)}"
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def _make(context: JobContext) -> ReflectJob:
    return ReflectJob(
        context.store, context.commits, context.vectors, context.counters,
        context.models.reflector, context.models.profiler, context.ask_about,
    )  # fmt: skip


JOB = JobSpec(JobKind.REFLECT, _make, round=3, quotes_texts=True)
