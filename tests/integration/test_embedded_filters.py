"""Lists filtered by metadata are the same with an index lookup and with a scan of all notes."""

from __future__ import annotations

from pathlib import Path

import pytest

from zettel import Memory
from zettel.graph.embedded import reads

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("few", [0, 3, 500])
def test_lookup_and_scan_list_the_same_notes(few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "FEW", few)
    with Memory(tmp_path / "a.db") as memory:
        ids = memory.add_many([
            {"content": f"The heron number {n} stands in the river.", "session": f"s{n % 2}",
             "metadata": {"n": n, "third": n % 3, "all": True}} for n in range(12)
        ])  # fmt: skip
        memory.archive(ids[3])

        def list_notes(**filters: object) -> list[int]:
            places: list[int] = []
            cursor = None
            while True:
                page = memory.list(filter=filters, limit=2, cursor=cursor)
                places += [ids.index(note.id) for note in page.notes]
                cursor = page.cursor
                if cursor is None:
                    return places

        assert list_notes(all=True) == [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]
        assert list_notes(third=0) == [0, 6, 9]
        assert list_notes(third=0, all=True, n=6) == [6]
        assert list_notes(third=1, n=6) == []
        assert list_notes(n=12) == []
        assert [ids.index(note.id) for note in memory.list(filter={"third": 0}, session="s0").notes] == [0, 6]
        assert [ids.index(note.id) for note in memory.list(filter={"third": 0}, archived=True).notes] == [3]
