"""A local HTTP server with the OpenAI protocol of chat completions, which replaces a model's service.

A Python callable writes the answers. Requests pass LiteLLM, a connection and the parsing of answers.
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

PATH, MODELS_PATH = "/v1/chat/completions", "/v1/models"
TOKEN_CACHE_SIZE = 512
"""Texts with a cached token count."""

Reply: TypeAlias = Callable[[dict[str, Any]], str]
"""From the body of a request to the text of the answer."""
Served = TypeVar("Served", bound="CompletionServer")


class CompletionServer:
    """Serves ``/v1/chat/completions`` at ``url``, on a free port, in a thread. A context manager.

    ``wait`` is the delay of each answer in seconds. ``asked`` counts requests, ``sent_tokens`` and ``written_tokens``
    the tokens of requests and of answers. ``headers`` are those of the last request.
    """

    def __init__(self, reply: Reply, wait: float = 0.0) -> None:
        self.reply, self.wait = reply, wait
        self.asked = self.sent_tokens = self.written_tokens = 0
        self.headers: dict[str, str] = {}
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self: Served) -> Served:
        self._thread.start()
        starting = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._connection, "127.0.0.1", 0), self._loop)
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
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the requests of one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client closed the connection, or the server stops
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; return whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        headers = dict(_header(line) for line in head.split("\r\n")[1:] if ": " in line)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.headers = headers
        method, path, _ = head.split(" ", 2)
        if method == "GET" and path == MODELS_PATH:
            await self.send(writer, 200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})
            return True
        if (method, path) != ("POST", PATH):
            await self.send(writer, 404, problem(f"unknown path: use POST {PATH}"))
            return True
        self.asked += 1
        return await self.serve(writer, json.loads(body))

    async def serve(self, writer: asyncio.StreamWriter, request: dict[str, Any]) -> bool:
        """Answer a request after ``wait``; return whether the connection stays open."""
        await asyncio.sleep(self.wait)
        return await self.answer(writer, request)

    async def answer(self, writer: asyncio.StreamWriter, request: dict[str, Any]) -> bool:
        """Answer a request; return whether the connection stays open."""
        body = completion(request, self.reply(request))
        self.sent_tokens += body["usage"]["prompt_tokens"]
        self.written_tokens += body["usage"]["completion_tokens"]
        await self.send(writer, 200, body)
        return True

    async def send(
        self, writer: asyncio.StreamWriter, status: int, body: object, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a response with a JSON body."""
        content = json.dumps(body).encode()
        all_headers = {"Content-Type": "application/json", "Content-Length": str(len(content)), **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in all_headers.items())
        writer.write(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n".encode() + content)
        await writer.drain()


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(": ")
    return name.lower(), value


def completion(
    request: Mapping[str, Any], text: str, finish: str = "stop", refusal: str | None = None
) -> dict[str, Any]:
    """Return the body of an answer: tool arguments if the request has a tool, otherwise text, or a ``refusal``.

    LiteLLM's tokenizer counts the tokens of messages, schema and text.
    """
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if refusal is not None:
        message["refusal"] = refusal
    elif "tools" in request:
        call = {"name": request["tools"][0]["function"]["name"], "arguments": text}
        message["tool_calls"] = [{"id": "1", "type": "function", "function": call}]
    else:
        message["content"] = text
    schemas = [json.dumps(request[name]) for name in ("response_format", "tools") if name in request]
    prompt_tokens = sum(map(tokens, [*(str(sent.get("content")) for sent in request["messages"]), *schemas]))
    completion_tokens = tokens(text)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }


def problem(message: str) -> dict[str, Any]:
    """Return the body of an error."""
    return {"error": {"message": message, "type": "error", "param": None, "code": None}}


@lru_cache(TOKEN_CACHE_SIZE)
def tokens(text: str) -> int:
    """Count tokens, with the same tokenizer for every model."""
    return LiteLLM("openai/any").count_tokens(text)
