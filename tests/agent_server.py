"""An agent's model by rule, behind real HTTP: it calls the memory tools that it is offered, and answers from them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from zettel.bench.completions import CompletionServer, completion


class AgentServer(CompletionServer):
    """Speaks the OpenAI protocol of chat completions. What it is told to remember it stores, anything else it looks up
    first; ``requests`` are the bodies it was sent."""

    def __init__(self) -> None:
        super().__init__(lambda request: "")
        self.requests: list[dict[str, Any]] = []

    async def answer(self, writer: asyncio.StreamWriter, request: dict[str, Any]) -> bool:
        self.requests.append(request)
        last = next(one for one in reversed(request["messages"]) if one["role"] not in ("system", "developer"))
        name, arguments = call(words(last["content"])) if last["role"] == "user" else ("", {})
        plain = {key: value for key, value in request.items() if key != "tools"}
        if any(name == tool["function"]["name"] for tool in request.get("tools") or ()):
            body = completion(request, json.dumps(arguments), "tool_calls")
            (called,) = body["choices"][0]["message"]["tool_calls"]
            called["id"] = f"call_{len(self.requests)}"
            called["function"]["name"] = name
        elif wanted := (request.get("response_format") or {}).get("json_schema"):
            schema = wanted["schema"]
            body = completion(plain, json.dumps(least(schema, schema.get("$defs", {}))))
        else:
            body = completion(plain, said(last) if last["role"] == "tool" else recalled(request["messages"]))
        await self.send(writer, 200, body)
        return True


def call(asked: str) -> tuple[str, dict[str, Any]]:
    """The tool that a turn of the user makes it call."""
    told = asked.removeprefix("Remember: ")
    return ("add_memory", {"text": told}) if told != asked else ("search_memories", {"query": asked, "limit": 3})


def least(schema: dict[str, Any], named: dict[str, Any]) -> Any:
    """The emptiest value of a schema, for whoever wants an answer in a form."""
    if "$ref" in schema:
        return least(named[schema["$ref"].rpartition("/")[2]], named)
    if "anyOf" in schema:
        return least(schema["anyOf"][0], named)
    kind = schema.get("type")
    if kind == "object":
        return {name: least(inner, named) for name, inner in schema.get("properties", {}).items()}
    empty: dict[Any, Any] = {"string": "", "array": [], "boolean": False, "null": None}
    return schema["enum"][0] if "enum" in schema else empty.get(kind, 0)


def words(content: Any) -> str:
    """The text of a message, which may come in parts."""
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def recalled(messages: list[dict[str, Any]]) -> str:
    """What it says without tools: the first line of what was recalled last, if its instructions hold such lines."""
    told = [words(one["content"]) for one in messages if one["role"] in ("system", "developer")]
    lines = [line for text in reversed(told) for line in text.splitlines() if line.startswith("- ")]
    return lines[0].removeprefix("- ") if lines else "I have no tools."


def said(last: dict[str, Any]) -> str:
    """What it says to the answer of a tool: what stands there first."""
    answer = json.loads(words(last["content"]))
    if "error" in answer:
        return f"That went wrong: {answer['error']}"
    if "memories" not in answer:
        return "Noted." if answer.get("stored") else "I know."
    return answer["memories"][0]["text"] if answer["memories"] else "I do not know."
