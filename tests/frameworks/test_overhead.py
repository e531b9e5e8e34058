"""What an adapter adds to a search: its own answer beside that of ``Memory.search`` to the same question, in turns."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import pytest

from tests.frameworks.known import FRAMEWORKS
from zettel import Memory

Ask = Callable[[str], Any]
"""Asks a question; what it gives may have to be awaited."""
Pair = tuple[Ask, Ask]
"""The adapter's search, and the memory's for the same notes."""

NOTES, ASKED = 2000, 200
"""How many notes are searched, and how often."""
K = 10
MOST = 1.1
"""The median time of an adapter's search over that of the memory's, at most."""
MOST_OF_A_SAMPLE = 3.0
"""The same where only a few are asked, beside other tests: what shows that none searches twice."""

WORDS = (
    "harbour boat heron walnut violin cello red blue old new Ann Bob Ida Nils moored sold painted repaired likes "
    "market morning winter letter garden bridge lamp river mill bees honey key door house road"
).split()


def texts(count: int) -> list[str]:
    dice = random.Random(7)
    return [f"{' '.join(dice.choices(WORDS, k=12))}, number {number}" for number in range(count)]


def langgraph(memory: Memory, said: list[str]) -> Pair:
    from langgraph.store.base import PutOp

    from zettel.integrations.langgraph import ZettelStore
    from zettel.integrations.langgraph_items import within

    store, namespace = ZettelStore(memory), ("users", "ann")
    store.batch([PutOp(namespace, str(number), {"text": text}) for number, text in enumerate(said)])
    return (
        lambda question: store.search(namespace, query=question, limit=K),
        lambda question: memory.search(question, K, filter=within(namespace), log=False),
    )


def llamaindex(memory: Memory, said: list[str]) -> Pair:
    from zettel.integrations.llamaindex import ZettelRetriever

    memory.add_many([{"content": text} for text in said])
    return ZettelRetriever(memory, k=K).retrieve, lambda question: memory.search(question, K, log=False)


def crewai(memory: Memory, said: list[str]) -> Pair:
    from crewai.memory.types import MemoryRecord

    from zettel.integrations.crewai import ZettelStorage

    storage = ZettelStorage(memory)
    storage.save([MemoryRecord(content=text, scope="/crew") for text in said])
    return (
        lambda question: storage.search(storage.embedder([question])[0], "/crew", limit=K),
        lambda question: memory.search(question, K, filter={"scope 1": ["crew"]}, log=False),
    )


def autogen(memory: Memory, said: list[str]) -> Pair:
    from zettel.integrations.autogen import ZettelMemory

    memory.add_many([{"content": text} for text in said])
    return ZettelMemory(memory, k=K).query, lambda question: memory.search(question, K, log=False)


def openai_agents(memory: Memory, said: list[str]) -> Pair:
    from zettel.integrations.openai_agents import memory_tools

    memory.add_many([{"content": text} for text in said])
    context: Any = None
    (search,) = (tool for tool in memory_tools(memory) if tool.name == "search_memories")
    return (
        lambda question: search.on_invoke_tool(context, json.dumps({"query": question, "limit": K})),
        lambda question: memory.search(question, K, log=False),
    )


def pydantic_ai(memory: Memory, said: list[str]) -> Pair:
    from zettel.integrations.pydantic_ai import ZettelToolset

    memory.add_many([{"content": text} for text in said])
    toolset, unused = ZettelToolset[None](memory), cast(Any, None)
    return (
        lambda question: toolset.call_tool("search_memories", {"query": question, "limit": K}, unused, unused),
        lambda question: memory.search(question, K, log=False),
    )


def adk(memory: Memory, said: list[str]) -> Pair:
    from zettel.integrations.adk import ZettelMemoryService

    service = ZettelMemoryService(memory, k=K)
    scope = service.scope("kitchen", "ann")
    memory.add_many([{"content": text} for text in said], scope=scope)
    return (
        lambda question: service.search_memory(app_name="kitchen", user_id="ann", query=question),
        lambda question: memory.search(question, K, log=False, scope=scope),
    )


PAIRS: dict[str, Callable[[Memory, list[str]], Pair]] = {
    "langgraph": langgraph,
    "llamaindex": llamaindex,
    "crewai": crewai,
    "autogen": autogen,
    "openai-agents": openai_agents,
    "pydantic-ai": pydantic_ai,
    "adk": adk,
}
"""By framework."""


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """One of its own for each: nothing of another one's end is under way."""
    with Memory(tmp_path / "zettel.db") as opened:
        yield opened


@pytest.fixture
def share(request: pytest.FixtureRequest) -> float:
    return 1.0 if request.config.getoption("soak") else 0.05


@pytest.mark.soak
@pytest.mark.parametrize("name", [one.name for one in FRAMEWORKS if one.installed and one.name in PAIRS])
def test_adapters_add_little(
    name: str, memory: Memory, share: float, record_property: Callable[[str, object], None]
) -> None:
    said = texts(int(NOTES * share))
    adapter, plain = PAIRS[name](memory, said)
    memory.flush()
    times = asyncio.run(measure(adapter, plain, random.Random(8).choices(said, k=int(ASKED * share))))
    ours, theirs = (1000 * statistics.median(taken) for taken in times)
    print(f"\n{name}: {ours:.2f} ms, Memory.search {theirs:.2f} ms, {ours / theirs:.2f} times")
    record_property("milliseconds", round(ours, 2))
    record_property("search_milliseconds", round(theirs, 2))
    record_property("ratio", round(ours / theirs, 3))
    assert ours / theirs <= (MOST if share == 1 else MOST_OF_A_SAMPLE)


async def measure(adapter: Ask, plain: Ask, questions: list[str]) -> tuple[list[float], list[float]]:
    """Seconds of each search, asked in turns, each of them first as often as the other. A question that is asked again
    is answered sooner, so it is asked once before both."""
    taken: tuple[list[float], list[float]] = ([], [])
    for number, question in enumerate(questions):
        pair = [(0, adapter), (1, plain)]
        plain(question)
        for place, ask in pair if number % 2 else reversed(pair):
            began = perf_counter()
            answer = ask(question)
            if inspect.isawaitable(answer):
                answer = await answer
            taken[place].append(perf_counter() - began)
            assert answer
    return taken
