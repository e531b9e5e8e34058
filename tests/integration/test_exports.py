"""Exports of any events, of large memories, and what the command line says of them."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import re
import tracemalloc
from collections.abc import Iterator
from datetime import datetime, timezone
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
"""What an id takes in a set, amply."""

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
    """One for all examples: they are in scopes that are emptied."""
    with Memory(tmp_path_factory.mktemp("any") / "any.db") as memory:
        yield memory


def filled(memory: Memory, events: list[dict[str, Any]]) -> tuple[Scope, Scope]:
    """A scope with these events alone, and an empty one."""
    first, second = Scope(user="first"), Scope(user="second")
    memory.delete_scope(scope=first)
    memory.delete_scope(scope=second)
    for event in events:
        memory.add_many([event], on_conflict="revise", scope=first)
    return first, second


class TestAnyEvents:
    @settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(events=EVENTS)
    def test_there_and_back_gives_the_same_bytes(
        self, memory: Memory, tmp_path: Path, events: list[dict[str, Any]]
    ) -> None:
        first, second = filled(memory, events)
        one, two = io.BytesIO(), io.BytesIO()
        memory.export(one, scope=first)
        (tmp_path / "one.jsonl").write_bytes(one.getvalue())
        report = memory.import_transcript(tmp_path / "one.jsonl", "jsonl", scope=second)
        assert report.rejected_records == []
        memory.export(two, scope=second)
        assert two.getvalue() == one.getvalue()

    @settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(events=EVENTS)
    def test_a_vault_keeps_texts(
        self, memory: Memory, tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, Any]]
    ) -> None:
        first, second = filled(memory, events)
        folder = tmp_path_factory.mktemp("vault")
        memory.export(folder, "markdown", scope=first)
        report = memory.import_transcript(folder, "markdown", scope=second)
        assert report.rejected_records == []
        ours, theirs = (memory.list(limit=100, scope=scope).notes for scope in (first, second))
        for note, other in zip(ours, theirs, strict=True):
            assert other.content == note.content
            assert other.occurred_at == note.occurred_at
            assert other.metadata == note.metadata
            for name in ("title", "speaker", "session"):  # of properties readers cut blanks
                assert (getattr(other, name) or "") == (getattr(note, name) or "").strip()


def test_flat_memory(tmp_path: Path) -> None:
    """Twice the events and more take no more memory as lines, and as a graph only their ids."""
    peaks: dict[str, list[int]] = {"jsonl": [], "graphml": []}
    with Memory(tmp_path / "many.db") as memory:
        for user, count in (("warm", 50), ("few", 400), ("many", 1_000)):
            scope = Scope(user=user)
            memory.add_many([{"id": str(n), "content": f"Boat {n} left. " * 20} for n in range(count)], scope=scope)
            memory.flush()
            for format, told in peaks.items():
                tracemalloc.start()
                memory.export(tmp_path / "out", format, scope=scope)
                told.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
    assert peaks["jsonl"][2] < 1.5 * peaks["jsonl"][1], peaks
    assert peaks["graphml"][2] < peaks["graphml"][1] + 600 * ID_BYTES, peaks


class TestCommand:
    def refused(self, ran: CommandResult, told: str, status: int = 1) -> None:
        assert (ran.status, ran.out, ran.err.count("\n")) == (status, "", 1), ran
        assert told in ran.err

    @pytest.fixture(autouse=True)
    def notes(self, zettel: Zettel, tmp_path: Path) -> None:
        zettel("add", "The sails are at the loft.", "--title", "Sails", "--session", "s")
        zettel("add", "Who has seen the Sails?", "--session", "s")
        with Memory(tmp_path / "zettel.db") as memory:
            memory.flush()

    def test_a_vault(self, zettel: Zettel, tmp_path: Path) -> None:
        ran = zettel("export", "--format", "markdown", "vault")
        assert (ran.status, ran.out) == (0, "")
        assert re.fullmatch(r"2 notes, \d links written to vault\nfiles: 4 written, 0 removed\n", ran.err)
        text = (tmp_path / "vault" / "Who has seen the Sails.md").read_text(encoding="utf-8")
        assert "\n- MENTIONS [[Sails]]: names “sails”\n" in text
        assert text.endswith("\n- in [[Sessions/s|s]]\n")
        (tmp_path / "vault" / "Sails.md").write_text("Mine now.")
        ran = zettel("export", "--format", "markdown", "vault")
        assert ran.err.splitlines()[1:] == ["files skipped because somebody changed them: 1 (Sails.md)"]
        assert (tmp_path / "vault" / "Sails.md").read_text() == "Mine now."

    def test_json_reports(self, zettel: Zettel) -> None:
        report = zettel("export", "--format", "graphml", "a.graphml", "--include", "terms", "--json").json()
        assert {"to": "a.graphml", "format": "graphml", "notes": 2}.items() <= report.items()
        assert report["terms"] > 0
        self.refused(zettel("export", "--json"), "--json prints the report on stdout")

    def test_lines_with_notes(self, zettel: Zettel) -> None:
        ran = zettel("export", "--include", "notes")
        assert '"notes": [{"id": "n_' in ran.out
        assert '"notes"' not in zettel("export").out
        assert zettel("import", "-", "--format", "jsonl", "--user", "b", stdin=ran.out.encode()).status == 0

    def test_wrong_places(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        self.refused(zettel("export", "--format", "markdown"), "markdown writes a folder: pass the path of one")
        self.refused(zettel("export", "--format", "markdown", "file"), "file is a file")
        self.refused(zettel("export", "--format", "markdown", "gone/vault"), "the folder gone does not exist")
        self.refused(zettel("export", "--format", "graphml", "."), "is a folder")
        self.refused(zettel("export", "--format", "gexf", "a"), "jsonl, markdown, graphml, zettel", 2)
        self.refused(zettel("export", "zettel.db"), "zettel.db is a database")
        self.refused(zettel("export", "a", "--include", "terms"), "jsonl cannot include 'terms'")
        assert zettel("doctor").status == 0

    def test_a_full_disk(self, zettel: Zettel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        zettel("export", "a.jsonl")
        before = (tmp_path / "a.jsonl").read_bytes()

        def full(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        self.refused(zettel("export", "a.jsonl"), "a.jsonl cannot be written: No space left on device")
        assert (tmp_path / "a.jsonl").read_bytes() == before
        monkeypatch.setattr(tracked_files.TrackedFiles, "_replace", full)
        self.refused(zettel("export", "--format", "markdown", "vault"), "vault cannot be written: No space left")
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
        assert zettel("export", "--format", "markdown", "vault").status == 0
        assert not list(tmp_path.glob(".*unfinished"))

    @pytest.mark.parametrize("format", ["jsonl", "markdown", "graphml", "zettel"])
    def test_progress(self, tmp_path: Path, format: str) -> None:
        seen: list[tuple[int, int]] = []
        with Memory(tmp_path / "zettel.db") as memory:
            memory.export(tmp_path / "out", format, on_progress=lambda *told: seen.append(told))
        assert seen[0][0] == 0
        assert seen[-1][0] == seen[-1][1] > 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_not_put_aside_for_a_file(tmp_path: Path) -> None:
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
def test_the_ending_of_a_file_says_what_is_meant(tmp_path: Path, name: str, format: str) -> None:
    with Memory(":memory:") as memory:
        memory.add("The sails are at the loft.")
        assert memory.export(tmp_path / name).format == format
        assert memory.export(str(tmp_path / name)).format == format
        assert memory.export(tmp_path / name, "jsonl").format == "jsonl"


def test_two_exports_at_once_to_one_name(tmp_path: Path) -> None:
    to = tmp_path / "backup.jsonl"
    with Memory(":memory:") as memory, Memory(":memory:") as other:
        memory.add("The sails are at the loft.")
        other.add("Ben dried the storm sail in the barn, and nobody knows since when.")
        memory.export(to, on_progress=lambda done, total: done or other.export(to))
        assert "at the loft" in to.read_text()
        assert len(to.read_text().splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["backup.jsonl"]


@pytest.mark.parametrize("format", ["zettel", "jsonl", "graphml"])
def test_an_export_that_breaks_off_is_in_the_way_of_no_other(tmp_path: Path, format: str) -> None:
    """Whether it is cancelled, or cannot be written; also while somebody keeps the error."""

    async def work() -> None:
        async with AsyncMemory(tmp_path / "a.db") as memory:
            await memory.add_many({"content": f"Heron {number}."} for number in range(600))
            whole, left = io.BytesIO(), 3

            class Full(io.BytesIO):
                def write(self, page: Any) -> int:
                    nonlocal left
                    left -= 1
                    if left == 0:
                        raise OSError(errno.ENOSPC, "No space left on device")
                    return super().write(page)

            class Endless(io.BytesIO):
                def write(self, page: Any) -> int:
                    loop.call_soon_threadsafe(going.cancel)
                    return super().write(page)

            with pytest.raises(OSError, match="No space left") as kept:
                await memory.export(Full(), format=format)
            loop = asyncio.get_running_loop()
            going = asyncio.create_task(memory.export(Endless(), format=format))
            with pytest.raises(asyncio.CancelledError):
                await going
            await asyncio.wait_for(memory.export(whole, format=format), 20)
            assert len(whole.getvalue()) > 600
            assert kept.value.errno == errno.ENOSPC

    asyncio.run(work())


def test_two_exports_at_once_to_one_vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one writes its files while this one is about to give a file its name."""
    replace, vault = Path.replace, tmp_path / "vault"
    with Memory(":memory:") as memory, Memory(":memory:") as other:
        memory.add("The sails are at the loft.", title="Sails")
        other.add("Ben dried the boat in the barn.", title="Boat")

        def slow(path: Path, to: Path) -> Path:
            monkeypatch.setattr(Path, "replace", replace)
            other.export(vault, "markdown")
            return path.replace(to)

        monkeypatch.setattr(Path, "replace", slow)
        memory.export(vault, "markdown")
    assert "at the loft" in (vault / "Sails.md").read_text()
    assert "in the barn" in (vault / "Boat.md").read_text()


def test_what_killed_exports_left_is_removed_in_time(tmp_path: Path) -> None:
    """Not at once: somebody may be writing it."""
    new, old = tmp_path / ".a.jsonl.00000000.unfinished", tmp_path / ".a.jsonl.11111111.unfinished"
    new.touch()
    old.touch()
    os.utime(old, (0, 0))
    with Memory(":memory:") as memory:
        memory.export(tmp_path / "a.jsonl")
    assert {path.name for path in tmp_path.iterdir()} == {new.name, "a.jsonl"}


@pytest.mark.skipif(os.name == "nt", reason="permissions are others here")
def test_a_file_that_is_replaced_stays_private_and_a_link_a_link(tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    held, link = tmp_path / "large" / "all.zettel", tmp_path / "all.zettel"
    held.touch(mode=0o600)
    link.symlink_to(held)
    with Memory(":memory:") as memory:
        memory.add("The sails are at the loft.")
        memory.export(link, "zettel")
    assert link.is_symlink()
    assert b"at the loft" in held.read_bytes()
    assert held.stat().st_mode & 0o777 == 0o600


def test_all_scopes_of_an_empty_store(tmp_path: Path) -> None:
    with Memory(":memory:") as memory:
        assert memory.export(tmp_path / "none.jsonl", all_scopes=True).events == 0
        memory.export(tmp_path / "none.zettel", "zettel", all_scopes=True)
        assert memory.import_transcript(tmp_path / "none.zettel").added == 0
    assert (tmp_path / "none.jsonl").read_bytes() == b""


def test_a_file_of_text_is_told_to_be_opened_otherwise() -> None:
    text: Any = io.StringIO()
    expected = r"must be a binary file: .* sys\.stdout\.buffer"
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match=expected):
        memory.export(text)


def test_an_open_file_takes_no_folder(tmp_path: Path) -> None:
    with Memory(":memory:") as memory, pytest.raises(InvalidInput, match="markdown writes a folder"):
        memory.export(io.BytesIO(), "markdown")
