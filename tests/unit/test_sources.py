"""Discovery of the transcripts below a path, and ids of records in several files."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest

from zettel import Memory, transcripts
from zettel.errors import BadRecord, InvalidInput
from zettel.model import Event, Source
from zettel.transcripts import Rejected, format_named
from zettel.transcripts.sources import TranscriptPart, find_parts, read

SAMPLES = Path(__file__).parents[1] / "data" / "transcripts"


class TestDiscovery:
    def test_packed_files_are_named_by_their_path_in_the_zip(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "all.zip"
        with ZipFile(path, "w") as packed:
            packed.writestr("deep/talk.txt", b"Ann: Hm.\nAnn: \xff\n")
        unpacked = tmp_path / "unpacked"
        unpacked.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(unpacked))
        (part,) = find_parts(path).parts
        rejected, event = read(part)
        assert isinstance(rejected, Rejected)
        assert isinstance(event, Event)
        assert (rejected.file, rejected.position) == (f"{path}/deep/talk.txt", "2")
        assert (event.source, event.session) == (Source(file=f"{path}/deep/talk.txt", position="1"), "talk")
        assert list(unpacked.iterdir()) == []

    def test_a_refused_zip_in_a_folder_is_reported_as_unknown(self, tmp_path: Path) -> None:
        (tmp_path / "chat.txt").write_text("Ann: Hm.\n")
        with ZipFile(tmp_path / "bad.zip", "w") as packed:
            packed.writestr("../up.txt", "Ann: Hm.\n")
        discovery = find_parts(tmp_path)
        assert [Path(part.where).name for part in discovery.parts] == ["chat.txt"]
        assert [Path(name).name for name in discovery.unknown] == ["bad.zip"]
        with pytest.raises(BadRecord, match="leads out of it"):
            find_parts(tmp_path / "bad.zip")

    def test_an_ambiguous_folder_is_walked(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def taker(name: str) -> Any:
            return SimpleNamespace(name=name, folders=True, sniff=lambda path, head: path.is_dir(), read=iter)

        (tmp_path / "chat.txt").write_text("Ann: Hm.\n")
        plain = transcripts.format_named("plain")
        monkeypatch.setattr("zettel.transcripts.sources.formats_by_priority", lambda: [taker("one"), plain])
        assert find_parts(tmp_path).format == "one"
        formats = [taker("one"), taker("two"), plain]
        monkeypatch.setattr("zettel.transcripts.sources.formats_by_priority", lambda: formats)
        assert find_parts(tmp_path).format == "plain"

    @pytest.mark.parametrize("packed", [False, True])
    def test_walked_files_require_specific_formats(self, tmp_path: Path, packed: bool) -> None:
        damaged, event, other = '{"conte', '{"content": "Snow."}', '{"level": "info"}'
        files = {
            "chat.txt": "Ann: Hm.\n", "chat.LOG": "Ann: Hm.\n", "chat": "Ann: Hm.\n", "chat.md": "Ann: Hm.\n",
            "chat 1.5": "Ann: Hm.\n", "a.jsonl": f"{event}\n", "b.jsonl": f"{damaged}\n{other}\n{event}\n",
            "docker-compose.yml": 'version: "3"\nservices:\n', "requests.http": "Host: example.org\n",
            "c.jsonl": f"{other}\n{event}\n", "d.jsonl": f"{damaged}\n{other}\n",
        }  # fmt: skip
        folder = tmp_path / "all"
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        if packed:
            with ZipFile(tmp_path / "all.zip", "w") as archive:
                for name in files:
                    archive.write(folder / name, name)
        discovery = find_parts(tmp_path / "all.zip" if packed else folder)
        formats = {Path(part.where).name: part.format.name for part in discovery.parts}
        assert formats == dict.fromkeys(
            ("chat.txt", "chat.LOG", "chat", "chat.md", "chat 1.5"), "plain"
        ) | dict.fromkeys(("a.jsonl", "b.jsonl"), "jsonl")
        assert len(discovery.unknown) == 4
        for name in ("docker-compose.yml", "c.jsonl", "d.jsonl"):
            assert find_parts(folder / name).format in ("plain", "jsonl"), "who names a file means it"

    def test_missing_paths_raise(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="does not exist"):
            find_parts(tmp_path / "missing")
        with pytest.raises(InvalidInput, match="does not exist"):
            find_parts(tmp_path / "missing.zip")


class TestNeighbouringFiles:
    """Exports at the root of a folder next to other transcripts."""

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
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content.read_bytes() if isinstance(content, Path) else content)
        return folder

    def others(self, folder: Path) -> Path:
        return self.put(folder, {name: text.encode() for name, (text, _) in self.OTHERS.items()})

    @pytest.mark.parametrize("name", PUT)
    def test_files_of_an_export_do_not_split_it(self, tmp_path: Path, name: str) -> None:
        folder = self.put(tmp_path / "all", self.PUT[name])
        discovery = find_parts(folder)
        assert [(part.format.name, part.path) for part in discovery.parts] == [(name, folder)]
        assert (discovery.unknown, discovery.walked) == ((), False)

    @pytest.mark.parametrize(
        ("name", "packed"), [(name, packed) for name in PUT for packed in (False, True) if not packed or name != "amem"]
    )
    def test_other_transcripts_are_read_too(self, tmp_path: Path, name: str, packed: bool) -> None:
        path = self.others(self.put(tmp_path / "all", self.PUT[name]))
        if packed:
            path = Path(shutil.make_archive(str(path), "zip", path))
        path_alone = self.put(tmp_path / "alone" / "all", self.PUT[name])
        alone = list(read(TranscriptPart("all", format_named(name), path_alone)))
        discovery = find_parts(path)
        assert discovery.walked
        assert {part.where: part.format.name for part in discovery.parts} == {str(path): name} | {
            f"{path}/{other}": format for other, (_, format) in self.OTHERS.items()
        }
        assert discovery.unknown == ()
        ids = [record.external_id for record in read(discovery.parts[0]) if isinstance(record, Event)]
        assert ids == [record.external_id for record in alone if isinstance(record, Event)]
        with Memory(":memory:") as memory:
            report = memory.import_transcript(path)
        assert [(file.added > 0, file.revised) for file in report.files] == [(True, 0)] * len(discovery.parts)

    def test_each_of_two_conversation_files_is_read_by_its_own_format(self, tmp_path: Path) -> None:
        for name in ("claude", "chatgpt"):
            self.put(tmp_path / "exports" / name, self.PUT[name])
        assert find_parts(tmp_path / "exports").format == "chatgpt, claude"
        self.put(tmp_path / "exports", self.PUT["claude"])
        formats = [(Path(part.where).name, part.format.name) for part in find_parts(tmp_path / "exports").parts]
        assert formats == [("exports", "claude"), ("chatgpt", "chatgpt"), ("claude", "claude")]

    @pytest.mark.parametrize("name", PUT)
    def test_exports_in_subfolders_are_read(self, tmp_path: Path, name: str) -> None:
        self.others(self.put(tmp_path / "exports" / "all", self.PUT[name]))
        formats = [part.format.name for part in find_parts(tmp_path / "exports").parts]
        assert sorted(formats) == sorted([name, *(format for _, format in self.OTHERS.values())])

    def test_other_files_of_the_same_format_are_read_too(self, tmp_path: Path) -> None:
        folder = self.put(tmp_path / "all", self.PUT["whatsapp"])
        self.put(folder / "WhatsApp Chat - Ben", self.PUT["whatsapp"])
        self.put(folder, {"WhatsApp Chat with Cai.txt": b"31/12/2023, 21:05 - Cai: Hm.\n"})
        assert sorted(Path(part.where).name for part in find_parts(folder).parts) == [
            "WhatsApp Chat - Ben", "WhatsApp Chat with Cai.txt", "all",
        ]  # fmt: skip

    def test_a_vault_includes_all_its_files(self, tmp_path: Path) -> None:
        vault = self.others(
            self.put(tmp_path / "vault", {".obsidian/app.json": b"{}", "a.md": b"See [[b]].", "b.md": b"B."})
        )
        assert [(part.format.name, part.path) for part in find_parts(vault).parts] == [("markdown", vault)]

    def test_an_export_inside_a_vault_is_read_by_its_format(self, tmp_path: Path) -> None:
        folder = self.put(tmp_path / "all", self.PUT["chatgpt"])
        self.put(folder / "slack", self.PUT["slack"])
        self.put(folder, {"notes.xyz": b"\0"})
        discovery = find_parts(folder)
        assert [(part.format.name, part.path) for part in discovery.parts] == [
            ("chatgpt", folder), ("slack", folder / "slack"),
        ]  # fmt: skip
        assert discovery.unknown == (), "it may go with the export"


class TestIds:
    """Ids in a folder of several files: files never revise each other, and other files do not change ids."""

    def ids(self, path: Path) -> list[str]:
        records = [record for part in find_parts(path).parts for record in read(part)]
        return sorted(str(record.external_id) for record in records if isinstance(record, Event))

    def notes(self, root: Path, *names: str) -> Path:
        for name in names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(f"In {name!a}.")
        return root

    def test_equal_file_names_in_different_folders_have_different_ids(self, tmp_path: Path) -> None:
        files = [f"{project}/{name}" for project in ("p1", "p2") for name in ("main.py", "setup.txt", "docs/index.md")]
        root = self.notes(tmp_path / "md", *files)
        assert self.ids(root) == ["p1/docs/index.md", "p2/docs/index.md"]
        with Memory(":memory:") as memory:
            for counts in ((2, 0, 0), (0, 2, 0)):
                report = memory.import_transcript(root)
                assert (report.added, report.existing, report.revised) == counts

    def test_files_near_the_root_have_the_ids_of_single_imports(self, tmp_path: Path) -> None:
        root = self.notes(tmp_path / "all", "README.md", "vault/a.md", "src/main.py", "src/b.md", "all/README.md")
        self.notes(root, "setup.txt", "x.py", "y.py")
        assert self.ids(root) == ["all/README.md", "all/all/README.md", "src/b.md", "vault/a.md"]
        for name in ("README.md", "src/b.md"):
            assert self.ids(root / name) == [f"{(root / name).parent.name}/{(root / name).name}"]
        assert self.ids(root / "vault") == ["vault/a.md"]

    def test_an_undecodable_folder_name_is_escaped(self, tmp_path: Path) -> None:
        root = self.notes(tmp_path / "all", os.fsdecode(b"p\xff/docs/index.md"), os.fsdecode(b"p\xff/x.py"), "y.py")
        assert self.ids(root) == ["p\\udcff/docs/index.md"]

    @pytest.mark.parametrize("top", [".", "all"])
    def test_a_zip_yields_the_ids_of_its_folder(self, tmp_path: Path, top: str) -> None:
        files = ("README.md", "x.py", "y.py", "vault/a.md", "p/notes/a.md", "p/main.py", "p/q/main.py", "p/q/b.md")
        root = self.notes(tmp_path / "all", *files)
        packed = shutil.make_archive(str(tmp_path / "all"), "zip", tmp_path if top == "all" else root, top)
        ids = ["all/README.md", "p/notes/a.md", "p/q/b.md", "vault/a.md"]
        assert self.ids(root) == self.ids(Path(packed)) == ids
        self.notes(root, "x/z.py")
        for name in ("vault", "p"):
            shutil.make_archive(str(root / "x" / name), "zip", root / name)
        assert self.ids(root) == sorted([*ids, "x/p/notes/a.md", "x/p/q/b.md", "x/vault/a.md"])

    def test_equal_turn_ids_in_two_conversations_differ(self, tmp_path: Path) -> None:
        talk = {"session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hm."}], "speaker_a": "Ann"}
        format_named = {"sample_id": "conv-1", "conversation": talk}
        root = tmp_path / "lo"
        (root / "deep").mkdir(parents=True)
        (root / "1.json").write_text(json.dumps(format_named))
        assert self.ids(root / "1.json") == ["D1:1"]
        assert self.ids(root) == ["conv-1/D1:1"]
        (root / "2.json").write_text(json.dumps([{**format_named, "sample_id": "conv-2"}]))
        (root / "3.json").write_text(json.dumps(talk))
        (root / "deep" / "3.json").write_text(json.dumps([talk, talk]))
        with Memory(":memory:") as memory:
            assert memory.import_transcript(root / "2.json").added == 1
            report = memory.import_transcript(root)
            assert (report.added, report.revised) == (5, 0)
            assert memory.import_transcript(root, conversation="conv-2").existing == 1
        assert self.ids(root) == [
            "conv-1/D1:1",
            "conv-2/D1:1",
            "deep/3.json/0/D1:1",
            "deep/3.json/1/D1:1",
            "lo/3.json/D1:1",
        ]
