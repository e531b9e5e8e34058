"""Lessons and examples from the tool calls of agents: what failed, what worked, and the episodes that succeeded."""

from __future__ import annotations

from typing import Any

import pytest

from zettel import Memory, Scope
from zettel.errors import InvalidInput
from zettel.integrations.core_memory import core
from zettel.model import Kind

pytestmark = pytest.mark.over_http

Call = tuple[str, dict[str, Any], str, bool | None]
RETRY: Call = ("retry_job", {"job": "nightly-export"}, "TimeoutError: no answer after 30 s", None)
CLEAR: Call = ("clear_lock", {"table": "warehouse"}, "lock cleared", True)


def add_episode(memory: Memory, session: str, task: str, calls: list[Call], answer: str) -> None:
    memory.add(task, role="user", session=session)
    for number, (tool, given, result, succeeded) in enumerate(calls):
        id = f"{session}{number}"
        outcome = {} if succeeded is None else {"outcome": "success" if succeeded else "failure"}
        payload = {"calls": [{"tool": tool, "input": given, "id": id}]}
        memory.add(payload=payload, role="assistant", session=session)
        memory.add(result, role="tool", speaker=tool, session=session, metadata={"tool": tool, "call": id, **outcome})
    memory.add(answer, role="assistant", session=session)


def add_episodes(memory: Memory) -> None:
    add_episode(memory, "a", "The nightly export to the warehouse failed, fix it.", [RETRY, CLEAR], "The lock was old.")
    add_episode(memory, "b", "Nightly export to the warehouse failed again.", [RETRY, CLEAR], "Done.")
    add_episode(memory, "c", "The export to the warehouse failed on Sunday.", [CLEAR, RETRY], "I give up.")
    add_episode(memory, "d", "How tall is the birch?", [("measure", {"tree": "birch"}, "18.5 m", True)], "18.5 m.")


@pytest.mark.here
def test_calls_of_tools_teach_lessons(memory: Memory) -> None:
    add_episodes(memory)
    memory.evolve()
    (lesson,) = memory.list(kinds=[Kind.PROCEDURAL]).notes
    assert "call clear_lock (table: warehouse) (went well 3 of 3 times)" in lesson.content
    assert "not: call retry_job (job: nightly-export) (went badly 3 of 3 times)" in lesson.content
    assert lesson.confidence == 0.8
    assert lesson.content in core(memory, task="Why did the nightly export to the warehouse fail?")
    assert core(memory, task="How tall is the oak?") == ""
    for _ in range(6):  # it stops working
        failed: Call = (*CLEAR[:2], "Error: permission denied", None)
        add_episode(memory, f"e{_}", "The nightly export to the warehouse failed.", [failed], "No luck.")
    memory.evolve()
    (lesson,) = memory.list(kinds=[Kind.PROCEDURAL]).notes
    assert "clear_lock" not in lesson.content.partition("not:")[0]


def test_examples_are_episodes_that_succeeded(memory: Memory) -> None:
    add_episodes(memory)
    memory.flush()
    examples = memory.examples("The export to the warehouse fails at night", k=5)
    assert {example.session for example in examples} == {"a", "b"}
    assert len(memory.examples("The export to the warehouse fails at night", k=1)) == 1
    first = next(example for example in examples if example.session == "b")
    assert str(first).splitlines() == [
        "Task: Nightly export to the warehouse failed again.",
        "- assistant: call retry_job (job: nightly-export)", "- retry_job: TimeoutError: no answer after 30 s",
        "- assistant: call clear_lock (table: warehouse)", "- clear_lock: lock cleared", "- assistant: Done.",
    ]  # fmt: skip
    assert memory.get(first.note).session == "b"
    assert memory.examples("The export to the warehouse fails at night", scope=Scope(user="bob")) == []


def test_an_episode_ends_with_the_next_task_and_counts_what_people_report(memory: Memory) -> None:
    turns = [
        ("user", "The upload of large files times out."), ("assistant", "Raise UPLOAD_TIMEOUT to 90."),
        ("user", "That worked!"), ("user", "Now rename the blue folder."), ("assistant", "Renamed."),
    ]  # fmt: skip
    for role, text in turns:
        memory.add(text, role=role, session="s")  # type: ignore[arg-type]
    memory.flush()
    (upload,) = memory.examples("An upload of large files times out", k=3)
    assert upload.steps == ("assistant: Raise UPLOAD_TIMEOUT to 90.", "user: That worked!")


def test_invalid_input_is_one_clear_line(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="k"):
        memory.examples("x", k=0)
