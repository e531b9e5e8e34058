"""Docstrings of the public API: every method has the four sections, and its examples run and print what they show."""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import zettel
from zettel import AsyncMemory, Memory

SECTIONS = ("Args", "Returns", "Raises", "Examples")
LIKE = {"search_many": "search", "estimate_import": "import_transcript"}
"""Methods that share most arguments with another one, whose docstring describes them."""
CONSTRUCTORS = [
    "AsyncMemory",
    "Budget",
    "Decay",
    "LiteLLM",
    "LiteLLMAnnotator",
    "Memory",
    "RayRunner",
    "RecordedAnnotator",
]
FUNCTIONS = ["acting_as", "wrap"]
EVENTS = [
    {"id": "boat", "title": "Blue Heron", "content": "A cutter built in 1931, moored in Risør."},
    {"id": "bought", "speaker": "Ann", "session": "chat", "occurred_at": "2024-05-01T18:00Z",
     "content": "I bought the Blue Heron!"},
    {"id": "sail", "speaker": "Ben", "session": "chat", "occurred_at": "2024-05-01T18:01Z",
     "content": "We sail in June."},
]  # fmt: skip
"""The memory of the examples."""


def methods(api: type) -> list[str]:
    return sorted(name for name, value in vars(api).items() if inspect.isfunction(value) and not name.startswith("_"))


def section(docstring: str, name: str) -> list[str]:
    """Return the entries of a section: the words before the first colon of each."""
    found = re.search(rf"^{name}:\n((?: .*\n|\n)*)", docstring + "\n", re.MULTILINE)
    return re.findall(r"^    ([^ :]+):", found[1], re.MULTILINE) if found else []


def described(call: Any, docstring: str) -> tuple[list[str], list[str]]:
    """Return the parameters of a call, and those that its docstring describes."""
    signs = {inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(call).parameters.values()
    names = [signs.get(parameter.kind, "") + parameter.name for parameter in parameters if parameter.name != "self"]
    return names, section(docstring, "Args")


@pytest.mark.parametrize("name", methods(AsyncMemory))
def test_methods_have_all_sections(name: str) -> None:
    method = getattr(AsyncMemory, name)
    docstring = inspect.getdoc(method) or ""
    names, documented = described(method, docstring)
    wanted = [part for part in SECTIONS if names or part != "Args"]
    present = re.findall(r"^(\w+):$", docstring, re.MULTILINE)
    assert ["Returns" if part == "Yields" else part for part in present] == wanted
    if name in LIKE:
        assert f"those of ``{LIKE[name]}``" in docstring
        assert documented == names[: len(documented)]
    else:
        assert documented == names, "Args must list the parameters in their order"


@pytest.mark.parametrize("name", CONSTRUCTORS + FUNCTIONS)
def test_constructors_and_functions_have_all_sections(name: str) -> None:
    call = getattr(zettel, name)
    docstring = inspect.getdoc(call) or ""
    names, documented = described(call, docstring)
    assert documented == names
    wanted = [part for part in SECTIONS if part != "Returns" or name in FUNCTIONS]
    assert re.findall(r"^(\w+):$", docstring, re.MULTILINE) == wanted


@pytest.mark.parametrize("name", methods(AsyncMemory))
def test_documented_errors_exist(name: str) -> None:
    named = section(inspect.getdoc(getattr(AsyncMemory, name)) or "", "Raises")
    assert named
    assert [error for error in named if not issubclass(getattr(zettel.errors, error), zettel.ZettelError)] == []


# ---------------------------------------------------------------------------------------------------------------- run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


HEAVY = {"tune": [pytest.mark.slow]}
"""Examples that import torch."""


def checked(docstring: str, names: dict[str, Any]) -> doctest.TestResults:
    test = doctest.DocTestParser().get_doctest(docstring, names, "example", None, 0)
    assert test.examples
    return doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False)


@pytest.mark.parametrize("name", [pytest.param(name, marks=HEAVY.get(name, ())) for name in methods(Memory)])
def test_examples_of_methods_run(name: str, folder: Path) -> None:
    with Memory(":memory:") as memory:
        memory.add_many(EVENTS)
        assert checked(getattr(Memory, name).__doc__ or "", {"memory": memory, "Memory": Memory}).failed == 0


@pytest.mark.parametrize("name", [name for name in CONSTRUCTORS + FUNCTIONS if name != "AsyncMemory"])
def test_other_examples_run(name: str, folder: Path) -> None:
    with Memory(":memory:") as memory:
        assert checked(getattr(zettel, name).__doc__ or "", {"memory": memory, "Memory": Memory}).failed == 0


def test_asynchronous_examples_run(folder: Path) -> None:
    """The examples of ``Memory`` are these without ``await``: those that only ``AsyncMemory`` has run here."""

    async def run(docstring: str | None) -> None:
        names = {"AsyncMemory": AsyncMemory}
        source = "".join(example.source for example in doctest.DocTestParser().get_examples(docstring or ""))
        running = eval(compile(source, "example", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        await running

    for documented in (AsyncMemory, AsyncMemory.open, AsyncMemory.close):
        asyncio.run(run(documented.__doc__))
