"""A receiver of webhooks for tests: an HTTP server that checks signatures with the published library."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from standardwebhooks import Webhook

from tests.waiting import until
from zettel.local.webhook_targets import new_secret


class Received(NamedTuple):
    id: str
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def type(self) -> str:
        return str(self.body["type"])

    @property
    def notes(self) -> list[str]:
        return [note["id"] for note in self.body["data"]["notes"]]


class Receiver:
    """Stores the messages that it accepts. ``statuses`` answer the next requests; then 204 does."""

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.tls = tls
        self.secret = new_secret()
        self.accepted: list[Received] = []
        self.attempts: list[Received] = []
        self.statuses: list[int] = []
        self.headers: dict[str, str] = {}
        self.port = port

    @contextmanager
    def running(self) -> Iterator[Receiver]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = Webhook(receiver.secret).verify(content, headers)  # raises for a wrong signature
                message = Received(headers["webhook-id"], body, headers)
                receiver.attempts.append(message)
                status = receiver.statuses.pop(0) if receiver.statuses else 204
                if status == 204:
                    receiver.accepted.append(message)
                self.send_response(status)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", self.port), Handler) as server:
            self.port = server.server_port
            if self.tls is not None:
                server.socket = self.tls.wrap_socket(server.socket, server_side=True)
            server.handle_error = lambda *_: None  # type: ignore[method-assign]  # failed handshakes
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()

    def target(self, **fields: Any) -> dict[str, Any]:
        """Return the fields of this receiver in a file of webhooks."""
        url = f"http://127.0.0.1:{self.port}/hook"
        return {"url": url, "secret": self.secret, "private": True, **fields}

    def wait(self, count: int = 1) -> list[Received]:
        """Wait until it has accepted ``count`` messages, and return all."""
        until(lambda: len(self.accepted) >= count, lambda: self.accepted)
        return self.accepted


def write_targets(path: Path, **targets: dict[str, Any]) -> Path:
    """Write a file of webhooks."""
    path.write_text(yaml.safe_dump({"targets": targets}))
    return path
