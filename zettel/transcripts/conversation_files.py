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
from .trees import File, files, is_tree, others, wrapping

_NAME = re.compile(r"conversations(?:-\d+)?\.json")
# With them come lists, what was sent to the assistant, what it wrote (user-…/), and pictures, also by conversation.
_OWN = re.compile(
    rf"{_NAME.pattern}|(?:export_manifest|memories|message_feedback|model_comparisons|projects|shared_conversations|user|"
    r"user_settings|users)\.json|file[-_].*|(?:user-[^/]*|dalle-generations|[\da-f]{8}-[\da-f-]{27})/.*"
)


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


def beside(path: Path) -> Iterator[File]:
    """Files in an export's folder or zip that are neither conversations nor come with them."""
    return others(path, _OWN)


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
    found = list(files(path))
    base = wrapping(found)
    return (file for file in found if _NAME.fullmatch(file.name.removeprefix(base)))
