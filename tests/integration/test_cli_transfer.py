"""Whole memories through the command line, and what it says about files that it cannot read."""

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
def life(zettel: Zettel, tmp_path: Path) -> str:
    """The id of an edited note in ``zettel.db``; another one was deleted, and Ben has a note too."""
    (tmp_path / "chat.txt").write_text(CHAT, encoding="utf-8")
    assert zettel("import", "chat.txt").status == 0
    notes = [hit["note"] for hit in zettel("search", "the piano and the flat in Oslo", "--json").json()]
    by_content = {note["content"][:10]: note["id"] for note in notes}
    assert zettel("delete", by_content["Congratula"], "--yes").status == 0
    assert zettel("add", "Ben tunes pianos.", "--user", "ben").status == 0
    edited: str = by_content["I moved to"]
    return edited


class TestThereAndBack:
    def test_one_memory_into_another_store(self, zettel: Zettel, life: str) -> None:
        assert zettel("export", "--format", "zettel", "ann.zettel").err == "2 events written to ann.zettel\n"
        report = zettel("import", "ann.zettel", "--store", "new.db", "--json").json()
        assert (report["file"], report["format"], report["added"]) == ("ann.zettel", "zettel", 2)
        for command in (["history", life], ["show", life], ["links", life], ["search", "Who moved to Oslo?"]):
            assert zettel(*command, "--store", "new.db").out == zettel(*command).out
        again = zettel("import", "chat.txt", "--store", "new.db", "--json").json()
        assert (again["added"], again["existing"], again["deleted"]) == (0, 2, 1)
        assert zettel("doctor", "--store", "new.db").status == 0

    def test_everybody(self, zettel: Zettel, life: str) -> None:
        assert zettel("export", "--format", "zettel", "--all-scopes", "all.zettel").err.startswith("3 events")
        assert zettel("import", "--format", "zettel", "all.zettel", "--store", "new.db", "--json").json()["added"] == 3
        (hit,) = zettel("search", "pianos", "--user", "ben", "--store", "new.db", "--json").json()
        assert hit["note"]["content"] == "Ben tunes pianos."

    def test_through_a_pipe(self, zettel: Zettel, life: str) -> None:
        said = zettel("export", "--format", "zettel", "-").out.encode()
        ran = zettel("import", "--format", "zettel", "-", "--user", "eve", stdin=said)
        assert (ran.status, "2  added" in ran.out) == (0, True)

    def test_another_name(self, zettel: Zettel, life: str) -> None:
        zettel("export", "--format", "zettel", "ann.zettel")
        assert zettel("import", "ann.zettel", "--user", "eve", "--json").json()["added"] == 2
        assert zettel("show", life, "--user", "eve").out == zettel("show", life).out


class TestRefusals:
    """One line that says the way out, and nothing changed."""

    def refused(self, ran: CommandResult, *told: str) -> None:
        assert (ran.status, ran.out, ran.err.count("\n")) == (1, "", 1)
        for words in told:
            assert words in ran.err

    def test_a_scope_that_is_not_empty(self, zettel: Zettel, life: str) -> None:
        zettel("export", "--format", "zettel", "ann.zettel")
        zettel("add", "Snow fell.", "--user", "eve")
        before = zettel("export", "--user", "eve").out
        self.refused(zettel("import", "ann.zettel", "--user", "eve"), "user='eve' is not empty", "--user")
        assert zettel("export", "--user", "eve").out == before

    def test_a_cut_file_makes_no_store(self, zettel: Zettel, life: str, tmp_path: Path) -> None:
        zettel("export", "--format", "zettel", "ann.zettel")
        lines = (tmp_path / "ann.zettel").read_bytes().splitlines(keepends=True)
        (tmp_path / "cut.zettel").write_bytes(b"".join(lines[:4]))
        self.refused(zettel("import", "cut.zettel", "--store", "new.db"), "cut.zettel:4: the file is truncated")
        assert not (tmp_path / "new.db").exists()

    def test_a_damaged_line(self, zettel: Zettel, life: str, tmp_path: Path) -> None:
        zettel("export", "--format", "zettel", "ann.zettel")
        whole = (tmp_path / "ann.zettel").read_bytes()
        (tmp_path / "bad.zettel").write_bytes(whole.replace(b"harbour", b"hXrbour", 1))
        self.refused(zettel("import", "bad.zettel", "--user", "eve"), "bad.zettel:4: the line is damaged")
        self.refused(
            zettel("import", "--format", "zettel", "-", "--user", "eve", stdin=whole[:-9]), "-:", "truncated in this"
        )

    def test_no_conversation_of_a_whole_memory(self, zettel: Zettel, life: str) -> None:
        zettel("export", "--format", "zettel", "ann.zettel")
        options = ("--conversation", "pond", "--user", "eve")
        self.refused(zettel("import", "ann.zettel", *options), "contains whole memories")

    def test_no_runner_for_a_whole_memory(self, zettel: Zettel, life: str) -> None:
        zettel("export", "--format", "zettel", "ann.zettel")
        self.refused(zettel("import", "ann.zettel", "--runner", "process", "--user", "eve"), "leave --runner out")

    def test_everybody_and_somebody(self, zettel: Zettel, life: str) -> None:
        ran = zettel("export", "--format", "zettel", "--all-scopes", "--user", "ben", "all.zettel")
        self.refused(ran, "--all-scopes")

    def test_everybody_as_lines(self, zettel: Zettel, life: str, tmp_path: Path) -> None:
        self.refused(zettel("export", "--all-scopes", "all.jsonl"), "zettel")
        assert not (tmp_path / "all.jsonl").exists()


class TestGuessing:
    """A file that no format recognises is told as what it is."""

    @pytest.mark.parametrize(
        ("said", "told"),
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
        ],
    )
    def test_what_was_found(self, zettel: Zettel, tmp_path: Path, said: str, told: str) -> None:
        (tmp_path / "file.json").write_text(said)
        ran = zettel("import", "file.json")
        assert (ran.status, ran.out, ran.err.count("\n")) == (1, "", 1)
        assert f"file.json {told}" in ran.err
        assert "one of locomo, " in ran.err
        assert ", plain, zettel" in ran.err

    def test_arrays_can_be_turned_into_lines(self, zettel: Zettel, tmp_path: Path) -> None:
        (tmp_path / "file.json").write_text('[{"who": "Ann", "text": "Snow."}]')
        assert "jq -c '.[]'" in zettel("import", "file.json").err

    @pytest.mark.parametrize(
        ("said", "told"),
        [
            ('[{"speaker": "Ann", "content": "Snow."}]', "entry 0 is not a conversation: it has speaker, content"),
            ('[{"conversation": {"session_1": [', "the JSON is truncated here"),
            ('[{"conversation": {"session_1": [{"text": "Sno', "the JSON is truncated here"),
            ('[{"conversation": {"session_1": ]}}]', "the JSON is damaged here"),
        ],
    )
    def test_what_is_no_locomo(self, zettel: Zettel, tmp_path: Path, said: str, told: str) -> None:
        (tmp_path / "file.json").write_text(said)
        ran = zettel("import", "file.json", "--format", "locomo")
        assert (ran.status, ran.err.count("\n")) == (1, 1)
        assert told in ran.err
