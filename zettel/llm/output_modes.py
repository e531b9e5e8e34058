"""The output modes that make a model follow a JSON schema, and the chat completion arguments of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from zettel.ports.language_model import Request

ANSWER = "answer"
"""The name of the schema, and of the tool that replaces it."""

PLAIN_REQUEST = "Answer with nothing but JSON that is valid for this JSON schema:"


class OutputMode(IntEnum):
    """Output modes, strictest first; a model that refuses one gets the next."""

    SCHEMA = 0
    TOOL = 1
    PLAIN = 2


COMPLAINTS = {
    OutputMode.SCHEMA: ("response_format", "response format", "schema", "structured output", "grammar"),
    OutputMode.TOOL: ("tool", "function"),
}
"""Words in a refusal that concerns the mode."""


def first_mode(litellm: ModuleType, name: str) -> OutputMode:
    """Return the strictest mode that a model has by LiteLLM's tables; a model that they lack is assumed to have it.

    LiteLLM silently drops parameters that a provider lacks, so these modes are skipped.
    """
    parameters = litellm.get_supported_openai_params(model=name) or ()
    unknown = known_as(litellm, name) is None
    if "response_format" in parameters and (unknown or litellm.supports_response_schema(model=name)):
        return OutputMode.SCHEMA
    if "tools" in parameters and (unknown or litellm.supports_function_calling(model=name)):
        return OutputMode.TOOL
    return OutputMode.PLAIN


def known_as(litellm: ModuleType, name: str) -> Mapping[str, Any] | None:
    """Return the entry of a model in LiteLLM's table, by its name with or without the provider."""
    entry: Mapping[str, Any] | None = litellm.model_cost.get(name) or litellm.model_cost.get(name.partition("/")[2])
    return entry


def is_complaint(mode: OutputMode, message: str) -> bool:
    """Return whether a request was refused because of its mode."""
    lowered = message.lower()
    return any(word in lowered for word in COMPLAINTS.get(mode, ()))


def arguments(request: Request, mode: OutputMode, cached: bool) -> dict[str, Any]:
    """Return the arguments of a chat completion. The constant part of a prompt comes first.

    ``cached``: mark the end of that for a provider that caches only what is marked (Anthropic).
    """
    system = request.system
    if mode is OutputMode.PLAIN:
        system = f"{system}\n\n{PLAIN_REQUEST}\n{json.dumps(request.schema, ensure_ascii=False)}"
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}]
    for question, answer in request.examples:
        messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    if cached:
        last = messages[-1]
        last["content"] = [{"type": "text", "text": last["content"], "cache_control": {"type": "ephemeral"}}]
    messages.append({"role": "user", "content": request.user})
    if mode is OutputMode.SCHEMA:
        schema = {"name": ANSWER, "schema": request.schema, "strict": True}
        return {"messages": messages, "response_format": {"type": "json_schema", "json_schema": schema}}
    if mode is OutputMode.TOOL:
        tool = {"name": ANSWER, "description": "Gives the answer.", "parameters": request.schema}
        choice = {"type": "function", "function": {"name": ANSWER}}
        tools = {"messages": messages, "tools": [{"type": "function", "function": tool}], "tool_choice": choice}
        return {**tools, "_skip_mcp_handler": True} if _looks_for_mcp() else tools
    return {"messages": messages}


@cache
def _looks_for_mcp() -> bool:
    """Return whether this LiteLLM checks for MCP tools first, which needs packages that it does not install."""
    return find_spec("litellm.responses.mcp.chat_completions_handler") is not None


def text_of(message: Any) -> str:
    """Return the answer of a model: its text, or the arguments of its tool call."""
    calls = message.tool_calls or ()
    return (calls[0].function.arguments if calls else message.content) or ""
