"""zettel: a memory for agents that works like a Zettelkasten.

Importing this package loads next to nothing: each name below is brought in when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zettel.annotate.by_model import LiteLLMAnnotator as LiteLLMAnnotator
    from zettel.annotate.recorded import RecordedAnnotator as RecordedAnnotator
    from zettel.async_memory import AsyncMemory as AsyncMemory
    from zettel.errors import ZettelError as ZettelError
    from zettel.evolve.decay import Decay as Decay
    from zettel.jobs.on_ray import RayRunner as RayRunner
    from zettel.llm.budget import Budget as Budget
    from zettel.llm.lite import LiteLLM as LiteLLM
    from zettel.memory import Memory as Memory
    from zettel.model import Event as Event
    from zettel.model import Hit as Hit
    from zettel.model import Kind as Kind
    from zettel.model import Link as Link
    from zettel.model import LinkType as LinkType
    from zettel.model import Note as Note
    from zettel.model import Revision as Revision
    from zettel.model import Scope as Scope

__version__ = "0.1.0"

_HOMES = {
    "LiteLLMAnnotator": "zettel.annotate.by_model",
    "RecordedAnnotator": "zettel.annotate.recorded",
    "AsyncMemory": "zettel.async_memory",
    "Budget": "zettel.llm.budget",
    "Decay": "zettel.evolve.decay",
    "LiteLLM": "zettel.llm.lite",
    "Memory": "zettel.memory",
    "RayRunner": "zettel.jobs.on_ray",
    "ZettelError": "zettel.errors",
    "Event": "zettel.model",
    "Hit": "zettel.model",
    "Kind": "zettel.model",
    "Link": "zettel.model",
    "LinkType": "zettel.model",
    "Note": "zettel.model",
    "Revision": "zettel.model",
    "Scope": "zettel.model",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'zettel' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
