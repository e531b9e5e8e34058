"""Conversion of model messages to event fields.

OpenAI's (``role`` and ``content``, ``tool_calls``, and the items of its responses), Anthropic's (blocks with
``tool_use`` and ``tool_result``), OpenTelemetry's (``parts``) and LangChain's, serialised or as plain objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .content_blocks import CALL, CALL_OUTPUT, INSTRUCTION_ROLES, ROLES, ToolResult, calls_in, content_of
from .json_values import first_text

KNOWN_ROLES = frozenset({"user", "assistant", "tool"}) | INSTRUCTION_ROLES | ROLES.keys()


def unwrapped(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without LangChain's wrappers, with its role."""
    inner = message
    if isinstance(message.get("kwargs"), dict):  # a constructor, whose name is the last of its id
        names = message.get("id")
        kind = str(names[-1]) if isinstance(names, list) and names else ""
        inner = {"role": kind.removesuffix("Chunk").removesuffix("Message").lower(), **message["kwargs"]}
    elif isinstance(message.get("data"), dict) and "role" not in message:
        inner = {"role": message.get("type"), **message["data"]}
    role: Any = inner.get("role") or _role_of_item(inner) or inner.get("type")
    return {**inner, "role": ROLES.get(role, role) if isinstance(role, str) else role}


def _role_of_item(message: dict[str, Any]) -> str | None:
    """Return the role of an item of OpenAI's responses, or None for anything else."""
    kind = str(message.get("type"))
    if kind.endswith(CALL_OUTPUT):
        return "tool"
    return "assistant" if kind.endswith(CALL) or kind == "reasoning" else None


def is_message(value: Any) -> bool:
    """Return whether a value is a message with a known role."""
    if not isinstance(value, dict):
        return False
    role = unwrapped(value)["role"]
    return isinstance(role, str) and role in KNOWN_ROLES


def message_events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield speaker, role, content, payload and metadata of the events in a message; nothing for system messages.

    Tool results come before the text of the message. Without a name the role is the speaker.
    """
    role = message["role"]
    if role in INSTRUCTION_ROLES:
        return
    is_item = _role_of_item(message) is not None
    content = content_of([message] if is_item else message.get("content", message.get("parts")))
    for result in content.results:
        yield from _result_events(result)
    if role == "tool":
        if not content.results:
            value = message.get("content")
            if isinstance(value, (str, list)) and (content.text or not value):
                value = content.text
            yield from _result_events(ToolResult(value, message.get("name"), message.get("tool_call_id")))
        return
    calls = [*content.calls, *(call for call in calls_in(message) if call not in content.calls)]
    text = content.text or first_text(message.get("refusal"), blank=True) or ""
    if text or calls:
        yield {
            "speaker": (None if is_item else first_text(message.get("name"))) or role,
            "role": role,
            "content": text,
            "payload": {"calls": calls} if calls else None,
            "metadata": {},
        }


def _result_events(result: ToolResult) -> Iterator[dict[str, Any]]:
    """Yield a tool result: a text as content, anything else as payload."""
    text = result.value if isinstance(result.value, str) else ""
    payload = None if isinstance(result.value, str) else result.value
    if text.strip() or payload is not None:
        details = {"tool": result.tool, "call": result.call}
        metadata = {key: value for key, value in details.items() if isinstance(value, str)}
        yield {"speaker": "tool", "role": "tool", "content": text, "payload": payload, "metadata": metadata}
