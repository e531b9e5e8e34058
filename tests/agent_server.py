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
        last = request["messages"][-1]
        if request.get("tools") and last["role"] == "user":
            name, arguments = call(str(last["content"]))
            body = completion(request, json.dumps(arguments), "tool_calls")
            body["choices"][0]["message"]["tool_calls"][0]["function"]["name"] = name
        else:
            plain = {key: value for key, value in request.items() if key != "tools"}
            body = completion(plain, said(last))
        await self.send(writer, 200, body)
        return True


def call(asked: str) -> tuple[str, dict[str, Any]]:
    """The tool that a turn of the user makes it call."""
    told = asked.removeprefix("Remember: ")
    return ("add_memory", {"text": told}) if told != asked else ("search_memories", {"query": asked, "limit": 3})


def said(last: dict[str, Any]) -> str:
    """What it says to the last message: to an answer of a tool, what stands there first."""
    if last["role"] != "tool":
        return "I have no tools."
    answer = json.loads(last["content"])
    if "error" in answer:
        return f"That went wrong: {answer['error']}"
    if "memories" not in answer:
        return "Noted." if answer.get("stored") else "I know."
    return answer["memories"][0]["text"] if answer["memories"] else "I do not know."
