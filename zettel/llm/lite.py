"""Language models by their LiteLLM name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import anyio
from anyio.lowlevel import RunVar

from zettel.embed.remote import import_litellm
from zettel.errors import InvalidInput, ModelError, ModelUnavailable, ModelUnusable
from zettel.llm.failures import LIMITED, NO_KEY, Refusal, costly, failure, joined, missing_keys
from zettel.llm.keys import sendable
from zettel.llm.lanes import Lane
from zettel.llm.ports import LLM, Answer, LanguageModel, Request
from zettel.llm.shapes import Shape, arguments, first_shape, is_complaint, known_as, text_of

PATIENCE = 20.0
"""Seconds that a call waits for pauses that the provider asks for; the job that asked has its own, longer, schedule."""
WARMER, WARMEST = 0.2, 0.8
"""Degrees of temperature for each answer that was of no use, and how far that goes."""


def load_model(spec: LLM) -> LanguageModel:
    """The model that ``spec`` names: an object with ``complete`` (itself), or one or more LiteLLM names.

    Raises ``InvalidInput``.
    """
    if isinstance(spec, str):
        return LiteLLM(spec)
    if callable(getattr(spec, "complete", None)):
        return spec  # type: ignore[return-value]  # told by what it can do
    if isinstance(spec, Sequence):
        return LiteLLM(spec)
    raise InvalidInput(f"{spec!r} is no language model: write its LiteLLM name, such as openai/gpt-4o-mini")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _is_refusal(choice: Any) -> bool:
    told = choice.message.provider_specific_fields or {}
    return choice.finish_reason == "content_filter" or bool(told.get("refusal"))


class LiteLLM:
    """Asks the LiteLLM model ``model``, such as ``openai/gpt-4o-mini``.

    Several names are asked in this order: the next one when one is unavailable or denied. ``api_base``, ``api_key``: as
    LiteLLM takes them, by default from the environment. ``timeout``: seconds per request. ``concurrency``: requests to
    each model that may be under way at once. ``max_tokens`` bounds every answer, beside what the request says.
    ``temperature``: None leaves it to the model; a question that was answered to no use is asked a little warmer each
    time. Raises ``InvalidInput``.
    """

    def __init__(
        self,
        model: str | Sequence[str],
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        concurrency: int = 4,
        max_tokens: int | None = None,
        temperature: float | None = 0.0,
    ) -> None:
        self._names = (model,) if isinstance(model, str) else tuple(model)
        if not self._names or not all(isinstance(name, str) and name.strip() for name in self._names):
            raise InvalidInput("a language model has an empty name; write it as openai/gpt-4o-mini")
        if not (_is_number(timeout) and timeout > 0):
            raise InvalidInput(f"timeout is {timeout!r}: it is a number of seconds above 0")
        counts = (concurrency,) if max_tokens is None else (concurrency, max_tokens)
        if not all(type(count) is int and count > 0 for count in counts):
            raise InvalidInput(
                f"concurrency is {concurrency!r} and max_tokens {max_tokens!r}: they are whole numbers from 1 on"
            )
        if temperature is not None and not (_is_number(temperature) and temperature >= 0):
            raise InvalidInput(f"temperature is {temperature!r}: it is a number from 0 on, or None")
        self.name = self._names[0]
        self.concurrency = concurrency
        self._api_base, self._api_key = api_base, api_key
        self._timeout, self._max_tokens = timeout, max_tokens
        self._temperature = temperature
        self._shapes: dict[str, Shape] = {}  # what each model turned out to take
        self._takes_temperature = dict.fromkeys(self._names, temperature is not None)
        self._lanes: RunVar[dict[str, Lane]] = RunVar(f"zettel lanes {id(self)}")

    def __repr__(self) -> str:
        return f"LiteLLM({', '.join(map(repr, self._names))})"

    async def complete(self, request: Request) -> Answer:
        """Ask the first model that answers; ``Answer.model`` says which.

        Raises ``ModelUnavailable``, ``ModelDenied``, ``ModelUnusable`` (with ``spent`` where it cost something).
        """
        litellm = await anyio.to_thread.run_sync(import_litellm)  # seconds at first, nothing later
        failures: list[ModelError] = []
        for name in self._names:
            outcome = await self._ask(litellm, name, request)
            if isinstance(outcome, Answer):
                return outcome
            failures.append(outcome)
            if isinstance(outcome, ModelUnusable):
                break
        raise joined(failures)

    def count_tokens(self, text: str) -> int:
        """Tokens of the tokenizer that comes with LiteLLM: a model's own may count some per cent more or fewer."""
        count: int = import_litellm().token_counter(model="", text=text)  # by a name it may fetch a tokenizer
        return count

    def price(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """US dollars by LiteLLM's table for the first model; None if it is not in it."""
        entry = known_as(import_litellm(), self.name) or {}
        each = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
        if each[0] is None or each[1] is None:
            return None
        return float(prompt_tokens * each[0] + completion_tokens * each[1])

    # one model ------------------------------------------------------------------------------------------------

    async def _ask(self, litellm: ModuleType, name: str, request: Request) -> Answer | ModelError:
        """An answer, or what went wrong: as a value, for an error raised in a handler carries the handled one along."""
        lane = self._lane(name)
        async with lane.place():
            deadline = anyio.current_time() + PATIENCE
            shape = self._shapes[name] if name in self._shapes else first_shape(litellm, name)
            refused: ModelError | None = None
            while True:
                left = await lane.wait(deadline)
                if left or anyio.current_time() > deadline:
                    return refused or ModelUnavailable(f"{name} wants fewer requests: the next in {left:.0f} s", left)
                outcome = await self._once(litellm, name, request, shape)
                if isinstance(outcome, Answer):
                    lane.flows()
                    self._shapes[name] = shape
                if not isinstance(outcome, Refusal):
                    return outcome
                refused = outcome.error
                if outcome.status == LIMITED:
                    lane.slow_down(outcome.retry_after)
                elif self._takes_temperature[name] and "temperature" in outcome.message:
                    self._takes_temperature[name] = False
                elif is_complaint(shape, outcome.message):
                    shape = Shape(shape + 1)
                else:
                    return refused

    async def _once(
        self, litellm: ModuleType, name: str, request: Request, shape: Shape
    ) -> Answer | ModelError | Refusal:
        """What comes of one request."""
        from openai import OpenAIError

        key = self._key(litellm, name)
        try:
            with anyio.fail_after(self._timeout):
                response = await litellm.acompletion(
                    model=name,
                    api_base=self._api_base,
                    api_key=sendable(litellm, name, key),
                    timeout=self._timeout,
                    max_tokens=min(request.max_tokens, self._max_tokens or request.max_tokens),
                    temperature=self._warmth(request) if self._takes_temperature[name] else None,
                    max_retries=0,
                    num_retries=0,
                    drop_params=True,
                    **arguments(request, shape, cached="claude" in name),
                )
            return self._read(litellm, name, request, response)
        except TimeoutError:
            return ModelUnavailable(f"{name} did not answer within {self._timeout:g} s")
        except OpenAIError as error:  # the root of LiteLLM's own errors
            return failure(litellm, name, error, key)
        except (AttributeError, LookupError, TypeError, ValueError) as error:  # met in a body that is not as expected
            return ModelUnusable(f"{name} answered something that is no chat completion ({type(error).__name__})")

    def _warmth(self, request: Request) -> float:
        """The temperature: at none a model says the same again."""
        given = self._temperature or 0.0
        return max(given, min(WARMEST, given + WARMER * request.tries))

    def _read(self, litellm: ModuleType, name: str, request: Request, response: Any) -> Answer | ModelError:
        """The answer in a response, or that there is none in it."""
        choice, usage = next(iter(response.choices), None), response.usage
        text = "" if choice is None else text_of(choice.message)
        asked = [request.system, *(part for example in request.examples for part in example), request.user]
        answer = Answer(
            text=text,
            model=name,
            cut=choice is not None and choice.finish_reason == "length",
            prompt_tokens=usage.prompt_tokens or self.count_tokens("\n".join(asked)),
            completion_tokens=usage.completion_tokens or self.count_tokens(text),
            usd=response._hidden_params.get("response_cost") if known_as(litellm, name) else None,
        )
        if choice is not None and _is_refusal(choice):
            return costly(ModelUnusable(f"{name} refused to answer"), replace(answer, text=""))
        if not text.strip():
            return costly(ModelUnusable(f"{name} gave an empty answer"), replace(answer, text=""))
        return answer

    def _key(self, litellm: ModuleType, name: str) -> str | None:
        """The key to pass on; None: LiteLLM looks for one in the environment."""
        if self._api_key is None and self._api_base is not None and missing_keys(litellm, name):
            return NO_KEY
        return self._api_key

    def _lane(self, name: str) -> Lane:
        lanes = self._lanes.get({})
        self._lanes.set(lanes)
        return lanes.setdefault(name, Lane(self.concurrency))
