"""The overhead of adapters: their search compared with ``Memory.search``, in alternation."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.frameworks.known import FRAMEWORKS
from zettel import Memory

Search = Callable[[str], Any]
"""Searches for a question; the result may be awaitable."""
Pair = tuple[Search, Search]
"""The search of the adapter and that of the memory over the same notes."""

NOTES, QUESTIONS = 2000, 200
"""Numbers of notes and of searches."""
K = 10
MAX_RATIO = 1.1
"""Largest ratio of the adapter's median time to the memory's."""
MAX_SAMPLE_RATIO = 3.0
"""Largest ratio in a small sample beside other tests: low enough to detect a second search."""

WORDS = (
    "harbour boat heron walnut violin cello red blue old new Ann Bob Ida Nils moored sold painted repaired likes "
    "market morning winter letter garden bridge lamp river mill bees honey key door house road"
).split()


def texts(count: int) -> list[str]:
    random_ = random.Random(7)
    return [f"{' '.join(random_.choices(WORDS, k=12))}, number {number}" for number in range(count)]


def langgraph(memory: Memory, contents: list[str]) -> Pair:
    from langgraph.store.base import PutOp

    from zettel.integrations.langgraph import ZettelStore
    from zettel.integrations.langgraph_items import within

    store, namespace = ZettelStore(memory), ("users", "ann")
    store.batch([PutOp(namespace, str(number), {"text": text}) for number, text in enumerate(contents)])
    return (
        lambda question: store.search(namespace, query=question, limit=K),
        lambda question: memory.search(question, K, filter=within(namespace), log=False),
    )


def llamaindex(memory: Memory, contents: list[str]) -> Pair:
    from zettel.integrations.llamaindex import ZettelRetriever

    memory.add_many([{"content": text} for text in contents])
    return ZettelRetriever(memory, k=K).retrieve, lambda question: memory.search(question, K, log=False)


def crewai(memory: Memory, contents: list[str]) -> Pair:
    from crewai.memory.types import MemoryRecord

    from zettel.integrations.crewai import ZettelStorage

    storage = ZettelStorage(memory)
    storage.save([MemoryRecord(content=text, scope="/crew") for text in contents])
    return (
        lambda question: storage.search(storage.embedder([question])[0], "/crew", limit=K),
        lambda question: memory.search(question, K, filter={"scope 1": ["crew"]}, log=False),
    )


def autogen(memory: Memory, contents: list[str]) -> Pair:
    from zettel.integrations.autogen import ZettelMemory

    memory.add_many([{"content": text} for text in contents])
    return ZettelMemory(memory, k=K).query, lambda question: memory.search(question, K, log=False)


def openai_agents(memory: Memory, contents: list[str]) -> Pair:
    from zettel.integrations.openai_agents import memory_tools

    memory.add_many([{"content": text} for text in contents])
    context: Any = SimpleNamespace(context=None)
    (search,) = (tool for tool in memory_tools(memory) if tool.name == "search_memories")
    return (
        lambda question: search.on_invoke_tool(context, json.dumps({"query": question, "limit": K})),
        lambda question: memory.search(question, K, log=False),
    )


def pydantic_ai(memory: Memory, contents: list[str]) -> Pair:
    from zettel.integrations.pydantic_ai import ZettelToolset

    memory.add_many([{"content": text} for text in contents])
    toolset, unused = ZettelToolset[None](memory), cast(Any, SimpleNamespace(deps=None))
    return (
        lambda question: toolset.call_tool("search_memories", {"query": question, "limit": K}, unused, unused),
        lambda question: memory.search(question, K, log=False),
    )


def adk(memory: Memory, contents: list[str]) -> Pair:
    from zettel.integrations.adk import ZettelMemoryService

    service = ZettelMemoryService(memory, k=K)
    scope = service.scope("kitchen", "ann")
    memory.add_many([{"content": text} for text in contents], scope=scope)
    return (
        lambda question: service.search_memory(app_name="kitchen", user_id="ann", query=question),
        lambda question: memory.search(question, K, log=False, scope=scope),
    )


def strands(memory: Memory, contents: list[str]) -> Pair:
    from zettel.integrations.strands import ZettelMemoryStore

    memory.add_many([{"content": text} for text in contents])
    store = ZettelMemoryStore(memory, max_search_results=K)
    return store.search, lambda question: memory.search(question, K, log=False)


def agno(memory: Memory, contents: list[str]) -> Pair:
    from zettel.integrations.agno import ZettelLearning

    memory.add_many([{"content": text} for text in contents])
    (search,) = (tool for tool in ZettelLearning(memory, scope=lambda run: memory.scope).get_tools()
                 if tool.name == "search_memories")  # fmt: skip
    return (
        lambda question: search.entrypoint(query=question, limit=K),
        lambda question: memory.search(question, K, log=False),
    )


def agent_framework(memory: Memory, contents: list[str]) -> Pair:
    from agent_framework import AgentSession, SessionContext

    from zettel.integrations.agent_framework import ZettelContextProvider

    memory.add_many([{"content": text} for text in contents])
    session, context = AgentSession(), SessionContext(input_messages=[])
    provider = ZettelContextProvider(memory, scope=lambda session: memory.scope)
    asyncio.run(provider.before_run(agent=cast(Any, None), session=session, context=context, state={}))
    (search,) = (tool for tool in context.tools if tool.name == "search_memories")
    return (
        lambda question: search.invoke(arguments={"query": question, "limit": K}),
        lambda question: memory.search(question, K, log=False),
    )


PAIRS: dict[str, Callable[[Memory, list[str]], Pair]] = {
    "langgraph": langgraph,
    "llamaindex": llamaindex,
    "crewai": crewai,
    "autogen": autogen,
    "openai-agents": openai_agents,
    "pydantic-ai": pydantic_ai,
    "adk": adk,
    "strands": strands,
    "agno": agno,
    "agent-framework": agent_framework,
}
"""Searches by framework."""


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """Return a separate memory, so that no earlier memory is closing meanwhile."""
    with Memory(tmp_path / "zettel.db") as instance:
        yield instance


@pytest.fixture
def share(request: pytest.FixtureRequest) -> float:
    return 1.0 if request.config.getoption("soak") else 0.05


@pytest.mark.soak
@pytest.mark.parametrize(
    "name", [framework.name for framework in FRAMEWORKS if framework.installed and framework.name in PAIRS]
)
def test_adapters_add_little_time_to_a_search(
    name: str, memory: Memory, share: float, record_property: Callable[[str, object], None]
) -> None:
    contents = texts(int(NOTES * share))
    adapter, plain = PAIRS[name](memory, contents)
    memory.flush()
    times = asyncio.run(measure(adapter, plain, random.Random(8).choices(contents, k=int(QUESTIONS * share))))
    ours, theirs = (1000 * statistics.median(seconds) for seconds in times)
    print(f"\n{name}: {ours:.2f} ms, Memory.search {theirs:.2f} ms, {ours / theirs:.2f} times")
    record_property("milliseconds", round(ours, 2))
    record_property("search_milliseconds", round(theirs, 2))
    record_property("ratio", round(ours / theirs, 3))
    assert ours / theirs <= (MAX_RATIO if share == 1 else MAX_SAMPLE_RATIO)


async def measure(adapter: Search, plain: Search, questions: list[str]) -> tuple[list[float], list[float]]:
    """Return the seconds of each search, in alternating order.

    A repeated question is answered faster, so each is searched once before both measurements.
    """
    seconds: tuple[list[float], list[float]] = ([], [])
    for number, question in enumerate(questions):
        pair = [(0, adapter), (1, plain)]
        plain(question)
        for place, search in pair if number % 2 else reversed(pair):
            started = perf_counter()
            answer = search(question)
            if inspect.isawaitable(answer):
                answer = await answer
            seconds[place].append(perf_counter() - started)
            assert answer
    return seconds
