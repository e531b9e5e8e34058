"""Embedders, and ``load_embedder``, which loads them by name.

``onnx`` runs a contextual model without torch; ``minilm`` contains the default one, made by ``export``. ``static``
looks up token vectors with numpy alone; ``weights`` contains its model, made by ``distill``. ``transformer`` runs
sentence-transformers models. ``remote`` calls a service through LiteLLM. A store records the fingerprint of its
embedder, so it detects changed weights.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from zettel.errors import EmbedderUnreadable

if TYPE_CHECKING:
    from zettel.ports import Embedder

EmbedderSpec: TypeAlias = "str | os.PathLike[str] | Embedder | None"

DEFAULT = "minilm"
"""Name of the default embedder."""

ENTRY_POINTS = "zettel.embedders"
"""Entry point group in which other packages register embedders."""

LITELLM_PROVIDERS = frozenset(
    """
    azure azure_ai bedrock cohere databricks deepinfra fireworks_ai gemini gigachat github github_copilot
    hosted_vllm huggingface infinity jina_ai litellm_proxy lm_studio mistral nebius novita nvidia_nim oci
    ollama openai openai_like openrouter perplexity sagemaker sambanova scaleway snowflake together_ai
    vercel_ai_gateway vertex_ai volcengine voyage watsonx xinference
    """.split()
)
"""Providers in ``provider/model`` that LiteLLM serves. Any other first part is an owner on the hub."""


def load_embedder(spec: EmbedderSpec = None) -> Embedder:
    """Return the embedder of ``spec``. The first match counts:

    * None, ``"minilm"`` or ``"all-MiniLM-L6-v2-int8"``: the contextual model shipped with zettel;
    * ``"static"`` or ``"all-MiniLM-L6-v2-static-256"``: the static model shipped with zettel;
    * an object with ``embed``: itself;
    * ``"litellm:NAME"`` (or ``"litellm/NAME"``): the LiteLLM embedding model NAME;
    * ``"transformer:NAME"``: the sentence-transformers model NAME;
    * a folder: a static or an ONNX model if its config.json names that format, else a sentence-transformers model;
    * a name that another package registered in the entry point group ``zettel.embedders``; ``"NAME:REST"`` passes REST;
    * ``"PROVIDER/NAME"`` with a provider of ``LITELLM_PROVIDERS``, for example
      ``openai/text-embedding-3-small``: LiteLLM;
    * any other name, for example ``all-MiniLM-L6-v2`` or ``BAAI/bge-small-en-v1.5``: sentence-transformers.

    Loads a transformer immediately, which takes seconds: in an event loop, call this in a thread.

    Raises ``EmbedderUnreadable`` for a folder or name without an embedder, or without onnxruntime for an ONNX model,
    ``EmbedderUnavailable`` if a model cannot be downloaded, ``MissingExtra`` if sentence-transformers is not installed.
    """
    if spec is None:
        return _from_name(DEFAULT)
    if isinstance(spec, str):
        return _from_name(spec)
    if isinstance(spec, os.PathLike):
        return _from_folder(Path(spec))
    return _require_embedder(spec, repr(spec))


def _from_name(name: str) -> Embedder:
    shipped = _shipped(name)
    if shipped is not None:
        return shipped
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
        _by_entry_point(name)
        or (_by_entry_point(prefix, rest) if colon else None)
        or (_litellm(name) if slash and provider in LITELLM_PROVIDERS else _transformer(name))
    )


def recorded_embedder(name: str | None) -> Embedder:
    """Return the embedder of a memory whose user names none: the one that its store records if zettel ships it.

    ``name``: of the store's active vector set, or None. Otherwise it is the default embedder, so that
    the store refuses a memory with vectors of another one.
    """
    return (_shipped(name) if name else None) or load_embedder()


def _shipped(name: str) -> Embedder | None:
    from zettel.embed import onnx, static

    if name in (DEFAULT, onnx.SHIPPED_NAME):
        return onnx.OnnxEmbedder()
    return static.StaticEmbedder() if name in ("static", static.SHIPPED_NAME) else None


def _by_entry_point(name: str, *arguments: str) -> Embedder | None:
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS, name=name):
        return _require_embedder(entry.load()(*arguments), f"the embedder of {entry.value}")
    return None


def _from_folder(folder: Path) -> Embedder:
    from zettel.embed.onnx import OnnxEmbedder, is_onnx_model
    from zettel.embed.static import StaticEmbedder, is_static_model

    if not folder.is_dir():
        raise EmbedderUnreadable(f"the folder {folder} does not exist: name the folder of an embedder")
    if is_onnx_model(folder):
        return OnnxEmbedder(folder)
    return StaticEmbedder(folder) if is_static_model(folder) else _transformer(folder)


def _litellm(name: str) -> Embedder:
    from zettel.embed.remote import LiteLLMEmbedder

    return LiteLLMEmbedder(_require_name(name))


def _transformer(name: str | Path) -> Embedder:
    from zettel.embed.transformer import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(_require_name(name) if isinstance(name, str) else name)


def _require_name(name: str) -> str:
    if not name.strip():
        raise EmbedderUnreadable("the name of the embedder is empty: leave it out to use the default embedder")
    return name


def _require_embedder(embedder: Embedder, label: str) -> Embedder:
    if not callable(getattr(embedder, "embed", None)):
        raise EmbedderUnreadable(f"{label} is not an embedder: give it a method embed(texts)")
    return embedder
