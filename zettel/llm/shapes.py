"""The ways in which a model can be held to a JSON schema, and the arguments of a chat completion for each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from zettel.llm.ports import Request

ANSWER = "answer"
"""Name of the schema, and of the tool that stands for it."""

PLAIN_REQUEST = "Answer with nothing but JSON that is valid for this JSON schema:"


class Shape(IntEnum):
    """How an answer is asked for, strictest first; a model that refuses one is asked in the next."""

    SCHEMA = 0
    TOOL = 1
    PLAIN = 2


COMPLAINTS = {
    Shape.SCHEMA: ("response_format", "response format", "schema", "structured output", "grammar"),
    Shape.TOOL: ("tool", "function"),
}
"""What stands in a refusal that is about the shape."""


def first_shape(litellm: ModuleType, name: str) -> Shape:
    """The strictest shape that a model has, as far as LiteLLM's tables tell; one that they lack is tried.

    A parameter that the provider does not have would be dropped in silence, so it is not counted on.
    """
    parameters = litellm.get_supported_openai_params(model=name) or ()
    unknown = known_as(litellm, name) is None
    if "response_format" in parameters and (unknown or litellm.supports_response_schema(model=name)):
        return Shape.SCHEMA
    if "tools" in parameters and (unknown or litellm.supports_function_calling(model=name)):
        return Shape.TOOL
    return Shape.PLAIN


def known_as(litellm: ModuleType, name: str) -> Mapping[str, Any] | None:
    """What LiteLLM's table says of a model, by its name with the provider or without."""
    entry: Mapping[str, Any] | None = litellm.model_cost.get(name) or litellm.model_cost.get(name.partition("/")[2])
    return entry


def is_complaint(shape: Shape, message: str) -> bool:
    """Whether a refused request was refused for its shape."""
    lowered = message.lower()
    return any(word in lowered for word in COMPLAINTS.get(shape, ()))


def arguments(request: Request, shape: Shape, cached: bool) -> dict[str, Any]:
    """The arguments of a chat completion. What is the same in every request of a prompt comes first.

    ``cached``: mark the end of that for a provider that caches only what is marked (Anthropic).
    """
    system = request.system
    if shape is Shape.PLAIN:
        system = f"{system}\n\n{PLAIN_REQUEST}\n{json.dumps(request.schema, ensure_ascii=False)}"
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}]
    for asked, answered in request.examples:
        messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    if cached:
        last = messages[-1]
        last["content"] = [{"type": "text", "text": last["content"], "cache_control": {"type": "ephemeral"}}]
    messages.append({"role": "user", "content": request.user})
    if shape is Shape.SCHEMA:
        schema = {"name": ANSWER, "schema": request.schema, "strict": True}
        return {"messages": messages, "response_format": {"type": "json_schema", "json_schema": schema}}
    if shape is Shape.TOOL:
        tool = {"name": ANSWER, "description": "Gives the answer.", "parameters": request.schema}
        choice = {"type": "function", "function": {"name": ANSWER}}
        tools = {"messages": messages, "tools": [{"type": "function", "function": tool}], "tool_choice": choice}
        return {**tools, "_skip_mcp_handler": True} if _looks_for_mcp() else tools
    return {"messages": messages}


@cache
def _looks_for_mcp() -> bool:
    """Whether this LiteLLM first looks if a tool is one of MCP's, for which its own installation lacks packages."""
    return find_spec("litellm.responses.mcp.chat_completions_handler") is not None


def text_of(message: Any) -> str:
    """What a model said, as text or as the arguments of its tool."""
    calls = message.tool_calls or ()
    return (calls[0].function.arguments if calls else message.content) or ""
