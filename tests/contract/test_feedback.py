"""Feedback: useful notes are counted once per search id, and decay later than others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest

from tests.contract.support import LIFE, decide, write
from tests.contract.test_erasable import SECRETS, add_secrets, traces
from zettel import Hit, LinkType, Memory, Note, Scope, acting_as
from zettel.errors import InvalidInput, NotFound, PermissionDenied
from zettel.graph.embedded import feedback as embedded_feedback
from zettel.graph.neo4j import feedback as neo4j_feedback
from zettel.model import LoggedSearch, NoteUse, Proved
from zettel.ports import GraphStore
from zettel.ports.operations import PutFeedback
from zettel.scoring.features import NOTE_NAMES
from zettel.testing import reference_records

__all__ = ["traces"]  # a fixture

BOB = Scope(tenant="acme", user="bob")
QUESTION = "Which ship lies in the harbour?"


def store_of(memory: Memory) -> GraphStore:
    store: GraphStore = memory._bridge.inner._backend.memory.engine.store
    return store


def uses(memory: Memory, *ids: str) -> list[tuple[int, int, int]]:
    """Return times, successes and failures of each note."""
    note_uses = memory._bridge.call(partial(store_of(memory).note_uses, memory.scope, ids))
    return [note_uses[id][1:] for id in ids if id in note_uses]


def log(memory: Memory, scope: Scope | None = None) -> list[LoggedSearch]:
    """Return the stored search log."""

    async def read() -> list[LoggedSearch]:
        return [search async for search in store_of(memory).searches(scope or memory.scope)]

    memory.flush()
    return memory._bridge.call(read)


def twins(memory: Memory) -> list[str]:
    """Add two equal notes."""
    ids = [memory.add("A ship lies in the harbour.", id=name) for name in ("old", "new")]
    memory.flush()
    return ids


def ships(memory: Memory) -> list[str]:
    """Three notes that answer one question."""
    ids = [memory.add(f"Ship {name} lies in the harbour.") for name in ("Aurora", "Borealis", "Corona")]
    memory.flush()
    return ids


def searched(memory: Memory, question: str = QUESTION, **options: Any) -> tuple[str, list[Hit]]:
    hits = memory.search(question, **options)
    (search,) = {hit.search_id for hit in hits}
    assert search is not None
    return search, hits


def ranked(hits: list[Hit]) -> list[tuple[str, float, float | None]]:
    return [(hit.note.id, hit.score, hit.why.strength) for hit in hits]


def in_days(days: float) -> datetime:
    return datetime.now(timezone.utc) + timedelta(days=days)


def test_a_search_is_logged_with_hits_and_features(memory: Memory) -> None:
    ships(memory)
    search, hits = searched(memory, k=2)
    assert search.startswith("s_")
    (row,) = log(memory)
    assert (row.id, row.question, row.scorer, row.used, row.outcome) == (search, QUESTION, "fusion", None, None)
    assert [(hit.note, hit.version, hit.score) for hit in row.hits] == [
        (hit.note.id, hit.note.version, hit.score) for hit in hits
    ]
    for hit in row.hits:  # the values of the features, which do not depend on the weights
        assert {"vector", "text"} <= set(hit.features) <= set(NOTE_NAMES)
    assert memory._bridge.call(partial(store_of(memory).search_logged, memory.scope, search)) == row
    assert memory._bridge.call(partial(store_of(memory).search_logged, BOB, search)) is None


def test_unlogged_searches_leave_nothing(memory: Memory) -> None:
    ships(memory)
    assert {hit.search_id for hit in memory.search(QUESTION, log=False)} == {None}
    assert memory.context(QUESTION, log=False)
    assert memory.search(QUESTION, scope=BOB) == []
    assert memory.search(QUESTION, session="no such session") == []
    assert log(memory) == log(memory, BOB) == []
    assert memory.scopes() == [memory.scope]


def test_each_question_of_search_many_is_logged(memory: Memory) -> None:
    ships(memory)
    many = memory.search_many([QUESTION, "Aurora?"])
    search_ids = [{hit.search_id for hit in hits} for hits in many]
    assert [len(ids) for ids in search_ids] == [1, 1]
    assert {search.id for search in log(memory)} == search_ids[0] | search_ids[1]


def test_feedback_is_counted_once_and_the_latest_wins(memory: Memory) -> None:
    a, b, c = ships(memory)
    search, _ = searched(memory)
    for _ in range(2):
        memory.feedback(search, used=[a, b, a])
    assert uses(memory, a, b, c) == [(1, 0, 0), (1, 0, 0), (0, 0, 0)]
    memory.feedback(search, used=[a, b], outcome="success")
    assert uses(memory, a, b, c) == [(1, 1, 0), (1, 1, 0), (0, 0, 0)]
    memory.feedback(search, [b, c], "failure")
    assert uses(memory, a, b, c) == [(0, 0, 0), (1, 0, 1), (1, 0, 1)]
    (entry,) = log(memory)
    assert (entry.used, entry.outcome) == ((b, c), "failure")
    second_search, _ = searched(memory)
    memory.feedback(second_search, [b], "success")
    assert uses(memory, a, b, c) == [(0, 0, 0), (2, 1, 1), (1, 0, 1)]
    memory.feedback(search, [])
    assert uses(memory, a, b, c) == [(0, 0, 0), (1, 1, 0), (0, 0, 0)]
    assert memory.check() == []


def test_the_time_of_use_is_stored(memory: Memory) -> None:
    a, b, _ = ships(memory)
    before = datetime.now(timezone.utc)
    search, _ = searched(memory)
    memory.feedback(search, [a])
    note_uses = memory._bridge.call(partial(store_of(memory).note_uses, memory.scope, [a, b, "n_nothing"]))
    assert note_uses.keys() == {a, b}
    assert before <= note_uses[a].since <= datetime.now(timezone.utc)
    note = memory.get(b)
    assert isinstance(note, Note)
    assert note_uses[b] == NoteUse(note.recorded_at)


def usefulness(memory: Memory, *ids: str) -> dict[str, Proved]:
    return memory._bridge.call(partial(store_of(memory).proved, memory.scope, ids))


def test_usefulness_is_computed_from_the_log(memory: Memory) -> None:
    a, b, c = ships(memory)
    assert usefulness(memory, a, b) == {}
    tricky, _ = searched(memory, 'Which ship has "used":["' + a + '"] in its harbour log?')
    memory.flush()
    assert usefulness(memory, a) == {a: Proved(0, 0, 1)}, "without feedback"
    memory.feedback(tricky, [])
    search, _ = searched(memory)
    memory.feedback(search, [a, b])
    second_search, _ = searched(memory)
    memory.feedback(second_search, [a, c], "failure")
    assert usefulness(memory, a, b, c, "n_nothing") == {a: Proved(3, 1, 3), b: Proved(3, 1, 3), c: Proved(3, 0, 3)}
    memory.feedback(second_search, [a, c], "success")
    assert usefulness(memory, a, c) == {a: Proved(3, 2, 3), c: Proved(3, 1, 3)}
    memory.delete(b)
    assert usefulness(memory, a, b, c) == {}, "all searches found it"


def test_invalid_feedback_raises(memory: Memory) -> None:
    a, *_ = ships(memory)
    other_note = memory.add("Bob keeps bees.", scope=BOB)
    search, _ = searched(memory)
    with pytest.raises(NotFound, match="'s_nothing' is not in the log of searches of the default scope"):
        memory.feedback("s_nothing", [a])
    with pytest.raises(NotFound):
        memory.feedback(search, [a], scope=BOB)
    with pytest.raises(InvalidInput, match=f"{other_note} is not a hit of search {search}"):
        memory.feedback(search, [a, other_note])
    with pytest.raises(InvalidInput, match="outcome='fine'"):
        memory.feedback(search, [a], "fine")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="list of note ids"):
        memory.feedback(search, a)
    assert uses(memory, a) == [(0, 0, 0)]
    assert [entry.used for entry in log(memory)] == [None]


def test_the_log_is_bounded(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for store in (embedded_feedback, neo4j_feedback, reference_records):
        monkeypatch.setattr(store, "LOGGED", 3)
    a, *_ = ships(memory)
    memory.add("Bob keeps bees.", scope=BOB)
    rated, _ = searched(memory)
    memory.feedback(rated, [a])
    (bobs,) = {hit.search_id for hit in memory.search("bees", scope=BOB)}
    memory.flush()
    later = [searched(memory)[0] for _ in range(4)]
    assert [search.id for search in log(memory)] == later[1:]
    assert [search.id for search in log(memory, BOB)] == [bobs]
    assert uses(memory, a) == [(1, 0, 0)]
    assert memory.check() == []


def test_other_processes_see_searches_and_feedback(url: Any) -> None:
    with Memory(url) as memory:
        a, b, _ = ships(memory)
        search, _ = searched(memory)
        memory.flush()
        with Memory(url) as other:
            other.feedback(search, [a], "success")
        assert uses(memory, a) == [(1, 1, 0)]
        unwritten, _ = searched(memory)
    with Memory(url) as memory:  # closing writes the buffer
        memory.feedback(unwritten, [b])
        assert uses(memory, a, b) == [(1, 1, 0), (1, 0, 0)]


def test_pending_log_entries_of_a_deleted_note_are_dropped(memory: Memory) -> None:
    a, b, c = ships(memory)
    search, _ = searched(memory)
    (entry,) = log(memory)
    memory.delete(a)
    assert log(memory) == []
    memory._bridge.call(partial(store_of(memory).log_searches, {memory.scope: [entry]}))
    write(memory, PutFeedback(entry))
    assert log(memory) == []
    with pytest.raises(NotFound):
        memory.feedback(search, [b])
    assert uses(memory, b, c) == [(0, 0, 0)] * 2


def test_log_entries_are_deleted_with_derived_notes(memory: Memory) -> None:
    source, derived, _ = ships(memory)
    decide(memory, derived, source, LinkType.DERIVED_FROM)
    search, hits = searched(memory, "Borealis", k=1)
    assert [hit.note.id for hit in hits] == [derived]
    memory.feedback(search, [derived])
    memory.delete(source)
    assert log(memory) == []
    assert uses(memory, derived) == []
    assert memory.check() == []


@pytest.fixture
def planted(url: Any) -> Iterator[tuple[Memory, list[str]]]:
    """Return a memory with secret words and logged searches for them, with and without hits."""
    with Memory(url) as memory:
        ids = add_secrets(memory)
        memory.add_many(LIFE)
        for word, id in zip(SECRETS, ids, strict=True):
            search, hits = searched(memory, f"Tell me of {word}.")
            memory.feedback(search, [hits[0].note.id], "success")
            assert hits[0].note.id == id
            _, hits = searched(memory, f"Did Ann speak of {word}?", speaker="Ann")
            assert id not in {hit.note.id for hit in hits}
        searched(memory, "Where does Ann live?", speaker="Ann")
        memory.flush()
        yield memory, ids


def test_deleting_notes_erases_questions_about_them(
    planted: tuple[Memory, list[str]], traces: Callable[..., list[str]]
) -> None:
    memory, ids = planted
    assert all(traces(word) for word in SECRETS)
    assert len(log(memory)) == 7
    searched(memory, f"And {SECRETS[0]}?", speaker="Ann")  # still in the buffer
    for id in ids:
        memory.delete(id)
    memory.flush(timeout=60)
    assert traces(*SECRETS) == []
    assert [search.question for search in log(memory)] == ["Where does Ann live?"]
    assert uses(memory, *ids) == []
    assert memory.check() == []


def test_deleting_a_scope_deletes_its_log(planted: tuple[Memory, list[str]], traces: Callable[..., list[str]]) -> None:
    memory, ids = planted
    searched(memory, "Where does Ann live?")
    memory.delete_scope()
    memory.flush(timeout=60)
    assert traces(*SECRETS) == []
    assert log(memory) == []
    ships(memory)
    assert log(memory) == []
    assert uses(memory, *ids) == []
    assert memory.check() == []


def test_questions_with_words_of_other_notes_stay_logged(memory: Memory) -> None:
    memory.add_many(LIFE)
    deleted = memory.add("Kestrel is a falcon, too.")
    memory.flush()
    logged, _ = searched(memory, "Kestrel the dog", session="a")
    memory.delete(deleted)
    assert [search.id for search in log(memory)] == [logged]


def test_of_equal_notes_the_newer_comes_first(memory: Memory) -> None:
    old, new = twins(memory)
    assert [hit.note.id for hit in memory.search("Which ship lies in the harbour?")] == [new, old]
    dated = [memory.add("The cat sleeps.", occurred_at=f"2024-05-0{day}") for day in (2, 1)]
    memory.flush()
    assert [hit.note.id for hit in memory.search("The cat?", k=2)] == dated


def test_importance_and_use_decide_near_ties(memory: Memory) -> None:
    old, new = twins(memory)
    before = memory.search(QUESTION, log=False)
    memory.update(old, importance=1.0)
    assert [hit.note.id for hit in memory.search(QUESTION, log=False)] == [old, new]
    for _ in range(4):
        search, _hits = searched(memory)
        memory.feedback(search, [new], "success")
    after = memory.search(QUESTION, log=False)
    assert [hit.note.id for hit in after] == [new, old]
    assert [hit.score for hit in after] == [hit.score for hit in before]
    assert [hit.note.id for hit in memory.search(QUESTION, k=1, log=False)] == [new]


def test_use_never_hides_the_note_that_answers(memory: Memory) -> None:
    right = memory.add("The ferry to Moss leaves at seven.")
    other = memory.add("The ferry is blue.")
    memory.flush()
    for _ in range(20):
        search, _hits = searched(memory, "Tell me about the ferry")
        memory.feedback(search, [other], "success")
    question = "When does the ferry to Moss leave?"
    for now in (None, in_days(3650)):
        assert [hit.note.id for hit in memory.search(question, now=now)] == [right, other]


def test_a_note_on_probation_gains_nothing_by_use(memory: Memory) -> None:
    with acting_as("mail:eve", trust=0.5):
        claims = twins(memory)
    for _ in range(20):
        memory.feedback(searched(memory)[0], [claims[0]], "success")
    assert [hit.note.id for hit in memory.search(QUESTION)] == [claims[1], claims[0]]


def test_age_does_not_change_scores(memory: Memory) -> None:
    ships(memory)
    now, later = memory.search(QUESTION), memory.search(QUESTION, now=in_days(3650))
    assert [(hit.note.id, hit.score) for hit in later] == [(hit.note.id, hit.score) for hit in now]


def test_a_failure_does_not_strengthen(memory: Memory) -> None:
    old, new = twins(memory)
    for used, outcome in ((old, "success"), (new, "failure")):
        search, _ = searched(memory)
        memory.feedback(search, [used], outcome)
    first, second = memory.search(QUESTION, now=in_days(150))
    assert (first.note.id, second.note.id) == (old, new)
    assert (first.why.strength or 0.0) > (second.why.strength or 0.0) + 0.1


def test_past_states_do_not_decay(memory: Memory) -> None:
    ships(memory)
    search, hits = searched(memory)
    memory.feedback(search, [hits[-1].note.id])
    recorded = datetime.now(timezone.utc)
    clocks: list[dict[str, Any]] = [{"as_of": in_days(400)}, {"known_at": recorded, "now": in_days(400)}]
    for clock in clocks:
        assert {hit.why.strength for hit in memory.search(QUESTION, **clock)} == {None}


def test_uses_survive_edits_and_reverts(memory: Memory) -> None:
    a, *_ = ships(memory)
    search, _ = searched(memory)
    memory.feedback(search, [a], "success")
    memory.update(a, context="It came from Bergen.")
    memory.revert(a, 1)
    memory.flush()
    assert uses(memory, a) == [(1, 1, 0)]
    assert "Bergen" not in str(memory.get(a))
    memory.feedback(search, [a])
    assert uses(memory, a) == [(1, 0, 0)]


# ------------------------------------------------------------------------------------------------------------ answers


def test_an_answer_reports_the_notes_that_it_used(memory: Memory) -> None:
    ids = ships(memory)
    search, _ = searched(memory)
    memory.feedback(search, answer="That must be the Borealis.")
    (logged,) = log(memory)
    assert (logged.used, logged.inferred) == ((ids[1],), True)
    assert uses(memory, *ids) == [(0, 0, 0), (1, 0, 0), (0, 0, 0)]
    memory.feedback(search, answer="I have no idea.")  # uses nothing
    memory.feedback(search, answer="The Corona, to be exact.", outcome="success")
    assert uses(memory, *ids) == [(0, 0, 0), (0, 0, 0), (1, 1, 0)]
    memory.feedback(search, used=[ids[0]])
    memory.feedback(search, answer="That must be the Borealis.")  # never replaces named ids
    (logged,) = log(memory)
    assert (logged.used, logged.inferred) == ((ids[0],), False)
    assert uses(memory, *ids) == [(1, 0, 0), (0, 0, 0), (0, 0, 0)]
    for wrong in ({}, {"used": [], "answer": "Borealis"}, {"answer": 3}):
        with pytest.raises(InvalidInput):
            memory.feedback(search, **wrong)  # type: ignore[arg-type]


def test_no_writer_below_full_trust_raises_its_notes(memory: Memory) -> None:
    with acting_as("mail:eve", trust=0.5):
        claimed = memory.add("Ship Dorado lies in the harbour.")
    stated = memory.add("Ship Aurora lies in the harbour.")
    memory.flush()
    search, _ = searched(memory)
    with acting_as("mail:eve", trust=0.5), pytest.raises(PermissionDenied):
        memory.feedback(search, used=[claimed])
    memory.feedback(search, used=[claimed, stated])
    assert uses(memory, claimed, stated) == [(0, 0, 0), (1, 0, 0)]
