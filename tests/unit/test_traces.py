"""Agent traces: every message once and in order, however often it was sent to a model."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_formats import SAMPLES
from tests.unit.test_transcripts import events, split_records, write
from zettel.errors import BadRecord
from zettel.model import Event
from zettel.transcripts.formats import traces

LANGSMITH, OTEL = SAMPLES / "traces-langsmith.jsonl", SAMPLES / "traces-otel.jsonl"


def brief(read: list[Event]) -> list[tuple[str | None, str]]:
    return [(event.speaker, event.content or event.payload["calls"][0]["tool"]) for event in read]


BIRCH = [
    ("user", "How tall is the birch?"), ("assistant", "measure"), ("tool", "18.5 m"), ("assistant", "18.5 metres 🌳."),
    ("user", "And last year?"), ("assistant", "17.9 metres.\nIt grew well."), ("assistant", "measure"),
    ("tool", "TimeoutError: no answer"), ("user", "Who planted the oak?"), ("assistant", "Sister Alma, in 1887."),
]  # fmt: skip


def test_langsmith_runs_are_read_latest_first() -> None:
    read = events(list(traces.read(LANGSMITH)))
    assert brief(read) == BIRCH
    assert {event.session for event in read[:8]} == {"thread-birch"}
    user_turn, called, measured = read[:3]
    assert user_turn.occurred_at == datetime(2024, 5, 1, 9, 0, 1, tzinfo=timezone.utc)
    assert called.payload == {"calls": [{"tool": "measure", "input": {"tree": "birch"}, "id": "call_b1"}]}
    assert called.metadata["model"] == "gpt-4o-mini"
    assert (measured.metadata["tool"], measured.metadata["call"]) == ("measure", "call_b1")
    assert measured.occurred_at == datetime(2024, 5, 1, 9, 0, 5, tzinfo=timezone.utc)
    assert len({event.external_id for event in read}) == len(read)


def test_arrays_api_answers_and_nested_runs_are_read(tmp_path: Path) -> None:
    runs = [json.loads(line) for line in LANGSMITH.read_text("utf-8").splitlines()]
    root, *inside = [run for run in reversed(runs) if run["trace_id"] == runs[-1]["trace_id"]]
    for name, value in {"array": runs, "api": {"cursors": {}, "runs": runs}}.items():
        path = write(tmp_path / f"{name}.json", value)
        assert traces.sniff(path, path.read_bytes())
        assert brief(events(list(traces.read(path)))) == BIRCH
    nested = write(tmp_path / "nested.json", {**root, "child_runs": inside})
    assert brief(events(list(traces.read(nested)))) == BIRCH[:4]


def test_a_later_export_adds_only_new_messages(tmp_path: Path) -> None:
    lines = LANGSMITH.read_text("utf-8").splitlines()
    first_turn = {
        event.external_id
        for event in traces.read(write(tmp_path / "a.jsonl", "\n".join(lines[3:])))
        if isinstance(event, Event)
    }
    assert len(first_turn) == 4
    ids = [event.external_id for event in events(list(traces.read(LANGSMITH)))]
    assert set(ids[:4]) == first_turn


def test_repeated_messages_are_separate_events(tmp_path: Path) -> None:
    def turn(nth: int, texts: list[str]) -> dict[str, Any]:
        messages = [
            {"role": role, "content": text} for role, text in zip(["user", "assistant"] * 9, texts, strict=False)
        ]
        return {
            "id": f"r{nth}", "trace_id": f"t{nth}", "run_type": "llm", "start_time": f"2024-05-01T09:0{nth}:00",
            "extra": {"metadata": {"session_id": "s"}}, "inputs": {"messages": messages}, "outputs": {"output": "Yes."},
        }  # fmt: skip

    path = write(tmp_path / "a.json", [turn(1, ["Sure?"]), turn(2, ["Sure?", "Yes.", "Sure?"]), turn(3, ["Sure?"])])
    read = events(list(traces.read(path)))
    assert [event.content for event in read] == ["Sure?", "Yes.", "Sure?", "Yes.", "Yes."]
    assert len({event.external_id for event in read}) == 5


def test_opentelemetry_spans_are_read() -> None:
    read = events(list(traces.read(OTEL)))
    assert brief(read) == [
        ("user", "Is the ferry late?"), ("assistant", "ferry"), ("tool", '{"late": 12}'),
        ("assistant", "Twelve minutes late ⛴."), ("user", "Name a knot."), ("assistant", "Bowline."),
        ("user", "What is this?\n\n[image]"), ("assistant", "A sextant."), ("user", "Where is Lot 9?"),
        ("assistant", "find"),
    ]  # fmt: skip
    ferry, sextant = read[1], read[7]
    assert {event.session for event in read[:4]} == {"conv_quay"}
    assert ferry.payload == {"calls": [{"tool": "ferry", "input": {"line": 7}, "id": "c1"}]}
    assert read[3].metadata["model"] == "gpt-4o-2024-08-06"
    assert read[3].occurred_at == datetime(2024, 5, 1, 8, 0, 5, 500_000, tzinfo=timezone.utc)
    assert sextant.payload == {"calls": [{"tool": "log", "input": {"seen": "sextant"}, "id": "k1"}]}
    assert (read[6].session, read[8].session) == ("s-30", "s-40")
    assert read[9].payload["calls"][0]["input"] == {"lot": 9}


def test_a_single_export_object_is_read(tmp_path: Path) -> None:
    first = json.loads(OTEL.read_text("utf-8").splitlines()[2])
    path = write(tmp_path / "spans.json", json.dumps(first, indent=1))
    assert traces.sniff(path, path.read_bytes())
    assert brief(events(list(traces.read(path)))) == [("user", "Name a knot."), ("assistant", "Bowline.")]


def test_invalid_records_are_rejected_and_the_rest_is_read(tmp_path: Path) -> None:
    good = LANGSMITH.read_text("utf-8").splitlines()[0]
    late = json.dumps({**json.loads(good), "start_time": "soon"})
    span = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [
        {"spanId": "x", "startTimeUnixNano": "now", "attributes": [
            {"key": "gen_ai.prompt.0.role", "value": {"stringValue": "user"}},
            {"key": "gen_ai.prompt.0.content", "value": {"stringValue": "Hm."}}]}]}]}]})  # fmt: skip
    lines = ["{nonsense}", "7", '{"a": 1}', late, span, good]
    read, rejected = split_records(list(traces.read(write(tmp_path / "a.jsonl", "\n".join(lines)))))
    assert len(read) == 2
    assert [record.position for record in rejected] == ["1", "2", "3", "4", "5/x"]


def test_a_truncated_array_yields_the_records_before_the_cut(tmp_path: Path) -> None:
    runs = [json.loads(line) for line in LANGSMITH.read_text("utf-8").splitlines()]
    path = write(tmp_path / "runs.json", json.dumps(runs)[:-9])
    records: list[Any] = []
    with pytest.raises(BadRecord, match=r"runs\.json:1:\d+: the JSON is truncated here"):
        records.extend(traces.read(path))
    read = traces.read(path)
    assert next(read).model_dump()["content"] == "How tall is the birch?"


def test_results_of_tools_have_their_outcome() -> None:
    outcomes = {event.content: event.metadata.get("outcome") for event in events(list(traces.read(LANGSMITH)))}
    assert (outcomes["18.5 m"], outcomes["TimeoutError: no answer"]) == ("success", "failure")
    assert outcomes["18.5 metres 🌳."] is None
