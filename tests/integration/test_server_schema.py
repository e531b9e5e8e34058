"""The server beside its own description: schemathesis asks what the OpenAPI says can be asked, and much that it does
not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.http_server import PATIENCE, QUICK, Served, served
from zettel import Memory, Scope

pytestmark = pytest.mark.integration

CHECKS = [
    content_type_conformance, response_headers_conformance, response_schema_conformance, status_code_conformance,
]  # fmt: skip
HONEST = {501, 504}
"""What needs packages that are not there, and what was to wait for less than it takes: no fault of the server."""
SAMPLE, WRONG_EVERY = 2, 5
FULL = 300
"""Requests of each operation; in an ordinary run few, and wrong ones to every fifth operation alone."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    store = tmp_path_factory.mktemp("schema") / "a.db"
    with Memory(store, scope=Scope(user="ann")) as memory:
        memory.add_many([{"content": f"Kettle {n} stands on shelf {n}.", "session": "s"} for n in range(5)])
        memory.flush()
    with served(store, limits=QUICK._replace(body=2**20, upload=2**20, body_seconds=PATIENCE)) as running:
        yield running


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_every_answer_is_as_it_is_described(server: Served, pytestconfig: pytest.Config) -> None:
    key = server.key("schemathesis", Scope(user="ann"))
    schema: Any = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    soak = bool(pytestconfig.getoption("soak"))
    count = FULL if soak else SAMPLE
    asked: set[str] = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        ask(operation, GenerationMode.POSITIVE, count, key)
        takes = operation.body or operation.query or operation.path_parameters
        if takes and (soak or len(asked) % WRONG_EVERY == 0):
            ask(operation, GenerationMode.NEGATIVE, count, key)
        asked.add(operation.label)
    assert len(asked) >= 45


def ask(operation: Any, mode: GenerationMode, count: int, key: str) -> None:
    @seed(10)
    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def each(case: Any) -> None:
        if operation.path == "/v1/flush" or (operation.path == "/v1/evolve" and isinstance(case.body, dict)):
            case.body = {}  # any time that they are given to wait is taken
        answer = case.call(headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE)
        checks = CHECKS if answer.status_code in HONEST else [*CHECKS, not_a_server_error]
        case.validate_response(answer, checks=checks)

    each()
