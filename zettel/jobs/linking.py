"""The job that links a note to older ones: by threshold, and with a model's typed decisions on top of these.

What is near is decided here and now. A model is asked outside of any transaction, about notes that a model or a person
has worded; if it cannot answer, the near links stand by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from zettel.annotate.index import vector_text
from zettel.batch import Op, StaleLease
from zettel.commit import Clock, Commits
from zettel.embed.vectors import Vectors
from zettel.errors import ItemUnusable, ModelUnusable
from zettel.evolve.changes import change_links
from zettel.evolve.claims import of_one_matter, tells
from zettel.fold import live_revisions
from zettel.jobs.queue import Left, ending, finish, forgetting, goes_alone, newest
from zettel.jobs.writing import is_other
from zettel.link.near import NEIGHBOURS_ASKED, binding, close, near_links, speakers
from zettel.llm.ports import Asker, Choice, Choices, Decision, Flaw, ModelLinker
from zettel.model import Cause, Hit, Input, Job, JobKind, Kind, Link, LinkType, Note, Scope
from zettel.ports import GraphStore, Near, ScopeState
from zettel.query import Asked, Filter
from zettel.revise import revised
from zettel.search.find import Finding

LINKER = JobKind.LINK.value
FACTS_OFFERED = 2
"""Older facts that a fact may replace, the likeliest: every one that is shown costs tokens."""
LOOKED_AT = 20
"""Hits of the search for a note's words whose best are offered to a model, newer notes among them."""
DECIDED_WEIGHT = 0.9
"""Weight of a link that a model decided: it read both notes, which a cosine of 0.9 does not tell."""
DOUBTED = 0.5
"""Confidence at most of a note that contradicts an older one, as long as both stay."""


class Linking:
    """Links the notes of a store."""

    def __init__(
        self,
        store: GraphStore,
        commits: Commits,
        vectors: Vectors,
        finding: Finding,
        linker: ModelLinker | None,
        asker: Asker,
    ) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._finding = finding
        self._linker = linker
        self._asker = asker

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[Left]:
        """Link the notes of these jobs; what could not be done, and why."""
        left: list[Left] = []
        if self._linker is None:
            await self._commit(scope, jobs, {}, ())
        else:
            left = await self._link(scope, jobs, self._linker)
        await self._store.optimize(scope, (await self._vectors.space()).id)
        return left

    async def _link(self, scope: Scope, jobs: Sequence[Job], linker: ModelLinker) -> list[Left]:
        """Link by a model what a model or a person has worded, facts among it, and the rest by threshold."""
        by_note, needless = newest(jobs)
        notes = await self._store.notes(scope, sorted(by_note))
        chosen = {note.id: note for note in notes.values() if _is_worded(note) and not note.archived}
        if again := [job for job in needless if job.note in chosen]:  # a later one of its note says the same
            await self._commits.commit(scope, ending(again))
        plain = [job for job in jobs if job.note not in chosen]
        if plain:
            await self._commit(scope, plain, {}, ())
        return await self._decide(scope, sorted(chosen.values(), key=lambda note: note.seq), by_note, linker)

    async def _decide(
        self, scope: Scope, notes: Sequence[Note], jobs: Mapping[str, Job], linker: ModelLinker
    ) -> list[Left]:
        alone = [note for note in notes if goes_alone(jobs[note.id])]
        together = [note for note in notes if not goes_alone(jobs[note.id])]
        groups = [[note] for note in alone]
        groups += [list(together[start : start + linker.batch]) for start in range(0, len(together), linker.batch)]
        done = await asyncio.gather(
            *(self._ask(scope, group, jobs, linker) for group in groups), return_exceptions=True
        )
        left: list[Left] = []
        for group, outcome in zip(groups, done, strict=True):
            if not isinstance(outcome, BaseException):
                left += outcome
                continue
            mine = [jobs[note.id] for note in group]
            left.append(Left(mine, outcome))
            if not isinstance(outcome, (StaleLease, asyncio.CancelledError)):
                await self._commit(scope, mine, {}, (), done=False)  # the floor does not wait for a model
        return left

    async def _ask(
        self, scope: Scope, group: Sequence[Note], jobs: Mapping[str, Job], linker: ModelLinker
    ) -> list[Left]:
        choices = await self._choices(scope, group, linker.offered)
        mine = [jobs[note.id] for note in group]
        if not choices.others:
            await self._commit(scope, mine, {}, ())
            return []
        shown = (*group, *choices.others)
        linked = await linker.link(choices, self._asker(scope, shown))
        flaws: dict[str, str] = {}
        decided: dict[str, tuple[tuple[Decision, ...], Cause]] = {}
        for note, said in zip(group, linked.notes, strict=True):
            if isinstance(said, Flaw):
                flaws[note.id] = said.why
            else:
                decided[note.id] = said, Cause(by=LINKER, note=note.id, model=linked.model, prompt=linked.prompt)
        await self._commit(scope, [job for job in mine if job.note not in flaws], decided, shown)
        useless = len(flaws) == len(group)
        if useless:
            await self._commits.commit(scope, forgetting(note.id for note in group))
        errors = ModelUnusable if useless else ItemUnusable
        return [Left([jobs[id]], errors(f"not valid in the answer: {why}")) for id, why in flaws.items()]

    async def _choices(self, scope: Scope, group: Sequence[Note], offered: int) -> Choices:
        """For each note what a search for its words finds among older notes, in one closed list."""
        from zettel.scoring.fusion import FusionScorer

        scorer = FusionScorer()
        found: list[list[Hit]] = []
        for note in group:  # one after the other: whoever adds or asks meanwhile waits for one search, not for all
            # A fact is replaced by facts: what it was drawn from is linked to it already.
            among = Filter(kinds=(note.kind.value,)) if note.kind is Kind.SEMANTIC else Filter()
            asked = Asked(text=vector_text(note), k=LOOKED_AT, filter=among)
            found += await self._finding.search(scope, [asked], scorer)
        others: dict[str, Note] = {}
        places: dict[str, int] = {}
        picked: list[Choice] = []
        for note, hits in zip(group, found, strict=True):
            older = [hit.note for hit in hits if _is_older(hit.note, note)]
            if note.kind is Kind.SEMANTIC:
                older = [other for other in older if of_one_matter(note, other)][:FACTS_OFFERED]
            older = older[:offered]
            for other in older:
                places.setdefault(other.id, len(places))
                others[other.id] = other
            picked.append(Choice(note, tuple(places[other.id] for other in older)))
        return Choices(tuple(picked), tuple(others[id] for id in places))

    async def _commit(
        self,
        scope: Scope,
        jobs: Sequence[Job],
        decided: Mapping[str, tuple[tuple[Decision, ...], Cause]],
        shown: Sequence[Note],
        done: bool = True,
    ) -> None:
        """Write near links of the jobs' notes and what a model ``decided`` after it was ``shown`` notes.

        Unless ``done`` the jobs stay: their notes only get the near links, until a model answers.
        """
        space = await self._vectors.space()

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            # Planned on the state it is committed on, so that every version it read is still the newest.
            ids = [job.note for job in jobs if job.note]
            found = await self._store.near(scope, ids, space.id, NEIGHBOURS_ASKED)
            nears = [close(near) for near in found]
            around = {near.note for near in nears}.union(*(dict(near.others) for near in nears))
            read = await self._store.notes(scope, sorted({*ids, *(note.id for note in shown)}))
            if any(is_other(read.get(note.id), note) for note in shown):
                raise StaleLease("a note changed while the model read it")
            terms = await self._store.uses(scope, sorted(around))
            bindings = {id: binding(held) for id, held in terms.items()}
            speaking = {id: speakers(held) for id, held in terms.items()}
            links = {
                near.note: near_links(near, read[near.note].role, bindings, speaking, clock.recorded_at)
                for near in nears
            }
            linked = {link.target for made in links.values() for link in made} - read.keys()
            read |= await self._store.notes(scope, sorted(linked))
            for id, changed in (await self._changes(scope, found, read, clock)).items():
                links[id] = (*links.get(id, ()), *changed)
            for id, (decisions, _) in decided.items():
                links[id] = _joined(links.get(id, ()), decisions, clock)
            changing = [id for id, made in links.items() if id in read and (made or read[id].version > 1)]
            histories = await self._store.histories(scope, changing)
            ops: list[Op] = []
            for id in changing:
                history, made = histories[id], links[id]
                former = [r.version for r in live_revisions(history.revisions, LINKER)]
                if not made and not former:
                    continue
                cause = decided[id][1] if id in decided else Cause(by=LINKER, note=id)
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
        self, scope: Scope, nears: Sequence[Near], read: dict[str, Note], clock: Clock
    ) -> dict[str, tuple[Link, ...]]:
        """What the notes say that holds no more, or that others say of them, by rules; what was ``read`` besides joins
        it."""
        telling = [near for near in nears if near.note in read and tells(read[near.note])]
        missing = {other for near in telling for other, _ in near.others if other not in read}
        read.update(await self._store.notes(scope, sorted(missing)) if missing else {})
        found: dict[str, tuple[Link, ...]] = {}
        for near in telling:
            others = [read[other] for other, _ in near.others if other in read]
            if links := change_links(read[near.note], others, clock.recorded_at):
                found[near.note] = links
        return found


def _is_worded(note: Note) -> bool:
    """Whether a model or a person has put it into words that stand alone."""
    return "context" in note.authored or note.kind is Kind.SEMANTIC


def _is_older(other: Note, note: Note) -> bool:
    """Whether it came before and tells of something else."""
    return other.seq < note.seq and set(other.event_ids).isdisjoint(note.event_ids)


def _joined(near: Sequence[Link], decisions: Sequence[Decision], clock: Clock) -> tuple[Link, ...]:
    """Near links and a model's; where both say RELATES of the same two, its reason stands."""
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
