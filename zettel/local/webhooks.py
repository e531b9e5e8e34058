"""Webhooks: signed HTTP messages about changes in a memory, by the Standard Webhooks specification.

Each message is delivered at least once, also after a crash: ``webhook-id`` lets receivers skip repetitions.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import random
import secrets
import socket
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
from anyio.to_thread import run_sync

from zettel.core.changes import Change
from zettel.errors import StoreError
from zettel.local.webhook_queue import Delivery, Message, WebhookQueue
from zettel.local.webhook_targets import Target, is_public, load_targets
from zettel.model import Scope
from zettel.ports import GraphStore
from zettel.ports.operations import Conflict, StaleLease
from zettel.version import VERSION

if TYPE_CHECKING:
    import httpx

LOG = logging.getLogger("zettel.webhooks")
RETRIES = (5.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
"""Seconds between the attempts of a message, as the specification recommends: three days in total."""
MAX_AGE = 4 * 86_400.0
"""Seconds after which a message is given up, also if a target with many messages had no time for all attempts."""
_RANDOM = random.SystemRandom()  # leaves the sequence of a program that seeds "random" as it is
JITTER = 0.2
"""The largest share by which a pause is longer, so that messages do not come back all at once."""
SEND_SECONDS = 15.0
"""Timeout of an attempt, from the lookup of the host to the answer."""
LONGEST_PAUSE = 60.0
"""Longest pause of a target after an attempt that failed; it doubles with each."""
PAUSE = 0.5
MOST_NOTES = 100
"""Notes of one message."""
STOP_SECONDS = 2.0
"""How long a memory that closes waits for its targets."""
SETTLE_SECONDS = 0.5
"""Pause before the store is asked whether it wrote the changes of an interrupted write, which may still be running."""
STORE_PAUSE = 5.0
"""Seconds until a failed access to the store or the queue is tried again."""
TEST = "webhook.test"
"""The type of a test message."""


class DeliveryFailed(Exception):
    """A target did not accept a message; ``retry_after`` are the seconds that it asks for."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Webhooks:
    """Informs the targets in a file of the changes in a memory. Raises ``InvalidInput``, ``StoreError``.

    It is a ``ChangeListener``. ``start`` begins to deliver.
    """

    def __init__(self, path: str | Path, *, retries: Sequence[float] = RETRIES) -> None:
        self._targets, queue = load_targets(path)
        self._queue = WebhookQueue(queue)
        for name in self._queue.forget_other_targets(self._targets.keys()):
            LOG.warning("the messages for the target %s were removed: %s does not name it", name, path)
        self._retries = retries
        self._woken = {name: asyncio.Event() for name in self._targets}
        self._uncertain = asyncio.Event()
        self._writing: set[str] = set()  # messages whose changes the store is writing now
        self._tasks: list[asyncio.Task[None]] = []

    # ------------------------------------------------------------------------------------------------ record changes

    @asynccontextmanager
    async def expecting(self, scope: Scope, changes: Sequence[Change]) -> AsyncIterator[None]:
        """Queue the messages about changes before the block writes them. Raises ``StoreError``."""
        messages = {
            message: names
            for change in changes
            if (names := [name for name, target in self._targets.items() if target.accepts(scope, change.event)])
            for message in _messages(scope, change)
        }
        if not messages:
            yield
            return
        ids = [message.id for message in messages]
        self._writing.update(ids)
        try:
            await run_sync(self._queue.add, messages)
            yield
        except (Conflict, StaleLease):  # nothing was written
            await run_sync(self._queue.discard, ids)
            raise
        except BaseException:
            self._uncertain.set()
            raise
        else:
            await self._confirm(ids)
        finally:
            self._writing.difference_update(ids)

    async def _confirm(self, ids: Sequence[str]) -> None:
        try:
            await run_sync(self._queue.confirm, ids)
        except StoreError:  # the changes are stored, so their writer must not fail
            self._uncertain.set()
        for woken in self._woken.values():
            woken.set()

    # ------------------------------------------------------------------------------------------------------- deliver

    def start(self, store: GraphStore) -> None:
        """Start to deliver, first what an earlier process left in the queue."""
        self._uncertain.set()
        self._tasks = [asyncio.create_task(self._resolve(store), name="zettel webhooks")]
        for target in self._targets.values():
            self._tasks.append(asyncio.create_task(self._deliver(store, target), name=f"zettel webhook {target.name}"))

    async def stop(self) -> None:
        """Deliver what is due, for at most ``STOP_SECONDS``, and stop; the queue still takes messages."""
        with anyio.move_on_after(STOP_SECONDS), suppress(StoreError):
            while await run_sync(self._queue.is_due):  # noqa: ASYNC110 (the queue is a file)
                await anyio.sleep(STOP_SECONDS / 100)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def close(self) -> None:
        """Close the queue. Its messages stay there for the next process."""
        self._queue.close()

    async def _resolve(self, store: GraphStore) -> None:
        """Decide by the store which messages of interrupted writes are true."""
        while True:
            await self._uncertain.wait()
            self._uncertain.clear()
            await anyio.sleep(SETTLE_SECONDS)
            try:
                for message in await run_sync(self._queue.uncertain):
                    if message.id not in self._writing:
                        is_true = await _happened(store, message)
                        await run_sync(self._queue.confirm if is_true else self._queue.discard, [message.id])
            except StoreError:  # it is busy, or its server restarts
                self._uncertain.set()
                await anyio.sleep(STORE_PAUSE)
            for woken in self._woken.values():
                woken.set()

    async def _deliver(self, store: GraphStore, target: Target) -> None:
        """Send the messages for one target, in the order in which they are due."""
        woken, failures = self._woken[target.name], 0
        async with _client() as client:
            while True:
                woken.clear()
                try:
                    delivery = await run_sync(self._queue.next, target.name)
                    pause = None if delivery is None else delivery.due - time.time()
                    if delivery is None or (pause is not None and pause > 0):
                        with anyio.move_on_after(pause):
                            await woken.wait()
                        continue
                    accepted = await self._attempt(client, store, target, delivery)
                except StoreError as error:
                    LOG.warning("webhook %s: %s", target.name, error)
                    await anyio.sleep(STORE_PAUSE)
                    continue
                failures = 0 if accepted else failures + 1
                if failures:
                    await anyio.sleep(min(LONGEST_PAUSE, PAUSE * 2 ** min(failures, 10), self._retries[0]))

    async def _attempt(
        self, client: httpx.AsyncClient, store: GraphStore, target: Target, delivery: Delivery
    ) -> bool:
        """Send a message once, and record the outcome in the queue. Raises ``StoreError``."""
        message, name = delivery.message, target.name
        body = json.loads(message.body)
        if target.content:
            body = await _with_content(store, message, body)
        try:
            await send(client, target, message.id, body)
        except DeliveryFailed as error:
            attempt, number = delivery.attempts + 1, len(self._retries) + 1
            if attempt >= number:
                await run_sync(self._queue.remove, name, message.id)
                LOG.warning("webhook %s: gave up on %s after %d attempts: %s", name, message.id, attempt, error)
                return False
            pause = max(self._retries[delivery.attempts], error.retry_after) * _RANDOM.uniform(1, 1 + JITTER)
            await run_sync(self._queue.retry, name, message.id, time.time() + pause)
            LOG.warning(
                "webhook %s: attempt %d of %d failed: %s; next in %.0f s, %d messages wait",
                name, attempt, number, error, pause, await run_sync(self._queue.waiting, name),
            )  # fmt: skip
            if removed := await run_sync(self._queue.remove_older, name, time.time() - MAX_AGE):
                LOG.warning("webhook %s: gave up on %d messages older than %g days", name, removed, MAX_AGE / 86_400)
            return False
        await run_sync(self._queue.remove, name, message.id)
        return True


# ------------------------------------------------------------------------------------------------------------- messages


def _messages(scope: Scope, change: Change) -> Iterator[Message]:
    """Yield the messages about a change."""
    named = scope.model_dump()
    if change.subject == "scope":
        yield _message("scope.deleted" if change.event == "deleted" else "scope.restored", named, {})
        return
    known = {note.id: note for note in change.notes}
    for start in range(0, max(len(change.ids), len(change.event_ids)), MOST_NOTES):
        notes: list[dict[str, Any]] = []
        for id in change.ids[start : start + MOST_NOTES]:
            note = known.get(id)
            fields: dict[str, Any] = {}
            if note is not None:
                fields = {"kind": note.kind.value, "version": note.version, "event_ids": list(note.event_ids)}
            notes.append({"id": id, **fields})
        data: dict[str, Any] = {"notes": notes}
        if change.event == "deleted":
            data["event_ids"] = list(change.event_ids[start : start + MOST_NOTES])
        yield _message(f"note.{change.event}", named, data)


def _message(type: str, scope: dict[str, Any], data: dict[str, Any]) -> Message:
    return Message(f"msg_{secrets.token_hex(12)}", json.dumps(scope), json.dumps(_body(type, {"scope": scope, **data})))


def _body(type: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"type": type, "timestamp": datetime.now(timezone.utc).isoformat(timespec="milliseconds"), "data": data}


async def _happened(store: GraphStore, message: Message) -> bool:
    """Return whether the store wrote the changes of a message, which it wrote all or none."""
    scope, body = Scope(**json.loads(message.scope)), json.loads(message.body)
    type = str(body["type"])
    if type.startswith("scope."):
        return ((await store.state(scope)).seq == 0) == (type == "scope.deleted")
    notes = {note["id"]: note for note in body["data"]["notes"]}
    stored = await store.notes(scope, list(notes))
    if type == "note.deleted":
        return not stored and not await store.events(scope, body["data"]["event_ids"])
    return any(note.version >= int(notes[id]["version"]) for id, note in stored.items())


async def _with_content(store: GraphStore, message: Message, body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with the present texts of its notes; those that were deleted since have none."""
    notes = body["data"].get("notes", [])
    stored = await store.notes(Scope(**json.loads(message.scope)), [note["id"] for note in notes])
    for note in notes:
        if note["id"] in stored:
            note["content"] = stored[note["id"]].content
    return body


# ----------------------------------------------------------------------------------------------------------------- send


def signature(secret: bytes, id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message: ``v1,`` and a base64 HMAC-SHA256."""
    signed = hmac.new(secret, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


async def send(client: httpx.AsyncClient, target: Target, id: str, body: dict[str, Any]) -> None:
    """Send a message once. Raises ``DeliveryFailed`` unless the target answers with a status of 200 to 299.

    It connects to the address that it has checked, so that a host name cannot lead to another one afterwards.
    """
    import httpx

    content, timestamp = json.dumps(body).encode(), int(time.time())
    headers = {
        "content-type": "application/json", "user-agent": f"zettel/{VERSION}",
        "webhook-id": id, "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(secret, id, timestamp, content) for secret in target.secrets),
    }  # fmt: skip
    try:
        with anyio.fail_after(SEND_SECONDS):
            response = await _post(client, target, content, headers)
    except TimeoutError:
        raise DeliveryFailed(f"no answer within {SEND_SECONDS:g} s") from None
    except (httpx.HTTPError, OSError, UnicodeError) as error:
        raise DeliveryFailed(f"{type(error).__name__} {error}".strip()) from None
    if response.has_redirect_location:
        raise DeliveryFailed(f"HTTP {response.status_code}: zettel follows no redirects")
    if not response.is_success:
        wait = response.headers.get("retry-after", "")
        raise DeliveryFailed(f"HTTP {response.status_code}", min(float(wait), RETRIES[-1]) if wait.isdigit() else 0.0)


async def _post(
    client: httpx.AsyncClient, target: Target, content: bytes, headers: dict[str, str]
) -> httpx.Response:
    """Return the head of the answer of the first address that can be reached."""
    import httpx

    url = httpx.URL(target.url)
    headers = headers | {"host": url.netloc.decode()}
    tls = {"sni_hostname": url.host}
    refused: httpx.ConnectError | None = None
    for address in await _addresses(target, url.host):
        at = url.copy_with(host=address)
        request = client.build_request("POST", at, content=content, headers=headers, extensions=tls)
        try:
            response = await client.send(request, stream=True)  # its body is not read
        except httpx.ConnectError as error:
            refused = error
        else:
            await response.aclose()
            return response
    raise refused or DeliveryFailed(f"{url.host} has no address")


async def _addresses(target: Target, host: str) -> list[str]:
    """Return the addresses of a target. Raises ``DeliveryFailed`` for private ones that are not allowed."""
    port = urlsplit(target.url).port
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not target.private:
        for address in addresses:
            if not is_public(address):
                raise DeliveryFailed(f"{host} is at the private address {address}: set private: true to allow it")
    return addresses


def _client() -> httpx.AsyncClient:
    """Return the client of one target: connections of other targets may belong to other hosts at the same address."""
    import httpx

    tls = httpx.create_ssl_context()  # with SSL_CERT_FILE of the environment, but without its proxies
    return httpx.AsyncClient(verify=tls, trust_env=False, follow_redirects=False, timeout=SEND_SECONDS)


async def send_test(path: str | Path, name: str) -> None:
    """Send a message of type ``webhook.test`` to a target in a file. Raises ``InvalidInput``, ``DeliveryFailed``."""
    target = load_targets(path).named(name)
    async with _client() as client:
        await send(client, target, f"msg_{secrets.token_hex(12)}", _body(TEST, {}))
