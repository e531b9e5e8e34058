"""Filters: their syntax, and the comparison of typed values."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from enum import Enum
from typing import Any

import pytest

from zettel.core.conditions import filter_of
from zettel.errors import InvalidInput
from zettel.model import Kind, Note
from zettel.ports.candidate_rules import passes


class Colour(str, Enum):
    RED = "red"


NOTE = Note(
    id="n", content="The red boat leaks.", tags=("boat", "repair"), importance=0.8, event_ids=("e",), seq=1,
    recorded_at=datetime(2024, 5, 1, tzinfo=timezone.utc), occurred_at=datetime(2024, 4, 30, 9, tzinfo=timezone.utc),
    metadata={"price": 3, "rate": 1.0, "size": "10", "draft": True, "team": "red", "labels": ["a", "B", 1], 
              "none": None, "box": {"w": 1}, "title": "of the metadata"},
)  # fmt: skip


def test_filters_compare_with_types() -> None:
    passing: list[dict[str, Any]] = [
        {}, {"team": "red"}, {"price": 3}, {"price": 3.0}, {"rate": 1}, {"size": "10"}, {"draft": True},
        {"price": {"gte": 3, "lt": 4}}, {"size": {"lt": "2"}}, {"team": {"in": ["blue", "red"]}},
        {"team": {"$ne": "blue"}}, {"missing": {"ne": 1}}, {"missing": None}, {"none": None},
        {"missing": {"exists": False}}, {"none": {"exists": False}}, {"price": {"exists": True}},
        {"labels": {"contains": "a"}}, {"labels": {"icontains": "b"}}, {"team": {"contains": "ed"}},
        {"team": {"icontains": "RE"}}, {"labels": ["a", "B", 1]}, {"box": {"eq": {"w": 1.0}}},
        {"price": {"nin": ["3", 4]}}, {"or": [{"team": "blue"}, {"price": 3}]}, {"not": {"team": "blue"}},
        {"NOT": [{"team": "blue"}, {"price": 4}]}, {"AND": [{"team": "red"}, {"draft": True}]},
        {"tags": "boat"}, {"tags": {"contains": "repair"}}, {"tags": ["boat", "repair"]}, {"importance": {"gt": 0.5}},
        {"occurred_at": {"gte": "2024-04-30", "lt": "2024-05-01"}}, {"kind": "episodic"}, {"title": None},
        {"metadata.title": "of the metadata"}, {"kind": {"in": ["episodic", "insight"]}}, {"session": None},
        {"kind": Kind.EPISODIC}, {"kind": {"in": [Kind.EPISODIC]}}, {"team": Colour.RED}, {"price": {"in": (3.0,)}},
        {"team": {"in": [Colour.RED]}}, {"labels": {"in": [("a", "B", 1.0)]}}, {"box": {"in": [{"w": 1.0}]}},
        {"missing": {"in": [None]}}, {"draft": {"nin": [1, "true"]}},
    ]  # fmt: skip
    assert [filter for filter in passing if not passes(NOTE, filter_of(filter=filter))] == []
    failing: list[dict[str, Any]] = [
        {"price": "3"}, {"size": 10}, {"draft": 1}, {"rate": True}, {"size": {"lt": 20}}, {"draft": {"gte": 0}},
        {"missing": {"gt": 0}}, {"missing": {"contains": "a"}}, {"labels": {"contains": "1"}}, {"labels": "a"},
        {"labels": ["a", "B", True]}, {"team": {"contains": "RE"}}, {"or": [{"team": "blue"}, {"price": 4}]},
        {"not": {"team": "red"}}, {"not": [{"team": "red"}, {"price": 4}]}, {"tags": "bo"},
        {"title": "of the metadata"}, {"team": "red", "metadata.team": "blue"},
        {"occurred_at": {"gt": "2024-04-30T09:00Z"}}, {"none": {"exists": True}}, {"team": {"nin": ["red"]}},
        {"price": {"gte": 3, "lt": 3}}, {"kind": {"ne": "episodic"}}, {"team": "red", "price": 4},
    ]  # fmt: skip
    assert [filter for filter in failing if passes(NOTE, filter_of(filter=filter))] == []


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        ("red", "filter='red' must be a dict"),
        ({"price": {"gtee": 3}}, r"filter\['price'\]: unknown operator 'gtee': use one of eq, ne, gt"),
        ({"box": {"w": 1}}, "compare with a whole object by {'eq'"),
        ({"price": {}}, "has no operator"),
        ({"price": {"in": "3"}}, "'in' takes a list"),
        ({"price": {"exists": 1}}, "'exists' takes True or False"),
        ({"price": {"gt": None}}, "'gt' takes a number or a text"),
        ({"or": []}, r"filter\['or'\] must be a list of one or more filters"),
        ({"or": {"team": "red"}}, "must be a list"),
        ({"not": "red"}, "must be a list"),
        ({"or": [{"a": {"b": 1}}]}, r"filter\['or'\]\[0\]\['a'\]: unknown operator 'b'"),
        ({"importance": "high"}, "importance is a number"),
        ({"occurred_at": {"gte": "soon"}}, "is not a time"),
        ({"kind": "dream"}, "must be one of episodic"),
        ({"tags": {"gt": "a"}}, "tags is a list"),
        ({1: "red"}, "has the name 1"),
        ({"tags": {"in": ["boat"]}}, "tags is a list: use 'contains'"),
        ({"occurred_at": {"contains": "2024-05-01"}}, "occurred_at is a time"),
        ({"occurred_at": {"gte": None}}, "None cannot be compared by 'gte'"),
        ({"importance": {"contains": 0.5}}, "importance is a number"),
        ({"day": datetime(2024, 5, 1)}, "is not a JSON value"),
        ({"price": {"in": [{3}]}}, "is not a JSON value"),
        ({"team": "\ud800"}, "contains a lone surrogate"),
        ({"\ud800": "red"}, "contains a lone surrogate"),
        ({"team": {"ne": "a\x00"}}, "contains a NUL character"),
        ({"a": float("nan")}, "nan, which is not a JSON value"),
        ({"a": {"in": [1] * 3, "nin": [2]}, "or": [{"b": 1}] * 101}, "more than 100 comparisons"),
    ],
)
def test_faulty_filters_are_refused(filter: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        filter_of(filter=filter)


def test_long_lists_are_compared_by_hash() -> None:
    where = filter_of(filter={"price": {"nin": list(range(10, 200_000))}, "team": {"in": list(map(str, range(9_999)))}})
    start = time.perf_counter()
    assert not any(passes(NOTE, where) for _ in range(1000))
    assert time.perf_counter() - start < 1


def test_deep_filters_are_refused() -> None:
    filter: dict[str, Any] = {"team": "red"}
    for _ in range(50):
        filter = {"not": filter}
    with pytest.raises(InvalidInput, match="nested more than"):
        filter_of(filter=filter)


def test_an_empty_range_of_time_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"since=2024-06-01.* must be before until=2024-05-01"):
        filter_of(since="2024-06-01", until="2024-05-01")
    assert filter_of(since="2024-05-01", until="2024-06-01").since is not None
