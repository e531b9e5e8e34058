"""The conversations of an assistant's export: ``conversations.json``, alone, in its folder or in the zip it came in.

Large exports have several of them: ``conversations-000.json`` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from zettel.model import Source

from . import HEAD_BYTES, Record, Rejected
from .json_keys import keys_in
from .json_stream import JsonStream
from .records import rejected
from .trees import File, files, is_tree

_NAME = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")


class Conversation(NamedTuple):
    """One conversation as it stands in the file."""

    source: Source
    """The file, and the conversation's number there."""
    fields: dict[str, Any]


def looks_like(path: Path, head: bytes, marks: set[str]) -> bool:
    """Whether it is JSON with all of ``marks`` as keys, or a folder or zip whose conversations are."""
    if is_tree(path):
        first = next(_in_tree(path), None)
        if first is None:
            return False
        with first.open() as stream:
            head = stream.read(HEAD_BYTES)
    return keys_in(head) >= marks


def messages(
    path: Path, of: str, key: str, kind: type, read: Callable[[Conversation], Iterator[Record]]
) -> Iterator[Record]:
    """What ``read`` makes of each conversation of the assistant ``of``: one that has a ``kind`` under ``key``.

    One conversation at a time is in memory. Raises ``BadRecord`` where no more can be read.
    """
    for conversation in _conversations(path):
        if isinstance(conversation, Rejected):
            yield conversation
        elif not isinstance(conversation.fields.get(key), kind):
            yield rejected(conversation.source, f"no conversation of {of}: it has no {key}")
        else:
            yield from read(conversation)


def _conversations(path: Path) -> Iterator[Conversation | Rejected]:
    for file in _in_tree(path) if is_tree(path) else files(path):
        with file.open() as stream:
            json = JsonStream(stream, file.where)
            found = json.items() if json.peek() == "[" else iter([json.value()])
            for place, fields in enumerate(found, start=1):
                source = Source(file=file.where, position=str(place))
                if isinstance(fields, dict):
                    yield Conversation(source, fields)
                else:
                    yield rejected(source, "expected an object with a conversation")
            json.end()


def _in_tree(path: Path) -> Iterator[File]:
    return (file for file in files(path) if _NAME.fullmatch(file.name))
