"""Claude Code's transcripts: the JSON lines under ``~/.claude/projects``.

A line's ``uuid`` is the id of its event: a resumed session repeats lines of an earlier one. The session is the
``sessionId``; a sub-agent has a session of its own, ``SESSION/agent-ID``, and its task is a message of the assistant.
Tool calls are the payload, tool results have the role ``tool``; long texts in both are shortened. Skipped: reasoning,
the summary that a compaction adds (its turns are in the file), reminders, and recalled memory. The metadata contains
the folder as ``project``, and ``model``, ``tool`` and ``call``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zettel.model import Source
from zettel.transcripts import Record, Rejected
from zettel.transcripts.parsing.json_keys import keys_in
from zettel.transcripts.parsing.json_records import json_records
from zettel.transcripts.parsing.json_values import as_dict, present, text_at
from zettel.transcripts.projects import PROJECT
from zettel.transcripts.records import ContentKeys, rejected

from .agent_turns import AgentSession, turn_records

name = "claude-code"

_KEYS = {"sessionId", "uuid", "parentUuid"}
_ROLES = ("user", "assistant")
_SYNTHETIC = "<synthetic>"
"""The model of messages that Claude Code writes itself, such as errors of the API."""


def sniff(path: Path, head: bytes) -> bool:
    """Recognise JSON lines with Claude Code's keys."""
    return keys_in(head) >= _KEYS


def read(path: Path) -> Iterator[Record]:
    """Yield the turns in order; one line at a time is in memory. Raises ``BadRecord``."""
    session = AgentSession(None, False, {}, {}, ContentKeys())
    for entry in json_records(path):
        if isinstance(entry, Rejected):
            yield entry
            continue
        line = as_dict(entry.value)
        if PROJECT not in session.metadata:
            session.metadata.update(present({PROJECT: text_at(line, "cwd")}))
        if line.get("type") in _ROLES:
            yield from _turn(line, session, entry.source)


def _turn(line: dict[str, Any], session: AgentSession, source: Source) -> Iterator[Record]:
    message = line.get("message")
    if not isinstance(message, dict):
        yield rejected(source, "expected a message with role and content")
        return
    if line.get("isMeta") or line.get("isCompactSummary") or message.get("model") == _SYNTHETIC:
        return
    name, metadata = text_at(line, "sessionId"), session.metadata | present({"model": text_at(message, "model")})
    is_subagent = line.get("isSidechain") is True
    if is_subagent:
        agent = text_at(line, "agentId")
        name = "/".join(filter(None, (name, "agent" if agent is None else f"agent-{agent}")))
        metadata |= present({"agent": agent})
    session = session._replace(name=name, is_subagent=is_subagent, metadata=metadata)
    message = {**message, "role": line["type"]}
    yield from turn_records(message, session, id=text_at(line, "uuid"), at=line.get("timestamp"), source=source)
