"""Everything that a request to a model showed is an input of its answer: a copied secret is deleted with its source."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.support import noted
from tests.contract.test_annotation import TIMEOUT, model
from tests.contract.test_annotation import _short_pauses as _short_pauses  # a fixture
from tests.contract.test_erasable import SECRETS
from tests.contract.test_erasable import traces as traces  # a fixture
from tests.contract.test_reflection import BOAT, KILN, region
from tests.contract.test_retention import HOUR, Later
from tests.contract.test_retention import later as later  # a fixture
from tests.model_server import ModelServer
from tests.scripted_model import reply
from zettel import Memory

SECRET = SECRETS[0]
IDENTIFIERS = frozenset({"id", "from", "to", "because", "card", "cards", "order", "do", "type", "kind"})
"""Fields of an answer that are not the model's own words."""


def copied(value: Any) -> Any:
    """Return an answer with the secret in each of the model's own texts."""
    if isinstance(value, dict):
        return {name: field if name in IDENTIFIERS else copied(field) for name, field in value.items()}
    if isinstance(value, list):
        return [*map(copied, value), *([SECRET] if value and isinstance(value[0], str) else [])]
    return f"{value.rstrip('.')}, as in {SECRET}." if isinstance(value, str) and value else value


@pytest.fixture
def prompts() -> list[str]:
    """Return the first words of the requests that showed the secret."""
    return []


@pytest.fixture
def server(prompts: list[str]) -> Iterator[ModelServer]:
    """Run a model that copies the secret into all its texts whenever a request shows it."""

    def answer(request: dict[str, Any]) -> str:
        prompt = request["messages"][-1]["content"]
        if SECRET not in prompt:
            return reply(request)
        prompts.append(prompt.partition("\n")[0])
        return json.dumps(copied(json.loads(reply(request))))

    with ModelServer(answer) as started:
        yield started


def test_a_copied_secret_is_deleted_with_its_source(
    url: Any, server: ModelServer, prompts: list[str], traces: Callable[..., list[str]]
) -> None:
    with Memory(url, llm=model(server)) as memory:
        source = memory.add(f"The kiln came from {SECRET} by ship.", speaker="Ann", session="a")
        region(memory, KILN, speaker="Ann", session="a")
        region(memory, BOAT, speaker="Bob", session="b")
        memory.evolve(timeout=TIMEOUT)
        memory.update(source, keywords=[SECRET, "kiln"])
        memory.add("A new rudder for the ferry came by ship, and the kiln too.", speaker="Cy", session="c")
        memory.evolve(timeout=TIMEOUT)
        memory.search("the ferry and the kiln", scorer="llm")
        memory.answer_context("Where does the kiln come from?", rounds=3)
        assert {*prompts} >= {"items:", "notes:", "news:", "themes:", "question:", "to answer:"}
        copies = [note for note in memory.list(limit=1000).notes if SECRET in note.model_dump_json()]
        assert len(copies) >= len(KILN) + len(BOAT)
        memory.delete(source)
        memory.flush(timeout=TIMEOUT)
        assert traces(SECRET) == []
        memory.evolve(timeout=TIMEOUT)
        assert traces(SECRET) == []
        assert memory.check() == []


@pytest.mark.parametrize("passed", [timedelta(), HOUR])
def test_no_request_shows_an_expired_event(url: Any, later: Later, passed: timedelta) -> None:
    """Even before the sweep, which begins up to a minute later."""
    shown: list[str] = []

    def answer(request: dict[str, Any]) -> str:
        prompt = request["messages"][-1]["content"]
        shown.extend([prompt] if SECRET in prompt else [])
        return reply(request)

    with Memory(url) as memory:
        memory.add(f"Dr. Anna Rossi is at {SECRET}.", speaker="Ann", session="a", ttl=HOUR)
        memory.add("Dr. Rossi has a new door.", speaker="Ann", session="b")
        memory.flush()
        assert SECRET in memory.entity("Dr. Anna Rossi").model_dump_json()
        later.passed = passed
        assert ("Dr. Anna Rossi" in {entity.name for entity in memory.entities().entities}) is (not passed)
    with ModelServer(answer) as server, Memory(url, llm=model(server)) as memory:
        memory.add("He painted it.", speaker="Ann", session="a")
        memory.evolve(timeout=TIMEOUT)
        assert server.asked > 0
        assert bool(shown) is (not passed)


def test_an_expired_event_is_annotated_if_it_is_valid_for_longer_after_all(url: Any, later: Later) -> None:
    with ModelServer(reply) as server, Memory(url, llm=model(server)) as memory:
        id = memory.add("The kiln has a new door.", speaker="Ann", ttl=HOUR)
        later.passed = HOUR
        memory.flush(timeout=TIMEOUT)
        assert server.asked == 0
        memory.update(id, expires_at=later() + HOUR)
        memory.flush(timeout=TIMEOUT)
        assert "context" in noted(memory, id).authored
