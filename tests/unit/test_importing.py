"""What an import reads under a path, sessions by gaps, and the report, in Python."""

from __future__ import annotations

import asyncio
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel import AsyncMemory, Memory, transcripts
from zettel.errors import BadRecord, InvalidInput
from zettel.model import Event, Source
from zettel.transcripts import Rejected, named
from zettel.transcripts.gaps import Gaps
from zettel.transcripts.parts import Part, look, read
from zettel.transcripts.wanted import Wanted, wanted

SAMPLES = Path(__file__).parents[1] / "data" / "transcripts"
NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)


def said(hours: float, text: str = "Hm.", **fields: Any) -> Event:
    return Event(content=text, role="Ann", occurred_at=NOON + timedelta(hours=hours), **fields)


def gaps(gap: float = 6, zone: timezone = timezone.utc) -> Gaps:
    return Gaps(timedelta(hours=gap), "chat", zone)


def placed(events: list[Event], gap: float = 6) -> list[Event]:
    into = gaps(gap)
    return [into.placed(event) for event in events]


class TestGaps:
    def test_a_silence_ends_a_session_and_the_day_names_it(self) -> None:
        hours = [0, 6, 12.5, 14, 40]
        assert [event.session for event in placed([said(at) for at in hours])] == [
            "chat 2024-05-01", "chat 2024-05-01", "chat 2024-05-02", "chat 2024-05-02", "chat 2024-05-03",
        ]  # fmt: skip

    def test_several_of_a_day_are_numbered(self) -> None:
        events = placed([said(0), said(3), said(6)], gap=2)
        assert [event.session for event in events] == ["chat 2024-05-01", "chat 2024-05-01/2", "chat 2024-05-01/3"]

    def test_the_day_is_that_of_the_zone(self) -> None:
        assert gaps(zone=timezone(timedelta(hours=13))).placed(said(0)).session == "chat 2024-05-02"

    def test_channels_are_apart(self) -> None:
        yard, shed = ({"server": "Boats", "channel": name} for name in ("yard", "shed"))
        events = placed([said(0, metadata=yard), said(1, metadata=shed), said(2, metadata=yard)])
        assert [event.session for event in events] == [
            "Boats/yard 2024-05-01", "Boats/shed 2024-05-01", "Boats/yard 2024-05-01",
        ]  # fmt: skip

    def test_what_has_a_session_or_no_time_stays_as_it_is(self) -> None:
        own, undated = said(0, session="thread"), Event(content="Once.")
        assert placed([own, undated]) == [own, undated]

    def test_the_ends_of_the_calendar(self) -> None:
        for moment in (datetime.min, datetime.max):
            event = Event(content="Hm.", occurred_at=moment.replace(tzinfo=timezone.utc))
            for hours in (-13, 13):
                assert gaps(zone=timezone(timedelta(hours=hours))).placed(event).session is not None

    def test_a_channel_that_no_session_can_be_called_by(self) -> None:
        assert gaps().placed(said(0, metadata={"channel": "a\0b"})).session == "chat 2024-05-01"
        long = gaps().placed(said(0, metadata={"channel": "x" * 5_000})).session
        assert long is not None
        assert len(long) < 1_000

    @given(st.lists(st.integers(0, 60), min_size=2, max_size=12).map(sorted), st.data())
    def test_an_overlap_has_the_same_ids_wherever_it_begins(self, hours: list[int], data: st.DataObject) -> None:
        events = [said(at, str(at)) for at in dict.fromkeys(hours)]
        start = data.draw(st.integers(0, len(events) - 1))
        first, later = placed(events), placed(events[start:])
        assert [event.id for event in later] == [event.id for event in first[start:]]

    def test_what_happens_at_the_seam(self) -> None:
        events = [said(at, str(at)) for at in (0, 1, 30, 31, 80)]
        first, later = placed(events), placed(events[1:])
        assert [event.session for event in later] == [event.session for event in first[1:]]

    def test_a_gap_of_zero_keeps_ids_and_makes_no_sessions(self) -> None:
        (with_gap,), (without,) = placed([said(0)]), placed([said(0)], gap=0)
        assert (without.session, without.id) == (None, with_gap.id)

    def test_same_words_at_the_same_time_are_two(self) -> None:
        one, other = placed([said(0), said(0)])
        assert one.id != other.id

    def test_a_second_download_of_a_chat_is_known_again(self) -> None:
        ids = {placed([said(0, metadata={"channel": name})])[0].id for name in ("Rowers", "Rowers (1)", "Rowers 2")}
        assert len(ids) == 1
        assert placed([said(0, metadata={"channel": "Sailors"})])[0].id not in ids

    def test_which_formats_have_them(self) -> None:
        chat = SimpleNamespace(name="chat", gaps=True)
        log = SimpleNamespace(name="log")
        for format, gap, has in ((chat, None, True), (log, None, False), (log, timedelta(hours=1), True)):
            assert (Gaps.of(Part("a.txt", format, Path("a.txt")), gap, timezone.utc) is not None) is has


class TestLooking:
    def test_what_is_packed_is_called_by_its_place_in_the_zip(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "all.zip"
        with ZipFile(path, "w") as packed:
            packed.writestr("deep/talk.txt", b"Ann: Hm.\nAnn: \xff\n")
        unpacked = tmp_path / "unpacked"
        unpacked.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(unpacked))
        (part,) = look(path).parts
        rejected, event = read(part)
        assert isinstance(rejected, Rejected)
        assert isinstance(event, Event)
        assert (rejected.file, rejected.position) == (f"{path}/deep/talk.txt", "2")
        assert (event.source, event.session) == (Source(file=f"{path}/deep/talk.txt", position="1"), "talk")
        assert list(unpacked.iterdir()) == []

    def test_a_zip_that_is_refused_in_a_folder_is_told_as_unknown(self, tmp_path: Path) -> None:
        (tmp_path / "chat.txt").write_text("Ann: Hm.\n")
        with ZipFile(tmp_path / "bad.zip", "w") as packed:
            packed.writestr("../up.txt", "Ann: Hm.\n")
        found = look(tmp_path)
        assert [Path(part.where).name for part in found.parts] == ["chat.txt"]
        assert [Path(name).name for name in found.unknown] == ["bad.zip"]
        with pytest.raises(BadRecord, match="leads out of it"):
            look(tmp_path / "bad.zip")

    def test_a_collection_that_several_formats_would_take_is_walked(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def taker(name: str) -> Any:
            return SimpleNamespace(name=name, folders=True, sniff=lambda path, head: path.is_dir(), read=iter)

        (tmp_path / "chat.txt").write_text("Ann: Hm.\n")
        plain = transcripts.named("plain")
        monkeypatch.setattr("zettel.transcripts.parts.ranked", lambda: [taker("one"), plain])
        assert look(tmp_path).format == "one"
        monkeypatch.setattr("zettel.transcripts.parts.ranked", lambda: [taker("one"), taker("two"), plain])
        assert look(tmp_path).format == "plain"

    @pytest.mark.parametrize("packed", [False, True])
    def test_files_that_nobody_named_are_taken_with_more_care(self, tmp_path: Path, packed: bool) -> None:
        damaged, event, other = '{"conte', '{"content": "Snow."}', '{"level": "info"}'
        said = {
            "chat.txt": "Ann: Hm.\n", "chat.LOG": "Ann: Hm.\n", "chat": "Ann: Hm.\n", "chat.md": "Ann: Hm.\n",
            "chat 1.5": "Ann: Hm.\n", "a.jsonl": f"{event}\n", "b.jsonl": f"{damaged}\n{other}\n{event}\n",
            "docker-compose.yml": 'version: "3"\nservices:\n', "requests.http": "Host: example.org\n",
            "c.jsonl": f"{other}\n{event}\n", "d.jsonl": f"{damaged}\n{other}\n",
        }  # fmt: skip
        folder = tmp_path / "all"
        folder.mkdir()
        for name, text in said.items():
            (folder / name).write_text(text)
        if packed:
            with ZipFile(tmp_path / "all.zip", "w") as archive:
                for name in said:
                    archive.write(folder / name, name)
        found = look(tmp_path / "all.zip" if packed else folder)
        formats = {Path(part.where).name: part.format.name for part in found.parts}
        assert formats == dict.fromkeys(
            ("chat.txt", "chat.LOG", "chat", "chat.md", "chat 1.5"), "plain"
        ) | dict.fromkeys(("a.jsonl", "b.jsonl"), "jsonl")
        assert len(found.unknown) == 4
        for name in ("docker-compose.yml", "c.jsonl", "d.jsonl"):
            assert look(folder / name).format in ("plain", "jsonl"), "who names a file means it"

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="no such file"):
            look(tmp_path / "gone")
        with pytest.raises(InvalidInput, match="no such file"):
            look(tmp_path / "gone.zip")


class TestBeside:
    """Exports at the root of a folder, with other transcripts beside them."""

    OTHERS = {  # noqa: RUF012
        "chat.txt": ("Ann: Hm.\n", "plain"),
        "WhatsApp Chat with Ann.txt": ("31/12/2023, 21:05 - Ann: Hm.\n", "whatsapp"),
        "yard.csv": ("author,text\nAnn,Hm.\n", "csv"),
        "old/log.jsonl": ('{"content": "Snow."}\n', "jsonl"),
    }
    PUT = {  # noqa: RUF012
        "chatgpt": {
            "conversations.json": SAMPLES / "chatgpt.json",
            "user.json": b'{"id": "user-1", "email": "ann@example.org"}',
            "message_feedback.json": b'[{"id": "1", "rating": "thumbs_up", "content": "{}"}]',
            "model_comparisons.json": b'[{"input": {"messages": [{"role": "user", "content": "Hm."}]}}]',
            "file-Ab12-chat.txt": b"Ann: Sent.\n",
            "user-Ab12/1f/mnt/data/rows.csv": b"author,text\nAnn,Made.\n",
        },
        "claude": {"conversations.json": SAMPLES / "claude.json", "users.json": b"[]", "projects.json": b"[]"},
        "telegram": {
            "result.json": SAMPLES / "telegram" / "result.json",
            "photos/photo_1.jpg": b"\xff\xd8",
            "files/notes.txt": b"Ann: Sent.\n",
        },
        "slack": {
            path.relative_to(SAMPLES / "slack").as_posix(): path
            for path in sorted((SAMPLES / "slack").rglob("*"))
            if path.is_file()
        },
        "discord": {
            "README.txt": b"Note: this is yours.\n",
            **{
                path.relative_to(SAMPLES / "discord-package").as_posix(): path
                for path in sorted((SAMPLES / "discord-package").rglob("*"))
                if path.is_file()
            },
        },
        "amem": {"chroma.sqlite3": SAMPLES / "amem-chroma" / "chroma.sqlite3"},
        "whatsapp": {
            "_chat.txt": (
                "[31.12.23, 21:05:09] Ann: hi\n[31.12.23, 21:06:09] Ben: \u200e<attached: 00000012-talk.txt>\n"
                "[31.12.23, 21:07:09] Ann: rows.csv (file attached)\n"
            ).encode(),
            "00000012-talk.txt": b"Ann: Sent.\n",
            "00000013-PHOTO-2024-01-01-12-00-00.jpg": b"\xff\xd8",
            "IMG-20240101-WA0001.jpg": b"\xff\xd8",
            "rows.csv": b"author,text\nAnn,Sent.\n",
        },
    }  # fmt: skip

    def put(self, folder: Path, files: dict[str, Any]) -> Path:
        for name, said in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(said.read_bytes() if isinstance(said, Path) else said)
        return folder

    def others(self, folder: Path) -> Path:
        return self.put(folder, {name: text.encode() for name, (text, _) in self.OTHERS.items()})

    @pytest.mark.parametrize("name", PUT)
    def test_what_goes_with_an_export_does_not_part_it(self, tmp_path: Path, name: str) -> None:
        folder = self.put(tmp_path / "all", self.PUT[name])
        found = look(folder)
        assert [(part.format.name, part.path) for part in found.parts] == [(name, folder)]
        assert (found.unknown, found.walked) == ((), False)

    @pytest.mark.parametrize(
        ("name", "packed"), [(name, packed) for name in PUT for packed in (False, True) if not packed or name != "amem"]
    )
    def test_others_are_read_too(self, tmp_path: Path, name: str, packed: bool) -> None:
        path = self.others(self.put(tmp_path / "all", self.PUT[name]))
        if packed:
            path = Path(shutil.make_archive(str(path), "zip", path))
        alone = list(read(Part("all", named(name), self.put(tmp_path / "alone" / "all", self.PUT[name]))))
        found = look(path)
        assert found.walked
        assert {part.where: part.format.name for part in found.parts} == {str(path): name} | {
            f"{path}/{other}": format for other, (_, format) in self.OTHERS.items()
        }
        assert found.unknown == ()
        ids = [record.id for record in read(found.parts[0]) if isinstance(record, Event)]
        assert ids == [record.id for record in alone if isinstance(record, Event)]
        with Memory(":memory:") as memory:
            report = memory.import_transcript(path)
        assert [(file.added > 0, file.revised) for file in report.files] == [(True, 0)] * len(found.parts)

    def test_each_of_two_conversations_files_is_read_by_its_own_program(self, tmp_path: Path) -> None:
        for name in ("claude", "chatgpt"):
            self.put(tmp_path / "exports" / name, self.PUT[name])
        assert look(tmp_path / "exports").format == "chatgpt, claude"
        self.put(tmp_path / "exports", self.PUT["claude"])
        found = [(Path(part.where).name, part.format.name) for part in look(tmp_path / "exports").parts]
        assert found == [("exports", "claude"), ("chatgpt", "chatgpt"), ("claude", "claude")]

    @pytest.mark.parametrize("name", PUT)
    def test_also_in_a_folder_within(self, tmp_path: Path, name: str) -> None:
        self.others(self.put(tmp_path / "exports" / "all", self.PUT[name]))
        formats = [part.format.name for part in look(tmp_path / "exports").parts]
        assert sorted(formats) == sorted([name, *(format for _, format in self.OTHERS.values())])

    def test_other_files_of_the_same_format_are_read(self, tmp_path: Path) -> None:
        folder = self.put(tmp_path / "all", self.PUT["whatsapp"])
        self.put(folder / "WhatsApp Chat - Ben", self.PUT["whatsapp"])
        self.put(folder, {"WhatsApp Chat with Cai.txt": b"31/12/2023, 21:05 - Cai: Hm.\n"})
        assert sorted(Path(part.where).name for part in look(folder).parts) == [
            "WhatsApp Chat - Ben", "WhatsApp Chat with Cai.txt", "all",
        ]  # fmt: skip

    def test_a_vault_keeps_what_lies_in_it(self, tmp_path: Path) -> None:
        vault = self.others(
            self.put(tmp_path / "vault", {".obsidian/app.json": b"{}", "a.md": b"See [[b]].", "b.md": b"B."})
        )
        assert [(part.format.name, part.path) for part in look(vault).parts] == [("markdown", vault)]

    def test_an_export_of_another_program_lies_in_one(self, tmp_path: Path) -> None:
        folder = self.put(tmp_path / "all", self.PUT["chatgpt"])
        self.put(folder / "slack", self.PUT["slack"])
        self.put(folder, {"notes.xyz": b"\0"})
        found = look(folder)
        assert [(part.format.name, part.path) for part in found.parts] == [
            ("chatgpt", folder), ("slack", folder / "slack"),
        ]  # fmt: skip
        assert found.unknown == (), "it may go with the export"


class TestWanted:
    def test_nothing_asked_is_all(self) -> None:
        assert wanted() == Wanted()

    @pytest.mark.parametrize(
        ("value", "hour"),
        [("2024-05-01T12:00", 10), ("2024-05-01 12:00Z", 12), ("2024-05-01T12:00-05:00", 17), (NOON, 12),
         (NOON.replace(tzinfo=None), 10)],
    )  # fmt: skip
    def test_a_time_without_a_zone_is_in_that_of_the_import(self, value: Any, hour: int) -> None:
        assert wanted(tz="Europe/Oslo", since=value).since == NOON.replace(hour=hour)


def test_what_was_read_before_a_file_broke_off_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> Any:
        yield Event(content="Hm.", id="1")
        raise BadRecord(f"{path}:2: it breaks off")

    format = SimpleNamespace(name="broken", sniff=lambda path, head: True, read=broken)
    monkeypatch.setattr("zettel.transcripts.parts.choose", lambda path, name, called: format)
    (tmp_path / "a").write_text("")
    with Memory(":memory:") as memory:
        told: list[tuple[int, int]] = []
        with pytest.raises(BadRecord, match="a:2: it breaks off"):
            memory.import_transcript(tmp_path / "a", on_progress=lambda *counts: told.append(counts))
        assert memory.stats()["events"] == 1
        assert told == [(0, 1), (1, 1)]


def test_progress_counts_what_is_left_out_too(tmp_path: Path) -> None:
    (tmp_path / "chat.txt").write_text("Ann: One.\nBen: Two.\nAnn: Three.\n")
    told: list[tuple[int, int]] = []
    with Memory(":memory:") as memory:
        report = memory.import_transcript(
            tmp_path / "chat.txt", speakers=["Ben"], on_progress=lambda *counts: told.append(counts)
        )
    assert (report.added, report.left_out, report.speakers, report.sessions) == (1, 2, {"Ben": 1}, 1)
    assert told == [(0, 3), (3, 3)]


def test_a_report_holds_the_first_that_cannot_be_stored_and_counts_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zettel.transcripts.report.KEPT_REJECTIONS", 2)
    monkeypatch.setattr("zettel.transcripts.importing.BATCH", 3)
    (tmp_path / "log.jsonl").write_text('{"content": "Snow."}\n' + '{"contents": "?"}\n' * 7)
    told: list[str] = []
    with Memory(":memory:") as memory:
        report = memory.import_transcript(
            tmp_path / "log.jsonl", on_rejected=lambda some: told.extend(one.position for one in some)
        )
    assert [one.position for one in report.rejected] == ["2", "3"]
    assert (report.rejections, report.files[0].rejected, report.records) == (7, 7, 8)
    assert told == ["2", "3", "4", "5", "6", "7", "8"]


def test_in_an_event_loop(tmp_path: Path) -> None:
    async def run() -> tuple[Any, Any]:
        async with AsyncMemory(":memory:") as memory:
            dry = await memory.import_transcript(tmp_path, dry_run=True, session_gap=1)
            return dry, await memory.import_transcript(tmp_path, session_gap=1)

    (tmp_path / "log.jsonl").write_text('{"content": "Snow.", "occurred_at": "2024-05-01T06:00Z"}\n')
    dry, done = asyncio.run(run())
    assert (dry.added, dry.sessions, dry.dry_run) == (done.added, done.sessions, True) == (1, 1, True)
    assert dry.first == dry.last == datetime(2024, 5, 1, 6, tzinfo=timezone.utc)
