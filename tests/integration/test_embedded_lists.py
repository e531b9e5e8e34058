"""A scope that has grown large is searched by inverted lists: found beside link jobs, kept in the file, right after
changes."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from zettel import Memory
from zettel.bench.synthetic import large_scope
from zettel.graph.embedded import inverted, lists

pytestmark = pytest.mark.integration

NOTES = 3000
LARGE = 1200
OVERLAP = 0.98


def hits(memory: Memory, questions: list[str], **search: Any) -> list[list[str]]:
    return [[hit.note.content for hit in found] for found in memory.search_many(questions, **search)]


def shared(some: list[list[str]], others: list[list[str]]) -> float:
    pairs = zip(some, others, strict=True)
    return sum(len({*one} & {*other}) / max(len(other), 1) for one, other in pairs) / len(some)


def kept(path: Path) -> list[tuple[int, int, int]]:
    """Epoch, vectors trained on and vectors assigned, of each scope's lists."""
    with sqlite3.connect(path) as sql:
        rows = sql.execute("SELECT epoch, trained, LENGTH(assigned) / 10 FROM lists").fetchall()
    sql.close()
    return rows


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few vectors are many here."""
    monkeypatch.setattr(lists, "LARGE", LARGE)
    monkeypatch.setattr(lists, "_SAMPLED", 8)
    monkeypatch.setattr(inverted, "PROBED", 24)
    monkeypatch.setattr(inverted, "FEW_ALLOWED", 200)


def test_a_large_scope(tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    events, questions = large_scope(NOTES)
    path, plain = tmp_path / "large.db", tmp_path / "plain.db"
    with Memory(path) as memory:
        memory.add_many(events[:2000])
        memory.flush()
        found_at = kept(path)
        assert found_at[0][0] == 1
        assert LARGE <= found_at[0][1] <= 2000
        memory.add_many(events[2000:])  # come to lists that are there
        memory.flush()
        large = hits(memory, questions)
        filtered = hits(memory, questions, role="Ann")
        said = {event.content: event.role for event in events}
        assert {said[content] for found in filtered for content in found} == {"Ann"}
    monkeypatch.setattr(lists, "LARGE", 10**9)
    with Memory(plain) as memory:
        memory.add_many(events)
        memory.flush()
        assert shared(large, hits(memory, questions)) >= OVERLAP
        assert shared(filtered, hits(memory, questions, role="Ann")) >= OVERLAP
    assert kept(plain) == []
    # Whoever opens the store finds the lists: nothing is trained, and few vectors are assigned anew.
    monkeypatch.setattr(lists, "find", None)
    assert kept(path)[0][2] >= (1 - lists.WRITTEN_AT) * NOTES
    with Memory(path) as memory:
        assert shared(hits(memory, questions), large) >= OVERLAP
        gone = [found[0].note for found in memory.search_many(questions[:5])]
        for note in gone:
            memory.delete(note.id)
        memory.flush()
        left = hits(memory, questions)
        assert not {note.content for note in gone} & {content for found in left for content in found}
        assert memory.check() == []
        memory.delete_scope()
    assert kept(path) == []


def test_lists_found_by_another_process_are_taken_over(tmp_path: Path, small: None) -> None:
    events, questions = large_scope(NOTES)
    path = tmp_path / "shared.db"
    with Memory(path) as one, Memory(path) as other:
        one.add_many(events[:1300])
        one.flush()
        assert kept(path)[0][0] == 1
        before = hits(other, questions)
        one.add_many(events[1300:])
        one.flush()
        assert shared(hits(other, questions), hits(one, questions)) >= OVERLAP
        assert shared(before, hits(one, questions)) < 1


def test_lists_are_found_anew_after_growth(tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "LARGE", 500)
    events, questions = large_scope(NOTES)
    with Memory(tmp_path / "grown.db") as memory, Memory(tmp_path / "grown.db") as other:
        memory.add_many(events[:500])
        memory.flush()
        first = kept(tmp_path / "grown.db")
        hits(other, questions[:3])
        memory.add_many(events[500:])
        memory.flush()
        ((epoch, trained, _),) = kept(tmp_path / "grown.db")
        assert epoch > first[0][0]
        assert trained >= lists.GROWTH * first[0][1]
        assert shared(hits(other, questions), hits(memory, questions)) >= OVERLAP
