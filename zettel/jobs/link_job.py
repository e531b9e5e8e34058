"""The link job: links a note to older notes by thresholds and rules, and by the typed decisions of a model.

The job calls the model outside of any transaction, for notes that a model or person annotated. Until the model answers,
these notes have near links only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from zettel.core.authority import may_replace
from zettel.core.commit import Clock, Commits
from zettel.core.decisions import not_reverted, reverted, set_by_people
from zettel.core.fold import live_revisions
from zettel.core.follow_ups import (
    UnfinishedJobs,
    erase_answers_plan,
    finish,
    finish_plan,
    needs_own_request,
    newest_jobs,
)
from zettel.core.present import is_active
from zettel.core.revise import revised
from zettel.core.rows import Rows
from zettel.core.vectors import Vectors
from zettel.errors import InvalidModelItem, InvalidModelOutput
from zettel.evolve.expiry import expiry
from zettel.evolve.same_matter import concern_same_matter
from zettel.jobs.annotation_writer import is_outdated
from zettel.jobs.spec import JobHandler, JobLane, JobSpec, Pause
from zettel.link.fact_changes import announced, change_links
from zettel.link.near import NEIGHBOURS_ASKED, binding, close, near_cosines, near_links, speakers
from zettel.link.neighbors import is_older
from zettel.model import REPLACING, Cause, Hit, Input, Job, JobKind, Kind, Link, Note, Scope
from zettel.ports import GraphStore, NearestNotes, NoteHistory, ScopeState, SurveyingStore
from zettel.ports.language_model import (
    AskFactory,
    CandidateBatch,
    InvalidItem,
    LinkDecision,
    ModelLinker,
    NoteCandidates,
)
from zettel.ports.operations import Op, StaleLease
from zettel.ports.query import Filter, SearchRequest
from zettel.scoring.consensus import as_contradiction, weighed_link
from zettel.search.searcher import Searcher
from zettel.text.facts import states_facts
from zettel.text.index import vector_text

PART, PART_OF_SERVER = 16, 64
"""Notes linked per commit without a model, in a file and on a server. Other writers wait for one commit. In a file,
larger ones are no faster; on a server, each takes several round trips."""
TOGETHER = 64
"""Notes whose nearest notes are searched together, which takes little longer than for a quarter of them."""
FACTS_OFFERED = 3
"""Older facts that a model may replace by a new fact, the most likely first: each fact costs tokens."""
SEARCH_HITS = 20
"""Search hits for the text of a note; a request contains the best older ones."""
DECIDED_WEIGHT = 0.9
"""The weight of a link that a model decided."""
EMBEDDING = Pause(timedelta(seconds=0.2), "pending: older notes have no vectors yet")
"""Links to notes without vectors would be missed."""


class LinkJob(JobHandler):
    """Links the notes of a store, by thresholds, rules and, if configured, a model."""

    def __init__(
        self,
        store: GraphStore,
        commits: Commits,
        vectors: Vectors,
        searcher: Searcher,
        linker: ModelLinker | None,
        ask_about: AskFactory,
    ) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._searcher = searcher
        self._linker = linker
        self._ask_about = ask_about

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs] | Pause:
        """Link the notes of these jobs; return the jobs that failed and why, or a pause until notes are embedded."""
        if await self._store.pending(scope, [JobKind.EMBED], datetime.now(timezone.utc)):
            return EMBEDDING
        unfinished: list[UnfinishedJobs] = []
        if self._linker is None:
            part = PART_OF_SERVER if isinstance(self._store, SurveyingStore) else PART
            for start in range(0, len(jobs), TOGETHER):
                together = jobs[start : start + TOGETHER]
                nearest = await self._nearest(scope, together)
                for first in range(0, len(together), part):
                    await self._commit(scope, together[first : first + part], {}, (), nearest=nearest)
        else:
            unfinished = await self._link(scope, jobs, self._linker)
        await self._store.optimize(scope, (await self._vectors.space()).id)
        return unfinished

    async def _link(self, scope: Scope, jobs: Sequence[Job], linker: ModelLinker) -> list[UnfinishedJobs]:
        """Link facts and annotated notes by a model, and other notes by thresholds and rules."""
        by_note, superseded = newest_jobs(jobs)
        notes = await self._store.notes(scope, sorted(by_note))
        chosen = {note.id: note for note in notes.values() if _is_worded(note) and is_active(note)}
        if done := [job for job in superseded if job.note in chosen]:
            await self._commits.commit(scope, finish_plan(done))
        plain = [job for job in jobs if job.note not in chosen]
        if plain:
            await self._commit(scope, plain, {}, ())
        return await self._decide(scope, sorted(chosen.values(), key=lambda note: note.seq), by_note, linker)

    async def _decide(
        self, scope: Scope, notes: Sequence[Note], jobs: Mapping[str, Job], linker: ModelLinker
    ) -> list[UnfinishedJobs]:
        alone = [note for note in notes if needs_own_request(jobs[note.id])]
        together = [note for note in notes if not needs_own_request(jobs[note.id])]
        groups = [[note] for note in alone]
        groups += [list(together[start : start + linker.batch]) for start in range(0, len(together), linker.batch)]
        requests = (self._ask(scope, group, jobs, linker) for group in groups)
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        unfinished: list[UnfinishedJobs] = []
        for group, outcome in zip(groups, outcomes, strict=True):
            if not isinstance(outcome, BaseException):
                unfinished += outcome
                continue
            failed = [jobs[note.id] for note in group]
            unfinished.append(UnfinishedJobs(failed, outcome))
            if not isinstance(outcome, (StaleLease, asyncio.CancelledError)):
                await self._commit(scope, failed, {}, (), done=False)  # near links do not wait for a model
        return unfinished

    async def _ask(
        self, scope: Scope, group: Sequence[Note], jobs: Mapping[str, Job], linker: ModelLinker
    ) -> list[UnfinishedJobs]:
        choices = await self._choices(scope, group, linker.offered)
        group_jobs = [jobs[note.id] for note in group]
        if not choices.others:
            await self._commit(scope, group_jobs, {}, ())
            return []
        shown = (*group, *choices.others)
        result = await linker.link(choices, self._ask_about(scope, shown))
        flaws: dict[str, str] = {}
        decided: dict[str, tuple[tuple[LinkDecision, ...], Cause]] = {}
        for note, decisions in zip(group, result.notes, strict=True):
            if isinstance(decisions, InvalidItem):
                flaws[note.id] = decisions.why
            else:
                cause = Cause(by=JobKind.LINK, note=note.id, model=result.model, prompt=result.prompt)
                decided[note.id] = decisions, cause
        await self._commit(scope, [job for job in group_jobs if job.note not in flaws], decided, shown)
        is_useless = len(flaws) == len(group)
        if is_useless:
            await self._commits.commit(scope, erase_answers_plan(note.id for note in group))
        errors = InvalidModelOutput if is_useless else InvalidModelItem
        return [UnfinishedJobs([jobs[id]], errors(f"not valid in the answer: {why}")) for id, why in flaws.items()]

    async def _choices(self, scope: Scope, group: Sequence[Note], offered: int) -> CandidateBatch:
        """Return for each note the older notes that the rules would replace, and those that a search for it finds."""
        from zettel.scoring.fusion import FusionScorer

        scorer = FusionScorer()
        proposed = await self._proposed(scope, group)
        results: list[list[Hit]] = []
        for note in group:  # one after another, so that concurrent calls wait for one search only
            # Only facts replace facts; a fact has a link to its source already.
            filter = Filter(kinds=(note.kind.value,)) if note.kind is Kind.SEMANTIC else Filter()
            request = SearchRequest(text=vector_text(note), k=SEARCH_HITS, filter=filter)
            results += await self._searcher.search(scope, [request], scorer)
        others: dict[str, Note] = {}
        positions: dict[str, int] = {}
        candidates: list[NoteCandidates] = []
        for note, hits in zip(group, results, strict=True):
            older = [hit.note for hit in hits if is_older(hit.note, note)]
            if note.kind is Kind.SEMANTIC:
                older = sorted(older, key=lambda other: not concern_same_matter(note, other))[:FACTS_OFFERED]
            by_rules = proposed.get(note.id, ())
            known = {other.id for other in by_rules}
            older = [*by_rules, *(other for other in older if other.id not in known)][:offered]
            for other in older:
                positions.setdefault(other.id, len(positions))
                others[other.id] = other
            candidates.append(NoteCandidates(note, tuple(positions[other.id] for other in older)))
        return CandidateBatch(tuple(candidates), tuple(others[id] for id in positions))

    async def _proposed(self, scope: Scope, group: Sequence[Note]) -> dict[str, list[Note]]:
        """Return by note the older active notes that it replaces or contradicts by the rules; a model judges them."""
        space = await self._vectors.space()
        nearest = await self._store.near(scope, [note.id for note in group], space.id, NEIGHBOURS_ASKED)
        others = await self._store.notes(scope, sorted({id for near in nearest for id, _ in near.others}))
        others = {id: other for id, other in others.items() if is_active(other)}
        near_notes = {near.note: [others[id] for id, _ in near.others if id in others] for near in nearest}
        proposed: dict[str, list[Note]] = {}
        for note in group:
            links = change_links(note, near_notes.get(note.id, ()), note.recorded_at)
            proposed[note.id] = [others[link.target] for link in links if link.source == note.id]
        return proposed

    async def _nearest(self, scope: Scope, jobs: Sequence[Job]) -> dict[str, NearestNotes]:
        space = await self._vectors.space()
        nearest = await self._store.near(scope, [job.note for job in jobs if job.note], space.id, NEIGHBOURS_ASKED)
        return {near.note: near for near in nearest}

    async def _commit(
        self,
        scope: Scope,
        jobs: Sequence[Job],
        decided: Mapping[str, tuple[tuple[LinkDecision, ...], Cause]],
        shown: Sequence[Note],
        done: bool = True,
        nearest: Mapping[str, NearestNotes] | None = None,
    ) -> None:
        """Write the near links of the jobs' notes, and the links that a model ``decided`` from the ``shown`` notes.

        Without ``done`` the jobs stay queued: their notes get near links until a model answers. ``nearest`` contains
        the nearest notes if they were searched before.
        """
        least = near_cosines(self._vectors.embedder.info.name)

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            # Reads inside the transaction return the newest versions.
            ids = [job.note for job in jobs if job.note]
            found = await self._nearest(scope, jobs) if nearest is None else nearest
            asked = [found[id] for id in dict.fromkeys(ids) if id in found]
            nears = [close(near, least) for near in asked]
            linkable = {near.note for near in nears}.union(*(dict(near.others) for near in nears))
            notes = Rows(await self._store.notes(scope, sorted({*ids, *(note.id for note in shown)})))
            if any(is_outdated(notes.get(note.id), note) for note in shown):
                raise StaleLease("a note changed while the model processed it")
            terms = await self._store.uses(scope, sorted(linkable))
            nears = [_among(near, terms) for near in nears if near.note in terms and near.note in notes]
            bindings = Rows({id: binding(of_note) for id, of_note in terms.items()})
            speaking = Rows({id: speakers(of_note) for id, of_note in terms.items()})
            links = {
                near.note: near_links(near, notes[near.note].speaker, bindings, speaking, clock.recorded_at, least)
                for near in nears
            }
            targets = {link.target for made in links.values() for link in made} - notes.keys()
            notes |= await self._store.notes(scope, sorted(targets))
            for id, changed in (await self._changes(scope, asked, notes, clock)).items():
                if id in decided:  # the model has judged these pairs
                    changed = tuple(link for link in changed if link.source != id)
                weighed = (weighed_link(link, notes[link.source], notes[link.target]) for link in changed)
                links[id] = (*links.get(id, ()), *weighed)
            for id, (decisions, _) in decided.items():
                links[id] = _joined(links.get(id, ()), decisions, notes, clock)
            ends = {id: end for id in links if id in notes and (end := expiry(notes[id])) is not None}
            changing = [id for id in links if id in notes and (links[id] or id in ends or notes[id].version > 1)]
            starts = {link.source for id in changing for link in links[id]}  # a late note's successor starts its link
            histories = Rows(await self._store.recent(scope, sorted(starts.union(changing))))
            ops: list[Op] = []
            for id in changing:
                history, own = histories[id], _not_reverted(id, links[id], histories)
                former = live_revisions(history.revisions, JobKind.LINK)
                change: dict[str, Any] = {}
                if id in ends:
                    change["valid_to"] = ends[id]
                if any(link.type in REPLACING and link.source == id for link in own):
                    start = announced(notes[id])
                    if start is not None:
                        change["valid_from"] = start
                change = _undecided(history, change)
                if not own and not change and not any(r.links or r.change for r in former):
                    continue
                cause = decided[id][1] if id in decided else Cause(by=JobKind.LINK, note=id)
                sources = {id}.union(*((link.source, link.target) for link in own))
                if id in decided:
                    sources.update(note.id for note in shown)
                inputs = tuple(Input(source, notes[source].version) for source in sorted(sources))
                ops.append(revised(history, clock, cause, change, links=own, inputs=inputs))
            return ops + (finish(job for job in jobs if job.note in notes) if done else [])

        await self._commits.commit(scope, plan)

    async def _changes(
        self, scope: Scope, nears: Sequence[NearestNotes], notes: dict[str, Note], clock: Clock
    ) -> dict[str, tuple[Link, ...]]:
        """Return the links of the rules for changes of fact; add further notes to ``notes``."""
        stating = [near for near in nears if near.note in notes and states_facts(notes[near.note])]
        missing = {other for near in stating for other, _ in near.others if other not in notes}
        notes.update(await self._store.notes(scope, sorted(missing)) if missing else {})
        changes: dict[str, tuple[Link, ...]] = {}
        for near in stating:
            others = [notes[other] for other, _ in near.others if other in notes]
            if links := change_links(notes[near.note], others, clock.recorded_at):
                changes[near.note] = links
        return changes


def _among(near: NearestNotes, notes: Collection[str]) -> NearestNotes:
    """Return the nearest notes without those that were deleted or archived since the search."""
    return near._replace(others=tuple(other for other in near.others if other[0] in notes))


def _undecided(history: NoteHistory, change: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that no person set, and no person reverted to what they were."""
    remaining, _ = not_reverted(history, change, ())
    return {name: value for name, value in remaining.items() if name not in set_by_people(history)}


def _not_reverted(id: str, links: tuple[Link, ...], histories: Mapping[str, NoteHistory]) -> tuple[Link, ...]:
    """Return the links that no person reverted in this note or in the note that the link starts from."""
    _, links = not_reverted(histories[id], {}, links)
    return tuple(link for link in links if link.source == id or link.key not in reverted(histories[link.source]).links)


def _is_worded(note: Note) -> bool:
    """Return whether a model or person gave the note a self-contained text."""
    return "context" in note.authored or note.kind is Kind.SEMANTIC


def _joined(
    near: Sequence[Link], decisions: Sequence[LinkDecision], notes: Mapping[str, Note], clock: Clock
) -> tuple[Link, ...]:
    """Join near links and the links of a model, which replaces near links of the same pair and type.

    A model decides no more than a note may: SUPERSEDES over a note of higher trust becomes CONTRADICTS.
    """
    links = {link.key: link for link in near}
    for decision in decisions:
        link = Link(
            source=decision.source,
            target=decision.target,
            type=decision.type,
            weight=DECIDED_WEIGHT,
            reason=decision.reason,
            recorded_at=clock.recorded_at,
        )
        if not may_replace(notes[link.source], notes[link.target]):
            link = as_contradiction(link)
        links[link.key] = link
    return tuple(links.values())


JOB = JobSpec(
    JobKind.LINK,
    lambda context: LinkJob(
        context.store, context.commits, context.vectors, context.searcher, context.models.linker,
        context.ask_about,
    ),
    lane=JobLane.LINK,
    quotes_texts=True,
)  # fmt: skip
