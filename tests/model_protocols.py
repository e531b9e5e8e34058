"""Servers of the Anthropic and Ollama protocols over real HTTP: the parts that LiteLLM uses.

They convert requests to OpenAI chat completions for a ``Reply``, so that one rule-based model serves all protocols.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.model_server import Reply

TOKENS = {"prompt": 100, "completion": 20}
"""Token counts in every response; these servers do not count."""


def anthropic(request: dict[str, Any], reply: Reply) -> dict[str, Any]:
    """Return the answer of ``/v1/messages``: as tool input if there is a tool, else as text."""
    messages = [{"role": message["role"], "content": _text(message["content"])} for message in request["messages"]]
    text = reply({**request, "messages": messages})
    block: dict[str, Any] = {"type": "text", "text": text}
    if request.get("tools"):
        block = {"type": "tool_use", "id": "toolu_1", "name": request["tools"][0]["name"], "input": json.loads(text)}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [block],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": TOKENS["prompt"], "output_tokens": TOKENS["completion"]},
    }


def ollama(request: dict[str, Any], reply: Reply) -> dict[str, Any]:
    """Return the answer of ``/api/chat``."""
    return {
        "model": request["model"],
        "created_at": "2024-05-01T09:00:00Z",
        "message": {"role": "assistant", "content": reply(request)},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": TOKENS["prompt"],
        "eval_count": TOKENS["completion"],
    }


PATHS = {"/v1/messages": anthropic, "/api/chat": ollama}


@contextmanager
def protocols(reply: Reply) -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """Return the address of a server of both protocols, and its requests: paths and bodies."""
    requests: list[tuple[str, dict[str, Any]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            speaks = PATHS.get(self.path)
            requests.append((self.path, request))
            body = json.dumps(speaks(request, reply) if speaks else {"error": "there is nothing here"}).encode()
            self.send_response(200 if speaks else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
