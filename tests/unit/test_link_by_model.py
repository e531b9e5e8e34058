"""Links by a model: only offered pairs and valid types become links."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.errors import InvalidInput
from zettel.link.by_model import CUT, MAX_LINKS, MAX_OFFERED, UNREADABLE, LiteLLMLinker
from zettel.llm.prompt_lines import MAX_REASON, line, short_ids
from zettel.model import LinkType, Note
from zettel.ports.language_model import Answer, CandidateBatch, LinkDecision, LinkResult, NoteCandidates, Request
from zettel.prompts import load_prompt

NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)


def _note(seq: int, days: int | None = None, **fields: Any) -> Note:
    when = None if days is None else NOON + timedelta(days=days)
    given_fields = {"content": f"said {seq}", "speaker": "Ann", "occurred_at": when, "valid_from": when, **fields}
    return Note(id=f"n_{seq:020x}", seq=seq, event_ids=(f"e_{seq}",), recorded_at=NOON, **given_fields)


OLD = tuple(_note(seq, days=seq) for seq in range(1, 7))
FIRST, SECOND = _note(10, days=10), _note(11, days=11)
CHOICES = CandidateBatch((NoteCandidates(FIRST, (0, 1, 2, 3)), NoteCandidates(SECOND, (4, 6))), (*OLD, FIRST))
IDS = short_ids(note.id for note in (FIRST, SECOND, *OLD))


def _link(text: str, choices: CandidateBatch = CHOICES, cut: bool = False) -> LinkResult:
    async def ask(request: Request, notes: Sequence[str]) -> Answer:
        return Answer(text, "some/model", cut)

    return asyncio.run(LiteLLMLinker().link(choices, ask))


def _sent_requests(choices: CandidateBatch) -> list[tuple[Request, Sequence[str]]]:
    requests: list[tuple[Request, Sequence[str]]] = []

    async def ask(request: Request, notes: Sequence[str]) -> Answer:
        requests.append((request, notes))
        return Answer('{"links": []}', "some/model")

    asyncio.run(LiteLLMLinker().link(choices, ask))
    return requests


def _ids(choices: CandidateBatch) -> dict[str, str]:
    """Return the ids of the request by note."""
    ((request, _),) = _sent_requests(choices)
    shown = [json.loads(text) for text in request.user.splitlines() if text.startswith("{")]
    by_note = {
        f"Ann: {note.content}": note.id for note in (*choices.others, *(choice.note for choice in choices.notes))
    }
    return {by_note[item["note"]]: item["id"] for item in shown}


def _link_item(source: Note, target: Note, type: str = "RELATES", **fields: Any) -> dict[str, Any]:
    ids = _ids(CHOICES)
    return {
        "from": ids.get(source.id, source.id),
        "to": ids.get(target.id, target.id),
        "type": type,
        "reason": "why",
        **fields,
    }


def _answer(*links: Any) -> str:
    return json.dumps({"links": list(links)})


def test_worked_examples_have_the_format_of_requests() -> None:
    prompt = load_prompt("link")
    assert prompt.name == "link/2"
    assert len(prompt.examples) == 3
    types = set()
    for request, answer in prompt.examples:
        shown = [json.loads(text) for text in request.splitlines() if text.startswith("{")]
        assert [line(**item) for item in shown] == [text for text in request.splitlines() if text.startswith("{")]
        offered = {item["id"]: item.get("to", []) for item in shown}
        assert all(set(to) <= set(offered) for to in offered.values())
        for link in json.loads(answer)["links"]:
            assert link["to"] in offered[link["from"]]
            types.add(link["type"])
    assert types == {"RELATES", "SUPERSEDES", "CONTRADICTS"}


def test_request_lists_candidates_once_for_all_notes() -> None:
    ((request, notes),) = _sent_requests(CHOICES)
    lines = request.user.splitlines()
    assert lines[0] == "notes:"
    assert lines[3] == "others:"
    first, second = json.loads(lines[1]), json.loads(lines[2])
    others = {json.loads(text)["id"] for text in lines[4:]}
    assert len(others) == 5
    assert set(first["to"]) | {second["to"][0]} == others
    assert second["to"][1] == first["id"]  # a new note may be linked to another new note
    assert set(notes) == {note.id for note in (FIRST, SECOND, *OLD[:5])}
    assert first["on"] == "2024-05-11"


def test_an_authored_context_replaces_the_content_in_the_request() -> None:
    written = _note(20, context="Ann sold the canoe. " * 40, authored=("context",))
    ((request, _),) = _sent_requests(CandidateBatch((NoteCandidates(written, (0,)),), OLD))
    shown = [json.loads(text) for text in request.user.splitlines() if text.startswith("{")]
    assert shown[0]["note"].startswith("Ann sold the canoe.")
    assert len(shown[0]["note"]) < 200
    assert shown[1]["note"] == "Ann: said 1"


def test_a_candidate_of_a_later_day_may_replace_the_new_note() -> None:
    """Concurrent jobs write facts in another order than their days."""
    day = datetime(2024, 5, 1, tzinfo=timezone.utc)
    early, late = _note(20, valid_from=day), _note(3, valid_from=day + timedelta(days=30))
    choices = CandidateBatch((NoteCandidates(early, (0,)),), (late,))
    ((request, _),) = _sent_requests(choices)
    newer, older = (json.loads(text) for text in request.user.splitlines() if text.startswith("{"))
    assert request.user.splitlines()[2] == "others:"
    assert (newer["note"], older["note"]) == (f"Ann: {late.content}", f"Ann: {early.content}")
    assert newer["to"] == [older["id"]]
    answer = _answer({"from": newer["id"], "to": older["id"], "type": "UPDATES", "reason": "why"})
    assert _link(answer, choices).notes == ((LinkDecision(late.id, early.id, LinkType.UPDATES, "why"),),)


def test_valid_decisions_are_returned() -> None:
    linked = _link(
        _answer(
            _link_item(FIRST, OLD[0], "SUPERSEDES"),
            _link_item(FIRST, OLD[1], reason="x" * 999),
            _link_item(SECOND, FIRST, "CONTRADICTS"),
        )
    )
    first, second = linked.notes
    assert first == (
        LinkDecision(FIRST.id, OLD[0].id, LinkType.SUPERSEDES, "why"),
        LinkDecision(FIRST.id, OLD[1].id, LinkType.RELATES, "x" * (MAX_REASON - 1) + "…"),
    )
    assert second == (LinkDecision(SECOND.id, FIRST.id, LinkType.CONTRADICTS, "why"),)
    assert (linked.model, linked.prompt) == ("some/model", "link/2")


@pytest.mark.parametrize(
    "link",
    [
        _link_item(FIRST, OLD[4]),  # offered to the other note only
        _link_item(FIRST, SECOND),
        _link_item(FIRST, FIRST),
        _link_item(OLD[0], FIRST),
        _link_item(FIRST, OLD[5]),
        _link_item(FIRST, OLD[0], "MENTIONS"),
        _link_item(FIRST, OLD[0], "DERIVED_FROM"),
        _link_item(FIRST, OLD[0], "DELETES"),
        {**_link_item(FIRST, OLD[0]), "to": FIRST.id},
        {**_link_item(FIRST, OLD[0]), "to": 0},
        {"from": "", "to": "", "type": "RELATES"},
        "RELATES",
        None,
    ],
)
def test_invalid_links_are_dropped(link: Any) -> None:
    assert _link(_answer(link, _link_item(SECOND, OLD[4]))).notes == (
        (),
        (LinkDecision(SECOND.id, OLD[4].id, LinkType.RELATES, "why"),),
    )


def test_a_numeric_id_in_an_answer_is_accepted() -> None:
    notes = [_note(seq) for seq in range(1, 300)]
    ids = {note.id: short_ids([note.id])[note.id] for note in notes}
    old, new = [note for note in notes if ids[note.id].isdigit()][:2]
    item = {"from": int(ids[new.id]), "to": int(ids[old.id]), "type": "RELATES", "reason": "why"}
    linked = _link(_answer(item), CandidateBatch((NoteCandidates(new, (0,)),), (old,)))
    assert linked.notes == ((LinkDecision(new.id, old.id, LinkType.RELATES, "why"),),)


def test_only_earlier_notes_are_superseded() -> None:
    late = _note(21, days=-5)
    undated = _note(22)
    for note, other, older in ((late, OLD[0], False), (OLD[0], late, True), (undated, OLD[0], True)):
        choices = CandidateBatch((NoteCandidates(note, (0,)),), (other,))
        ids = _ids(choices)
        item = {"from": ids[note.id], "to": ids[other.id], "type": "SUPERSEDES", "reason": ""}
        assert bool(_link(_answer(item), choices).notes[0]) == older


def test_pairs_and_links_are_bounded() -> None:
    doubled = _link(_answer(_link_item(FIRST, OLD[0]), _link_item(FIRST, OLD[0], "CONTRADICTS")))
    assert doubled.notes[0] == (LinkDecision(FIRST.id, OLD[0].id, LinkType.RELATES, "why"),)
    many = _link(_answer(*(_link_item(FIRST, old) for old in OLD[:4])))
    assert many.notes[0] is not None
    assert len(many.notes[0]) == MAX_LINKS
    ((request, _),) = _sent_requests(CandidateBatch((NoteCandidates(FIRST, tuple(range(6))),), OLD))
    assert len(json.loads(request.user.splitlines()[1])["to"]) == MAX_OFFERED


def test_empty_and_unreadable_answers_are_distinguished() -> None:
    assert _link('{"links": []}').notes == ((), ())
    assert _link("I would rather not.").notes == (UNREADABLE, UNREADABLE)
    cut = _link(_answer(_link_item(FIRST, OLD[0]), _link_item(SECOND, OLD[4]))[:-40], cut=True).notes
    assert cut[0]
    assert cut[1] == CUT


def test_without_candidates_no_request_is_sent() -> None:
    lonely = CandidateBatch((NoteCandidates(FIRST, ()), NoteCandidates(SECOND, (0,))), (SECOND,))
    assert _sent_requests(lonely) == []
    assert _link("", lonely).notes == ((), ())
    with pytest.raises(InvalidInput):
        LiteLLMLinker(batch=0)


_names = st.sampled_from([*IDS.values(), *(note.id for note in OLD), "zz", ""]) | st.text(max_size=4)
_hostile = st.fixed_dictionaries(
    {},
    optional={
        "from": _names | st.integers() | st.none(),
        "to": _names | st.lists(_names),
        "type": st.sampled_from([*(type.value for type in LinkType), "x"]) | st.none(),
        "reason": st.text(max_size=300) | st.integers() | st.none(),
    },
)


@given(
    st.text(max_size=100) | st.lists(_hostile | st.none(), max_size=12).map(lambda x: _answer(*x)), st.booleans()
)
def test_any_answer_links_only_offered_pairs(text: str, cut: bool) -> None:
    linked = _link(text, cut=cut)
    offered = {choice.note.id: {CHOICES.others[place].id for place in choice.others} for choice in CHOICES.notes}
    for choice, outcome in zip(CHOICES.notes, linked.notes, strict=True):
        if outcome in (UNREADABLE, CUT):
            continue
        assert len(outcome) <= MAX_LINKS
        for decision in outcome:
            assert isinstance(decision, LinkDecision)
            assert decision.source == choice.note.id
            assert decision.target in offered[choice.note.id]
            assert decision.type in (LinkType.RELATES, LinkType.SUPERSEDES, LinkType.CONTRADICTS)
            assert len(decision.reason) <= MAX_REASON
