"""The model that replays recorded answers, and injected damage."""

from __future__ import annotations

import json
from typing import Any

import pytest

from zettel.annotate.by_model import SCHEMAS
from zettel.bench.replay import Damage, Replay, Spoken, damage
from zettel.ports.language_model import ModelAnnotation

TURNS = [Spoken("Ida", f"Crate {n} holds lamp {n}.") for n in range(40)]
WRITTEN = {turn: ModelAnnotation(f"Ida says of {turn.text}", ("crate",), ("harbour",)) for turn in TURNS}


def request_for(turns: list[Spoken], mode: str = "default") -> dict[str, Any]:
    lines = [json.dumps({"id": f"i{n}", "by": turn.speaker, "text": turn.text}) for n, turn in enumerate(turns)]
    shape = {"type": "json_schema", "json_schema": {"schema": SCHEMAS[mode]}}
    return {"messages": [{"role": "user", "content": "\n".join(["items:", *lines])}], "response_format": shape}


def test_a_turn_is_looked_up_by_text_and_gets_all_fields_of_the_schema() -> None:
    answer = json.loads(Replay(WRITTEN)(request_for([*TURNS[3:5], Spoken("Ida", "Not recorded.")])))
    assert [(note["id"], note["context"]) for note in answer["notes"]] == [
        (f"i{n}", WRITTEN[turn].context) for n, turn in enumerate(TURNS[3:5])
    ]
    assert set(answer["notes"][0]) == set(SCHEMAS["default"]["properties"]["notes"]["items"]["required"])
    assert answer["summary"]
    lean = json.loads(Replay(WRITTEN)(request_for(TURNS[3:5], "lean")))
    assert (set(lean), set(lean["notes"][0])) == ({"notes"}, {"id", "context", "keywords", "tags"})


def test_links_are_chosen_from_the_candidates() -> None:
    notes = [json.dumps({"id": f"n{n}", "note": f"Note {n}", "to": ["o1", "o2"] if n % 2 else []}) for n in range(40)]
    content = "\n".join(["notes:", *notes, "others:", json.dumps({"id": "o1", "note": "Old"})])
    links = json.loads(Replay({})({"messages": [{"content": content}]}))["links"]
    assert {link["to"] for link in links} == {"o1"}
    assert {int(link["from"][1:]) % 2 for link in links} == {1}
    assert 5 < len(links) < 20


def test_a_share_of_answers_is_damaged_and_a_retry_may_succeed() -> None:
    replay = Replay(WRITTEN, damaged=0.3, seed=1)
    first, second = (json.loads(replay(request_for(TURNS)))["notes"] for _ in range(2))
    contexts = {f"i{n}": WRITTEN[turn].context for n, turn in enumerate(TURNS)}
    good = [sum(contexts.get(str(note.get("id"))) == note["context"] for note in notes) for notes in (first, second)]
    assert all(20 <= count <= 36 for count in good)
    assert first != second
    assert first == json.loads(Replay(WRITTEN, damaged=0.3, seed=1)(request_for(TURNS)))["notes"]


@pytest.mark.parametrize("kind", Damage)
def test_damage_affects_single_items(kind: Damage) -> None:
    items: list[dict[str, Any]] = [{"id": f"i{n}", "context": f"Note {n}"} for n in range(3)]
    damage(items, 1, kind)
    assert (items[0], items[-1]) == ({"id": "i0", "context": "Note 0"}, {"id": "i2", "context": "Note 2"})
    assert {"id": "i1", "context": "Note 1"} not in items
