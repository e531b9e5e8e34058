"""Long-term memory for AI agents, built like a Zettelkasten.

``import zettel`` imports almost nothing: each name below is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zettel.version import VERSION

if TYPE_CHECKING:
    from zettel.annotate.by_model import LiteLLMAnnotator as LiteLLMAnnotator
    from zettel.annotate.recorded import RecordedAnnotator as RecordedAnnotator
    from zettel.async_memory import AsyncMemory as AsyncMemory
    from zettel.core.principals import acting_as as acting_as
    from zettel.errors import ZettelError as ZettelError
    from zettel.evolve.decay import Decay as Decay
    from zettel.integrations.wrap import wrap as wrap
    from zettel.llm.budget import Budget as Budget
    from zettel.llm.lite import LiteLLM as LiteLLM
    from zettel.local.ray_runner import RayRunner as RayRunner
    from zettel.memory import Memory as Memory
    from zettel.model import Event as Event
    from zettel.model import Hit as Hit
    from zettel.model import Kind as Kind
    from zettel.model import Link as Link
    from zettel.model import LinkType as LinkType
    from zettel.model import Note as Note
    from zettel.model import Revision as Revision
    from zettel.model import Scope as Scope

__version__ = VERSION

_MODULES = {
    "LiteLLMAnnotator": "zettel.annotate.by_model",
    "RecordedAnnotator": "zettel.annotate.recorded",
    "AsyncMemory": "zettel.async_memory",
    "Budget": "zettel.llm.budget",
    "Decay": "zettel.evolve.decay",
    "LiteLLM": "zettel.llm.lite",
    "Memory": "zettel.memory",
    "RayRunner": "zettel.local.ray_runner",
    "ZettelError": "zettel.errors",
    "Event": "zettel.model",
    "Hit": "zettel.model",
    "Kind": "zettel.model",
    "Link": "zettel.model",
    "LinkType": "zettel.model",
    "Note": "zettel.model",
    "Revision": "zettel.model",
    "Scope": "zettel.model",
    "acting_as": "zettel.core.principals",
    "wrap": "zettel.integrations.wrap",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'zettel' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
