"""Import of LiteLLM, an optional package, with its network access and printing turned off."""

from __future__ import annotations

import os
from importlib.util import find_spec
from types import ModuleType

from zettel.errors import MissingExtra


def require_litellm(feature: str) -> None:
    """Raise ``MissingExtra`` if LiteLLM is not installed, without importing it."""
    if find_spec("litellm") is None:
        raise MissingExtra(feature, "llm")


def import_litellm() -> ModuleType:
    """Return LiteLLM, set up to fetch no prices, read no ``.env``, report no usage and print no errors."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    import litellm

    vars(litellm).update(telemetry=False, suppress_debug_info=True)
    module: ModuleType = litellm
    return module
