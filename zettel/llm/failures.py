"""Maps the errors of LiteLLM to zettel's.

The message of a service may quote the request or the answer, and LiteLLM's errors contain it. So zettel neither repeats
nor chains them: a class name and a status suffice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from zettel.errors import InvalidModelOutput, ModelDenied, ModelError, ModelUnavailable
from zettel.llm.keys import key_name
from zettel.llm.rate_limit import retry_after
from zettel.ports.language_model import Answer

NO_KEY = "none"
"""The key for a private server that may need none: the client libraries require one."""

DENIED, UNKNOWN, LIMITED, PASSING = (401, 402, 403), 404, 429, (408, 409, 425)
"""HTTP statuses: wrong key; wrong name or address; too many requests; try again (as from 500 on)."""
NO_PROVIDER = "LLM Provider NOT provided"
"""LiteLLM's message for a name without a provider."""


class Refusal(NamedTuple):
    """A refusal that a later or differently written request may avoid."""

    status: int
    message: str
    retry_after: float | None
    error: ModelError


def failure(litellm: ModuleType, name: str, error: Any, key: str | None) -> ModelError | Refusal:
    """Return what a LiteLLM error means for the model ``name``, which was called with this key as an argument."""
    status, message = getattr(error, "status_code", None), str(error)
    shown = f"{type(error).__name__}, {status}" if status else type(error).__name__
    missing = missing_keys(litellm, name) if key in (None, NO_KEY) else []
    if missing and (key is None or status in DENIED):
        return ModelDenied(f"{name} needs a key: set {' or '.join(missing)}, or pass LiteLLM(..., api_key=...)")
    if status in DENIED:
        where = "api_key" if key else key_name(litellm, name)
        return ModelDenied(f"{name} refused the key ({shown}): check {where}")
    if status == LIMITED and "insufficient_quota" in message:
        return ModelDenied(f"{name}: the account has no credit left ({shown})")
    wait = retry_after(_headers(error))
    if status == LIMITED:
        return Refusal(status, message, wait, ModelUnavailable(f"{name} asks for fewer requests ({shown})", wait))
    if status is None or status >= 500 or status in PASSING:
        return ModelUnavailable(f"{name} did not answer ({shown})", wait)
    kind = ModelDenied if status == UNKNOWN or NO_PROVIDER in message else InvalidModelOutput
    return Refusal(status, message, None, kind(f"{name} {_why(litellm, error, status, message)} ({shown})"))


def missing_keys(litellm: ModuleType, name: str) -> list[str]:
    """Return the environment variables that LiteLLM reads for a key of this model, if none is set."""
    missing = litellm.validate_environment(model=name)["missing_keys"]
    return [variable for variable in missing if "KEY" in variable or "TOKEN" in variable]


def joined(failures: Sequence[ModelError]) -> ModelError:
    """Join the errors of several models into one, of the class that is most worth a retry."""
    if len(failures) == 1:
        return failures[0]
    message = "; ".join(map(str, failures))
    if isinstance(failures[-1], InvalidModelOutput):
        return costly(InvalidModelOutput(message), failures[-1].spent)
    waits = [error.retry_after for error in failures if isinstance(error, ModelUnavailable)]
    if not waits:
        return ModelDenied(message)
    known = [wait for wait in waits if wait is not None]
    return ModelUnavailable(message, min(known) if len(known) == len(waits) else None)


def costly(error: ModelError, spent: Answer | None) -> ModelError:
    error.spent = spent
    return error


def _headers(error: Any) -> Mapping[str, str]:
    """The response headers of an error: LiteLLM stores them in different places."""
    response = getattr(error, "response", None)
    headers: Mapping[str, str] | None = getattr(error, "litellm_response_headers", None)
    return headers or getattr(response, "headers", None) or {}


def _why(litellm: ModuleType, error: Any, status: int, message: str) -> str:
    if isinstance(error, litellm.ContextWindowExceededError):
        return "cannot take a request of this length"
    if isinstance(error, litellm.ContentPolicyViolationError):
        return "refused to answer"
    if NO_PROVIDER in message:
        return "has no provider in its name: write it as openai/gpt-4o-mini"
    return "does not exist: check its name and api_base" if status == UNKNOWN else "refused the request"
