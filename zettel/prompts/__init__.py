"""The prompts of language models, one text file each, with a version that every note records.

A file opens with its name and version between two lines of dashes; then come ``## system`` and worked examples, each
as ``## user`` and ``## assistant``. Change a prompt by raising its version: what the model is told is part of the key
of kept answers. All of a prompt stands before what changes from request to request, so that providers can cache it.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_FILE = re.compile(r"---\nname: (?P<name>[\w-]+)\nversion: (?P<version>\d+)\n---\n(?P<body>.*)", re.DOTALL)
_PART = re.compile(r"^## (system|user|assistant)\n", re.MULTILINE)


class Prompt(NamedTuple):
    """What a model is told: ``name`` with version ("annotate/1"), ``system``, and examples of question and answer."""

    name: str
    system: str
    examples: tuple[tuple[str, str], ...]


@cache
def load_prompt(name: str) -> Prompt:
    """The prompt that the file ``name``.md holds; ``ValueError`` if that file is not written as a prompt."""
    text = files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8")
    match = _FILE.fullmatch(text)
    if match is None or match["name"] != name:
        raise ValueError(f"{name}.md does not open with its name and version")
    opening, *parts = _PART.split(match["body"])
    kinds, bodies = parts[0::2], [body.strip() for body in parts[1::2]]
    if opening.strip() or kinds != ["system", *["user", "assistant"] * (len(kinds) // 2)]:
        raise ValueError(f"{name}.md is not a system part and pairs of user and assistant")
    return Prompt(f"{name}/{match['version']}", bodies[0], tuple(zip(bodies[1::2], bodies[2::2], strict=True)))
