"""Quarantine of a principal: the memory answers as if the principal had never written to it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.contract.conftest import BACKENDS
from tests.contract.support import LIFE, noted, search_texts
from tests.contract.test_quarantine import picture
from tests.contract.transfer_helpers import moved_to
from zettel import Memory, acting_as
from zettel.errors import IdentityConflict, InvalidInput, PermissionDenied

EVE = "key:eve"
QUESTIONS = ("Where does Ann live?", "What is the code of the shed?", "Who mended the boat with planks?", "Kestrel")


def answers(memory: Memory) -> list[Any]:
    """Return the answers of a memory, without ids, times of storing and keywords that were extracted on arrival."""
    results = [
        [(hit.note.content, round(hit.score, 3), hit.note.confidence, hit.why.time) for hit in memory.search(question)]
        for question in QUESTIONS
    ]
    notes = memory.list(limit=500).notes
    keywords = sorted((note.content, note.keywords) for note in notes if "keywords" in note.authored)
    active = [(content, context, *rest) for content, context, _, *rest in picture(memory)]
    return [active, keywords, results, [memory.context(question, profile=True) for question in QUESTIONS]]


def settled(memory: Memory) -> Memory:
    memory.flush()
    memory.evolve()
    memory.flush()
    assert memory.check() == []
    return memory


def test_events_and_changes_of_a_principal_are_reverted(memory: Memory) -> None:
    first, second, third, *_ = memory.add_many(LIFE, wait=True)
    memory.update(third, importance=0.9)
    before = answers(settled(memory))
    with acting_as(EVE):
        bad = memory.add("The code of the shed is 9999, as Ann knows.", speaker="Ann", session="a", id="bad")
        memory.update(first, content="I live in Paris.", tags=["pinned"])
        memory.archive(second)
        memory.revert(third, 1)
        memory.add("I live in Rome.", id="4", on_conflict="revise")
        memory.link(bad, first, "SUPERSEDES")
        memory.quarantine(memory.list().notes[-2].id, "a lie")
    settled(memory)
    assert answers(memory) != before
    changed = memory.quarantine(principal=EVE, reason="a stolen key")
    assert {first, second, third, bad} <= {note.id for note in changed}
    assert answers(settled(memory)) == before
    assert noted(memory, bad).quarantined == "a stolen key"
    assert memory.history(bad)[-1].cause.principal == EVE
    assert search_texts(memory, "the code of the shed", quarantined=True)[0].startswith("The code of the shed is 9999")
    with pytest.raises(InvalidInput, match="not in quarantine already"):
        memory.quarantine(principal=EVE)


def test_a_release_restores_what_the_principal_wrote(memory: Memory) -> None:
    first, *_ = memory.add_many(LIFE, wait=True)
    with acting_as(EVE):
        bad = memory.add("The code of the shed is 9999.")
        memory.update(first, content="I live in Paris.")
    settled(memory)
    before = answers(memory)
    memory.quarantine(principal=EVE)
    settled(memory)
    assert {first, bad} <= {note.id for note in memory.release(principal=EVE)}
    assert answers(settled(memory)) == before
    with pytest.raises(InvalidInput, match="not in quarantine"):
        memory.release(principal=EVE)


def test_later_changes_of_others_stay(memory: Memory) -> None:
    first, second, *_ = memory.add_many(LIFE, wait=True)
    with acting_as(EVE):
        memory.update(first, content="I live in Paris.", title="Home")
        memory.add("Bob moved to Rome.", id="rome")
    memory.update(first, content="I live in Oslo.")
    memory.add("Bob moved to Turin.", id="rome", on_conflict="revise")
    memory.quarantine(principal=EVE)
    settled(memory)
    assert (noted(memory, first).content, noted(memory, first).title) == ("I live in Oslo.", None)
    assert noted(memory, "rome").content == "Bob moved to Turin."
    assert not noted(memory, "rome").archived
    assert not noted(memory, second).archived


def test_new_events_of_a_principal_take_another_quarantine(memory: Memory) -> None:
    with acting_as(EVE):
        memory.add("The code is 1.")
    memory.quarantine(principal=EVE)
    with acting_as(EVE):
        again = memory.add("The code is 2.")
    assert [note.id for note in memory.quarantine(principal=EVE)] == [again]
    assert len(memory.release(principal=EVE)) == 2


def test_an_unknown_principal_is_an_error(memory: Memory) -> None:
    memory.add("The code is 1.")
    for call in (memory.quarantine, memory.release):
        with pytest.raises(InvalidInput, match="key:nobody"):
            call(principal="key:nobody")
        with pytest.raises(InvalidInput, match="exactly one"):
            call()
        with pytest.raises(InvalidInput, match="exactly one"):
            call("n_1", principal=EVE)
        with acting_as(EVE, 0.5), pytest.raises(PermissionDenied):
            call(principal="key:nobody")


@pytest.mark.parametrize("backend", ["embedded", "reference"])
def test_a_transfer_includes_the_quarantine_of_a_principal(backend: str, tmp_path: Any) -> None:
    with Memory(BACKENDS[backend](tmp_path)) as memory:
        memory.add_many(LIFE)
        with acting_as(EVE, 0.5):
            memory.add("The code is 1.")
        memory.flush()
        memory.quarantine(principal=EVE)
        with moved_to(tmp_path, memory) as moved:
            assert len(moved.release(principal=EVE)) == 1


# --------------------------------------------------------------------------------------------------- random histories

TEXTS = [
    "I live in {town} now.", "The code of the shed is {number}.", "Ida mended boat {number} with {number} planks.",
    "Kestrel howls at the cello in {town}.", "What is the code of the shed?", "My favourite town is {town}.",
    "The ferry to {town} leaves at {number} o'clock from the harbour.",
]  # fmt: skip
TOWNS = ["Bergen", "Oslo", "Rome", "Turin"]
STEP = st.tuples(
    st.sampled_from(["person", "person", "eve"]),
    st.sampled_from(["add", "add", "add", "update", "revise", "tag", "archive", "revert", "link", "replace", "evolve"]),
    st.integers(0, 6),
    st.integers(0, 3),
    st.integers(0, 9),
)
HISTORY = st.lists(STEP, min_size=3, max_size=14)


def walk(memory: Memory, history: list[Any], trust: float, *, attacked: bool) -> list[str]:
    """Make the steps of a history, with or without those of the attacker; return the errors that people got."""
    errors: list[str] = []
    people: list[str] = []
    own: list[str] = []
    for number, (actor, action, text, town, value) in enumerate(history):
        if actor == "eve" and not attacked:
            continue
        content = TEXTS[text].format(town=TOWNS[town], number=value)
        event = {"content": content, "session": f"s{value % 3}", "speaker": ("Ann", "Ida", None)[value % 3]}
        event |= {"occurred_at": f"2024-05-{number + 1:02}T09:00Z"} if value % 2 else {}
        if actor == "person":
            try:
                _step(memory, action, event, f"p{number}", people, value)
            except InvalidInput:
                errors.append(f"{number} {action}")
        else:
            with acting_as(EVE, trust), suppress(InvalidInput, IdentityConflict, PermissionDenied):
                # She knows the ids of others. With full trust, a known id is the same event.
                id = people[-1] if trust < 1 and value == 0 and people else f"e{number}"
                _step(memory, action, event, id, people if trust == 1 or value % 2 else own, value, own)
    return errors


def _step(
    memory: Memory,
    action: str,
    event: dict[str, Any],
    id: str,
    known: list[str],
    value: int,
    new: list[str] | None = None,
) -> None:
    if action == "add":
        memory.add(**event, id=id)
        (known if new is None else new).append(id)
    elif action == "evolve":
        if new is None:
            memory.evolve()
    elif known and not (action == "revert" and new is None):  # jobs respect what people reverted in this very order
        # Near links of later notes do not follow a changed text.
        chosen = known[-1 if new is None and action in ("update", "revise") else value % len(known)]
        if action == "update":
            memory.update(chosen, content=event["content"])
        elif action == "revise":
            memory.add(**event, id=chosen, on_conflict="revise")
        elif action == "tag":
            memory.update(chosen, tags=["pinned"], importance=value / 10)
        elif action == "archive":
            memory.archive(chosen)
        elif action == "revert":
            memory.revert(chosen, 1)
        elif action in ("link", "replace") and len(known) > 1:
            memory.link(chosen, known[value % len(known) - 1], "RELATES" if action == "link" else "SUPERSEDES")


def require_equal(backend: str, folder: Callable[[], Any], history: list[Any], trust: float) -> None:
    urls = [BACKENDS[backend](folder()) for _ in range(2)]
    with Memory(urls[0], embedder="static") as memory, Memory(urls[1], embedder="static") as clean:
        errors = [walk(each, history, trust, attacked=each is memory) for each in (memory, clean)]
        assume(errors[0] == errors[1])  # else she prevented what people did
        memory.flush()
        with suppress(InvalidInput):  # she wrote nothing
            memory.quarantine(principal=EVE)
        assert answers(settled(memory)) == answers(settled(clean))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("trust", [0.5, 1.0])
def test_a_memory_after_quarantine_equals_one_that_was_never_attacked(
    trust: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    @given(HISTORY)
    @settings(max_examples=10, deadline=None)
    def check(history: list[Any]) -> None:
        require_equal("reference", lambda: tmp_path_factory.mktemp("history"), history, trust)

    check()


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("trust", [0.5, 1.0])
@pytest.mark.parametrize("backend", ["embedded", "reference"])
def test_a_thousand_memories_after_quarantine(
    backend: str, trust: float, tmp_path_factory: pytest.TempPathFactory, soak_scale: Callable[[int], int]
) -> None:
    @given(HISTORY)
    @settings(max_examples=soak_scale(250), deadline=None)
    def check(history: list[Any]) -> None:
        require_equal(backend, lambda: tmp_path_factory.mktemp("history"), history, trust)

    check()
