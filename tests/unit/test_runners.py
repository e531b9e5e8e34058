"""Runners: selection by name, and values that cross process boundaries."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import pytest

from zettel import Budget, Memory, RayRunner, Scope
from zettel.errors import (
    InvalidInput,
    MissingExtra,
    ModelUnavailable,
    NotFound,
    StoreUnreachable,
    ZettelError,
)
from zettel.local.runners import load_runner
from zettel.ports.settings import Settings

SERVER = "neo4j://memory.example:7687"
BY_IMPORT = {"llm": "openai/any", "budget": Budget(calls=1, per="import")}


def test_runners_are_selected_by_name() -> None:
    assert load_runner(None) is None
    assert isinstance(load_runner("ray"), RayRunner)
    mine = RayRunner("head:6379")
    assert load_runner(mine) is mine
    for wrong in ("dask", RayRunner, 7):
        with pytest.raises(InvalidInput, match="runner"):
            load_runner(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "error",
    [NotFound(Scope(), ["n_1"]), MissingExtra("that", "ray"), ModelUnavailable("busy", 7.0), StoreUnreachable()],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_pickling(error: ZettelError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_opening_arguments_hide_passwords() -> None:
    assert "hunter2" not in repr(Settings(SERVER, auth=("neo4j", "hunter2")))


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("here.db", {}, "cannot open here.db on other machines"),
        (":memory:", {}, "on other machines"),
        ("file:///here.db", {}, "on other machines"),
        (SERVER, BY_IMPORT, "use a budget per day"),
        (SERVER, {"embedder": (line for line in ())}, "cannot send"),
        (SERVER, {"runner": "ray:head"}, "address of the Ray cluster must be"),
        (SERVER, {"runner": "ray:head:port"}, "address of the Ray cluster must be"),
        (":memory:", {"runner": "process"}, "cannot open :memory: in another process"),
        ("m.db", {"runner": "process", **BY_IMPORT}, "use a budget per day"),
        ("m.db", {"runner": "process", "embedder": (line for line in ())}, "cannot send"),
        ("m.db", {"runner": "process:0"}, "at_once must be at least 1"),
        ("m.db", {"runner": "process:two"}, "as in process:2"),
    ],
)
def test_unsupported_options_raise_before_anything_is_created(
    url: str, options: dict[str, Any], message: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=message):
        Memory(url, **{"runner": "ray", **options})
    assert list(tmp_path.iterdir()) == []


def test_without_ray_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r'pip install "zettel-graph\[ray\]"'):
        Memory(SERVER, runner="ray")


def test_invalid_numbers_for_a_ray_runner_raise() -> None:
    for wrong in ({"at_once": 0}, {"cpus": 0.0}):
        with pytest.raises(InvalidInput, match="at_once must be at least 1"):
            RayRunner(**wrong)  # type: ignore[arg-type]
