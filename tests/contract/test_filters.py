"""Filters: every store selects as plain Python does, by operators on metadata and fields, before any top-k."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from zettel import Memory, Note

pytestmark = pytest.mark.over_http

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
VALUES: list[Any] = [0, 1, 2, 2.5, -1, "1", "2", "red", "Red", "blue", True, False, None, ["red", 1], ["1"], {"w": 1}]
NAMES = ("a", "b", "c", "tags")
"""Metadata keys. The last is the name of a field too, so filters name it ``metadata.tags``."""
EXPRESSIONS = 1000
Predicate = Callable[[Note], bool]


def fill(memory: Memory, count: int = 60) -> list[Note]:
    chance = random.Random(4)
    memory.add_many(
        {
            "content": f"Crate {number} is on the quay. #{chance.choice(['tea', 'tin', 'oak'])}",
            "speaker": chance.choice(["Ann", "Bob"]), "session": f"s{number % 3}",
            "occurred_at": START + timedelta(days=number),
            "metadata": {name: chance.choice(VALUES) for name in NAMES if chance.random() < 0.7},
        }
        for number in range(count)
    )  # fmt: skip
    memory.flush()
    return everything(memory)


def everything(memory: Memory, **conditions: Any) -> list[Note]:
    notes, page = [], memory.list(limit=50, **conditions)
    while True:
        notes += page.notes
        if page.cursor is None:
            return notes
        page = memory.list(limit=50, cursor=page.cursor, **conditions)


def plain(value: Any) -> Any:
    """Return a value in which equality is equality of JSON with types."""
    if isinstance(value, bool) or value is None:
        return ("literal", value)
    if isinstance(value, (int, float)):
        return ("number", float(value))
    if isinstance(value, list):
        return ("list", tuple(map(plain, value)))
    if isinstance(value, dict):
        return ("object", tuple(sorted((key, plain(each)) for key, each in value.items())))
    return value


def comparison(chance: random.Random) -> tuple[dict[str, Any], Predicate]:
    name = chance.choice(NAMES)
    key = f"metadata.{name}" if name == "tags" else name
    value = chance.choice(VALUES)

    def found(note: Note) -> Any:
        return note.metadata.get(name)

    which = chance.randrange(8)
    if which == 0 and not isinstance(value, dict):
        return {key: value}, lambda note: plain(found(note)) == plain(value)
    if which <= 1:
        return {key: {"eq": value}}, lambda note: plain(found(note)) == plain(value)
    if which == 2:
        return {key: {"$ne": value}}, lambda note: plain(found(note)) != plain(value)
    if which == 3:
        values = chance.sample(VALUES, 3)
        return {key: {"in": values}}, lambda note: plain(found(note)) in [plain(each) for each in values]
    if which == 4:
        bound = chance.choice([0, 1.5, 2, -1])
        return {key: {"gte": bound}}, lambda note: plain(found(note))[0] == "number" and found(note) >= bound
    if which == 5:
        text = chance.choice(["R", "blue", "1"])
        return {key: {"lt": text}}, lambda note: isinstance(found(note), str) and found(note) < text
    if which == 6:
        return {key: {"exists": True}}, lambda note: found(note) is not None
    part = chance.choice(["e", "1", "Red"])

    def contains(note: Note) -> bool:
        value = found(note)
        return part in value if isinstance(value, str) else isinstance(value, list) and part in map(plain, value)

    return {key: {"contains": part}}, contains


def of_field(chance: random.Random) -> tuple[dict[str, Any], Predicate]:
    day = START + timedelta(days=chance.randrange(60))
    tag = chance.choice(["tea", "tin", "oak"])
    return chance.choice([
        ({"occurred_at": {"gte": day.isoformat()}}, lambda note: bool(note.occurred_at and note.occurred_at >= day)),
        ({"tags": {"contains": tag}}, lambda note: tag in note.tags),
        ({"tags": tag}, lambda note: tag in note.tags),
        ({"speaker": {"ne": "Ann"}}, lambda note: note.speaker != "Ann"),
        ({"content": {"icontains": "CRATE 1"}}, lambda note: "crate 1" in note.content.lower()),
        ({"session": {"in": ["s1", "s2"]}}, lambda note: note.session in ("s1", "s2")),
    ])  # fmt: skip


def expression(chance: random.Random, depth: int = 0) -> tuple[dict[str, Any], Predicate]:
    """Return a random filter, and the same as a function."""
    which = chance.randrange(8) if depth < 3 else 0
    if which < 4:
        return comparison(chance) if which else of_field(chance)
    parts = [expression(chance, depth + 1) for _ in range(chance.randrange(1, 4))]
    filters, tests = [part for part, _ in parts], [test for _, test in parts]
    if which == 4:
        return {"or": filters}, lambda note: any(test(note) for test in tests)
    if which == 5:
        return {"AND": filters}, lambda note: all(test(note) for test in tests)
    if which == 6:
        return {"not": filters[0]}, lambda note: not tests[0](note)
    joined: dict[str, Any] = {}
    chosen = []
    for part, test in parts:
        if joined.keys().isdisjoint(part):
            joined |= part
            chosen.append(test)
    return joined, lambda note: all(test(note) for test in chosen)


def test_random_filters_select_as_python_does(memory: Memory, soak_scale: Callable[[int], int]) -> None:
    notes = fill(memory)
    chance = random.Random(7)
    for _ in range(soak_scale(EXPRESSIONS)):
        filter, is_met = expression(chance)
        expected = {note.id for note in notes if is_met(note)}
        assert {note.id for note in everything(memory, filter=filter)} == expected, filter
        hits = memory.search("crate on the quay", k=60, filter=filter, log=False)
        assert {hit.note.id for hit in hits} == expected, filter
        assert memory.query(filter=filter, limit=0).count == len(expected), filter


def test_a_filter_applies_before_the_best_hits_are_chosen(memory: Memory) -> None:
    years = range(1700, 2000)
    memory.add_many({"content": f"The red boat sails in {year}.", "metadata": {"year": year}} for year in years)
    memory.add("A walnut tree.", metadata={"year": 2024})
    memory.flush()
    (hit,) = memory.search("the red boat", k=3, filter={"year": {"gt": 1999}})
    assert hit.note.content == "A walnut tree."
    assert [hit.note.metadata["year"] for hit in memory.search("the red boat", k=2, filter={"year": 1750.0})] == [1750]


def test_a_filter_reads_the_past_with_known_at(memory: Memory) -> None:
    id = memory.add("The red boat is in Oslo.", metadata={"state": 1})
    before = memory.get(id).recorded_at
    memory.update(id, metadata={"state": 2})
    assert memory.search("red boat", filter={"state": {"lt": 2}}) == []
    assert [hit.note.id for hit in memory.search("red boat", filter={"state": {"lt": 2}}, known_at=before)] == [id]
    assert memory.search("red boat", filter={"state": {"gte": 2}}, known_at=before) == []
    assert len(memory.search("red boat", filter={"state": {"gte": 2}})) == 1


def test_archived_notes_pass_the_filter_too(memory: Memory) -> None:
    for price in (1, 5):
        memory.archive(memory.add(f"The boat costs {price}.", metadata={"price": price}))
    hits = memory.search("boat", filter={"price": {"gte": 3}}, archived=True)
    assert [hit.note.metadata["price"] for hit in hits] == [5]
    assert [note.metadata["price"] for note in memory.list(filter={"price": {"lt": 3}}, archived=True).notes] == [1]
