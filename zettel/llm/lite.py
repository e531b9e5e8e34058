"""Language models by their LiteLLM name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import anyio
from anyio.lowlevel import RunVar

from zettel.errors import InvalidInput, InvalidModelOutput, ModelError, ModelUnavailable
from zettel.llm.check import complaints
from zettel.llm.failures import LIMITED, NO_KEY, Refusal, costly, failure, joined, missing_keys
from zettel.llm.keys import sendable
from zettel.llm.litellm_module import import_litellm, require_litellm
from zettel.llm.output_modes import OutputMode, arguments, first_mode, is_complaint, known_as, text_of
from zettel.llm.rate_limit import RequestLimiter
from zettel.ports.language_model import LLM, Answer, LanguageModel, Request

MAX_WAIT = 20.0
"""Seconds that a call waits for pauses of the provider; jobs have their own, longer, retry schedule."""
TEMPERATURE_STEP, MAX_TEMPERATURE = 0.2, 0.8
"""The temperature added after each useless answer, and its limit."""


def load_model(spec: LLM) -> LanguageModel:
    """Return the model for a ``LanguageModel`` (itself) or for one or more LiteLLM names.

    Raises ``InvalidInput``.
    """
    if isinstance(spec, str):
        return LiteLLM(spec)
    if isinstance(spec, LanguageModel) and not isinstance(spec, type):
        return spec
    if isinstance(spec, Sequence):
        return LiteLLM(spec)
    raise InvalidInput(
        f"llm must be a LiteLLM name such as openai/gpt-4o-mini, or a LanguageModel, got {spec!r}"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _is_refusal(choice: Any) -> bool:
    message = choice.message  # LiteLLM before 1.110 has the refusal among the provider's fields
    refusal = getattr(message, "refusal", None) or (message.provider_specific_fields or {}).get("refusal")
    return choice.finish_reason == "content_filter" or bool(refusal)


class LiteLLM:
    """Calls a language model through LiteLLM. Of several names, the next is called when one is unavailable or denied.

    Args:
        model: A name of LiteLLM, such as ``openai/gpt-4o-mini``, or several.
        api_base: The address of the service, as in LiteLLM.
        api_key: Its key, as in LiteLLM; by default from the environment.
        timeout: Seconds per request.
        concurrency: Requests to each model at once.
        max_tokens: Limits every answer, in addition to the limit of the request.
        temperature: None leaves it to the model. It rises a little with each retry of a useless answer.

    Raises:
        InvalidInput: A name is empty, or a number is outside its limits.

    Examples:
        >>> from zettel import LiteLLM, Memory
        >>> model = LiteLLM("ollama/llama3.2", api_base="http://localhost:11434", timeout=120)
        >>> with Memory(":memory:", llm=model) as memory:
        ...     print(memory.stats()["notes"])
        0
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
            raise InvalidInput("the name of a language model is empty: write it as openai/gpt-4o-mini")
        if not (_is_number(timeout) and timeout > 0):
            raise InvalidInput(f"timeout must be a number of seconds above 0, got {timeout!r}")
        counts = (concurrency,) if max_tokens is None else (concurrency, max_tokens)
        if not all(type(count) is int and count > 0 for count in counts):
            raise InvalidInput(
                f"concurrency and max_tokens must be whole numbers above 0, got {concurrency!r} and {max_tokens!r}"
            )
        if temperature is not None and not (_is_number(temperature) and temperature >= 0):
            raise InvalidInput(f"temperature must be a number of at least 0, or None, got {temperature!r}")
        self.name = self._names[0]
        require_litellm(f"the language model {self.name}")
        self.concurrency = concurrency
        self._api_base, self._api_key = api_base, api_key
        self._timeout, self._max_tokens = timeout, max_tokens
        self._temperature = temperature
        self._modes: dict[str, OutputMode] = {}  # the mode that each model accepted
        self._takes_temperature = dict.fromkeys(self._names, temperature is not None)
        self._limiters: RunVar[dict[str, RequestLimiter]] = RunVar(f"zettel limiters {id(self)}")

    def __repr__(self) -> str:
        return f"LiteLLM({', '.join(map(repr, self._names))})"

    def complaints(self) -> list[str]:
        """Return a line for each model whose provider is unknown or whose key is missing, without a network call."""
        return list(complaints(self._names, has_key=self._api_key is not None or self._api_base is not None))

    async def complete(self, request: Request) -> Answer:
        """Call the models until one answers; ``Answer.model`` is its name.

        Raises ``ModelUnavailable``, ``ModelDenied``, ``InvalidModelOutput`` (with ``spent`` where it cost something).
        """
        litellm = await anyio.to_thread.run_sync(import_litellm)  # takes seconds the first time
        failures: list[ModelError] = []
        for name in self._names:
            outcome = await self._ask(litellm, name, request)
            if isinstance(outcome, Answer):
                return outcome
            failures.append(outcome)
            if isinstance(outcome, InvalidModelOutput):
                break
        raise joined(failures)

    def count_tokens(self, text: str) -> int:
        """Count by LiteLLM's tokenizer; that of a model may differ by some per cent."""
        count: int = import_litellm().token_counter(model="", text=text)  # a name might make it download a tokenizer
        return count

    def price(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Return US dollars by LiteLLM's table for the first model; None if the table lacks it."""
        entry = known_as(import_litellm(), self.name) or {}
        each = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
        if each[0] is None or each[1] is None:
            return None
        return float(prompt_tokens * each[0] + completion_tokens * each[1])

    # one model ------------------------------------------------------------------------------------------------

    async def _ask(self, litellm: ModuleType, name: str, request: Request) -> Answer | ModelError:
        """Return an answer or an error: a raised error would carry the handled one, which may quote texts."""
        limiter = self._limiter(name)
        async with limiter.slot():
            deadline = anyio.current_time() + MAX_WAIT
            mode = self._modes[name] if name in self._modes else first_mode(litellm, name)
            refused: ModelError | None = None
            while True:
                left = await limiter.wait(deadline)
                if left or anyio.current_time() > deadline:
                    busy = f"{name} asks for fewer requests: the next in {left:.0f} s"
                    return refused or ModelUnavailable(busy, left)
                outcome = await self._once(litellm, name, request, mode)
                if isinstance(outcome, Answer):
                    limiter.reset()
                    self._modes[name] = mode
                if not isinstance(outcome, Refusal):
                    return outcome
                refused = outcome.error
                if outcome.status == LIMITED:
                    limiter.pause(outcome.retry_after)
                elif self._takes_temperature[name] and "temperature" in outcome.message:
                    self._takes_temperature[name] = False
                elif is_complaint(mode, outcome.message):
                    mode = OutputMode(mode + 1)
                else:
                    return refused

    async def _once(
        self, litellm: ModuleType, name: str, request: Request, mode: OutputMode
    ) -> Answer | ModelError | Refusal:
        """Send one request."""
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
                    temperature=self._temperature_of(request) if self._takes_temperature[name] else None,
                    max_retries=0,
                    num_retries=0,
                    drop_params=True,
                    **arguments(request, mode, cached="claude" in name),
                )
            return self._read(litellm, name, request, response)
        except TimeoutError:
            return ModelUnavailable(f"{name} did not answer within {self._timeout:g} s")
        except OpenAIError as error:  # the root of LiteLLM's own errors
            return failure(litellm, name, error, key)
        except (AttributeError, LookupError, TypeError, ValueError) as error:  # from a malformed body
            return InvalidModelOutput(f"{name} did not answer with a chat completion ({type(error).__name__})")

    def _temperature_of(self, request: Request) -> float:
        """Return the temperature, raised for retries: at 0 a model repeats itself."""
        given = self._temperature or 0.0
        return max(given, min(MAX_TEMPERATURE, given + TEMPERATURE_STEP * request.tries))

    def _read(self, litellm: ModuleType, name: str, request: Request, response: Any) -> Answer | ModelError:
        """Return the answer in a response, or an error if it has none."""
        choice, usage = next(iter(response.choices), None), response.usage
        text = "" if choice is None else text_of(choice.message)
        prompt = [request.system, *(part for example in request.examples for part in example), request.user]
        answer = Answer(
            text=text,
            model=name,
            cut=choice is not None and choice.finish_reason == "length",
            prompt_tokens=usage.prompt_tokens or self.count_tokens("\n".join(prompt)),
            completion_tokens=usage.completion_tokens or self.count_tokens(text),
            usd=response._hidden_params.get("response_cost") if known_as(litellm, name) else None,
        )
        if choice is not None and _is_refusal(choice):
            return costly(InvalidModelOutput(f"{name} refused to answer"), replace(answer, text=""))
        if not text.strip():
            return costly(InvalidModelOutput(f"{name} gave an empty answer"), replace(answer, text=""))
        return answer

    def _key(self, litellm: ModuleType, name: str) -> str | None:
        """Return the key to pass on; None: LiteLLM reads the environment."""
        if self._api_key is None and self._api_base is not None and missing_keys(litellm, name):
            return NO_KEY
        return self._api_key

    def _limiter(self, name: str) -> RequestLimiter:
        limiters = self._limiters.get({})
        self._limiters.set(limiters)
        return limiters.setdefault(name, RequestLimiter(self.concurrency))
