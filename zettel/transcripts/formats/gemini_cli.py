"""Gemini CLI's chats: ``session-*.jsonl``, or ``.json`` of older versions, under ``~/.gemini/tmp/PROJECT/chats``.

The last version of a message counts, and a rewound message does not. A message's id is its own. Tool calls are the
payload, tool results have the role ``tool``; long texts in both are shortened. Skipped: thoughts, notices for the
screen, commands such as ``/help``, and the context that a hook added. The metadata contains the folder as ``project``
if the file is beside Gemini CLI's note of it, and ``model``, ``tool`` and ``call``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from zettel.model import Source
from zettel.transcripts import Record, Rejected
from zettel.transcripts.parsing.json_keys import keys_in
from zettel.transcripts.parsing.json_records import json_records
from zettel.transcripts.parsing.json_values import as_dict, dicts_in, present, text_at
from zettel.transcripts.projects import PROJECT
from zettel.transcripts.records import ContentKeys, at_position, rejected

from .agent_turns import AgentSession, turn_records

name = "gemini-cli"

_KEYS = {"sessionId", "projectHash"}
_ROLES = {"user": "user", "gemini": "assistant"}
_ROOT_FILE = ".project_root"
_MAX_PATH = 4_096
_COMMANDS = ("/", "?")


class _Chat(NamedTuple):
    fields: dict[str, Any]
    messages: dict[str, tuple[Source, dict[str, Any]]]
    """The last version of each message by id, in order."""


def sniff(path: Path, head: bytes) -> bool:
    """Recognise JSON with Gemini CLI's keys."""
    return keys_in(head) >= _KEYS


def read(path: Path) -> Iterator[Record]:
    """Yield the turns in order; one session is in memory. Raises ``BadRecord``."""
    chat = _Chat({}, {})
    for entry in json_records(path):
        if isinstance(entry, Rejected):
            yield entry
        elif isinstance(entry.value, dict):
            _apply(chat, entry.value, entry.source)
        else:
            yield rejected(entry.source, "expected a session or a message of Gemini CLI")
    session = AgentSession(
        text_at(chat.fields, "sessionId") or path.stem,
        chat.fields.get("kind") == "subagent",
        present({PROJECT: _project(path)}),
        {},
        ContentKeys(),
    )
    for source, message in chat.messages.values():
        yield from _turn(message, session, source)


def _apply(chat: _Chat, line: dict[str, Any], source: Source) -> None:
    """Apply one line: a message, the session's fields, a change of them, or a return to an earlier message."""
    messages = chat.messages
    changed = as_dict(line.get("$set")) or line
    if isinstance(back := line.get("$rewindTo"), str):
        ids = list(messages)
        for id in ids[ids.index(back) if back in messages else 0 :]:
            del messages[id]
    elif "$set" not in line and "messages" not in line and isinstance(line.get("id"), str):
        messages[line["id"]] = (source, line)
    else:
        chat.fields.update(changed)
        if isinstance(changed.get("messages"), list):
            messages.clear()
            for place, message in enumerate(dicts_in(changed["messages"]), start=1):
                if isinstance(message.get("id"), str):
                    messages[message["id"]] = (at_position(source, f"{source.position}[{place}]"), message)


def _turn(message: dict[str, Any], session: AgentSession, source: Source) -> Iterator[Record]:
    kind = message.get("type")
    role = _ROLES.get(kind) if isinstance(kind, str) else None
    if role is None:
        return
    blocks = _blocks(message.get("content"))
    if role == "user" and blocks and isinstance(blocks[0], str) and blocks[0].lstrip().startswith(_COMMANDS):
        return
    calls = dicts_in(message.get("toolCalls"))
    session = session._replace(metadata=session.metadata | present({"model": text_at(message, "model")}))
    turn = {"role": role, "content": blocks, "tool_calls": [_call(call) for call in calls]}
    at: Any = message.get("timestamp")
    yield from turn_records(turn, session, id=message["id"], at=at, source=source)
    for nth, call in enumerate(calls, start=1):
        if call.get("result") is not None:
            result = {"role": "tool", "content": [_result(call)]}
            id = f"{message['id']}/{text_at(call, 'id') or nth}"
            yield from turn_records(result, session, id=id, at=call.get("timestamp", at), source=source)


def _blocks(content: Any) -> list[Any]:
    """Return the parts of a content as blocks, without thoughts and without calls, which ``toolCalls`` repeats."""
    parts = content if isinstance(content, list) else [content]
    blocks: list[Any] = []
    for part in parts:
        if isinstance(part, str):
            blocks.append(part)
        elif isinstance(part, dict) and not part.get("thought"):
            if "inlineData" in part or "fileData" in part:
                blocks.append({"type": "file"})
            elif "functionCall" not in part and "functionResponse" not in part:
                blocks.append(part.get("text") or "")
    return blocks


def _call(call: dict[str, Any]) -> dict[str, Any]:
    return {"name": call.get("name"), "args": call.get("args"), "id": call.get("id")}


def _result(call: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's result as a block: the output as text if it is one."""
    outputs: list[Any] = []
    result = call["result"]
    for part in result if isinstance(result, list) else [result]:
        response = as_dict(as_dict(part).get("functionResponse")).get("response")
        output = as_dict(response).get("output", response)
        outputs.append(part if output is None else output)
    output = "\n".join(outputs) if all(isinstance(one, str) for one in outputs) else outputs
    return {"type": "tool_result", "content": output, "tool_use_id": call.get("id"), "name": call.get("name")}


def _project(path: Path) -> str | None:
    """Return the folder of the project that Gemini CLI noted two or three folders above a chat, or None."""
    for folder in path.absolute().parents[1:3]:
        note = folder / _ROOT_FILE
        try:
            with note.open(encoding="utf-8") as file:
                return file.read(_MAX_PATH).strip() or None
        except (OSError, ValueError):
            continue
    return None
