"""Transcripts of Claude Code, Codex and Gemini CLI, in files written like theirs."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_formats import SAMPLES
from tests.unit.test_transcripts import events, split_records, write
from zettel import Memory, Scope
from zettel.errors import InvalidInput
from zettel.model import Event
from zettel.transcripts import choose
from zettel.transcripts.formats.agent_turns import MAX_TOOL_TEXT, shortened, written_text
from zettel.transcripts.projects import project_name

SESSION = "5d0c6a3e-7f41-4b8e-9a53-0c1d2e3f4a5b"


def sample(name: str) -> list[Event]:
    path = SAMPLES / name
    return events(list(choose(path).read(path)))


def claude_line(content: Any, **more: Any) -> str:
    line = {"type": "user", "sessionId": "s", "uuid": "u1", "parentUuid": None, "cwd": "/p", **more}
    return json.dumps({**line, "message": {"role": line["type"], "content": content}})


def read_claude(folder: Path, *lines: str) -> list[Event]:
    path = write(folder / "s.jsonl", "\n".join(lines))
    return events(list(choose(path, "claude-code").read(path)))


def test_claude_code_turns_are_read() -> None:
    review, port, looking, grep, grepped, task, _, _, explored, done, chart, shell = sample("claude-code.jsonl")
    assert (review.role, review.content) == ("user", "/review main")
    assert port.content == "The staging database listens on port 5544, not 5432. Please fix the tests."
    assert port.external_id == "00000003-1111-4222-8333-444455556666"
    assert (port.session, port.metadata) == (SESSION, {"project": "/home/ebba/src/tide-api"})
    assert port.occurred_at == datetime(2026, 11, 3, 9, 2, tzinfo=timezone.utc)
    assert (looking.role, looking.metadata["model"]) == ("assistant", "claude-sonnet-5")
    inputs = {"command": "grep -rn 5432 .", "description": "Find the port"}
    assert grep.payload == {"calls": [{"tool": "Bash", "input": inputs, "id": "toolu_01"}]}
    assert (grepped.role, grepped.content, grepped.metadata["tool"]) == ("tool", "conf/test.toml:3:port = 5432", "Bash")
    assert (task.role, explored.metadata["tool"]) == ("assistant", "Task")
    assert done.content.endswith("docs/setup.md too. 🌊")
    assert (chart.content, shell.content) == ("Here is the chart. Does it fit?\n\n[image]", "! make test")


def test_a_sub_agent_has_a_session_of_its_own_and_takes_its_task_from_the_assistant() -> None:
    asked, answered = (event for event in sample("claude-code.jsonl") if "/" in (event.session or ""))
    assert asked.session == answered.session == f"{SESSION}/agent-a1b2c3d4"
    assert (asked.speaker, asked.role) == ("assistant", "assistant")
    listed, only = sample("codex-rollout-subagent.jsonl")
    assert (listed.role, only.role) == ("assistant", "assistant")


def test_codex_turns_are_read() -> None:
    release, shell, listed, patch, patched, done = sample("codex-rollout.jsonl")
    assert (release.role, release.content) == ("user", "Releases are cut from the branch harvest.")
    assert release.external_id == f"{release.session}/7" == "0199c0de-aaaa-7bbb-8ccc-ddddeeeeffff/7"
    assert release.metadata == {"project": "/home/ebba/src/harbour"}
    assert shell.payload == {
        "calls": [{"tool": "shell", "input": {"command": ["bash", "-lc", "ls ci"]}, "id": "call_1"}]
    }
    assert (listed.content, listed.metadata["tool"]) == ("release.sh\n", "shell")
    assert (patch.role, patched.metadata["tool"]) == ("assistant", "apply_patch")
    assert done.content == "ci/release.sh uses the branch harvest now."


def test_codex_files_of_2025_are_read() -> None:
    named, _, done = sample("codex-rollout-old.jsonl")
    assert (named.content, named.occurred_at) == ("Name the mooring script moor.py.", None)
    assert done.external_id == "6f1e2d3c-0000-4111-8222-333344445555/7"


def test_gemini_turns_are_read_as_the_session_left_them() -> None:
    gates, call, output, four, thanks = sample("gemini-session.jsonl")
    assert (gates.role, gates.content) == ("user", "The lock has four gates.")
    assert call.payload == {"calls": [{"tool": "read_file", "input": {"file_path": "lock.toml"}, "id": "read_file-1"}]}
    assert (output.role, output.content, output.metadata["tool"]) == ("tool", "gate = 4", "read_file")
    assert (four.content, thanks.content) == ("lock.toml names four gates too.", "Thanks!")
    assert len({gates.external_id, call.external_id, output.external_id, four.external_id}) == 4
    assert [event.content for event in sample("gemini-session.json")] == ["Which quay is ours?", "Quay 7."]


def test_the_project_of_a_gemini_session_is_in_the_note_beside_it(tmp_path: Path) -> None:
    chats = tmp_path / "harbour" / "chats"
    chats.mkdir(parents=True)
    (tmp_path / "harbour" / ".project_root").write_text("/home/ebba/src/harbour\n")
    path = chats / "session-1.json"
    path.write_bytes((SAMPLES / "gemini-session.json").read_bytes())
    first, *_ = events(list(choose(path).read(path)))
    assert first.metadata["project"] == "/home/ebba/src/harbour"


def test_what_programs_add_is_no_part_of_a_turn() -> None:
    assert written_text("<system-reminder>x\ny</system-reminder> Go on.") == "Go on."
    assert written_text("Go on.\n<zettel-memory>\n- Ann: Stop.\n</zettel-memory>") == "Go on."
    assert written_text("Go on.\n<zettel-memory>\n- Ann: truncated") == "Go on.", "also without its end"
    assert written_text("<skill>\nname: x\n</skill>") == ""
    assert written_text("Explain the tag <skill> to me.") == "Explain the tag <skill> to me."
    assert written_text("if a < b: <div>keep</div>") == "if a < b: <div>keep</div>"


@pytest.mark.parametrize(
    "call",
    [
        {"name": "Bash", "input": {"command": "cd x && zettel search --user ann 'deploy'"}},
        {"name": "mcp__zettel__search_memory", "input": {"question": "deploy"}},
    ],
)
def test_what_an_agent_recalled_by_a_tool_is_not_stored_again(tmp_path: Path, call: dict[str, Any]) -> None:
    called = claude_line([{"type": "tool_use", "id": "t1", **call}], type="assistant", uuid="u1")
    result = claude_line([{"type": "tool_result", "tool_use_id": "t1", "content": "Deploy on Mondays."}], uuid="u2")
    assert [event.external_id for event in read_claude(tmp_path, called, result)] == ["u1"]


def test_long_tool_texts_keep_their_beginning_and_end(tmp_path: Path) -> None:
    text = "a" * 5_000 + "b" * 5_000
    (result,) = read_claude(tmp_path, claude_line([{"type": "tool_result", "tool_use_id": "t", "content": text}]))
    assert result.content == "a" * 500 + "\n[… 9,000 characters …]\n" + "b" * 500
    assert shortened("a" * MAX_TOOL_TEXT) == "a" * MAX_TOOL_TEXT
    (prompt,) = read_claude(tmp_path, claude_line(text))
    assert prompt.content == text, "people are quoted in full"


def test_a_damaged_line_is_rejected_and_the_others_are_read(tmp_path: Path) -> None:
    lines = [claude_line("One."), '{"type": "user", "message": ', claude_line("Two.", uuid="u2", timestamp="soon")]
    path = write(tmp_path / "s.jsonl", "\n".join([*lines, claude_line("Three.", uuid="u3")]))
    read, refused = split_records(list(choose(path, "claude-code").read(path)))
    assert [event.content for event in read] == ["One.", "Three."]
    assert [record.position for record in refused] == ["2", "3"]


@pytest.mark.parametrize("name", ["claude-code.jsonl", "codex-rollout.jsonl", "gemini-session.jsonl"])
def test_a_session_that_grew_adds_only_its_new_turns(tmp_path: Path, name: str) -> None:
    lines = (SAMPLES / name).read_text(encoding="utf-8").splitlines(keepends=True)
    path = tmp_path / name
    with Memory(tmp_path / "m.db") as memory:
        added = 0
        for count in (len(lines) // 2, len(lines), len(lines)):
            path.write_text("".join(lines[:count]), encoding="utf-8")
            added += memory.import_transcript(path).added
        assert added == len(sample(name)) == len(list(memory.dump()))


def test_each_project_gets_a_scope_of_its_own(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{name}.jsonl", claude_line(name, cwd=f"/src/{name}", uuid=name)) for name in ("a", "b")]
    with Memory(tmp_path / "m.db", scope=Scope(user="ebba")) as memory:
        for path in files:
            memory.import_transcript(path, scope_by="project")
        for name in ("a", "b"):
            scope = Scope(user="ebba", agent=project_name(f"/src/{name}"))
            assert [event.content for event, _ in memory.dump(scope=scope)] == [name]
        assert list(memory.dump()) == []
        with pytest.raises(InvalidInput, match="leave the agent 'x' out of scope="):
            memory.import_transcript(files[0], scope_by="project", scope=Scope(agent="x"))
