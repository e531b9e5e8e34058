"""Loads the prompts of language models: one text file each, with a version that every note records.

A file starts with its name and version between two lines of dashes. Then follow ``## system`` and worked examples, each
as ``## user`` and ``## assistant``. Raise the version when you change a prompt: cached answers depend on its text. The
constant part of a request comes first, so that providers can cache it.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_FILE = re.compile(r"---\nname: (?P<name>[\w-]+)\nversion: (?P<version>\d+)\n---\n(?P<body>.*)", re.DOTALL)
_PART = re.compile(r"^## (system|user|assistant)\n", re.MULTILINE)


class Prompt(NamedTuple):
    """A prompt: ``name`` with version ("annotate/1"), ``system``, and examples of question and answer."""

    name: str
    system: str
    examples: tuple[tuple[str, str], ...]


@cache
def load_prompt(name: str) -> Prompt:
    """Load the prompt in ``name``.md. Raises ``ValueError`` if the file is malformed."""
    text = files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8")
    match = _FILE.fullmatch(text)
    if match is None or match["name"] != name:
        raise ValueError(f"{name}.md does not open with its name and version")
    opening, *parts = _PART.split(match["body"])
    kinds, bodies = parts[0::2], [body.strip() for body in parts[1::2]]
    if opening.strip() or kinds != ["system", *["user", "assistant"] * (len(kinds) // 2)]:
        raise ValueError(f"{name}.md is not a system part and pairs of user and assistant")
    return Prompt(f"{name}/{match['version']}", bodies[0], tuple(zip(bodies[1::2], bodies[2::2], strict=True)))
