"""Evolution by a model: it changes only notes of the request, gives a reason, and never changes their content."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.errors import InvalidInput, InvalidModelOutput
from zettel.evolve.by_model import LiteLLMEvolver
from zettel.llm.prompt_lines import short_ids
from zettel.model import Note
from zettel.ports.language_model import (
    Answer,
    CandidateBatch,
    EvolutionResult,
    LinkChange,
    NoteCandidates,
    Request,
    Rewrite,
)
from zettel.prompts import load_prompt

NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)


def _note(seq: int, content: str) -> Note:
    event = f"e_{seq}"
    return Note(id=f"n_{seq:020x}", seq=seq, event_ids=(event,), recorded_at=NOON, content=content, speaker="Nadia")


OLD = (_note(1, "The Heron has a new sail."), _note(2, "I saw a heron at the pond."), _note(3, "Bread for tomorrow."))
NEW = (_note(10, "The Heron is my sister's boat."), _note(11, "She sails it to Skagen."))
CHOICES = CandidateBatch((NoteCandidates(NEW[0], (0, 1)), NoteCandidates(NEW[1], (0, 3))), (*OLD, NEW[0]))
IDS = short_ids(note.id for note in (*NEW, *OLD))


def _evolve(text: str) -> EvolutionResult:
    async def ask(request: Request, notes: Sequence[str]) -> Answer:
        return Answer(text, "some/model")

    return asyncio.run(LiteLLMEvolver().evolve(CHOICES, ask))


def _change(because: Note = NEW[0], card: Note = OLD[0], **fields: Any) -> dict[str, Any]:
    defaults = {
        "because": IDS[because.id], "card": IDS[card.id], "do": "rewrite", "why": "tells what it is",
        "context": "The Heron, a boat, has a new sail, says Nadia.", "keywords": ["Heron"], "tags": [], "importance": 1,
    }  # fmt: skip
    return {**defaults, **fields}


def _changes(*changes: Any) -> tuple[Rewrite | LinkChange, ...]:
    return _evolve(json.dumps({"changes": changes})).changes


def test_the_request_lists_each_note_once_with_an_opaque_id() -> None:
    requests: list[tuple[Request, Sequence[str]]] = []

    async def ask(request: Request, notes: Sequence[str]) -> Answer:
        requests.append((request, notes))
        return Answer('{"changes": []}', "some/model")

    result = asyncio.run(LiteLLMEvolver().evolve(CHOICES, ask))
    assert result == EvolutionResult((), "some/model", load_prompt("evolve").name)
    ((request, notes),) = requests
    assert set(notes) == {note.id for note in (*OLD, *NEW)}
    shown = [json.loads(line) for line in request.user.splitlines() if line.startswith("{")]
    assert [card["id"] for card in shown] == [IDS[note.id] for note in (*NEW, *OLD)]
    assert [card.get("near") for card in shown[:2]] == [
        [IDS[OLD[0].id], IDS[OLD[1].id]], [IDS[OLD[0].id], IDS[NEW[0].id]],
    ]  # fmt: skip
    assert not any(note.id in request.user for note in (*OLD, *NEW))


def test_a_rewrite_has_a_reason_and_fields() -> None:
    (change,) = _changes(_change())
    assert isinstance(change, Rewrite)
    assert (change.note, change.because, change.why) == (OLD[0].id, NEW[0].id, "tells what it is")
    assert (change.written.context, change.written.importance) == (
        "The Heron, a boat, has a new sail, says Nadia.",
        1.0,
    )


def test_links_are_added_and_removed() -> None:
    assert _changes(_change(card=OLD[1], do="unlink"), _change(NEW[1], NEW[0], do="link")) == (
        LinkChange(NEW[0].id, OLD[1].id, "tells what it is", False),
        LinkChange(NEW[1].id, NEW[0].id, "tells what it is", True),
    )


@pytest.mark.parametrize(
    "wrong",
    [
        _change(why=""),
        _change(why=" "),
        _change(why=None),
        _change(because=OLD[0]),
        _change(card=OLD[2]),
        _change(NEW[0], NEW[0]),
        _change(card=OLD[1], because=NEW[1]),
        _change(context="A boat."),
        _change(context=""),
        _change(do="forget"),
        {"card": IDS[OLD[0].id]},
        "rewrite",
        None,
    ],
    ids=str,
)
def test_invalid_items_change_nothing(wrong: Any) -> None:
    (valid,) = _changes(wrong, _change(NEW[1]))
    assert valid.because == NEW[1].id


def test_a_numeric_id_in_an_answer_is_accepted() -> None:
    notes = [_note(seq, OLD[0].content) for seq in range(1, 300)]
    ids = {note.id: short_ids([note.id])[note.id] for note in notes}
    old, new = [note for note in notes if ids[note.id].isdigit()][:2]
    item = {"because": int(ids[new.id]), "card": int(ids[old.id]), "do": "link", "why": "the same boat"}

    async def ask(request: Request, shown: Sequence[str]) -> Answer:
        return Answer(json.dumps({"changes": [item]}), "some/model")

    rewrote = asyncio.run(LiteLLMEvolver().evolve(CandidateBatch((NoteCandidates(new, (0,)),), (old,)), ask))
    assert rewrote.changes == (LinkChange(new.id, old.id, "the same boat", True),)


def test_a_note_is_rewritten_once() -> None:
    first, second = _change(), _change(NEW[1], context="The Heron has a new sail, and is at sea.")
    assert _changes(first, second) == _changes(first)


def test_an_answer_without_json_is_unusable() -> None:
    with pytest.raises(InvalidModelOutput):
        _evolve("I would leave them all as they are.")


def test_invalid_options_are_refused() -> None:
    with pytest.raises(InvalidInput, match="batch must be at least 1"):
        LiteLLMEvolver(batch=0)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(sorted(IDS.values())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(_change())), inner, max_size=9),
    max_leaves=12,
)


@given(st.lists(_JSON, min_size=1, max_size=4))
def test_any_answer_changes_only_offered_notes(answer_items: list[Any]) -> None:
    near = {NEW[0].id: {OLD[0].id, OLD[1].id}, NEW[1].id: {OLD[0].id, NEW[0].id}}
    try:
        changes = _evolve(json.dumps({"changes": answer_items})).changes
    except InvalidModelOutput:
        return
    for change in changes:
        assert (change.note if isinstance(change, Rewrite) else change.target) in near[change.because]
        assert change.why


def test_worked_examples_are_valid_answers() -> None:
    for question, answer in load_prompt("evolve").examples:
        shown = [json.loads(line) for line in question.splitlines() if line.startswith("{")]
        near = {card["id"]: set(card.get("near", ())) for card in shown}
        for change in json.loads(answer)["changes"]:
            assert change["card"] in near[change["because"]]
            assert change["why"]
