"""The file of an audit log: the chain of hashes, rotation, damage, and writes that fail."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zettel.errors import AuditError, InvalidInput
from zettel.local import audit_log
from zettel.local.audit_log import START, AuditLog, read, rotated, verify


def written(path: Path, count: int = 5, **options: Any) -> Path:
    log = AuditLog(path, **options)
    for n in range(count):
        log.append({"op": "get", "ids": [f"n_{n}"], "who": "key:å\udc80"})
    log.close()
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def test_records_are_numbered_dated_and_chained(path: Path) -> None:
    records = list(read(written(path)))
    assert [record["n"] for record in records] == [1, 2, 3, 4, 5, 6]
    assert records[0]["op"] == "log"
    assert records[0]["continues"] == START
    assert records[1] | {"time": "", "hash": ""} == {
        "n": 2, "time": "", "op": "get", "ids": ["n_0"], "who": "key:å\udc80", "hash": "",
    }  # fmt: skip
    assert verify(path) == (6, records[-1]["hash"], None, True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_log_continues_after_it_was_opened_again(path: Path) -> None:
    written(path)
    written(path, 2)
    assert [record["n"] for record in read(path)] == [*range(1, 9)]
    assert verify(path).problem is None


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


CHANGES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "changed": lambda lines: [*lines[:3], lines[3].replace(b"n_2", b"n_9"), *lines[4:]],
    "changed with a new hash": lambda lines: [*lines[:3], _signed_again(lines, 3), *lines[4:]],
    "removed": lambda lines: [*lines[:3], *lines[4:]],
    "removed at the beginning": lambda lines: lines[1:],
    "moved": lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
    "added": lambda lines: [*lines[:3], lines[2], *lines[3:]],
    "not JSON": lambda lines: [*lines[:3], b"hello\n", *lines[4:]],
    "the last one changed": lambda lines: [*lines[:-1], lines[-1].replace(b"n_4", b"n_9")],
}


def _signed_again(lines: list[bytes], place: int) -> bytes:
    """Return a changed line with the hash that it should have."""
    record = json.loads(lines[place]) | {"ids": ["n_9"]}
    before = json.loads(lines[place - 1])["hash"]
    del record["hash"]
    body = json.dumps(record, separators=(",", ":")).encode()[:-1]
    return body + f',"hash":"{audit_log._digest(before, body)}"}}\n'.encode()


@pytest.mark.parametrize("change", CHANGES)
def test_tampering_is_detected(path: Path, change: str) -> None:
    written(path)
    path.write_bytes(b"".join(CHANGES[change](lines_of(path))))
    problem = verify(path).problem
    assert problem is not None
    assert problem.startswith(f"{path}:")


def test_a_cut_is_detected_by_a_noted_hash(path: Path) -> None:
    noted = verify(written(path)).last_hash
    path.write_bytes(b"".join(lines_of(path)[:-1]))
    assert verify(path).problem is None
    assert verify(path, noted).problem == f"no line has the hash {noted}: the log was cut or replaced"
    earlier = verify(path).last_hash
    written(path, 1)
    assert verify(path, earlier).problem is None


def test_a_large_log_rotates(path: Path) -> None:
    written(path, 50, max_bytes=2_000)
    older = rotated(path)
    assert [file.name for file in older] == [f"audit.jsonl.{n}" for n in range(1, len(older) + 1)]
    assert len(older) > 3
    assert all(file.stat().st_size < 2_500 for file in (*older, path))
    assert len([record for record in read(path) if record["op"] == "get"]) == 50
    checked = verify(path)
    assert (checked.problem, checked.is_complete) == (None, True)
    written(path, 1)
    assert verify(path).problem is None
    older[0].unlink()  # archived elsewhere
    assert verify(path)[2:] == (None, False)
    older[2].unlink()
    problem = verify(path).problem
    assert problem is not None
    assert problem.startswith(f"{older[3]}:1")


def test_a_log_continues_although_its_newest_file_is_missing(path: Path) -> None:
    written(path, 50, max_bytes=2_000)
    numbers = [record["n"] for record in read(path)]
    last = max(record["n"] for record in read(path) if f'"n":{record["n"]},' in rotated(path)[-1].read_text())
    path.unlink()
    written(path, 1)
    assert [record["n"] for record in read(path)][-2:] == [last + 1, last + 2]
    assert len(numbers) > last


def test_an_incomplete_line_is_cut_and_reported(path: Path) -> None:
    with written(path).open("ab") as file:
        file.write(b'{"n":7,"time":')  # a power cut
    written(path, 1)
    assert verify(path).problem is None
    assert [record.get("cut") for record in read(path)][6:] == [14, None]


def test_another_writer_and_other_files_are_refused(path: Path, tmp_path: Path) -> None:
    log = AuditLog(path)
    with pytest.raises(AuditError, match="another process writes the audit log"):
        AuditLog(path)
    log.close()
    log.close()
    (tmp_path / "notes.txt").write_text("hello\n")
    with pytest.raises(AuditError, match="is not an audit log"):
        AuditLog(tmp_path / "notes.txt")
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(InvalidInput, match="symbolic link"):
        AuditLog(tmp_path / "link")
    with pytest.raises(AuditError, match="No such file"):
        AuditLog(tmp_path / "none" / "audit.jsonl")
    with pytest.raises(InvalidInput, match="does not exist"):
        verify(tmp_path / "nowhere")


@pytest.mark.parametrize("written_bytes", [None, 10])
def test_a_full_disk_leaves_no_part_of_a_line(
    path: Path, monkeypatch: pytest.MonkeyPatch, written_bytes: int | None
) -> None:
    log = AuditLog(path)
    write = os.write

    def full(file: int, line: bytes) -> int:
        if written_bytes is None:
            raise OSError(28, "No space left on device")
        return write(file, line[:written_bytes])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(AuditError, match="cannot be written"):
        log.append({"op": "get"})
    monkeypatch.undo()
    log.append({"op": "list"})
    log.close()
    assert [record["op"] for record in read(path)] == ["log", "list"]
    assert verify(path).problem is None
