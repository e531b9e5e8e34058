"""Hits contain the passage that answers, and the turns beside them."""

from __future__ import annotations

import pytest

from zettel import Event, Hit, Memory

pytestmark = pytest.mark.over_http

FILLER = "The weather was mild that day, and nothing else of note took place. "
ANSWER = "".join(
    f"## Step {n}\n\n{FILLER * 12}\n\n- Take part {n} of the {name}.\n- Put it on the bench.\n\n"
    for n, name in enumerate(["anchor", "keel", "rudder", "winch", "tiller", "mast", "boom"])
)
CHAT = [
    Event(content="How do I overhaul a sloop?", speaker="user", session="s", id="q"),
    Event(content=ANSWER, speaker="assistant", session="s", id="a"),
    Event(content="Thanks! Which varnish suits a tiller?", speaker="user", session="s", id="q2"),
    Event(content="Spar varnish suits it best.", speaker="assistant", session="s", id="a2"),
    Event(content="It also protects from the sun.", speaker="assistant", session="s", id="a3"),
    Event(content="Good night, sleep well and dream of spinnakers.", speaker="user", session="s", id="end"),
]


def hit_of(memory: Memory, question: str, external_id: str, **search: object) -> Hit:
    return next(hit for hit in memory.search(question, **search) if hit.note.external_id == external_id)  # type: ignore[arg-type]


def test_a_passage_answers_the_question(memory: Memory) -> None:
    memory.add_many(CHAT)
    for name in ("keel", "rudder", "winch", "mast"):
        hit = hit_of(memory, f"What do I do with the {name}?", "a")
        assert f"of the {name}." in hit.passage
        assert len(hit.passage) <= 300 < len(hit.note.content)
        assert hit.passage in hit.note.content
    short = hit_of(memory, "Which varnish suits a tiller?", "a2")
    assert short.passage == short.note.content == "Spar varnish suits it best."


def test_parts_of_an_event_take_one_place(memory: Memory) -> None:
    memory.add_many(CHAT)
    hits = memory.search("What do I do with the keel, the rudder and the mast on the bench?", k=10)
    ids = [hit.note.external_id for hit in hits]
    assert len(ids) == len(set(ids))


def test_hits_name_the_question_and_the_answer(memory: Memory) -> None:
    memory.add_many(CHAT)
    ids = {id: memory.get(id).id for id in ("q", "a", "q2", "a2", "a3", "end")}
    for name in ("anchor", "keel", "rudder", "winch", "tiller", "mast", "boom"):
        hit = hit_of(memory, f"Take which part of the {name} to the bench?", "a")
        assert f"of the {name}." in hit.note.content
        assert (hit.answers, hit.answered_by) == (ids["q"], None), hit.note.part
    turns = {
        hit.note.external_id: (hit.answers, hit.answered_by)
        for hit in memory.search("How do I overhaul a sloop, which varnish suits, sun, sleep well?", k=20)
    }
    assert turns["q"] == (None, ids["a"])
    assert turns["q2"] == (None, ids["a2"])
    assert turns["a2"] == (ids["q2"], None)
    assert turns["a3"] == (None, None)  # follows another answer
    assert turns["end"] == (None, None)


def test_people_who_talk_to_each_other_have_no_answers(memory: Memory) -> None:
    memory.add_many(
        [
            Event(content="Where is the winch?", speaker="Ann", session="p"),
            Event(content="On the bench.", speaker="Bo", session="p"),
        ]
    )
    assert {(hit.answers, hit.answered_by) for hit in memory.search("Where is the winch?")} == {(None, None)}


def test_a_context_contains_the_question_of_an_answer(memory: Memory) -> None:
    memory.add_many(CHAT)
    search = {"k": 1, "role": "assistant"}
    text = memory.context("What protects best as spar varnish?", **search)
    assert (
        text
        == "## session s\n> user asked: Thanks! Which varnish suits a tiller?\n- assistant: Spar varnish suits it best."
    )
    packed = memory.context("Which varnish suits a tiller?")
    assert packed.count("Which varnish suits a tiller?") == 1
    memory.archive("q2")
    assert "asked:" not in memory.context("What protects best as spar varnish?", **search)


def test_a_long_answer_is_packed_as_its_passage(memory: Memory) -> None:
    memory.add_many(CHAT)
    text = memory.context("What do I do with the rudder?", max_tokens=120)
    assert "of the rudder." in text
    assert "…" in text
