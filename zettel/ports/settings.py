"""What a memory is opened with: enough to open the same one in another process."""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from zettel.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

    from zettel.model import Note, NoteUse
    from zettel.ports.annotator import Annotator
    from zettel.ports.embedder import Embedder
    from zettel.ports.language_model import LLM, ModelAnnotator
    from zettel.ports.store import GraphStore

class SpendingLimit(Protocol):
    """What language models may cost; ``zettel.Budget`` is one. None stands for no limit."""

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
    """Which notes decay; ``zettel.Decay`` is one."""

    def fades(self, note: Note, use: NoteUse, importance: float, now: datetime) -> bool:
        """Return whether a note has decayed at ``now``; ``importance`` (0..1) is what its links give it."""
        ...


_PARTS = (
    ("annotator", "annotate", 'LiteLLMAnnotator("lean")'),
    ("budget", "per", "Budget(usd=2)"),
    ("decay", "fades", "Decay(older_than=90)"),
)
"""Parts of an settings, what each of them has, and how one is written."""


@dataclass(frozen=True)
class Settings:
    """The arguments of a ``Memory``, see there, as far as they tell what is kept where and how jobs are done.

    Its text shows no password. ``away``: whether jobs of this memory are done in other processes. ``key`` tells it from
    every other settings.
    """

    url: str | Path | GraphStore
    auth: Any = field(default=None, repr=False)
    database: str | None = None
    embedder: str | Path | Embedder | None = None
    annotator: Annotator | ModelAnnotator | None = field(default=None, repr=False)
    llm: LLM | None = field(default=None, repr=False)
    budget: SpendingLimit | None = None
    run_llm_jobs: bool = True
    decay: DecayPolicy | None = None
    away: bool = False
    key: str = field(default_factory=lambda: secrets.token_hex(8), repr=False)

    def __post_init__(self) -> None:
        """Raise ``InvalidInput`` for a part that cannot do what it stands for, told by what it has."""
        if not isinstance(self.url, (str, Path)) and (isinstance(self.url, type) or not hasattr(self.url, "open")):
            raise InvalidInput(f"{self.url!r} names no store: give a path such as 'zettel.db', or a server's address")
        for name, has, example in _PARTS:
            part = getattr(self, name)
            if part is not None and (isinstance(part, type) or not hasattr(part, has)):
                raise InvalidInput(f"{name}={part!r} is none: write {name}={example}, say")


def sealed(settings: Settings, runner: str, dumps: Callable[[Settings], bytes] = pickle.dumps) -> bytes:
    """An opening as it is sent to processes that may run in other folders.

    Raises ``InvalidInput`` if ``dumps`` cannot write something in it, or if it would mean something else there.
    """
    if settings.budget is not None and settings.budget.per == "import":
        raise InvalidInput(
            f"a budget per import is counted by one process: with the runner {runner!r} bound it per day"
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
            f"the runner {runner!r} cannot send this memory's parts to other processes: {error}"
        ) from None
