"""Webhooks through a real receiver: order, signatures, retries, crashes, addresses."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sqlite3
import ssl
import stat
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import trustme

from tests.http_server import Asker
from tests.integration.command import Zettel
from tests.integration.test_serve import serving
from tests.waiting import until
from tests.webhook_receiver import Receiver, write_targets
from zettel import AsyncMemory, Memory, Scope
from zettel.core.changes import DELETED
from zettel.errors import InvalidInput, StoreBusy, StoreError
from zettel.local import webhooks
from zettel.local.webhooks import DeliveryFailed, Webhooks, send_test
from zettel.ports.operations import Conflict

pytestmark = pytest.mark.integration

ANN, BOB = Scope(tenant="acme", user="ann"), Scope(tenant="other", user="bob")
SECRET_WORD = "Kestrelwood"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().running() as running:
        yield running


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let failed messages be sent again at once."""
    monkeypatch.setattr(webhooks, "RETRIES", (0.01, 0.02))
    monkeypatch.setattr(Webhooks.__init__, "__kwdefaults__", {"retries": (0.01, 0.02)})


def test_added_changed_and_deleted_notes_are_reported_in_order(tmp_path: Path, receiver: Receiver) -> None:
    file = write_targets(tmp_path / "w.yaml", crm=receiver.target())
    with Memory(tmp_path / "a.db", scope=ANN, webhooks=file) as memory:
        id = memory.add(f"The safe of {SECRET_WORD} is green.", id="safe")
        note = memory.get(id)
        memory.update(id, tags=["safe"])
        memory.delete(id)
        memory.add("A second note.")
        memory.delete_scope()
        messages = receiver.wait(5)
    types = [message.type for message in messages]
    assert types == ["note.added", "note.changed", "note.deleted", "note.added", "scope.deleted"]
    added, changed, deleted = (message.body["data"] for message in messages[:3])
    assert added["scope"] == {"tenant": "acme", "user": "ann", "agent": None}
    assert added["notes"] == [{"id": id, "kind": "episodic", "version": 1, "event_ids": [*note.event_ids]}]  # type: ignore[union-attr]
    assert changed["notes"][0] | {"version": 1} == added["notes"][0]
    assert changed["notes"][0]["version"] == 2
    assert deleted["notes"] == [{"id": id}]
    assert deleted["event_ids"] == added["notes"][0]["event_ids"]
    assert SECRET_WORD not in json.dumps([message.body for message in messages])
    assert len({message.id for message in messages}) == 5
    assert all(message.headers["user-agent"].startswith("zettel/") for message in messages)


def test_a_target_gets_only_its_events_and_scopes(tmp_path: Path, receiver: Receiver) -> None:
    with Receiver().running() as other:
        file = write_targets(
            tmp_path / "w.yaml",
            deletions=receiver.target(events=["deleted"], scope="tenant=acme,user=*"),
            texts=other.target(content=True, events=["added"]),
        )
        with Memory(tmp_path / "a.db", webhooks=file) as memory:
            ids = {scope: memory.add("Ann sails.", scope=scope) for scope in (ANN, BOB)}
            for scope, id in ids.items():
                memory.delete(id, scope=scope)
            memory.add("Bob rows.", scope=BOB)
            added = other.wait(3)
            deleted = receiver.wait(1)
    assert [message.notes for message in deleted] == [[ids[ANN]]]
    assert added[-1].body["data"]["notes"][0]["content"] == "Bob rows."


def test_large_imports_are_split(tmp_path: Path, receiver: Receiver) -> None:
    file = write_targets(tmp_path / "w.yaml", crm=receiver.target(events=["added"]))
    with Memory(tmp_path / "a.db", webhooks=file) as memory:
        ids = memory.add_many([{"content": f"Line {n}."} for n in range(250)])
        receiver.wait(3)
    assert [len(message.notes) for message in receiver.accepted] == [100, 100, 50]
    assert [id for message in receiver.accepted for id in message.notes] == ids


def test_a_restored_scope_is_one_message(tmp_path: Path, receiver: Receiver) -> None:
    with Memory(tmp_path / "a.db", scope=ANN) as memory:
        memory.add("Ann sails.")
        memory.export(tmp_path / "ann.zettel")
    file = write_targets(tmp_path / "w.yaml", crm=receiver.target(events=["added"]))
    with Memory(tmp_path / "b.db", webhooks=file) as memory:
        memory.import_transcript(tmp_path / "ann.zettel")
        (message,) = receiver.wait()
    assert (message.type, message.body["data"]["scope"]["user"]) == ("scope.restored", "ann")


@pytest.mark.usefixtures("quick")
def test_a_refused_message_is_sent_again_with_the_same_id(tmp_path: Path, receiver: Receiver) -> None:
    receiver.statuses = [500, 429]
    file = write_targets(tmp_path / "w.yaml", crm=receiver.target())
    with Memory(tmp_path / "a.db", webhooks=file) as memory:
        memory.add("Ann sails.")
        receiver.wait()
    assert len(receiver.attempts) == 3
    assert len({message.id for message in receiver.attempts}) == 1


@pytest.mark.usefixtures("quick")
def test_a_message_is_given_up_with_a_warning(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.statuses = [500, 302, 400]
    receiver.headers = {"location": f"http://127.0.0.1:{receiver.port}/other"}
    file = write_targets(tmp_path / "w.yaml", crm=receiver.target())
    with caplog.at_level(logging.WARNING, "zettel.webhooks"), Memory(tmp_path / "a.db", webhooks=file) as memory:
        memory.add(f"The safe of {SECRET_WORD} is green.")
        until(lambda: "gave up" in caplog.text, lambda: caplog.text)
        id = memory.add("Bob rows.")
        receiver.wait()
    assert [message.notes for message in receiver.accepted] == [[id]]
    assert len(receiver.attempts) == 4  # the redirect was not followed
    assert "attempt 1 of 3 failed: HTTP 500" in caplog.text
    assert "HTTP 302: zettel follows no redirects" in caplog.text
    assert "after 3 attempts: HTTP 400" in caplog.text
    assert SECRET_WORD not in caplog.text


def test_messages_survive_a_killed_server(tmp_path: Path) -> None:
    receiver = Receiver()
    with receiver.running():
        pass  # now nobody listens at its port
    # Background jobs change notes too, before or after the kill.
    file = write_targets(tmp_path / "w.yaml", crm=receiver.target(events=["added"]))
    with serving(tmp_path / "a.db", "--webhooks", str(file)) as (process, url):
        client = Asker(int(url.rpartition(":")[2]))
        ids = [client("POST", "/v1/events", {"content": f"Line {n}."}).body["id"] for n in range(5)]
        client.close()
        process.send_signal(signal.SIGKILL)
        process.wait()
    _make_due(tmp_path / "w.yaml.queue")
    with receiver.running(), serving(tmp_path / "a.db", "--webhooks", str(file)):
        receiver.wait(5)
    assert sorted(id for message in receiver.accepted for id in message.notes) == sorted(ids)


def test_a_server_that_is_killed_while_it_writes_reports_what_it_acknowledged(tmp_path: Path) -> None:
    """At least once, and nothing that the store does not have."""
    acknowledged: list[str] = []

    def write(port: int) -> None:
        client = Asker(port)
        with suppress(OSError, HTTPException):  # the server was killed
            for n in range(100_000):
                acknowledged.append(client("POST", "/v1/events", {"content": f"{port} wrote line {n}."}).body["id"])
        client.close()

    with Receiver().running() as receiver:
        file = write_targets(tmp_path / "w.yaml", crm=receiver.target(events=["added"]))
        for count in (3, 25):
            with serving(tmp_path / "a.db", "--webhooks", str(file)) as (process, url):
                writers = [Thread(target=write, args=(int(url.rpartition(":")[2]),)) for _ in range(3)]
                for writer in writers:
                    writer.start()
                target = len(acknowledged) + count
                until(lambda target=target: len(acknowledged) >= target)  # type: ignore[misc]
                process.send_signal(signal.SIGKILL)
                for writer in writers:
                    writer.join()
        with serving(tmp_path / "a.db", "--webhooks", str(file)) as (process, url):
            until(lambda: {*acknowledged} <= _reported(receiver))
            process.send_signal(signal.SIGTERM)
            process.wait()
        with Memory(tmp_path / "a.db") as memory:
            assert _reported(receiver) <= {note.id for _, notes in memory.dump() for note in notes}


def _reported(receiver: Receiver) -> set[str]:
    return {id for message in receiver.accepted for id in message.notes}


def _make_due(queue: Path) -> None:
    """Let all messages of a closed queue be due now."""
    with sqlite3.connect(queue) as file:
        file.execute("UPDATE deliveries SET due = 0")
    file.close()


def test_interrupted_writes_are_compared_with_the_store(tmp_path: Path, receiver: Receiver) -> None:
    """Messages of which nobody knows whether the store wrote their changes are sent if, and only if, it did."""
    file = write_targets(tmp_path / "w.yaml", crm=receiver.target())
    listener = Webhooks(file)

    async def run() -> list[str]:
        async with AsyncMemory(tmp_path / "a.db", scope=ANN) as memory:
            memory._backend.memory.engine.commits._listener = listener  # type: ignore[attr-defined]
            stored = await memory.add("Ann sails.")
            await memory.update(stored, tags=["sport"])
            deleted = await memory.add("Bob rows.")
            await memory.delete(deleted)
            return [stored, deleted]

    stored, deleted = asyncio.run(run())
    listener.close()
    with sqlite3.connect(tmp_path / "w.yaml.queue") as sql:
        sql.execute("UPDATE messages SET certain = 0")
        false = {"type": "note.added", "timestamp": "", "data": {"notes": [{"id": "n_12", "version": 1}]}}
        sql.execute(
            "INSERT INTO messages (id, scope, body, created, certain) VALUES ('msg_1', ?, ?, 0, 0)",
            (json.dumps(ANN.model_dump()), json.dumps(false)),
        )
        sql.execute("INSERT INTO deliveries SELECT 'crm', number, 0, 0 FROM messages WHERE id = 'msg_1'")
    sql.close()
    with Memory(tmp_path / "a.db", scope=ANN, webhooks=file):
        receiver.wait(3)
    assert _waiting(tmp_path / "w.yaml.queue") == 0
    sent = [(message.type, message.notes) for message in receiver.accepted]
    assert sent == [("note.added", [stored]), ("note.changed", [stored]), ("note.deleted", [deleted])]


def _waiting(queue: Path) -> int:
    """Count the messages in a closed queue."""
    with sqlite3.connect(queue) as file:
        (count,) = file.execute("SELECT count(*) FROM messages").fetchone()
    file.close()
    return int(count)


def test_a_conflict_sends_nothing(tmp_path: Path, receiver: Receiver) -> None:
    listener = Webhooks(write_targets(tmp_path / "w.yaml", crm=receiver.target()))

    async def write() -> None:
        async with listener.expecting(ANN, DELETED):
            assert len(listener._queue.uncertain()) == 1
            raise Conflict

    with pytest.raises(Conflict):
        asyncio.run(write())
    assert listener._queue.uncertain() == []
    assert listener._queue.waiting("crm") == 0
    listener.close()


def test_a_write_that_cannot_be_queued_is_not_carried_out(tmp_path: Path, receiver: Receiver) -> None:
    file = write_targets(tmp_path / "w.yaml", crm=receiver.target())
    with Memory(tmp_path / "a.db", webhooks=file) as memory:
        memory.add("Ann sails.")
        queue = memory._bridge.inner._backend.memory._webhooks._queue
        queue._file.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreError, match=r"the queue of webhooks .*w.yaml.queue cannot be used"):
            memory.add("Bob rows.")
        queue._file.execute("PRAGMA query_only = OFF")
        assert memory.stats()["notes"] == 1


def test_messages_that_are_too_old_are_given_up(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    away = receiver.target(url="http://127.0.0.1:9/x")
    file = write_targets(tmp_path / "w.yaml", away=away, crm=receiver.target(events=["deleted"]))
    with Memory(tmp_path / "a.db", webhooks=file) as memory:
        memory.add_many([{"content": f"Line {n}."} for n in range(3)])
    with sqlite3.connect(tmp_path / "w.yaml.queue") as sql:
        sql.execute("UPDATE messages SET created = 0")
        sql.execute("UPDATE deliveries SET due = 0")
    sql.close()
    with Memory(tmp_path / "a.db", webhooks=file):
        until(lambda: "gave up on 1 messages older than 4 days" in caplog.text, lambda: caplog.text)
    with sqlite3.connect(tmp_path / "w.yaml.queue") as sql:
        assert sql.execute("SELECT count(*) FROM messages WHERE created = 0").fetchone() == (0,)
    sql.close()


def test_a_memory_that_closes_delivers_what_is_due(tmp_path: Path, receiver: Receiver) -> None:
    file = write_targets(tmp_path / "w.yaml", crm=receiver.target(events=["added"]))
    with Memory(tmp_path / "a.db", webhooks=file) as memory:
        ids = [memory.add(f"Line {n}.") for n in range(20)]
    assert [id for message in receiver.accepted for id in message.notes] == ids


def test_one_process_delivers_a_queue_and_it_is_private(tmp_path: Path, receiver: Receiver) -> None:
    file = write_targets(tmp_path / "w.yaml", crm=receiver.target())
    with Memory(tmp_path / "a.db", webhooks=file):
        assert stat.S_IMODE(os.stat(tmp_path / "w.yaml.queue").st_mode) == 0o600
        with pytest.raises(StoreBusy, match="another process delivers the webhooks"):
            Memory(tmp_path / "b.db", webhooks=file)
    with Memory(tmp_path / "b.db", webhooks=file):
        pass


def test_jobs_must_run_in_this_process(tmp_path: Path, receiver: Receiver) -> None:
    file = write_targets(tmp_path / "w.yaml", crm=receiver.target())
    with pytest.raises(InvalidInput, match="webhooks= requires jobs in this process"):
        Memory(tmp_path / "a.db", webhooks=file, runner="process")


def test_messages_of_a_removed_target_are_removed(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    away = receiver.target(url="http://127.0.0.1:9/x")
    write_targets(tmp_path / "w.yaml", away=away, crm=receiver.target())
    with Memory(tmp_path / "a.db", webhooks=tmp_path / "w.yaml") as memory:
        memory.add("Ann sails.")
        receiver.wait()
    with Memory(tmp_path / "a.db", webhooks=write_targets(tmp_path / "w.yaml", crm=receiver.target())):
        assert "the messages for the target away were removed" in caplog.text


def test_a_host_name_with_a_private_address_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that leads to a private address after the file was checked, as in DNS rebinding."""

    async def run(address: str) -> None:
        async def found(*_: Any, **__: Any) -> list[Any]:
            return [(2, 1, 6, "", (address, 443))]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)
        await send_test(file, "crm")

    file = write_targets(tmp_path / "w.yaml", crm=Receiver().target(url="https://crm.example/hook", private=False))
    for address in ("127.0.0.1", "169.254.169.254", "::1"):
        with pytest.raises(DeliveryFailed, match=r"crm\.example is at the private address"):
            asyncio.run(run(address))


def test_certificates_are_checked_for_the_host_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """zettel connects to an address, but the certificate must be that of the name."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    for name, problem in (("localhost", None), ("crm.example", "CERTIFICATE_VERIFY_FAILED")):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(name).configure_cert(tls)
        with Receiver(tls=tls).running() as receiver:
            url = f"https://localhost:{receiver.port}/hook"
            file = write_targets(tmp_path / "w.yaml", crm=receiver.target(url=url))
            monkeypatch.delenv("SSL_CERT_FILE", raising=False)
            with pytest.raises(DeliveryFailed, match="CERTIFICATE_VERIFY_FAILED"):  # an unknown authority
                asyncio.run(send_test(file, "crm"))
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
            if problem is None:
                asyncio.run(send_test(file, "crm"))
                assert receiver.accepted[0].headers["host"] == f"localhost:{receiver.port}"
            else:
                with pytest.raises(DeliveryFailed, match=problem):
                    asyncio.run(send_test(file, "crm"))


def test_commands_create_secrets_and_test_targets(zettel: Zettel, tmp_path: Path, receiver: Receiver) -> None:
    assert zettel("webhooks", "secret").out.startswith("whsec_")
    assert zettel("webhooks", "secret", "--json").json()["secret"].startswith("whsec_")
    file = str(write_targets(tmp_path / "w.yaml", crm=receiver.target()))
    assert zettel("webhooks", "test", "crm", "--webhooks", file).out == "crm accepted the message\n"
    assert [message.type for message in receiver.accepted] == ["webhook.test"]
    receiver.statuses = [410]
    failed = zettel("webhooks", "test", "crm", "--webhooks", file)
    assert (failed.status, failed.err) == (1, "zettel: crm did not accept the message: HTTP 410\n")
    assert zettel("webhooks", "test", "erp", "--webhooks", file).err.startswith("zettel: unknown target 'erp'")
