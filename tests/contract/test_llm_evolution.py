"""Evolution by a model: a new note rewrites its neighbours with a reason and within bounds, reversibly."""

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

TIMEOUT = 60
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


def annotated(memory: Memory, *texts: str) -> list[str]:
    """Add notes and wait until a model has annotated and linked them."""
    days = range(1, len(texts) + 1)
    events = [
        {"content": text, "speaker": "Nadia", "session": "s", "occurred_at": f"2024-05-0{day}T10:00Z"}
        for day, text in zip(days, texts, strict=True)
    ]
    ids = memory.add_many(events)
    memory.flush(timeout=TIMEOUT)
    return ids


def rewritings(memory: Memory, id: str) -> list[Revision]:
    revisions = memory.history(id)
    return [r for r in revisions if r.cause.by == "evolve" and r.cause.model is not None and "context" in r.change]


def test_a_new_note_rewrites_its_neighbour_with_a_reason(url: Any, server: ModelServer) -> None:
    with Memory(url, llm=model(server)) as memory:
        ids = annotated(memory, *BOAT)
        before = noted(memory, ids[1])
        assert memory.evolve().revised > 0
        after = noted(memory, ids[1])
        assert after.content == before.content
        assert after.context.startswith(before.context)
        assert "evolved" in after.tags
        (revision,) = rewritings(memory, ids[1])
        assert (revision.cause.note, revision.cause.reason) == (ids[2], "the later remark tells more")
        assert (revision.cause.model, revision.cause.prompt) == ("openai/scripted", "evolve/1")
        assert {ids[1], ids[2]} <= {read.note for read in revision.inputs}
        hits = memory.search("evolved")
        assert {hit.note.id for hit in hits if "text" in hit.why.seeds} >= {ids[1]}  # indexed with its new wording
        assert memory.check() == []


def test_a_second_round_costs_and_changes_nothing(url: Any, server: ModelServer) -> None:
    with Memory(url, llm=model(server)) as memory:
        ids = annotated(memory, *BOAT)
        memory.evolve()
        versions = [noted(memory, id).version for id in ids]
        calls = memory.stats()["llm_calls"]
        assert memory.evolve().revised == 0
        assert [noted(memory, id).version for id in ids] == versions
        assert memory.stats()["llm_calls"] == calls


def test_fields_of_a_model_spread_in_the_same_round(url: Any, server: ModelServer) -> None:
    with Memory(url, llm=model(server)) as memory:
        annotated(memory, *KILN)
        assert memory.evolve().revised > 0
        assert not any(memory.evolve())


def test_edits_and_reverts_of_a_person_stay(url: Any, server: ModelServer) -> None:
    with Memory(url, llm=model(server)) as memory:
        ids = annotated(memory, *BOAT)
        memory.update(ids[1], context="The Heron is still on land.")
        memory.flush(timeout=TIMEOUT)
        memory.evolve()
        assert noted(memory, ids[1]).context == "The Heron is still on land."
        (first,) = rewritings(memory, ids[0])
        memory.revert_effects(first.cause.note or "")
        memory.flush(timeout=TIMEOUT)
        assert "Later:" not in noted(memory, ids[0]).context
        memory.evolve()
        assert "Later:" not in noted(memory, ids[0]).context


def test_rewrites_are_limited_in_extent_and_number(
    url: Any, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evolve_by_model, "MIN_COSINE", 1.01)
    with Memory(url, llm=model(server)) as memory:
        ids = annotated(memory, *BOAT)
        memory.evolve()
        assert [rewritings(memory, id) for id in ids] == [[], [], []]
        monkeypatch.setattr(evolve_by_model, "MIN_COSINE", 0.0)
        monkeypatch.setattr(evolve_by_model, "REWRITES_A_DAY", 1)
        for number in range(3):
            annotated(memory, f"The Heron has its sail and its varnish, says my sister, day {number}.")
            memory.evolve()
        assert max(len(rewritings(memory, note.id)) for note in memory.list().notes) == 1


def test_a_model_can_remove_links(url: Any, server: ModelServer) -> None:
    def answer(request: dict[str, Any]) -> str:
        prompt = request["messages"][-1]["content"]
        if not prompt.startswith("news:"):
            return reply(request)
        cards = [json.loads(line) for line in prompt.splitlines() if line.startswith("{")]
        pairs = [(card["id"], near) for card in cards for near in card.get("near", [])]
        return json.dumps(
            {"changes": [{"because": new, "card": old, "do": "unlink", "why": "only a name"} for new, old in pairs]}
        )

    server.reply = answer
    with Memory(url, llm=model(server)) as memory:
        ids = annotated(memory, *BOAT)
        related = [link for id in ids for link in memory.links(id) if link.type is LinkType.RELATES]
        assert related
        memory.evolve()
        assert [link for id in ids for link in memory.links(id) if link.type is LinkType.RELATES] == []
        dropped = [r.cause.reason for id in ids for r in memory.history(id) if r.cause.by == "evolve" and r.undoes]
        assert dropped
        assert set("; ".join(dropped).split("; ")) == {"only a name"}
        assert memory.check() == []


def test_an_unusable_answer_changes_nothing_and_is_reported(url: Any, server: ModelServer) -> None:
    def answer(request: dict[str, Any]) -> str:
        prompt = request["messages"][-1]["content"]
        return "No." if prompt.startswith("news:") else reply(request)

    server.reply = answer
    with Memory(url, llm=model(server)) as memory:
        ids = annotated(memory, *BOAT)
        before = [noted(memory, id).context for id in ids]
        with pytest.raises(JobFailed, match="JSON"):
            memory.evolve()
        assert [noted(memory, id).context for id in ids] == before
        server.reply = reply
        memory.retry_jobs()
        memory.flush(timeout=TIMEOUT)
        assert any(rewritings(memory, id) for id in ids)


def test_useless_answers_do_not_block_later_notes(url: Any, server: ModelServer) -> None:
    unusable = BOAT[1]
    prompts: list[str] = []

    def answer(request: dict[str, Any]) -> str:
        question = request["messages"][-1]["content"]
        if not question.startswith("news:"):
            return reply(request)
        prompts.append(question)
        return "No." if unusable in question.partition("cards:")[0] else reply(request)

    server.reply = answer
    with Memory(url, llm=model(server)) as memory:
        engine = memory._bridge.inner._backend.memory.engine
        engine.loop._work._handlers[JobKind.EVOLVE]._model_evolution._evolver.batch = 1
        ids = annotated(memory, *BOAT, *(f"{BOAT[2]} I saw it in {month}." for month in ("May", "June", "July")))
        with pytest.raises(JobFailed, match="JSON"):
            memory.evolve()
        assert any(rewritings(memory, id) for id in ids)
        prompts.clear()
        unusable = ""  # all are
        annotated(memory, *BOAT, *(f"{BOAT[0]} It rained in {month}." for month in ("May", "June", "July", "August")))
        with pytest.raises(JobFailed, match="JSON"):
            memory.evolve()
        assert len(prompts) == MAX_USELESS_ANSWERS * MAX_ATTEMPTS


def test_rewrites_disappear_with_the_deleted_note(
    url: Any, server: ModelServer, traces: Callable[..., list[str]]
) -> None:
    secret = "quokkaberg"
    with Memory(url, llm=model(server)) as memory:
        ids = annotated(memory, *BOAT[:2], f"{BOAT[2]} It lies in {secret}.")
        memory.evolve()
        assert any(rewritings(memory, id) for id in ids[:2])
        memory.delete(ids[2])
        memory.flush(timeout=TIMEOUT)
        assert traces(secret) == []
        assert noted(memory, ids[1]).content == BOAT[1]
        assert memory.check() == []
