"""A rule-based model behind Anthropic's messages API that uses the memory tool."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

FILE = "/memories/notes.md"


class ClaudeServer(NamedTuple):
    """A running server: its address and the bodies of its requests."""

    url: str
    requests: list[dict[str, Any]]


@contextmanager
def claude_server() -> Iterator[ClaudeServer]:
    """Serve ``/v1/messages``: a text after "Remember:" is written to a file, which any other text reads."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append(request)
            body = json.dumps(answer(request)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield ClaudeServer(f"http://127.0.0.1:{server.server_port}", requests)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return a message: a call of the memory tool for a user's text, else the text for its result."""
    content = request["messages"][-1]["content"]
    if isinstance(content, str):
        text = content.removeprefix("Remember: ")
        write = {"command": "create", "path": FILE, "file_text": text}
        command = {"command": "view", "path": FILE} if text == content else write
        block = {"type": "tool_use", "id": f"toolu_{len(request['messages'])}", "name": "memory", "input": command}
    else:
        block = {"type": "text", "text": reply(content[-1])}
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": [block],
        "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 20},
    }  # fmt: skip


def reply(result: dict[str, Any]) -> str:
    """Return the answer after a tool result: the file's last line if it was read."""
    content = result["content"]
    text = content if isinstance(content, str) else content[0]["text"]
    if result.get("is_error"):
        return "I do not know."
    return text.split("\t")[-1] if "\t" in text else "Noted."
