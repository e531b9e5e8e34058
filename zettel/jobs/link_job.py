"""The link job: links a note to older ones by thresholds and rules, and by the typed decisions of a model.

The model is called outside of any transaction, for notes that a model or person annotated. If it cannot answer, the
notes have near links only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from zettel.core.commit import Clock, Commits
from zettel.core.fold import live_revisions
from zettel.core.follow_ups import (
    UnfinishedJobs,
    erase_answers_plan,
    finish,
    finish_plan,
    needs_own_request,
    newest_jobs,
)
from zettel.core.revise import revised
from zettel.core.rows import Rows
from zettel.core.vectors import Vectors
from zettel.errors import InvalidModelItem, InvalidModelOutput
from zettel.evolve.claims import concern_same_matter, may_change_facts
from zettel.evolve.fact_changes import change_links
from zettel.jobs.annotation_writer import is_outdated
from zettel.jobs.spec import JobHandler, JobLane, JobSpec
from zettel.link.near import NEIGHBOURS_ASKED, binding, close, near_links, speakers
from zettel.link.neighbors import is_older
from zettel.model import Cause, Hit, Input, Job, JobKind, Kind, Link, LinkType, Note, Scope
from zettel.ports import GraphStore, NearestNotes, ScopeState
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
from zettel.search.searcher import Searcher
from zettel.text.index import vector_text

FACTS_OFFERED = 2
"""Older facts offered as replaced by a new fact, the most likely first: each one costs tokens."""
LOOKED_AT = 20
"""Search hits for the text of a note, from which the best older ones are offered to a model."""
DECIDED_WEIGHT = 0.9
"""The weight of a link that a model decided."""
DOUBTED = 0.5
"""The highest confidence of a note that contradicts an older one, while both are valid."""


class LinkJob(JobHandler):
    """Links the notes of a store, by thresholds, rules and a model if there is one."""

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

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs]:
        """Link the notes of these jobs; return the jobs that failed and why."""
        left: list[UnfinishedJobs] = []
        if self._linker is None:
            await self._commit(scope, jobs, {}, ())
        else:
            left = await self._link(scope, jobs, self._linker)
        await self._store.optimize(scope, (await self._vectors.space()).id)
        return left

    async def _link(self, scope: Scope, jobs: Sequence[Job], linker: ModelLinker) -> list[UnfinishedJobs]:
        """Link by a model the facts and the notes that a model or person annotated, and the rest by thresholds."""
        by_note, needless = newest_jobs(jobs)
        notes = await self._store.notes(scope, sorted(by_note))
        chosen = {note.id: note for note in notes.values() if _is_worded(note) and not note.archived}
        if again := [job for job in needless if job.note in chosen]:  # superseded by a later job of the same note
            await self._commits.commit(scope, finish_plan(again))
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
        done = await asyncio.gather(
            *(self._ask(scope, group, jobs, linker) for group in groups), return_exceptions=True
        )
        left: list[UnfinishedJobs] = []
        for group, outcome in zip(groups, done, strict=True):
            if not isinstance(outcome, BaseException):
                left += outcome
                continue
            mine = [jobs[note.id] for note in group]
            left.append(UnfinishedJobs(mine, outcome))
            if not isinstance(outcome, (StaleLease, asyncio.CancelledError)):
                await self._commit(scope, mine, {}, (), done=False)  # near links do not wait for a model
        return left

    async def _ask(
        self, scope: Scope, group: Sequence[Note], jobs: Mapping[str, Job], linker: ModelLinker
    ) -> list[UnfinishedJobs]:
        choices = await self._choices(scope, group, linker.offered)
        mine = [jobs[note.id] for note in group]
        if not choices.others:
            await self._commit(scope, mine, {}, ())
            return []
        shown = (*group, *choices.others)
        linked = await linker.link(choices, self._ask_about(scope, shown))
        flaws: dict[str, str] = {}
        decided: dict[str, tuple[tuple[LinkDecision, ...], Cause]] = {}
        for note, said in zip(group, linked.notes, strict=True):
            if isinstance(said, InvalidItem):
                flaws[note.id] = said.why
            else:
                decided[note.id] = said, Cause(by=JobKind.LINK, note=note.id, model=linked.model, prompt=linked.prompt)
        await self._commit(scope, [job for job in mine if job.note not in flaws], decided, shown)
        useless = len(flaws) == len(group)
        if useless:
            await self._commits.commit(scope, erase_answers_plan(note.id for note in group))
        errors = InvalidModelOutput if useless else InvalidModelItem
        return [UnfinishedJobs([jobs[id]], errors(f"not valid in the answer: {why}")) for id, why in flaws.items()]

    async def _choices(self, scope: Scope, group: Sequence[Note], offered: int) -> CandidateBatch:
        """Return for each note the older notes that a search for its text finds."""
        from zettel.scoring.fusion import FusionScorer

        scorer = FusionScorer()
        found: list[list[Hit]] = []
        for note in group:  # one by one, so that concurrent calls wait for one search only
            # Only facts replace facts: the source of a fact is linked to it already.
            among = Filter(kinds=(note.kind.value,)) if note.kind is Kind.SEMANTIC else Filter()
            asked = SearchRequest(text=vector_text(note), k=LOOKED_AT, filter=among)
            found += await self._searcher.search(scope, [asked], scorer)
        others: dict[str, Note] = {}
        places: dict[str, int] = {}
        picked: list[NoteCandidates] = []
        for note, hits in zip(group, found, strict=True):
            older = [hit.note for hit in hits if is_older(hit.note, note)]
            if note.kind is Kind.SEMANTIC:
                older = [other for other in older if concern_same_matter(note, other)][:FACTS_OFFERED]
            older = older[:offered]
            for other in older:
                places.setdefault(other.id, len(places))
                others[other.id] = other
            picked.append(NoteCandidates(note, tuple(places[other.id] for other in older)))
        return CandidateBatch(tuple(picked), tuple(others[id] for id in places))

    async def _commit(
        self,
        scope: Scope,
        jobs: Sequence[Job],
        decided: Mapping[str, tuple[tuple[LinkDecision, ...], Cause]],
        shown: Sequence[Note],
        done: bool = True,
    ) -> None:
        """Write the near links of the jobs' notes, and the links that a model ``decided`` from the ``shown`` notes.

        Without ``done`` the jobs stay queued: their notes get near links until a model answers.
        """
        space = await self._vectors.space()

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            # Read inside the transaction, so that every version is the newest.
            ids = [job.note for job in jobs if job.note]
            found = await self._store.near(scope, ids, space.id, NEIGHBOURS_ASKED)
            nears = [close(near) for near in found]
            around = {near.note for near in nears}.union(*(dict(near.others) for near in nears))
            read = Rows(await self._store.notes(scope, sorted({*ids, *(note.id for note in shown)})))
            if any(is_outdated(read.get(note.id), note) for note in shown):
                raise StaleLease("a note changed while the model processed it")
            terms = await self._store.uses(scope, sorted(around))
            bindings = Rows({id: binding(held) for id, held in terms.items()})
            speaking = Rows({id: speakers(held) for id, held in terms.items()})
            links = {
                near.note: near_links(near, read[near.note].speaker, bindings, speaking, clock.recorded_at)
                for near in nears
            }
            linked = {link.target for made in links.values() for link in made} - read.keys()
            read |= await self._store.notes(scope, sorted(linked))
            for id, changed in (await self._changes(scope, found, read, clock)).items():
                links[id] = (*links.get(id, ()), *changed)
            for id, (decisions, _) in decided.items():
                links[id] = _joined(links.get(id, ()), decisions, clock)
            changing = [id for id, made in links.items() if id in read and (made or read[id].version > 1)]
            histories = Rows(await self._store.histories(scope, changing))
            ops: list[Op] = []
            for id in changing:
                history, made = histories[id], links[id]
                former = [r.version for r in live_revisions(history.revisions, JobKind.LINK)]
                if not made and not former:
                    continue
                cause = decided[id][1] if id in decided else Cause(by=JobKind.LINK, note=id)
                before = {id}.union(*((link.source, link.target) for link in made))
                if id in decided:
                    before.update(note.id for note in shown)
                inputs = tuple(Input(note, read[note].version) for note in sorted(before))
                doubted = any(link.type is LinkType.CONTRADICTS and link.source == id for link in made)
                change = {"confidence": min(read[id].confidence, DOUBTED)} if doubted else {}
                ops.append(revised(history, clock, cause, change, links=made, undoes=tuple(former), inputs=inputs))
            return ops + (finish(job for job in jobs if job.note in read) if done else [])

        await self._commits.commit(scope, plan)

    async def _changes(
        self, scope: Scope, nears: Sequence[NearestNotes], read: dict[str, Note], clock: Clock
    ) -> dict[str, tuple[Link, ...]]:
        """Return by rules the SUPERSEDES and CONTRADICTS links of the notes; adds further notes to ``read``."""
        telling = [near for near in nears if near.note in read and may_change_facts(read[near.note])]
        missing = {other for near in telling for other, _ in near.others if other not in read}
        read.update(await self._store.notes(scope, sorted(missing)) if missing else {})
        found: dict[str, tuple[Link, ...]] = {}
        for near in telling:
            others = [read[other] for other, _ in near.others if other in read]
            if links := change_links(read[near.note], others, clock.recorded_at):
                found[near.note] = links
        return found


def _is_worded(note: Note) -> bool:
    """Return whether a model or person gave the note a self-contained text."""
    return "context" in note.authored or note.kind is Kind.SEMANTIC


def _joined(near: Sequence[Link], decisions: Sequence[LinkDecision], clock: Clock) -> tuple[Link, ...]:
    """Join near links and a model's; for the same pair and type the model's reason wins."""
    links = {(link.type, link.target): link for link in near}
    for decision in decisions:
        links[decision.type, decision.target] = Link(
            source=decision.source,
            target=decision.target,
            type=decision.type,
            weight=DECIDED_WEIGHT,
            reason=decision.reason,
            recorded_at=clock.recorded_at,
        )
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
