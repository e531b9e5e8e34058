"""A rule-based chat model behind real HTTP that answers from the memories in its system message."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

from zettel.bench.completions import CompletionServer, problem

_RECALLED = re.compile(r"^- (?:\d\d:\d\d )?(?:\w+: )?(.*)$", re.MULTILINE)


class TalkServer(CompletionServer):
    """Speaks the OpenAI protocol of chat completions, with streams.

    ``requests`` are the received bodies; ``reply`` makes the answer, by default ``first_recalled``. The next
    ``failures`` requests get a 500, and a stream breaks off after ``cut_after`` chunks. The server answers once
    ``awaited`` requests have arrived.
    """

    def __init__(self, reply: Callable[[dict[str, Any]], str] | None = None) -> None:
        super().__init__(lambda request: "")
        self.reply = reply or first_recalled
        self.requests: list[dict[str, Any]] = []
        self.failures = 0
        self.cut_after: int | None = None
        self.awaited = 0
        self._arrival = asyncio.Condition()

    async def answer(self, writer: asyncio.StreamWriter, request: dict[str, Any]) -> bool:
        async with self._arrival:
            self.requests.append(request)
            self._arrival.notify_all()
            await self._arrival.wait_for(lambda: len(self.requests) >= self.awaited)
        if self.failures:
            self.failures -= 1
            await self.send(writer, 500, problem("the model fell over"))
            return True
        text = self.reply(request)
        if request.get("stream"):
            return await self._stream(writer, request, text)
        message = {"role": "assistant", "content": text}
        await self.send(writer, 200, _body(request, {"message": message, "finish_reason": "stop"}))
        return True

    async def _stream(self, writer: asyncio.StreamWriter, request: dict[str, Any], text: str) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for number, word in enumerate(re.findall(r"\s*\S+", text)):
            if number == self.cut_after:
                writer.write(b'data: {"error": {"message": "the model fell over"}}\n\n')
                await writer.drain()
                return False
            self._chunk(writer, request, {"role": "assistant", "content": word}, None)
        self._chunk(writer, request, {}, "stop")
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()
        return False

    def _chunk(
        self, writer: asyncio.StreamWriter, request: dict[str, Any], delta: dict[str, Any], finish: str | None
    ) -> None:
        chunk = _body(request, {"delta": delta, "finish_reason": finish}, ".chunk")
        writer.write(f"data: {json.dumps(chunk)}\n\n".encode())


def _body(request: dict[str, Any], choice: dict[str, Any], kind: str = "") -> dict[str, Any]:
    """Return a response body without token usage, because counting tokens is slow."""
    return {"id": "chatcmpl-1", "object": f"chat.completion{kind}", "created": 1, "model": request["model"],
            "choices": [{"index": 0, **choice}]}  # fmt: skip


def system(request: dict[str, Any]) -> str:
    """Return the system message of a request, or ""."""
    first = request["messages"][0]
    return str(first["content"]) if first["role"] in ("system", "developer") else ""


def first_recalled(request: dict[str, Any]) -> str:
    """Return the first recalled memory."""
    match = _RECALLED.search(system(request))
    return match[1] if match else "I do not know."
