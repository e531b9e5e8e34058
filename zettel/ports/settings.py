"""The settings of a memory, and their serialization for worker processes."""

from __future__ import annotations

import os
import pickle
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

from zettel.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

    from zettel.model import Note, NoteUse
    from zettel.ports.annotator import Annotator
    from zettel.ports.embedder import Embedder
    from zettel.ports.language_model import LLM, ModelAnnotator
    from zettel.ports.store import GraphStore


Privacy: TypeAlias = Literal["off", "report", "redact", "block"]
"""Treatment of secrets in texts: not searched for; stored and reported; replaced by a mark; refused."""
DEFAULT_PRIVACY: Privacy = "report"
"""A secret is neither lost nor stored silently."""
PRIVACY = "ZETTEL_PRIVACY"
"""Environment variable with the treatment of secrets for memories that do not state one."""


class SpendingLimit(Protocol):
    """A limit on the cost of language models, such as ``zettel.Budget``. None means no limit.

    ``usd`` is in US dollars; ``calls``, ``tokens`` and ``usd`` apply to each period ``per``.
    """

    @property
    def calls(self) -> int | None: ...
    @property
    def tokens(self) -> int | None: ...
    @property
    def usd(self) -> float | None: ...
    @property
    def per(self) -> str:
        """``"day"`` or ``"import"``."""
        ...


class DecayPolicy(Protocol):
    """Decides which notes decay; ``zettel.Decay`` is the default implementation."""

    def fades(self, note: Note, use: NoteUse, importance: float, now: datetime) -> bool:
        """Return True if the note has decayed at ``now``; ``importance`` (0..1) includes the note's links."""
        ...


_PARTS = (
    ("annotator", "annotate", 'LiteLLMAnnotator("lean")'),
    ("budget", "per", "Budget(usd=2)"),
    ("decay", "fades", "Decay(older_than=90)"),
)
"""Objects in the settings: argument name, required attribute, and an example for errors."""


@dataclass(frozen=True)
class Settings:
    """The arguments of ``Memory`` that a worker process needs to open the same store and run its jobs.

    ``repr()`` omits passwords. ``privacy`` None is replaced by ZETTEL_PRIVACY
    or the default. ``away`` is True if the jobs of this memory run in other processes. ``key`` is a random
    id of these settings, by which a worker finds its open memory.
    """

    url: str | Path | GraphStore
    auth: Any = field(default=None, repr=False)
    database: str | None = None
    store_key: str | None = field(default=None, repr=False)
    embedder: str | Path | Embedder | None = None
    annotator: Annotator | ModelAnnotator | None = field(default=None, repr=False)
    llm: LLM | None = field(default=None, repr=False)
    budget: SpendingLimit | None = None
    run_llm_jobs: bool = True
    decay: DecayPolicy | None = None
    privacy: Privacy | None = None
    away: bool = False
    key: str = field(default_factory=lambda: secrets.token_hex(8), repr=False)

    def __post_init__(self) -> None:
        """Raise ``InvalidInput`` for an argument of the wrong type."""
        if not isinstance(self.url, (str, Path)) and (isinstance(self.url, type) or not hasattr(self.url, "open")):
            raise InvalidInput(f"{self.url!r} does not name a store: use a path such as 'zettel.db', or a URL")
        if self.privacy is None:
            object.__setattr__(self, "privacy", os.environ.get(PRIVACY) or DEFAULT_PRIVACY)
        if self.privacy not in get_args(Privacy):
            raise InvalidInput(f"privacy={self.privacy!r} is unknown: use {', '.join(get_args(Privacy))}")
        for name, attribute, example in _PARTS:
            part = getattr(self, name)
            if part is not None and (isinstance(part, type) or not hasattr(part, attribute)):
                raise InvalidInput(f"{name} must be an object such as {example}, got {part!r}")


def sealed(settings: Settings, runner: str, dumps: Callable[[Settings], bytes] = pickle.dumps) -> bytes:
    """Serialize settings for worker processes; paths become absolute.

    Raises ``InvalidInput`` for settings that ``dumps`` cannot serialize, and for a budget per import.
    """
    if settings.budget is not None and settings.budget.per == "import":
        raise InvalidInput(
            f"the runner {runner!r} does not support a budget per import: use a budget per day"
        )
    url, embedder = settings.url, settings.embedder
    if isinstance(url, (str, Path)) and "://" not in str(url):
        url = Path(url).resolve()
    if isinstance(embedder, (str, Path)) and Path(embedder).is_dir():
        embedder = Path(embedder).resolve()
    try:
        return dumps(replace(settings, url=url, embedder=embedder))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"the runner {runner!r} cannot send these settings to other processes: {error}"
        ) from None
