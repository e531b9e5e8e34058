"""Claude.ai exports: blocks, attachments, branches, and older layouts."""

from __future__ import annotations

import json
import zipfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_formats import SAMPLES
from tests.unit.test_transcripts import events
from zettel.transcripts.formats import claude

SAMPLE = SAMPLES / "claude.json"
PEAR, OLD, ROSE = (f"9d0c2f7e-2222-4bbb-8ccc-00000000000{nth}" for nth in (1, 2, 3))


def test_messages_attachments_and_tools_are_imported() -> None:
    pear = [event for event in events(list(claude.read(SAMPLE))) if event.session == PEAR]
    question, orchard, pasted, answer, thanks, plan = pear
    assert question.content.splitlines()[-3:] == ["[file: orchard.txt]", "[file: pasted text]", "[file: tree.jpeg]"]
    assert question.external_id == f"{PEAR}/9d0c2f7e-2222-4bbb-8ccc-000000000010"
    assert (orchard.external_id, orchard.title, orchard.role) == (f"{question.external_id}/1", "orchard.txt", "user")
    assert orchard.content.startswith("Row 1: pears")
    assert (pasted.title, pasted.content) == (None, "pH 6.4")
    assert answer.content == "Let me look at the weather.\n\nIn April, after the last frost around the 20th."
    assert answer.payload == {
        "calls": [{"tool": "web_search", "input": {"query": "last frost Kalmar"}}],
        "answers": [{"tool": "web_search", "output": "Last frost: 20 April."}],
    }
    assert "early spring" not in answer.model_dump_json(), "what was thought in silence is left out"
    assert thanks.occurred_at == datetime(2025, 3, 30, 1, 5, 0, 500_000, tzinfo=timezone.utc)
    assert (plan.content, plan.payload["calls"][0]["tool"]) == ("", "artifacts")
    assert {event.metadata["conversation"] for event in pear} == {"Grafting the old pear 🍐"}


def test_an_old_export_keeps_its_latest_branch() -> None:
    read = events(list(claude.read(SAMPLE)))
    (old,) = [event for event in read if event.session == OLD]
    assert (old.content, old.metadata) == ("An old export has the text alone.", {})
    assert [event.content for event in read if event.session == ROSE] == ["Name a rose.", "Madame Hardy."]


def test_the_latest_message_selects_the_branch_in_any_order(tmp_path: Path) -> None:
    nodes = [("a", "root", 0), ("c", "a", 2), ("d", "c", 3), ("b", "a", 1)]  # c is a second answer to b
    chat_messages = [
        {"uuid": uuid, "parent_message_uuid": parent, "text": uuid, "sender": "human",
         "created_at": f"2025-05-01T08:0{at}:00Z"}
        for uuid, parent, at in nodes
    ]  # fmt: skip
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"uuid": "x", "chat_messages": chat_messages}]))
    assert [event.content for event in events(list(claude.read(path)))] == ["a", "c", "d"]


def test_messages_before_a_missing_parent_are_imported(tmp_path: Path) -> None:
    chat_messages = [
        {"uuid": uuid, "parent_message_uuid": parent, "text": uuid, "sender": "human"}
        for uuid, parent in (("a", "root"), ("b", "a"), ("d", "c"))
    ]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"uuid": "x", "chat_messages": chat_messages}]))
    assert [event.content for event in events(list(claude.read(path)))] == ["a", "b", "d"]


def test_the_current_leaf_selects_the_branch(tmp_path: Path) -> None:
    rose = json.loads(SAMPLE.read_text("utf-8"))[2]
    rose["current_leaf_message_uuid"] = rose["chat_messages"][1]["uuid"]
    path = tmp_path / "one.json"
    path.write_text(json.dumps(rose), encoding="utf-8")
    assert claude.sniff(path, path.read_bytes()), "one conversation alone is read too"
    assert [event.content for event in events(list(claude.read(path)))] == ["Name a rose.", "Peace."]


def test_the_zip_is_read(tmp_path: Path) -> None:
    path = tmp_path / "data-2025.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(SAMPLE, "conversations.json")
        archive.writestr("users.json", "[]")
    assert claude.sniff(path, b"PK")
    assert len(list(claude.read(path))) == len(list(claude.read(SAMPLE)))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("hello", "expected a message"),
        ({"sender": "human", "text": "Hm.", "created_at": "soon"}, "is not"),
        ({"sender": "human", "text": "Hm.", "created_at": 5}, "is not"),
        ({"sender": ["human"], "text": "Hm."}, "speaker"),
    ],
)
def test_a_bad_message_is_rejected_and_the_next_is_read(tmp_path: Path, message: Any, reason: str) -> None:
    path = tmp_path / "conversations.json"
    good = {"uuid": "m", "sender": "assistant", "text": "Well."}
    path.write_text(json.dumps([7, {"uuid": "c"}, {"uuid": "c", "chat_messages": [message, good]}]))
    first, second, bad, event = (record.model_dump() for record in claude.read(path))
    assert "expected an object" in first["reason"]
    assert "no chat_messages" in second["reason"]
    assert reason in bad["reason"]
    assert event["content"] == "Well."
