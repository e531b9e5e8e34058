"""Refused transfers: a truncated file changes nothing, and partial imports are invisible."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zettel.core.restore
from tests.contract.transfer_helpers import records, sealed, store_of, unsealed
from zettel import Memory, Scope
from zettel.errors import BadRecord, InvalidInput, StoreBusy

pytestmark = pytest.mark.soak_only("neo4j")


class TestDamagedFile:
    def test_every_truncation_is_refused(self, exported: Path, url: Any, tmp_path: Path) -> None:
        original, cut = exported.read_bytes(), tmp_path / "cut.zettel"
        lines = original.splitlines(keepends=True)
        with Memory(url) as memory:
            for count in range(1, len(lines)):
                cut.write_bytes(b"".join(lines[:count]))
                with pytest.raises(BadRecord, match=rf"cut\.zettel:{count}: the file is truncated after this line"):
                    memory.import_transcript(cut)
            cut.write_bytes(original[:-20])
            with pytest.raises(BadRecord, match=rf":{len(lines)}: the file is truncated in this line"):
                memory.import_transcript(cut)
            assert memory.scopes() == []
            assert memory.stats()["notes"] == 0

    def test_every_damage_names_its_line(self, exported: Path, url: Any, tmp_path: Path) -> None:
        lines, bad = exported.read_bytes().splitlines(keepends=True), tmp_path / "bad.zettel"
        with Memory(url) as memory:
            for number in range(2, len(lines) + 1, 5):
                line = lines[number - 1]
                place = len(line) // 2
                broken = line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :]
                lost = number - (number == len(lines))
                for changed, wrong in (([broken], number), ([], lost), ([line, line], number + 1)):
                    bad.write_bytes(b"".join([*lines[: number - 1], *changed, *lines[number:]]))
                    with pytest.raises(BadRecord, match=rf"bad\.zettel:{wrong}: "):
                        memory.import_transcript(bad)
            assert memory.scopes() == []

    def test_a_later_version_is_refused(self, exported: Path, url: Any, tmp_path: Path) -> None:
        header = b'{"zettel":{"version":4,"colour":"blue"}'
        line = header + b',"crc":"%08x"}\n' % zlib.crc32(header)
        (tmp_path / "new.zettel").write_bytes(line + records(exported))
        with Memory(url) as memory, pytest.raises(BadRecord, match=r"new\.zettel:1: version 4 .*newer than version 3"):
            memory.import_transcript(tmp_path / "new.zettel")

    @pytest.mark.parametrize(
        ("record", "wrong"),
        [
            ({"event": {"content": "x"}, "identity": "1"}, "event_id"),
            ({"event": {"event_id": "e_1"}}, "seq: Field required"),
            ({"mention": {}}, "source: Field required"),
            ({"links": []}, "'of' is missing"),
            ({"note": {"id": "n_1"}, "revisions": [], "vectors": {}}, "content"),
            ({"note": []}, "valid dictionary"),
            ({"job": {"kind": "paint"}}, "kind"),
            ({"mood": "fine"}, "job"),
        ],
    )
    def test_an_invalid_record_is_refused(
        self, record: dict[str, Any], wrong: str, url: Any, exported: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "odd.zettel").write_bytes(sealed([*unsealed(exported)[:3], record]))
        with Memory(url) as memory:
            with pytest.raises(BadRecord, match=rf"odd\.zettel:5: .*{wrong}"):
                memory.import_transcript(tmp_path / "odd.zettel")
            assert memory.scopes() == []
            assert memory.check() == []

    def test_a_foreign_file_is_refused(self, url: Any, tmp_path: Path) -> None:
        (tmp_path / "else.jsonl").write_text('{"content": "Snow."}\n')
        with Memory(url) as memory, pytest.raises(BadRecord, match="not a memory file"):
            memory.import_transcript(tmp_path / "else.jsonl", "zettel")


class TestInterruptedImport:
    """A scope is invisible until its import is complete."""

    @pytest.fixture
    def stopped(self, exported: Path, url: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
        """A memory with an import that was killed before it could clean up."""
        monkeypatch.setattr(zettel.core.restore, "BATCH", 4)
        with Memory(url) as memory:
            store, batches = store_of(memory), 0
            apply, abandon = store.apply, store.abandon_restore

            async def fail_after_five(batch: Any) -> None:
                nonlocal batches
                batches += 1
                if batches > 5:
                    raise OSError("killed")
                await apply(batch)

            async def skip(scope: Scope) -> None: ...

            store.apply, store.abandon_restore = fail_after_five, skip
            with pytest.raises(OSError, match="killed"):
                memory.import_transcript(exported)
            store.apply, store.abandon_restore = apply, abandon
            yield memory

    def test_an_interrupted_import_is_invisible(self, stopped: Memory) -> None:
        assert stopped.scopes() == []
        assert stopped.list().notes == ()
        assert stopped.search("Where does Ann live?") == []
        assert stopped.stats()["notes"] == 0
        assert stopped.jobs() == []
        assert stopped.reembed() == 0
        (line,) = stopped.check()
        assert "unfinished or was interrupted" in line
        stopped.check(repair=True)
        assert stopped.check() == []

    def test_the_next_import_starts_again(self, stopped: Memory, exported: Path) -> None:
        assert stopped.import_transcript(exported).added > 5
        assert stopped.check() == []

    def test_a_write_after_an_interruption_refuses_the_import(self, stopped: Memory, exported: Path) -> None:
        stopped.add("Snow fell.")
        with pytest.raises(InvalidInput, match="is not empty"):
            stopped.import_transcript(exported)
        stopped.delete_scope()
        assert stopped.check() == []

    def test_a_failed_import_leaves_nothing(self, exported: Path, url: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(zettel.core.restore, "BATCH", 4)
        with Memory(url) as memory:

            def stop(read: int, total: int) -> None:
                if read > total / 2:
                    raise RuntimeError("enough")

            with pytest.raises(RuntimeError, match="enough"):
                memory.import_transcript(exported, on_progress=stop)
            assert memory.check() == []
            assert memory.scopes() == []

    def test_a_concurrent_write_refuses_the_import(self, exported: Path, url: Any) -> None:
        with Memory(url) as memory, Memory(url) as other:

            def write(read: int, total: int) -> None:
                if not other.scopes():
                    other.add("I was quicker.")

            with pytest.raises(StoreBusy, match="by somebody else meanwhile"):
                memory.import_transcript(exported, on_progress=write)
            assert [note.content for note in memory.list().notes] == ["I was quicker."]
