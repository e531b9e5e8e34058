"""A server that speaks the OpenAI protocol of chat completions over real HTTP, on this machine alone.

What it says is up to a Python callable. It stands in for a model's service, so that what is measured or tested goes
the whole way: through LiteLLM, a connection, and an answer that has to be read.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from http import HTTPStatus
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

from zettel.llm.lite import LiteLLM

PATH = "/v1/chat/completions"
COUNTED = 512
"""Texts whose tokens are remembered: most of a question is the same each time."""

Reply: TypeAlias = Callable[[dict[str, Any]], str]
"""From the body of a request to the text of the answer."""
Served = TypeVar("Served", bound="CompletionServer")


class CompletionServer:
    """Serves ``/v1/chat/completions`` at ``url``, a free port, in a thread of its own. A context manager.

    ``wait``: seconds that each answer takes. ``asked`` counts requests.
    """

    def __init__(self, reply: Reply, wait: float = 0.0) -> None:
        self.reply, self.wait = reply, wait
        self.asked = 0
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._lines: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self: Served) -> Served:
        self._thread.start()
        starting = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._line, "127.0.0.1", 0), self._loop)
        self._server = starting.result()
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    async def _line(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request."""
        task = asyncio.current_task()
        assert task is not None
        self._lines.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client has gone, or the server ends
        finally:
            self._lines.discard(task)
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether the connection is still good."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        body = await reader.readexactly(int(lines.get("content-length", 0)))
        if not head.startswith(f"POST {PATH} "):
            await self.send(writer, 404, problem("there is nothing here"))
            return True
        self.asked += 1
        return await self.serve(writer, json.loads(body))

    async def serve(self, writer: asyncio.StreamWriter, request: dict[str, Any]) -> bool:
        """Answer a request after the ``wait``; whether the connection is still good."""
        await asyncio.sleep(self.wait)
        return await self.answer(writer, request)

    async def answer(self, writer: asyncio.StreamWriter, request: dict[str, Any]) -> bool:
        """Answer a request; whether the connection is still good."""
        await self.send(writer, 200, completion(request, self.reply(request)))
        return True

    async def send(
        self, writer: asyncio.StreamWriter, status: int, body: object, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a response with this body, as JSON."""
        content = json.dumps(body).encode()
        told = {"Content-Type": "application/json", "Content-Length": str(len(content)), **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        writer.write(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n".encode() + content)
        await writer.drain()


def completion(
    request: Mapping[str, Any], text: str, finish: str = "stop", refusal: str | None = None
) -> dict[str, Any]:
    """The body of an answer: as the arguments of the tool where there is one, else as text, or a ``refusal``.

    Its cost is counted by the tokenizer that comes with LiteLLM: all messages, the schema, the text.
    """
    told: dict[str, Any] = {"role": "assistant", "content": None}
    if refusal is not None:
        told["refusal"] = refusal
    elif "tools" in request:
        call = {"name": request["tools"][0]["function"]["name"], "arguments": text}
        told["tool_calls"] = [{"id": "1", "type": "function", "function": call}]
    else:
        told["content"] = text
    shape = [json.dumps(request[name]) for name in ("response_format", "tools") if name in request]
    asked = sum(map(tokens, [*(str(message.get("content")) for message in request["messages"]), *shape]))
    answered = tokens(text)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": request["model"],
        "choices": [{"index": 0, "message": told, "finish_reason": finish}],
        "usage": {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered},
    }


def problem(message: str) -> dict[str, Any]:
    """The body of an error."""
    return {"error": {"message": message, "type": "error", "param": None, "code": None}}


@lru_cache(COUNTED)
def tokens(text: str) -> int:
    """Tokens of a text, whatever the model."""
    return LiteLLM("openai/any").count_tokens(text)
