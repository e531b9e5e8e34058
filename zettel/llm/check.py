"""Checks the name and the key of a LiteLLM model when a memory opens, without importing LiteLLM, which takes seconds.

The check reads LiteLLM's files and the environment. It needs no network.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pathlib import Path

KEYS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "cerebras": ("CEREBRAS_API_KEY",),
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "deepinfra": ("DEEPINFRA_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks_ai": ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY", "FIREWORKSAI_API_KEY", "FIREWORKS_AI_TOKEN"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY", "OR_API_KEY"),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHER_AI_TOKEN"),
    "xai": ("XAI_API_KEY",),
}
"""The environment variables of common providers; one of them must contain the key."""
_OPENAI, _ANTHROPIC = re.compile(r"(?:gpt|chatgpt|o\d)[-\d]"), "claude-"
"""Beginnings of names without a provider that LiteLLM assigns to these two."""
_MEMBER = re.compile(r'^    [A-Z0-9_]+ = "([^"]+)"', re.MULTILINE)


def complaints(names: Sequence[str], *, has_key: bool) -> Iterator[str]:
    """Yield a line for each of these models that cannot work. ``has_key``: the key is not in the environment.

    Providers whose key the table lacks are not checked.
    """
    for name in names:
        provider, slash, _ = name.partition("/")
        if not slash:
            found = provider_of(name)
            if found is None:
                yield f"the model {name!r} has no provider in its name: write it as openai/gpt-4o-mini"
                continue
            provider = found
        elif providers() and provider not in providers():
            near = get_close_matches(provider.lower(), sorted(providers()), 1)
            yield f"the model {name!r} has the unknown provider {provider!r}: " + (
                f"use {near[0]!r}" if near else "write it as openai/gpt-4o-mini"
            )
            continue
        variables = KEYS.get(provider, ())
        if variables and not has_key and not any(os.environ.get(variable, "").strip() for variable in variables):
            yield f"the model {name!r} has no key, and its jobs will fail: set {variables[0]}"


def provider_of(name: str) -> str | None:
    """Return the provider of a name without one, "" if another than OpenAI or Anthropic, None if it is unknown."""
    if _OPENAI.match(name):
        return "openai"
    if name.startswith(_ANTHROPIC):
        return "anthropic"
    prices = _text("model_prices_and_context_window_backup.json")
    return "" if not prices or f'"{name}": {{' in prices else None


@cache
def providers() -> frozenset[str]:
    """Return the providers of the installed LiteLLM; empty if they cannot be read."""
    _, _, members = _text("types/utils.py").partition("\nclass LlmProviders(")
    return frozenset(_MEMBER.findall(members.partition("\nclass ")[0]))


def _text(file: str) -> str:
    """Return the text of a file of LiteLLM, "" if this version has no such file."""
    spec = find_spec("litellm")
    folders = [] if spec is None else spec.submodule_search_locations or []
    paths = [path for folder in folders if (path := Path(folder) / file).is_file()]
    return paths[0].read_text(encoding="utf-8") if paths else ""
