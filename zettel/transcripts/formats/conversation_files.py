"""Conversations in an assistant's export: ``conversations.json`` alone, in its folder or in its zip.

Large exports have several of these files: ``conversations-000.json`` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from zettel.model import Source
from zettel.transcripts import Record
from zettel.transcripts.archive_tree import File, files, files_inside, is_tree, unmatched_files
from zettel.transcripts.parsing.json_keys import keys_in
from zettel.transcripts.parsing.json_records import open_json
from zettel.transcripts.records import rejected

_NAME = re.compile(r"conversations(?:-\d+)?\.json")
# An export also contains lists, uploaded files, files by the assistant (user-…/), and pictures, also by conversation.
_OWN = re.compile(
    rf"{_NAME.pattern}|(?:export_manifest|memories|message_feedback|model_comparisons|projects|shared_conversations|user|"
    r"user_settings|users)\.json|file[-_].*|(?:user-[^/]*|dalle-generations|[\da-f]{8}-[\da-f-]{27})/.*"
)


class AssistantConversation(NamedTuple):
    """The fields of a conversation, and the file with the conversation's number."""

    source: Source
    fields: dict[str, Any]


def looks_like(path: Path, head: bytes, marks: set[str]) -> bool:
    """Return whether the path is, or contains, JSON with all of ``marks`` as keys."""
    if is_tree(path):
        first = next(_files_in_tree(path), None)
        if first is None:
            return False
        head = first.head()
    return keys_in(head) >= marks


def extra_files(path: Path) -> Iterator[File]:
    """Yield the files of a folder or zip that do not belong to the export."""
    return unmatched_files(path, _OWN)


def messages(
    path: Path, assistant: str, key: str, kind: type, read: Callable[[AssistantConversation], Iterator[Record]]
) -> Iterator[Record]:
    """Yield the records that ``read`` returns for each conversation; a conversation has a ``kind`` under ``key``.

    One conversation at a time is in memory. Raises ``BadRecord`` if the rest cannot be read.
    """
    for file in _files_in_tree(path) if is_tree(path) else files(path):
        with open_json(file) as json:
            conversations = json.items() if json.peek() == "[" else iter([json.value()])
            for place, fields in enumerate(conversations, start=1):
                source = Source(file=file.where, position=str(place))
                if not isinstance(fields, dict):
                    yield rejected(source, "expected an object with a conversation")
                elif not isinstance(fields.get(key), kind):
                    yield rejected(source, f"no conversation of {assistant}: it has no {key}")
                else:
                    yield from read(AssistantConversation(source, fields))


def branch_ending_in(last: Any, parents: Mapping[str, Any]) -> list[str]:
    """Return the ids from the root to ``last``; ``parents`` contains the parent of each id. Cycles are cut."""
    branch: dict[str, None] = {}
    while isinstance(last, str) and last in parents and last not in branch:
        branch[last] = None
        last = parents[last]
    return list(reversed(branch))


def _files_in_tree(path: Path) -> Iterator[File]:
    return (file for name, file in files_inside(path) if _NAME.fullmatch(name))
