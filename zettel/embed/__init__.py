"""Texts to vectors: the room of the embedders.

``load_embedder`` turns what a caller wrote into an ``Embedder`` (see ``zettel.ports``). ``static`` reads
small matrices of token vectors with numpy alone, and the default one is shipped under ``weights``;
``distill`` made it and makes others; ``transformer`` runs sentence-transformers models, ``remote`` asks a
service through LiteLLM. Change how a text becomes a row here, and nothing else: what is embedded, when, and
where rows are kept is decided in other rooms. A store remembers the fingerprint of the embedder that filled
it, so a change of weights is a new fingerprint, never a silent one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from zettel.ports import Embedder

EmbedderSpec: TypeAlias = "str | os.PathLike[str] | Embedder | None"

ENTRY_POINTS = "zettel.embedders"
"""The group under which other packages announce embedders by name."""

LITELLM_PROVIDERS = frozenset(
    """
    azure azure_ai bedrock cohere databricks deepinfra fireworks_ai gemini gigachat github github_copilot
    hosted_vllm huggingface infinity jina_ai litellm_proxy lm_studio mistral nebius novita nvidia_nim oci
    ollama openai openai_like openrouter perplexity sagemaker sambanova scaleway snowflake together_ai
    vercel_ai_gateway vertex_ai volcengine voyage watsonx xinference
    """.split()
)
"""First parts of ``provider/model`` that LiteLLM answers for; any other first part is an owner on the hub."""


def load_embedder(spec: EmbedderSpec = None) -> Embedder:
    """Return the embedder that ``spec`` names. The first line that fits decides:

    * None, ``"static"`` or ``"all-MiniLM-L6-v2-static-256"``: the static model shipped with zettel;
    * an object with ``embed``: itself;
    * ``"litellm:NAME"`` (or ``"litellm/NAME"``): the LiteLLM embedding model NAME;
    * ``"transformer:NAME"``: the sentence-transformers model NAME;
    * a folder: a static model if its config.json says so, else a sentence-transformers model;
    * a name that another package announced in the entry point group ``zettel.embedders``: what its factory
      returns, called without arguments, or for ``"NAME:REST"`` with REST;
    * ``"PROVIDER/NAME"`` with a provider of ``LITELLM_PROVIDERS``, for example
      ``openai/text-embedding-3-small``: LiteLLM;
    * any other name, for example ``all-MiniLM-L6-v2`` or ``BAAI/bge-small-en-v1.5``: sentence-transformers.

    A transformer is loaded here and now, which takes seconds; inside an event loop call this in a thread.

    Raises ``EmbedderUnreadable`` for a folder or name that holds no embedder, ``EmbedderUnavailable`` when a
    model cannot be fetched, ``MissingExtra`` when sentence-transformers is not installed.
    """
    if spec is None:
        return _from_name("static")
    if isinstance(spec, str):
        return _from_name(spec)
    if isinstance(spec, os.PathLike):
        return _from_folder(Path(spec))
    return _checked(spec, repr(spec))


def _from_name(name: str) -> Embedder:
    from zettel.embed.static import SHIPPED_NAME, StaticEmbedder

    if name in ("static", SHIPPED_NAME):
        return StaticEmbedder()
    prefix, colon, rest = name.partition(":")
    provider, slash, model = name.partition("/")
    if colon and prefix == "litellm":
        return _litellm(rest)
    if slash and provider == "litellm":
        return _litellm(model)
    if colon and prefix == "transformer":
        return _transformer(rest)
    folder = Path(name).expanduser()
    if name.startswith((".", "~", os.sep)) or (name and folder.is_dir()):
        return _from_folder(folder)
    return (
        _announced(name)
        or (_announced(prefix, rest) if colon else None)
        or (_litellm(name) if slash and provider in LITELLM_PROVIDERS else _transformer(name))
    )


def _announced(name: str, *arguments: str) -> Embedder | None:
    """What another package's entry point ``name`` gives, None if there is none."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS, name=name):
        return _checked(entry.load()(*arguments), f"what {entry.value} returns")
    return None


def _from_folder(folder: Path) -> Embedder:
    from zettel.embed.static import StaticEmbedder, is_static_model
    from zettel.errors import EmbedderUnreadable

    if not folder.is_dir():
        raise EmbedderUnreadable(f"no folder {folder} to read an embedder from")
    return StaticEmbedder(folder) if is_static_model(folder) else _transformer(folder)


def _litellm(name: str) -> Embedder:
    from zettel.embed.remote import LiteLLMEmbedder

    return LiteLLMEmbedder(_named(name))


def _transformer(name: str | Path) -> Embedder:
    from zettel.embed.transformer import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(_named(name) if isinstance(name, str) else name)


def _named(name: str) -> str:
    from zettel.errors import EmbedderUnreadable

    if not name.strip():
        raise EmbedderUnreadable("the embedder has an empty name; leave it out to use zettel's own")
    return name


def _checked(candidate: Embedder, what: str) -> Embedder:
    from zettel.errors import EmbedderUnreadable

    if not callable(getattr(candidate, "embed", None)):
        raise EmbedderUnreadable(f"{what} is no embedder: it has no method embed(texts)")
    return candidate
