"""The reflect job: writes insights about topics, summaries of sessions, a profile of the people, lessons, and a model's
decisions about names.

The job reads the scope once, page by page, and keeps only the fields that it needs in memory. It skips unchanged topics
and sessions. Changed ones get a new text, a few per transaction. If a model is configured, it writes the insights; the
job calls it outside of any transaction. Each commit checks its sources again: if they changed, the job starts again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import anyio

from zettel.core.authority import is_on_probation
from zettel.core.commit import Clock, Commits
from zettel.core.entity_decisions import decisions_of
from zettel.core.entity_notes import decided_names, metadata_of, statement_of
from zettel.core.follow_ups import UnfinishedJobs, finish_plan
from zettel.core.paging import archived_pages, pages
from zettel.core.vectors import Vectors
from zettel.evolve.entities_by_model import PAIRS, TEXTS, LiteLLMEntityMatcher, NamePair
from zettel.evolve.entity_reader import read_index
from zettel.evolve.insights import Member, digest, place
from zettel.evolve.lessons import (
    MAX_OUTCOMES,
    MIN_CONFIDENCE,
    confidence,
    lessons,
    outcomes,
)
from zettel.evolve.profile import (
    LEAST_WEIGHT,
    SHOWN_WEIGHT,
    current,
    profile,
    render,
    shown_to_model,
)
from zettel.evolve.profile_by_model import LiteLLMProfiler
from zettel.evolve.segments import borders_for
from zettel.evolve.topics import MIN_EVENTS
from zettel.jobs.counters import Counters
from zettel.jobs.derived_notes import DerivedNote, DerivedNotes, Draft, derived_note, text_version
from zettel.jobs.retry_limit import RetryLimit
from zettel.jobs.scope_view import SOURCE_KINDS, ScopeView, grouped
from zettel.jobs.spec import JobContext, JobHandler, JobSpec
from zettel.link.near import Binding, binding
from zettel.model import REPLACING, Input, Job, JobKind, Kind, LinkType, Note, Scope
from zettel.model.tags import ENTITY, LESSON, PROFILE, SESSION
from zettel.ports import GraphStore, ScopeState
from zettel.ports.language_model import AskFactory, InvalidItem, ModelReflector
from zettel.ports.operations import Op, StaleLease
from zettel.text.extraction import terms_of
from zettel.text.tokens import phrase_key

PAGE = 500
"""Notes per page."""
BATCH = 10
"""Notes per transaction."""
_TIES: Mapping[LinkType, float] = {
    LinkType.RELATES: 0.0, LinkType.MENTIONS: 0.5, LinkType.CONTRADICTS: 0.5, **dict.fromkeys(REPLACING, 0.5),
}  # fmt: skip
"""The lowest similarity of segments whose notes are linked. A RELATES link only makes them comparable."""


class ReflectJob(JobHandler):
    """Writes insights, summaries of sessions, profiles and lessons for the scopes of a store."""

    def __init__(
        self,
        store: GraphStore,
        commits: Commits,
        vectors: Vectors,
        counters: Counters,
        reflector: ModelReflector | None,
        profiler: LiteLLMProfiler | None,
        matcher: LiteLLMEntityMatcher | None,
        ask_about: AskFactory,
    ) -> None:
        self._store = store
        self._commits = commits
        self._counters = counters
        self._vectors = vectors
        self._writer = DerivedNotes(store, vectors)
        self._reflector = reflector
        self._profiler = profiler
        self._matcher = matcher
        self._ask_about = ask_about

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs]:
        """Reflect on the scope of these jobs."""
        view = await self._load_view(scope)
        derived = await self._load_derived(scope, view)
        await self._write(scope, await self._profile(scope, view, derived))
        await self._write(scope, await self._entities(scope, [note for note in derived if note.tag == ENTITY]))
        drafts = await self._lessons(scope, view, [note for note in derived if note.tag == LESSON])
        for start in range(0, len(drafts), BATCH):
            await self._write(scope, drafts[start : start + BATCH])
        regions = await self._changed_regions(scope, view, derived)
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

    def _batches(self, view: ScopeView, regions: Sequence[_Region]) -> Iterator[Sequence[_Region]]:
        """Split regions into requests. Those of different trust never share one, because it limits the trust of all."""

        def kind(region: _Region) -> tuple[str, float]:
            return region.tag, view.trust(region.notes)

        for (tag, _), group in groupby(sorted(regions, key=kind), key=kind):
            level = [*group]
            size = BATCH if tag == SESSION or self._reflector is None else self._reflector.batch
            yield from (level[start : start + size] for start in range(0, len(level), size))

    # reading ---------------------------------------------------------------------------------------------------

    async def _load_view(self, scope: Scope) -> ScopeView:
        space = await self._vectors.space()
        view = ScopeView(LEAST_WEIGHT if self._profiler is None else SHOWN_WEIGHT, space.dim)
        async for page in pages(self._store, scope, PAGE):
            await self._add(scope, view, page)
        async for page in archived_pages(self._store, scope, PAGE):
            # Decayed notes remain sources of their insights; other archived notes do not.
            await self._add(scope, view, [note for note in page if note.faded or note.kind not in SOURCE_KINDS])
        view.finish()
        return view

    async def _add(self, scope: Scope, view: ScopeView, notes: Sequence[Note]) -> None:
        space = await self._vectors.space()
        rows = await self._store.vectors(scope, [note.id for note in notes], space.id) if notes else {}
        for note in notes:
            view.add(note, rows.get(note.id))
        for link in await self._store.links(scope, [note.id for note in notes]) if notes else ():
            if link.type in _TIES:
                pair = min(link.source, link.target), max(link.source, link.target)
                view.links[pair] = max(_TIES[link.type], view.links.get(pair, 0.0))

    async def _load_derived(self, scope: Scope, view: ScopeView) -> list[DerivedNote]:
        """Return the notes that earlier reflect jobs wrote, archived ones included, in order of arrival."""
        ids = sorted(view.derived)
        derived: list[DerivedNote] = []
        for start in range(0, len(ids), PAGE):
            histories = await self._store.histories(scope, ids[start : start + PAGE])
            derived += [note for history in histories.values() if (note := derived_note(history)) is not None]
        return sorted(derived, key=lambda existing: existing.note.seq)

    # profile ---------------------------------------------------------------------------------------------------

    async def _profile(self, scope: Scope, view: ScopeView, derived: Iterable[DerivedNote]) -> list[Draft]:
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

    # entities --------------------------------------------------------------------------------------------------

    async def _entities(self, scope: Scope, derived: Sequence[DerivedNote]) -> list[Draft]:
        """Ask the model which names are one entity, and return its decisions. Those of people and rules come first."""
        if self._matcher is None:
            return []
        by_people = [decision for decision in await decisions_of(self._store, scope) if decision.by == "user"]
        index, _ = await read_index(self._store, scope, by_people)
        existing = {_keys(names): note for note in derived if (names := decided_names(note.note))}
        settled = {keys for keys, note in existing.items() if note.is_settled}
        keys = [pair for pair in index.doubtful(PAIRS) if frozenset(pair) not in settled]
        texts = {key: index.name_of(key) for pair in keys for key in pair}
        notes = await self._notes(scope, {id for _, ids in texts.values() for id in ids[:TEXTS]})
        shown_of = {
            key: tuple(notes[id] for id in ids[:TEXTS] if not is_on_probation(notes[id]))
            for key, (_, ids) in texts.items()
        }
        asked = [
            NamePair(texts[one][0], texts[other][0], shown_of[one], shown_of[other])
            for one, other in keys
            if shown_of[one] and shown_of[other]
        ]
        shown = tuple({note.id: note for pair in asked for note in pair.notes}.values())
        answer = await self._matcher.same(asked, self._ask_about(scope, shown)) if asked else ([], "")
        if answer is None:
            return []
        drafts = []
        for pair, reason in answer[0]:
            drafts.append(Draft(
                Kind.INSIGHT, ENTITY, statement_of(pair.one, pair.other, True), reason, (), pair.notes,
                existing.pop(_keys((pair.one, pair.other)), None), model=answer[1],
                prompt=self._matcher.prompt.name, shown=shown, metadata=metadata_of(pair.one, pair.other, True),
            ))  # fmt: skip
        unsupported = [note for note in existing.values() if not note.is_settled and not note.note.archived]
        return drafts + await self._archive_all(scope, unsupported)

    # lessons ---------------------------------------------------------------------------------------------------

    async def _lessons(self, scope: Scope, view: ScopeView, derived: Sequence[DerivedNote]) -> list[Draft]:
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

    # insights and summaries of sessions ------------------------------------------------------------------------

    async def _changed_regions(self, scope: Scope, view: ScopeView, derived: Sequence[DerivedNote]) -> list[_Region]:
        """Return the topics and sessions without a text, or with one made from other notes or other words."""
        current = [own for own in derived if own.is_settled or own.note.faded or not own.note.archived]
        borders = borders_for(self._vectors.embedder.info.name)
        groups = await anyio.to_thread.run_sync(grouped, view, current, borders)
        regions = [
            _Region(group.tag, group.existing, view.notes(group.events), len(group.events) < MIN_EVENTS)
            for group in groups
            if group.existing is None or not group.existing.is_settled
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

    async def _insights(self, scope: Scope, view: ScopeView, regions: Sequence[_Region]) -> list[Draft]:
        ids = {id for region in regions for id in region.notes}
        notes = await self._notes(scope, ids)
        drafts: list[Draft] = []
        central: list[list[Note]] = []
        for region in regions:
            own = [notes[id] for id in region.notes]
            weights = view.centrality(region.notes)
            members = [Member(note, _binding(note), weights[view.event_of[note.id]]) for note in own]
            drafts.append(Draft(Kind.INSIGHT, region.tag, *digest(members, view.speakers), tuple(own), region.existing))
            members.sort(key=lambda member: (-member.weight, place(member.note)))
            central.append([member.note for member in members])
        if self._reflector is None or any(region.tag == SESSION for region in regions):
            return drafts
        return await self._by_model(scope, self._reflector, drafts, central)

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
    """The notes of a topic or a session, the tag of its text, the existing text, and whether it has too few notes."""

    tag: str
    existing: DerivedNote | None
    notes: tuple[str, ...]
    is_too_small: bool


def _keys(names: Iterable[str]) -> frozenset[str]:
    return frozenset(map(phrase_key, names))


def _is_changed(existing: DerivedNote, notes: Sequence[str], inputs: Mapping[str, Input]) -> bool:
    return set(existing.sources) != {inputs[id] for id in notes if id in inputs}


def _binding(note: Note) -> Binding:
    """Return the terms of a note's own text that may link it to others."""
    return binding(terms_of(note.model_copy(update={"authored": ()})))


def _make(context: JobContext) -> ReflectJob:
    return ReflectJob(
        context.store, context.commits, context.vectors, context.counters,
        context.models.reflector, context.models.profiler, context.models.matcher, context.ask_about,
    )  # fmt: skip


JOB = JobSpec(JobKind.REFLECT, _make, round=3, quotes_texts=True)
