"""The data files that a benchmark's result names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.described import described
from zettel.bench import chats
from zettel.bench.results import DataFile, Result, data_files
from zettel.cli.benchmark_output import print_result
from zettel.cli.common import Common


def write(folder: Path, *names: str) -> list[Path]:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"the content of {name}", encoding="utf-8")
    return [folder / name for name in names]


def named(paths: list[Path]) -> list[dict[str, object]]:
    return [file.model_dump() for file in data_files(paths)]


def test_a_file_has_its_name_size_and_sha256(tmp_path: Path) -> None:
    (path,) = write(tmp_path, "a/talk.json")
    assert named([path]) == described(path)
    path.write_bytes(b"")
    assert [(file.size, file.sha256[:8]) for file in data_files([path])] == [(0, "e3b0c442")]


def test_files_of_the_same_name_have_their_folders_in_front(tmp_path: Path) -> None:
    paths = write(tmp_path, "1/chat.json", "1/part/q.json", "2/chat.json", "2/part/q.json", "notes.jsonl")
    assert named(paths) == described(*paths, below=tmp_path)


def test_a_repeated_file_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = write(tmp_path, "a/talk.json")
    monkeypatch.chdir(tmp_path)
    assert named([path, Path("a/talk.json"), tmp_path / "a" / ".." / "a" / "talk.json"]) == named([path])


def test_the_files_of_a_folder_of_chats_are_those_that_are_read(tmp_path: Path) -> None:
    parts = chats.BEAM_CHAT, chats.BEAM_QUESTIONS
    beam = write(tmp_path, *(f"beam/{number}/{part}" for number in (1, 10, 2) for part in parts))
    write(tmp_path, "beam/1/topic.json", "beam/notes.txt", "beam/3/topic.json")
    assert chats.files(tmp_path / "beam") == [*beam[:2], *beam[4:], *beam[2:4]], "in the order of the chats"
    assert chats.files(tmp_path / "beam" / "10") == beam[2:4]
    (line,) = write(tmp_path, "chats.jsonl")
    assert chats.files(tmp_path / "beam" / "10", line) == [*beam[2:4], line]
    own = write(tmp_path, "own/a.json", "own/b.json", "own/README.md")
    assert chats.files(tmp_path / "own") == own[:2]


def test_the_table_shows_short_hashes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def shown(data: list[DataFile]) -> str:
        result = Result(bench="x", data=data, ran_on={"chats": 10}, settings={}, columns=["system"], rows=[["zettel"]])
        print_result(result, Common("unused.db", False, None, None, None, None, None, None, None, json=False))
        return " ".join(capsys.readouterr().out.split())

    data = data_files(write(tmp_path, *(f"chat-{number}.json" for number in range(10))))
    assert f"chat-0.json (26 bytes, SHA-256 {data[0].sha256[:12]}…)" in shown(data)
    assert "chat-8" not in shown(data)
    assert "2 more files, which --json names" in shown(data)
    assert "SHA-256" not in shown([])
