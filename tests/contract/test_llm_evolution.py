"""Evolved by a model: a new note rewrites the notes around it, with a reason, within bounds, and it can be undone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.contract.test_annotation import _short_pauses as _short_pauses  # a fixture
from tests.contract.test_annotation import model, noted
from tests.contract.test_erasable import traces as traces  # a fixture
from tests.model_server import ModelServer
from tests.scripted_model import reply
from zettel import LinkType, Memory
from zettel.core.follow_ups import MAX_ATTEMPTS
from zettel.errors import JobFailed
from zettel.jobs import evolve_by_model
from zettel.jobs.retry_limit import MAX_USELESS_ANSWERS
from zettel.model import JobKind, Revision

PATIENCE = 60
BOAT = (
    "I spent the weekend repairing the Heron with varnish.",
    "The Heron needs a new sail and more varnish.",
    "My sister owns the Heron, a boat with a brown sail, and keeps varnish on it.",
)
KILN = (
    "I moved to Oslo with my kiln Ostara.",
    "In Oslo the kiln Ostara has a new door.",
    "My kiln Ostara is the oldest in Oslo.",
    "Oslo is cold, and so is the kiln Ostara.",
    "I fired bowls in Ostara today, here in Oslo.",
    "The kiln Ostara leaked near the harbour in Oslo.",
)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(reply) as started:
        yield started


def told(memory: Memory, *texts: str) -> list[str]:
    """Notes that a model has read and linked."""
    days = range(1, len(texts) + 1)
    events = [
        {"content": text, "speaker": "Nadia", "session": "s", "occurred_at": f"2024-05-0{day}T10:00Z"}
        for day, text in zip(days, texts, strict=True)
    ]
    ids = memory.add_many(events)
    memory.flush(timeout=PATIENCE)
    return ids


def rewritings(memory: Memory, id: str) -> list[Revision]:
    found = memory.history(id)
    return [r for r in found if r.cause.by == "evolve" and r.cause.model is not None and "context" in r.change]


def test_a_new_note_rewrites_its_neighbour_and_says_why(url: Any, server: ModelServer) -> None:
    with Memory(url, llm=model(server)) as memory:
        ids = told(memory, *BOAT)
        before = noted(memory, ids[1])
        assert memory.evolve().revised > 0
        after = noted(memory, ids[1])
        assert after.content == before.content
        assert after.context.startswith(before.context)
        assert "evolved" in after.tags
        (made,) = rewritings(memory, ids[1])
        assert (made.cause.note, made.cause.reason) == (ids[2], "the later remark tells more")
        assert (made.cause.model, made.cause.prompt) == ("openai/scripted", "evolve/1")
        assert {ids[1], ids[2]} <= {read.note for read in made.inputs}
        hits = memory.search("evolved")
        assert {hit.note.id for hit in hits if "text" in hit.why.seeds} >= {ids[1]}  # indexed as it reads now
        assert memory.check() == []


def test_again_costs_nothing_and_changes_nothing(url: Any, server: ModelServer) -> None:
    with Memory(url, llm=model(server)) as memory:
        ids = told(memory, *BOAT)
        memory.evolve()
        versions = [noted(memory, id).version for id in ids]
        calls = memory.stats()["llm_calls"]
        assert memory.evolve().revised == 0
        assert [noted(memory, id).version for id in ids] == versions
        assert memory.stats()["llm_calls"] == calls


def test_what_a_model_wrote_is_spread_in_the_same_round(url: Any, server: ModelServer) -> None:
    with Memory(url, llm=model(server)) as memory:
        told(memory, *KILN)
        assert memory.evolve().revised > 0
        assert not any(memory.evolve())


def test_what_a_person_wrote_or_took_back_stays(url: Any, server: ModelServer) -> None:
    with Memory(url, llm=model(server)) as memory:
        ids = told(memory, *BOAT)
        memory.update(ids[1], context="The Heron is still on land.")
        memory.flush(timeout=PATIENCE)
        memory.evolve()
        assert noted(memory, ids[1]).context == "The Heron is still on land."
        (first,) = rewritings(memory, ids[0])
        memory.revert_effects(first.cause.note or "")
        memory.flush(timeout=PATIENCE)
        assert "Later:" not in noted(memory, ids[0]).context
        memory.evolve()
        assert "Later:" not in noted(memory, ids[0]).context


def test_a_rewriting_may_not_go_too_far_nor_too_often(
    url: Any, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evolve_by_model, "MIN_COSINE", 1.01)
    with Memory(url, llm=model(server)) as memory:
        ids = told(memory, *BOAT)
        memory.evolve()
        assert [rewritings(memory, id) for id in ids] == [[], [], []]
        monkeypatch.setattr(evolve_by_model, "MIN_COSINE", 0.0)
        monkeypatch.setattr(evolve_by_model, "REWRITES_A_DAY", 1)
        for number in range(3):
            told(memory, f"The Heron has its sail and its varnish, says my sister, day {number}.")
            memory.evolve()
        assert max(len(rewritings(memory, note.id)) for note in memory.list().notes) == 1


def test_links_are_dropped(url: Any, server: ModelServer) -> None:
    def answer(request: dict[str, Any]) -> str:
        asked = request["messages"][-1]["content"]
        if not asked.startswith("news:"):
            return reply(request)
        cards = [json.loads(line) for line in asked.splitlines() if line.startswith("{")]
        pairs = [(card["id"], near) for card in cards for near in card.get("near", [])]
        return json.dumps(
            {"changes": [{"because": new, "card": old, "do": "unlink", "why": "only a name"} for new, old in pairs]}
        )

    server.reply = answer
    with Memory(url, llm=model(server)) as memory:
        ids = told(memory, *BOAT)
        related = [link for id in ids for link in memory.links(id) if link.type is LinkType.RELATES]
        assert related
        memory.evolve()
        assert [link for id in ids for link in memory.links(id) if link.type is LinkType.RELATES] == []
        dropped = [r.cause.reason for id in ids for r in memory.history(id) if r.cause.by == "evolve" and r.undoes]
        assert dropped
        assert set("; ".join(dropped).split("; ")) == {"only a name"}
        assert memory.check() == []


def test_rubbish_changes_nothing_and_is_told(url: Any, server: ModelServer) -> None:
    def answer(request: dict[str, Any]) -> str:
        asked = request["messages"][-1]["content"]
        return "No." if asked.startswith("news:") else reply(request)

    server.reply = answer
    with Memory(url, llm=model(server)) as memory:
        ids = told(memory, *BOAT)
        before = [noted(memory, id).context for id in ids]
        with pytest.raises(JobFailed, match="JSON"):
            memory.evolve()
        assert [noted(memory, id).context for id in ids] == before
        server.reply = reply
        memory.retry_jobs()
        memory.flush(timeout=PATIENCE)
        assert any(rewritings(memory, id) for id in ids)


def test_an_answer_of_no_use_does_not_keep_the_model_from_later_notes(url: Any, server: ModelServer) -> None:
    unusable = BOAT[1]
    asked: list[str] = []

    def answer(request: dict[str, Any]) -> str:
        question = request["messages"][-1]["content"]
        if not question.startswith("news:"):
            return reply(request)
        asked.append(question)
        return "No." if unusable in question.partition("cards:")[0] else reply(request)

    server.reply = answer
    with Memory(url, llm=model(server)) as memory:
        engine = memory._bridge.inner._backend.memory.engine
        engine.loop._work._handlers[JobKind.EVOLVE]._model_evolution._evolver.batch = 1
        ids = told(memory, *BOAT, *(f"{BOAT[2]} I saw it in {month}." for month in ("May", "June", "July")))
        with pytest.raises(JobFailed, match="JSON"):
            memory.evolve()
        assert any(rewritings(memory, id) for id in ids)
        asked.clear()
        unusable = ""  # all are
        told(memory, *BOAT, *(f"{BOAT[0]} It rained in {month}." for month in ("May", "June", "July", "August")))
        with pytest.raises(JobFailed, match="JSON"):
            memory.evolve()
        assert len(asked) == MAX_USELESS_ANSWERS * MAX_ATTEMPTS


def test_what_a_deleted_note_had_spread_goes_with_it(
    url: Any, server: ModelServer, traces: Callable[..., list[str]]
) -> None:
    secret = "quokkaberg"
    with Memory(url, llm=model(server)) as memory:
        ids = told(memory, *BOAT[:2], f"{BOAT[2]} It lies in {secret}.")
        memory.evolve()
        assert any(rewritings(memory, id) for id in ids[:2])
        memory.delete(ids[2])
        memory.flush(timeout=PATIENCE)
        assert traces(secret) == []
        assert noted(memory, ids[1]).content == BOAT[1]
        assert memory.check() == []
