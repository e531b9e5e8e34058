"""File names that every system accepts, and folders in which zettel changes only its own files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.errors import InvalidInput
from zettel.exports.file_names import MAX_BYTES, MAX_CHARACTERS, folded, stem_of
from zettel.exports.tracked_files import INDEX_FILE, TrackedFiles, require_folder


class TestNames:
    @pytest.mark.parametrize(
        ("text", "stem"),
        [
            ("The Glass Orchard", "The Glass Orchard"),
            ("  a\n b\t\tc ", "a b c"),
            ('AC/DC: "live" [[#1]]^|*<>?\\%', "AC DC live 1"),
            ("...hidden", "hidden"),
            ("ends.. ", "ends"),
            ("con", "_con"),
            ("LPT1.txt", "_LPT1.txt"),
            ("console", "console"),
            ("readme.md", "readme"),
            ("a.md.markdown", "a"),
            ("co\u00adoperate\u202e", "cooperate"),
            ("Bru\u0308nn", "Brünn"),
            ("", "Note"),
            ("?.:", "Note"),
            (".md", "md"),
        ],
    )
    def test_a_text_becomes_a_file_name(self, text: str, stem: str) -> None:
        assert stem_of(text) == stem

    def test_a_long_name_ends_with_a_word(self) -> None:
        stem = stem_of("sentence " * 40)
        assert len(stem) <= MAX_CHARACTERS
        assert stem.endswith("sentence")
        assert len(stem_of("x" * 500)) == MAX_CHARACTERS

    @given(st.text(max_size=100))
    def test_any_text_becomes_a_valid_name(self, text: str) -> None:
        stem = stem_of(text)
        assert stem == stem.strip(". ")
        assert stem.isprintable()
        assert not set(stem) & set('\\/:*?"<>|#^[]%')
        assert 0 < len(stem.encode()) <= MAX_BYTES + 1
        assert not stem.lower().endswith(".md")
        assert stem_of(stem) == stem

    def test_names_that_some_system_treats_as_equal_are_equal(self) -> None:
        assert folded("STRASSE") == folded("straße")
        assert folded("Bru\u0308nn") == folded("BRÜNN")


class TestOwnFiles:
    def files(self, path: Path) -> TrackedFiles:
        return TrackedFiles(path, ("Tags",))

    def write(self, path: Path, **texts: str) -> TrackedFiles:
        files = self.files(path)
        for of, text in texts.items():
            files.write(of, files.name(of, of), text)
        files.end()
        return files

    def test_names_are_unique_regardless_of_case(self, tmp_path: Path) -> None:
        files = self.files(tmp_path)
        assert [files.name(str(n), stem) for n, stem in enumerate(("Oslo", "OSLO", "oslo", "oslo 2", "Oslo"))] == [
            "Oslo", "OSLO 2", "oslo 3", "oslo 2 2", "Oslo 4",
        ]  # fmt: skip
        assert files.name("tag", "Oslo", "Tags") == "Tags/Oslo"
        assert files.name("0", "Oslo") == "Oslo", "it is called already"

    def test_a_name_is_stable(self, tmp_path: Path) -> None:
        files = self.files(tmp_path)
        for of in ("a", "b"):
            files.write(of, files.name(of, "ok"), of)
        files.end()
        second_run = self.files(tmp_path)
        second_run.write("b", second_run.name("b", "ok"), "b")
        second_run.end()
        assert (second_run.changed, second_run.removed) == (0, 1)
        assert [path.name for path in tmp_path.glob("*.md")] == ["ok 2.md"]

    def test_foreign_files_are_never_changed(self, tmp_path: Path) -> None:
        (tmp_path / "A.MD").write_text("mine")
        (tmp_path / "link.md").symlink_to(tmp_path / "A.MD")
        self.write(tmp_path, a="theirs", link="theirs")
        assert (tmp_path / "A.MD").read_text() == "mine"
        assert {path.name for path in tmp_path.glob("*.md")} == {"link.md", "a 2.md", "link 2.md"}
        assert (tmp_path / "link.md").is_symlink()

    def test_edited_files_are_left_alone(self, tmp_path: Path) -> None:
        self.write(tmp_path, a="one", b="two", c="three")
        (tmp_path / "a.md").write_text("one and more")
        (tmp_path / "b.md").write_text("two and more")
        files = self.write(tmp_path, a="one, later")
        assert sorted(files.edited) == ["a.md", "b.md"]
        assert ((tmp_path / "a.md").read_text(), (tmp_path / "b.md").read_text()) == ("one and more", "two and more")
        assert not (tmp_path / "c.md").exists()
        (tmp_path / "a.md").write_text("one")  # as it was
        assert self.write(tmp_path, a="one, later").edited == ["b.md"]
        assert (tmp_path / "a.md").read_text() == "one, later"

    def test_an_interrupted_write_is_recognised(self, tmp_path: Path) -> None:
        files = self.files(tmp_path)
        for of in ("a", "b"):
            files.write(of, files.name(of, of), "early")
        files.close()  # as if killed
        with (tmp_path / INDEX_FILE).open("a") as book:
            book.write('{"file": "c", "of"')
        second_run = self.write(tmp_path, b="late")
        assert (second_run.changed, second_run.removed, second_run.edited) == (1, 1, [])
        assert [path.name for path in tmp_path.glob("*.md")] == ["b.md"]

    @pytest.mark.parametrize("name", ["../out", "/etc/x", "Other/x", "Tags/../../out", "..", "C:x", "", "a\\..\\b"])
    def test_index_entries_outside_the_folder_are_ignored(self, tmp_path: Path, name: str) -> None:
        folder = tmp_path / "deep" / "vault"
        folder.mkdir(parents=True)
        self.write(folder, a="one")
        out = folder / f"{name}.md"
        if name == "../out":
            out.write_text("one")
        line = json.loads((folder / INDEX_FILE).read_text().splitlines()[0]) | {"file": name, "of": "x"}
        (folder / INDEX_FILE).write_text(json.dumps(line))
        assert self.write(folder, a="two").removed == 0
        assert name != "../out" or out.read_text() == "one"

    def test_an_impossible_folder_raises(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(InvalidInput, match="file is a file, and this format writes a folder"):
            require_folder(tmp_path / "file")
        with pytest.raises(InvalidInput, match="does not exist"):
            require_folder(tmp_path / "missing" / "vault")
