"""``zettel import`` of folders, zips and stdin, with its options for selection, dry runs and rejected records."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.integration.command import CommandResult, Zettel
from zettel.cli import import_export
from zettel.local.process_runner import ProcessRunner
from zettel.model import Evolved, Job

pytestmark = pytest.mark.integration

SAMPLES = Path(__file__).parents[1] / "data" / "transcripts"

CHAT = """\
[2024-05-01 09:00] Ann: I moved to Oslo last week.
[2024-05-01 09:01] Bob: Is the piano there already?
[2024-05-03 20:00] Ann: It came on Friday, with my brother Nils.
[2024-05-04 07:30] Cai: Play us something!
"""
LOG = '{"id": "1", "content": "Wind from the west."}\n{"id": "2", "contents": "?"}\n'
TABLE = "Text,Who,When\nThe pump leaks.,Dee,2024-05-02T10:00\nIt holds now.,Eli,2024-05-02T11:00\n"

ENTRIES = [
    f"{day:02}/05/2024, {hour:02}:15 - {speaker}: Entry {day}-{hour}.\n"
    for day in range(13, 19)
    for hour, speaker in ((9, "Ann"), (10, "Ben"), (20, "Ann"))
]
"""A chat as WhatsApp exports it."""


def check_refused(result: CommandResult, *expected: str, status: int = 2) -> None:
    assert (result.status, result.out, result.err.count("\n")) == (status, "", 1), result
    for text in expected:
        assert text in result.err


def events(zettel: Zettel) -> list[dict[str, Any]]:
    return [json.loads(line) for line in zettel("export").out.splitlines()]


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    """Create a mixed folder: a chat, a log, a picture, links that leave the folder, and a zip."""
    folder = tmp_path / "exports"
    (folder / "deep" / "down").mkdir(parents=True)
    (folder / "deep" / "down" / "chat.txt").write_text(CHAT)
    (folder / "log.jsonl").write_text(LOG)
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\xff\0")
    (tmp_path / "secret.txt").write_text("Eve: not for you\n")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "out").symlink_to(tmp_path)
    with ZipFile(folder / "more.zip", "w") as packed:
        packed.writestr("b/talk.txt", "Ann: Packed away.\n")
        packed.writestr("a/noise.bin", b"\0\1")
    return folder


class TestManyFiles:
    def test_a_folder_is_imported_with_the_format_of_each_file(self, zettel: Zettel, exports: Path) -> None:
        result = zettel("import", "exports", "--json")
        report = json.loads(result.out)
        assert (result.status, report["file"], report["format"]) == (1, "exports", "plain, jsonl")
        assert [(file["file"], file["format"], file["added"], file["rejected"]) for file in report["files"]] == [
            ("exports/deep/down/chat.txt", "plain", 4, 0),
            ("exports/log.jsonl", "jsonl", 1, 1),
            ("exports/more.zip/b/talk.txt", "plain", 1, 0),
        ]
        assert report["unknown_files"] == ["exports/photo.jpg"]
        assert (report["added"], len(report["rejected_records"])) == (6, 1)
        assert "exports/log.jsonl:2" in result.err
        assert [event["source"]["file"] for event in events(zettel)[-1:]] == ["exports/more.zip/b/talk.txt"]
        assert "not for you" not in zettel("export").out

    def test_a_second_import_of_a_folder_adds_nothing(self, zettel: Zettel, exports: Path) -> None:
        (exports / "log.jsonl").unlink()
        assert zettel("import", "exports", "--json").json()["added"] == 5
        again = zettel("import", "exports", "--json").json()
        assert (again["added"], again["existing"]) == (0, 5)

    def test_packed_files_are_reported(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "exports").mkdir()
        (tmp_path / "exports/chat.txt").write_text(CHAT)
        (tmp_path / "exports/log.jsonl.gz").write_bytes(gzip.compress(LOG.encode()))
        (tmp_path / "exports/photo.jpg").write_bytes(b"\0")
        result = zettel("import", "exports")
        assert "exports/log.jsonl.gz: packed file: unpack it first" in result.out
        assert "exports/photo.jpg: unknown format" in result.out

    def test_rows_of_tables_with_the_same_name_are_separate_events(self, zettel: Zettel, tmp_path: Path) -> None:
        for folder in ("exports/one", "exports/two"):
            (tmp_path / folder).mkdir(parents=True)
            (tmp_path / folder / "log.csv").write_text(f"id,author,text\n1,Ann,Of {folder}.\n")
        (tmp_path / "exports/log.csv").write_text("id,author,text\n1,Ann,Above.\n")
        for counts in ((3, 0, 0), (0, 3, 0)):
            report = zettel("import", "exports", "--json").json()
            assert (report["added"], report["existing"], report["revised"]) == counts
        assert zettel("import", "exports/log.csv", "--json").json()["existing"] == 1, "by itself it is the same table"

    def test_overlapping_files_add_shared_messages_once(self, zettel: Zettel, tmp_path: Path) -> None:
        for name, lines in (("a", CHAT.splitlines()[:3]), ("b", CHAT.splitlines()[1:])):
            (tmp_path / name).mkdir()
            (tmp_path / name / "chat.txt").write_text("\n".join(lines))
        report = zettel("import", ".", "--json").json()
        assert (report["added"], report["existing"]) == (4, 2)

    def test_agent_runs_in_separate_folders_are_separate_conversations(self, zettel: Zettel, tmp_path: Path) -> None:
        for run in ("one", "two"):
            (tmp_path / "runs" / run).mkdir(parents=True)
            messages = [{"role": "user", "content": "Start."}, {"role": "assistant", "content": f"Run {run} is done."}]
            (tmp_path / "runs" / run / "messages.json").write_text(json.dumps(messages))
        report = zettel("import", "runs", "--json").json()
        assert (report["added"], report["existing"], report["sessions"]) == (4, 0, 2)
        assert zettel("import", "runs", "--json").json()["existing"] == 4

    def test_a_large_json_file_that_is_not_an_event_is_unknown(self, zettel: Zettel, tmp_path: Path) -> None:
        """Only a file that begins like an event is one, even if another contains "content" deep inside."""
        folder = tmp_path / "model"
        folder.mkdir()
        vocabulary = {f"word {number}": number for number in range(9_000)}
        (folder / "tokenizer.json").write_text(json.dumps({"version": "1", "a": [{"content": ""}], "v": vocabulary}))
        (folder / "long.json").write_text(json.dumps({"id": "1", "content": "A lantern. " * 9_000}))
        report = zettel("import", "model", "--json").json()
        assert (report["added"], report["rejected_records"]) == (1, [])
        assert report["unknown_files"] == ["model/tokenizer.json"]

    def test_a_zip_is_imported_file_by_file(self, zettel: Zettel, exports: Path) -> None:
        report = zettel("import", "exports/more.zip", "--json").json()
        assert [file["file"] for file in report["files"]] == ["exports/more.zip/b/talk.txt"]
        assert report["unknown_files"] == ["exports/more.zip/a/noise.bin"]

    def test_a_folder_export_is_imported_as_one_file(self, zettel: Zettel, tmp_path: Path) -> None:
        report = zettel("import", str(SAMPLES / "slack"), "--json").json()
        assert (report["format"], len(report["files"]), report["unknown_files"]) == ("slack", 1, [])

    @pytest.mark.parametrize("name", ["telegram", "slack", "markdown-vault"])
    def test_files_beside_a_folder_export_are_imported(self, zettel: Zettel, tmp_path: Path, name: str) -> None:
        shutil.copytree(SAMPLES / name, tmp_path / "deep" / "exports" / name)
        (tmp_path / "deep" / "chat.txt").write_text(CHAT)
        report = json.loads(zettel("import", "deep", "--dry-run", "--json").out)
        assert [(Path(file["file"]).name, file["format"]) for file in report["files"]] in (
            [("chat.txt", "plain"), ("exports", name.partition("-")[0])],
            [("chat.txt", "plain"), (name, name.partition("-")[0])],
        )

    def test_all_samples_are_recognised_in_one_import(self, zettel: Zettel) -> None:
        result = zettel("import", str(SAMPLES), "--dry-run", "--json")
        formats = {file["file"].removeprefix(f"{SAMPLES}/"): file["format"] for file in json.loads(result.out)["files"]}
        assert formats["slack"] == "slack"
        assert formats["markdown-vault"] == "markdown"
        assert formats["WhatsApp Chat - Rowing Club.zip"] == "whatsapp"
        assert formats["plain.txt"] == "plain"

    def test_a_format_option_selects_files(self, zettel: Zettel, exports: Path) -> None:
        report = zettel("import", "exports", "--format", "plain", "--json").json()
        assert report["unknown_files"] == ["exports/log.jsonl", "exports/photo.jpg"]

    def test_a_truncated_file_does_not_stop_the_import(self, zettel: Zettel, tmp_path: Path) -> None:
        folder = tmp_path / "two"
        folder.mkdir()
        conversation = json.dumps([{"sample_id": "s", "conversation": {"session_1": [], "speaker_a": "A"}}])
        (folder / "a.json").write_text(conversation[:-5])
        (folder / "b.txt").write_text(CHAT)
        result = zettel("import", "two", "--json")
        report = json.loads(result.out)
        assert (result.status, report["added"]) == (1, 4)
        assert [(file["file"], file["rejected"]) for file in report["files"]] == [("two/a.json", 1), ("two/b.txt", 0)]

    def test_an_import_without_readable_files_is_an_error_and_creates_no_store(
        self, zettel: Zettel, tmp_path: Path
    ) -> None:
        (tmp_path / "empty").mkdir()
        (tmp_path / "empty" / "photo.jpg").write_bytes(b"\0")
        check_refused(zettel("import", "empty"), "empty contains no transcript that zettel recognises")
        check_refused(zettel("import", "empty/photo.jpg"), "empty/photo.jpg is not a text file")
        with ZipFile(tmp_path / "all.zip", "w") as archive:
            archive.writestr("chat.txt", CHAT)
        with ZipFile(tmp_path / "outer.zip", "w") as archive:
            archive.write(tmp_path / "all.zip", "in/all.zip")
        check_refused(
            zettel("import", "outer.zip"), "outer.zip contains no transcript", "in it: 1; unpack the archives"
        )
        (tmp_path / "empty" / "cut.zip").write_bytes((tmp_path / "all.zip").read_bytes()[:-30])
        check_refused(
            zettel("import", "empty/cut.zip"), "empty/cut.zip is a truncated or damaged zip: copy or download"
        )
        (tmp_path / "empty" / "ann.jsonl.gz").write_bytes(gzip.compress(LOG.encode()))
        check_refused(
            zettel("import", "empty/ann.jsonl.gz"), "empty/ann.jsonl.gz is compressed with gzip: decompress it"
        )
        (tmp_path / "empty" / "old.txt").write_bytes("[2024-05-01 09:00] Jürgen: Grüße\n".encode("latin-1"))
        check_refused(zettel("import", "empty/old.txt"), "empty/old.txt is not in UTF-8: convert it (iconv")
        assert not (tmp_path / "zettel.db").exists()


class TestStdin:
    def test_a_transcript_is_imported_from_stdin(self, zettel: Zettel) -> None:
        assert zettel("import", "-", "--json", stdin=CHAT.encode()).json()["added"] == 4
        again = zettel("import", "-", "--json", stdin=CHAT.encode()).json()
        assert (again["file"], again["added"], again["existing"]) == ("-", 0, 4)
        assert {event["source"]["file"] for event in events(zettel)} == {"-"}

    def test_a_zip_is_imported_from_stdin(self, zettel: Zettel, exports: Path) -> None:
        report = zettel("import", "-", "--json", stdin=(exports / "more.zip").read_bytes()).json()
        assert [file["file"] for file in report["files"]] == ["-/b/talk.txt"]

    def test_notes_from_stdin_are_stored_once_and_replace_no_others(self, zettel: Zettel) -> None:
        notes = ("Reeds hum.", "Drains do not.", "---\nid: z-7\n---\nFlat.")
        for counts in ((1, 0, 0), (0, 1, 0)):
            for note in notes:
                report = zettel("import", "-", "--format", "markdown", "--json", stdin=note.encode()).json()
                assert (report["added"], report["existing"], report["revised"]) == counts

    def test_an_iphone_chat_is_imported_from_stdin(self, zettel: Zettel) -> None:
        chat = "[31.12.23, 21:05:09] Ann: Fireworks!\n[01.01.24, 00:05:09] Ben: Indeed.\n"
        report = zettel("import", "-", "--json", stdin=chat.encode()).json()
        assert (report["format"], report["added"]) == ("whatsapp", 2)

    def test_binary_stdin_is_an_error(self, zettel: Zettel) -> None:
        check_refused(zettel("import", "-", stdin=b"\0\1"), "- is not a text file")


class TestTablesAndZones:
    def test_columns_can_be_mapped(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "pumps.csv").write_text(TABLE)
        columns = ["--column", "content=Text", "--column", "speaker=Who", "--column", "occurred_at=When"]
        assert zettel("import", "pumps.csv", *columns, "--tz", "Europe/Oslo", "--json").json()["added"] == 2
        first = events(zettel)[0]
        assert (first["content"], first["speaker"], first["occurred_at"]) == (
            "The pump leaks.", "Dee", "2024-05-02T08:00:00Z",
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("options", "error_text"),
        [
            (["--tz", "Mars/Olympus"], "unknown time zone 'Mars/Olympus'"),
            (["--tz", "../../etc/passwd"], "unknown time zone"),
            (["--tz", "Europe"], "unknown time zone"),
            (["--column", "content=Text"], "columns requires a table"),
            (["--column", "content"], "--column 'content': expected NAME=VALUE"),
            (["--map-user", "Bob="], "--map-user 'Bob='"),
            (["--since", "soon"], "since='soon' is not a time"),
            (["--session-gap", "nan"], "session_gap must be hours such as 6 (0 for no sessions by time), got nan"),
            (["--session-gap", "-1"], "session_gap must be hours such as 6 (0 for no sessions by time), got -1.0"),
        ],
    )
    def test_wrong_options_are_errors_and_create_no_store(
        self, zettel: Zettel, tmp_path: Path, options: list[str], error_text: str
    ) -> None:
        (tmp_path / "chat.txt").write_text(CHAT)
        check_refused(zettel("import", "chat.txt", *options), error_text)
        assert not (tmp_path / "zettel.db").exists()

    @pytest.mark.parametrize(
        ("written", "stored"),
        [
            ("2024-05-01T12:00", "2024-05-01T10:00:00Z"),
            ("2024-05-01 12:00", "2024-05-01T10:00:00Z"),
            ("2024-05-01T12:00Z", "2024-05-01T12:00:00Z"),
            ("2024-05-01T12:00-05:00", "2024-05-01T17:00:00Z"),
            ("2024-05-01", "2024-04-30T22:00:00Z"),
        ],
    )
    def test_times_without_a_zone_use_the_tz_option(
        self, zettel: Zettel, tmp_path: Path, written: str, stored: str
    ) -> None:
        (tmp_path / "log.jsonl").write_text(json.dumps({"content": "Hm.", "occurred_at": written}))
        (tmp_path / "chat.txt").write_text(f"[{written}] Ann: Hm.\n")
        assert zettel("import", ".", "--tz", "Europe/Oslo", "--json").json()["added"] == 2
        assert {event["occurred_at"] for event in events(zettel)} == {stored}

    def test_a_column_that_one_table_has_not_does_not_stop_the_others(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("author,text\nAnn,Hm.\n")
        (tmp_path / "b.csv").write_text("author,text,Said\nAnn,Hm.,Aha.\n")
        result = zettel("import", ".", "--column", "content=Said", "--json")
        report = json.loads(result.out)
        assert (result.status, report["added"], report["rejected_records"][0]["file"]) == (1, 1, "a.csv")
        assert "unknown column 'Said'" in report["rejected_records"][0]["reason"]
        result = zettel("import", "a.csv", "--column", "content=Said")
        check_refused(result, "a.csv: unknown column 'Said'", status=1)


class TestChats:
    """Sessions by gaps, in a chat that is imported again a month later."""

    def chat(self, tmp_path: Path, lines: list[str]) -> str:
        (tmp_path / "WhatsApp Chat with Rowers.txt").write_text("".join(lines))
        return "WhatsApp Chat with Rowers.txt"

    def test_an_overlapping_export_adds_new_messages(self, zettel: Zettel, tmp_path: Path) -> None:
        first = zettel("import", self.chat(tmp_path, ENTRIES[:12]), "--json").json()
        assert (first["format"], first["added"], first["sessions"]) == ("whatsapp", 12, 8)
        later = zettel("import", self.chat(tmp_path, ENTRIES[4:]), "--json").json()
        assert (later["added"], later["existing"], later["revised"]) == (6, 8, 0)
        sessions = [event["session"] for event in events(zettel)]
        assert sessions[:4] == ["Rowers 2024-05-13", "Rowers 2024-05-13", "Rowers 2024-05-13/2", "Rowers 2024-05-14"]

    def test_messages_at_the_overlap_may_change_session_but_are_stored_once(
        self, zettel: Zettel, tmp_path: Path
    ) -> None:
        zettel("import", self.chat(tmp_path, ENTRIES[:12]))
        later = zettel("import", self.chat(tmp_path, ENTRIES[5:]), "--json").json()
        assert (later["added"], later["existing"], later["revised"]) == (6, 6, 1)

    def test_another_session_gap_moves_messages_to_other_sessions(self, zettel: Zettel, tmp_path: Path) -> None:
        zettel("import", self.chat(tmp_path, ENTRIES))
        again = zettel("import", self.chat(tmp_path, ENTRIES), "--session-gap", "0", "--json").json()
        assert (again["added"], again["revised"], again["sessions"]) == (0, 18, 0)

    def test_exported_messages_are_existing_when_imported(self, zettel: Zettel, tmp_path: Path) -> None:
        zettel("import", self.chat(tmp_path, ENTRIES))
        zettel("export", "all.jsonl")
        assert zettel("import", "all.jsonl", "--json").json()["existing"] == 18


class TestSelection:
    @pytest.fixture(autouse=True)
    def chat(self, tmp_path: Path) -> None:
        (tmp_path / "chat.txt").write_text(CHAT)

    def counts(self, zettel: Zettel, *options: str) -> tuple[int, int]:
        report = zettel("import", "chat.txt", "--json", *options).json()
        return report["added"], report["skipped"]

    def test_since_and_until_select_messages(self, zettel: Zettel) -> None:
        assert self.counts(zettel, "--since", "2024-05-01T09:01", "--until", "2024-05-04") == (2, 2)
        assert self.counts(zettel) == (2, 0)

    def test_since_uses_the_time_zone(self, zettel: Zettel) -> None:
        assert self.counts(zettel, "--since", "2024-05-03T20:00", "--tz", "Europe/Oslo") == (2, 2)
        assert self.counts(zettel, "--since", "2024-05-03T20:01", "--tz", "Europe/Oslo", "--user", "b") == (1, 3)

    def test_since_skips_undated_records(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "chat.txt").write_text("Ann: Once upon a time.\n")
        assert self.counts(zettel, "--since", "2000-01-01") == (0, 1)

    def test_speaker_selects_messages(self, zettel: Zettel) -> None:
        assert self.counts(zettel, "--speaker", "ann", "--speaker", "Cai") == (3, 1)

    def test_users_are_mapped_before_selection(self, zettel: Zettel) -> None:
        assert self.counts(zettel, "--map-user", "Bob=Robert", "--speaker", "Robert") == (1, 3)
        assert [event["speaker"] for event in events(zettel)] == ["Robert"]
        assert self.counts(zettel, "--map-user", "Bob=Robert") == (3, 0)

    def test_an_empty_selection_is_reported_and_not_an_error(self, zettel: Zettel) -> None:
        result = zettel("import", "chat.txt", "--speaker", "Nobody")
        assert (result.status, "4  skipped: not selected" in result.out) == (0, True)


class TestDryRun:
    def test_a_dry_run_reports_counts_and_stores_nothing(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "chat.txt").write_text(CHAT)
        result = zettel("import", "chat.txt", "--dry-run")
        assert (result.status, (tmp_path / "zettel.db").exists()) == (0, False)
        span = "from 2024-05-01 09:00 to 2024-05-04 07:30 UTC"
        for text in ("dry run", "4  added", span, "1 session", "Ann 2, Bob 1"):
            assert text in result.out

    def test_a_dry_run_considers_stored_events(self, zettel: Zettel, tmp_path: Path) -> None:
        lines = [{"id": str(n), "content": f"Entry {n}."} for n in range(4)]
        path = tmp_path / "log.jsonl"
        path.write_text("\n".join(map(json.dumps, lines[:3])))
        zettel("import", "log.jsonl")
        note = zettel("search", "Entry 2", "--json").json()[0]["note"]
        assert zettel("delete", note["id"], "--yes").status == 0
        lines[1]["content"] = "Another."
        path.write_text("\n".join(map(json.dumps, [*lines, lines[3], {"id": "3", "content": "Changed at once."}])))
        before = zettel("export").out
        names = ("added", "existing", "revised", "deleted", "rejected")
        predicted = zettel("import", "log.jsonl", "--dry-run", "--json").json()
        assert predicted["dry_run"] is True
        assert zettel("export").out == before
        report = zettel("import", "log.jsonl", "--json").json()
        assert [predicted[name] for name in names] == [report[name] for name in names]
        assert predicted["estimate"] is None

    def test_a_dry_run_estimates_the_cost_of_a_model(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "chat.txt").write_text(CHAT)
        result = zettel("import", "chat.txt", "--dry-run", "--llm", "openai/gpt-4o-mini")
        assert result.status == 0
        assert "calls to openai/gpt-4o-mini, about" in result.out
        assert "USD" in result.out

    def test_a_dry_run_of_a_whole_memory_is_refused(self, zettel: Zettel) -> None:
        zettel("add", "Snow fell.")
        zettel("export", "--format", "zettel", "all.zettel")
        check_refused(
            zettel("import", "all.zettel", "--dry-run", "--user", "eve"), "contains whole memories: import it"
        )


class TestRejected:
    def test_rejected_records_are_written_to_a_file(self, zettel: Zettel, tmp_path: Path) -> None:
        bad = "\n".join(f'{{"id": "{n}", "contents": "?"}}' for n in range(12))
        (tmp_path / "log.jsonl").write_text(LOG + bad)
        result = zettel("import", "log.jsonl", "--rejected", "bad.jsonl")
        assert (result.status, "and 3 more; --rejected FILE" in result.out) == (1, True)
        rejected = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
        assert len(rejected) == 13
        assert (rejected[0]["file"], rejected[0]["place"], "'contents'" in rejected[0]["reason"]) == (
            "log.jsonl",
            "2",
            True,
        )

    def test_without_rejected_records_the_file_is_empty(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "chat.txt").write_text(CHAT)
        assert zettel("import", "chat.txt", "--rejected", "bad.jsonl").status == 0
        assert (tmp_path / "bad.jsonl").read_text() == ""

    def test_an_unwritable_file_fails_before_the_import(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "chat.txt").write_text(CHAT)
        assert zettel("import", "chat.txt", "--rejected", "missing/bad.jsonl").status == 2
        assert not (tmp_path / "zettel.db").exists()

    def test_neither_the_transcript_nor_a_store_is_overwritten(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "chat.txt").write_text(CHAT)
        check_refused(zettel("import", "chat.txt", "--rejected", str(tmp_path / "chat.txt")), "chat.txt", "overwrite")
        assert (tmp_path / "chat.txt").read_text() == CHAT
        assert zettel("import", "chat.txt").status == 0
        check_refused(zettel("import", "chat.txt", "--rejected", "zettel.db"), "zettel.db is a database")
        assert len(events(zettel)) == 4

    def test_rejected_records_are_not_written_into_the_imported_folder(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "exports/deep").mkdir(parents=True)
        (tmp_path / "exports/deep/chat.txt").write_text(CHAT)
        for inside in ("exports/deep/chat.txt", "exports/bad.jsonl"):
            check_refused(zettel("import", "exports", "--rejected", inside), inside, "is in the folder")
        assert (tmp_path / "exports/deep/chat.txt").read_text() == CHAT
        assert zettel("import", "exports", "--rejected", "exports.jsonl").status == 0


@pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="names of files are text there")
def test_a_file_name_that_is_not_text_is_imported(zettel: Zettel, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    (folder / os.fsdecode(b"m\xe6l.txt")).write_text(CHAT)
    (folder / "log.jsonl").write_text('{"id": "1", "content": "Wind from the west."}\n')
    assert zettel("import", "exports", "--json").json()["added"] == 5
    alone = zettel("import", str(Path("exports", os.fsdecode(b"m\xe6l.txt"))), "--json").json()
    assert (alone["file"], alone["existing"]) == ("exports/m\\udce6l.txt", 4)
    sources = {(event["source"]["file"], event["session"]) for event in events(zettel)}
    assert sources == {("exports/m\\udce6l.txt", "m\\udce6l"), ("exports/log.jsonl", None)}
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / os.fsdecode(b"\xe6.md")).write_text("# Moor")
    assert zettel("import", "vault", "--store", "vault.db", "--json").json()["added"] == 1


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="with one core there is nothing to share")
def test_a_large_import_uses_a_worker_process(zettel: Zettel, exports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job_counts: list[int] = []
    do = ProcessRunner.do

    async def recording(runner: ProcessRunner, jobs: Sequence[Job]) -> Evolved:
        job_counts.append(len(jobs))
        return await do(runner, jobs)

    monkeypatch.setattr(ProcessRunner, "do", recording)
    zettel("import", "exports")
    assert job_counts == []
    monkeypatch.setattr(import_export, "LARGE", (exports / "deep" / "down" / "chat.txt").stat().st_size + 1)
    # The worker embeds and links each of the six notes.
    for store, arguments, jobs in (("a.db", (), 12), ("b.db", ("--runner", "here"), 0), ("c.db", ("--dry-run",), 0)):
        job_counts.clear()
        report = zettel("import", "exports", "--store", store, "--json", *arguments)
        assert (json.loads(report.out)["added"], sum(job_counts)) == (6, jobs)
    assert zettel("jobs", "--json", "--store", "a.db").json() == []
    check_refused(zettel("import", "exports", "--runner", "dask"), "unknown runner 'dask'", "process")


def test_memories_of_several_users_of_mem0_suggest_scopes(zettel: Zettel, tmp_path: Path) -> None:
    memory = {"memory": "Rows on Tuesdays", "created_at": "2024-03-02T09:00Z"}
    dump = {"results": [memory | {"id": user, "user_id": user} for user in ("edda", "tomas")]}
    (tmp_path / "all.json").write_text(json.dumps(dump))
    assert "several users or agents (edda, tomas) in one scope: --scope-by user" in zettel("import", "all.json").err
    assert zettel("import", "all.json", "--scope-by", "user").err == ""
