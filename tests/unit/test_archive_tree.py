"""Listing of the files in folders and zips: sorted, inside the root, without zip bombs."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import pytest

from zettel.errors import BadRecord
from zettel.transcripts import archive_tree
from zettel.transcripts.archive_tree import File, files, is_tree


def content(file: File) -> bytes:
    with file.open() as stream:
        return stream.read()


def zipped(path: Path, entries: dict[str, bytes]) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def test_a_folder_and_its_zip_have_the_same_files(tmp_path: Path) -> None:
    contents = {"b/2.txt": b"two", "a.txt": b"one", "b/1.txt": b"", ".DS_Store": b"x", "__MACOSX/a.txt": b"x"}
    folder = tmp_path / "export"
    for name, content_bytes in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content_bytes)
    archive = zipped(tmp_path / "export.ZIP", contents)
    for path in (folder, archive):
        assert is_tree(path)
        listed = list(files(path))
        assert [(file.name, file.size) for file in listed] == [("a.txt", 3), ("b/1.txt", 0), ("b/2.txt", 3)]
        assert [content(file) for file in listed] == [b"one", b"", b"two"], "read after all were listed"
        assert [file.where for file in listed] == [f"{path}/{file.name}" for file in listed]


def test_a_single_file_is_listed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"hi")
    (file,) = files(tmp_path / "a.txt")
    assert not is_tree(file.path)
    assert (file.name, file.where, content(file)) == ("a.txt", str(file.path), b"hi")
    (missing,) = [file._replace(path=tmp_path / "missing")]
    with pytest.raises(BadRecord, match=r"a\.txt: cannot be read: No such file"):
        missing.open()


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("no", encoding="utf-8")
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "link.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (folder / "linked").symlink_to(tmp_path / "outside")
    assert list(files(folder)) == []
    with ZipFile(tmp_path / "a.zip", "w") as archive:
        link = ZipInfo("link.txt")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/hostname")
    assert list(files(tmp_path / "a.zip")) == []


@pytest.mark.parametrize("name", ["../a.txt", "/etc/a.txt", "a/../../b.txt", "\\\\server\\a.txt", "C:\\a.txt"])
def test_zip_entries_outside_the_root_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadRecord, match="leads out of it"):
        list(files(zipped(tmp_path / "a.zip", {name: b"x"})))


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRecord, match=r"zeros would unpack to 17,000,000 bytes"):
        list(files(zipped(tmp_path / "a.zip", {"zeros": bytes(17_000_000)})))


def test_overlapping_zip_entries_are_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {name: name.encode() * 9 for name in "abc"})
    with ZipFile(path) as archive:
        entries = archive.infolist()
    for entry in entries:
        entry.compress_size = path.stat().st_size
    with pytest.raises(BadRecord, match="overlap"):
        archive_tree._check_entries(path, entries)


def test_a_damaged_entry_raises_when_it_is_read(tmp_path: Path) -> None:
    content_bytes = bytes(range(256)) * 4
    path = tmp_path / "a.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("a.bin", content_bytes)
    raw = path.read_bytes()
    path.write_bytes(raw.replace(content_bytes[:256], content_bytes[:255] + b"\0", 1))
    (file,) = files(path)
    with pytest.raises(BadRecord, match=r"a\.zip/a\.bin: cannot be read: Bad CRC-32"):
        content(file)


def test_an_undecodable_name_is_reported_escaped(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"a\xff.txt")).write_bytes(b"hi")
    (file,) = files(tmp_path)
    assert file.where == f"{tmp_path}/a\\udcff.txt"
    assert content(file) == b"hi"
