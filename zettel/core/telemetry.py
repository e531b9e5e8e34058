"""Spans and metrics by OpenTelemetry, in a program that uses it.

zettel never imports OpenTelemetry on its own, and sends nothing. If the program has imported ``opentelemetry.trace`` or
``opentelemetry.metrics``, as every program does that sets up an SDK, zettel reports to the providers that it set up.
Attributes contain no content, questions, ids, scopes or names of users.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import lru_cache
from time import perf_counter
from typing import Any, Literal, NamedTuple

from zettel.version import VERSION

NAME = "zettel"
"""The name of zettel's instrumentation scope."""
ERROR = "error.type"
Kind = Literal["INTERNAL", "SERVER", "CLIENT"]


class Instrument(NamedTuple):
    """A histogram or gauge: its name, unit, description, and the upper bounds of a histogram's buckets."""

    name: str
    unit: str
    description: str
    bounds: tuple[float, ...] = ()


HTTP_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
MODEL_SECONDS = tuple(0.01 * 2**n for n in range(14))
TOKENS = tuple(float(4**n) for n in range(14))
"""Bounds that the semantic conventions for HTTP and generative AI recommend."""
OPERATIONS = Instrument("zettel.operation.duration", "s", "Duration of operations on a memory.",
                        (0.0005, 0.001, 0.0025, *HTTP_SECONDS, 30, 120))  # fmt: skip
JOBS_DURATION = Instrument("zettel.job.duration", "s", "Duration of batches of background jobs.", MODEL_SECONDS)
JOBS = Instrument("zettel.jobs", "{job}", "Background jobs in the store, by state.")
REQUESTS = Instrument("http.server.request.duration", "s", "Duration of HTTP server requests.", HTTP_SECONDS)
MODEL_CALLS = Instrument("gen_ai.client.operation.duration", "s", "GenAI operation duration.", MODEL_SECONDS)
MODEL_TOKENS = Instrument("gen_ai.client.token.usage", "{token}", "Number of input and output tokens used.", TOKENS)


class Observation:
    """A running span. ``name`` replaces its name at the end, ``attributes`` are added to it.

    ``measured`` are attributes of the span and of the metric, so they have few different values.
    """

    __slots__ = ("attributes", "measured", "name")

    def __init__(self) -> None:
        self.name: str | None = None
        self.attributes: dict[str, Any] = {}
        self.measured: dict[str, Any] = {}


@contextmanager
def observed(
    name: str,
    duration: Instrument,
    attributes: Mapping[str, Any],
    *,
    kind: Kind = "INTERNAL",
    headers: Mapping[str, str] | None = None,
    current: bool = True,
) -> Iterator[Observation]:
    """Report the block as a span and its seconds in a histogram, both with ``attributes`` and the class of an error.

    ``headers`` may contain the ``traceparent`` of a caller. A span that is not ``current`` has no children: a generator
    may end in another context. Without OpenTelemetry this does nothing.
    """
    observation = Observation()
    trace = _api("trace")
    if trace is None and not measures():
        yield observation
        return
    began = perf_counter()
    with ExitStack() as stack:
        span = None
        if trace is not None:
            span = _tracer(trace).start_span(name, _context(headers), trace.SpanKind[kind], attributes)
            ending = trace.use_span(span, True, False, False) if current else _ended(span)
            stack.enter_context(ending)
        try:
            yield observation
        except BaseException as error:  # its text may quote content
            if not isinstance(error, GeneratorExit):  # the caller needs no more items
                observation.measured.setdefault(ERROR, type(error).__name__)
            raise
        finally:
            if trace is not None and span is not None:
                span.set_attributes(observation.attributes | observation.measured)
                if observation.name is not None:
                    span.update_name(observation.name)
                if ERROR in observation.measured:
                    span.set_status(trace.StatusCode.ERROR)
            record(duration, perf_counter() - began, {**attributes, **observation.measured})


_PROVIDERS = {
    "azure": "azure.ai.openai", "bedrock": "aws.bedrock", "gemini": "gcp.gemini", "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai", "watsonx": "ibm.watsonx.ai", "xai": "x_ai",
}  # fmt: skip
"""The provider in a LiteLLM name, by its name in the semantic conventions, where the two differ."""


def model_call(operation: Literal["chat", "embeddings"], model: str) -> AbstractContextManager[Observation]:
    """Report the block as a call of the model with this LiteLLM name."""
    attributes = _of_model(operation, model)
    return observed(f"{operation} {attributes['gen_ai.request.model']}", MODEL_CALLS, attributes, kind="CLIENT")


def report_tokens(call: Observation, model: str, given: int, written: int | None = None) -> None:
    """Report the tokens of a model call: those of its input and of its output."""
    for kind, tokens in (("input", given), ("output", written)):
        if tokens is not None:
            call.attributes[f"gen_ai.usage.{kind}_tokens"] = tokens
            operation = "embeddings" if written is None else "chat"
            record(MODEL_TOKENS, tokens, {**_of_model(operation, model), "gen_ai.token.type": kind})


def _of_model(operation: str, model: str) -> dict[str, str]:
    provider, _, name = model.rpartition("/")
    provider = provider.partition("/")[0] or "openai"  # LiteLLM's default
    return {
        "gen_ai.operation.name": operation, "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        "gen_ai.request.model": name,
    }  # fmt: skip


def measures() -> bool:
    """Return whether the program uses the metrics of OpenTelemetry."""
    return _api("metrics") is not None


def record(instrument: Instrument, value: float, attributes: Mapping[str, Any]) -> None:
    """Add a value to a histogram; does nothing without OpenTelemetry."""
    if measures():
        _histogram(instrument).record(value, attributes)


def measure(instrument: Instrument, value: float, attributes: Mapping[str, Any]) -> None:
    """Set a gauge; does nothing without OpenTelemetry."""
    if measures():
        _gauge(instrument).set(value, attributes)


def _api(name: str) -> Any:
    """Return a module of OpenTelemetry's API if the program has imported it."""
    module = sys.modules.get(f"opentelemetry.{name}")
    is_loading = module is not None and getattr(module.__spec__, "_initializing", False)
    return None if is_loading else module


@contextmanager
def _ended(span: Any) -> Iterator[None]:
    try:
        yield
    finally:
        span.end()


def _context(headers: Mapping[str, str] | None) -> Any:
    """Return the context of a caller; None is the current one."""
    if headers is None:
        return None
    from opentelemetry.propagate import extract

    return extract(headers)


@lru_cache(maxsize=1)
def _tracer(trace: Any) -> Any:
    return trace.get_tracer(NAME, VERSION)


@lru_cache
def _histogram(instrument: Instrument) -> Any:
    meter, bounds = _api("metrics").get_meter(NAME, VERSION), list(instrument.bounds)
    return meter.create_histogram(
        instrument.name, instrument.unit, instrument.description, explicit_bucket_boundaries_advisory=bounds
    )


@lru_cache
def _gauge(instrument: Instrument) -> Any:
    meter = _api("metrics").get_meter(NAME, VERSION)
    return meter.create_gauge(instrument.name, instrument.unit, instrument.description)
