"""No secret is stored with ``privacy`` redact or block: every shape, by every way into a memory."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any

import anyio
import pytest

from tests.http_server import served
from tests.integration.command import Zettel
from tests.secret_samples import SAMPLES
from zettel import Event, Memory, Scope
from zettel.core.privacy import mark_of
from zettel.errors import InvalidEvent, SecretRefused, ZettelError
from zettel.integrations.tools import MemoryTools
from zettel.local import write
from zettel.local.backend import OPERATIONS

pytestmark = pytest.mark.integration

LONG = 7
"""Characters of a secret that random bytes do not contain by chance; of shorter ones the whole text is looked for."""
TEXTS = [text for text, _ in SAMPLES.values()]
TOKEN = SAMPLES["GitHub token"][1]


def stored_secrets(folder: Path) -> list[str]:
    """Return the kinds of secrets in the bytes of all files of a folder, in any case."""
    everything = b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()).lower()
    needles = {kind: secret if len(secret) >= LONG else text for kind, (text, secret) in SAMPLES.items()}
    forms = {kind: {needle, json.dumps(needle)[1:-1], " ".join(needle.split())} for kind, needle in needles.items()}
    return [kind for kind, own in forms.items() if any(form.lower().encode() in everything for form in own)]


@pytest.fixture(params=["redact", "block"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store" / "a.db"


Door = Callable[[Memory, str, str], Any]
"""Puts a text into a memory; the third argument is the id of a note."""


def by_field(field: str, shape: Callable[[str], Any] = str) -> Door:
    return lambda memory, text, _: memory.add_many([{"content": "A boat.", field: shape(text)}])


def by_update(field: str, shape: Callable[[str], Any] = str) -> Door:
    return lambda memory, text, note: memory.update(note, **{field: shape(text)})


def decide(memory: Memory, keep: str, over: str, reason: str) -> None:
    memory.link(keep, over, "CONTRADICTS")
    memory.resolve(keep, over, reason=reason)


def name_ann(memory: Memory) -> Memory:
    memory.add("I met Ann Berg at the pier.")
    return memory


DOORS: dict[str, Door] = {
    "add": lambda memory, text, _: memory.add(text),
    "add_many": lambda memory, text, _: memory.add_many([{"content": text}]),
    "add_many_report": lambda memory, text, _: memory.add_many_report([Event(content=text)]),
    "a long text": lambda memory, text, _: memory.add("The sea is calm. " * 100 + text + " And more." * 50),
    **{name: by_field(name) for name in ("title", "speaker", "session", "external_id", "source")},
    "position in a file": by_field("source", lambda text: {"file": "a", "position": text}),
    "metadata": by_field("metadata", lambda text: {"note": text}),
    "key of metadata": by_field("metadata", lambda text: {text: 1}),
    "payload": by_field("payload", lambda text: {"deep": [[{"log": text}]]}),
    "payload alone": lambda memory, text, _: memory.add(payload=[text]),
    "revised event": lambda memory, text, _: memory.add(text, id="again", on_conflict="revise"),
    **{f"update of {name}": by_update(name) for name in ("content", "title", "caption", "context")},
    **{f"update of {name}": by_update(name, lambda text: [text]) for name in ("keywords", "tags")},
    "update of metadata": by_update("metadata", lambda text: {"a": [text]}),
    "value of a fact": lambda memory, text, _: memory.add_fact("The user", "note", text),
    "subject of a fact": lambda memory, text, _: memory.add_fact(text, "note", "old"),
    "reason of a link": lambda memory, text, note: memory.link(note, memory.add("A pier."), reason=text),
    "reason of a decision": lambda memory, text, note: decide(memory, note, memory.add("It is not."), text),
    "reason of a quarantine": lambda memory, text, _: memory.quarantine(memory.add("A reef."), text),
    "name of an entity": lambda memory, text, _: name_ann(memory).merge_entities("Ann Berg", text),
    "reason of a merge": lambda memory, text, _: name_ann(memory).merge_entities("Ann Berg", "Annie", reason=text),
    "reason of a split": lambda memory, text, _: name_ann(memory).split_entity("Ann Berg", "Ida", reason=text),
    "scope": lambda memory, text, _: memory.add("A boat.", scope=Scope(user=text)),
}


@pytest.mark.parametrize("door", DOORS)
def test_no_way_in_stores_a_secret(door: str, mode: Any, store: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with Memory(store, privacy=mode) as memory:
        note = memory.add("The harbour is calm.")
        for text in TEXTS:
            if mode == "block" or door == "scope":
                with pytest.raises(SecretRefused) as refused:
                    DOORS[door](memory, text, note)
                assert text not in str(refused.value)
            else:
                DOORS[door](memory, text, note)
        memory.flush()
        assert stored_secrets(store.parent) == []  # with the write-ahead log
    assert stored_secrets(store.parent) == []
    assert [kind for kind, (_, secret) in SAMPLES.items() if len(secret) >= LONG and secret in caplog.text] == []


def test_every_operation_is_known_here() -> None:
    """A new operation that writes text needs a door above, or its name here."""
    assert {name for name in vars(write) if isinstance(getattr(write, name), FunctionType)} & OPERATIONS.keys() == {
        "add_many_report", "add_fact", "merge_entities", "split_entity", "update", "link", "resolve",  # with a text
        "quarantine",  # with a text, too
        "archive", "delete", "delete_scope", "release", "revert", "revert_effects", "unarchive", "unlink", "confirm",
    }  # fmt: skip


def test_questions_are_answered_and_logged_without_secrets(mode: Any, store: Path) -> None:
    with Memory(store, privacy=mode) as memory:
        memory.add("The harbour is calm.")
        for text in TEXTS:
            assert memory.search(f"Is the harbour calm? {text}")
            memory.context(f"harbour {text}")
        memory.flush()
        assert any(mark_of("GitHub token") in logged.question for logged in memory.searches())
    assert stored_secrets(store.parent) == []


def test_reads_find_a_stored_text_by_a_question_with_a_secret(store: Path) -> None:
    with Memory(store) as memory:
        note = memory.add(f"The token of the build is {TOKEN}.")
        assert memory.search(TOKEN)[0].note.id == note


def test_agent_tools_store_no_secret(mode: Any, store: Path) -> None:
    with Memory(store, privacy=mode) as memory:
        tools = MemoryTools(memory)
        note = memory.add("The harbour is calm.")
        for kind, (text, secret) in SAMPLES.items():
            for name, arguments in (("add_memory", {}), ("update_memory", {"id": note})):
                answer = tools.call(name, {"text": text, **arguments})
                assert ("error" in answer) == (mode == "block")
                assert mode != "block" or kind in answer["error"]
                assert len(secret) < LONG or secret not in str(answer)
    assert stored_secrets(store.parent) == []


FILES: dict[str, Callable[[], str]] = {
    "chat.jsonl": lambda: "\n".join(json.dumps({"content": text, "speaker": "Ann"}) for text in TEXTS),
    "ids.jsonl": lambda: "\n".join(json.dumps({"content": f"Boat {n}.", "id": t}) for n, t in enumerate(TEXTS)),
    "fields.jsonl": lambda: "\n".join(
        json.dumps({"content": "A boat.", "speaker": text, "session": text, "title": text, "metadata": {"a": text}})
        for text in TEXTS
    ),
    "chat.txt": lambda: "\n".join(f"[2024-05-01 09:00] Ann: {text}" for text in TEXTS if "\n" not in text),
    "notes.md": lambda: "---\ntitle: Keys\n---\n" + "\n\n".join(TEXTS),
    "table.csv": lambda: "author,date,content\n" + "\n".join(
        'ann,2024-01-01,"' + text.replace('"', '""') + '"' for text in TEXTS
    ),
    "messages.json": lambda: json.dumps([{"role": "tool", "content": text} for text in TEXTS]),
}  # fmt: skip
"""Texts of files by name. In a chat, a line such as "Lines: 2" of a key file is another message."""


@pytest.mark.parametrize("name", FILES)
def test_imports_store_no_secret(name: str, mode: Any, store: Path, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(FILES[name]())
    with Memory(store, privacy=mode) as memory:
        report = memory.import_transcript(file)
        again = memory.import_transcript(file)
        memory.flush()
    assert report.secrets_found == 0
    assert bool(report.redacted) == (mode == "redact")
    assert bool(report.rejected) == (mode == "block")
    assert not any(secret in row.reason for row in report.rejected_records for _, secret in SAMPLES.values())
    assert again.added == 0 or name == "ids.jsonl"  # a dropped id identifies nothing
    assert stored_secrets(store.parent) == []


def test_imports_report_secrets_by_default(tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text(FILES["chat.jsonl"]())
    with Memory(":memory:") as memory:
        preview = memory.import_transcript(file, dry_run=True)
        report = memory.import_transcript(file)
    assert preview.secrets == report.secrets
    assert {secret.kind for secret in report.secrets} == SAMPLES.keys()
    assert (report.added, report.redacted) == (len(TEXTS), {})


def test_scopes_by_speaker_are_never_named_by_a_secret(mode: Any, store: Path, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text(json.dumps({"content": "A boat.", "speaker": TOKEN}))
    with Memory(store, privacy=mode) as memory:
        report = memory.import_transcript(file, scope_by="user")
    assert (report.added, report.rejected) == (0, 1)
    assert stored_secrets(store.parent) == []


def test_a_memory_file_with_a_secret_is_refused_whole(mode: Any, store: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.zettel"
    with Memory(":memory:") as memory:
        memory.add("The harbour is calm.")
        memory.update(memory.add("A pier."), context=f"See {TOKEN}.")
        memory.export(file)
    with Memory(store, privacy=mode) as memory:
        with pytest.raises(SecretRefused, match="GitHub token: import it with privacy='report'"):
            memory.import_transcript(file)
        assert memory.stats()["events"] == 0
    assert stored_secrets(store.parent) == []
    with Memory(store) as memory:
        assert memory.import_transcript(file).added == 2


class TestServer:
    @pytest.fixture
    def server(self, mode: str, store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
        monkeypatch.setenv("ZETTEL_PRIVACY", mode)
        with served(store, keyed=False) as running:
            yield running
        assert stored_secrets(store.parent) == []

    def test_no_route_stores_a_secret(self, server: Any, mode: str, capfd: pytest.CaptureFixture[str]) -> None:
        ask = server.asker()
        note = ask("POST", "/v1/events", {"content": "The harbour is calm."}).body["id"]
        for kind, (text, secret) in SAMPLES.items():
            answers = [
                ask("POST", "/v1/events", {"content": text, "metadata": {"a": text}}),
                ask("POST", "/v1/events/batch", {"events": [{"content": text}]}),
                ask("POST", "/v1/events/report", {"events": [{"content": text}]}),
                ask("PATCH", f"/v1/notes/{note}", {"context": text}),
            ]
            assert ask("POST", "/v1/search", {"question": text}).status == 200
            if mode == "block":
                errors = [answer.error for answer in answers]
                assert all(error.startswith("SecretRefused") and kind in error for error in errors)
                assert len(secret) < LONG or not any(secret in error for error in errors)
            else:
                assert [answer.status for answer in answers] == [200] * 4
                assert answers[2].body["events"][0]["secrets"] == [kind]
        out = capfd.readouterr()
        assert [secret for _, secret in SAMPLES.values() if len(secret) >= LONG and secret in out.out + out.err] == []

    def test_the_client_follows_the_server(self, server: Any, mode: str) -> None:
        with Memory(server.url) as memory:
            outcome: Any = None
            with suppress(SecretRefused):
                (outcome,) = memory.add_many_report([{"content": TOKEN}])
            assert (None if outcome is None else outcome.secrets) == (None if mode == "block" else ("GitHub token",))
        with pytest.raises(ZettelError, match="privacy= is an option of the server"):
            Memory(server.url, privacy="off")


def test_mcp_stores_no_secret(mode: str, store: Path) -> None:
    pytest.importorskip("mcp")
    from tests.integration.mcp_client import over_stdio

    async def work() -> None:
        async with over_stdio(store, "--privacy", mode) as client:
            for kind, (text, _) in [*SAMPLES.items()][::6]:
                answer = str(await client.call("add_memory", text=text, title=text))
                assert (kind in answer) == (mode == "block")
                assert text not in answer

    anyio.run(work)
    assert stored_secrets(store.parent) == []


class TestCommandLine:
    def test_commands_store_no_secret(self, zettel: Zettel, mode: str, store: Path, tmp_path: Path) -> None:
        options = ("--store", str(store), "--privacy", mode)
        file = tmp_path / "chat.jsonl"
        file.write_text(FILES["chat.jsonl"]())
        assert zettel("add", "The harbour is calm.", *options).status == 0
        for text in TEXTS[:8]:
            done = zettel("add", *options, "--", text)
            assert (done.status, text in done.out + done.err) == (mode == "block", False)
        done = zettel("import", str(file), *options)
        assert done.status == (mode == "block")
        assert not any(text in done.out + done.err for text in TEXTS)
        assert stored_secrets(store.parent) == []

    def test_an_unknown_mode_is_refused(self, zettel: Zettel, store: Path) -> None:
        done = zettel("add", "a", "--store", str(store), "--privacy", "hide")
        assert (done.status, done.err) == (
            2, "zettel: privacy='hide' is unknown: use off, report, redact, block\n",
        )  # fmt: skip


def test_the_default_stores_and_warns(caplog: pytest.LogCaptureFixture) -> None:
    with Memory(":memory:") as memory:
        note = memory.add(f"It is {TOKEN}.")
        assert getattr(memory.get(note), "content", "") == f"It is {TOKEN}."
    (record,) = [record for record in caplog.records if record.name == "zettel.privacy"]
    assert record.getMessage() == (
        "stored what looks like a secret (GitHub token): privacy='redact' replaces secrets, "
        "privacy='block' refuses them"
    )


def test_off_does_not_look(caplog: pytest.LogCaptureFixture) -> None:
    with Memory(":memory:", privacy="off") as memory:
        (outcome,) = memory.add_many_report([{"content": TOKEN}])
    assert (outcome.secrets, caplog.text) == ((), "")


def test_a_batch_with_a_refused_event_stores_nothing() -> None:
    with Memory(":memory:", privacy="block") as memory:
        with pytest.raises(SecretRefused):
            memory.add_many([{"content": "The harbour is calm."}, {"content": TOKEN}])
        assert memory.stats()["events"] == 0


def test_the_principal_of_an_import_has_no_secret_of_the_file_name(tmp_path: Path) -> None:
    token = SAMPLES["GitHub token"][1]
    for name, redact in ((token, False), ("WhatsApp Chat with +47 912 34 567", True)):
        file = tmp_path / f"{name}.jsonl"
        file.write_text('{"content": "The boat is blue.", "id": "1", "session": "s"}\n', encoding="utf-8")
        with Memory(":memory:", privacy="redact") as memory:
            memory.import_transcript(file, redact=redact)
            (event,) = memory.events("s")
            assert event.principal.startswith("import:")
            assert name not in event.principal


def test_redacted_events_are_idempotent() -> None:
    with Memory(":memory:", privacy="redact") as memory:
        event = {"content": f"It is {TOKEN}.", "occurred_at": "2024-05-01T09:00Z"}
        assert memory.add_many([event]) == memory.add_many([event])


def test_marks_that_make_a_text_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zettel.core.arguments.MAX_CONTENT_BYTES", 40)
    with Memory(":memory:", privacy="redact") as memory, pytest.raises(InvalidEvent):
        memory.add("PIN is 4711, PIN is 4712, PIN is 4713")
