"""LangGraph's ``BaseStore`` interface, compared with its in-memory store; tools and the middleware."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("langgraph")

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from tests.agent_server import AgentServer
from tests.frameworks.known import CHECKOUT
from zettel import AsyncMemory, Memory, Scope
from zettel.errors import InvalidInput, ZettelError
from zettel.integrations import langgraph_items as items
from zettel.integrations.keyed_items import KeyedItems
from zettel.integrations.langgraph import MemoryMiddleware, ZettelStore, memory_tools, with_memory

ANN, BOB = ("users", "ann"), ("users", "bob")


@pytest.fixture
def store(memory: Memory) -> ZettelStore:
    return ZettelStore(memory)


class Clock:
    """The present time, which a test moves on."""

    def __init__(self) -> None:
        self.now = datetime.now(timezone.utc)

    def pass_minutes(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("zettel.core.present._clock", lambda: clock.now)
    return clock


# ------------------------------------------------------------------------------------------------------ keys and values


def test_an_item_can_be_put_updated_reverted_and_deleted(store: ZettelStore, memory: Memory) -> None:
    assert store.get(ANN, "food") is None
    store.put(ANN, "food", {"text": "Ann likes pizza", "n": 3})
    first = store.get(ANN, "food")
    assert first is not None
    assert (first.namespace, first.key, first.value) == (ANN, "food", {"text": "Ann likes pizza", "n": 3})
    assert first.created_at == first.updated_at
    store.put(ANN, "food", {"text": "Ann likes rice"})
    second = store.get(ANN, "food")
    assert second is not None
    assert second.value == {"text": "Ann likes rice"}
    assert second.created_at == first.created_at < second.updated_at
    (note,) = memory.list().notes
    assert [version.change["content"] for version in memory.history(note.id)] == [
        "text: Ann likes pizza\nn: 3", "Ann likes rice"
    ]  # fmt: skip
    memory.revert(note.id, 1)
    assert store.get(ANN, "food").value == first.value  # type: ignore[union-attr]
    store.put(ANN, "food", {"text": "Ann likes rice"})
    assert store.get(ANN, "food").value == {"text": "Ann likes rice"}  # type: ignore[union-attr]
    store.delete(ANN, "food")
    assert store.get(ANN, "food") is None
    assert not memory.list().notes
    store.delete(ANN, "food")
    for text in ("Ann likes soup", "Ann likes fish"):  # a deleted key can be used again, repeatedly
        store.put(ANN, "food", {"text": text})
        assert store.get(ANN, "food").value == {"text": text}  # type: ignore[union-attr]
        store.delete(ANN, "food")
    assert ZettelStore(memory).get(ANN, "food") is None
    ZettelStore(memory).put(ANN, "food", {"text": "Ann likes figs"})
    assert store.get(ANN, "food").value == {"text": "Ann likes figs"}  # type: ignore[union-attr]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


KEYS = st.text(st.characters(exclude_characters="\0"), max_size=9)


@given(value=st.dictionaries(st.text(), JSON, max_size=4), key=KEYS)
@settings(max_examples=25)
def test_a_value_is_returned_exactly(module_memory: Memory, value: dict[str, Any], key: str) -> None:
    store = ZettelStore(module_memory)
    store.put(("exact",), key, value)
    item = store.get(("exact",), key)
    assert item is not None
    assert item.value == value
    assert json.dumps(item.value) == json.dumps(value)  # also 1 and 1.0, and the order of keys
    store.delete(("exact",), key)


def test_numpy_values_are_converted_and_other_types_refused(store: ZettelStore) -> None:
    store.put(ANN, "odd", {"n": np.int64(3), "x": np.float32(0.5), "a": np.array([1, 2]), "t": (1, 2), "b": np.True_})
    assert store.get(ANN, "odd").value == {"n": 3, "x": 0.5, "a": [1, 2], "t": [1, 2], "b": True}  # type: ignore[union-attr]
    for value, error_text in [
        ({"when": datetime(2024, 5, 1)}, "value.when is a datetime"),
        ({"deep": [{"x": {1, 2}}]}, r"value.deep\[0\].x is a set"),
        ({"deep": {1: "x"}}, "value.deep has the key 1"),
        ({"n": float("nan")}, "nan, which is not a JSON value"),
        (json.loads('{"x": ' * 300 + "1" + "}" * 300), "value is nested more than 100 levels deep"),
    ]:
        with pytest.raises(InvalidInput, match=error_text) as error_info:
            store.put(ANN, "refused", value)
        assert "\n" not in str(error_info.value)
    assert store.get(ANN, "refused") is None
    with pytest.raises(InvalidInput, match="metadata: contains a NUL character") as error_info:
        store.put(ANN, "no\0key", {"n": 1})
    assert "\n" not in str(error_info.value)


@pytest.mark.parametrize("namespace", [(), ("",), ("a.b",), ("langgraph", "x"), (1,)])
def test_invalid_namespaces_are_refused(store: ZettelStore, namespace: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "key", {"x": 1})


def test_batch_checks_namespaces_and_operations(store: ZettelStore) -> None:
    for namespace in [(), ("a", "")]:
        with pytest.raises(InvalidNamespaceError, match="must be a tuple"):
            store.batch([PutOp(namespace, "key", {"x": 1})])
    store.batch([PutOp(("langgraph", "x"), "key", {"x": 1})])
    assert store.get(("langgraph", "x"), "key").value == {"x": 1}  # type: ignore[union-attr]
    with pytest.raises(InvalidInput, match="str is not an operation"):
        store.batch(["get"])  # type: ignore[list-item]


def test_the_store_shows_only_its_items_and_scope(store: ZettelStore, memory: Memory) -> None:
    memory.add("Ann likes pizza.", session="users.ann", metadata={"namespace": "users", "key": "x"})
    store.put(ANN, "food", {"text": "Ann likes pizza"})
    assert [item.key for item in store.search((), query="What does Ann like?")] == ["food"]
    assert [item.key for item in store.search(())] == ["food"]
    assert store.list_namespaces() == [ANN]
    other = ZettelStore(memory, scope=Scope(user="bob"))
    assert other.search(()) == []
    other.put(ANN, "food", {"text": "Bob likes cake"})
    assert store.get(ANN, "food").value == {"text": "Ann likes pizza"}  # type: ignore[union-attr]


def test_an_archived_item_is_returned(store: ZettelStore, memory: Memory) -> None:
    store.put(ANN, "food", {"text": "Ann likes pizza"})
    (note,) = memory.list().notes
    memory.archive(note.id)
    assert store.get(ANN, "food").value == {"text": "Ann likes pizza"}  # type: ignore[union-attr]
    assert [item.key for item in store.search(ANN)] == ["food"]
    assert [item.score is not None for item in store.search(ANN, query="What does Ann like?")] == [True]
    assert store.list_namespaces() == [ANN]
    store.put(ANN, "food", {"text": "Ann likes rice"})
    assert [item.value["text"] for item in store.search(ANN)] == ["Ann likes rice"]


def test_a_former_value_is_not_found_in_the_archive(store: ZettelStore, memory: Memory) -> None:
    text = " ".join(f"Chapter {n} tells of the sea and of the ship number {n}." for n in range(200))
    store.put(ANN, "book", {"text": text})
    store.put(ANN, "book", {"text": "It was about ships."})
    memory.archive(memory.list().notes[0].id)
    hits = store.search(ANN, query="Which chapter tells of ship number 170?")
    assert [item.value["text"] for item in hits] == ["It was about ships."]


def test_a_quarantined_item_is_hidden_until_released(store: ZettelStore, memory: Memory) -> None:
    store.put(ANN, "food", {"text": "Ann likes pizza"})
    (note,) = memory.list().notes
    memory.quarantine(note.id)
    assert store.get(ANN, "food") is None
    assert store.search(ANN) == store.search(ANN, query="pizza") == store.list_namespaces() == []
    store.put(ANN, "food", {"text": "Ann likes pizza with figs"})
    assert store.get(ANN, "food") is None
    memory.release(note.id)
    assert [item.value["text"] for item in store.search(ANN, query="pizza")] == ["Ann likes pizza with figs"]


@pytest.mark.parametrize("method", ["archive", "quarantine"])
def test_delete_and_sweep_find_archived_and_quarantined_items(memory: Memory, clock: Clock, method: str) -> None:
    store = ZettelStore(memory)
    for key, ttl in (("deleted", None), ("swept", 5)):
        store.put(ANN, key, {"text": f"Ann likes {key}"}, ttl=ttl)
    for note in memory.list().notes:
        getattr(memory, method)(note.id)
    store.delete(ANN, "deleted")
    clock.pass_minutes(6)
    assert store.sweep_ttl() == 1
    assert not memory.list(archived=True).notes


def test_a_key_names_one_item_after_deletes(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletes may come from another process, may cover the whole scope, and may be repeated."""
    store, other = ZettelStore(memory), ZettelStore(memory)
    for n in range(5):
        store.put(ANN, "k", {"n": n})
        store.delete(ANN, "k")
    add_many_report, calls = AsyncMemory.add_many_report, []

    async def counting_add(self: AsyncMemory, *arguments: Any, **more: Any) -> Any:
        calls.append(arguments)
        return await add_many_report(self, *arguments, **more)

    monkeypatch.setattr(AsyncMemory, "add_many_report", counting_add)
    other.put(ANN, "k", {"n": 10})
    store.put(ANN, "k", {"n": 11})
    assert len(calls) == 4
    assert [item.value for item in other.search(ANN)] == [{"n": 11}]
    (note,) = memory.list().notes
    assert note.version == 2
    memory.delete_scope()
    for instance in (other, store):
        instance.put(ANN, "k", {"n": 12})
    assert [item.value for item in store.search(ANN)] == [{"n": 12}]
    assert len(memory.list().notes) == 1


def test_deletes_tolerate_concurrent_deletes(
    memory: Memory, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, delete = ZettelStore(memory), AsyncMemory.delete

    async def twice(self: AsyncMemory, id: str, **more: Any) -> int:
        await delete(self, id, **more)
        return await delete(self, id, **more)

    monkeypatch.setattr(AsyncMemory, "delete", twice)
    store.put(ANN, "deleted", {"n": 1})
    store.batch([PutOp(ANN, "deleted", None), PutOp(ANN, "put", {"n": 2}, ttl=5)])
    assert [item.key for item in store.search(ANN)] == ["put"]
    clock.pass_minutes(6)
    assert store.sweep_ttl() == 1
    assert store.search(ANN) == []


def test_items_with_equal_values_are_not_merged(store: ZettelStore, memory: Memory) -> None:
    for key in ("one", "two"):
        store.put(ANN, key, {"text": "Ann has moved to a house by the sea."})
    memory.evolve()
    assert len(store.search(ANN)) == 2


# -------------------------------------------------------------------------------------------------------------- batches


def test_a_batch_reads_before_it_writes(store: ZettelStore) -> None:
    store.put(ANN, "one", {"n": 1})
    results = store.batch([
        PutOp(ANN, "one", {"n": 2}), GetOp(ANN, "one"), SearchOp(("users",)), ListNamespacesOp(),
        PutOp(ANN, "one", {"n": 3}), PutOp(BOB, "two", {"n": 4}), PutOp(BOB, "missing", None), GetOp(BOB, "two"),
    ])  # fmt: skip
    assert [results[place] for place in (0, 4, 5, 6, 7)] == [None] * 5
    assert results[1].value == {"n": 1}  # type: ignore[union-attr]
    assert [item.value for item in results[2]] == [{"n": 1}]  # type: ignore[union-attr]
    assert results[3] == [ANN]
    assert [store.get(ANN, "one").value, store.get(BOB, "two").value] == [{"n": 3}, {"n": 4}]  # type: ignore[union-attr]


def test_a_batch_is_written_completely_or_not_at_all(store: ZettelStore) -> None:
    with pytest.raises(ZettelError):
        store.batch([PutOp(ANN, "one", {"n": 1}), PutOp(ANN, "two", {"n": {1}})])
    assert store.search(()) == []


@pytest.mark.anyio
async def test_async_methods_work_with_both_memory_classes(memory: Memory, tmp_path: Path) -> None:
    async with AsyncMemory(tmp_path / "other.db") as async_memory:
        for store in (ZettelStore(memory), ZettelStore(async_memory)):
            await asyncio.gather(*(store.aput(ANN, f"k{n}", {"n": n}) for n in range(5)))
            stored = await asyncio.gather(*(store.aget(ANN, f"k{n}") for n in range(5)))
            assert [item.value for item in stored if item] == [{"n": n} for n in range(5)]
            assert len(await store.asearch(("users",), query="n 3", limit=20)) == 5
            await store.adelete(ANN, "k0")
            assert await store.aget(ANN, "k0") is None
            assert await store.alist_namespaces(prefix=("users",)) == [ANN]
            assert await store.asweep_ttl() == 0
        with pytest.raises(InvalidInput, match="has to be awaited"):
            ZettelStore(async_memory).get(ANN, "k1")


# --------------------------------------------------------------------------------------------------------------- search

LABELS = st.sampled_from(["a", "ab", "b", "abc", "/", "a b"])
SPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
VALUES = st.fixed_dictionaries(
    {}, optional={"s": st.sampled_from(["x", "y", "1"]), "n": st.sampled_from([1, 1.0, 2, 3.5]),
                  "d": st.sampled_from([{"p": 1, "q": "x"}, {"p": 2}]), "l": st.sampled_from([[1], [1, 2], []])}
)  # fmt: skip
NUMBER = st.tuples(st.sampled_from(["$gt", "$gte", "$lt", "$lte", "$ne", "$eq"]), st.sampled_from([1, 2, 3]))
FILTERS = st.none() | st.sampled_from([
    {"s": "x"}, {"s": "1"}, {"n": 1}, {"n": True}, {"s": {"$ne": "x"}}, {"d": {"p": 1}}, {"d": {"$eq": {"p": 2}}},
    {"l": [1]}, {"l": []}, {"s": "x", "n": 1}, {"d": {"p": {"$eq": 1}, "q": "x"}}, {"missing": None},
])  # fmt: skip
PATHS = st.none() | st.lists(LABELS | st.just("*"), min_size=1, max_size=2).map(tuple)


@given(data=st.data())
@settings(max_examples=15)
def test_the_store_equals_the_in_memory_store_of_langgraph(module_memory: Memory, data: st.DataObject) -> None:
    """After any puts and deletes, items, filters and namespaces equal those of the in-memory store."""
    module_memory.delete_scope()
    ours, theirs = ZettelStore(module_memory), InMemoryStore()
    ops = data.draw(st.lists(st.tuples(SPACES, st.sampled_from(["k", "l"]), st.none() | VALUES), max_size=8))
    for namespace, key, value in ops:
        for store in (ours, theirs):
            store.batch([PutOp(namespace, key, value)])
    for _ in range(4):
        prefix, filter = data.draw(SPACES | st.just(())), data.draw(FILTERS)
        results = [store.search(prefix, filter=filter, limit=50) for store in (ours, theirs)]
        assert len({(ns(item), item.key) for item in results[0]}) == len(results[0])
        assert sorted(map(item_json, results[0])) == sorted(map(item_json, results[1]))
        conditions = {"prefix": data.draw(PATHS), "suffix": data.draw(PATHS)}
        conditions |= {"max_depth": data.draw(st.none() | st.integers(1, 3)), "limit": data.draw(st.integers(1, 5))}
        spaces = [store.list_namespaces(**conditions, offset=0) for store in (ours, theirs)]
        existing = {ns(item) for item in theirs.search((), limit=50)}
        if conditions["max_depth"] is None:  # the in-memory store also lists empty namespaces
            spaces[1] = [
                namespace
                for namespace in theirs.list_namespaces(**(conditions | {"limit": 50}))
                if namespace in existing
            ]
            assert spaces[0] == spaces[1][: conditions["limit"]]


def ns(item: Any) -> tuple[str, ...]:
    return tuple(item.namespace)


def item_json(item: Any) -> str:
    return json.dumps([item.namespace, item.key, item.value], sort_keys=True)


def test_filter_operators_compare_values(store: ZettelStore) -> None:
    store.put(ANN, "low", {"n": 1, "day": "2024-01-01"})
    store.put(ANN, "high", {"n": 5.5, "day": "2024-06-01"})
    store.put(ANN, "none", {})

    def keys(**filter: Any) -> list[str]:
        return sorted(item.key for item in store.search(ANN, filter=filter))

    assert keys(n={"$gt": 1}) == ["high"]
    assert keys(n={"$gte": 1}) == ["high", "low"]
    assert keys(n={"$gte": 1, "$lt": 5}) == ["low"]
    assert keys(n={"$lte": np.float64(5.5)}) == ["high", "low"]
    assert keys(n={"$ne": 1}) == ["high", "none"]
    assert keys(day={"$gt": "2024-03-01"}) == ["high"]
    assert keys(day={"$lt": 3}) == []
    with pytest.raises(InvalidInput, match=r"unknown operator \$in"):
        keys(n={"$in": [1]})


def test_a_query_ranks_within_its_prefix(store: ZettelStore) -> None:
    store.put(ANN, "drink", {"text": "Ann drinks coffee in the morning"})
    store.put(ANN, "work", {"text": "Ann repairs violins"})
    store.put(("users",), "house", {"text": "coffee is in the kitchen"})
    store.put(("usersx",), "other", {"text": "coffee, coffee"})
    store.put(("a", "users"), "other", {"text": "coffee, coffee"})
    hits = store.search(("users",), query="Who drinks coffee?")
    assert hits[0].key == "drink"
    assert {item.key for item in hits} == {"drink", "house", "work"}
    assert all(item.score is not None and 0 <= item.score <= 1 for item in hits)
    assert [item.key for item in store.search(ANN, query="Who drinks coffee?", limit=1)] == ["drink"]
    assert [item.key for item in store.search(ANN, query="Who drinks coffee?", limit=1, offset=1)] == ["work"]
    assert [item.key for item in store.search(ANN, query="   ")] == ["drink", "work"]
    assert store.search(ANN, query="coffee", limit=0) == []
    assert [item.score for item in store.search(ANN)] == [None, None]
    with pytest.raises(InvalidInput, match="limit=-1"):
        store.search(ANN, limit=-1)


def test_filters_apply_before_the_ranking(store: ZettelStore) -> None:
    """Also when matching items are rare among the hits of the query."""
    puts = [PutOp(ANN, f"k{n}", {"text": f"coffee with milk {n}", "n": n, "type": "note"}) for n in range(150)]
    store.batch([*puts, PutOp(ANN, "tea", {"text": "green tea", "n": 1000, "type": "rare"})])
    assert [item.key for item in store.search(ANN, query="coffee with milk", filter={"type": "rare"})] == ["tea"]
    assert [item.key for item in store.search(ANN, query="coffee with milk", filter={"n": {"$gt": 500}})] == ["tea"]
    assert len(store.search(ANN, query="coffee with milk", limit=200)) == 151
    assert len({item.key for item in store.search(ANN, query="coffee with milk", limit=200)}) == 151


def test_only_indexed_fields_are_searched(memory: Memory) -> None:
    store = ZettelStore(memory, index={"fields": ["text", "chapters[*].title"]})
    store.put(ANN, "a", {"text": "violins", "secret": "coffee", "chapters": [{"title": "bows"}, {"title": "strings"}]})
    store.put(ANN, "b", {"text": "violins", "secret": "coffee"}, index=["secret"])
    store.put(ANN, "c", {"text": "coffee"}, index=False)
    store.put(ANN, "d", {"other": "coffee"})
    contents = {item.key: note.content for item, note in zip(store.search(ANN), memory.list().notes, strict=True)}
    assert contents == {"a": "violins\nbows\nstrings", "b": "coffee", "c": "c", "d": "d"}
    hits = store.search(ANN, query="coffee")
    assert [item.key for item in hits[:1]] == ["b"]
    assert {item.key for item in hits if item.score is None} == {"c", "d"}
    with pytest.raises(InvalidInput, match="choose the embedder with Memory"):
        ZettelStore(memory, index={"dims": 3, "embed": lambda texts: [[0.0] * 3 for _ in texts]})


def test_a_long_value_is_one_item(store: ZettelStore) -> None:
    text = " ".join(f"Chapter {n} tells of the sea and of the ship number {n}." for n in range(200))
    store.put(ANN, "book", {"text": text})
    store.put(ANN, "other", {"text": "The ship of Ann"})
    assert sorted(item.key for item in store.search(ANN, query="ship number 170")) == ["book", "other"]
    assert store.get(ANN, "book").value == {"text": text}  # type: ignore[union-attr]
    store.put(ANN, "book", {"text": "short"})
    assert sorted(item.value["text"] for item in store.search(ANN)) == ["The ship of Ann", "short"]
    store.delete(ANN, "book")
    assert [item.key for item in store.search(ANN)] == ["other"]


def test_a_long_value_is_stored_once(store: ZettelStore, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(f"Chapter {n} tells of the sea and of the ship number {n}." for n in range(200))
    store.put(ANN, "book", {"text": text, "kind": "novel", "n": 1})
    notes = memory.list().notes
    assert len(notes) > 5
    assert max(len(str(note.metadata)) for note in notes) < 1000
    for query in (None, "ship number 170"):
        for filter, count in [({"kind": "novel"}, 1), ({"n": {"$gt": 0}}, 1), ({"n": {"$gt": 1}}, 0)]:
            assert len(store.search(ANN, query=query, filter=filter)) == count
    store.put(ANN, "book", {"text": "short"})
    memory.revert(notes[0].id, 1)
    assert store.get(ANN, "book").value == {"text": text, "kind": "novel", "n": 1}  # type: ignore[union-attr]
    with monkeypatch.context() as before:  # the format of earlier versions
        before.setattr("zettel.integrations.langgraph_items.is_long", lambda text: False)
        store.put(ANN, "book", {"text": text, "n": 2})
    assert items.VALUE in memory.list().notes[0].metadata
    (hit,) = store.search(ANN, query="ship number 170", filter={"n": 2})
    assert hit.value == {"text": text, "n": 2}


def test_a_value_above_the_content_limit_is_returned_exactly(store: ZettelStore, small_content_limit: int) -> None:
    value = {"text": "The ship sails. " * 1000, "odd": "a\0b"}
    store.put(ANN, "book", value)
    (hit,) = store.search(ANN, query="Which ship sails?")
    assert hit.value == value


@pytest.mark.parametrize("value", ["text", ["a", "list"], 7])
def test_a_value_that_is_not_a_dict_is_refused(store: ZettelStore, value: Any) -> None:
    with pytest.raises(InvalidInput, match="the value of an item must be a dict"):
        store.put(ANN, "odd", value)
    assert store.get(ANN, "odd") is None


def test_namespaces_are_listed_by_prefix_and_suffix(store: ZettelStore) -> None:
    for namespace in [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "b", "f"), ("a", "c", "f")]:
        store.put(namespace, "k", {})
    assert store.list_namespaces(prefix=("a", "b"), max_depth=3) == [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")]
    assert store.list_namespaces(prefix=("a", "*", "f"), suffix=("f",)) == [("a", "b", "f"), ("a", "c", "f")]
    assert store.list_namespaces(limit=2, offset=1) == [("a", "b", "d", "e"), ("a", "b", "d", "i")]
    for page in ({"limit": -1}, {"offset": -1}):
        with pytest.raises(InvalidInput, match="both must be 0 or more"):
            store.list_namespaces(**page)
    with pytest.raises(InvalidInput, match="got 'middle'"):
        store.batch([ListNamespacesOp((MatchCondition("middle", ("a",)),))])  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------------------- time to live


def test_expired_items_are_swept(memory: Memory, clock: Clock) -> None:
    store = ZettelStore(memory, ttl={"default_ttl": 10})
    store.put(ANN, "short", {"n": 1}, ttl=5)
    store.put(ANN, "usual", {"n": 2})
    store.put(ANN, "always", {"n": 3}, ttl=None)
    clock.pass_minutes(5)
    assert store.sweep_ttl() == 1
    assert [item.key for item in store.search(ANN, refresh_ttl=False)] == ["usual", "always"]
    clock.pass_minutes(5)
    assert store.sweep_ttl() == 1
    assert [item.key for item in store.search(ANN)] == ["always"]
    with pytest.raises(InvalidInput, match="got -1"):
        store.put(ANN, "wrong", {}, ttl=-1)
    with pytest.raises(InvalidInput, match="is too long"):
        store.put(ANN, "wrong", {}, ttl=1e12)


def test_reading_and_writing_refresh_the_ttl(memory: Memory, clock: Clock) -> None:
    store = ZettelStore(memory, ttl={"default_ttl": 10})
    for key in ("got", "found", "put", "left", "only looked at"):
        store.put((key,), key, {"text": f"It is {key}"})
    for turn in range(3):
        clock.pass_minutes(6)
        assert store.get(("got",), "got") is not None
        assert store.search(("found",), query="found")
        store.put(("put",), "put", {"text": "It is put"})
        if turn == 0:
            assert store.get(("only looked at",), "only looked at", refresh_ttl=False) is not None
        store.sweep_ttl()
    assert [item.key for item in store.search((), limit=20)] == ["got", "found", "put"]
    clock.pass_minutes(10 * (1 + items.LATE) + 0.1)
    assert store.sweep_ttl() == 3


def test_frequent_reads_refresh_the_ttl_rarely(memory: Memory, clock: Clock) -> None:
    store = ZettelStore(memory, ttl={"default_ttl": 10})
    store.put(ANN, "k", {"n": 1})
    for _ in range(100):
        clock.pass_minutes(0.1)
        store.get(ANN, "k")
    (note,) = memory.list().notes
    assert 10 <= note.version <= 12
    clock.pass_minutes(9.99)
    assert store.sweep_ttl() == 0


def test_a_refresh_never_overwrites_a_value(memory: Memory, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process puts a value after an item is read and before its expiry is refreshed."""
    store, other = ZettelStore(memory, ttl={"default_ttl": 10}), ZettelStore(memory)
    store.put(ANN, "k", {"n": 1})
    update = AsyncMemory.update

    async def overtaken_update(self: AsyncMemory, id: str, **more: Any) -> Any:
        monkeypatch.setattr(AsyncMemory, "update", update)
        await other._write(KeyedItems(self, other._scope), {items.Place(ANN, "k"): PutOp(ANN, "k", {"n": 2}, ttl=10)})
        return await update(self, id, **more)

    monkeypatch.setattr(AsyncMemory, "update", overtaken_update)
    clock.pass_minutes(5)
    store.get(ANN, "k")
    assert store.get(ANN, "k").value == {"n": 2}  # type: ignore[union-attr]


def test_expired_items_are_omitted(memory: Memory, clock: Clock) -> None:
    store = ZettelStore(memory, ttl={"default_ttl": 10})
    text = " ".join(f"Chapter {n} tells of the sea and of the ship number {n}." for n in range(100))
    for key, ttl in {"a": None, "b": 5, "c": None}.items():
        store.put(ANN, key, {"text": f"coffee {key}"}, ttl=ttl)
    store.put(BOB, "k", {"text": text}, ttl=5)
    assert [item.key for item in store.search(BOB, query="the ship number 90")] == ["k"]
    clock.pass_minutes(6)
    assert store.get(ANN, "b") is None
    assert [item.key for item in store.search(ANN, limit=2)] == ["a", "c"]
    assert {item.key for item in store.search(("users",), query="coffee")} == {"a", "c"}
    assert store.list_namespaces() == [ANN]
    assert len(memory.list().notes) == 2
    assert store.sweep_ttl() == 2


def test_archived_expired_items_are_omitted(memory: Memory, clock: Clock) -> None:
    """The memory may archive what expires. A new value brings the item back."""
    memory.set_retention(then="archive")
    store = ZettelStore(memory)
    store.put(ANN, "k", {"text": "coffee"}, ttl=5)
    clock.pass_minutes(6)
    assert store.sweep_ttl() == 1
    (note,) = memory.list(archived=True).notes
    assert store.get(ANN, "k") is None
    assert store.search(ANN, query="coffee") == store.search(ANN) == []
    store.put(ANN, "k", {"text": "tea"})
    assert store.get(ANN, "k").value == {"text": "tea"}  # type: ignore[union-attr]
    assert [each.id for each in memory.list().notes] == [note.id]


@pytest.mark.anyio
async def test_a_sweep_spares_concurrently_put_items(memory: Memory, clock: Clock) -> None:
    store = ZettelStore(memory)
    keys = [f"k{n}" for n in range(12)]
    store.batch([PutOp(ANN, key, {"n": 1}, ttl=5) for key in keys])
    clock.pass_minutes(6)
    await asyncio.gather(store.asweep_ttl(), *(store.aput(ANN, key, {"n": 2}) for key in keys))
    assert sorted(item.key for item in await store.asearch(ANN, limit=20)) == sorted(keys)


def test_the_first_call_sweeps(memory: Memory, clock: Clock) -> None:
    ZettelStore(memory).put(ANN, "k", {"n": 1}, ttl=5)
    clock.pass_minutes(6)
    ZettelStore(memory, ttl={"sweep_interval_minutes": 60}).get(BOB, "k")
    assert not memory.list().notes


def test_the_next_call_sweeps(memory: Memory, clock: Clock) -> None:
    store = ZettelStore(memory, ttl={"default_ttl": 10, "sweep_interval_minutes": 5})
    store.put(ANN, "k", {"n": 1})
    clock.pass_minutes(4)
    store.get(BOB, "k")
    assert memory.list().notes
    clock.pass_minutes(6)
    store.get(BOB, "k")
    assert not memory.list().notes


# --------------------------------------------------------------------------------------------------------------- agents


needs_async_config = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python 3.10 passes no config to async middleware"
)


class Rules(BaseChatModel):
    """A model that calls the memory tools it is offered; ``read`` are the messages of each call."""

    answer: str = "I shall tell the cook."
    read: list[Any] = []  # noqa: RUF012  # a field of pydantic

    @property
    def _llm_type(self) -> str:
        return "rules"

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self.bind(tools=tools)

    def _generate(self, messages: list[Any], stop: Any = None, run_manager: Any = None, **more: Any) -> Any:
        self.read.append(messages)
        message = AIMessage(self.answer)
        if more.get("tools") and messages[-1].type == "human":
            call = {"name": "search_memories", "args": {"query": messages[-1].text}, "id": "c1"}
            message = AIMessage("Let me look.", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])

    def system(self, call: int = -1) -> str:
        """Return the text of the system messages of a call."""
        return "".join(str(message.content) for message in self.read[call] if message.type == "system")


def run_of(user: str | None, thread: str | None = None) -> RunnableConfig:
    """Return the config of a run."""
    named = {"user_id": user, "thread_id": thread}
    return {"configurable": {name: value for name, value in named.items() if value is not None}}


@dataclass
class Context:
    user_id: str | None = None
    org_id: str = "acme"


USER_ANN, USER_BOB = Scope(user="ann"), Scope(user="bob")
QUESTION = [("user", "What is Ann allergic to?")]


def stored_notes(memory: Memory, scope: Scope) -> list[tuple[str | None, str, str | None]]:
    return [(note.speaker, note.content, note.session) for note in memory.list(scope=scope).notes]


def test_tools_use_the_user_and_the_thread_of_the_run(memory: Memory) -> None:
    tools = {tool.name: tool for tool in memory_tools(memory)}
    assert len(tools) == 12
    assert tools["add_memory"].args_schema["required"] == ["text"]  # type: ignore[index]
    result = json.loads(tools["add_memory"].invoke({"text": "Ann is allergic to walnuts."}, run_of("ann", "t1")))
    assert memory.get(result["id"], scope=USER_ANN).session == "t1"
    search = tools["search_memories"]
    question = {"query": "What is Ann allergic to?"}
    assert json.loads(search.invoke(question, run_of("bob", "t1")))["memories"] == []
    answer = json.loads(asyncio.run(search.ainvoke(question, run_of("ann"))))
    assert answer["memories"][0]["text"] == "Ann is allergic to walnuts."
    assert "error" in json.loads(tools["get_memory"].invoke({"id": "walnuts"}, run_of("ann")))
    fixed = {tool.name: tool for tool in memory_tools(memory, session="chat")}["add_memory"]
    result = json.loads(fixed.invoke({"text": "Ann has a boat."}, run_of("ann", "t1")))
    assert memory.get(result["id"], scope=USER_ANN).session == "chat"
    assert [tool.name for tool in memory_tools(memory, read_only=True)] == [
        "search_memories", "query_memories", "get_memory", "get_entity", "memory_history"
    ]  # fmt: skip
    deleting = {tool.name: tool for tool in memory_tools(memory, allow_delete=True)}
    json.loads(deleting["delete_memory"].invoke({"id": result["id"]}, run_of("ann", "t1")))
    assert "error" in json.loads(deleting["get_memory"].invoke({"id": result["id"]}, run_of("ann", "t1")))
    assert "delete_memory" not in tools


def test_a_run_without_a_user_raises_an_error_that_names_the_way_out(memory: Memory) -> None:
    agent = create_agent(Rules(), memory_tools(memory), middleware=[MemoryMiddleware(memory)])
    model = with_memory(memory, Rules())
    (tool,) = (tool for tool in memory_tools(memory) if tool.name == "search_memories")
    for call in (
        lambda config: agent.invoke({"messages": QUESTION}, config),
        lambda config: asyncio.run(agent.ainvoke({"messages": QUESTION}, config)),
        lambda config: model.invoke([HumanMessage("Hello")], config),
        lambda config: tool.invoke({"query": "Hello"}, config),
    ):
        way_out = r"no user: set (config\['configurable'\]\['user_id'\]|user_id in .*), or .*scope=Scope\(user="
        with pytest.raises(InvalidInput, match=way_out) as info:
            call(run_of(None, "t1"))
        assert "\n" not in str(info.value)
        for wrong in ("", " ", True, 1.5, "a\0b"):
            with pytest.raises(InvalidInput, match="user_id"):
                call({"configurable": {"user_id": wrong}})
    assert not memory.scopes()


def test_the_scope_of_the_memory_may_name_the_user(tmp_path: Path) -> None:
    with Memory(tmp_path / "ann.db", scope=Scope(tenant="acme", user="ann")) as memory:
        model = with_memory(memory, Rules())
        model.invoke([HumanMessage("I am allergic to walnuts.")])
        model.invoke([HumanMessage("I have a boat.")], run_of("ann"))
        with pytest.raises(InvalidInput, match=r"two users in one run: .* is 'bob', the scope of the memory is 'ann'"):
            model.invoke([HumanMessage("Hello")], run_of("bob"))
        assert [str(scope) for scope in memory.scopes()] == ["tenant='acme', user='ann'"]


def test_the_user_may_come_from_the_context_or_from_a_function(memory: Memory) -> None:
    rules = Rules()
    agent = create_agent(rules, memory_tools(memory), middleware=[MemoryMiddleware(memory)], context_schema=Context)
    for user in ("ann", "bob"):
        memory.add(f"The safe of {user} is green.", scope=Scope(user=user))
        for config in (run_of(None, "t1"), run_of(user, "t1")):
            answer = agent.invoke({"messages": [("user", "Which safe is green?")]}, config, context=Context(user))
            assert f"The safe of {user} is green." in rules.system(-2)
            assert f"The safe of {user} is green." in answer["messages"][-2].content  # the tool
    with pytest.raises(InvalidInput, match=r"two users in one run: .* is 'ann', context.user_id is 'bob'"):
        agent.invoke({"messages": QUESTION}, run_of("ann"), context=Context("bob"))
    with pytest.raises(InvalidInput, match=r"two users in one run: .*langgraph_auth_user_id is 'bob'"):
        agent.invoke({"messages": QUESTION}, {"configurable": {"user_id": "ann", "langgraph_auth_user_id": "bob"}})

    def scope_of(run: dict[str, Any]) -> Scope:
        return Scope(tenant=run["org_id"], user=run["user_id"])

    chosen = create_agent(Rules(), middleware=[MemoryMiddleware(memory, scope=scope_of)], context_schema=Context)
    chosen.invoke({"messages": QUESTION}, run_of("ann"), context=Context("cleo"))
    assert Scope(tenant="acme", user="cleo") in memory.scopes()
    broken = with_memory(memory, Rules(), scope=lambda run: "ann")  # type: ignore[arg-type,return-value]
    with pytest.raises(InvalidInput, match="it must return a Scope"):
        broken.invoke([HumanMessage("Hello")], run_of("ann"))


def test_items_of_a_store_are_in_no_users_prompt(memory: Memory) -> None:
    store, rules = ZettelStore(memory), Rules()
    store.put(BOB, "safe", {"text": "The code of Bob's safe is 4711."})
    agent = create_agent(rules, memory_tools(memory), middleware=[MemoryMiddleware(memory)], store=store)
    answer = agent.invoke({"messages": [("user", "What is the code of Bob's safe?")]}, run_of("ann", "t1"))
    assert "4711" not in str(answer) + str(rules.read)
    assert store.get(BOB, "safe").value == {"text": "The code of Bob's safe is 4711."}  # type: ignore[union-attr]


@needs_async_config
def test_the_middleware_recalls_and_remembers(memory: Memory) -> None:
    memory.add("Ann is allergic to walnuts.", speaker="Ben", occurred_at="2024-05-01", scope=USER_ANN)
    rules = Rules(answer="Ann is allergic to walnuts. I shall tell the cook.")
    middleware = MemoryMiddleware(memory)
    agent = create_agent(rules, memory_tools(memory), middleware=[middleware], system_prompt="Be kind.")
    result = agent.invoke({"messages": QUESTION}, run_of("ann", "t1"))
    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"]
    (first, _), (second, *_) = rules.read
    assert first.content.startswith("Be kind.\n\n# Memory")
    assert "Ben: Ann is allergic to walnuts." in first.content
    assert second.content == "Be kind."  # the tool's answer contains the memory
    asyncio.run(agent.ainvoke({"messages": [*result["messages"], ("user", "Thanks.")]}, run_of("ann", "t1")))
    assert stored_notes(memory, USER_ANN) == [
        ("Ben", "Ann is allergic to walnuts.", None),
        ("user", "What is Ann allergic to?", "t1"),
        ("assistant", "I shall tell the cook.", "t1"),
        ("user", "Thanks.", "t1"),  # the answer repeats a memory
    ]
    with pytest.raises(InvalidInput, match="is too small"):
        MemoryMiddleware(memory, max_tokens=1)
    with pytest.raises(InvalidInput, match="is not a Scope"):
        MemoryMiddleware(memory, scope="ann")  # type: ignore[arg-type]


def test_the_same_thread_of_two_users_is_two_conversations(memory: Memory) -> None:
    agent = create_agent(Rules(), middleware=[MemoryMiddleware(memory)])
    for user in ("ann", "bob"):
        agent.invoke({"messages": [("user", "I have moved.")]}, run_of(user, "t1"))
    for scope in (USER_ANN, USER_BOB):
        assert stored_notes(memory, scope)[0] == ("user", "I have moved.", "t1")


def test_a_failing_model_does_not_lose_the_message_and_a_retry_stores_it_once(memory: Memory) -> None:
    class Failing(Rules):
        def _generate(self, *arguments: Any, **more: Any) -> Any:
            raise ConnectionError("no network")

    middleware = MemoryMiddleware(memory)
    failing, working = (create_agent(model, middleware=[middleware]) for model in (Failing(), Rules()))
    for agent, raises in ((failing, True), (failing, True), (working, False)):
        with pytest.raises(ConnectionError) if raises else nullcontext():
            agent.invoke({"messages": QUESTION}, run_of("ann", "t1"))
    assert [content for _, content, _ in stored_notes(memory, USER_ANN)] == [
        "What is Ann allergic to?", "I shall tell the cook."
    ]  # fmt: skip


@needs_async_config
def test_a_model_with_a_memory_works_in_a_graph(memory: Memory) -> None:
    memory.add("Ann is allergic to walnuts.", speaker="Ben", scope=USER_ANN)
    rules = Rules()
    model = with_memory(memory, rules, user="Ann", assistant="cook")

    def sync_node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}  # LangGraph passes the config on

    async def async_node(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"], config)]}

    for node, thread in ((sync_node, "t1"), (async_node, "t2")):
        rules.answer = f"I shall tell the cook in {thread}."
        graph = StateGraph(MessagesState).add_node("chat", node).add_edge(START, "chat").compile()
        answer = asyncio.run(graph.ainvoke({"messages": QUESTION}, run_of("ann", thread)))
        assert "Ben: Ann is allergic to walnuts." in rules.system()
        assert [message.type for message in answer["messages"]] == ["human", "ai"]
    assert stored_notes(memory, USER_ANN)[1:] == [
        ("Ann", "What is Ann allergic to?", "t1"), ("cook", "I shall tell the cook in t1.", "t1"),
        ("Ann", "What is Ann allergic to?", "t2"), ("cook", "I shall tell the cook in t2.", "t2"),
    ]  # fmt: skip


def test_a_model_with_a_memory_takes_what_a_chat_model_takes(memory: Memory) -> None:
    model = with_memory(memory, Rules())
    prompt = ChatPromptTemplate.from_messages([("user", "I have {what}.")])
    model.invoke("I have a boat.", run_of("ann"))
    asyncio.run(model.ainvoke([("user", "I have a dog.")], run_of("ann")))
    (prompt | model).invoke({"what": "a cello"}, run_of("ann"))
    stored = [text for speaker, text, _ in stored_notes(memory, USER_ANN) if speaker == "user"]
    assert stored == ["I have a boat.", "I have a dog.", "I have a cello."]
    for wrong in ({"messages": QUESTION}, 3):
        with pytest.raises(InvalidInput, match=r"takes a text or a list of messages, not .*: pass state\["):
            model.invoke(wrong, run_of("ann"))


def test_a_model_with_a_memory_preserves_the_system_message(memory: Memory) -> None:
    memory.add("Ann is allergic to walnuts.", speaker="Ben", scope=USER_ANN)
    rules = Rules()
    parts: list[str | dict[str, Any]] = [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]
    messages = [SystemMessage(parts, id="s1", name="rules"), HumanMessage("What is Ann allergic to?")]
    with_memory(memory, rules).invoke(messages, run_of("ann"))
    system, _ = rules.read[-1]
    assert (system.id, system.name, system.content[:1]) == ("s1", "rules", parts)
    assert "walnuts" in system.content[1]["text"]
    assert messages[0].content == parts


@pytest.mark.anyio
async def test_the_middleware_works_with_an_async_memory(tmp_path: Path) -> None:
    async with AsyncMemory(tmp_path / "zettel.db") as memory:
        middleware = [MemoryMiddleware(memory)]
        agent = create_agent(Rules(), memory_tools(memory), middleware=middleware, context_schema=Context)
        await agent.ainvoke({"messages": QUESTION}, run_of("ann", "t1"), context=Context("ann"))
        assert [note.content for note in (await memory.list(scope=USER_ANN)).notes] == [
            "What is Ann allergic to?", "I shall tell the cook."
        ]  # fmt: skip


def test_the_example_prints_its_answers(run_example: Callable[..., str], agent: AgentServer) -> None:
    assert run_example(CHECKOUT / "examples" / "agents_langgraph.py").splitlines() == [
        "ann: Remember: I am allergic to walnuts.",
        "  Noted.",
        "ann: What am I allergic to?",
        "  I am allergic to walnuts.",
        "bob: What am I allergic to?",
        "  I do not know.",
        "ann: Am I allergic to anything?",
        "  I am allergic to walnuts.",
        "bob: Where do I live?",
        "  I have no tools.",
        "stored by the run: {'text': 'Ann was here.'}",
    ]
    assert len(agent.requests) == 8
