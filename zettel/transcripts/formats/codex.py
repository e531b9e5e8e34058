"""Codex's transcripts: ``rollout-*.jsonl`` under ``~/.codex/sessions``.

An event's id is the session's id and the number of the line, which only grows. The session is the id in the first line;
that of a sub-agent states its source, and its task is a message of the assistant. Tool calls are the payload, tool
results have the role ``tool``; long texts in both are shortened. Skipped: reasoning, instructions to the model, the
summary of a compaction (its turns are in the file), and events for the screen, which repeat the turns. The metadata
contains the folder as ``project``, and ``tool`` and ``call``. Files before September 2025 have items without a wrapper.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zettel.transcripts import Record, Rejected
from zettel.transcripts.parsing.chat_messages import is_message, unwrapped
from zettel.transcripts.parsing.json_keys import keys_in
from zettel.transcripts.parsing.json_records import json_records
from zettel.transcripts.parsing.json_values import as_dict, present, text_at
from zettel.transcripts.projects import PROJECT
from zettel.transcripts.records import ContentKeys

from .agent_turns import AgentSession, turn_records

name = "codex"

_META, _ITEM = "session_meta", "response_item"
_WRAPPED = b'"session_meta"'
_BARE = {"id", "timestamp", "instructions"}


def sniff(path: Path, head: bytes) -> bool:
    """Recognise JSON lines that begin with a session's metadata."""
    first = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    keys = keys_in(first)
    if {"timestamp", "type", "payload"} <= keys:
        return _WRAPPED in first[:1_000]
    return keys >= _BARE and "role" not in keys and b"\n" in head


def read(path: Path) -> Iterator[Record]:
    """Yield the turns in order; one line at a time is in memory. Raises ``BadRecord``."""
    session = AgentSession(path.stem, False, {}, {}, ContentKeys())
    is_begun = False
    for entry in json_records(path):
        if isinstance(entry, Rejected):
            yield entry
            continue
        line = as_dict(entry.value)
        wrapped = as_dict(line.get("payload"))
        if line.get("type") == _META or ("type" not in line and "instructions" in line):
            if not is_begun:  # a fork repeats the metadata of the session that it continues
                session = _begun(wrapped or line, session)
                is_begun = True
            continue
        item = wrapped if line.get("type") == _ITEM else {} if "payload" in line else line
        if is_message(item):
            id = f"{session.name}/{entry.source.position}"
            yield from turn_records(unwrapped(item), session, id=id, at=line.get("timestamp"), source=entry.source)


def _begun(meta: dict[str, Any], session: AgentSession) -> AgentSession:
    return session._replace(
        name=text_at(meta, "id") or session.name,
        is_subagent="subagent" in as_dict(meta.get("source")),
        metadata=present({PROJECT: text_at(meta, "cwd")}),
    )
