"""The parts of an open memory, wired: who writes, who edits, who erases, who finds, who does the jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import anyio

from zettel.annotate.extractive import ExtractiveAnnotator
from zettel.archive import Archiving
from zettel.commit import Commits
from zettel.edit import Editing
from zettel.embed import load_embedder
from zettel.embed.static import StaticEmbedder
from zettel.embed.vectors import Vectors
from zettel.erase import Erasing
from zettel.errors import InvalidInput
from zettel.evolve.feedback import Feedback
from zettel.graph import open_store
from zettel.jobs.evolution import Evolution
from zettel.jobs.evolving import Evolving
from zettel.jobs.in_process import InProcessRunner
from zettel.jobs.linking import Linking
from zettel.jobs.loop import JobLoop
from zettel.jobs.merging import Merging
from zettel.jobs.queue import FollowUps, Left
from zettel.jobs.reembed import Reembedding
from zettel.jobs.tally import Tally
from zettel.jobs.work import Handler, Work
from zettel.llm.ports import nobody
from zettel.model import Job, JobKind, Scope
from zettel.opening import Opening
from zettel.ports import Annotator, GraphStore, Runner
from zettel.quarantine import Quarantining
from zettel.remember import Remembering
from zettel.restore import Restoring
from zettel.search.find import Finding
from zettel.search.slots import Slots
from zettel.take_back import TakingBack

if TYPE_CHECKING:
    from zettel.llm.budget import Budget
    from zettel.llm.desk import Desk
    from zettel.llm.ports import LLM, LanguageModel, ModelAnnotator, ModelEvolver, ModelLinker, ModelReflector


@dataclass(frozen=True)
class Engine:
    """One store and everything that works on it."""

    store: GraphStore
    annotator: Annotator | ModelAnnotator
    reader: ModelAnnotator | None
    vectors: Vectors
    desk: Desk | None
    remembering: Remembering
    editing: Editing
    archiving: Archiving
    quarantining: Quarantining
    taking_back: TakingBack
    erasing: Erasing
    finding: Finding
    slots: Slots
    reembedding: Reembedding
    restoring: Restoring
    here: InProcessRunner
    loop: JobLoop
    evolution: Evolution
    feedback: Feedback

    async def close(self) -> None:
        """Stop the work, then close the store."""
        try:
            try:
                await self.finding.faded.settle()
            finally:
                await self.loop.close()
            await self.finding.log.close()
        finally:
            await self.store.close()


class Models(NamedTuple):
    """What works with a language model, as far as there is any."""

    model: LanguageModel | None = None
    annotator: ModelAnnotator | None = None
    linker: ModelLinker | None = None
    evolver: ModelEvolver | None = None
    reflector: ModelReflector | None = None


async def start(opening: Opening, runner: Runner | None = None) -> Engine:
    """Open the store and begin to work off its jobs, here or by a runner. Raises what the store's ``open`` raises, and
    the runner's ``start``.
    """
    if runner is None:
        engine = await assemble(opening)
    else:
        opening = replace(opening, away=runner.away)
        await runner.start(opening)  # first, for what it refuses leaves no new store behind
        try:
            engine = await assemble(opening, runner)
        except BaseException:
            await runner.close()
            raise
    engine.loop.start()
    return engine


async def assemble(opening: Opening, runner: Runner | None = None) -> Engine:
    """Open the store and wire the parts; no job is done by itself. Raises what the store's ``open`` raises.

    Without ``asks`` jobs for a model are written and left to other processes; without ``decay`` nothing fades.
    """
    url, asks, budget, decay = opening.url, opening.asks, opening.budget, opening.decay
    extractive, models = _annotators(opening.annotator, opening.llm, budget)
    store = open_store(url, opening.auth, opening.database) if isinstance(url, (str, Path)) else url
    # In a thread: a transformer takes seconds to load.
    embedder = await anyio.to_thread.run_sync(load_embedder, opening.embedder)
    # A static model is quicker than handing its vectors over.
    vectors = Vectors(store, embedder, later=opening.away and not isinstance(embedder, StaticEmbedder))
    await store.open()
    commits = Commits(store)
    follow_ups = FollowUps(vectors.later, models.annotator is not None)
    editing = Editing(store, commits, extractive, vectors, follow_ups)
    archiving = Archiving(editing)
    desk = None if models.model is None else _desk(store, commits, models.model, budget)
    slots = Slots(store, commits, vectors)
    finding = Finding(store, vectors, archiving.recall, slots, None if desk is None else desk.asker)
    asker = nobody if desk is None else desk.asker
    tally = Tally()
    rewriting = None
    if models.evolver is not None and asks:
        from zettel.jobs.rewriting import Rewriting

        rewriting = Rewriting(store, commits, vectors, models.evolver, asker, tally)

    async def reflect(scope: Scope, jobs: Sequence[Job]) -> list[Left]:
        from zettel.jobs.reflecting import Reflecting  # with all that reads a scope: for who has a round done

        reflector = models.reflector if asks else None
        return await Reflecting(store, commits, vectors, follow_ups, tally, reflector, asker).do(scope, jobs)

    linking = Linking(store, commits, vectors, finding, models.linker if asks else None, asker)

    async def link(scope: Scope, jobs: Sequence[Job]) -> list[Left]:
        left = await linking.do(scope, jobs)
        await slots.keep_up(scope)
        return left

    handlers: dict[JobKind, Handler] = {
        JobKind.LINK: link,
        JobKind.EVOLVE: Evolving(store, commits, tally, rewriting).do,
        JobKind.MERGE: Merging(store, commits, tally).do,
        JobKind.REFLECT: reflect,
    }
    if decay is not None:
        from zettel.jobs.decaying import Decaying

        decaying = Decaying(store, commits, vectors, follow_ups, tally, decay, finding.faded.forget)
        handlers[JobKind.DECAY] = decaying.do
    claim = None
    if models.annotator is not None and asks:
        from zettel.jobs.annotating import Annotating

        annotating = Annotating(store, commits, extractive, vectors, models.annotator, follow_ups, asker)
        handlers[JobKind.ANNOTATE], claim = annotating.do, annotating.claim
    work = Work(store, commits, vectors, handlers, claim)
    here, changed = InProcessRunner(store, work, tally), Tally()
    loop = JobLoop(store, work, here, runner or here, changed)
    return Engine(
        store=store,
        annotator=models.annotator or extractive,
        reader=models.annotator,
        vectors=vectors,
        desk=desk,
        remembering=Remembering(store, commits, extractive, vectors, follow_ups),
        editing=editing,
        archiving=archiving,
        quarantining=Quarantining(store, commits, vectors, follow_ups),
        taking_back=TakingBack(store, commits, vectors, follow_ups),
        erasing=Erasing(store, commits, vectors, follow_ups, finding.log),
        finding=finding,
        slots=slots,
        reembedding=work.reembedding,
        restoring=Restoring(store, commits, vectors),
        here=here,
        loop=loop,
        evolution=Evolution(store, commits, loop, changed, list(handlers)),
        feedback=Feedback(store, commits, finding.log),
    )


def _annotators(
    annotator: Annotator | ModelAnnotator | None, llm: LLM | None, budget: Budget | None
) -> tuple[Annotator, Models]:
    """Who annotates before a commit, and what is done with a model after it.

    A model without an annotator of its own gets ``LiteLLMAnnotator``; what stands before a commit never asks one.
    Raises ``InvalidInput`` for a budget without a model.
    """
    if budget is not None and llm is None:
        raise InvalidInput("budget= bounds what a model costs: name one with llm=")
    by_model: ModelAnnotator | None = None
    local: Annotator = ExtractiveAnnotator()
    if getattr(annotator, "remote", False):
        by_model = cast("ModelAnnotator", annotator)
    elif annotator is not None:
        local = cast("Annotator", annotator)
    if llm is None:
        return local, Models(annotator=by_model)
    # Here and below: what asks models takes a tenth of a second to import, which no memory without one should wait for.
    from zettel.annotate.by_model import LiteLLMAnnotator
    from zettel.evolve.by_model import LiteLLMEvolver
    from zettel.evolve.reflect_by_model import LiteLLMReflector
    from zettel.link.by_model import LiteLLMLinker
    from zettel.llm.lite import load_model

    model = load_model(llm)
    if annotator is None:
        by_model = LiteLLMAnnotator()
    if by_model is None or not by_model.links:
        return local, Models(model, by_model)
    return local, Models(model, by_model, LiteLLMLinker(), LiteLLMEvolver(), LiteLLMReflector())


def _desk(store: GraphStore, commits: Commits, model: LanguageModel, budget: Budget | None) -> Desk:
    from zettel.llm.desk import Desk

    return Desk(store, commits, model, budget)
