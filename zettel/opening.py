"""What a memory is opened with: enough to open the same one in another process."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zettel.evolve.decay import Decay
    from zettel.llm.budget import Budget
    from zettel.llm.ports import LLM, ModelAnnotator
    from zettel.ports import Annotator, Embedder, GraphStore


@dataclass(frozen=True)
class Opening:
    """The arguments of a ``Memory``, see there, as far as they tell what is kept where and how jobs are done.

    Its text shows no password. ``away``: whether jobs of this memory are done in other processes. ``key`` tells it from
    every other opening.
    """

    url: str | Path | GraphStore
    auth: Any = field(default=None, repr=False)
    database: str | None = None
    embedder: str | Path | Embedder | None = None
    annotator: Annotator | ModelAnnotator | None = field(default=None, repr=False)
    llm: LLM | None = field(default=None, repr=False)
    budget: Budget | None = None
    asks: bool = True
    decay: Decay | None = None
    away: bool = False
    key: str = field(default_factory=lambda: secrets.token_hex(8), repr=False)
