"""Reranking by a language model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tiny import Row, Tiny
from zettel.errors import InvalidInput, InvalidModelOutput, ModelError, StoreBusy
from zettel.llm.prompt_lines import line, short_ids
from zettel.model import Note, to_micros
from zettel.ports.language_model import Answer, Ask, Request
from zettel.ports.query import Shortlist
from zettel.prompts import load_prompt
from zettel.scoring.by_model import QUESTION_CHARS, SHOWN_CHARS, LLMScorer
from zettel.scoring.fusion import FusionScorer

NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)


def _note(seq: int, **fields: Any) -> Note:
    defaults = {"content": f"said {seq}", "speaker": "Ann", "occurred_at": NOON + timedelta(days=seq), **fields}
    return Note(id=f"n_{seq:020x}", seq=seq, event_ids=(f"e_{seq}",), recorded_at=NOON, **defaults)


NOTES = tuple(_note(seq) for seq in range(1, 6))
IDS = list(short_ids(note.id for note in NOTES).values())
TINY = Tiny([Row("boat")] * len(NOTES))


def _shortlist(ask: Ask | None, notes: Sequence[Note] = NOTES) -> Shortlist:
    question = TINY.ask("boat")
    candidates = TINY.about(question)
    first = FusionScorer().score(question, candidates)
    rows = np.arange(len(notes))
    return Shortlist(candidates, first, rows, first.score[rows], notes, np.zeros((len(notes), 0), np.float32), "", ask)


def _order(text: str, cut: bool = False) -> list[float] | ModelError:
    async def ask(request: Request, notes: Sequence[str]) -> Answer:
        return Answer(text, "some/model", cut)

    (answer,) = asyncio.run(LLMScorer().rerank([TINY.ask("boat")], [_shortlist(ask)]))
    return answer if isinstance(answer, ModelError) else answer.round(2).tolist()


def _sent_request(question: str, *notes: Note, today: datetime | None = None) -> tuple[Request, Sequence[str]]:
    requests: list[tuple[Request, Sequence[str]]] = []

    async def ask(request: Request, notes: Sequence[str]) -> Answer:
        requests.append((request, notes))
        return Answer('{"order": []}', "some/model")

    parsed = TINY.ask(question, today=None if today is None else to_micros(today))
    asyncio.run(LLMScorer().rerank([parsed], [_shortlist(ask, notes or NOTES)]))
    (request_and_notes,) = requests
    return request_and_notes


def test_worked_examples_have_the_format_of_requests() -> None:
    prompt = load_prompt("rank")
    assert prompt.name == "rank/1"
    assert len(prompt.examples) == 3
    for example_request, example_answer in prompt.examples:
        lines = example_request.splitlines()
        assert (lines[0], lines[2]) == ("question:", "notes:")
        shown = [json.loads(text) for text in (lines[1], *lines[3:])]
        assert [line(**item) for item in shown] == [lines[1], *lines[3:]]
        assert set(json.loads(example_answer)["order"]) < {note["id"] for note in shown[1:]}


def test_a_request_contains_the_notes_and_their_fields() -> None:
    notes = (
        _note(1, content="I live in Bergen.", valid_to=NOON),
        _note(2, title="Oslo", speaker=None, context="Ann's new town.", authored=("context",)),
        _note(3, content="word " * 500, occurred_at=None, context="extracted"),
    )
    request, ids = _sent_request("Where does Ann live?", *notes, today=NOON)
    lines = request.user.splitlines()
    assert [lines[0], lines[2]] == ["question:", "notes:"]
    assert json.loads(lines[1]) == {"question": "Where does Ann live?", "today": "2024-05-01 Wed"}
    short = list(short_ids(note.id for note in notes).values())
    first, second, third = (json.loads(text) for text in lines[3:])
    assert first == {
        "id": short[0], "on": "2024-05-02", "by": "Ann", "note": "I live in Bergen.", "until": "2024-05-01",
    }  # fmt: skip
    assert second == {
        "id": short[1], "on": "2024-05-03", "title": "Oslo", "note": "said 2", "about": "Ann's new town.",
    }  # fmt: skip
    assert set(third) == {"id", "by", "note"}
    assert len(third["note"]) == SHOWN_CHARS
    assert list(ids) == [note.id for note in notes]
    assert (request.prompt, request.max_tokens) == ("rank/1", 80)
    assert json.loads(_sent_request("why? " * 999)[0].user.splitlines()[1]).keys() == {"question"}
    assert len(json.loads(_sent_request("why? " * 999)[0].user.splitlines()[1])["question"]) <= QUESTION_CHARS


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ({"order": [IDS[3], IDS[0]]}, [0.8, 0, 0, 1, 0]),
        ([IDS[3], IDS[0]], [0.8, 0, 0, 1, 0]),
        ({"order": [IDS[3], IDS[3], "zz", IDS[0], 7, None]}, [0.8, 0, 0, 1, 0]),
        ({"order": IDS[1]}, [0, 1, 0, 0, 0]),
        ({"order": []}, [0, 0, 0, 0, 0]),
        ({"order": IDS[::-1]}, [0.2, 0.4, 0.6, 0.8, 1]),
    ],
    ids=str,
)
def test_values_fall_with_the_place_and_unnamed_notes_have_zero(text: Any, values: list[float]) -> None:
    assert _order(json.dumps(text)) == pytest.approx(values)
    assert _order(f"Sure:\n```json\n{json.dumps(text)}\n```") == pytest.approx(values)


@pytest.mark.parametrize(
    "text",
    [
        "I would rather not.",
        '{"order": ["zz", "yy"]}',
        '{"order": [{"id": "zz"}]}',
        '{"best": "' + IDS[0] + '"}',
        '{"order": [1, 2, 3]}',
        "[[[[",
    ],
)
def test_an_unreadable_answer_is_an_error(text: str) -> None:
    assert isinstance(_order(text), InvalidModelOutput)


def test_a_cut_answer_counts_up_to_its_end() -> None:
    complete = json.dumps({"order": [IDS[2], IDS[1], IDS[4]]})
    assert _order(complete[:-3], cut=True) == pytest.approx([0, 0.8, 1, 0, 0])


@given(st.text(max_size=80) | st.lists(st.sampled_from([*IDS, "zz"]) | st.none() | st.integers(), max_size=9))
def test_any_answer_gives_an_order_or_an_error(answer: Any) -> None:
    outcome = _order(answer if isinstance(answer, str) else json.dumps({"order": answer}))
    assert isinstance(outcome, ModelError) or (len(outcome) == len(NOTES) and min(outcome) >= 0)


def test_model_errors_affect_one_question_and_others_are_raised() -> None:
    async def good(request: Request, notes: Sequence[str]) -> Answer:
        return Answer(json.dumps({"order": [IDS[0]]}), "some/model")

    async def bad(request: Request, notes: Sequence[str]) -> Answer:
        raise InvalidModelOutput("no")

    async def busy(request: Request, notes: Sequence[str]) -> Answer:
        raise StoreBusy

    question = TINY.ask("boat")
    good_outcome, two = asyncio.run(LLMScorer().rerank([question] * 2, [_shortlist(good), _shortlist(bad)]))
    assert not isinstance(good_outcome, ModelError)
    assert isinstance(two, InvalidModelOutput)
    with pytest.raises(StoreBusy):
        asyncio.run(LLMScorer().rerank([question] * 2, [_shortlist(good), _shortlist(busy)]))


def test_a_missing_model_or_invalid_limits_raise() -> None:
    with pytest.raises(InvalidInput, match=r"open the memory with llm=\.\.\."):
        asyncio.run(LLMScorer().rerank([TINY.ask("boat")], [_shortlist(None)]))
    with pytest.raises(InvalidInput, match="reads=0"):
        LLMScorer(reads=0)
