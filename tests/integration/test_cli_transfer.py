"""Whole memories through the command line, and its errors for unreadable files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.command import CommandResult, Zettel

pytestmark = pytest.mark.integration

CHAT = """\
[2024-05-01 09:00] Ann: I moved to Oslo last week, the flat looks over the harbour.
[2024-05-01 09:01] Ben: Congratulations! Is the piano there already?
Ann: The piano comes on Friday with my brother Nils.
"""


@pytest.fixture
def edited_id(zettel: Zettel, tmp_path: Path) -> str:
    """Create ``zettel.db`` with a deleted note and a note of Ben; return the id of an edited note."""
    (tmp_path / "chat.txt").write_text(CHAT, encoding="utf-8")
    assert zettel("import", "chat.txt").status == 0
    notes = [hit["note"] for hit in zettel("search", "the piano and the flat in Oslo", "--json").json()]
    by_content = {note["content"][:10]: note["id"] for note in notes}
    assert zettel("delete", by_content["Congratula"], "--yes").status == 0
    assert zettel("add", "Ben tunes pianos.", "--user", "ben").status == 0
    edited: str = by_content["I moved to"]
    return edited


class TestTransfers:
    def test_a_memory_can_be_imported_into_another_store(self, zettel: Zettel, edited_id: str) -> None:
        assert zettel("export", "--format", "zettel", "ann.zettel").err == "2 events written to ann.zettel\n"
        report = zettel("import", "ann.zettel", "--store", "new.db", "--json").json()
        assert (report["file"], report["format"], report["added"]) == ("ann.zettel", "zettel", 2)
        for command in (
            ["history", edited_id],
            ["show", edited_id],
            ["links", edited_id],
            ["search", "Who moved to Oslo?"],
        ):
            assert zettel(*command, "--store", "new.db").out == zettel(*command).out
        again = zettel("import", "chat.txt", "--store", "new.db", "--json").json()
        assert (again["added"], again["existing"], again["deleted"]) == (0, 2, 1)
        assert zettel("doctor", "--store", "new.db").status == 0

    def test_all_scopes_can_be_exported_and_imported(self, zettel: Zettel, edited_id: str) -> None:
        assert zettel("export", "--format", "zettel", "--all-scopes", "all.zettel").err.startswith("3 events")
        assert zettel("import", "--format", "zettel", "all.zettel", "--store", "new.db", "--json").json()["added"] == 3
        (hit,) = zettel("search", "pianos", "--user", "ben", "--store", "new.db", "--json").json()
        assert hit["note"]["content"] == "Ben tunes pianos."

    def test_a_memory_can_be_piped(self, zettel: Zettel, edited_id: str) -> None:
        exported = zettel("export", "--format", "zettel", "-").out.encode()
        result = zettel("import", "--format", "zettel", "-", "--user", "eve", stdin=exported)
        assert (result.status, "2  added" in result.out) == (0, True)

    def test_a_memory_can_be_imported_into_another_scope(self, zettel: Zettel, edited_id: str) -> None:
        zettel("export", "--format", "zettel", "ann.zettel")
        assert zettel("import", "ann.zettel", "--user", "eve", "--json").json()["added"] == 2
        assert zettel("show", edited_id, "--user", "eve").out == zettel("show", edited_id).out


class TestRefusals:
    """Errors are one line with a remedy, and change nothing."""

    def check_refused(self, result: CommandResult, *expected: str, status: int = 2) -> None:
        assert (result.status, result.out, result.err.count("\n")) == (status, "", 1)
        for text in expected:
            assert text in result.err

    def test_a_scope_that_is_not_empty(self, zettel: Zettel, edited_id: str) -> None:
        zettel("export", "--format", "zettel", "ann.zettel")
        zettel("add", "Snow fell.", "--user", "eve")
        before = zettel("export", "--user", "eve").out
        self.check_refused(zettel("import", "ann.zettel", "--user", "eve"), "user='eve' is not empty", "--user")
        assert zettel("export", "--user", "eve").out == before

    def test_a_truncated_file_creates_no_store(self, zettel: Zettel, edited_id: str, tmp_path: Path) -> None:
        zettel("export", "--format", "zettel", "ann.zettel")
        lines = (tmp_path / "ann.zettel").read_bytes().splitlines(keepends=True)
        (tmp_path / "cut.zettel").write_bytes(b"".join(lines[:4]))
        result = zettel("import", "cut.zettel", "--store", "new.db")
        self.check_refused(result, "cut.zettel:4: the file is truncated", status=1)
        assert not (tmp_path / "new.db").exists()

    def test_a_damaged_line_is_an_error(self, zettel: Zettel, edited_id: str, tmp_path: Path) -> None:
        zettel("export", "--format", "zettel", "ann.zettel")
        content = (tmp_path / "ann.zettel").read_bytes()
        (tmp_path / "bad.zettel").write_bytes(content.replace(b"harbour", b"hXrbour", 1))
        result = zettel("import", "bad.zettel", "--user", "eve")
        self.check_refused(result, "bad.zettel:4: the line is damaged", status=1)
        result = zettel("import", "--format", "zettel", "-", "--user", "eve", stdin=content[:-9])
        self.check_refused(result, "-:", "truncated in this", status=1)

    def test_conversation_is_refused_for_a_whole_memory(self, zettel: Zettel, edited_id: str) -> None:
        zettel("export", "--format", "zettel", "ann.zettel")
        options = ("--conversation", "pond", "--user", "eve")
        self.check_refused(zettel("import", "ann.zettel", *options), "contains whole memories")

    def test_runner_is_refused_for_a_whole_memory(self, zettel: Zettel, edited_id: str) -> None:
        zettel("export", "--format", "zettel", "ann.zettel")
        self.check_refused(zettel("import", "ann.zettel", "--runner", "process", "--user", "eve"), "leave --runner out")

    def test_all_scopes_and_a_scope_are_refused_together(self, zettel: Zettel, edited_id: str) -> None:
        result = zettel("export", "--format", "zettel", "--all-scopes", "--user", "ben", "all.zettel")
        self.check_refused(result, "--all-scopes")

    def test_all_scopes_are_refused_as_lines(self, zettel: Zettel, edited_id: str, tmp_path: Path) -> None:
        self.check_refused(zettel("export", "--all-scopes", "all.jsonl"), "zettel")
        assert not (tmp_path / "all.jsonl").exists()


class TestGuessing:
    """The error describes a file that no format recognises."""

    @pytest.mark.parametrize(
        ("content", "error_text"),
        [
            ('[{"who": "Ann", "text": "Snow."}, {"who": "Ben"}]', "is a JSON array of objects with who, text"),
            ("[1, 2, 3]", "is a JSON array of values"),
            ("[]", "is a JSON array of values"),
            ('["Snow."]', "is a JSON array of texts"),
            ("[[1]]", "is a JSON array of arrays"),
            ('[{"who": "Ann", "text": "Snow."}, {"who"', "is a truncated JSON array"),
            ('{"who": "Ann", "text": "Snow."}', "begins with an object with who, text"),
            ('{"messages": [{"who": "Ann"', "is truncated JSON"),
            ("", "is empty"),
            ("a\0b", "is not a text file"),
            ("Just prose, of nobody.\n" * 50, "matches no transcript format"),
            ("Nachricht;Von\nHallo;Ann\n", "matches no transcript format: if it is a table, name its columns with "),
        ],
    )
    def test_the_error_describes_the_file(self, zettel: Zettel, tmp_path: Path, content: str, error_text: str) -> None:
        (tmp_path / "file.json").write_text(content)
        result = zettel("import", "file.json")
        assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
        assert f"file.json {error_text}" in result.err
        assert "pass format= (--format) if its format is one of locomo, " in result.err
        assert ", plain, zettel" in result.err

    def test_columns_of_a_table_are_named_as_the_error_suggests(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "tickets.csv").write_text("Nachricht;Von\nHallo;Ann\n")
        assert "--column content=NAME" in zettel("import", "tickets.csv").err
        assert zettel("import", "tickets.csv", "--column", "content=Nachricht", "--column", "speaker=Von").status == 0

    def test_the_error_suggests_jq_for_arrays(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "file.json").write_text('[{"who": "Ann", "text": "Snow."}]')
        assert "jq -c '.[]'" in zettel("import", "file.json").err

    @pytest.mark.parametrize(
        ("content", "error_text"),
        [
            ('[{"speaker": "Ann", "content": "Snow."}]', "entry 0 is not a conversation: it has speaker, content"),
            ('[{"conversation": {"session_1": [', "the JSON is truncated here"),
            ('[{"conversation": {"session_1": [{"text": "Sno', "the JSON is truncated here"),
            ('[{"conversation": {"session_1": ]}}]', "the JSON is damaged here"),
        ],
    )
    def test_an_invalid_locomo_file_is_an_error(
        self, zettel: Zettel, tmp_path: Path, content: str, error_text: str
    ) -> None:
        (tmp_path / "file.json").write_text(content)
        result = zettel("import", "file.json", "--format", "locomo")
        assert (result.status, result.err.count("\n")) == (1, 1)
        assert error_text in result.err
