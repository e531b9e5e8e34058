"""Preferences of a scope that a job learns from the use of its notes."""

from __future__ import annotations

import numpy as np
import pytest

from zettel import Hit, Memory, acting_as
from zettel.core.feedback import PREFERENCES
from zettel.jobs import tune_job

THINGS = (
    "ladder kettle drill lantern trowel anchor bucket violin compass blanket hammer teapot mirror barrel saddle"
    " whistle umbrella basket candle scarf shovel magnet pillow ribbon helmet wrench carpet funnel locket thimble"
    " rucksack toboggan accordion telescope typewriter wheelbarrow"
).split()
PLACES = "cellar attic shed kitchen garage boathouse pantry hall".split()
REPORTED, LATER = THINGS[:32], THINGS[32:]


def add_things(memory: Memory, speakers: tuple[str, ...] = ("Ann", "Bob", "Cleo")) -> None:
    """Store a statement of each person about the place of every thing."""
    memory.add_many(
        {"content": f"The {thing} is in the {PLACES[(number + turn) % 8]}.", "speaker": speaker, "session": "s"}
        for number, thing in enumerate(THINGS)
        for turn, speaker in enumerate(speakers)
    )
    memory.flush()


def ask(memory: Memory, things: list[str], scorer: str | None = None, log: bool = False) -> list[list[Hit]]:
    return memory.search_many([f"Where is the {thing}?" for thing in things], k=6, scorer=scorer, log=log)


def answers(results: list[list[Hit]]) -> list[list[str]]:
    """Return the ids of the three statements about each thing; the order of others may change by ``evolve``."""
    return [[hit.note.id for hit in hits[:3]] for hits in results]


def by_speaker(results: list[list[Hit]], speaker: str) -> float:
    return float(np.mean([hits[0].note.speaker == speaker for hits in results]))


def answer_as(memory: Memory, speaker: str) -> None:
    """Report answers that use only the statements of one person."""
    for number, (thing, hits) in enumerate(zip(REPORTED, ask(memory, REPORTED, log=True), strict=True)):
        stated = [hit.note for hit in hits if hit.note.speaker == speaker and thing in hit.note.content]
        place = PLACES[(number + ("Ann", "Bob", "Cleo").index(speaker)) % 8]
        assert stated
        memory.feedback(str(hits[0].search_id), answer=f"In the {place}, see {stated[0].id}.")


def learned(memory: Memory) -> str | None:
    store = memory._bridge.inner._backend.memory.engine.store
    answer: str | None = memory._bridge.call(lambda: store.answer(memory.scope, PREFERENCES))
    return answer


@pytest.mark.parametrize("speaker", ["Bob"])
def test_a_scope_learns_from_answers(memory: Memory, speaker: str) -> None:
    add_things(memory)
    before = ask(memory, LATER)
    answer_as(memory, speaker)
    assert learned(memory) is None
    assert answers(ask(memory, LATER)) == answers(before)
    memory.evolve()
    assert learned(memory)
    after = ask(memory, LATER)
    assert by_speaker(after, speaker) == 1.0 > by_speaker(before, speaker)
    assert {hit.why.scorer for hits in after for hit in hits} == {"fusion+tuned"}
    plain = ask(memory, LATER, scorer="fusion")
    assert answers(plain) == answers(before)
    for thing, hits in zip(LATER, after, strict=True):
        assert thing in hits[0].note.content, "the notes about another thing do not rise"
    first = learned(memory)
    memory.evolve()
    assert learned(memory) == first


def test_a_deleted_note_takes_what_was_learned_from_it_along(memory: Memory) -> None:
    add_things(memory)
    answer_as(memory, "Bob")
    memory.evolve()
    assert learned(memory)
    memory.delete(ask(memory, REPORTED[:1])[0][0].note.id)
    assert learned(memory) is None
    assert {hit.why.scorer for hits in ask(memory, LATER) for hit in hits} == {"fusion"}
    memory.evolve()  # 31 searches are left
    assert learned(memory)


def test_a_quarantine_reverts_what_was_learned(memory: Memory) -> None:
    add_things(memory)
    answer_as(memory, "Bob")
    memory.evolve()
    memory.quarantine(ask(memory, REPORTED[:1])[0][0].note.id, "an injection")
    assert not learned(memory)
    assert {hit.why.scorer for hits in ask(memory, LATER) for hit in hits} == {"fusion"}


def test_notes_on_probation_teach_nothing(memory: Memory) -> None:
    with acting_as("mail:eve", trust=0.5):
        add_things(memory)
    answer_as(memory, "Bob")
    memory.evolve()
    assert not learned(memory)


def test_chance_teaches_nothing(memory: Memory) -> None:
    add_things(memory)
    chance = np.random.default_rng(1)
    for hits in ask(memory, REPORTED, log=True):
        memory.feedback(str(hits[0].search_id), [hits[chance.integers(len(hits))].note.id])
    memory.evolve()
    assert not learned(memory)


def test_reports_queue_the_job(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zettel.core.feedback.REPORTS", 32)
    monkeypatch.setattr(tune_job, "SEARCHES", 40)
    add_things(memory)
    answer_as(memory, "Bob")
    memory.flush()
    assert learned(memory)
