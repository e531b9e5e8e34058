"""Remote embedders: any embedding model of LiteLLM."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.core.telemetry import model_call, report_tokens
from zettel.embed.rows import unit_rows
from zettel.errors import EmbedderUnavailable
from zettel.llm.keys import sendable
from zettel.llm.litellm_module import import_litellm, require_litellm
from zettel.ports import EmbedderInfo
from zettel.text.tokens import readable

if TYPE_CHECKING:
    from zettel.ports.query import Floats

BATCH = 256
"""Texts per request: 256 notes, about 100,000 tokens, stay below the limits of most services."""

ATTEMPTS = 4
"""Attempts per batch."""

CLIENT_RETRIES = 1
"""Retries per attempt by LiteLLM's client, which respects Retry-After. It reads 0 as its default of 2."""

RETRY_SECONDS = 60.0
"""Seconds after which a batch is not retried. Jobs have their own, longer schedule."""

FIRST_WAIT, LONGEST_WAIT = 0.5, 20.0
"""Seconds between attempts: doubled each time, with jitter."""

MESSAGE_LENGTH = 200
"""Characters of a service's message in an error."""


class LiteLLMEmbedder:
    """Embeds with the LiteLLM model ``name``, such as ``openai/text-embedding-3-small``.

    ``dim``: length of its vectors. If None, ``info.dim`` is 0 until the first answer. ``api_base``, ``api_key``: as in
    LiteLLM, by default from the environment. ``timeout``: seconds per attempt. ``options``: further arguments of
    LiteLLM's embedding call, such as ``dimensions`` or ``api_version``. ``info.fingerprint`` is the sha256 of the name,
    because the weights are unknown.
    """

    remote = True

    def __init__(
        self,
        name: str,
        dim: int | None = None,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout: float = 30.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        require_litellm(f"the embedder litellm:{name}")
        self._name = name
        self._dim = dim or 0
        self._arguments = {**(options or {}), "api_base": api_base, "api_key": api_key, "timeout": timeout}

    @property
    def info(self) -> EmbedderInfo:
        """Name for ``load_embedder``, dimension (0: unknown yet), sha256 of LiteLLM's name."""
        return EmbedderInfo(f"litellm:{self._name}", self._dim, hashlib.sha256(self._name.encode()).hexdigest())

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return (n, dim) float32 unit rows in the order of ``texts``; a blank text is not sent and has a zero row.

        Raises ``EmbedderUnavailable`` if the service refuses, keeps failing or answers without vectors.
        """
        nonblank = [i for i, text in enumerate(texts) if text.strip()]
        batches = [nonblank[start : start + BATCH] for start in range(0, len(nonblank), BATCH)]
        vectors = [await self._request([readable(texts[i]) for i in batch]) for batch in batches]
        out = np.zeros((len(texts), self._dim), dtype=np.float32)
        for batch, rows in zip(batches, vectors, strict=True):
            out[batch] = rows
        return out

    async def _request(self, texts: list[str]) -> Floats:
        """(n, dim) unit rows of one request, retried while the service is busy or unreachable."""
        litellm = import_litellm()
        import stamina
        from openai import OpenAIError

        key = sendable(litellm, self._name, self._arguments["api_key"])
        transient = (
            litellm.RateLimitError,
            litellm.Timeout,
            litellm.APIConnectionError,
            litellm.ServiceUnavailableError,
            litellm.InternalServerError,
            litellm.BadGatewayError,
        )
        try:
            async for attempt in stamina.retry_context(
                on=transient,
                attempts=ATTEMPTS,
                timeout=RETRY_SECONDS,
                wait_initial=FIRST_WAIT,
                wait_max=LONGEST_WAIT,
            ):
                with attempt, model_call("embeddings", self._name) as call:
                    response = await litellm.aembedding(
                        model=self._name, input=texts, max_retries=CLIENT_RETRIES, **{**self._arguments, "api_key": key}
                    )
                    if tokens := getattr(getattr(response, "usage", None), "prompt_tokens", None):
                        report_tokens(call, self._name, tokens)
        except OpenAIError as error:  # the base of LiteLLM's errors
            raise EmbedderUnavailable(f"{self._name}: {short_message(error)}") from error
        return self._rows(response, len(texts))

    def _rows(self, response: Any, count: int) -> Floats:
        """Validate a response and return its (count, dim) unit rows in the order of the request."""
        try:
            places = [item.get("index", place) for place, item in enumerate(response.data)]
            rows = np.asarray([item["embedding"] for item in response.data], dtype=np.float32)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise EmbedderUnavailable(f"{self._name}: the answer contains no vectors") from error
        if set(places) != set(range(count)) or rows.ndim != 2 or len(rows) != count or not rows.size:
            raise EmbedderUnavailable(f"{self._name}: the answer does not contain a vector for each of {count} texts")
        if not np.isfinite(rows).all():
            raise EmbedderUnavailable(f"{self._name}: the answer contains NaN or infinite numbers")
        if self._dim not in (0, rows.shape[1]):
            raise EmbedderUnavailable(f"{self._name}: vectors of {rows.shape[1]} numbers, not {self._dim}")
        self._dim = rows.shape[1]
        return unit_rows(rows[np.argsort(places)])


def short_message(error: Exception) -> str:
    """The first line of a service's message, without LiteLLM's prefixes."""
    first = str(error).strip().partition("\n")[0]
    line = re.sub(r"^(litellm\.\w+:\s*|\w+Exception\s*-\s*|\w+Error:\s*)+", "", first)
    return (line or type(error).__name__)[:MESSAGE_LENGTH]
