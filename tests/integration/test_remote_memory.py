"""A memory on a server, used from code and the command line: behaviour beyond the contract tests."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.http_server import Served, served
from tests.integration.command import Zettel
from zettel import AsyncMemory, Memory, Scope
from zettel.errors import (
    InvalidInput,
    InvalidKey,
    MemoryClosed,
    NotFound,
    PermissionDenied,
    ServerError,
    ServerUnreachable,
    StoreError,
    UnknownFormat,
)
from zettel.model import Kind
from zettel.remote.backend import RemoteBackend

pytestmark = pytest.mark.integration
TEAM = Path(__file__).parents[1] / "data" / "team.json"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served") / "memory.db") as running:
        yield running


@pytest.mark.anyio
async def test_an_async_memory_uses_a_server(server: Served) -> None:
    scope = Scope(user="awaited")
    async with AsyncMemory(server.url, key=server.key("awaited", scope)) as memory:
        assert isinstance(memory._backend, RemoteBackend)
        id = await memory.add("Tea is in the left cupboard.", speaker="Ann", wait=True)
        assert [hit.note.id for hit in await memory.search("Where is the tea?")] == [id]
        assert [notes[0].id async for _, notes in memory.dump()] == [id]
        assert await memory.scopes() == [scope]


def test_a_folder_is_imported_from_the_command_line(
    server: Served, zettel: Zettel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "one.md").write_text("# Tea\n\nIt is in the left cupboard.\n")
    monkeypatch.setenv("ZETTEL_KEY", server.key("shell", Scope(user="shell")))
    report = zettel("import", "folder", "--store", server.url, "--json").json()
    assert (report["file"], report["format"], report["added"]) == ("folder", "markdown", 1)


def test_files_can_be_imported_and_exported(server: Served, tmp_path: Path) -> None:
    folder, progress = tmp_path / "folder", []
    (folder / "deeper").mkdir(parents=True)
    (folder / "deeper" / "one.md").write_text("# Tea\n\nIt is in the left cupboard.\n")
    (folder / "two.md").write_text("# Coffee\n\nIt is beside [[one]].\n")
    with Memory(server.url, key=server.key("files", Scope(user="files"))) as memory:
        report = memory.import_transcript(folder, on_progress=lambda *counts: progress.append(counts))
        assert (report.added, progress) == (2, [(2, 2)])
        assert memory.import_transcript(folder).existing == 2
        renamed = memory.import_transcript(folder, source="mine", dry_run=True)
        assert (renamed.file, renamed.existing) == ("mine", 2)
        assert memory.import_transcript(TEAM, dry_run=True, speakers=["Priya"]).added < 172
        memory.flush()
        assert memory.export(tmp_path / "all.zettel").format == "zettel"
        with (tmp_path / "all.jsonl").open("wb") as file:
            assert memory.export(file).events == 2
        with pytest.raises(InvalidInput, match="markdown"):
            memory.export(tmp_path / "vault", "markdown")
        (folder / "two.md").write_bytes(b"\0\1")
        with pytest.raises(UnknownFormat, match=f"^{folder / 'two.md'} is not a text file"):
            memory.import_transcript(folder / "two.md", "auto")
        with pytest.raises(InvalidInput, match="nothing-there cannot be read"):
            memory.import_transcript(tmp_path / "nothing-there")
        with pytest.raises(TypeError, match="colour"):
            memory.import_transcript(folder, colour="red")  # type: ignore[call-arg]
        notes = {note.id for note in memory.list().notes}
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.jsonl", "all.zettel", "folder"]
    with Memory(tmp_path / "moved.db", scope=Scope(user="files")) as memory:
        memory.import_transcript(tmp_path / "all.zettel")
        assert {note.id for note in memory.list().notes} == notes


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_an_export_preserves_file_modes_and_follows_no_link(server: Served, tmp_path: Path) -> None:
    target, link = tmp_path / "all.jsonl", tmp_path / "link.jsonl"
    target.touch()
    target.chmod(0o640)
    link.symlink_to(target)
    with Memory(server.url, key=server.key("links", Scope(user="links"))) as memory:
        memory.add("The sails are at the loft.")
        with pytest.raises(InvalidInput, match="is a symbolic link"):
            memory.export(link)
        memory.export(target)
        memory.export(tmp_path / "new.jsonl")
    assert b"at the loft" in target.read_bytes()
    assert target.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "new.jsonl").stat().st_mode & 0o777 == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"all.jsonl", "link.jsonl", "new.jsonl"}


def test_unsupported_calls_raise_clear_errors(server: Served) -> None:
    with Memory(server.url, key=server.key("asks", Scope(user="asks"))) as memory:
        with pytest.raises(StoreError, match="a server does not offer cypher"):
            memory.cypher("RETURN 1")
        with pytest.raises(InvalidInput, match="ranks with its own scorers"):
            memory.search("Where?", scorer=lambda: None)  # type: ignore[arg-type]
        for session, reason in (("\ud800", "surrogates not allowed"), ("x" * 100_000, "too long")):
            with pytest.raises(InvalidInput, match=f"cannot be part of a URL: .*{reason}"):
                memory.list(session=session)
        with pytest.raises(InvalidInput, match="path must be a path, not NoneType: name a file or a folder"):
            memory.import_transcript(None)  # type: ignore[arg-type]
        with pytest.raises(PermissionDenied, match="does not open user='other'"):
            memory.search("Where?", scope=Scope(user="other"))
        with pytest.raises(InvalidInput, match="id is given twice"):
            memory.update("n_1", id="n_2", content="Another's.")
        for id in ("", "..", "n_1/history", "\ud800"):
            with pytest.raises(NotFound):
                memory.get(id)
        with pytest.raises(InvalidInput, match="an id of 60,000 bytes does not fit into a URL"):
            memory.get("é" * 10_000)
    error_check = pytest.raises(InvalidInput, match="cannot be asked for the default scope")
    with Memory(server.url, key=server.key("all"), scope=Scope(user="asks")) as memory, error_check:
        memory.delete_scope(scope=Scope())


def test_a_key_for_several_scopes_requires_a_scope(server: Served) -> None:
    ann, bob = Scope(user="ann"), Scope(user="bob")
    key = server.key("several", ann, bob)
    with Memory(server.url, key=key, scope=ann) as memory:
        id = memory.add("Ann is allergic to walnuts.", wait=True)
        assert memory.stats()["notes"] == 1
        assert memory.scopes() == [ann]
        assert memory.add("Bob is not.", wait=True, scope=bob) != id
        assert [note.id for note in memory.list(kinds=Kind.EPISODIC).notes] == [id]
    with Memory(server.url, key=key) as memory, pytest.raises(InvalidInput, match="opens several scopes"):
        memory.list()


def test_unusual_line_breaks_are_preserved(server: Served) -> None:
    text = "one\u2028two\u0085three\x0bfour"
    with Memory(server.url, key=server.key("text", Scope(user="text"))) as memory:
        memory.add(text)
        memory.add("Another.")
        assert [event.content for event, _ in memory.dump()] == [text, "Another."]


def test_links_are_not_imported_and_databases_not_overwritten(server: Served, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("It is under the mat.")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link.md").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "folder" / "old.md").write_text("Said long ago.")
    os.utime(tmp_path / "folder" / "old.md", (0, 0))
    Memory(tmp_path / "store.db").close()
    with Memory(server.url, key=server.key("ben", Scope(user="ben"))) as memory:
        memory.import_transcript(tmp_path / "folder")
        assert [note.content for note in memory.list().notes] == ["Said long ago."]
        with pytest.raises(InvalidInput, match=r"store\.db is a database"):
            memory.export(tmp_path / "store.db")
        with pytest.raises(InvalidInput, match="create it first"):
            memory.export(tmp_path / "nowhere" / "all.jsonl")
        assert memory.export(tmp_path / "all.jsonl").to == str(tmp_path / "all.jsonl")


def test_wrong_addresses_and_keys_are_errors(server: Served, tmp_path: Path) -> None:
    for key in (None, "zk_wrong"):
        with pytest.raises(InvalidKey, match="needs a valid key"):
            Memory(server.url, key=key)
    with pytest.raises(InvalidInput, match="llm= is an option of the server"):
        Memory(server.url, llm="openai/gpt-4o-mini")
    with pytest.raises(InvalidInput, match="key= is for a zettel server"):
        Memory(tmp_path / "a.db", key="zk_x")
    with pytest.raises(InvalidInput, match=r"would be sent to memory\.example unencrypted"):
        Memory("http://memory.example", key="zk_x")
    with pytest.raises(InvalidInput, match="is not a server's address"):
        Memory("https://")
    with pytest.raises(ServerUnreachable, match=r"http://127\.0\.0\.1:9 does not answer"):
        Memory("http://127.0.0.1:9")


@pytest.mark.anyio
async def test_a_call_that_fails_because_the_server_is_down_can_be_repeated(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    memory = AsyncMemory(f"http://127.0.0.1:{port}")
    with pytest.raises(ServerUnreachable):
        await memory.scopes()

    class MinimalServer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "14")
            self.end_headers()
            self.wfile.write(b'{"scopes": []}')

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", port), MinimalServer) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            assert await memory.scopes() == []
            await memory.close()
            with pytest.raises(MemoryClosed):
                await memory.scopes()
        finally:
            server.shutdown()
            thread.join()


def test_errors_do_not_contain_the_key(server: Served) -> None:
    key = server.key("newline", Scope(user="newline"))
    with Memory(server.url, key=f"{key}\n") as memory:
        assert memory.scopes() == []
    for wrong in (f"{key}\nX: y", f"{key}é", "zk \ud800", " ", 5):
        with pytest.raises(InvalidInput, match="not a server key") as error_info:
            Memory(server.url, key=wrong)  # type: ignore[arg-type]
        assert key not in str(error_info.value)
    with pytest.raises(InvalidInput, match="user or password") as error_info:
        Memory(server.url.replace("://", "://ann:walnut@"), key=key)
    assert "walnut" not in str(error_info.value)


@pytest.mark.parametrize(
    ("status", "body", "error_text"),
    [(302, b"", "redirects to 'https://login.example/'"), (304, b"", "status 304"), (200, b"<p>", "server")],
)
def test_answers_of_another_server_are_errors(status: int, body: bytes, error_text: str) -> None:
    """A proxy in front of the server, such as a login page, passes some paths through."""

    class ForeignServer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            is_memory_path = self.path == "/v1/scopes"
            self.send_response(200 if is_memory_path else status)
            content = b'{"scopes": []}' if is_memory_path else body
            self.send_header("Location", "https://login.example/")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), ForeignServer) as foreign:
        thread = Thread(target=foreign.serve_forever)
        thread.start()
        try:
            with Memory(f"http://127.0.0.1:{foreign.server_port}") as memory:
                calls = [memory.flush, memory.stats, lambda: memory.feedback("s_1", []), lambda: list(memory.dump())]
                for call in calls:
                    with pytest.raises(ServerError, match=error_text):
                        call()
            with pytest.raises(ServerError, match=error_text):
                Memory(f"http://127.0.0.1:{foreign.server_port}/there")
        finally:
            foreign.shutdown()
            thread.join()


def test_the_command_line_uses_a_server(server: Served, zettel: Zettel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZETTEL_STORE", server.url)
    monkeypatch.setenv("ZETTEL_KEY", server.key("line", Scope(user="line")))
    id = zettel("add", "The ferry leaves at nine.", "--speaker", "Ida").out.strip()
    assert id in zettel("search", "When does the ferry leave?").out
    errors = {("serve", "--port", "0"): "is already a server", ("keys", "list"): "is a server: manage its keys"}
    for command, error_text in errors.items():
        result = zettel(*command)
        assert (result.status, result.err.count("\n"), error_text in result.err) == (2, 1, True)
    monkeypatch.setenv("ZETTEL_KEY", "zk_wrong")
    result = zettel("stats")
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert "needs a valid key" in result.err
