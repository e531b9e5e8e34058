"""How the failures of a model behind LiteLLM are told apart.

A service's own message may quote what it was asked or what it answered, and LiteLLM's errors carry it. So none is
passed on, nor chained: the name of a class and a status are enough to know what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from zettel.errors import ModelDenied, ModelError, ModelUnavailable, ModelUnusable
from zettel.llm.keys import key_name
from zettel.llm.lanes import seconds_asked
from zettel.llm.ports import Answer

NO_KEY = "none"
"""Sent to a server of one's own that may need no key: the clients insist on one."""

DENIED, UNKNOWN, LIMITED, PASSING = (401, 402, 403), 404, 429, (408, 409, 425)
"""HTTP statuses: another key is needed; another name or address; ask more slowly; ask again (as from 500 on)."""
NO_PROVIDER = "LLM Provider NOT provided"
"""What LiteLLM says of a name in which it finds none."""


class Refusal(NamedTuple):
    """A refusal that another request may get around: one that comes later or is put in another way."""

    status: int
    message: str
    retry_after: float | None
    error: ModelError


def failure(litellm: ModuleType, name: str, error: Any, key: str | None) -> ModelError | Refusal:
    """What an error of LiteLLM's means for the model ``name``, which was asked with this key as an argument."""
    status, message = getattr(error, "status_code", None), str(error)
    shown = f"{type(error).__name__}, {status}" if status else type(error).__name__
    missing = missing_keys(litellm, name) if key in (None, NO_KEY) else []
    if missing and (key is None or status in DENIED):
        return ModelDenied(f"{name} needs a key: set {' or '.join(missing)}, or pass LiteLLM(..., api_key=...)")
    if status in DENIED:
        where = "api_key" if key else key_name(litellm, name)
        return ModelDenied(f"{name} refused the key ({shown}): look at {where}")
    if status == LIMITED and "insufficient_quota" in message:
        return ModelDenied(f"{name}: the account has no credit left ({shown})")
    wait = seconds_asked(_headers(error))
    if status == LIMITED:
        return Refusal(status, message, wait, ModelUnavailable(f"{name} wants fewer requests ({shown})", wait))
    if status is None or status >= 500 or status in PASSING:
        return ModelUnavailable(f"{name} did not answer ({shown})", wait)
    kind = ModelDenied if status == UNKNOWN or NO_PROVIDER in message else ModelUnusable
    return Refusal(status, message, None, kind(f"{name} {_why(litellm, error, status, message)} ({shown})"))


def missing_keys(litellm: ModuleType, name: str) -> list[str]:
    """The environment variables in which LiteLLM looks for a key of this model, if it finds none."""
    missing = litellm.validate_environment(model=name)["missing_keys"]
    return [variable for variable in missing if "KEY" in variable or "TOKEN" in variable]


def joined(failures: Sequence[ModelError]) -> ModelError:
    """One error for what went wrong with several models, of the class that leaves most hope."""
    if len(failures) == 1:
        return failures[0]
    message = "; ".join(map(str, failures))
    if isinstance(failures[-1], ModelUnusable):
        return costly(ModelUnusable(message), failures[-1].spent)
    waits = [one.retry_after for one in failures if isinstance(one, ModelUnavailable)]
    if not waits:
        return ModelDenied(message)
    known = [wait for wait in waits if wait is not None]
    return ModelUnavailable(message, min(known) if len(known) == len(waits) else None)


def costly(error: ModelError, spent: Answer | None) -> ModelError:
    """The error, with what the call cost."""
    error.spent = spent
    return error


def _headers(error: Any) -> Mapping[str, str]:
    """The headers of the response that made the error, wherever LiteLLM put them."""
    response = getattr(error, "response", None)
    headers: Mapping[str, str] | None = getattr(error, "litellm_response_headers", None)
    return headers or getattr(response, "headers", None) or {}


def _why(litellm: ModuleType, error: Any, status: int, message: str) -> str:
    if isinstance(error, litellm.ContextWindowExceededError):
        return "cannot read that much at once"
    if isinstance(error, litellm.ContentPolicyViolationError):
        return "refused to answer"
    if NO_PROVIDER in message:
        return "names no provider: write it as openai/gpt-4o-mini"
    return "is not there: check its name and api_base" if status == UNKNOWN else "refused the request"
