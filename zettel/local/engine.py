"""Builds the parts of an open memory and connects them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from zettel.annotate.extractive import ExtractiveAnnotator
from zettel.core.add_facts import FactWriter
from zettel.core.archive import Archiver
from zettel.core.changes import ChangeListener
from zettel.core.commit import Commits
from zettel.core.decisions import BY_HAND
from zettel.core.edit import NoteEditor
from zettel.core.edit_links import LinkEditor
from zettel.core.entity_decisions import EntityDecider
from zettel.core.erase import Eraser
from zettel.core.feedback import FeedbackRecorder
from zettel.core.follow_ups import FollowUps
from zettel.core.identity import Ordinals
from zettel.core.origin import Origin
from zettel.core.privacy import SecretGuard
from zettel.core.quarantine import Quarantiner
from zettel.core.remember import EventWriter
from zettel.core.restore import ScopeRestorer
from zettel.core.retention import Sweeper
from zettel.core.revert_effects import EffectReverter
from zettel.core.vectors import Vectors
from zettel.embed import load_embedder, recorded_embedder
from zettel.embed.static import StaticEmbedder
from zettel.errors import InvalidInput
from zettel.evolve.entity_reader import EntityReader
from zettel.graph import open_store
from zettel.jobs.counters import Counters
from zettel.jobs.evolution_round import EvolutionRound
from zettel.jobs.in_process import InProcessRunner
from zettel.jobs.loop import JobLoop
from zettel.jobs.reembed_job import ReembedJob
from zettel.jobs.registry import JOBS
from zettel.jobs.spec import JobContext, Models
from zettel.jobs.work import Work
from zettel.model import Cause, Event, Note, OnConflict, Remembered, Scope, Status
from zettel.ports import Annotator, Embedder, GraphStore, Runner
from zettel.ports.language_model import ModelAnnotator, no_model
from zettel.ports.settings import DEFAULT_PRIVACY, Settings
from zettel.search.searcher import Searcher

if TYPE_CHECKING:
    from zettel.llm.cached_client import CachedLLM
    from zettel.ports.language_model import (
        LLM,
        LanguageModel,
    )
    from zettel.ports.settings import SpendingLimit


@dataclass(frozen=True)
class Engine:
    """A store and the parts that read, write and maintain it."""

    store: GraphStore
    commits: Commits
    guard: SecretGuard
    annotator: Annotator | ModelAnnotator
    reader: ModelAnnotator | None
    vectors: Vectors
    llm_client: CachedLLM | None
    remembering: EventWriter
    editing: NoteEditor
    linking: LinkEditor
    facts: FactWriter
    deciding: EntityDecider
    entities: EntityReader
    archiving: Archiver
    quarantining: Quarantiner
    taking_back: EffectReverter
    erasing: Eraser
    sweeper: Sweeper
    searcher: Searcher
    reembedding: ReembedJob
    restoring: ScopeRestorer
    here: InProcessRunner
    loop: JobLoop
    evolution: EvolutionRound
    feedback: FeedbackRecorder

    async def remember(
        self,
        scope: Scope,
        events: Sequence[Event],
        on_conflict: OnConflict,
        ordinals: Ordinals,
        origin: Origin | None = None,
    ) -> list[Remembered]:
        """Store events, and return the outcome of each, in order."""
        outcomes = await self.remembering.remember(scope, events, on_conflict, ordinals, origin)
        self.loop.wake()
        return outcomes

    async def foresee(
        self, scope: Scope, events: Sequence[Event], ordinals: Ordinals, origin: Origin | None = None
    ) -> list[tuple[str, Status]]:
        """Return the identity and the outcome of each event that ``remember`` would produce; stores nothing."""
        return await self.remembering.foresee(scope, events, ordinals, origin)

    async def update(self, scope: Scope, note_id: str, changes: Mapping[str, Any], cause: Cause = BY_HAND) -> Note:
        """Revise a note. Raises ``InvalidInput``, ``NotFound``."""
        note = await self.editing.update(scope, note_id, changes, cause)
        self.loop.wake()
        return note

    async def close(self) -> None:
        """Stop the jobs, then close the store."""
        try:
            try:
                await self.searcher.decayed.settle()
            finally:
                await self.loop.close()
            await self.searcher.log.close()
        finally:
            await self.store.close()


async def start(
    settings: Settings, runner: Runner | None = None, listener: ChangeListener | None = None
) -> Engine:
    """Open the store and start running its jobs, here or by a runner. ``listener`` learns of the changes.

    Raises what the store's ``open`` and the runner's ``start`` raise.
    """
    if runner is None:
        engine = await assemble(settings, listener=listener)
    else:
        settings = replace(settings, away=runner.away)
        await runner.start(settings)  # first, so that a refusal leaves no new store behind
        try:
            engine = await assemble(settings, runner, listener)
        except BaseException:
            await runner.close()
            raise
    engine.loop.start()
    return engine


async def assemble(
    settings: Settings, runner: Runner | None = None, listener: ChangeListener | None = None
) -> Engine:
    """Open the store and connect the parts, without running jobs. Raises what the store's ``open`` raises.

    Without ``run_llm_jobs`` jobs for a model are queued for other processes. Without ``decay`` no note decays.
    """
    url, budget = settings.url, settings.budget
    extractive, models = _annotators(settings.annotator, settings.llm, budget)
    store = url
    if isinstance(store, (str, Path)):
        store = open_store(store, settings.auth, settings.database, settings.store_key)
    embedder: Embedder | None = None
    if settings.embedder is not None:  # before the store opens, so that a refusal leaves no new store behind
        # In a thread: a transformer takes seconds to load.
        embedder = await anyio.to_thread.run_sync(load_embedder, settings.embedder)
    await store.open()
    if embedder is None:
        embedder = await _recorded_embedder(store)
    # A static model is faster than transferring its vectors.
    vectors = Vectors(store, embedder, later=settings.away and not isinstance(embedder, StaticEmbedder))
    commits = Commits(store, listener)
    guard = SecretGuard(settings.privacy or DEFAULT_PRIVACY)
    follow_ups = FollowUps(models.annotator is not None)
    editing = NoteEditor(store, commits, extractive, vectors, follow_ups, guard)
    archiving = Archiver(editing)
    deciding = EntityDecider(editing)
    llm_client = None if models.model is None else _llm_client(store, commits, models.model, budget)
    searcher = Searcher(store, vectors, archiving.recall, None if llm_client is None else llm_client.ask_about, guard)
    counters, totals = Counters(), Counters()
    context = JobContext(
        store, commits, extractive, vectors, follow_ups, searcher, counters,
        models=models if settings.run_llm_jobs else Models(),
        ask_about=no_model if llm_client is None else llm_client.ask_about,
        decay=settings.decay,
        guard=guard,
    )  # fmt: skip
    work = Work(context, JOBS)
    erasing = Eraser(store, commits, vectors, follow_ups, searcher.log)
    here = InProcessRunner(store, work, counters)
    loop = JobLoop(store, work, here, runner or here, totals)
    return Engine(
        store=store,
        commits=commits,
        guard=guard,
        annotator=models.annotator or extractive,
        reader=models.annotator,
        vectors=vectors,
        llm_client=llm_client,
        remembering=EventWriter(store, commits, extractive, vectors, follow_ups, guard),
        editing=editing,
        linking=LinkEditor(store, commits),
        facts=FactWriter(store, editing),
        deciding=deciding,
        entities=EntityReader(store),
        archiving=archiving,
        quarantining=Quarantiner(store, commits, extractive, vectors, follow_ups),
        taking_back=EffectReverter(store, commits, vectors, follow_ups),
        erasing=erasing,
        sweeper=Sweeper(store, commits, vectors, follow_ups, erasing),
        searcher=searcher,
        reembedding=work.handler(ReembedJob),
        restoring=ScopeRestorer(store, commits, vectors, guard),
        here=here,
        loop=loop,
        evolution=EvolutionRound(store, commits, loop, totals, work),
        feedback=FeedbackRecorder(store, commits, searcher.log),
    )


async def _recorded_embedder(store: GraphStore) -> Embedder:
    """Return the shipped embedder that made the store's vectors, by default the default one.

    Closes the store if the embedder cannot be loaded.
    """
    try:
        active = next((space.name for space in await store.spaces() if space.active), None)
        return await anyio.to_thread.run_sync(recorded_embedder, active)
    except BaseException:
        await store.close()
        raise


def _annotators(
    annotator: Annotator | ModelAnnotator | None, llm: LLM | None, budget: SpendingLimit | None
) -> tuple[Annotator, Models]:
    """Return the annotator that runs before a commit, and the parts that call a model after it.

    With a model and no annotator, ``LiteLLMAnnotator`` is used. Raises ``InvalidInput`` for a budget without a model.
    """
    if budget is not None and llm is None:
        raise InvalidInput("budget= limits the cost of a model: set llm= as well")
    by_model: ModelAnnotator | None = None
    local: Annotator = ExtractiveAnnotator()
    if isinstance(annotator, ModelAnnotator):
        by_model = annotator
    elif annotator is not None:
        local = annotator
    if llm is None:
        return local, Models(annotator=by_model)
    # Imported here: these modules take a tenth of a second, which a memory without a model should not spend.
    from zettel.annotate.by_model import LiteLLMAnnotator
    from zettel.evolve.by_model import LiteLLMEvolver
    from zettel.evolve.entities_by_model import LiteLLMEntityMatcher
    from zettel.evolve.profile_by_model import LiteLLMProfiler
    from zettel.evolve.reflect_by_model import LiteLLMReflector
    from zettel.link.by_model import LiteLLMLinker
    from zettel.llm.lite import LiteLLM, load_model

    model = load_model(llm)
    if isinstance(model, LiteLLM):
        for complaint in model.complaints():
            logging.getLogger("zettel.llm").warning("%s", complaint)
    if annotator is None:
        by_model = LiteLLMAnnotator()
    if by_model is None or not by_model.links:
        return local, Models(model, by_model)
    return local, Models(
        model, by_model, LiteLLMLinker(), LiteLLMEvolver(), LiteLLMReflector(), LiteLLMProfiler(),
        LiteLLMEntityMatcher(),
    )  # fmt: skip


def _llm_client(store: GraphStore, commits: Commits, model: LanguageModel, budget: SpendingLimit | None) -> CachedLLM:
    from zettel.llm.cached_client import CachedLLM

    return CachedLLM(store, commits, model, budget)
