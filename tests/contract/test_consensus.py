"""Contradictions: the side with more independent sources has more confidence and ranks first; corrections win."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest

from tests.contract.support import noted, search_texts
from zettel import LinkType, Memory, Note

NAMES = ("Ann", "Bob", "Cy", "Di", "Eve", "Flo")
STATED = (
    "The vault code is 1234.", "The code for the vault is 1234.", "The code of the vault is 1234.",
    "I believe that the vault code is 1234.",
)  # fmt: skip
QUESTION = "What is the vault code?"


def four(memory: Memory) -> list[str]:
    """Four people state the same in other words."""
    return [
        memory.add(text, speaker=name, session=name, occurred_at=f"2024-05-0{day}")
        for day, (name, text) in enumerate(zip(NAMES, STATED, strict=False), 1)
    ]


def contradict(memory: Memory, id: str, others: list[str]) -> None:
    """Link a note to those that it contradicts, where the rules did not."""
    memory.flush()
    linked = {end for link in memory.links(id) if link.type in CHANGES for end in (link.source, link.target)}
    for other in others:
        if other not in linked:
            memory.link(id, other, "CONTRADICTS", reason="I compared them")


CHANGES = (LinkType.CONTRADICTS, LinkType.SUPERSEDES)


def by_note(memory: Memory) -> dict[str, float]:
    return {hit.note.content: hit.note.confidence for hit in memory.search(QUESTION)}


def test_four_people_outvote_a_page_and_a_later_person(memory: Memory) -> None:
    stated = four(memory)
    page = memory.add("The vault code is 9999.", speaker="browser", role="tool", occurred_at="2024-05-06")
    contradict(memory, page, stated)
    eve = memory.add("The vault code is 5678.", speaker="Eve", occurred_at="2024-05-08")
    contradict(memory, eve, [*stated, page])
    confidence = [noted(memory, id).confidence for id in (*stated, page, eve)]
    assert min(confidence[:4]) > 0.9 > 0.1 > max(confidence[4:])
    assert by_note(memory) == {noted(memory, id).content: noted(memory, id).confidence for id in (*stated, page, eve)}
    assert set(search_texts(memory, QUESTION, k=4)) == set(STATED)
    assert {pair.note.confidence for pair in memory.conflicts()} <= set(confidence)
    correction = memory.add("Correction: the vault code is 4321 now.", speaker="Ann", occurred_at="2024-05-10")
    memory.flush()
    assert memory.search(QUESTION, k=1)[0].note.id == correction


def test_deleting_or_reverting_support_changes_the_vote(memory: Memory) -> None:
    stated = four(memory)
    eve = memory.add("The vault code is 5678.", speaker="Eve", occurred_at="2024-05-08")
    contradict(memory, eve, stated)
    before = noted(memory, stated[3]).confidence
    memory.delete(stated[0])
    memory.archive(stated[1])
    memory.flush()
    after = noted(memory, stated[3]).confidence
    assert 0.5 < after < before
    memory.delete(stated[2])
    memory.flush()
    assert noted(memory, stated[3]).confidence < 0.55
    memory.delete(eve)
    assert noted(memory, stated[3]).confidence == 1.0


def test_a_contradiction_counts_from_when_it_was_recorded(memory: Memory) -> None:
    stated = four(memory)
    memory.flush()
    before = max(noted(memory, id).recorded_at for id in stated)
    contradict(memory, memory.add("The vault code is 5678.", speaker="Eve", occurred_at="2024-05-08"), stated)
    then = memory.search(QUESTION, known_at=before)
    assert {hit.note.confidence for hit in then} == {1.0}
    now = {hit.note.speaker: hit.note.confidence for hit in memory.search(QUESTION)}
    assert now["Eve"] < 0.1 < 0.9 < now["Ann"]


def test_a_person_may_set_less_confidence(memory: Memory) -> None:
    stated = four(memory)
    contradict(memory, memory.add("The vault code is 5678.", speaker="Eve", occurred_at="2024-05-08"), stated)
    memory.update(stated[0], confidence=0.3)
    assert noted(memory, stated[0]).confidence == 0.3


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_the_order_of_arrival_does_not_change_confidence(memory: Memory, order: tuple[int, ...]) -> None:
    texts = (("Ann", "The vault code is 1234."), ("Bob", "The code for the vault is 1234."),
             ("Eve", "The vault code is 5678."))  # fmt: skip
    ids = {}
    for place in order:
        name, text = texts[place]
        ids[place] = memory.add(text, speaker=name, session=name)
        memory.flush()
    contradict(memory, ids[2], [ids[0], ids[1]])
    assert [noted(memory, ids[place]).confidence for place in range(3)] == [0.8, 0.8, 0.2]


# ------------------------------------------------------------------------------------------------ a hundred disputes

_SUBJECTS = ("vault", "garage", "cellar", "archive", "boathouse", "studio", "kiosk", "library", "greenhouse", "chapel")
_TOPICS: tuple[tuple[str, tuple[str, ...], Callable[[int], str], str, str], ...] = (
    (
        "What is the code of the {s}?",
        ("The code of the {s} is {v}.", "The {s} code is {v}.", "The code for the {s} is {v}.",
         "The {s}'s code is {v}."),
        lambda n: str(1111 + 7 * n), "The {s} code is {v}.", "Correction: the {s} code is {v} now.",
    ),
    (
        "How much does the {s} ticket cost?",
        ("The {s} ticket costs {v} euros.", "A {s} ticket costs {v} euros.",
         "The price of the {s} ticket is {v} euros.", "The {s} ticket is {v} euros."),
        lambda n: str(10 + n), "The {s} ticket costs {v} euros.", "Correction: the {s} ticket costs {v} euros now.",
    ),
    (
        "On which day is the {s} meeting?",
        ("The {s} meeting is on {v}.", "The meeting of the {s} is on {v}.", "Our {s} meeting is on {v}.",
         "The {s} meeting takes place on {v}."),
        lambda n: ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")[n % 5],
        "The {s} meeting is on {v}.", "Correction: the {s} meeting is on {v} now.",
    ),
    (
        "Where does the {s} keeper live?",
        ("The {s} keeper lives in {v}.", "The keeper of the {s} lives in {v}.", "Our {s} keeper lives in {v}.",
         "The {s} keeper's home is in {v}."),
        lambda n: ("Bergen", "Turku", "Porto", "Ghent", "Graz")[n % 5],
        "The {s} keeper lives in {v}.", "Correction: the {s} keeper lives in {v} now.",
    ),
    (
        "Who is in charge of the {s}?",
        ("{v} is in charge of the {s}.", "{v} looks after the {s}.", "{v} is responsible for the {s}.",
         "The {s} is in {v}'s hands."),
        lambda n: ("Ingrid", "Tove", "Oskar", "Marius", "Solveig")[n % 5],
        "{v} is in charge of the {s}.", "Correction: {v} is in charge of the {s} now.",
    ),
)  # fmt: skip


@pytest.mark.slow
def test_four_witnesses_against_one_in_a_hundred_disputes(tmp_path: Path) -> None:
    first = corrected = cases = 0
    for topic, (question, stated, value, other, correction) in enumerate(_TOPICS):
        for number in range(20):
            subject, cases = f"{('east', 'west')[number // 10]} {_SUBJECTS[number % 10]}", cases + 1
            right, wrong, new = (value(number + shift) for shift in (0, 1, 3))
            liar = number % 5  # who arrives when: before, among or after the witnesses
            texts = [text.format(s=subject, v=right) for text in stated]
            texts_in_order = [*texts[:liar], other.format(s=subject, v=wrong), *texts[liar:]]
            with Memory(tmp_path / f"{topic}-{number}.db") as memory:
                ids = [
                    memory.add(text, speaker=NAMES[place], session=NAMES[place], occurred_at=f"2024-05-0{place + 1}")
                    for place, text in enumerate(texts_in_order)
                ]
                memory.add("The weather was fine and we had lunch outside.", speaker="Flo", occurred_at="2024-05-07")
                contradict(memory, ids[liar], ids[:liar] + ids[liar + 1 :])
                asked = question.format(s=subject)
                first += memory.search(asked, k=1)[0].note.content in texts
                fixed = memory.add(correction.format(s=subject, v=new), speaker="Ann", occurred_at="2024-06-01")
                memory.flush()
                corrected += memory.search(asked, k=1)[0].note.id == fixed
                assert isinstance(memory.get(fixed), Note)
    assert cases == 100
    assert first >= 98
    assert corrected >= 95
