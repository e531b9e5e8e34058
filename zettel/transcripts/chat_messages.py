"""A message to or from a model as the fields of events, in whichever of the usual shapes it comes.

OpenAI's (``role`` and ``content``, ``tool_calls``, and the items of its responses), Anthropic's (blocks with
``tool_use`` and ``tool_result``), OpenTelemetry's (``parts``) and LangChain's, serialised or as plain objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .content_blocks import CALL, CALL_OUTPUT, ROLES, UNSAID, Answer, calls_in, content_of

KNOWN_ROLES = frozenset({"user", "assistant", "tool"}) | UNSAID | ROLES.keys()


def unwrapped(message: dict[str, Any]) -> dict[str, Any]:
    """A message out of the wrappings that LangChain puts around it, with its role."""
    inner = message
    if isinstance(message.get("kwargs"), dict):  # a constructor, whose name is the last of its id
        names = message.get("id")
        kind = str(names[-1]) if isinstance(names, list) and names else ""
        called = kind.removesuffix("Chunk").removesuffix("Message").lower()
        inner = {"role": called, **message["kwargs"]}
    elif isinstance(message.get("data"), dict) and "role" not in message:
        inner = {"role": message.get("type"), **message["data"]}
    role: Any = inner.get("role") or _role_of_item(inner) or inner.get("type")
    return {**inner, "role": ROLES.get(role, role) if isinstance(role, str) else role}


def _role_of_item(message: dict[str, Any]) -> str | None:
    """Whose the items of OpenAI's responses are that have no role; None for anything else."""
    kind = str(message.get("type"))
    if kind.endswith(CALL_OUTPUT):
        return "tool"
    return "assistant" if kind.endswith(CALL) or kind == "reasoning" else None


def is_message(value: Any) -> bool:
    """Whether it is one of the known shapes: it has a role that is known, and says something or calls."""
    if not isinstance(value, dict):
        return False
    role = unwrapped(value)["role"]
    return isinstance(role, str) and role in KNOWN_ROLES


def told_in(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Role, content, payload and metadata of the events in an unwrapped message; none for what instructs a model.

    What tools answered comes before what was said with it. The speaker's name, if there is one, is the role.
    """
    role = message["role"]
    if role in UNSAID:
        return
    is_item = _role_of_item(message) is not None
    content = content_of([message] if is_item else message.get("content", message.get("parts")))
    for answer in content.answers:
        yield from _answered(answer)
    if role == "tool":
        if not content.answers:
            said = message.get("content")
            said = content.text if isinstance(said, (str, list)) and (content.text or not said) else said
            yield from _answered(Answer(said, message.get("name"), message.get("tool_call_id")))
        return
    calls = [*content.calls, *(call for call in calls_in(message) if call not in content.calls)]
    refusal = message.get("refusal")
    text = content.text or (refusal if isinstance(refusal, str) else "")
    if text or calls:
        speaker = None if is_item else message.get("name")
        yield {
            "role": speaker if isinstance(speaker, str) and speaker.strip() else role,
            "content": text,
            "payload": {"calls": calls} if calls else None,
            "metadata": {},
        }


def _answered(answer: Answer) -> Iterator[dict[str, Any]]:
    """A text as content, anything else as payload."""
    text = answer.said if isinstance(answer.said, str) else ""
    payload = None if isinstance(answer.said, str) else answer.said
    if text.strip() or payload is not None:
        told = {"tool": answer.tool, "call": answer.call}
        metadata = {key: value for key, value in told.items() if isinstance(value, str)}
        yield {"role": "tool", "content": text, "payload": payload, "metadata": metadata}
