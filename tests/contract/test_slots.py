"""Slots: what a scorer's bank makes of a scope's notes is kept with the scope, and is told to nobody else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.contract.support import LIFE
from zettel import Memory, Scope
from zettel.embed.static import StaticEmbedder
from zettel.errors import InvalidInput
from zettel.query import Question, Shortlist
from zettel.search.slots import KEY

EMBEDDER = StaticEmbedder().info.fingerprint
ASKED = "Where does Ann live?"


class Halving:
    """A bank of two slots: every chunk of notes counts twice as much as the one before."""

    name, embedder, chunk = "halving", EMBEDDER, 3

    def __init__(self) -> None:
        self.wrote: list[int] = []

    def write(self, vectors: np.ndarray, slots: np.ndarray | None) -> np.ndarray:
        self.wrote.append(len(vectors))
        slots = np.zeros((2, 4), np.float32) if slots is None else slots
        for start in range(0, len(vectors), self.chunk):
            some = vectors[start : start + self.chunk]
            slots = slots / 2 + np.stack([some[:, :4].sum(axis=0), some[:, 4:8].max(axis=0)])
        return slots


class Reader:
    """Leaves the order, and keeps what it was told of the scope."""

    name, reads, wants_vectors = "reader", 100, False

    def __init__(self) -> None:
        self.bank = Halving()
        self.told: list[np.ndarray | None] = []

    async def rerank(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[np.ndarray]:
        self.told = [one.slots for one in shortlists]
        return [np.zeros(len(one.rows), np.float32) for one in shortlists]


def slots(memory: Memory, reader: Reader, **search: Any) -> np.ndarray | None:
    """What a search tells the reader."""
    assert memory.search(ASKED, scorer=reader, **search)
    (told,) = reader.told
    return told


def known(memory: Memory, reader: Reader, **search: Any) -> np.ndarray:
    """The same, where there are slots."""
    told = slots(memory, reader, **search)
    assert told is not None
    return told


def kept(memory: Memory, scope: Scope | None = None) -> str | None:
    """As the store has it."""
    inner = memory._bridge.inner
    text: str | None = memory._bridge.call(partial(inner._engine.store.answer, scope or inner.scope, KEY))
    return text


def expected(memory: Memory) -> np.ndarray:
    """What stands in the slots if all notes are written at once."""
    reader = Reader()
    memory.write_slots(anew=True, scorer=reader)
    return known(memory, reader)


def test_they_are_a_function_of_the_notes(memory: Memory) -> None:
    reader = Reader()
    for some in (LIFE[:1], LIFE[1:5], LIFE[5:]):
        memory.add_many(some)
        memory.write_slots(scorer=reader)
    told = known(memory, reader)
    assert max(reader.bank.wrote) == 3, "what stood there was not written again, but for the last chunk"
    np.testing.assert_allclose(told, expected(memory), rtol=1e-6)
    assert memory.write_slots(scorer=reader) == len(LIFE)


def test_nothing_was_written_and_nobody_reads_it(memory: Memory) -> None:
    memory.add_many(LIFE)
    reader = Reader()
    assert slots(memory, reader) is None
    assert kept(memory) is None
    with pytest.raises(InvalidInput, match="no bank of slots"):
        memory.write_slots()
    assert memory.write_slots(scorer=reader, scope=Scope(user="nobody")) == 0
    assert Scope(user="nobody") not in memory.scopes()


def test_a_clock_or_a_filter_hides_them(memory: Memory) -> None:
    memory.add_many(LIFE)
    reader = Reader()
    memory.write_slots(scorer=reader)
    assert slots(memory, reader) is not None
    for search in ({"as_of": "2024-06-01"}, {"known_at": "2100-01-01"}, {"session": "a"}, {"role": "Ann"}):
        assert slots(memory, reader, **search) is None


def test_they_stay_in_their_scope(memory: Memory) -> None:
    other = Scope(user="other")
    memory.add_many(LIFE)
    memory.add_many(LIFE[:2], scope=other)
    reader = Reader()
    memory.write_slots(scorer=reader)
    assert slots(memory, reader, scope=other) is None
    memory.write_slots(scorer=reader, scope=other)
    assert not np.allclose(known(memory, reader, scope=other), known(memory, reader))
    memory.delete_scope()
    assert not kept(memory)
    assert kept(memory, other)


@pytest.mark.parametrize("how", ["delete", "quarantine"])
def test_what_goes_takes_them_along(memory: Memory, how: str) -> None:
    memory.add_many(LIFE)
    reader = Reader()
    memory.write_slots(scorer=reader)
    before = known(memory, reader)
    getattr(memory, how)(memory.list().notes[1].id)
    memory.flush()
    assert not kept(memory)
    assert slots(memory, reader) is None
    assert memory.write_slots(scorer=reader) == len(LIFE) - 1
    assert not np.allclose(known(memory, reader), before)


def test_those_of_another_bank_are_not_read(memory: Memory) -> None:
    memory.add_many(LIFE)
    memory.write_slots(scorer=Reader())
    other, foreign = Reader(), Reader()
    other.bank.name, foreign.bank.embedder = "another", "another"
    assert slots(memory, other) is None
    assert memory.write_slots(scorer=other) == len(LIFE)
    assert slots(memory, other) is not None
    assert memory.write_slots(scorer=foreign) == 0
    assert slots(memory, foreign) is None


def test_they_are_kept_up_with_what_arrives(url: Any) -> None:
    reader = Reader()
    with Memory(url, scorer=reader) as memory:
        memory.add_many(LIFE[:4], wait=True)
        memory.add_many(LIFE[4:], wait=True)
    with Memory(url, scorer=reader) as memory:
        memory.search(ASKED)
        (told,) = reader.told
        assert told is not None
        np.testing.assert_allclose(told, expected(memory), rtol=1e-6)
