"""A connection to a zettel server: requests that come back as answers, or as the errors that they tell."""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import stamina

from zettel.errors import InvalidInput, ServerBusy, ServerUnreachable
from zettel.server.sockets import is_loopback
from zettel.server.wire import error_of

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 10.0
"""To reach the server; an answer may take as long as its work does."""
ATTEMPTS = 4
"""Of a request that was never taken up, because the server was not there yet or had too much to do."""
LONGEST_PAUSE = 5.0
"""Seconds between two of them, unless the server names another time."""
AT_ONCE = 32
"""Connections that are kept; more requests than that wait for one."""
NO_CONTENT = 204
_KEY = re.compile(r"[!-~]+")
"""What a header can say: an error about any other would show the key."""


class Connection:
    """To the server at ``url``, by ``key``. Raises ``InvalidInput`` for an address or a key that is none."""

    def __init__(self, url: str, key: str | None) -> None:
        import httpx

        if "@" in url.partition("://")[2].partition("/")[0]:  # which would be sent in place of the key
            raise InvalidInput("a server's address holds no user and no password: hand in a key instead")
        key = key.strip() if isinstance(key, str) else key  # files and shells end it with a newline
        if key is not None and not (isinstance(key, str) and _KEY.fullmatch(key)):
            raise InvalidInput("key= is no key of a server: these are printable characters without blanks, as zk_…")
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        try:
            self._client = httpx.AsyncClient(
                base_url=url,
                headers=headers,
                timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
                transport=httpx.AsyncHTTPTransport(
                    limits=httpx.Limits(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE),
                    socket_options=[(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)],  # a server may vanish without a word
                ),
            )
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            raise InvalidInput(f"{url!r} cannot be reached: {error}") from None
        host = self._client.base_url.host
        if not host:
            raise InvalidInput(f"{url!r} names no server: write https://HOST:PORT")
        open_way = self._client.base_url.scheme == "http" and not is_loopback(host)
        if key is not None and open_way:
            raise InvalidInput(f"the key would go to {host} unencrypted: write https://")
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
        """The body of the answer; not ``answered``: there is to be none. Raises the error that it tells, and
        ``ServerUnreachable``."""
        async with self.stream(verb, path, query, body) as response:
            told = await response.aread()
        if not answered and response.status_code != NO_CONTENT:
            raise ServerUnreachable(
                f"{self.name} answered with status {response.status_code} and not with {NO_CONTENT}: "
                "is it a zettel server?"
            )
        return told

    @asynccontextmanager
    async def stream(
        self, verb: str, path: str, query: Mapping[str, Any], body: bytes | AsyncIterator[bytes] | None = None
    ) -> AsyncIterator[httpx.Response]:
        """The same, to be read as it comes. What was sent as it came is not sent a second time."""
        import httpx

        kind = "application/json" if isinstance(body, bytes) else "application/octet-stream"
        try:
            request = self._client.build_request(
                verb, path, params=query, content=body, headers={} if body is None else {"Content-Type": kind}
            )
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            raise InvalidInput(f"that cannot be said in a server's address: {error}") from None
        try:
            response = await self._sent(request, ATTEMPTS if body is None or isinstance(body, bytes) else 1)
            try:
                yield response
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            raise ServerUnreachable(f"{self.name} does not answer: {error or type(error).__name__}") from error

    async def _sent(self, request: httpx.Request, attempts: int) -> httpx.Response:
        async for attempt in stamina.retry_context(on=_unheard, attempts=attempts, wait_max=LONGEST_PAUSE):
            with attempt:
                response = await self._client.send(request, stream=True)
                if not response.is_success:
                    try:
                        told = await response.aread()
                    finally:
                        await response.aclose()
                    if response.has_redirect_location:
                        raise ServerUnreachable(f"{self.name} answered that it is at {response.headers['Location']!r}")
                    raise error_of(response.status_code, told, _seconds(response.headers.get("Retry-After")))
        return response

    async def close(self) -> None:
        """Let the server go."""
        await self._client.aclose()


def _unheard(error: Exception) -> bool | float:
    """Whether the server did nothing about a request, so that it can be sent again; if it said when, after how long."""
    import httpx

    if isinstance(error, ServerBusy):
        return min(error.retry_after, LONGEST_PAUSE) if error.retry_after else True
    return isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))


def _seconds(told: str | None) -> float | None:
    return float(told) if told is not None and told.isdigit() else None
