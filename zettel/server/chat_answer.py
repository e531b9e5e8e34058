"""Reads the answer of a chat model from the bytes that pass through the proxy."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

from zettel.core.messages import field_of, text_of

DONE = b"[DONE]"
"""The last event of a stream."""


class ChatAnswer:
    """The first choice of an answer in OpenAI's protocol: a JSON body, or the server-sent events of a stream.

    Pass the bytes to ``feed`` in any pieces, then call ``close``. Anything that is not such an answer is skipped, and
    ``is_complete`` remains False.
    """

    def __init__(self, *, is_stream: bool) -> None:
        self._is_stream = is_stream
        self.body = b""
        """The body so far, empty for a stream."""
        self._rest = b""  # of the current line
        self._data: list[bytes] = []  # of the current event
        self._texts: list[str] = []
        self._is_failed = False
        self.finished_at: datetime | None = None
        """The time at which the model finished, None before."""
        self.calls: list[str] = []
        """The ids of the tool calls."""

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._texts)

    @property
    def is_complete(self) -> bool:
        """True after the model has finished without an error."""
        return self.finished_at is not None and not self._is_failed

    def feed(self, part: bytes) -> None:
        """Read the next bytes."""
        if not self._is_stream:
            self.body += part
            return
        *lines, self._rest = (self._rest + part).split(b"\n")
        for line in lines:
            self._read_line(line.removesuffix(b"\r"))

    def close(self) -> None:
        """Read what is left after the last bytes."""
        if self._is_stream:
            self.feed(b"\n\n")
        else:
            self._read(self.body)

    def _read_line(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        elif not line and self._data:
            self._read(b"\n".join(self._data))
            self._data = []

    def _read(self, data: bytes) -> None:
        """Read a body, or the data of an event."""
        if data == DONE:
            self._finish()
            return
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            return
        if not isinstance(body, dict):
            return
        self._is_failed = self._is_failed or bool(body.get("error"))
        choices = body.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index", 0) == 0:
                message = choice.get("delta" if self._is_stream else "message")
                self._texts.append(text_of(field_of(message, "content")))
                self.calls += _calls(message)
                if choice.get("finish_reason") is not None:
                    self._finish()

    def _finish(self) -> None:
        self.finished_at = self.finished_at or datetime.now(timezone.utc)


def _calls(message: Any) -> list[str]:
    """Return the ids of the tool calls of a message or of a part of a stream; only its first part has an id."""
    calls = field_of(message, "tool_calls")
    ids = [field_of(call, "id") for call in calls] if isinstance(calls, list) else []
    return [id for id in ids if id]
