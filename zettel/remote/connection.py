"""HTTP connection to a zettel server, with retries and errors of ``zettel.errors``."""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import stamina

from zettel.errors import InvalidInput, ServerBusy, ServerUnreachable
from zettel.remote.sockets import is_loopback
from zettel.remote.wire import error_of

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 10.0
"""Timeout for the connection; answers have no timeout."""
ATTEMPTS = 4
"""Attempts of a request that the server did not begin: it was unreachable or busy."""
LONGEST_PAUSE = 5.0
"""Longest pause in seconds between two attempts."""
MAX_CONNECTIONS = 32
"""Size of the connection pool; further requests wait for a connection."""
NO_CONTENT = 204
_KEY = re.compile(r"[!-~]+")
"""Characters that a header accepts: httpx's error about any other would show the key."""


class Connection:
    """A connection to the server at ``url`` with ``key``. Raises ``InvalidInput`` for an invalid address or key."""

    def __init__(self, url: str, key: str | None) -> None:
        import httpx

        if "@" in url.partition("://")[2].partition("/")[0]:  # httpx would send them instead of the key
            raise InvalidInput("a server's address must not contain a user or password: use key=")
        key = key.strip() if isinstance(key, str) else key  # files and shells end it with a newline
        if key is not None and not (isinstance(key, str) and _KEY.fullmatch(key)):
            raise InvalidInput("key= is not a server key: keys are printable characters without blanks, such as zk_…")
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        try:
            self._client = httpx.AsyncClient(
                base_url=url,
                headers=headers,
                timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
                transport=httpx.AsyncHTTPTransport(
                    limits=httpx.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS),
                    socket_options=[(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)],  # detects a server that vanished
                ),
            )
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            raise InvalidInput(f"{url!r} cannot be reached: {error}") from None
        host = self._client.base_url.host
        if not host:
            raise InvalidInput(f"{url!r} is not a server's address: write https://HOST:PORT")
        unencrypted = self._client.base_url.scheme == "http" and not is_loopback(host)
        if key is not None and unencrypted:
            raise InvalidInput(f"the key would be sent to {host} unencrypted: write https://")
        self.name = str(self._client.base_url)

    async def ask(
        self,
        verb: str,
        path: str,
        query: Mapping[str, Any],
        body: bytes | AsyncIterator[bytes] | None,
        *,
        answered: bool = True,
    ) -> bytes:
        """Return the body of the answer; without ``answered`` it must be empty. Raises the server's error, and
        ``ServerUnreachable``."""
        async with self.stream(verb, path, query, body) as response:
            content = await response.aread()
        if not answered and response.status_code != NO_CONTENT:
            raise ServerUnreachable(
                f"{self.name} answered with status {response.status_code} instead of {NO_CONTENT}: "
                "is it a zettel server?"
            )
        return content

    @asynccontextmanager
    async def stream(
        self, verb: str, path: str, query: Mapping[str, Any], body: bytes | AsyncIterator[bytes] | None = None
    ) -> AsyncIterator[httpx.Response]:
        """Send a request and stream the answer. A streamed body is sent only once."""
        import httpx

        kind = "application/json" if isinstance(body, bytes) else "application/octet-stream"
        try:
            request = self._client.build_request(
                verb, path, params=query, content=body, headers={} if body is None else {"Content-Type": kind}
            )
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            raise InvalidInput(f"this cannot be part of a URL: {error}") from None
        try:
            response = await self._sent(request, ATTEMPTS if body is None or isinstance(body, bytes) else 1)
            try:
                yield response
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            raise ServerUnreachable(f"{self.name} does not answer: {error or type(error).__name__}") from error

    async def _sent(self, request: httpx.Request, attempts: int) -> httpx.Response:
        async for attempt in stamina.retry_context(on=_retry, attempts=attempts, wait_max=LONGEST_PAUSE):
            with attempt:
                response = await self._client.send(request, stream=True)
                if not response.is_success:
                    try:
                        content = await response.aread()
                    finally:
                        await response.aclose()
                    if response.has_redirect_location:
                        location = response.headers["Location"]
                        raise ServerUnreachable(f"{self.name} redirects to {location!r}: use the server's own address")
                    raise error_of(response.status_code, content, _seconds(response.headers.get("Retry-After")))
        return response

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _retry(error: Exception) -> bool | float:
    """Return whether a request can be sent again because the server did not begin it, or after how many seconds."""
    import httpx

    if isinstance(error, ServerBusy):
        return min(error.retry_after, LONGEST_PAUSE) if error.retry_after else True
    return isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdigit() else None
