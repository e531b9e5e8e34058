"""ChatGPT exports: the current branch, skipped messages, and zip files."""

from __future__ import annotations

import json
import zipfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_formats import SAMPLES
from tests.unit.test_transcripts import events, split_records
from zettel.errors import BadRecord
from zettel.transcripts import detect
from zettel.transcripts.formats import chatgpt

SAMPLE = SAMPLES / "chatgpt.json"
SAILING = "6b1f0c6e-1111-4a2b-9c3d-000000000001"


def changed(tmp_path: Path, change: dict[str, Any]) -> Path:
    """Return the sample's first conversation with changed fields."""
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([json.loads(SAMPLE.read_text("utf-8"))[0] | change]), encoding="utf-8")
    return path


def test_the_current_branch_is_imported() -> None:
    read, rejected = split_records(list(chatgpt.read(SAMPLE)))
    sailing = [event for event in read if event.session == SAILING]
    assert [event.external_id for event in sailing] == [f"{SAILING}/a-{nth}" for nth in (1, 3, 4, 5, 6, 7)]
    user_turn, called, result, answer, shown, last = sailing
    assert user_turn.content == "How far is Fårö from Västervik?\n\nBy boat, I mean 🙂"
    assert (user_turn.role, user_turn.metadata) == ("user", {"conversation": "Sailing “Birte” to Fårö ⛵"})
    assert user_turn.occurred_at == datetime(2024, 5, 1, 8, 1, 0, 123456, tzinfo=timezone.utc)
    query = {"search_query": [{"q": "distance Västervik Fårö nautical miles"}]}
    assert (called.content, called.payload) == ("", {"calls": [{"tool": "web.run", "input": query}]})
    assert (result.speaker, result.title, result.metadata["tool"]) == ("tool", "Harbours of the Baltic", "web.run")
    assert answer.content == "About 62 nautical miles. With five knots that is half a day."
    assert answer.metadata["model"] == "o3"
    assert shown.content == "[image: mainsail.jpg]\nIs this sail torn?\n[file: survey.pdf]"
    assert last.occurred_at is None
    assert [record.reason for record in rejected] == ["unknown content_type 'hologram'"]


def test_pictures_code_and_speech_are_imported() -> None:
    request, order, painted, code, printed, spoken = [
        event for event in split_records(list(chatgpt.read(SAMPLE)))[0] if event.session != SAILING
    ]
    assert request.metadata == {}, "a conversation need not have a title"
    assert order.payload["calls"][0]["tool"] == "dalle.text2im"
    assert (painted.role, painted.content) == ("tool", "[image: A harbour at night, lanterns on the water]")
    assert code.payload == {"calls": [{"tool": "python", "input": "print(1 + 1)"}]}
    assert (printed.content, spoken.content) == ("2\n", "\u200fשלום from the cockpit")


def test_folder_and_zip_yield_the_events_of_the_file(tmp_path: Path) -> None:
    text = SAMPLE.read_text("utf-8")
    first, *rest = json.loads(text)
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "conversations-000.json").write_text(json.dumps([first]), encoding="utf-8")
    (folder / "conversations-001.json").write_text(json.dumps(rest), encoding="utf-8")
    (folder / "user.json").write_text('{"id": "user-1"}')
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for name in ("chat.html", "conversations.json"):
            archive.writestr(name, text)
    expected = [record.model_dump(exclude={"source", "file"}) for record in chatgpt.read(SAMPLE)]
    for path, head in ((folder, b""), (tmp_path / "export.zip", (tmp_path / "export.zip").read_bytes()[:100])):
        assert chatgpt.sniff(path, head)
        assert [record.model_dump(exclude={"source", "file"}) for record in chatgpt.read(path)][:-1] == expected[:-1]


def test_ids_survive_a_rename_and_a_regenerated_answer(tmp_path: Path) -> None:
    later = events(list(chatgpt.read(changed(tmp_path, {"current_node": "a-5", "title": "Fårö"}))))
    assert [event.external_id for event in later] == [f"{SAILING}/a-{nth}" for nth in (1, 3, 4, 5)]


@pytest.mark.parametrize("last", [None, "nowhere", 7, ["a-8"]])
def test_without_a_current_node_the_latest_message_selects_the_branch(tmp_path: Path, last: Any) -> None:
    assert len(events(list(chatgpt.read(changed(tmp_path, {"current_node": last}))))) == 6


def test_a_content_type_that_is_not_a_string_is_unknown(tmp_path: Path) -> None:
    path = changed(tmp_path, {})
    before = list(chatgpt.read(path))
    path.write_text(path.read_text("utf-8").replace('"content_type": "text"', '"content_type": ["text"]'), "utf-8")
    assert len(list(chatgpt.read(path))) == len(before)


def test_a_cyclic_conversation_terminates(tmp_path: Path) -> None:
    mapping = {"x": {"parent": "y", "message": {"content": {"parts": ["One."]}}}, "y": {"parent": "x", "message": None}}
    path = changed(tmp_path, {"mapping": mapping, "current_node": "x"})
    assert [event.content for event in events(list(chatgpt.read(path)))] == ["One."]


@pytest.mark.parametrize("at", ["yesterday", 1e300, float("nan"), {}])
def test_an_impossible_time_is_rejected(tmp_path: Path, at: Any) -> None:
    message = {"content": {"parts": ["One."]}, "create_time": at}
    path = changed(tmp_path, {"mapping": {"x": {"message": message}}, "current_node": "x"})
    (only,) = chatgpt.read(path)
    assert "not a time" in only.model_dump()["reason"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            'The boat of <entity|["people","Runa Falk",0]> lies in <entity|["city","Visby","Sweden"]>.',
            "The boat of Runa Falk lies in Visby.",
        ),
        ("See <url|the club|https://club.example>.", "See the club (https://club.example)."),
        ("See <url|the club|turn0search1> or <url|the yard>.", "See the club or the yard."),
        ("See <url|https://club.example|https://club.example>.", "See https://club.example."),
        ("Six knots <cite|turn0search1|turn0search2> at most.", "Six knots at most."),
        ("Six knots <cite|turn0search1><cite|turn0search2> <navlist|Wind|turn0news1>.", "Six knots."),
        ('Six <cite|turn0search1><entity|["unit","knots"]>  at most <cite|turn0search2>', "Six knots  at most"),
        ('<image_group|{"query": ["sloop"]}>Six<cite|turn0search1> knots', "Six knots"),
        ('The <entity|["city"]> <entity|[1, 2]> <entity|["ci> <entity> <entity|7> <url> <> harbour', "The harbour"),
        ("Six <cite|turn0 knots <cite|turn0search1>.", "Six \ue200cite\ue202turn0 knots."),
    ],
)
def test_names_and_links_between_private_characters_become_text(tmp_path: Path, written: str, expected: str) -> None:
    parts = [written.translate({ord("<"): "\ue200", ord("|"): "\ue202", ord(">"): "\ue201"})]
    path = changed(tmp_path, {"mapping": {"x": {"message": {"content": {"parts": parts}}}}, "current_node": "x"})
    assert [event.content for event in events(list(chatgpt.read(path)))] == [expected]


def test_utf_16_is_read_and_a_truncated_file_raises(tmp_path: Path) -> None:
    path = tmp_path / "wide.json"
    path.write_text(SAMPLE.read_text("utf-8"), encoding="utf-16")
    assert detect(path).name == "chatgpt"
    assert len(list(chatgpt.read(path))) == 13
    path.write_bytes(SAMPLE.read_bytes()[:-40])
    with pytest.raises(BadRecord, match=r"wide\.json:1:\d+: the JSON is truncated here"):
        list(chatgpt.read(path))
