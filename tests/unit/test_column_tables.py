"""Columnar lists and indexes, compared with dictionaries after any order of puts and drops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.graph.columnar import tables
from zettel.graph.columnar.segments import InvertedIndex
from zettel.graph.columnar.tables import KeyTable, RowLists, Table, spans

rows = st.integers(0, 7)
entries = st.dictionaries(st.integers(-3, 3), st.integers(1, 9), max_size=4)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.dictionaries(rows, entries, min_size=1, max_size=4)),
        st.tuples(st.just("drop"), st.sets(rows, max_size=4)),
        st.tuples(st.just("copy"), st.none()),
        st.tuples(st.just("settle"), st.none()),
        st.tuples(st.just("restore"), st.none()),
    ),
    max_size=30,
)


def flat(put: dict[int, dict[int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows, the number of entries of each row, and all keys and values."""
    at = np.array(list(put), np.int64)
    sizes = np.array([len(entries) for entries in put.values()], np.int64)
    pairs = np.array([pair for entries in put.values() for pair in entries.items()], np.int64).reshape(-1, 2)
    return at, sizes, pairs[:, 0], pairs[:, 1]


def owned(saved: Iterable[tuple[str, Any]]) -> dict[str, np.ndarray]:
    """Return saved arrays as a file returns them."""
    return {name: np.array(array[:]) for name, array in saved}


@given(steps)
def test_an_index_returns_the_current_entries(plan: list[tuple[str, Any]]) -> None:
    index, expected_rows = InvertedIndex(np.int16), dict[int, dict[int, int]]()
    left: tuple[InvertedIndex, dict[int, dict[int, int]]] = (index.copy(), {})
    for action, drawn in plan:
        if action == "put":
            at, sizes, keys, values = flat(drawn)
            index.drop(at)
            index.post(np.repeat(at, sizes), keys, values)
            expected_rows = {**expected_rows, **drawn}
        elif action == "drop":
            index.drop(np.array(sorted(drawn), np.int64))
            expected_rows = {row: pairs for row, pairs in expected_rows.items() if row not in drawn}
        elif action == "settle":
            index.merge()
        elif action == "restore":
            saved, index = owned(index.save()), InvertedIndex(np.int16)
            index.load(saved, 8)
        else:
            left, index = (index, expected_rows), index.copy()
    for current, expected in ((index, expected_rows), left):
        by_key = {
            key: sorted((row, pairs[key]) for row, pairs in expected.items() if key in pairs) for key in range(-3, 4)
        }
        for key, pairs in by_key.items():
            at, values = current.find(key)
            assert sorted(zip(at.tolist(), values.tolist(), strict=True)) == pairs
            assert current.counts([key]) == [len(pairs)]
            where, values = current.among(key, np.arange(8))
            assert sorted(zip(where.tolist(), values.tolist(), strict=True)) == pairs
        whose, at, values = current.find_many(np.arange(-3, 4))
        assert sorted(zip((whose - 3).tolist(), at.tolist(), values.tolist(), strict=True)) == sorted(
            (key, row, value) for key, pairs in by_key.items() for row, value in pairs
        )


@given(steps)
def test_lists_contain_the_latest_values(plan: list[tuple[str, Any]]) -> None:
    lists, expected = RowLists(key=(np.int32, ()), value=(np.int16, ())), dict[int, list[tuple[int, int]]]()
    for action, drawn in plan:
        if action == "put":
            at, sizes, keys, values = flat(drawn)
            lists.put(at, sizes, key=keys, value=values)
            expected |= {row: list(pairs.items()) for row, pairs in drawn.items()}
        elif action == "drop":
            lists.drop(np.array(sorted(drawn), np.int64))
            expected |= {row: [] for row in drawn}
        elif action == "restore":
            saved, lists = owned(lists.save()), RowLists(key=(np.int32, ()), value=(np.int16, ()))
            lists.load(saved, 8)
        else:
            lists = lists.copy()
    whose, places = lists.take(np.arange(10))
    actual: dict[int, list[tuple[int, int]]] = {}
    pairs = zip(lists["key"][places].tolist(), lists["value"][places].tolist(), strict=True)
    for row, (key, value) in zip(whose.tolist(), pairs, strict=True):
        actual.setdefault(row, []).append((key, value))
    assert actual == {row: pairs for row, pairs in expected.items() if pairs}


def test_lists_drop_unused_entries() -> None:
    lists, row = RowLists(value=(np.int64, ())), np.array([0])
    for number in range(10):
        lists.put(row, np.array([1000]), value=np.full(1000, number))
    assert len(lists["value"]) < 10_000
    assert set(lists["value"][lists.take(row)[1]].tolist()) == {9}


def test_an_index_merges_its_segments() -> None:
    index = InvertedIndex(np.int16)
    for row in range(500):
        index.post(np.array([row]), np.array([row % 7]), np.array([1]))
        index.merge()
    assert len(index._segments) < 8
    assert index.counts([3]) == [len(range(3, 500, 7))]


def test_an_index_may_become_empty() -> None:
    index = InvertedIndex(np.int16)
    for row in range(2):
        index.post(np.array([row]), np.array([3]), np.array([1]))
    index.drop(np.arange(2))
    index.merge()
    assert index.counts([3]) == [0]
    assert [array.tolist() for array in index.find_many(np.array([3, 4]))] == [[], [], []]


@given(st.lists(st.lists(st.integers(-9, 9), max_size=6), max_size=12), st.sampled_from([1, 4096]))
def test_each_name_has_one_number(drawn: list[list[int]], few: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tables, "FEW", few)
        numbers, known = KeyTable(), dict[int, int]()
        for keys in drawn:
            for key in sorted({*keys} - known.keys()):
                known[key] = len(known)
            assert numbers.take(np.array(keys, np.int64)).tolist() == [known[key] for key in keys]
        numbers_copy = numbers.copy()
        numbers.take(np.array([100]))
        assert numbers_copy.find(range(-9, 10)) == [known.get(key, -1) for key in range(-9, 10)]
        assert numbers_copy.find([100]) == [-1]
        assert numbers_copy.keys.tolist() == list(known)
        used = np.arange(len(known)) % 3 > 0
        restored = KeyTable()
        restored.load(owned(numbers_copy.save(used)), len(known))
        left = {key: number for key, number in known.items() if used[number]}
        assert restored.find(range(-9, 10)) == [left.get(key, -1) for key in range(-9, 10)]
        assert restored.take(np.array([100])).tolist() == [len(known)]  # numbers are unique


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=8))
def test_spans_enumerate_the_places_of_each_range(drawn: list[tuple[int, int]]) -> None:
    starts, sizes = np.array(drawn, np.int64).reshape(-1, 2).T
    whose, places = spans(starts, sizes)
    assert list(zip(whose.tolist(), places.tolist(), strict=True)) == [
        (number, start + step) for number, (start, size) in enumerate(drawn) for step in range(size)
    ]


def test_a_table_keeps_the_given_rows() -> None:
    table = Table(number=(np.int64, ()), pair=(np.float32, (2,)))
    table.append(number=np.arange(1000), pair=np.ones((1000, 2)))
    table.keep(np.array([5, 3]))
    table.append(number=np.array([7]), pair=np.zeros((1, 2)))
    assert table["number"].tolist() == [5, 3, 7]
    assert table["pair"].tolist() == [[1, 1], [1, 1], [0, 0]]
