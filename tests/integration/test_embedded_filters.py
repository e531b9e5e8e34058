"""Lists by metadata are the same whether few notes have it, and are looked up, or many, and all are gone through."""

from __future__ import annotations

from pathlib import Path

import pytest

from zettel import Memory
from zettel.graph.embedded import reads

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("few", [0, 3, 500])
def test_lists_by_metadata(few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "FEW", few)
    with Memory(tmp_path / "a.db") as memory:
        ids = memory.add_many([
            {"content": f"The heron number {n} stands in the river.", "session": f"s{n % 2}",
             "metadata": {"n": n, "third": n % 3, "all": True}} for n in range(12)
        ])  # fmt: skip
        memory.archive(ids[3])

        def listed(**asked: object) -> list[int]:
            found: list[int] = []
            cursor = None
            while True:
                page = memory.list(filter=asked, limit=2, cursor=cursor)
                found += [ids.index(note.id) for note in page.notes]
                cursor = page.cursor
                if cursor is None:
                    return found

        assert listed(all=True) == [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]
        assert listed(third=0) == [0, 6, 9]
        assert listed(third=0, all=True, n=6) == [6]
        assert listed(third=1, n=6) == []
        assert listed(n=12) == []
        assert [ids.index(note.id) for note in memory.list(filter={"third": 0}, session="s0").notes] == [0, 6]
        assert [ids.index(note.id) for note in memory.list(filter={"third": 0}, archived=True).notes] == [3]
