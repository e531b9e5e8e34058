"""Exports of any events and of large memories, and the export command."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import re
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integration.command import CommandResult, Zettel
from zettel import AsyncMemory, Memory, Scope
from zettel.errors import InvalidInput
from zettel.exports import tracked_files

pytestmark = pytest.mark.integration

ID_BYTES = 400
"""A generous size of an id in a set."""

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
NAME = st.none() | st.sampled_from(["Ann", "bob ", "S/1"]) | TEXT
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "content": TEXT.map(lambda text: f"Said: {text}"),
            "id": st.none() | st.sampled_from(["1", "2"]) | TEXT,
            "title": NAME,
            "speaker": NAME,
            "session": NAME,
            "occurred_at": st.none()
            | st.sampled_from([datetime(1, 1, 1), datetime(2024, 5, 1, 9, 0, 0, 7)])
            | st.datetimes(min_value=datetime(1000, 1, 1), timezones=st.just(timezone.utc)),
            "source": st.none() | st.fixed_dictionaries({"file": TEXT, "position": NAME}),
            "payload": JSON,
            "metadata": st.dictionaries(TEXT, JSON, max_size=3),
        }
    ),
    max_size=6,
)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """Return one memory for all examples, which clear their scopes."""
    with Memory(tmp_path_factory.mktemp("any") / "any.db") as memory:
        yield memory


def refill(memory: Memory, events: list[dict[str, Any]]) -> tuple[Scope, Scope]:
    """Return a scope with only these events, and an empty scope."""
    first, second = Scope(user="first"), Scope(user="second")
    memory.delete_scope(scope=first)
    memory.delete_scope(scope=second)
    for event in events:
        memory.add_many([event], on_conflict="revise", scope=first)
    return first, second


class TestAnyEvents:
    @settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(events=EVENTS)
    def test_exporting_an_import_gives_the_same_bytes(
        self, memory: Memory, tmp_path: Path, events: list[dict[str, Any]]
    ) -> None:
        first, second = refill(memory, events)
        first_file, second_file = io.BytesIO(), io.BytesIO()
        memory.export(first_file, scope=first)
        (tmp_path / "one.jsonl").write_bytes(first_file.getvalue())
        report = memory.import_transcript(tmp_path / "one.jsonl", "jsonl", scope=second)
        assert report.rejected_records == []
        memory.export(second_file, scope=second)
        assert second_file.getvalue() == first_file.getvalue()

    @settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(events=EVENTS)
    def test_a_vault_preserves_texts(
        self, memory: Memory, tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, Any]]
    ) -> None:
        first, second = refill(memory, events)
        folder = tmp_path_factory.mktemp("vault")
        memory.export(folder, "markdown", scope=first)
        report = memory.import_transcript(folder, "markdown", scope=second)
        assert report.rejected_records == []
        ours, theirs = (memory.list(limit=100, scope=scope).notes for scope in (first, second))
        for note, other in zip(ours, theirs, strict=True):
            assert other.content == note.content
            assert other.occurred_at == note.occurred_at
            assert other.metadata == note.metadata
            for name in ("title", "speaker", "session"):  # readers strip properties
                assert (getattr(other, name) or "") == (getattr(note, name) or "").strip()


def peak_memory(call: Callable[[], object]) -> int:
    """Return the bytes that were allocated at the same time during a call."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_exports_use_constant_memory(tmp_path: Path) -> None:
    """More events take no more memory as lines, and as a graph only memory for their ids."""
    peaks: dict[str, list[int]] = {"jsonl": [], "graphml": []}
    with Memory(tmp_path / "many.db") as memory:
        for user, count in (("warm", 50), ("few", 400), ("many", 1_000)):
            scope = Scope(user=user)
            memory.add_many([{"id": str(n), "content": f"Boat {n} left. " * 20} for n in range(count)], scope=scope)
            memory.flush()
            for format, measured in peaks.items():
                exports = [partial(memory.export, tmp_path / "out", format, scope=scope)] * 2
                measured.append(min(map(peak_memory, exports)))  # a background job may allocate beside an export
    assert peaks["jsonl"][2] < 1.5 * peaks["jsonl"][1], peaks
    assert peaks["graphml"][2] < peaks["graphml"][1] + 600 * ID_BYTES, peaks


class TestCommand:
    def check_refused(self, result: CommandResult, expected: str, status: int = 2) -> None:
        assert (result.status, result.out, result.err.count("\n")) == (status, "", 1), result
        assert expected in result.err

    @pytest.fixture(autouse=True)
    def notes(self, zettel: Zettel, tmp_path: Path) -> None:
        zettel("add", "The sails are at the loft.", "--title", "Sails", "--session", "s")
        zettel("add", "Who has seen the Sails?", "--session", "s")
        with Memory(tmp_path / "zettel.db") as memory:
            memory.flush()

    def test_a_vault_is_written_and_changed_files_are_skipped(self, zettel: Zettel, tmp_path: Path) -> None:
        result = zettel("export", "--format", "markdown", "vault")
        assert (result.status, result.out) == (0, "")
        assert re.fullmatch(r"2 notes, \d links written to vault\nfiles: 4 written, 0 removed\n", result.err)
        text = (tmp_path / "vault" / "Who has seen the Sails.md").read_text(encoding="utf-8")
        assert "\n- MENTIONS [[Sails]]: names “sails”\n" in text
        assert text.endswith("\n- in [[Sessions/s|s]]\n")
        (tmp_path / "vault" / "Sails.md").write_text("Mine now.")
        result = zettel("export", "--format", "markdown", "vault")
        assert result.err.splitlines()[1:] == ["files skipped because somebody changed them: 1 (Sails.md)"]
        assert (tmp_path / "vault" / "Sails.md").read_text() == "Mine now."

    def test_json_prints_the_report(self, zettel: Zettel) -> None:
        report = zettel("export", "--format", "graphml", "a.graphml", "--include", "terms", "--json").json()
        assert {"to": "a.graphml", "format": "graphml", "notes": 2}.items() <= report.items()
        assert report["terms"] > 0
        self.check_refused(zettel("export", "--json"), "--json prints the report on stdout")

    def test_notes_can_be_included_in_lines(self, zettel: Zettel) -> None:
        result = zettel("export", "--include", "notes")
        assert '"notes": [{"id": "n_' in result.out
        assert '"notes"' not in zettel("export").out
        assert zettel("import", "-", "--format", "jsonl", "--user", "b", stdin=result.out.encode()).status == 0

    def test_wrong_destinations_are_errors(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        self.check_refused(zettel("export", "--format", "markdown"), "markdown writes a folder: pass the path of one")
        self.check_refused(zettel("export", "--format", "markdown", "file"), "file is a file")
        self.check_refused(zettel("export", "--format", "markdown", "gone/vault"), "the folder gone does not exist")
        self.check_refused(zettel("export", "--format", "graphml", "."), "is a folder")
        self.check_refused(zettel("export", "--format", "gexf", "a"), "jsonl, markdown, graphml, zettel")
        self.check_refused(zettel("export", "zettel.db"), "zettel.db is a database")
        self.check_refused(zettel("export", "a", "--include", "terms"), "jsonl cannot include 'terms'")
        assert zettel("doctor").status == 0

    def test_a_full_disk_leaves_no_partial_files(
        self, zettel: Zettel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        zettel("export", "a.jsonl")
        before = (tmp_path / "a.jsonl").read_bytes()

        def raise_disk_full(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("os.fsync", raise_disk_full)
        self.check_refused(zettel("export", "a.jsonl"), "a.jsonl cannot be written: No space left on device")
        assert (tmp_path / "a.jsonl").read_bytes() == before
        monkeypatch.setattr(tracked_files.TrackedFiles, "_replace", raise_disk_full)
        self.check_refused(zettel("export", "--format", "markdown", "vault"), "vault cannot be written: No space left")
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
        assert zettel("export", "--format", "markdown", "vault").status == 0
        assert not list(tmp_path.glob(".*unfinished"))

    @pytest.mark.parametrize("format", ["jsonl", "markdown", "graphml", "zettel"])
    def test_progress_ends_with_the_total(self, tmp_path: Path, format: str) -> None:
        progress: list[tuple[int, int]] = []
        with Memory(tmp_path / "zettel.db") as memory:
            memory.export(tmp_path / "out", format, on_progress=lambda *counts: progress.append(counts))
        assert progress[0][0] == 0
        assert progress[-1][0] == progress[-1][1] > 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this platform")
def test_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with Memory(":memory:") as memory:
        memory.add("The sails are at the loft.")
        with pytest.raises(InvalidInput, match=r"pipe is a device or a pipe: write to stdout \(-\)"):
            memory.export(pipe)
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    ("name", "format"),
    [("all.zettel", "zettel"), ("all.GraphML", "graphml"), ("all.txt", "jsonl"), ("all", "jsonl")],
)
def test_the_file_extension_selects_the_format(tmp_path: Path, name: str, format: str) -> None:
    with Memory(":memory:") as memory:
        memory.add("The sails are at the loft.")
        assert memory.export(tmp_path / name).format == format
        assert memory.export(str(tmp_path / name)).format == format
        assert memory.export(tmp_path / name, "jsonl").format == "jsonl"


def test_concurrent_exports_to_one_file_leave_a_complete_file(tmp_path: Path) -> None:
    to = tmp_path / "backup.jsonl"
    with Memory(":memory:") as memory, Memory(":memory:") as other:
        memory.add("The sails are at the loft.")
        other.add("Ben dried the storm sail in the barn, and nobody knows since when.")
        memory.export(to, on_progress=lambda done, total: done or other.export(to))
        assert "at the loft" in to.read_text()
        assert len(to.read_text().splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["backup.jsonl"]


@pytest.mark.parametrize("format", ["zettel", "jsonl", "graphml"])
def test_a_failed_or_cancelled_export_does_not_block_the_next(tmp_path: Path, format: str) -> None:
    """Also while the error of the failed export is still referenced."""

    async def work() -> None:
        async with AsyncMemory(tmp_path / "a.db") as memory:
            await memory.add_many({"content": f"Heron {number}."} for number in range(600))
            output, remaining_writes = io.BytesIO(), 3

            class FullDisk(io.BytesIO):
                def write(self, page: Any) -> int:
                    nonlocal remaining_writes
                    remaining_writes -= 1
                    if remaining_writes == 0:
                        raise OSError(errno.ENOSPC, "No space left on device")
                    return super().write(page)

            class CancellingFile(io.BytesIO):
                def write(self, page: Any) -> int:
                    loop.call_soon_threadsafe(export_task.cancel)
                    return super().write(page)

            with pytest.raises(OSError, match="No space left") as error_info:
                await memory.export(FullDisk(), format=format)
            loop = asyncio.get_running_loop()
            export_task = asyncio.create_task(memory.export(CancellingFile(), format=format))
            with pytest.raises(asyncio.CancelledError):
                await export_task
            await asyncio.wait_for(memory.export(output, format=format), 20)
            assert len(output.getvalue()) > 600
            assert error_info.value.errno == errno.ENOSPC

    asyncio.run(work())


def test_concurrent_exports_to_one_vault_write_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second export writes its files while the first is about to rename a file."""
    replace, vault = Path.replace, tmp_path / "vault"
    with Memory(":memory:") as memory, Memory(":memory:") as other:
        memory.add("The sails are at the loft.", title="Sails")
        other.add("Ben dried the boat in the barn.", title="Boat")

        def concurrent_replace(path: Path, to: Path) -> Path:
            monkeypatch.setattr(Path, "replace", replace)
            other.export(vault, "markdown")
            return path.replace(to)

        monkeypatch.setattr(Path, "replace", concurrent_replace)
        memory.export(vault, "markdown")
    assert "at the loft" in (vault / "Sails.md").read_text()
    assert "in the barn" in (vault / "Boat.md").read_text()


def test_old_unfinished_files_are_removed(tmp_path: Path) -> None:
    """Recent ones remain, because another process may be writing them."""
    new, old = tmp_path / ".a.jsonl.00000000.unfinished", tmp_path / ".a.jsonl.11111111.unfinished"
    new.touch()
    old.touch()
    os.utime(old, (0, 0))
    with Memory(":memory:") as memory:
        memory.export(tmp_path / "a.jsonl")
    assert {path.name for path in tmp_path.iterdir()} == {new.name, "a.jsonl"}


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_an_export_preserves_the_mode_of_a_file_and_new_files_are_private(tmp_path: Path) -> None:
    shared = tmp_path / "all.zettel"
    shared.touch(mode=0o640)
    shared.chmod(0o640)
    with Memory(tmp_path / "store.db") as memory:
        memory.add("The sails are at the loft. #sails", session="s1")
        memory.add("The sails are mended. #sails", session="s1")
        memory.export(shared, "zettel")
        memory.export(tmp_path / "new.jsonl")
        memory.export(tmp_path / "new.graphml")
        memory.export(tmp_path / "vault", "markdown")
    assert b"at the loft" in shared.read_bytes()
    modes = {path.relative_to(tmp_path).as_posix(): path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes.pop("all.zettel") == 0o640
    folders = {"vault", *(name for name in modes if (tmp_path / name).is_dir())}
    assert {name: mode for name, mode in modes.items() if mode != (0o700 if name in folders else 0o600)} == {}
    assert {"vault/.zettel-export.jsonl", "store.db"} <= modes.keys()


@pytest.mark.skipif(os.name == "nt", reason="Windows needs a privilege for links")
@pytest.mark.parametrize("format", ["jsonl", "graphml", "zettel"])
def test_an_export_follows_no_link(tmp_path: Path, format: str) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("keep")
    link.symlink_to(target)
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match=f"{link} is a symbolic link"):
        memory.export(link, format)
    assert target.read_text() == "keep"
    assert link.is_symlink()


@pytest.mark.skipif(os.name == "nt", reason="Windows needs a privilege for links")
@pytest.mark.parametrize("place", ["", ".zettel-export.jsonl", "Sessions", "Tags"])
def test_a_vault_export_follows_no_link(tmp_path: Path, place: str) -> None:
    vault, target = tmp_path / "vault", tmp_path / "target"
    link = vault / place
    if place:
        vault.mkdir()
    if place.startswith("."):
        target.write_text("keep\n")
    else:
        target.mkdir()
    link.symlink_to(target)
    with Memory(":memory:") as memory:
        memory.add("The sails are at the loft.", session="s1")
        memory.add("The sails are mended.", session="s1")
        with pytest.raises(InvalidInput, match=f"{link} is a symbolic link"):
            memory.export(vault, "markdown")
    assert target.read_text() == "keep\n" if target.is_file() else not list(target.iterdir())


def test_an_empty_store_can_be_exported(tmp_path: Path) -> None:
    with Memory(":memory:") as memory:
        assert memory.export(tmp_path / "none.jsonl", all_scopes=True).events == 0
        memory.export(tmp_path / "none.zettel", "zettel", all_scopes=True)
        assert memory.import_transcript(tmp_path / "none.zettel").added == 0
    assert (tmp_path / "none.jsonl").read_bytes() == b""


def test_a_text_file_is_refused() -> None:
    text: Any = io.StringIO()
    expected = r"must be a binary file: .* sys\.stdout\.buffer"
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match=expected):
        memory.export(text)


def test_an_open_file_is_refused_for_a_folder_format(tmp_path: Path) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match="markdown writes a folder"):
        memory.export(io.BytesIO(), "markdown")
