"""``zettel bench beam`` on our own chats, in BEAM's layout, and on files that are damaged."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.described import described
from zettel.bench import chats
from zettel.bench.metrics import calibration_error
from zettel.cli.app import run
from zettel.errors import BadRecord, InvalidInput

pytestmark = pytest.mark.integration

CHATS = Path(__file__).parents[1] / "data" / "chats"

SMALL = {
    "chat": "boat",
    "messages": [
        {"id": "1", "role": "user", "content": "I keep the sloop in Risør.", "session": 1, "when": "2024-05-01T18:00"},
        {"id": "2", "role": "assistant", "content": "Risør has a fine harbour.", "session": 1, "when": None},
        {"id": "3", "role": "user", "content": "The mast is oak.", "session": 2, "when": "2024-05-09T18:00+02:00"},
    ],
    "questions": [
        {"question": "Where do I keep the sloop?", "kind": "fact", "evidence": ["1"]},
        {"question": "What did the sails cost?", "kind": "never", "evidence": []},
    ],
}

BEAM = {
    "chat.json": [
        {
            "batch_number": 1,
            "turns": [
                [
                    {"role": "user", "id": 0, "time_anchor": "March-15-2024", "content": "It is due in May. ->-> 1,1"},
                    {"role": "assistant", "id": 1, "content": "Noted."},
                ]
            ],
        }
    ],
    "probing_questions/probing_questions.json": {
        "abstention": [{"question": "What is my budget?"}],
        "knowledge_update": [
            {"question": "When is my deadline?", "source_chat_ids": {"original_info": [0], "updated_info": [[0]]}}
        ],
    },
}


def write_beam(folder: Path, files: dict[str, Any] = BEAM) -> Path:
    for name, content in files.items():
        path = folder / "7" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_our_chats_have_evidence_in_every_kind_but_one() -> None:
    collections = chats.read(CHATS)
    assert len(collections) == 24
    for chat in collections:
        assert 100 <= len(chat.events) <= 170
        assert len(chat.questions) == 40
        assert {question.group for question in chat.questions if not question.needed} == {"never"}


def test_a_file_with_a_chat_in_each_line_is_read_also_with_gzip(tmp_path: Path) -> None:
    lines = "\n".join([json.dumps(SMALL), "", json.dumps(SMALL | {"chat": "other"})])
    plain, packed = tmp_path / "chats.jsonl", tmp_path / "chats.jsonl.gz"
    plain.write_text(lines, encoding="utf-8")
    packed.write_bytes(gzip.compress(lines.encode()))
    boat, other = chats.read(plain)
    assert [chat.questions for chat in chats.read(packed)] == [boat.questions, other.questions]
    assert (boat.name, other.name) == ("boat", "other")
    assert [event.role for event in boat.events] == ["user", "assistant", "user"]
    assert [str(event.occurred_at) for event in boat.events] == [
        "2024-05-01 18:00:00+00:00", "None", "2024-05-09 16:00:00+00:00",
    ]  # fmt: skip


def test_beams_own_layout_is_read(tmp_path: Path) -> None:
    (chat,) = chats.read(write_beam(tmp_path))
    assert chat.name == "7"
    assert [event.content for event in chat.events] == ["It is due in May.", "Noted."]
    assert {str(event.occurred_at) for event in chat.events} == {"2024-03-15 00:00:00+00:00"}
    assert {question.group: question.needed for question in chat.questions} == {
        "abstention": frozenset(), "knowledge_update": frozenset({"0"}),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"messages": [{"id": "1"}]}, "is missing"),
        ({"messages": [SMALL["messages"][0] | {"role": "wizard"}]}, "is not a chat"),  # type: ignore[index]
        ({"questions": [{"question": "?", "kind": "fact", "evidence": ["9"]}]}, "no message '9'"),
        ({"questions": None}, "is not a chat"),
    ],
)
def test_damaged_chats_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(SMALL | change), encoding="utf-8")
    with pytest.raises(BadRecord, match=message) as refused:
        chats.read(path)
    assert "damaged.json" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_no_chat_is_one_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidInput, match="contains no chat"):
        chats.read(tmp_path)
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b"{}")[:-3])
    with pytest.raises(BadRecord, match="cannot be read"):
        chats.read(tmp_path / "cut.jsonl.gz")
    (tmp_path / "noise.json").write_text("{", encoding="utf-8")
    assert run(["bench", "beam", str(tmp_path / "noise.json")]) == 1
    assert "is not JSON" in capsys.readouterr().err
    assert run(["bench", "beam", str(CHATS), "--chat", "nobody"]) == 2
    assert "unknown chat 'nobody'" in capsys.readouterr().err


def test_the_benchmark_compares_with_baselines_per_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A chat that no fit has seen. zettel finds more than the better baseline, at 1 and at 10."""
    out = tmp_path / "result.json"
    arguments = ["bench", "beam", str(CHATS), "--chat", "canal-boat", "--beside", "bm25,vectors", "--json", str(out)]
    assert run(arguments) == 0
    assert "assistant" in capsys.readouterr().out
    result = json.loads(out.read_text(encoding="utf-8"))
    rows = {row[0]: dict(zip(result["columns"][1:], row[1:], strict=True)) for row in result["rows"]}
    assert rows["asked"]["all @10"] == 38
    assert rows["asked"]["AUROC"] == 2
    for places in ("all @1", "all @10"):
        assert rows["zettel"][places] > max(rows["BM25"][places], rows["vectors"][places])
    assert rows["zettel"]["assistant @10"] >= 0.9
    assert rows["zettel"]["time @10"] > 0.6 > rows["vectors"]["time @10"]
    assert -1 <= rows["zettel"]["tau @40"] <= 1
    assert rows["asked"]["tau @40"] == 2
    assert any("Kendall's tau of the order in which a search returns" in note for note in result["notes"])
    assert result["data"] == described(*sorted(CHATS.glob("*.json")))


def test_the_calibration_error_is_the_distance_of_chance_and_share() -> None:
    assert calibration_error([0.25] * 4, [True, False, False, False]) == pytest.approx(0.0)
    assert calibration_error([0.95, 0.95, 0.05, 0.05], [False, False, True, True]) == pytest.approx(0.95)
    assert calibration_error([], []) == 0.0


def test_each_of_two_chats_is_also_asked_questions_of_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = ({**SMALL, "chat": name} for name in ("boat", "other"))
    second["messages"] = [{"id": "1", "role": "user", "content": "Ants nest in the shed.", "session": 1}]
    second["questions"] = [{"question": "What nests in the shed?", "kind": "fact", "evidence": ["1"]}]
    path = tmp_path / "chats.jsonl"
    path.write_text("\n".join(map(json.dumps, (first, second))), encoding="utf-8")
    assert run(["bench", "beam", str(path), "--beside", "none", "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    asked = dict(zip(result["columns"], result["rows"][-1], strict=True))
    assert asked["all @1"] == 2, "questions of the other chat are not counted"
    assert [note for note in result["notes"] if "AUROC of 1.000; its median is" in note]


def test_todays_message_is_compared_with_the_former_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moved = {"id": "4", "role": "user", "content": "The sloop is in Arendal now.", "session": 3, "when": "2024-06-01"}
    chat, question = tmp_path / "boat.json", SMALL["questions"][0]["question"]  # type: ignore[index]
    chat.write_text(json.dumps({**SMALL, "messages": [*SMALL["messages"], moved]}), encoding="utf-8")
    changed = tmp_path / "changed.jsonl"
    fact = {"chat": "boat", "question": question, "now": ["4"], "before": ["1"]}
    outcomes = {}
    for name, line in (("right", fact), ("swapped", fact | {"now": ["1"], "before": ["4"]})):
        changed.write_text(json.dumps(line) + "\n", encoding="utf-8")
        options = ["--changed", str(changed), "--beside", "bm25", "--json", "-"]
        assert run(["bench", "beam", str(chat), *options]) == 0
        result = json.loads(capsys.readouterr().out)
        (outcomes[name],) = [note for note in result["notes"] if note.startswith("Today's message ranks")]
        assert result["data"] == described(chat, changed)
    for counted in outcomes.values():
        assert "BM25" in counted or "bm25" in counted
    assert sorted(int(counted.partition("zettel ")[2][0]) for counted in outcomes.values()) == [0, 1]
    changed.write_text(json.dumps(fact | {"now": 4}) + "\n", encoding="utf-8")
    assert run(["bench", "beam", str(chat), "--changed", str(changed)]) == 1
    assert "changed.jsonl:1: now: " in capsys.readouterr().err
