"""Endpoints follow from the signatures of the ``AsyncMemory`` methods."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from zettel import AsyncMemory, Scope
from zettel.remote import wire
from zettel.remote.routes import ROUTES, Route
from zettel.server import endpoints
from zettel.server.app import openapi
from zettel.server.endpoints import other_routes


def given_to(add: Any, *without: str) -> set[str]:
    return {*inspect.signature(add).parameters} - {"self", "scope", "search", *without}


def properties(body: str) -> dict[str, Any]:
    fields: dict[str, Any] = openapi()["components"]["schemas"][body]["properties"]
    return fields


def test_bodies_have_the_parameters_of_the_methods() -> None:
    assert {*properties("Search")} == given_to(AsyncMemory.search)
    assert {*properties("Context-Input")} == given_to(AsyncMemory.search) | given_to(AsyncMemory.context)
    assert {*properties("AnswerContext")} == given_to(AsyncMemory.search) | given_to(AsyncMemory.answer_context)
    assert {*properties("Tune")} == given_to(AsyncMemory.tune, "on_progress")
    assert {*properties("Evolve")} == given_to(AsyncMemory.evolve) | {"wait"}
    assert {*properties("Add")} - {"external_id"} == given_to(AsyncMemory.add) - {"id"}


def test_defaults_of_a_search_are_those_of_the_calling_method() -> None:
    assert properties("Search")["k"]["default"] == 10
    assert "default" not in properties("Context-Input")["k"]


def test_files_have_the_parameters_of_the_methods() -> None:
    def query(path: str, verb: str) -> set[str]:
        return {one["name"] for one in openapi()["paths"][path][verb]["parameters"]} - {"tenant", "user", "agent"}

    callbacks = ("on_progress", "on_rejected")
    assert query("/v1/import", "post") - {"name"} == given_to(AsyncMemory.import_transcript, "path", *callbacks)
    assert query("/v1/export", "get") == given_to(AsyncMemory.export, "to", *callbacks)


async def unknown(self: Any, shape: complex, *, scope: Scope | None = None) -> None: ...


async def whole_store(self: Any) -> None: ...


async def path(self: Any, *, folder: str | Path, scope: Scope | None = None) -> None: ...


async def scorer(self: Any, *, scope: Scope | None = None, **search: Any) -> None: ...


@pytest.mark.parametrize(
    ("method", "verb", "message"),
    [
        (unknown, "GET", "shape: complex has no type in requests: add it to zettel/server/parameters.py"),
        (whole_store, "GET", "toy concerns all scopes: write a handler"),
        (path, "POST", "toy: a client must not choose folder"),
        (scorer, "POST", "toy: a client must not choose scorer"),
    ],
)
def test_endpoints_that_need_more_than_a_route_are_refused(
    monkeypatch: pytest.MonkeyPatch, method: Any, verb: str, message: str
) -> None:
    monkeypatch.setattr(AsyncMemory, "toy", method, raising=False)
    monkeypatch.setattr(endpoints, "SERVED", {"toy": Route("notes", "read", verb, "/v1/toy", wire.NOTES)})
    with pytest.raises(TypeError, match=re.escape(message)):
        other_routes([])


def test_a_handler_takes_every_parameter_of_its_method() -> None:
    async def handler(access: Any) -> None: ...

    assert ROUTES["check"].verb == "POST"
    with pytest.raises(TypeError, match="repair"):
        endpoints.endpoint_of("check", handler)


def test_no_path_is_read_from_a_query() -> None:
    with pytest.raises(TypeError, match="path: str"):
        endpoints.query_of("import_transcript", without="source")
