"""Embedders behind a network: any embedding model that LiteLLM knows by name."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.embed.rows import readable, unit_rows
from zettel.errors import EmbedderUnavailable
from zettel.llm.keys import sendable
from zettel.ports import EmbedderInfo

if TYPE_CHECKING:
    from zettel.query import Floats

BATCH = 256
"""Texts per request: 256 notes, about 100,000 tokens, stay below the limits of most services."""

ATTEMPTS = 4
"""Tries per batch, the first included."""

RETRIES_BELOW = 1
"""Retries within a try, by LiteLLM's client, which heeds Retry-After. It takes 0 for its own default of 2."""

PATIENCE = 60.0
"""Seconds after which a batch is not tried again; the job that asked has its own, longer, schedule."""

FIRST_WAIT, LONGEST_WAIT = 0.5, 20.0
"""Seconds between tries: doubled each time, with jitter, from the first to the longest."""

MESSAGE_LENGTH = 200
"""Characters of a service's own message that are passed on."""


def import_litellm() -> ModuleType:
    """LiteLLM without what it does unasked: fetch prices, read ``.env``, report usage, print on errors."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    import litellm

    vars(litellm).update(telemetry=False, suppress_debug_info=True)
    module: ModuleType = litellm
    return module


class LiteLLMEmbedder:
    """Embeds with the LiteLLM model ``name``, such as ``openai/text-embedding-3-small``.

    ``dim``: how long its vectors are, if known; otherwise learnt from the first answer, and ``info.dim`` is 0
    till then. ``api_base``, ``api_key``: as LiteLLM takes them, by default from the environment. ``timeout``:
    seconds per try. ``options``: further arguments of LiteLLM's embedding call, for example ``dimensions`` or
    ``api_version``. ``info.fingerprint`` is the sha256 of the name: what stands behind a name cannot be seen
    from here.
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
        self._name = name
        self._dim = dim or 0
        self._arguments = {**(options or {}), "api_base": api_base, "api_key": api_key, "timeout": timeout}

    @property
    def info(self) -> EmbedderInfo:
        """Name as ``load_embedder`` takes it, dimension (0: not known yet), sha256 of LiteLLM's name."""
        return EmbedderInfo(f"litellm:{self._name}", self._dim, hashlib.sha256(self._name.encode()).hexdigest())

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return (n, dim) float32 unit rows in the order of ``texts``; a blank text is not sent: a zero row.

        Raises ``EmbedderUnavailable`` when the service refuses, keeps failing or answers something else.
        """
        written = [i for i, text in enumerate(texts) if text.strip()]
        batches = [written[start : start + BATCH] for start in range(0, len(written), BATCH)]
        answers = [await self._ask([readable(texts[i]) for i in batch]) for batch in batches]
        out = np.zeros((len(texts), self._dim), dtype=np.float32)
        for batch, rows in zip(batches, answers, strict=True):
            out[batch] = rows
        return out

    async def _ask(self, texts: list[str]) -> Floats:
        """(n, dim) unit rows of one request, tried again while the service is busy or out of reach."""
        litellm = import_litellm()
        import stamina
        from openai import OpenAIError

        key = sendable(litellm, self._name, self._arguments["api_key"])
        passing = (
            litellm.RateLimitError,
            litellm.Timeout,
            litellm.APIConnectionError,
            litellm.ServiceUnavailableError,
            litellm.InternalServerError,
            litellm.BadGatewayError,
        )
        try:
            async for attempt in stamina.retry_context(
                on=passing,
                attempts=ATTEMPTS,
                timeout=PATIENCE,
                wait_initial=FIRST_WAIT,
                wait_max=LONGEST_WAIT,
            ):
                with attempt:
                    response = await litellm.aembedding(
                        model=self._name, input=texts, max_retries=RETRIES_BELOW, **{**self._arguments, "api_key": key}
                    )
        except OpenAIError as error:  # the root of LiteLLM's own errors
            raise EmbedderUnavailable(f"{self._name}: {short_message(error)}") from error
        return self._rows(response, len(texts))

    def _rows(self, response: Any, asked: int) -> Floats:
        """Check an answer and put it in the order of the question: (asked, dim) unit rows."""
        try:
            places = [item.get("index", place) for place, item in enumerate(response.data)]
            rows = np.asarray([item["embedding"] for item in response.data], dtype=np.float32)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise EmbedderUnavailable(f"{self._name}: the answer holds no vectors") from error
        if set(places) != set(range(asked)) or rows.ndim != 2 or len(rows) != asked or not rows.size:
            raise EmbedderUnavailable(f"{self._name}: the answer holds no vector for each of {asked} texts")
        if not np.isfinite(rows).all():
            raise EmbedderUnavailable(f"{self._name}: the answer holds numbers that are not finite")
        if self._dim not in (0, rows.shape[1]):
            raise EmbedderUnavailable(f"{self._name}: vectors of {rows.shape[1]} numbers, not {self._dim}")
        self._dim = rows.shape[1]
        return unit_rows(rows[np.argsort(places)])


def short_message(error: Exception) -> str:
    """The first line of what a service said, without LiteLLM's own prefixes."""
    first = str(error).strip().partition("\n")[0]
    line = re.sub(r"^(litellm\.\w+:\s*|\w+Exception\s*-\s*|\w+Error:\s*)+", "", first)
    return (line or type(error).__name__)[:MESSAGE_LENGTH]
