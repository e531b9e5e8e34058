"""Language models behind a real HTTP server with faults: errors, fallbacks, limits, the cache and the budget."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.model_server import Fault, ModelServer, first
from zettel import AsyncMemory, Budget, LiteLLMAnnotator, Memory
from zettel.core.commit import Commits
from zettel.core.follow_ups import next_attempt
from zettel.errors import (
    BudgetSpent,
    InvalidInput,
    InvalidModelOutput,
    ModelDenied,
    ModelError,
    ModelUnavailable,
)
from zettel.llm import rate_limit
from zettel.llm.answer_parsing import items
from zettel.llm.cached_client import CachedLLM
from zettel.llm.lite import LiteLLM, load_model
from zettel.ports.language_model import Answer, Request

pytestmark = [pytest.mark.integration, pytest.mark.anyio]

SECRET = "Ida keeps 70,000 bees behind the abbey"
REPLY = json.dumps({"notes": [{"id": "a1", "context": "Ida keeps bees."}]})
SCHEMA = {"type": "object", "properties": {"notes": {"type": "array", "items": {"type": "object"}}}}
REQUEST = Request("annotate/1", "You write notes.", (("one", "[]"),), f"a1: {SECRET}", SCHEMA, 500)

Serve = Callable[..., ModelServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda *faults, **options: stack.enter_context(
            ModelServer(options.pop("reply", lambda request: REPLY), first(faults), **options)
        )


def model(server: ModelServer, name: str | list[str] = "openai/scribe", **options: Any) -> LiteLLM:
    return LiteLLM(name, **{"api_base": server.url, "api_key": "k", "timeout": 5.0, **options})


async def failing(client: LiteLLM) -> ModelError:
    """Return the error of a call, which must not quote the request or the answer."""
    with pytest.raises(ModelError) as raised:
        await client.complete(REQUEST)
    error: BaseException | None = raised.value
    while error is not None:
        assert "bees" not in str(error)
        error = error.__cause__ or error.__context__
    assert "openai/scribe" in str(raised.value)
    return raised.value


# One request -----------------------------------------------------------------------------------------------------


async def test_an_answer_comes_with_its_cost(serve: Serve) -> None:
    server = serve()
    answer = await model(server, "openai/gpt-4o-mini").complete(REQUEST)
    (request,) = server.requests
    assert (answer.text, answer.model, answer.cut, answer.cached) == (REPLY, "openai/gpt-4o-mini", False, False)
    assert request["messages"] == [
        {"role": "system", "content": "You write notes."},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "[]"},
        {"role": "user", "content": REQUEST.user},
    ]
    assert request["response_format"]["json_schema"]["schema"] == SCHEMA
    assert (request["temperature"], request["max_tokens"]) == (0.0, 500)
    assert answer.prompt_tokens > 20
    assert answer.completion_tokens > 10
    price = model(server, "openai/gpt-4o-mini").price(answer.prompt_tokens, answer.completion_tokens)
    assert answer.usd == pytest.approx(price)
    assert price is not None
    assert price > 0


async def test_a_model_outside_the_price_table_has_no_price(serve: Serve) -> None:
    client = model(serve())
    assert (await client.complete(REQUEST)).usd is None
    assert client.price(10, 10) is None


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault.UNAUTHORIZED, ModelDenied),
        (Fault.FORBIDDEN, ModelDenied),
        (Fault.NOT_FOUND, ModelDenied),
        (Fault.BROKEN, ModelUnavailable),
        (Fault.OVERLOADED, ModelUnavailable),
        (Fault.HANGS, ModelUnavailable),
        (Fault.BREAKS_OFF, ModelUnavailable),
        (Fault.EMPTY, InvalidModelOutput),
        (Fault.NO_CHOICE, InvalidModelOutput),
        (Fault.REFUSAL, InvalidModelOutput),
    ],
)
async def test_each_fault_has_its_error_type_without_quotes(
    serve: Serve, fault: Fault, kind: type[ModelError], capfd: pytest.CaptureFixture[str]
) -> None:
    server = serve(fault)
    client = model(server, timeout=0.5 if fault is Fault.HANGS else 5.0)
    error = await failing(client)
    assert type(error) is kind
    assert server.asked == 1
    if kind is InvalidModelOutput:  # the call was paid for
        assert error.spent is not None
        assert error.spent.prompt_tokens > 20
        assert error.spent.text == ""
    assert (await client.complete(REQUEST)).text == REPLY  # the next request succeeds
    assert "bees" not in "".join(capfd.readouterr())


async def test_a_truncated_answer_is_marked_as_cut(serve: Serve) -> None:
    answer = await model(serve(Fault.CUT_OFF, seed=3)).complete(REQUEST)
    assert answer.cut
    assert REPLY.startswith(answer.text)


async def test_a_closed_server_is_unavailable() -> None:
    with ModelServer(lambda request: REPLY) as closed:
        client = model(closed)
    assert type(await failing(client)) is ModelUnavailable


async def test_the_error_names_a_missing_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    error = await failing(LiteLLM("openai/scribe"))
    assert type(error) is ModelDenied
    assert "OPENAI_API_KEY" in str(error)


@pytest.mark.parametrize("api_key", [None, "k\r\n"])
async def test_a_key_may_end_with_a_newline(serve: Serve, monkeypatch: pytest.MonkeyPatch, api_key: str | None) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k\n")
    server = serve(None, Fault.UNAUTHORIZED)
    client = model(server, api_key=api_key)
    assert (await client.complete(REQUEST)).text == REPLY
    assert ("OPENAI_API_KEY" if api_key is None else "check api_key") in str(await failing(client))


async def test_an_own_server_needs_no_key(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = serve(None, Fault.UNAUTHORIZED)
    client = model(server, api_key=None)
    assert (await client.complete(REQUEST)).text == REPLY
    error = await failing(client)
    assert type(error) is ModelDenied
    assert "OPENAI_API_KEY" in str(error)


async def test_a_name_without_a_provider_is_explained() -> None:
    with pytest.raises(ModelDenied, match="scribe has no provider"):
        await LiteLLM("scribe").complete(REQUEST)


@pytest.mark.parametrize("spec", ["", " ", [], ["openai/a", ""], 7, object()])
def test_an_invalid_model_argument_is_refused(spec: Any) -> None:
    with pytest.raises(InvalidInput):
        load_model(spec)


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"timeout": float("nan")},
        {"timeout": "60"},
        {"concurrency": 0},
        {"concurrency": 2.5},
        {"max_tokens": 0},
        {"max_tokens": "5"},
        {"temperature": "warm"},
        {"temperature": float("nan")},
        {"temperature": -1},
    ],
)
def test_invalid_options_are_refused(options: Any) -> None:
    with pytest.raises(InvalidInput):
        LiteLLM("openai/scribe", **options)


@pytest.mark.parametrize(
    "part", [{"budget": "usd=2"}, {"decay": 90}, {"annotator": "lean"}, {"annotator": LiteLLMAnnotator}]
)
def test_an_argument_of_a_wrong_type_is_a_one_line_error(part: Any) -> None:
    (name,) = part
    with pytest.raises(InvalidInput, match=f"{name} must be an object such as .*, got"):
        Memory(":memory:", llm="openai/scribe", **part)


def test_load_model_takes_names_and_models() -> None:
    client = LiteLLM("openai/scribe")
    assert load_model(client) is client
    several = load_model(["openai/a", "openai/b"])
    assert isinstance(several, LiteLLM)
    assert several.name == "openai/a"


def test_tokens_are_counted_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("the network was asked"))
    for name in ("anthropic/claude-opus-4", "huggingface/meta-llama/llama-3-8b", "command-r", "openai/gpt-4o"):
        assert 5 <= LiteLLM(name).count_tokens("Ida keeps bees behind the abbey.") <= 12
        LiteLLM(name).price(1, 1)


ONE_NOTE = {
    "type": "object",
    "properties": {
        "notes": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {
                "type": "object",
                "properties": {"id": {"enum": ["a1"]}, "context": {"type": "string", "maxLength": 80}},
                "required": ["id", "context"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["notes"],
    "additionalProperties": False,
}


async def test_a_real_model_follows_the_schema(small_model: str) -> None:
    client = LiteLLM("openai/smollm2", api_base=small_model)
    answer = await client.complete(Request("annotate/1", "You write notes.", (), "a1: Ida keeps bees.", ONE_NOTE, 120))
    assert not answer.cut
    (item,) = items(answer.text)
    assert item["id"] == "a1"
    assert isinstance(item["context"], str)
    assert answer.prompt_tokens > 10
    assert answer.completion_tokens > 5


# Structured output -----------------------------------------------------------------------------------------------


async def test_a_model_without_schemas_falls_back_to_a_tool_then_to_the_prompt(serve: Serve) -> None:
    server = serve(refuses=["response_format"])
    client = model(server)
    assert [(await client.complete(REQUEST)).text for _ in range(3)] == [REPLY] * 3
    assert server.asked == 4  # one refusal
    assert server.requests[-1]["tool_choice"]["function"]["name"] == server.requests[-1]["tools"][0]["function"]["name"]

    server = serve(refuses=["response_format", "tools"])
    client = model(server)
    assert [(await client.complete(REQUEST)).text for _ in range(3)] == [REPLY] * 3
    assert server.asked == 5
    assert json.dumps(SCHEMA) in server.requests[-1]["messages"][0]["content"]


async def test_a_model_without_temperature_support_is_called_without_it(serve: Serve) -> None:
    server = serve(refuses=["temperature"])
    client = model(server)
    await client.complete(REQUEST)
    await client.complete(REQUEST)
    assert server.asked == 3
    assert "response_format" in server.requests[-1]


async def test_other_unsupported_parameters_are_errors(serve: Serve) -> None:
    server = serve(refuses=["messages"])
    assert type(await failing(model(server))) is InvalidModelOutput
    assert server.asked == 1


# Fallbacks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault.UNAUTHORIZED, Fault.NOT_FOUND, Fault.BROKEN, Fault.BREAKS_OFF])
async def test_a_failing_model_falls_back_to_the_next(serve: Serve, fault: Fault) -> None:
    server = serve(fault)
    answer = await model(server, ["openai/scribe", "openai/clerk"]).complete(REQUEST)
    assert answer.model == "openai/clerk"
    assert [request["model"] for request in server.requests] == ["scribe", "clerk"]


async def test_when_all_models_fail_the_error_names_all_and_is_retryable(serve: Serve) -> None:
    client = model(serve(Fault.OVERLOADED, Fault.UNAUTHORIZED), ["openai/scribe", "openai/clerk"])
    error = await failing(client)
    assert type(error) is ModelUnavailable
    assert "openai/clerk" in str(error)


async def test_an_invalid_answer_does_not_fall_back(serve: Serve) -> None:
    server = serve(Fault.REFUSAL)
    assert type(await failing(model(server, ["openai/scribe", "openai/clerk"]))) is InvalidModelOutput
    assert server.asked == 1


# Limits ----------------------------------------------------------------------------------------------------------


async def test_after_a_429_all_requests_wait_for_retry_after(serve: Serve) -> None:
    server = serve(Fault.RATE_LIMITED, retry_after="0.5")
    client = model(server)
    started = time.monotonic()
    await client.complete(REQUEST)
    assert time.monotonic() - started >= 0.5
    assert server.asked == 2

    server = serve(Fault.RATE_LIMITED, retry_after="0.5")
    client = model(server, concurrency=1)
    starts: list[float] = []
    server.reply = lambda request: starts.append(time.monotonic()) or REPLY  # type: ignore[func-returns-value]
    started = time.monotonic()
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(client.complete, REQUEST)
    assert min(starts) - started >= 0.5


async def test_without_retry_after_the_pause_grows(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "FIRST_PAUSE", 0.05)
    server = serve(*[Fault.RATE_LIMITED] * 3, retry_after=None)
    started = time.monotonic()
    await model(server).complete(REQUEST)
    assert time.monotonic() - started >= 0.05 + 0.1 + 0.2
    assert server.asked == 4


@pytest.mark.parametrize("retry_after", ["0", "-5", "nan", "Wed, 01 May 2024 09:00:00 GMT"])
async def test_an_unusable_retry_after_uses_the_own_pause(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, retry_after: str
) -> None:
    monkeypatch.setattr(rate_limit, "FIRST_PAUSE", 0.05)
    server = serve(*[Fault.RATE_LIMITED] * 3, retry_after=retry_after)
    started = time.monotonic()
    await model(server).complete(REQUEST)
    assert time.monotonic() - started >= 0.05 + 0.1 + 0.2
    assert server.asked == 4


@pytest.mark.parametrize("retry_after", ["1e300", "inf", "1000000000000", "Fri, 31 Dec 9999 23:59:59 GMT"])
async def test_no_pause_is_longer_than_a_day(serve: Serve, retry_after: str) -> None:
    error = await failing(model(serve(Fault.RATE_LIMITED, retry_after=retry_after)))
    assert isinstance(error, ModelUnavailable)
    assert error.retry_after == pytest.approx(86_400, abs=5)
    assert next_attempt(error, 1, datetime.now(timezone.utc)) is not None


async def test_a_long_pause_is_raised_to_the_caller(serve: Serve) -> None:
    server = serve(Fault.RATE_LIMITED, retry_after="600")
    client = model(server)
    error = await failing(client)
    assert isinstance(error, ModelUnavailable)
    assert error.retry_after == pytest.approx(600, abs=5)
    await failing(client)  # immediately, without a request
    assert server.asked == 1
    other = model(server, ["openai/scribe", "openai/clerk"])
    server.plan = first([Fault.RATE_LIMITED])
    assert (await other.complete(REQUEST)).model == "openai/clerk"


async def test_concurrency_limits_requests(serve: Serve) -> None:
    server = serve(wait=0.02)
    client = model(server, concurrency=3)
    async with anyio.create_task_group() as group:
        for _ in range(12):
            group.start_soon(client.complete, REQUEST)
    assert server.most_at_once == 3


def test_a_model_works_in_successive_event_loops(serve: Serve) -> None:
    client = model(serve(), concurrency=1)
    for _ in range(2):
        assert anyio.run(client.complete, REQUEST).text == REPLY


# Cache and budget ------------------------------------------------------------------------------------------------


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[AsyncMemory]:
    async with AsyncMemory(tmp_path / "memory.db") as instance:
        yield instance


def cached_llm(memory: AsyncMemory, client: LiteLLM, budget: Budget | None = None) -> CachedLLM:
    engine = memory._backend.memory.engine
    assert engine is not None
    return CachedLLM(engine.store, Commits(engine.store), client, budget)


async def call_counts(memory: AsyncMemory) -> tuple[int, int]:
    """Return the recorded numbers of calls and cache hits."""
    assert memory._backend.memory.engine is not None
    usages = await memory._backend.memory.engine.store.model_use(memory.scope)
    return sum(usage.calls for usage in usages), sum(usage.hits for usage in usages)


async def test_a_repeated_request_is_answered_from_the_cache(serve: Serve, memory: AsyncMemory) -> None:
    server = serve()
    note = await memory.add(SECRET)
    ask = cached_llm(memory, model(server)).ask_about(memory.scope)
    first = await ask(REQUEST, [note, note])
    second = await ask(REQUEST, [note])
    assert second == Answer(first.text, first.model, cached=True)
    assert server.asked == 1
    assert await call_counts(memory) == (1, 1)
    await ask(Request("annotate/2", *field_values(REQUEST)[1:]), [note])
    assert server.asked == 2


def files_containing(folder: Path, word: bytes) -> list[str]:
    """Return the files that contain a word."""
    return [file.name for file in folder.iterdir() if word in file.read_bytes()]


def field_values(request: Request) -> list[Any]:
    return [getattr(request, name) for name in request.__dataclass_fields__]


async def test_deleting_a_note_deletes_its_cached_answers(serve: Serve, memory: AsyncMemory) -> None:
    server = serve(reply=lambda request: json.dumps({"notes": [{"id": "a1", "context": SECRET}]}))
    note, other = await memory.add(SECRET), await memory.add("Something else.")
    ask = cached_llm(memory, model(server)).ask_about(memory.scope)
    await ask(REQUEST, [other, note])
    await memory.delete(note)
    await memory.flush()
    await ask(REQUEST, [other])
    assert server.asked == 2


async def test_an_answer_about_a_note_deleted_meanwhile_is_not_cached(
    serve: Serve, memory: AsyncMemory, tmp_path: Path
) -> None:
    server = serve(reply=lambda request: json.dumps({"notes": [{"context": SECRET}]}), wait=0.3)
    note = await memory.add("Ida has a hobby.")
    ask = cached_llm(memory, model(server)).ask_about(memory.scope)
    async with anyio.create_task_group() as group:
        group.start_soon(ask, REQUEST, [note])
        await anyio.sleep(0.1)
        await memory.delete(note)
    await ask(REQUEST, [note])
    assert server.asked == 2
    assert await call_counts(memory) == (2, 0)
    await memory.flush()
    assert files_containing(tmp_path, b"hobby") == files_containing(tmp_path, b"abbey") == []


async def test_a_late_answer_does_not_recreate_a_deleted_scope(serve: Serve, memory: AsyncMemory) -> None:
    server = serve(wait=0.3)
    note = await memory.add(SECRET)
    async with anyio.create_task_group() as group:
        group.start_soon(cached_llm(memory, model(server)).ask, memory.scope, REQUEST, [note])
        await anyio.sleep(0.1)
        await memory.delete_scope()
    assert server.asked == 1
    assert await memory.scopes() == []


@pytest.mark.parametrize("fault", [Fault.RUBBISH, Fault.EMPTY, Fault.REFUSAL])
async def test_an_invalid_answer_is_counted_but_not_cached(serve: Serve, memory: AsyncMemory, fault: Fault) -> None:
    server = serve(fault)
    note = await memory.add(SECRET)
    ask = cached_llm(memory, model(server)).ask_about(memory.scope)
    if fault is Fault.RUBBISH:
        await ask(REQUEST, [note])
    else:
        with pytest.raises(InvalidModelOutput):
            await ask(REQUEST, [note])
    assert not (await ask(REQUEST, [note])).cached
    assert await call_counts(memory) == (2, 0)
    assert [request["temperature"] for request in server.requests] == [0.0, 0.2]


async def test_each_retry_of_an_invalid_answer_raises_the_temperature_to_a_limit(
    serve: Serve, memory: AsyncMemory
) -> None:
    server = serve(*[Fault.RUBBISH] * 6)
    note = await memory.add(SECRET)
    ask = cached_llm(memory, model(server, temperature=0.5)).ask_about(memory.scope)
    for _ in range(4):
        await ask(REQUEST, [note])
    await ask(Request("annotate/2", *field_values(REQUEST)[1:]), [note])
    assert [request["temperature"] for request in server.requests] == [0.5, 0.7, 0.8, 0.8, 0.5]


async def test_a_service_fault_does_not_raise_the_temperature(serve: Serve, memory: AsyncMemory) -> None:
    server = serve(Fault.BROKEN)
    note = await memory.add(SECRET)
    ask = cached_llm(memory, model(server)).ask_about(memory.scope)
    with pytest.raises(ModelUnavailable):
        await ask(REQUEST, [note])
    await ask(REQUEST, [note])
    assert [request["temperature"] for request in server.requests] == [0.0, 0.0]


async def test_a_spent_budget_stops_calls_but_not_cached_answers(serve: Serve, memory: AsyncMemory) -> None:
    server = serve()
    note = await memory.add(SECRET)
    llm = cached_llm(memory, model(server), Budget(calls=1))
    assert await llm.budget_left() == {"calls": 1}
    await llm.ask(memory.scope, REQUEST, [note])
    assert await llm.budget_left() == {"calls": 0}
    with pytest.raises(BudgetSpent, match="no calls left"):
        await llm.ask(memory.scope, Request("link/1", *field_values(REQUEST)[1:]), [note])
    assert (await llm.ask(memory.scope, REQUEST, [note])).cached
    assert server.asked == 1


async def test_a_budget_in_usd_requires_a_known_price(serve: Serve, memory: AsyncMemory) -> None:
    note = await memory.add(SECRET)
    with pytest.raises(InvalidInput, match="price of openai/scribe"):
        await cached_llm(memory, model(serve()), Budget(usd=1)).ask(memory.scope, REQUEST, [note])
    priced = cached_llm(memory, model(serve(), "openai/gpt-4o-mini"), Budget(usd=1e-6))
    await priced.ask(memory.scope, REQUEST, [note])
    with pytest.raises(BudgetSpent):
        await priced.ask(memory.scope, Request("link/1", *field_values(REQUEST)[1:]), [note])
