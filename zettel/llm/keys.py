"""The keys of models' services: where LiteLLM looks for one, and one as it can be sent."""

from __future__ import annotations

import os
from types import ModuleType

from zettel.llm.shapes import known_as


def key_name(litellm: ModuleType, name: str) -> str:
    """The environment variable in which the key of the model ``name`` most likely stands."""
    provider, slash, _ = name.partition("/")
    if not slash:
        provider = (known_as(litellm, name) or {}).get("litellm_provider", "openai")
    return f"{provider.upper()}_API_KEY"


def sendable(litellm: ModuleType, name: str, given: str | None) -> str | None:
    """The key to hand to LiteLLM for the model ``name``: what was given; None: it looks in the environment.

    Files and shells end a key with a newline, and no header can hold one: such a key is handed over without it.
    """
    key = os.environ.get(key_name(litellm, name)) if given is None else given
    return given if key is None or key == key.strip() else key.strip()
