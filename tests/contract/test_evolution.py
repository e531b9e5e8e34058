"""Evolution: new notes add keywords and tags to older ones. Content and edits of people stay."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.contract.support import decide, noted
from tests.contract.test_erasable import SECRETS
from tests.contract.test_erasable import traces as traces  # a fixture
from zettel import LinkType, Memory
from zettel.jobs import evolve_job

TEXTS = (
    "The kiln in the yard reached its heat after nine hours.",
    "Ida mended the door of the kiln with wire.",
    "All of the pots came out without a crack.",
)


def neighbourhood(memory: Memory, *texts: str) -> list[str]:
    """Add notes of which the last is linked to all others."""
    ids = memory.add_many([{"content": text, "session": str(place)} for place, text in enumerate(texts)])
    memory.flush()
    for id in ids[:-1]:
        decide(memory, ids[-1], id, LinkType.RELATES)
    return ids


def by_evolving(memory: Memory, id: str) -> list[Any]:
    return [revision for revision in memory.history(id) if revision.cause.by == "evolve"]


def test_shared_keywords_of_neighbours_spread_to_a_note(memory: Memory) -> None:
    ids = neighbourhood(memory, *TEXTS)
    before = noted(memory, ids[2])
    hits = [(hit.note.id, hit.score) for hit in memory.search("the pots and the kiln")]
    assert memory.evolve().revised > 0
    after = noted(memory, ids[2])
    assert after.keywords == (*before.keywords, "kiln")
    assert after.importance == 0.6
    unchanged = {"content", "context", "caption", "tags", "authored", "event_ids", "title"}
    assert after.model_dump(include=unchanged) == before.model_dump(include=unchanged)
    assert [(hit.note.id, hit.score) for hit in memory.search("the pots and the kiln")] == hits
    (revision,) = by_evolving(memory, ids[2])
    assert {read.note for read in revision.inputs} == set(ids)
    assert revision.cause.note == ids[1]  # the newest contributor
    assert memory.check() == []


def test_a_second_round_changes_nothing_until_a_note_arrives(memory: Memory) -> None:
    ids = neighbourhood(memory, *TEXTS)
    memory.evolve()
    versions = [noted(memory, id).version for id in ids]
    assert not any(memory.evolve())
    assert [noted(memory, id).version for id in ids] == versions
    new_ids = memory.add_many([{"content": f"The roof of the barn has {n} holes."} for n in (3, 4)])
    for id in new_ids:
        decide(memory, ids[2], id, LinkType.RELATES)
    memory.evolve()
    assert {"kiln"} < set(noted(memory, ids[2]).keywords)
    assert noted(memory, ids[2]).importance == 0.7
    assert [r.live for r in by_evolving(memory, ids[2])] == [False, True]  # one live decision


def test_edits_and_reverts_of_a_person_stay(memory: Memory) -> None:
    ids = neighbourhood(memory, *TEXTS)
    memory.update(ids[2], keywords=["ceramics"])
    memory.evolve()
    assert (noted(memory, ids[2]).keywords, noted(memory, ids[2]).importance) == (("ceramics",), 0.6)
    memory.revert(ids[2], 1)
    memory.flush()
    raw = noted(memory, ids[2])
    decide(memory, ids[2], ids[0], LinkType.RELATES)
    decide(memory, ids[2], ids[1], LinkType.RELATES)
    memory.evolve()
    assert (noted(memory, ids[2]).keywords, noted(memory, ids[2]).importance) == (raw.keywords, 0.5)


def test_a_busy_note_changes_a_few_times_a_day(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evolve_job, "TIMES_A_DAY", 1)
    ids = neighbourhood(memory, *TEXTS)
    memory.evolve()
    for number in (3, 4):
        decide(memory, ids[2], memory.add(f"The roof of the barn has {number} holes."), LinkType.RELATES)
    memory.evolve()
    assert noted(memory, ids[2]).importance == 0.6
    monkeypatch.setattr(evolve_job, "TIMES_A_DAY", 2)
    memory.evolve()
    assert noted(memory, ids[2]).importance == 0.7


def test_spread_words_disappear_with_their_sources(url: Any, traces: Callable[..., list[str]]) -> None:
    secret = SECRETS[0]
    with Memory(url) as memory:
        ids = neighbourhood(
            memory, f"The road to {secret} is closed.", f"Ida took a bus from {secret} at noon.", TEXTS[2]
        )
        raw = noted(memory, ids[2]).keywords
        memory.evolve()
        assert secret in noted(memory, ids[2]).keywords
        memory.delete(ids[0])
        memory.delete(ids[1])
        memory.flush(timeout=60)
        assert noted(memory, ids[2]).keywords == raw
        assert traces(secret) == []
        assert memory.check() == []
        memory.evolve()
        assert noted(memory, ids[2]).keywords == raw


def test_a_delete_reverts_only_decisions_based_on_the_note(memory: Memory) -> None:
    """Words spread from note contents, so decisions do not depend on each other."""
    ids = neighbourhood(memory, *TEXTS, *(f"Stone number {n} of the wall is loose." for n in range(6)))
    for first, second in pairwise(ids[3:]):
        decide(memory, first, second, LinkType.RELATES)
    memory.evolve()
    counts = [len(by_evolving(memory, id)) for id in ids[4:-1]]
    memory.delete(ids[0])  # a neighbour of the last note alone
    assert [len(by_evolving(memory, id)) for id in ids[4:-1]] == counts


def test_an_empty_memory_stays_empty(memory: Memory) -> None:
    assert not any(memory.evolve())
    assert memory.scopes() == []
