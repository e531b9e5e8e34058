"""A rule-based agent model behind real HTTP that calls the offered memory tools and answers from them."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from zettel.bench.completions import CompletionServer, completion

_ENTRY = re.compile(r"<entry[^>]*>(.*?)</entry>", re.DOTALL)
_INJECTED = re.compile(r"\s*<memory>.*</memory>\s*", re.DOTALL)
"""Strands puts memories into the last message of a user."""


class AgentServer(CompletionServer):
    """Speaks the OpenAI protocol of chat completions; ``requests`` are the received bodies.

    It stores a text after "Remember:" and searches for any other text.
    """

    def __init__(self) -> None:
        super().__init__(lambda request: "")
        self.requests: list[dict[str, Any]] = []

    async def answer(self, writer: asyncio.StreamWriter, request: dict[str, Any]) -> bool:
        self.requests.append(request)
        last = next(
            message for message in reversed(request["messages"]) if message["role"] not in ("system", "developer")
        )
        name, arguments = call(words(last["content"])) if last["role"] == "user" else ("", {})
        plain = {key: value for key, value in request.items() if key != "tools"}
        if any(name == tool["function"]["name"] for tool in request.get("tools") or ()):
            body = completion(request, json.dumps(arguments), "tool_calls")
            (tool_call,) = body["choices"][0]["message"]["tool_calls"]
            tool_call["id"] = f"call_{len(self.requests)}"
            tool_call["function"]["name"] = name
        elif response_format := (request.get("response_format") or {}).get("json_schema"):
            schema = response_format["schema"]
            body = completion(plain, json.dumps(empty_value(schema, schema.get("$defs", {}))))
        else:
            body = completion(plain, tool_reply(last) if last["role"] == "tool" else recalled(request["messages"]))
        await self.send(writer, 200, body)
        return True


def call(question: str) -> tuple[str, dict[str, Any]]:
    """Return name and arguments of the tool call for a user turn."""
    question = _INJECTED.sub("", question)
    text = question.removeprefix("Remember: ")
    return ("add_memory", {"text": text}) if text != question else ("search_memories", {"query": question, "limit": 3})


def empty_value(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """Return the smallest value of a schema, for structured output."""
    if "$ref" in schema:
        return empty_value(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return empty_value(schema["anyOf"][0], definitions)
    kind = schema.get("type")
    if kind == "object":
        return {
            name: empty_value(property_schema, definitions)
            for name, property_schema in schema.get("properties", {}).items()
        }
    empty: dict[Any, Any] = {"string": "", "array": [], "boolean": False, "null": None}
    return schema["enum"][0] if "enum" in schema else empty.get(kind, 0)


def words(content: Any) -> str:
    """Return the text of a message, which may consist of parts."""
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def recalled(messages: list[dict[str, Any]]) -> str:
    """Return the answer without tools: the first recalled memory of its instructions or of the last message."""
    if entries := _ENTRY.findall(words(messages[-1]["content"])):
        return str(entries[0])
    instructions = [words(message["content"]) for message in messages if message["role"] in ("system", "developer")]
    lines = [line for text in reversed(instructions) for line in text.splitlines() if line.startswith("- ")]
    return lines[0].removeprefix("- ") if lines else "I have no tools."


def tool_reply(last: dict[str, Any]) -> str:
    """Return the answer after a tool result: its first memory."""
    answer = json.loads(words(last["content"]))
    if "error" in answer:
        return f"That went wrong: {answer['error']}"
    if "memories" not in answer:
        return "Noted." if answer.get("stored") else "I know."
    return answer["memories"][0]["text"] if answer["memories"] else "I do not know."
