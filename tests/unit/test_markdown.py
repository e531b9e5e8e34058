"""Markdown notes: vaults, single files, front matter, and links that become MENTIONS."""

from __future__ import annotations

import unicodedata
from datetime import datetime, timedelta, timezone
from pathlib import Path
from shutil import copytree
from zipfile import ZipFile

import pytest

from zettel import Memory
from zettel.model import Event, LinkType
from zettel.transcripts import Rejected
from zettel.transcripts.formats import markdown
from zettel.transcripts.parsing.front_matter import split_front_matter
from zettel.transcripts.parsing.wikilinks import NoteNames, TitleIndex, link_titles

VAULT = Path(__file__).parents[1] / "data" / "transcripts" / "markdown-vault"
CET = timezone(timedelta(hours=1))


def write(folder: Path, **notes: str) -> Path:
    for name, text in notes.items():
        path = folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def by_title(path: Path) -> dict[str | None, Event]:
    return {record.title: record for record in markdown.read(path, CET) if isinstance(record, Event)}


class TestVault:
    def test_each_file_becomes_a_note(self) -> None:
        records = list(markdown.read(VAULT))
        assert [record.title for record in records if isinstance(record, Event)] == [
            "Great bittern", "reeve", "2024-03-02", "marsh fiddle", "Species of the Lauke marsh",
            "Reed beds store sound", "Pump house", "Drain nothing",
        ]  # fmt: skip
        rejected = [record for record in records if isinstance(record, Rejected)]
        assert [(Path(item.file).name, item.reason) for item in rejected] == [("Untitled.md", "the note is empty")]

    def test_times_come_from_the_front_matter_or_the_file_name(self) -> None:
        times = {title: note.occurred_at for title, note in by_title(VAULT).items()}
        assert times["Great bittern"] == datetime(2024, 3, 2, 5, 40, tzinfo=timezone.utc), "its own zone"
        assert times["marsh fiddle"] == times["2024-03-02"] == datetime(2024, 3, 2, tzinfo=CET)
        assert times["Reed beds store sound"] == datetime(2024, 3, 2, 19, 15, tzinfo=CET)
        assert times["Drain nothing"] == datetime(2024, 3, 4, tzinfo=CET)
        assert times["reeve"] is None, "the file system is not asked"

    @pytest.mark.parametrize(
        ("name", "day"), [("2024_03_04", 4), ("2024-03-04 Monday", 4), ("2024_03-04", None), ("2024_03_041", None)]
    )
    def test_a_journal_name_gives_the_day(self, tmp_path: Path, name: str, day: int | None) -> None:
        write(tmp_path, **{name: "Wind."})
        (note,) = by_title(tmp_path / f"{name}.md").values()
        assert note.occurred_at == (day and datetime(2024, 3, day, tzinfo=CET))

    def test_properties_become_metadata_tags_and_links(self) -> None:
        bittern = by_title(VAULT)["Great bittern"]
        assert bittern.metadata == {
            "created": "2024-03-02T06:40:00+01:00", "up": "[[Species of the Lauke marsh]]", "rating": "5",
            "folder": "Birds", "tags": ["bird", "wetland/reed", "heard"], "aliases": ["bog bull", "Rohrdommel"],
        }  # fmt: skip
        assert bittern.content.endswith("#heard\n\nup: [[Species of the Lauke marsh]]\n\n#bird #wetland_reed")
        assert by_title(VAULT)["marsh fiddle"].speaker == "Ottla Brenk"

    def test_invalid_front_matter_is_text(self) -> None:
        assert by_title(VAULT)["Pump house"].content.startswith("---\nid: 202403030810\n")

    def test_each_link_becomes_a_mention(self) -> None:
        with Memory(":memory:") as memory:
            memory.add_many([record for record in markdown.read(VAULT) if isinstance(record, Event)])
            notes = memory.list().notes
            titles = {note.id: note.title for note in notes}
            mentions = {
                (titles[link.source], titles[link.target])
                for note in notes
                for link in memory.links(note.id)
                if link.type is LinkType.MENTIONS
            }
        assert mentions == {
            ("Great bittern", "2024-03-02"), ("Great bittern", "Species of the Lauke marsh"),
            ("Great bittern", "marsh fiddle"), ("2024-03-02", "reeve"), ("2024-03-02", "Reed beds store sound"),
            ("2024-03-02", "Pump house"), ("2024-03-02", "Great bittern"), ("2024-03-02", "marsh fiddle"),
            ("Species of the Lauke marsh", "reeve"), ("Species of the Lauke marsh", "Great bittern"),
            ("Reed beds store sound", "Pump house"), ("Reed beds store sound", "marsh fiddle"),
            ("Drain nothing", "Great bittern"),
        }  # fmt: skip

    def test_ids_are_equal_in_folder_zip_and_moved_vault(self, tmp_path: Path) -> None:
        ids = [record.external_id for record in markdown.read(VAULT) if isinstance(record, Event)]
        assert ids[0] == "markdown-vault/Birds/Great bittern.md"
        assert ids[-1] == "markdown-vault/z-77", "the front matter's own"
        moved = copytree(VAULT, tmp_path / "elsewhere" / "markdown-vault")
        assert [record.external_id for record in markdown.read(moved) if isinstance(record, Event)] == ids
        for top in ("", "markdown-vault/"):
            packed = tmp_path / "markdown-vault.zip"
            with ZipFile(packed, "w") as archive:
                for file in sorted(path for path in VAULT.rglob("*") if path.is_file()):
                    archive.write(file, top + file.relative_to(VAULT).as_posix())
            assert markdown.sniff(packed, b"PK")
            assert [record.external_id for record in markdown.read(packed) if isinstance(record, Event)] == ids

    def test_an_edited_note_keeps_its_id(self, tmp_path: Path) -> None:
        with Memory(":memory:") as memory:
            for text in ("Low water.", "High water."):
                (event,) = by_title(write(tmp_path / "vault", Sluice=text)).values()
                memory.add_many([event], on_conflict="revise")
            (note,) = memory.list().notes
        assert (note.content, note.version) == ("High water.", 2)

    def test_ids_that_a_template_copied_are_not_used(self, tmp_path: Path) -> None:
        vault = write(tmp_path / "vault", A="---\nid: same\n---\none", B="---\nid: same\n---\ntwo")
        assert [event.external_id for event in by_title(vault).values()] == ["vault/A.md", "vault/B.md"]

    def test_a_long_id_is_accepted_without_a_vault(self, tmp_path: Path) -> None:
        vault = write(tmp_path / "vault", A="---\nid: e_0123456789abcdef\n---\none")
        assert [event.external_id for event in by_title(vault).values()] == ["e_0123456789abcdef"]

    def test_unreadable_files_are_rejected(self, tmp_path: Path) -> None:
        vault = write(tmp_path, Good="fine", Null="a\0b")
        (vault / "Latin.md").write_bytes("müde".encode("latin-1"))
        (vault / "Long.md").write_bytes(b"x" * 1_300_000)
        (vault / "Wide.md").write_bytes("weit".encode("utf-16"))
        records = list(markdown.read(vault))
        assert [record.content for record in records if isinstance(record, Event)] == ["fine", "weit"]
        reasons = {Path(item.file).name: item.reason for item in records if isinstance(item, Rejected)}
        assert reasons["Latin.md"] == "byte 1 is not UTF-8"
        assert "1,300,000 bytes" in reasons["Long.md"]
        assert "NUL" in reasons["Null.md"]


class TestOneFile:
    def test_a_single_file_has_the_id_that_it_has_in_its_vault(self) -> None:
        (event,) = by_title(VAULT / "Species of the Lauke marsh.md").values()
        assert event.external_id == "markdown-vault/Species of the Lauke marsh.md"

    @pytest.mark.parametrize(
        ("name", "text", "title"),
        [
            ("readme", "Words.\n# The marsh #\n", "The marsh"),
            ("202403021915", "# A _thought_\n", "A _thought_"),
            ("202403021915", "no heading", "202403021915"),
            ("20240302191501-reeds_hum", "x", "reeds_hum"),
            ("12 monkeys", "x", "12 monkeys"),
            ("note", '---\ntitle: "Two\n  lines"\n---\nx', "Two lines"),
        ],
    )
    def test_each_file_has_a_title(self, tmp_path: Path, name: str, text: str, title: str) -> None:
        assert list(by_title(write(tmp_path, **{name: text}) / f"{name}.md")) == [title]

    def test_hashes_in_code_and_addresses_are_not_tags(self, tmp_path: Path) -> None:
        text = "#one and `#two` at https://example.org/#three\n~~~\n#four\n~~~\n#42 [x](#five) # six\n"
        (event,) = by_title(write(tmp_path, note=text)).values()
        assert event.metadata == {"tags": ["one"]}

    def test_a_note_from_standard_input_is_identified_by_its_content(self, tmp_path: Path) -> None:
        ids = []
        for text in ("# Reeds\nThey hum.", "# Reeds\nThey hum.", "# Drains\nThey do not.", "---\nid: z-7\n---\nFlat."):
            path = tmp_path / "-" / "-"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            (event,) = by_title(path).values()
            ids.append((event.title, event.external_id))
        assert ids[0] == ids[1] != ids[2]
        assert [title for title, _ in ids] == ["Reeds", "Reeds", "Drains", "-"]
        assert ids[3][1] == "-/z-7"


class TestSniffing:
    def test_vaults_are_distinguished_from_collections_of_exports(self, tmp_path: Path) -> None:
        vault = write(tmp_path, README="# What is here")
        assert markdown.sniff(vault, b"")
        for name in ("map.png", "tide.pdf", "sound.mp3"):
            (vault / name).touch()
        assert markdown.sniff(vault, b"")
        (vault / "program.py").touch()
        assert not markdown.sniff(vault, b""), "as many others as notes: a program with its documentation"
        (vault / "program.py").unlink()
        (vault / "chat.txt").write_text("Ann: one")
        assert not markdown.sniff(vault, b"")
        (vault / ".obsidian").mkdir()
        assert markdown.sniff(vault, b"")

    @pytest.mark.parametrize(
        ("name", "head", "known"),
        [
            ("a.md", b"# Title\n", True),
            ("a.MARKDOWN", b"prose", True),
            ("a.md", b"", True),
            ("a.md", "# wide".encode("utf-16"), True),
            ("a.md", b"Ann: hello\nBen: hello\n", False),
            ("a.md", b"\0\1", False),
            ("a.txt", b"# Title\n", False),
        ],
    )
    def test_single_files_are_recognised(self, tmp_path: Path, name: str, head: bytes, known: bool) -> None:
        assert markdown.sniff(tmp_path / name, head) is known


class TestFrontMatter:
    def test_values_are_read_verbatim(self) -> None:
        front_matter = "Date: 2024-03-02\nn: 007\nlist: [a, 'b c']\nup: [[Marsh]]\nalso:\n  - [[Reed]]\ndeep: {a: 1}\n"
        properties, body, line = split_front_matter(f"---\n{front_matter}---\nbody")
        assert properties == {
            "date": ["2024-03-02"], "n": ["007"], "list": ["a", "b c"], "up": ["[[Marsh]]"], "also": ["[[Reed]]"],
            "deep": [],
        }  # fmt: skip
        assert (body, line) == ("body", 10)

    @pytest.mark.parametrize(
        "text",
        ["---\n- a\n- b\n---\nx", "---\na: [\n---\nx", "---\nopen", "----\nx", f"---\na: {'[' * 5000}\n---\nx"],
    )
    def test_text_without_front_matter_is_unchanged(self, text: str) -> None:
        assert split_front_matter(text) == ({}, text, 1)

    def test_comments_alone_are_empty_front_matter(self) -> None:
        assert split_front_matter("---\n# nothing\n---\nx") == ({}, "x", 4)


class TestLinks:
    NAMES = TitleIndex(
        [
            NoteNames("a/Marsh fiddle.md", "Marsh fiddle", ("202403021915", "reed fiddle")),
            NoteNames("a/drum.md", "drum", ()),
            NoteNames("b/drum.md", "The long drum of the men who keep the sluice at Lauke", ()),
            NoteNames("e/Caf\u00e9.md", "Caf\u00e9", ()),
        ]
    )

    @pytest.mark.parametrize(
        ("text", "written"),
        [
            ("[[Marsh fiddle]]", "[[Marsh fiddle]]"),
            ("[[marsh FIDDLE#Tuning|it]]", "[[marsh FIDDLE#Tuning|it]]"),
            ("[[202403021915]]", "[[Marsh fiddle]]"),
            ("[[reed fiddle]]", "[[Marsh fiddle|reed fiddle]]"),
            ("![[reed fiddle#^block|that]]", "![[Marsh fiddle#^block|that]]"),
            ("| [[202403021915\\|it]] |", "| [[Marsh fiddle\\|it]] |"),
            ("[[drum]]", "[[Drum]]"),
            ("[[a/drum]]", "[[Drum]]"),
            (unicodedata.normalize("NFD", "[[caf\u00e9]]"), "[[Caf\u00e9]]"),
            ("[[nowhere]] [[#here]] [[]] [[ ]]", "[[nowhere]] [[#here]] [[]] [[ ]]"),
            ("[it](drum.md)", "[[Drum|it]]"),
            ("[it](<../a/drum.md#Skin>)", "[[Drum|it]]"),
            ("[Drum](drum.md)", "[Drum](drum.md)"),
            ("[it](https://example.org/drum.md) ![x](drum.md)", "[it](https://example.org/drum.md) ![x](drum.md)"),
        ],
    )
    def test_a_link_becomes_the_title(self, text: str, written: str) -> None:
        assert link_titles(text, "a/note.md", self.NAMES) == written
