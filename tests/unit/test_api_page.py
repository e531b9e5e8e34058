"""docs/api.md documents the public API: methods with their arguments, names to import, the error tree."""

from __future__ import annotations

import inspect
import json
import re
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import zettel
from zettel import AsyncMemory, Memory, errors

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
METHODS = sorted({name for api in (Memory, AsyncMemory) for name in dir(api) if not name.startswith("_")})
ERRORS = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.ZettelError)}
REST = "…"
"""Ends the arguments of a method that the page documents in full at another place."""
ALIKE = {"search_many": "search"}
"""Methods with the named arguments of another method, which documents them."""


def default(value: Any) -> str:
    value = value.value if isinstance(value, Enum) else value
    return json.dumps(value) if isinstance(value, str) else repr(value)


def arguments(call: Any) -> str:
    """Return the parameters of a function or a class as the page writes them: names and defaults, without types."""
    parameters = [parameter for parameter in inspect.signature(call).parameters.values() if parameter.name != "self"]
    words: list[str] = []
    for place, parameter in enumerate(parameters):
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        name = f"**{parameter.name}" if parameter.kind is parameter.VAR_KEYWORD else parameter.name
        words.append(name if parameter.default is parameter.empty else f"{name}={default(parameter.default)}")
        after = parameters[place + 1] if place + 1 < len(parameters) else None
        if parameter.kind is parameter.POSITIONAL_ONLY and (
            after is None or after.kind is not parameter.POSITIONAL_ONLY
        ):
            words.append("/")
    return ", ".join(words)


def written(name: str) -> list[str]:
    """Return the text between the parentheses wherever the page writes this call."""
    calls = re.findall(rf"(?<![\w.]){name}\(((?:[^()]|\(\))*)\)", PAGE)
    return [" ".join(call.split()) for call in calls]


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_documented_with_their_arguments(name: str) -> None:
    call = arguments(getattr(AsyncMemory, name))
    short = [part.removesuffix(REST) for part in written(name) if part.endswith(REST)]
    assert all(call.startswith(part) for part in short), f"docs/api.md has {name}({short}), the code has {name}({call})"
    if name in ALIKE:
        assert short, f"docs/api.md does not contain {name}"
        assert call.partition(" *, ")[2] == arguments(getattr(AsyncMemory, ALIKE[name])).partition(" *, ")[2]
    else:
        assert call in written(name), f"docs/api.md does not contain {name}({call})"


CLASSES = ["Budget", "Decay", "LiteLLM", "LiteLLMAnnotator", "Memory", "RayRunner", "Scope", "wrap"]


@pytest.mark.parametrize("name", CLASSES)
def test_classes_are_documented_with_their_arguments(name: str) -> None:
    expected = arguments(getattr(zettel, name))
    assert expected in written(name), f"docs/api.md does not contain {name}({expected})"


@pytest.mark.parametrize("name", zettel.__all__)
def test_importable_names_are_documented(name: str) -> None:
    (table,) = re.findall(r"^## Exported names$(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    assert name in re.findall(r"`(\w+)`", "".join(row.partition("|")[2].partition("|")[0] for row in rows(table)))


def rows(table: str) -> list[str]:
    return [line for line in table.splitlines() if line.startswith("| `")]


def test_error_tree_is_documented() -> None:
    (tree,) = re.findall(r"^ZettelError$.*?(?=^```$)", PAGE, re.MULTILINE | re.DOTALL)
    above: list[str] = []
    documented: set[tuple[str, str]] = set()
    for indent, name in re.findall(r"^( *)(\w+)", tree, re.MULTILINE):
        above[len(indent) // 4 :] = [name]
        documented.add((name, above[-2] if len(above) > 1 else "Exception"))
    assert documented == {(kind.__name__, kind.__bases__[0].__name__) for kind in ERRORS}


def test_documented_errors_and_methods_exist() -> None:
    assert set(re.findall(r"`([a-z_]+)\(", PAGE)) <= {*METHODS, "help", "wrap"}
