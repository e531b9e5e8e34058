"""Every store: the changes that webhooks and the audit log report are those that the store wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.webhook_receiver import Receiver, write_targets
from zettel import AsyncMemory, Memory, Scope
from zettel.local.webhook_queue import Message
from zettel.local.webhooks import _happened

ANN = Scope(user="ann")


def test_messages_name_the_notes_that_were_written(url: Any, tmp_path: Path) -> None:
    with Receiver().running() as receiver:
        file = write_targets(tmp_path / "w.yaml", crm=receiver.target())
        with Memory(url, scope=ANN, webhooks=file, audit=tmp_path / "audit.jsonl") as memory:
            ids = memory.add_many([{"content": f"Ann sailed to island {n}.", "speaker": "Ann"} for n in range(3)])
            memory.flush()
            linked = memory.link(ids[0], ids[1], reason="both islands")
            memory.archive(ids[1])
            memory.delete(ids[0])
            notes = {note.id: note for note in [*memory.list().notes, *memory.list(archived=True).notes]}
            memory.delete_scope()
            receiver.wait()
            messages = receiver.wait(1 + next(_until_scope_is_deleted(receiver)))
    added = [id for message in messages if message.type == "note.added" for id in message.notes]
    deleted = [id for message in messages if message.type == "note.deleted" for id in message.notes]
    assert added[:3] == ids
    assert linked.source == ids[0]
    assert ids[0] in deleted
    assert set(added) - set(deleted) == notes.keys()
    versions: dict[str, int] = {}
    for message in messages:
        for note in message.body["data"].get("notes", []):
            if "version" in note:
                assert note["version"] == versions.get(note["id"], 0) + 1  # every revision, in order
                versions[note["id"]] = note["version"]
    assert {id: versions[id] for id in notes} == {id: note.version for id, note in notes.items()}
    records = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    ended = {record["op"]: record for record in records if record.get("result") == "ok"}
    assert ended["add"]["ids"] == ids
    assert ids[0] in ended["delete"]["ids"]
    assert set(ended["link"]["ids"]) == {*ids[:2]}
    assert ended["delete_scope"]["count"] == len(notes)


def _until_scope_is_deleted(receiver: Receiver) -> Any:
    while True:
        messages = receiver.wait(1)
        if messages[-1].type == "scope.deleted":
            yield len(messages) - 1


@pytest.mark.anyio
async def test_a_store_reports_which_changes_happened(url: Any) -> None:
    def message(type: str, **data: Any) -> Message:
        body = {"type": type, "data": data}
        return Message("msg_1", json.dumps(ANN.model_dump()), json.dumps(body))

    async with AsyncMemory(url, scope=ANN) as memory:
        store = memory._backend.memory.engine.store  # type: ignore[attr-defined]
        assert await _happened(store, message("scope.deleted"))
        id = await memory.add("Ann sails.")
        for version, expected in ((1, True), (2, False)):
            note = {"id": id, "version": version}
            assert await _happened(store, message("note.changed", notes=[note])) is expected
        assert await _happened(store, message("scope.restored"))
        assert not await _happened(store, message("scope.deleted"))
        erased = message("note.deleted", notes=[{"id": id}], event_ids=[])
        assert not await _happened(store, erased)
        await memory.delete(id)
        assert await _happened(store, erased)
        assert not await _happened(store, message("note.added", notes=[{"id": id, "version": 1}]))
