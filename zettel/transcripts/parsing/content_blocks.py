"""Content blocks of model messages in the shapes of OpenAI, Anthropic and LangChain.

Images, audio and files become their name or caption in brackets. Tool calls are data,
``{"tool": …, "input": …, "id": …}``, and tool results are messages. Reasoning is skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .json_values import as_dict, dicts_in, first_text, present, text_at, value_at

INSTRUCTION_ROLES = frozenset({"system", "developer"})
"""Roles of instructions to a model, which are not part of the conversation."""

ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool"}
"""Role names of other programs."""

CALL, CALL_OUTPUT = "_call", "_call_output"
"""Suffixes of further types of calls and results: OpenAI has a type for each of its tools."""

_REASONING = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content", "thoughts"})
_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_ARGUMENT_KEYS = ("input", "arguments", "args", "action", "queries", "code")
_MEDIA = {"image": "image", "image_url": "image", "input_image": "image", "input_audio": "audio", "audio": "audio",
          "video": "video", "document": "file", "file": "file", "input_file": "file", "blob": "file",
          "uri": "file"}  # fmt: skip
_NAME_KEYS = ("filename", "file_name", "title", "name", "alt", "caption")


class ToolResult(NamedTuple):
    """A tool result with its tool and call id."""

    value: Any
    tool: str | None
    call: str | None


class MessageContent(NamedTuple):
    """Text, tool calls and tool results of a message."""

    text: str
    calls: list[dict[str, Any]]
    results: list[ToolResult]


def content_of(value: Any) -> MessageContent:
    """Parse a message's ``content``: a text, a block, or a list of these."""
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    results: list[ToolResult] = []
    for block in value if isinstance(value, list) else [value]:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict):
            kind = str(block.get("type") or "text")
            if kind in _CALLS or kind.endswith(CALL):
                calls.append(call_of(block))
            elif kind.endswith(("tool_result", "tool_call_response", CALL_OUTPUT)):
                results.append(_result(block))
            elif kind not in _REASONING:
                texts.append(_block_text(kind, block))
    return MessageContent("\n\n".join(text for text in texts if text.strip()), calls, results)


def call_of(block: dict[str, Any]) -> dict[str, Any]:
    """Return a tool call as data; arguments in JSON text are parsed."""
    function = block.get("function")
    inner = function if isinstance(function, dict) else block
    kind = str(block.get("type"))
    tool = inner.get("name") or (kind.removesuffix(CALL) if kind.endswith(CALL) else None)
    # An MCP call contains its result.
    extra_fields = {"id": block.get("call_id") or block.get("id"), "output": block.get("output")}
    return {"tool": tool, "input": parsed(value_at(inner, *_ARGUMENT_KEYS)), **present(extra_fields)}


def calls_in(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the tool calls beside a message's content, as in OpenAI and LangChain."""
    for call in dicts_in(message.get("tool_calls") or as_dict(message.get("additional_kwargs")).get("tool_calls")):
        yield call_of(call)
    if isinstance(message.get("function_call"), dict):
        yield call_of(message["function_call"])


def parsed(value: Any) -> Any:
    """Parse a JSON object or array in a text; return anything else unchanged."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def media_text(kind: str, name: Any = None) -> str:
    """Return ``[image: a heron]``, or ``[image]`` without a name."""
    words = " ".join(name.split()) if isinstance(name, str) else ""
    return f"[{kind}: {words}]" if words else f"[{kind}]"


def with_files(text: str, names: Iterable[str]) -> str:
    """Return a text, followed by ``[file: plan.pdf]`` for each name on a line of its own."""
    return "\n".join([*([text] if text else []), *(media_text("file", name) for name in names)])


def _block_text(kind: str, block: dict[str, Any]) -> str:
    if kind in _MEDIA:
        inner = as_dict(block.get(kind))
        transcript = inner.get("transcript") or block.get("transcript")
        if isinstance(transcript, str):
            return transcript
        name = text_at(block, *_NAME_KEYS, blank=True)
        name = text_at(inner, *_NAME_KEYS, blank=True) if name is None else name
        mark = media_text(_MEDIA[kind], name)
        source = as_dict(block.get("source"))
        text = source.get("data") if source.get("type") == "text" else None
        return f"{mark}\n{text}" if isinstance(text, str) else mark
    text = value_at(block, "text", "refusal", "content", "value")
    return first_text(as_dict(text).get("value"), text, blank=True) or ""


def _result(block: dict[str, Any]) -> ToolResult:
    value = value_at(block, "content", "output", "response", "result")
    if isinstance(value, list) and all(isinstance(item, dict) and "type" in item for item in value):
        value = content_of(value).text
    if isinstance(value, dict) and "image_url" in value:  # a screenshot
        value = media_text("image")
    call = block.get("tool_use_id") or block.get("call_id") or block.get("id")
    return ToolResult(value, text_at(block, "name", blank=True), first_text(call, blank=True))
