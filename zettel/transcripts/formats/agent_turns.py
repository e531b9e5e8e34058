"""Turns of coding agents: what a person, the agent and its tools wrote, without what programs added to it.

Agents record more than a conversation: reminders to the model, output of local commands, the contents of whole files.
``turn_records`` removes the additions, shortens tool calls and results, and assigns a sub-agent's task to the agent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from zettel.model import Source
from zettel.transcripts import Record
from zettel.transcripts.parsing.chat_messages import message_events
from zettel.transcripts.parsing.content_blocks import parsed
from zettel.transcripts.parsing.json_values import as_dict, present
from zettel.transcripts.parsing.timestamps import iso_time
from zettel.transcripts.records import ContentKeys, record, rejected

RECALLED = "zettel-memory"
"""The tag around recalled memory in a prompt, which is never stored again."""
MAX_TOOL_TEXT = 1_000
"""Characters of a text in a tool call or a tool result: its beginning and its end."""

_ADDED = (
    *(RECALLED, "system-reminder", "hook_context", "session_context", "local-command-caveat", "local-command-stdout"),
    *("local-command-stderr", "bash-stdout", "bash-stderr", "task-notification", "ide_opened_file", "ide_selection"),
    *("command-message", "user-prompt-submit-hook"),
)
_ADDITION = re.compile(rf"<({'|'.join(_ADDED)})>.*?</\1>\s*|<{RECALLED}>.*", re.DOTALL)
_WHOLE = re.compile(  # messages that Codex adds
    r"(?:# AGENTS\.md instructions for [^\n]*\s*)?"
    r"<(environment_context|user_instructions|INSTRUCTIONS|turn_aborted|subagent_notification|skill)>.*</\1>",
    re.DOTALL,
)
_COMMAND = re.compile(r"<command-(?:name|args)>(.*?)</command-(?:name|args)>\s*", re.DOTALL)
_SHELL = re.compile(r"<bash-input>(.*?)</bash-input>", re.DOTALL)
_RECALL = re.compile(r"\bzettel\b.*\b(?:search|context|session|query|show|export)\b", re.DOTALL)
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]]*\]")


def written_text(text: str) -> str:
    """Return what a person or a model wrote of a message: without the blocks that a program or a hook added.

    Commands become what the person typed, such as ``/review main`` or ``! make test``.
    """
    if "<" in text:
        if _WHOLE.fullmatch(text.strip()):
            return ""
        text = _ADDITION.sub("", text)
        text = _COMMAND.sub(lambda match: f"{match[1].strip()} ", text)
        text = _SHELL.sub(lambda match: f"! {match[1].strip()}", text)
    return _INTERRUPTED.sub("", text).strip()


class AgentSession(NamedTuple):
    """The session of the turns that follow."""

    name: str | None
    is_subagent: bool
    """True if the user of this session is the agent that called it."""
    metadata: dict[str, Any]
    tools: dict[str, str]
    """The names of tools by call, to name the tool of a result; the calls of each turn are added."""
    keys: ContentKeys


def turn_records(
    message: dict[str, Any], session: AgentSession, *, id: str | None, at: Any, source: Source
) -> Iterator[Record]:
    """Yield the events of a message with its role (see ``message_events``), or a rejection; nothing if it is empty.

    ``at`` is the time as ISO 8601. Further events of a message get the ids ``ID/2``, ``ID/3``, …
    """
    try:
        occurred_at = iso_time(at)
        events = list(_events(message, session))
    except ValueError as error:
        yield rejected(source, str(error))
        return
    except RecursionError:
        yield rejected(source, "the JSON is nested too deeply")
        return
    for nth, fields in enumerate(events, start=1):
        event = {**fields, "session": session.name, "occurred_at": occurred_at}
        event["metadata"] = session.metadata | fields["metadata"]
        if id is not None:
            event["id"] = id if nth == 1 else f"{id}/{nth}"
        yield record(event, source, session.keys)


def _events(message: dict[str, Any], session: AgentSession) -> Iterator[dict[str, Any]]:
    for fields in message_events(message):
        payload = fields["payload"]
        if fields["role"] == "tool":
            tool = session.tools.get(fields["metadata"].get("call", "")) or fields["metadata"].get("tool")
            if tool == RECALLED:
                continue
            content, payload = shortened(_output(fields["content"])), shortened(payload)
            fields["metadata"] |= present({"tool": tool})
        else:
            content = written_text(fields["content"])
            calls = [shortened(call) for call in as_dict(payload).get("calls", [])]
            payload = {"calls": calls} if calls else None
            session.tools.update((call["id"], _tool(call)) for call in calls if isinstance(call.get("id"), str))
            if session.is_subagent and fields["role"] == "user":
                fields |= {"speaker": "assistant", "role": "assistant"}
        if content or payload is not None:
            yield {**fields, "content": content, "payload": payload}


def _tool(call: dict[str, Any]) -> str:
    """Return the name of the tool of a call, or RECALLED for one that reads a memory of zettel."""
    name = call["tool"] if isinstance(call.get("tool"), str) else ""
    return RECALLED if "zettel" in name or _RECALL.search(str(call.get("input"))) else name


def shortened(value: Any) -> Any:
    """Return a JSON value with the middle of its long texts left out."""
    if isinstance(value, str) and len(value) > MAX_TOOL_TEXT:
        half = MAX_TOOL_TEXT // 2
        return f"{value[:half]}\n[… {len(value) - 2 * half:,} characters …]\n{value[-half:]}"
    if isinstance(value, list):
        return [shortened(item) for item in value]
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    return value


def _output(text: str) -> str:
    """Return the text of a result, which Codex wraps in JSON with its exit status."""
    if text.startswith('{"output":'):
        output = as_dict(parsed(text)).get("output")
        return output if isinstance(output, str) else text
    return _ADDITION.sub("", text) if RECALLED in text else text
