"""API keys: the environment variable of a model, and a key that fits an HTTP header."""

from __future__ import annotations

import os
from types import ModuleType

from zettel.llm.output_modes import known_as


def key_name(litellm: ModuleType, name: str) -> str:
    """Return the environment variable that most likely contains the key of the model ``name``."""
    provider, slash, _ = name.partition("/")
    if not slash:
        provider = (known_as(litellm, name) or {}).get("litellm_provider", "openai")
    return f"{provider.upper()}_API_KEY"


def sendable(litellm: ModuleType, name: str, given: str | None) -> str | None:
    """Return the key to pass to LiteLLM for the model ``name``; None: LiteLLM reads the environment.

    Keys from files and shells may end with a newline, which no header allows: it is removed.
    """
    key = os.environ.get(key_name(litellm, name)) if given is None else given
    return given if key is None or key == key.strip() else key.strip()
