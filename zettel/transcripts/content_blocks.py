"""What is in a message to or from a model, in the shapes of OpenAI's, Anthropic's and LangChain's programs.

Its text is what people read. Pictures, sounds and files are told in brackets by their name or caption, never by
their bytes. A model's calls of tools are data, ``{"tool": …, "input": …, "id": …}``, and what a tool answered is a
message of its own. What a model thought in silence is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

UNSAID = frozenset({"system", "developer"})
"""Roles of those who instruct a model: nobody said these texts in the conversation."""

ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool"}
"""Other programs' words for the same."""

_TEXTS = frozenset({"text", "input_text", "output_text", "summary_text"})
_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content", "thoughts"})
_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
CALL, CALL_OUTPUT = "_call", "_call_output"
"""How the kinds of all other calls end, and of what they gave: OpenAI has a kind for each tool of its own."""
_GIVEN = ("input", "arguments", "args", "action", "queries", "code")
_MEDIA = {"image": "image", "image_url": "image", "input_image": "image", "input_audio": "audio", "audio": "audio",
          "video": "video", "document": "file", "file": "file", "input_file": "file", "blob": "file",
          "uri": "file"}  # fmt: skip
_NAMES = ("filename", "file_name", "title", "name", "alt", "caption")


class Answer(NamedTuple):
    """What a tool answered, to which call."""

    said: Any
    tool: str | None
    call: str | None


class Content(NamedTuple):
    """A message's parts."""

    text: str
    calls: list[dict[str, Any]]
    answers: list[Answer]


def content_of(value: Any) -> Content:
    """What a message's ``content`` holds: a text, a block, or a list of these."""
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    answers: list[Answer] = []
    for block in value if isinstance(value, list) else [value]:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict):
            kind = str(block.get("type") or "text")
            if kind in _CALLS or kind.endswith(CALL):
                calls.append(call_of(block))
            elif kind.endswith(("tool_result", "tool_call_response", CALL_OUTPUT)):
                answers.append(_answer(block))
            elif kind not in _THOUGHTS:
                texts.append(_told(kind, block))
    return Content("\n\n".join(text for text in texts if text.strip()), calls, answers)


def call_of(block: dict[str, Any]) -> dict[str, Any]:
    """A call of a tool as data: arguments that are JSON in a text are read."""
    function = block.get("function")
    inner = function if isinstance(function, dict) else block
    given = next((inner[key] for key in _GIVEN if key in inner), None)
    id = block.get("call_id") or block.get("id")
    kind = str(block.get("type"))
    tool = inner.get("name") or (kind.removesuffix(CALL) if kind.endswith(CALL) else None)
    told = {"id": id, "output": block.get("output")}  # a call by MCP tells what it gave
    return {"tool": tool, "input": parsed(given)} | {key: value for key, value in told.items() if value}


def calls_in(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The calls that stand beside a message's content, as OpenAI and LangChain have them."""
    extra = message.get("additional_kwargs")
    found = message.get("tool_calls") or (extra.get("tool_calls") if isinstance(extra, dict) else None)
    for call in found if isinstance(found, list) else []:
        if isinstance(call, dict):
            yield call_of(call)
    if isinstance(message.get("function_call"), dict):
        yield call_of(message["function_call"])


def parsed(value: Any) -> Any:
    """A text's JSON object or array; everything else as it is."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def told_media(kind: str, name: Any = None) -> str:
    """As ``[image: a heron]``; without a name ``[image]``."""
    named = " ".join(name.split()) if isinstance(name, str) else ""
    return f"[{kind}: {named}]" if named else f"[{kind}]"


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _told(kind: str, block: dict[str, Any]) -> str:
    if kind in _MEDIA:
        inner = as_dict(block.get(kind))
        spoken = inner.get("transcript") or block.get("transcript")
        if isinstance(spoken, str):
            return spoken
        names = (value for one in (block, inner) for key in _NAMES if isinstance(value := one.get(key), str))
        source = as_dict(block.get("source"))
        told = told_media(_MEDIA[kind], next(names, None))
        written = source.get("data") if source.get("type") == "text" else None
        return f"{told}\n{written}" if isinstance(written, str) else told
    text = next((block[key] for key in ("text", "refusal", "content", "value") if key in block), "")
    text = text.get("value") if isinstance(text, dict) else text
    return text if isinstance(text, str) else ""


def _answer(block: dict[str, Any]) -> Answer:
    said = next((block[key] for key in ("content", "output", "response", "result") if key in block), None)
    if isinstance(said, list) and all(isinstance(one, dict) and "type" in one for one in said):
        said = content_of(said).text
    if isinstance(said, dict) and "image_url" in said:  # a screenshot
        said = told_media("image")
    call = block.get("tool_use_id") or block.get("call_id") or block.get("id")
    tool = block.get("name")
    return Answer(said, tool if isinstance(tool, str) else None, call if isinstance(call, str) else None)
