"""The parts of an open memory, wired: who writes, who edits, who erases, who finds, who does the jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from zettel.annotate.extractive import ExtractiveAnnotator
from zettel.commit import Commits
from zettel.edit import Editing
from zettel.embed import load_embedder
from zettel.embed.vectors import Vectors
from zettel.erase import Erasing
from zettel.graph import open_store
from zettel.jobs.reembed import Reembedding
from zettel.jobs.runner import InProcessRunner
from zettel.jobs.work import Work
from zettel.ports import Annotator, Embedder, GraphStore, Runner
from zettel.remember import Remembering
from zettel.restore import Restoring
from zettel.search.find import Finding


@dataclass(frozen=True)
class Engine:
    """One store and everything that works on it."""

    store: GraphStore
    annotator: Annotator
    vectors: Vectors
    remembering: Remembering
    editing: Editing
    erasing: Erasing
    finding: Finding
    reembedding: Reembedding
    restoring: Restoring
    runner: Runner

    async def close(self) -> None:
        """Stop the work, then close the store."""
        try:
            await self.runner.close()
        finally:
            await self.store.close()


async def start(
    url: str | Path | GraphStore,
    annotator: Annotator | None,
    embedder: str | Path | Embedder | None,
    auth: Any = None,
    database: str | None = None,
) -> Engine:
    """Open the store, wire the parts and begin to work off its jobs. Raises what the store's ``open`` raises."""
    store = open_store(url, auth, database) if isinstance(url, (str, Path)) else url
    annotator = annotator or ExtractiveAnnotator()
    # In a thread: a transformer takes seconds to load.
    vectors = Vectors(store, await anyio.to_thread.run_sync(load_embedder, embedder))
    await store.open()
    commits = Commits(store)
    work = Work(store, commits, vectors)
    engine = Engine(
        store=store,
        annotator=annotator,
        vectors=vectors,
        remembering=Remembering(store, commits, annotator, vectors),
        editing=Editing(store, commits, annotator, vectors),
        erasing=Erasing(store, commits, vectors),
        finding=Finding(store, vectors),
        reembedding=work.reembedding,
        restoring=Restoring(store, commits, vectors),
        runner=InProcessRunner(store, work),
    )
    await engine.runner.start()
    return engine
