"""The public face, for code that runs in an event loop; ``zettel.memory`` has ``Memory``, which drives it from any
other code.

Everything a memory does is one method, each with its like in a file of ``zettel.face``; the order of an event's way is:
remember, the jobs' work (embed, link), search.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zettel.face.changing import Changing
from zettel.face.finding import Finding
from zettel.face.learning import Learning
from zettel.face.transferring import Transferring
from zettel.face.wrapping import Wrapping
from zettel.ports import GraphStore


class AsyncMemory(Transferring, Finding, Learning, Changing, Wrapping):
    """A memory, for code that runs in an event loop. ``Memory`` has the same methods for all other code.

    ``url`` is a file (made when it is not there), the address of a Neo4j server such as ``neo4j://localhost:7687``,
    that of a zettel server such as ``https://memory.example``, where ``key`` opens it, or a GraphStore. ``auth`` is the
    server's (user, password), or None for NEO4J_USERNAME and NEO4J_PASSWORD of the environment; ``database`` names
    another of its databases than ``neo4j``, as NEO4J_DATABASE does. ``llm`` names a language model that writes the
    notes and decides their links, in the background: any LiteLLM name such as ``openai/gpt-4o-mini``, several of which
    the next is asked when one fails, or a ``LiteLLM``. ``budget`` bounds what it costs. ``annotator`` replaces what
    makes note fields, with or without a model. ``decay`` is a Decay by which ``evolve`` puts away what has faded:
    nothing, without one. ``embedder`` is None for the static model that is shipped, a sentence-transformers name or
    folder, a LiteLLM embedding name, or an Embedder. ``scorer`` ranks what is found: a name, a Scorer or a Reranker,
    see ``zettel.scoring.load_scorer``. ``scope`` is used wherever a call names none. ``runner`` is where jobs are done,
    see ``zettel.jobs.runners.load_runner``: here, for ``"process"`` in a process beside this one, for ``"ray"`` on a
    Ray cluster. Opened by ``async with`` or by its first use.
    """

    def __new__(cls, url: str | Path | GraphStore = "zettel.db", **_: Any) -> AsyncMemory:
        """One that asks a zettel server, for the address of such."""
        if cls is AsyncMemory and isinstance(url, str) and url.startswith(("http://", "https://")):
            from zettel.server.client import RemoteMemory

            return super().__new__(RemoteMemory)
        return super().__new__(cls)
