"""Superseded facts are marked and can be filtered out; contradictions stay and are listed; both can be reverted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import permutations
from typing import Any, cast

import anyio
import anyio.to_thread
import pytest

from tests.contract.support import decide, search_texts
from tests.contract.test_annotation import model
from tests.model_server import ModelServer
from tests.scripted_model import reply
from zettel import LinkType, Memory, Note, Scope, acting_as
from zettel.bench.completions import Reply
from zettel.graph import open_store
from zettel.link.conflicts import conflicts
from zettel.model import Conflict
from zettel.ports import GraphStore

BERGEN = "I live in Bergen, above a bakery."
OSLO = "Big news: I live in Oslo now!"
WHERE = "Where does Ann live?"
LIVED = (
    ("2024-01-10", "I live in Bergen, above a bakery."),
    ("2024-03-05", "I live in Turku now, in a flat by the river."),
    ("2024-05-01", "Big news: I live in Oslo now!"),
)


def note(memory: Memory, id: str) -> Note:
    stored = memory.get(id)
    assert isinstance(stored, Note)
    return stored


def _moved(memory: Memory) -> tuple[str, str]:
    old = memory.add(BERGEN, speaker="Ann", occurred_at="2024-01-10")
    new = memory.add(OSLO, speaker="Ann", occurred_at="2024-05-01")
    memory.add("Do you like Bergen?", speaker="Bob", occurred_at="2024-05-02")
    memory.flush()
    return old, new


def test_current_only_excludes_superseded_notes(memory: Memory) -> None:
    old, new = _moved(memory)
    everything = {hit.note.id for hit in memory.search(WHERE)}
    current = {hit.note.id for hit in memory.search(WHERE, current_only=True)}
    assert {old, new} <= everything
    assert current == everything - {old}
    assert [hit.note.id for hit in memory.search("Bergen bakery", k=1, current_only=True)] != [old]
    before = memory.search(WHERE, current_only=True, as_of="2024-03-01")
    assert [hit.note.id for hit in before] == [old]
    memory.revert(new, 1)
    assert old in {hit.note.id for hit in memory.search(WHERE, current_only=True)}


@pytest.mark.parametrize(
    ("former", "latter", "now", "before"),
    [
        ("I live in Leeds.", "I moved from Leeds to Bristol.", "Where do I live?", "Where did I use to live?"),
        ("I drive a Golf.", "I sold the Golf and bought a Volvo.", "Which car do I drive?", ""),
        (
            "I work at Acme and I'm allergic to nuts.",
            "I quit Acme and joined Globex.",
            "Where do I work?",
            "Where did I work before?",
        ),
        ("I work at Acme.", "I quit Acme and joined Globex.", "Where do I work now?", "Where did I work before?"),
    ],
)
def test_each_time_has_its_answer(memory: Memory, former: str, latter: str, now: str, before: str) -> None:
    """Also if only the older statement is understood as one: what replaces it answers instead of it."""
    for content, day in ((former, "2025-01-14"), (latter, "2025-06-21")):
        memory.add(content, role="user", session=day, occurred_at=day)
    memory.flush()
    assert search_texts(memory, now) == [latter, former]
    if before:
        dated = f"{before.replace('use to ', '').removesuffix('?').removesuffix(' before')} in January 2025?"
        assert search_texts(memory, before) == search_texts(memory, dated) == [former, latter]


ABOUT_ME = "I live in Porto with my wife Ana, I work at Apple as a designer and I'm allergic to nuts."


def test_a_note_with_one_changed_fact_stays_valid(memory: Memory) -> None:
    about = memory.add(ABOUT_ME, role="user", session="a", occurred_at="2024-01-05")
    moved = memory.add("We moved to Braga last week.", role="user", session="b", occurred_at="2024-05-05")
    memory.flush()
    (link,) = (link for link in memory.links(about) if link.type is LinkType.UPDATES)
    assert (link.source, link.target, note(memory, about).valid_to) == (moved, about, None)
    for question in ("What am I allergic to?", "What is my wife called?", "Where do I work?"):
        (hit,) = memory.search(question, k=1, current_only=True)
        assert (hit.note.id, hit.why.updated_by) == (about, moved)
        assert hit.why.time == "partly replaced since 2024-05-05: User's home changed: Porto \u2192 Braga"
    assert memory.search("Where do I live?", k=1)[0].note.id == moved
    assert "allergic to nuts. (partly replaced since 2024-05-05: User's home" in memory.context("Any allergies?")
    before = memory.search("Where do I live?", k=1, as_of="2024-03-01")[0]
    assert (before.note.id, before.why.updated_by, before.why.time) == (about, None, "valid from 2024-01-05")
    memory.unlink(moved, about, "UPDATES")
    memory.flush()
    assert memory.search("Any allergies?", k=1)[0].why.updated_by is None


def test_a_question_about_the_changed_part_gets_the_change_first(memory: Memory) -> None:
    rent = "Our rent is 900 euros and the deposit was 1,800 euros, paid to Mr Silva."
    old = memory.add(rent, role="user", session="a", occurred_at="2024-01-09")
    new = memory.add("The rent is now 950 euros.", role="user", session="b", occurred_at="2024-06-05")
    memory.flush()
    first = {q: memory.search(q, k=1)[0].note.id for q in ("How high is our rent?", "Who got the deposit of the flat?")}
    assert list(first.values()) == [new, old]


def test_a_note_of_lower_trust_updates_nothing(memory: Memory) -> None:
    about = memory.add(ABOUT_ME, speaker="Ann", occurred_at="2024-01-05")
    with acting_as("tool:browser", trust=0.5):
        memory.add("I moved to Braga.", speaker="Ann", occurred_at="2024-05-05")
    memory.flush()
    assert {link.type for link in memory.links(about)} <= {LinkType.CONTRADICTS, LinkType.RELATES}
    assert memory.search("Where does Ann live?", k=1)[0].note.id == about


def superseding(word: str) -> Reply:
    """Return a model that replaces every older card with this word that is offered."""

    def answer(request: dict[str, Any]) -> str:
        prompt = request["messages"][-1]["content"]
        if not prompt.startswith("notes:"):
            return reply(request)
        cards = {card["id"]: card for card in map(json.loads, filter(lambda line: line[0] == "{", prompt.splitlines()))}
        links = [
            {"from": id, "to": older, "type": "SUPERSEDES", "reason": "new"}
            for id, card in cards.items()
            for older in card.get("to", ())
            if word in cards[older]["note"]
        ]
        return json.dumps({"links": links})

    return answer


def test_a_model_replaces_in_the_order_of_days(url: Any) -> None:
    """A note of an earlier day that arrives late is replaced, and replaces nothing."""
    with ModelServer(superseding("regatta")) as server, Memory(url, llm=model(server)) as memory:
        late = memory.add("The regatta of the rowing club begins at ten.", speaker="Ann", occurred_at="2024-05-01")
        memory.flush(timeout=60)
        early = memory.add("The regatta of the rowing club begins at nine.", speaker="Ann", occurred_at="2024-03-01")
        memory.flush(timeout=60)
        replaced = [(link.source, link.target) for link in memory.links(early) if link.type is LinkType.SUPERSEDES]
        assert replaced == [(late, early)]
        assert memory.search("When does the regatta begin?", k=1)[0].note.id == late


def test_a_message_with_a_superseded_fact_is_marked(url: Any) -> None:
    with ModelServer(superseding("lives in")) as server, Memory(url, llm=model(server)) as memory:
        message = memory.add("I moved to Braga. My sister has three cats.", speaker="Bo", occurred_at="2024-03-01")
        memory.flush(timeout=60)
        memory.add("I moved to Faro.", speaker="Bo", occurred_at="2024-05-01")
        memory.flush(timeout=60)
        hits = {hit.note.id: hit for hit in memory.search("How many cats does the sister have?", k=10)}
        assert hits[message].why.time.startswith("partly replaced since 2024-05-01")


def test_a_replacement_has_a_reason_and_ranks_first(memory: Memory) -> None:
    old, new = _moved(memory)
    (link,) = (link for link in memory.links(new) if link.type is LinkType.SUPERSEDES)
    assert (link.source, link.target) == (new, old)
    assert "Bergen" in link.reason
    assert "Oslo" in link.reason
    assert note(memory, old).valid_to == note(memory, new).valid_from
    first, second = memory.search(WHERE, k=2, explain=True)
    assert (first.note.id, second.note.id) == (new, old)
    assert second.why.superseded_by == new
    assert first.score >= second.score
    assert first.why.features["statement"]
    assert memory.search(WHERE, k=1, as_of="2024-03-01")[0].note.id == old


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_order_of_arrival_does_not_matter(memory: Memory, order: tuple[int, ...]) -> None:
    ids: dict[int, str] = {}
    for place in order:
        when, text = LIVED[place]
        ids[place] = memory.add(text, speaker="Ann", occurred_at=when)
        memory.flush()
    starts = [note(memory, ids[place]).valid_from for place in range(3)]
    assert [note(memory, ids[place]).valid_to for place in range(3)] == [starts[1], starts[2], None]
    assert memory.search(WHERE, k=1)[0].note.id == ids[2]
    assert memory.search(WHERE, k=1, as_of="2024-04-01")[0].note.id == ids[1]
    assert memory.search(WHERE, k=1, as_of="2024-02-01")[0].note.id == ids[0]
    memory.delete(ids[1])
    memory.flush()
    assert note(memory, ids[0]).valid_to == starts[2]
    memory.delete(ids[2])
    memory.flush()
    assert note(memory, ids[0]).valid_to is None


@pytest.mark.parametrize(
    "text",
    [
        "What if I lived in Porto?",
        "If I lived in Porto, I would swim every day.",
        "I nearly took a house in Porto, but the bank said no.",
        "My parents live in Porto.",
        "Imagine me living in Porto.",
    ],
)
def test_hypothetical_statements_supersede_and_answer_nothing(memory: Memory, text: str) -> None:
    home = memory.add(BERGEN, speaker="Ann", occurred_at="2024-01-10")
    memory.add(text, speaker="Ann", occurred_at="2024-05-01")
    memory.flush()
    assert note(memory, home).valid_to is None
    assert memory.search(WHERE, k=1)[0].note.id == home


def test_contradictions_are_listed_until_resolved(memory: Memory) -> None:
    rome = memory.add("Ben lives in Rome.")
    turin = memory.add("Ben lives in Turin.")
    memory.flush()
    (pair,) = memory.conflicts()
    assert (pair.note.id, pair.other.id) == (turin, rome)
    assert note(memory, turin).confidence == note(memory, rome).confidence == pair.note.confidence == 0.5
    assert len(memory.search("Where does Ben live?", current_only=True)) == 2
    milan = memory.add("Ben has moved to Milan.")
    memory.flush()
    decide(memory, milan, rome, LinkType.SUPERSEDES)
    assert memory.conflicts() == []
    assert "Ben lives in Rome." not in search_texts(memory, "Where does Ben live?", current_only=True)


def test_reverting_a_contradiction_resolves_it(memory: Memory) -> None:
    rome, turin = memory.add("Ben lives in Rome."), memory.add("Ben lives in Turin.")
    memory.flush()
    memory.revert(turin, 1)
    assert memory.conflicts() == []
    assert note(memory, turin).confidence == 1.0
    assert note(memory, rome).valid_to is None


def test_a_concurrent_delete_is_not_listed_as_a_conflict(url: Any) -> None:
    with Memory(url) as memory:
        rome = memory.add("Ben lives in Rome.")
        memory.add("Ben lives in Turin.")
        memory.flush()
        assert len(memory.conflicts()) == 1

        class Meanwhile:
            """A store that deletes a note after its links have been read."""

            def __getattr__(self, name: str) -> Any:
                return getattr(store, name)

            async def notes(self, scope: Scope, ids: Sequence[str]) -> dict[str, Note]:
                await anyio.to_thread.run_sync(memory.delete, rome)
                return await store.notes(scope, ids)

        store = open_store(url)

        async def read() -> list[Conflict]:
            await store.open()
            try:
                return await conflicts(cast(GraphStore, Meanwhile()), Scope())
            finally:
                await store.close()

        assert anyio.run(read) == []


def test_an_announced_change_takes_effect_on_its_day(memory: Memory) -> None:
    old = memory.add("The rent is 1,150 euros.", role="user", occurred_at="2024-03-01T10:00Z")
    new = memory.add("The rent goes up to 1,240 euros from January.", role="user", occurred_at="2024-10-05T10:00Z")
    memory.flush()
    assert note(memory, new).valid_from == note(memory, old).valid_to == datetime(2025, 1, 1, tzinfo=timezone.utc)
    question = "How much is the rent?"
    assert [hit.note.id for hit in memory.search(question, as_of="2024-11-01")] == [old]
    assert {hit.note.id for hit in memory.search(question, current_only=True, now="2024-11-01")} == {old, new}
    assert [hit.note.id for hit in memory.search(question, current_only=True, now="2025-02-01")] == [new]
    memory.revert(new, 1)
    assert note(memory, old).valid_to is None
    assert note(memory, new).valid_from == datetime(2024, 10, 5, 10, tzinfo=timezone.utc)


def test_a_statement_with_a_named_end_is_past_afterwards(memory: Memory) -> None:
    id = memory.add("I'm on holiday until 20 May.", role="user", occurred_at="2024-05-01T10:00Z")
    memory.add("The lake is warm.", role="user", occurred_at="2024-05-02T10:00Z")
    memory.flush()
    end = datetime(2024, 5, 21, tzinfo=timezone.utc)
    assert note(memory, id).valid_to == end
    question = "Am I on holiday?"
    assert id in {hit.note.id for hit in memory.search(question, current_only=True, now="2024-05-10")}
    assert id not in {hit.note.id for hit in memory.search(question, current_only=True, now="2024-06-10")}
    memory.revert(id, 1)
    memory.add("I'm on holiday in Greece, and the sea is warm.", role="user", occurred_at="2024-05-03T10:00Z")
    memory.flush()
    assert note(memory, id).valid_to is None, "a reverted decision is not made again"


def test_a_context_marks_plans_whose_day_is_past(memory: Memory) -> None:
    memory.add("My flight to Rome is on 3 May.", role="user", occurred_at="2024-04-20T10:00Z")
    memory.flush()
    assert "(past)" not in memory.context("When is my flight?", now="2024-05-03T08:00Z")
    for past in (
        memory.context("When is my flight?", now="2024-05-04T08:00Z"),
        memory.answer_context("When is my flight?", now="2024-05-04T08:00Z").text,
    ):
        assert "My flight to Rome is on 3 May. (past)" in past


@pytest.mark.parametrize("content", ["Swimming is on Thursday now.", "Bin day is Tuesday."])
def test_a_day_of_every_week_is_not_past(memory: Memory, content: str) -> None:
    memory.add(content, speaker="Ann", occurred_at="2024-05-01T09:00Z", wait=True)
    context = memory.context("Which day is it?", now="2024-08-01T08:00Z")
    assert content in context
    assert "(past)" not in context


@pytest.mark.parametrize("accepted", [True, False])
def test_a_model_judges_what_the_rules_propose(url: Any, accepted: bool) -> None:
    """Declined pairs are not linked, though the rules are certain of them."""
    offered: list[str] = []

    def answer(request: dict[str, Any]) -> str:
        prompt = request["messages"][-1]["content"]
        if not prompt.startswith("notes:"):
            return reply(request)
        cards = [json.loads(line) for line in prompt.splitlines() if line.startswith("{")]
        links = []
        for card in cards:
            offered.extend(card.get("to", []))
            targets = card.get("to", [])
            links += [{"from": card["id"], "to": to, "type": "SUPERSEDES", "reason": "changed"} for to in targets]
        return json.dumps({"links": links if accepted else []})

    with ModelServer(answer) as server, Memory(url, llm=model(server)) as memory:
        old = memory.add("The vault code is 4711.", speaker="Ann", occurred_at="2024-01-10")
        memory.flush(timeout=60)
        new = memory.add("The vault code was changed to 8012.", speaker="Ann", occurred_at="2024-02-10")
        memory.flush(timeout=60)
        assert offered
        replaced = [link.target for link in memory.links(new) if link.type is LinkType.SUPERSEDES]
        assert replaced == ([old] if accepted else [])
        assert (note(memory, old).valid_to is not None) is accepted
