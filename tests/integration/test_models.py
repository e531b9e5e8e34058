"""Language models behind a real HTTP server that fails in every way: what comes of it, and what is kept and counted."""

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
SAID = json.dumps({"notes": [{"id": "a1", "context": "Ida keeps bees."}]})
SCHEMA = {"type": "object", "properties": {"notes": {"type": "array", "items": {"type": "object"}}}}
REQUEST = Request("annotate/1", "You write notes.", (("one", "[]"),), f"a1: {SECRET}", SCHEMA, 500)

Serve = Callable[..., ModelServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda *faults, **options: stack.enter_context(
            ModelServer(options.pop("reply", lambda request: SAID), first(faults), **options)
        )


def model(server: ModelServer, name: str | list[str] = "openai/scribe", **options: Any) -> LiteLLM:
    return LiteLLM(name, **{"api_base": server.url, "api_key": "k", "timeout": 5.0, **options})


async def failing(asked: LiteLLM) -> ModelError:
    """The error of a call, which must tell nothing of what was asked or answered."""
    with pytest.raises(ModelError) as raised:
        await asked.complete(REQUEST)
    seen: BaseException | None = raised.value
    while seen is not None:
        assert "bees" not in str(seen)
        seen = seen.__cause__ or seen.__context__
    assert "openai/scribe" in str(raised.value)
    return raised.value


# One request -----------------------------------------------------------------------------------------------------


async def test_an_answer_comes_with_its_cost(serve: Serve) -> None:
    server = serve()
    answer = await model(server, "openai/gpt-4o-mini").complete(REQUEST)
    (asked,) = server.requests
    assert (answer.text, answer.model, answer.cut, answer.cached) == (SAID, "openai/gpt-4o-mini", False, False)
    assert asked["messages"] == [
        {"role": "system", "content": "You write notes."},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "[]"},
        {"role": "user", "content": REQUEST.user},
    ]
    assert asked["response_format"]["json_schema"]["schema"] == SCHEMA
    assert (asked["temperature"], asked["max_tokens"]) == (0.0, 500)
    assert answer.prompt_tokens > 20
    assert answer.completion_tokens > 10
    price = model(server, "openai/gpt-4o-mini").price(answer.prompt_tokens, answer.completion_tokens)
    assert answer.usd == pytest.approx(price)
    assert price is not None
    assert price > 0


async def test_what_is_not_in_the_table_has_no_price(serve: Serve) -> None:
    scribe = model(serve())
    assert (await scribe.complete(REQUEST)).usd is None
    assert scribe.price(10, 10) is None


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault.UNAUTHORIZED, ModelDenied),
        (Fault.FORBIDDEN, ModelDenied),
        (Fault.NOT_THERE, ModelDenied),
        (Fault.BROKEN, ModelUnavailable),
        (Fault.OVERLOADED, ModelUnavailable),
        (Fault.HANGS, ModelUnavailable),
        (Fault.BREAKS_OFF, ModelUnavailable),
        (Fault.EMPTY, InvalidModelOutput),
        (Fault.NO_CHOICE, InvalidModelOutput),
        (Fault.REFUSAL, InvalidModelOutput),
    ],
)
async def test_each_failure_is_told_apart_and_quotes_nothing(
    serve: Serve, fault: Fault, kind: type[ModelError], capfd: pytest.CaptureFixture[str]
) -> None:
    server = serve(fault)
    asked = model(server, timeout=0.5 if fault is Fault.HANGS else 5.0)
    error = await failing(asked)
    assert type(error) is kind
    assert server.asked == 1
    if kind is InvalidModelOutput:  # it was paid for
        assert error.spent is not None
        assert error.spent.prompt_tokens > 20
        assert error.spent.text == ""
    assert (await asked.complete(REQUEST)).text == SAID  # and is gone with the next request
    assert "bees" not in "".join(capfd.readouterr())


async def test_a_cut_answer_says_so(serve: Serve) -> None:
    answer = await model(serve(Fault.CUT_OFF, seed=3)).complete(REQUEST)
    assert answer.cut
    assert SAID.startswith(answer.text)


async def test_nobody_there_is_unavailable() -> None:
    with ModelServer(lambda request: SAID) as closed:
        asked = model(closed)
    assert type(await failing(asked)) is ModelUnavailable


async def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    error = await failing(LiteLLM("openai/scribe"))
    assert type(error) is ModelDenied
    assert "OPENAI_API_KEY" in str(error)


@pytest.mark.parametrize("given", [None, "k\r\n"])
async def test_a_key_may_end_with_a_newline(serve: Serve, monkeypatch: pytest.MonkeyPatch, given: str | None) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k\n")
    server = serve(None, Fault.UNAUTHORIZED)
    asked = model(server, api_key=given)
    assert (await asked.complete(REQUEST)).text == SAID
    assert ("OPENAI_API_KEY" if given is None else "check api_key") in str(await failing(asked))


async def test_a_server_of_ones_own_needs_no_key(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = serve(None, Fault.UNAUTHORIZED)
    asked = model(server, api_key=None)
    assert (await asked.complete(REQUEST)).text == SAID
    error = await failing(asked)
    assert type(error) is ModelDenied
    assert "OPENAI_API_KEY" in str(error)


async def test_a_name_without_a_provider_is_explained() -> None:
    with pytest.raises(ModelDenied, match="scribe has no provider"):
        await LiteLLM("scribe").complete(REQUEST)


@pytest.mark.parametrize("spec", ["", " ", [], ["openai/a", ""], 7, object()])
def test_what_is_no_model_is_refused(spec: Any) -> None:
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
def test_nonsense_is_refused(options: Any) -> None:
    with pytest.raises(InvalidInput):
        LiteLLM("openai/scribe", **options)


@pytest.mark.parametrize(
    "part", [{"budget": "usd=2"}, {"decay": 90}, {"annotator": "lean"}, {"annotator": LiteLLMAnnotator}]
)
def test_a_part_of_another_kind_is_refused_in_one_line(part: Any) -> None:
    (name,) = part
    with pytest.raises(InvalidInput, match=f"{name} must be an object such as .*, got"):
        Memory(":memory:", llm="openai/scribe", **part)


def test_load_model_takes_names_and_models() -> None:
    one = LiteLLM("openai/scribe")
    assert load_model(one) is one
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


async def test_a_real_model_keeps_to_the_schema(small_model: str) -> None:
    asked = LiteLLM("openai/smollm2", api_base=small_model)
    answer = await asked.complete(Request("annotate/1", "You write notes.", (), "a1: Ida keeps bees.", ONE_NOTE, 120))
    assert not answer.cut
    (item,) = items(answer.text)
    assert item["id"] == "a1"
    assert isinstance(item["context"], str)
    assert answer.prompt_tokens > 10
    assert answer.completion_tokens > 5


# Structured output -----------------------------------------------------------------------------------------------


async def test_a_model_without_schemas_is_asked_for_a_tool_then_in_words_and_that_is_remembered(serve: Serve) -> None:
    server = serve(refuses=["response_format"])
    asked = model(server)
    assert [(await asked.complete(REQUEST)).text for _ in range(3)] == [SAID] * 3
    assert server.asked == 4  # one refusal
    assert server.requests[-1]["tool_choice"]["function"]["name"] == server.requests[-1]["tools"][0]["function"]["name"]

    server = serve(refuses=["response_format", "tools"])
    asked = model(server)
    assert [(await asked.complete(REQUEST)).text for _ in range(3)] == [SAID] * 3
    assert server.asked == 5
    assert json.dumps(SCHEMA) in server.requests[-1]["messages"][0]["content"]


async def test_a_model_that_takes_no_temperature_is_asked_without(serve: Serve) -> None:
    server = serve(refuses=["temperature"])
    asked = model(server)
    await asked.complete(REQUEST)
    await asked.complete(REQUEST)
    assert server.asked == 3
    assert "response_format" in server.requests[-1]


async def test_any_other_refusal_is_final(serve: Serve) -> None:
    server = serve(refuses=["messages"])
    assert type(await failing(model(server))) is InvalidModelOutput
    assert server.asked == 1


# Fallbacks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault.UNAUTHORIZED, Fault.NOT_THERE, Fault.BROKEN, Fault.BREAKS_OFF])
async def test_the_next_model_is_asked_and_named(serve: Serve, fault: Fault) -> None:
    server = serve(fault)
    answer = await model(server, ["openai/scribe", "openai/clerk"]).complete(REQUEST)
    assert answer.model == "openai/clerk"
    assert [request["model"] for request in server.requests] == ["scribe", "clerk"]


async def test_when_all_fail_the_error_names_all_and_leaves_hope(serve: Serve) -> None:
    asked = model(serve(Fault.OVERLOADED, Fault.UNAUTHORIZED), ["openai/scribe", "openai/clerk"])
    error = await failing(asked)
    assert type(error) is ModelUnavailable
    assert "openai/clerk" in str(error)


async def test_an_unusable_answer_is_not_asked_for_elsewhere(serve: Serve) -> None:
    server = serve(Fault.REFUSAL)
    assert type(await failing(model(server, ["openai/scribe", "openai/clerk"]))) is InvalidModelOutput
    assert server.asked == 1


# Limits ----------------------------------------------------------------------------------------------------------


async def test_after_a_429_all_requests_wait_as_long_as_asked(serve: Serve) -> None:
    server = serve(Fault.RATE_LIMITED, retry_after="0.5")
    asked = model(server)
    began = time.monotonic()
    await asked.complete(REQUEST)
    assert time.monotonic() - began >= 0.5
    assert server.asked == 2

    server = serve(Fault.RATE_LIMITED, retry_after="0.5")
    asked = model(server, concurrency=1)
    starts: list[float] = []
    server.reply = lambda request: starts.append(time.monotonic()) or SAID  # type: ignore[func-returns-value]
    began = time.monotonic()
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(asked.complete, REQUEST)
    assert min(starts) - began >= 0.5


async def test_without_a_time_the_pause_grows(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "FIRST_PAUSE", 0.05)
    server = serve(*[Fault.RATE_LIMITED] * 3, retry_after=None)
    began = time.monotonic()
    await model(server).complete(REQUEST)
    assert time.monotonic() - began >= 0.05 + 0.1 + 0.2
    assert server.asked == 4


@pytest.mark.parametrize("told", ["0", "-5", "nan", "Wed, 01 May 2024 09:00:00 GMT"])
async def test_a_pause_of_no_time_is_one_of_our_own(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    monkeypatch.setattr(rate_limit, "FIRST_PAUSE", 0.05)
    server = serve(*[Fault.RATE_LIMITED] * 3, retry_after=told)
    began = time.monotonic()
    await model(server).complete(REQUEST)
    assert time.monotonic() - began >= 0.05 + 0.1 + 0.2
    assert server.asked == 4


@pytest.mark.parametrize("told", ["1e300", "inf", "1000000000000", "Fri, 31 Dec 9999 23:59:59 GMT"])
async def test_no_pause_is_longer_than_a_day(serve: Serve, told: str) -> None:
    error = await failing(model(serve(Fault.RATE_LIMITED, retry_after=told)))
    assert isinstance(error, ModelUnavailable)
    assert error.retry_after == pytest.approx(86_400, abs=5)
    assert next_attempt(error, 1, datetime.now(timezone.utc)) is not None


async def test_a_long_pause_is_left_to_the_caller(serve: Serve) -> None:
    server = serve(Fault.RATE_LIMITED, retry_after="600")
    asked = model(server)
    error = await failing(asked)
    assert isinstance(error, ModelUnavailable)
    assert error.retry_after == pytest.approx(600, abs=5)
    await failing(asked)  # at once, and without a request
    assert server.asked == 1
    other = model(server, ["openai/scribe", "openai/clerk"])
    server.plan = first([Fault.RATE_LIMITED])
    assert (await other.complete(REQUEST)).model == "openai/clerk"


async def test_no_more_requests_at_once_than_allowed(serve: Serve) -> None:
    server = serve(wait=0.02)
    asked = model(server, concurrency=3)
    async with anyio.create_task_group() as group:
        for _ in range(12):
            group.start_soon(asked.complete, REQUEST)
    assert server.most_at_once == 3


def test_a_model_serves_one_event_loop_after_the_other(serve: Serve) -> None:
    asked = model(serve(), concurrency=1)
    for _ in range(2):
        assert anyio.run(asked.complete, REQUEST).text == SAID


# What is kept and counted ----------------------------------------------------------------------------------------


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[AsyncMemory]:
    async with AsyncMemory(tmp_path / "memory.db") as opened:
        yield opened


def cached_llm(memory: AsyncMemory, asked: LiteLLM, budget: Budget | None = None) -> CachedLLM:
    engine = memory._backend.memory.engine
    assert engine is not None
    return CachedLLM(engine.store, Commits(engine.store), asked, budget)


async def use(memory: AsyncMemory) -> tuple[int, int]:
    """Calls and hits on record."""
    assert memory._backend.memory.engine is not None
    uses = await memory._backend.memory.engine.store.model_use(memory.scope)
    return sum(one.calls for one in uses), sum(one.hits for one in uses)


async def test_what_was_answered_is_not_paid_for_again(serve: Serve, memory: AsyncMemory) -> None:
    server = serve()
    note = await memory.add(SECRET)
    ask = cached_llm(memory, model(server)).ask_about(memory.scope)
    paid = await ask(REQUEST, [note, note])
    again = await ask(REQUEST, [note])
    assert again == Answer(paid.text, paid.model, cached=True)
    assert server.asked == 1
    assert await use(memory) == (1, 1)
    await ask(Request("annotate/2", *list_of(REQUEST)[1:]), [note])
    assert server.asked == 2


def kept_in(folder: Path, word: bytes) -> list[str]:
    """The files in which a word stands."""
    return [file.name for file in folder.iterdir() if word in file.read_bytes()]


def list_of(request: Request) -> list[Any]:
    return [getattr(request, name) for name in request.__dataclass_fields__]


async def test_a_deleted_note_takes_the_answer_with_it(serve: Serve, memory: AsyncMemory) -> None:
    server = serve(reply=lambda request: json.dumps({"notes": [{"id": "a1", "context": SECRET}]}))
    note, other = await memory.add(SECRET), await memory.add("Something else.")
    ask = cached_llm(memory, model(server)).ask_about(memory.scope)
    await ask(REQUEST, [other, note])
    await memory.delete(note)
    await memory.flush()
    await ask(REQUEST, [other])
    assert server.asked == 2


async def test_the_answer_about_a_note_deleted_meanwhile_is_not_kept(
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
    assert await use(memory) == (2, 0)
    await memory.flush()
    assert kept_in(tmp_path, b"hobby") == kept_in(tmp_path, b"abbey") == []


async def test_a_destroyed_scope_does_not_come_back(serve: Serve, memory: AsyncMemory) -> None:
    server = serve(wait=0.3)
    note = await memory.add(SECRET)
    async with anyio.create_task_group() as group:
        group.start_soon(cached_llm(memory, model(server)).ask, memory.scope, REQUEST, [note])
        await anyio.sleep(0.1)
        await memory.delete_scope()
    assert server.asked == 1
    assert await memory.scopes() == []


@pytest.mark.parametrize("fault", [Fault.RUBBISH, Fault.EMPTY, Fault.REFUSAL])
async def test_what_cannot_be_read_is_paid_but_not_kept(serve: Serve, memory: AsyncMemory, fault: Fault) -> None:
    server = serve(fault)
    note = await memory.add(SECRET)
    ask = cached_llm(memory, model(server)).ask_about(memory.scope)
    if fault is Fault.RUBBISH:
        await ask(REQUEST, [note])
    else:
        with pytest.raises(InvalidModelOutput):
            await ask(REQUEST, [note])
    assert not (await ask(REQUEST, [note])).cached
    assert await use(memory) == (2, 0)
    assert [asked["temperature"] for asked in server.requests] == [0.0, 0.2]


async def test_each_vain_try_is_warmer_up_to_a_limit(serve: Serve, memory: AsyncMemory) -> None:
    server = serve(*[Fault.RUBBISH] * 6)
    note = await memory.add(SECRET)
    ask = cached_llm(memory, model(server, temperature=0.5)).ask_about(memory.scope)
    for _ in range(4):
        await ask(REQUEST, [note])
    await ask(Request("annotate/2", *list_of(REQUEST)[1:]), [note])
    assert [one["temperature"] for one in server.requests] == [0.5, 0.7, 0.8, 0.8, 0.5]


async def test_a_fault_on_the_way_is_no_vain_answer(serve: Serve, memory: AsyncMemory) -> None:
    server = serve(Fault.BROKEN)
    note = await memory.add(SECRET)
    ask = cached_llm(memory, model(server)).ask_about(memory.scope)
    with pytest.raises(ModelUnavailable):
        await ask(REQUEST, [note])
    await ask(REQUEST, [note])
    assert [asked["temperature"] for asked in server.requests] == [0.0, 0.0]


async def test_the_budget_stops_calls_but_no_kept_answers(serve: Serve, memory: AsyncMemory) -> None:
    server = serve()
    note = await memory.add(SECRET)
    at = cached_llm(memory, model(server), Budget(calls=1))
    assert await at.budget_left() == {"calls": 1}
    await at.ask(memory.scope, REQUEST, [note])
    assert await at.budget_left() == {"calls": 0}
    with pytest.raises(BudgetSpent, match="no calls left"):
        await at.ask(memory.scope, Request("link/1", *list_of(REQUEST)[1:]), [note])
    assert (await at.ask(memory.scope, REQUEST, [note])).cached
    assert server.asked == 1


async def test_money_takes_a_known_price(serve: Serve, memory: AsyncMemory) -> None:
    note = await memory.add(SECRET)
    with pytest.raises(InvalidInput, match="price of openai/scribe"):
        await cached_llm(memory, model(serve()), Budget(usd=1)).ask(memory.scope, REQUEST, [note])
    priced = cached_llm(memory, model(serve(), "openai/gpt-4o-mini"), Budget(usd=1e-6))
    await priced.ask(memory.scope, REQUEST, [note])
    with pytest.raises(BudgetSpent):
        await priced.ask(memory.scope, Request("link/1", *list_of(REQUEST)[1:]), [note])
