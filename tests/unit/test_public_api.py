"""``Memory`` follows ``AsyncMemory``, and every method has its backends, its route and its documentation."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tests.make_memory import SOURCE, TARGET, generate
from zettel import AsyncMemory
from zettel.local.backend import OPERATIONS
from zettel.remote.routes import COMPOSED, ROUTES

METHODS = sorted(name for name in vars(AsyncMemory) if not name.startswith("_") and name not in ("open", "close"))
BUILT_ON = {"add": "add_many_report", "add_many": "add_many_report", "add_messages": "add_many_report",
            "search": "search_many"}
"""Methods that call another one, and the operation that they end in."""
LOCAL_ONLY = {"cypher"}
"""Operations that no server offers."""


def test_memory_is_generated_from_async_memory() -> None:
    assert TARGET.read_text(encoding="utf-8") == generate(SOURCE.read_text(encoding="utf-8")), (
        "zettel/memory.py is out of step: run `python tests/make_memory.py`"
    )


def test_operations_are_methods() -> None:
    extra = set(OPERATIONS) - set(METHODS)
    assert not extra, f"public functions of zettel/local/*.py that are not methods: begin {extra} with _"
    assert set(ROUTES) == set(OPERATIONS) - LOCAL_ONLY
    assert set(COMPOSED) == set(BUILT_ON)


@pytest.mark.parametrize("name", METHODS)
def test_methods_have_an_operation_and_a_route(name: str) -> None:
    operation = BUILT_ON.get(name, name)
    assert operation in OPERATIONS, f"{name} has no local function: write it in a module of zettel/local, as read.py"
    assert operation in ROUTES or operation in LOCAL_ONLY, f"{name} has no row in ROUTES: see zettel/remote/routes.py"
    assert inspect.getdoc(getattr(AsyncMemory, name))


def test_the_server_answers_every_route() -> None:
    pytest.importorskip("fastapi")
    from zettel.server.app import openapi

    paths = openapi()["paths"]
    routes = {**ROUTES, **COMPOSED}
    assert [name for name, route in routes.items() if route.verb.lower() not in paths.get(route.path, {})] == []


def test_the_page_of_the_api_names_every_method() -> None:
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    assert [name for name in METHODS if f"`{name}(" not in page] == []
