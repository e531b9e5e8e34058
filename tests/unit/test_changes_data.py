"""The data set of planted fact changes matches its README."""

from __future__ import annotations

import importlib.util
import json
import re
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from zettel.bench.changes import QUESTIONS, Change, read
from zettel.model import Event
from zettel.transcripts.formats import events_jsonl

FOLDER = Path(__file__).parents[1] / "data" / "changes"
CHANGES = read(FOLDER)
ALL = [change for changes in CHANGES.values() for change in changes]


def load_maker() -> Any:
    spec = importlib.util.spec_from_file_location("make_changes", FOLDER / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = load_maker()


def events_of(scope: str) -> list[Event]:
    records = list(events_jsonl.read(FOLDER / f"{scope}.jsonl"))
    events = [record for record in records if isinstance(record, Event)]
    assert len(events) == len(records)
    return events


def test_each_of_ten_kinds_has_thirty_changes() -> None:
    kinds = Counter(change.kind for change in ALL)
    assert len(kinds) == 10
    assert set(kinds.values()) == {30}
    assert {scope: len(changes) for scope, changes in CHANGES.items()} == {f"scope-{n:02}": 30 for n in range(1, 11)}
    assert {path.name for path in FOLDER.glob("*.jsonl")} == {f"{scope}.jsonl" for scope in CHANGES} | {QUESTIONS}
    marked = sum(bool(change.marked) for change in ALL)
    assert 100 <= marked <= 200, "both sorts of new statements"


def test_questions_are_unique_in_a_scope() -> None:
    for changes in CHANGES.values():
        assert len({change.question for change in changes}) == len(changes)
        statements = [event for change in changes for event in (change.now, change.before)]
        assert len(set(statements)) == len(statements)


@pytest.mark.parametrize("scope", list(CHANGES))
def test_a_scope_is_well_formed(scope: str) -> None:
    events = events_of(scope)
    by_id = {event.external_id: event for event in events}
    assert len(by_id) == len(events)
    assert all(event.speaker and event.session and event.occurred_at for event in events)
    statements = [event.content for event in events if event.speaker != "assistant"]
    assert len(set(statements)) == len(statements)
    assert not any(re.search(r"[{}#@%\[\]]", event.content) for event in events)
    times = [event.occurred_at for event in events if event.occurred_at]
    assert times == sorted(times)
    distractors = len(statements) - 2 * len(CHANGES[scope])
    assert 4 * len(CHANGES[scope]) <= distractors <= 8 * len(CHANGES[scope])
    for change in CHANGES[scope]:
        before, now = by_id[change.before].occurred_at, by_id[change.now].occurred_at
        assert before is not None
        assert now is not None
        assert before < change.as_of < now
        # Statements occur anywhere in their sessions, whose starts are 3 to 150 days apart.
        assert timedelta(days=2) < now - before < timedelta(days=151)
        assert by_id[change.before].session != by_id[change.now].session


@pytest.mark.parametrize("kind", sorted({change.kind for change in ALL}))
def test_phrasings_are_many_and_unique(kind: str) -> None:
    lines = MAKER.read(kind).lines
    old, new = ({line.text for line in lines[side]} for side in ("old", "new"))
    assert len(old) >= 8
    assert len(new) >= 8
    masked = [{re.sub(r"{\w+}", "_", text).lower() for text in texts} for texts in (old, new)]
    assert not masked[0] & masked[1]
    assert {line.marked for line in lines["new"]} == {True, False}
    assert set(lines) == {"old", "new", "other", "same", "oldvalue", "unrealised", "if"}


def test_the_script_reproduces_the_files() -> None:
    scopes, questions = MAKER.generate()
    generated = {f"{name}.jsonl": rows for name, rows in scopes.items()} | {QUESTIONS: questions}
    for name, rows in generated.items():
        assert "".join(MAKER.lines_of(rows)) == (FOLDER / name).read_text(encoding="utf-8"), name


def test_a_question_without_a_question_mark_is_parsed() -> None:
    fields = json.loads((FOLDER / QUESTIONS).read_text(encoding="utf-8").splitlines()[0])
    del fields["marked"]
    assert Change.model_validate(fields).marked is None
