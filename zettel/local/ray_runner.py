"""The runner that runs jobs on a Ray cluster: each batch is a task, and Ray retries it if its node or process ends.

Jobs, their order and their leases are in the store, not in Ray, so another run continues where one has ended. The
settings of the memory are an argument of each task, because Ray logs the names and environments of tasks.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import socket
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread
from anyio.from_thread import start_blocking_portal

from zettel.errors import InvalidInput, MissingExtra, RunnerUnavailable, ZettelError
from zettel.model import Evolved, Job
from zettel.ports.settings import Settings, sealed
from zettel.version import DISTRIBUTION

OBJECT_STORE_BYTES = 100 * 2**20
"""Shared memory of a Ray started here, in place of 30 % of the machine: it contains only batches of jobs, some hundred
kilobytes each."""
INLINE_BYTES = 100_000
"""Smaller arguments travel with each task. Larger ones are put into the cluster once."""
RETRIES = 3
"""Retries by Ray of a batch whose process or node ended. After that its jobs return to the queue."""
ANSWER_SECONDS = 5.0
"""Seconds that the head of a cluster may take to answer. Ray itself tries for minutes, and for ever if another program
answers."""
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""The first bytes of an HTTP/2 client (RFC 9113, 3.4), the protocol of gRPC and Ray. The server answers with a SETTINGS
frame."""
FRAME_BYTES, FRAME_TYPE, SETTINGS = 9, 3, 4
"""The length of a frame header, the position of the frame type in it, and the type SETTINGS."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class RayRunner:
    """Runs jobs as tasks of a Ray cluster, for a memory in Neo4j.

    If the program has called ``ray.init``, that connection is used.

    Args:
        address: The cluster's ``HOST:PORT``, ``"auto"`` for a cluster on this machine, a Ray client's ``ray://…``, or
            None: RAY_ADDRESS of the environment, else a Ray is started here and stopped with the memory.
        at_once: Batches of each lane that may run together; by default as many as fit the cluster when the memory is
            opened.
        cpus: CPUs that Ray reserves for a batch, below 1 where it mostly waits for a language model.

    Raises:
        InvalidInput: ``at_once`` is below 1, or ``cpus`` is not above 0.

    Examples:
        >>> from zettel import RayRunner
        >>> runner = RayRunner("ray-head:6379", cpus=0.5)
    """

    away = True

    def __init__(self, address: str | None = None, *, at_once: int | None = None, cpus: float = 1.0) -> None:
        if (at_once is not None and at_once < 1) or not cpus > 0:
            raise InvalidInput(f"at_once must be at least 1 and cpus above 0, got {at_once} and {cpus}")
        self.at_once = at_once or 1
        self._address, self._wanted, self._cpus = address, at_once, cpus
        self._connected = False
        self._opening: Any = None
        self._task: Any = None

    async def start(self, settings: Settings) -> None:
        """Connect, or start a Ray here. Raises ``InvalidInput``, ``MissingExtra``, ``RunnerUnavailable``."""
        _require_shared(settings)
        ray = await anyio.to_thread.run_sync(_import)
        from ray import cloudpickle

        from zettel.graph.neo4j.connection import auth_of, database_of

        settings = replace(settings, auth=auth_of(settings.auth), database=database_of(settings.database))
        sent = sealed(settings, "ray", cloudpickle.dumps)
        await anyio.to_thread.run_sync(_connection.join, self._address or os.environ.get("RAY_ADDRESS"))
        self._connected = True
        capacity = await anyio.to_thread.run_sync(_capacity, str(settings.url), self._cpus)
        self.at_once = self._wanted or capacity
        self._opening = sent if len(sent) < INLINE_BYTES else ray.put(sent)
        remote = ray.remote(num_cpus=self._cpus, max_retries=RETRIES, scheduling_strategy="SPREAD")
        self._task = remote(_do)

    async def do(self, jobs: Sequence[Job]) -> Evolved:
        """Run a batch on the cluster. Raises what opening the store there raises, and ``RunnerUnavailable``."""
        ray = _import()
        kind = jobs[0].kind.value
        under_way = self._task.options(name=f"zettel {kind}").remote(self._opening, list(jobs))
        try:
            done: Evolved = await asyncio.wrap_future(under_way.future())
            return done
        except asyncio.CancelledError:
            ray.cancel(under_way, force=True)  # it has no effect any more: its jobs are requeued
            raise
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, ZettelError):
                raise error.cause from None
            raise RunnerUnavailable(
                f"a process of the cluster could not start: {_first_line(error.cause)}; install the same "
                f"{DISTRIBUTION} and the parts of the memory on every node"
            ) from None
        except ray.exceptions.RayError as error:
            raise RunnerUnavailable(f"the cluster lost a batch: {_first_line(error)}") from None

    async def close(self) -> None:
        """Disconnect from the cluster; a Ray that was started here stops."""
        if self._connected:
            self._connected = False
            _connection.leave()


def _do(settings: bytes, jobs: list[Job]) -> Evolved:
    """Run a batch; this is the task that runs on the cluster."""
    from zettel.local.worker import do

    return do(pickle.loads(settings), jobs)


class _Connection:
    """The only connection to Ray that a process can have, shared by its memories."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._address: str | None = None
        self._stack = ExitStack()

    def join(self, address: str | None) -> None:
        """Connect, if not connected. Raises ``InvalidInput``, ``RunnerUnavailable``."""
        with self._lock:
            if self._users and address != self._address:
                raise InvalidInput(f"this process uses the Ray at {self._address or 'its own'}: use the same address")
            if not self._users and not _import().is_initialized():
                with ExitStack() as stack:
                    # A Ray ends with the thread that started it, so that thread has to stay.
                    thread = stack.enter_context(start_blocking_portal())
                    thread.call(_connect, address)
                    stack.callback(_import().shutdown)
                    self._stack = stack.pop_all()
            self._users, self._address = self._users + 1, address

    def leave(self) -> None:
        """Disconnect after the last memory, unless the program itself connected."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self._stack.close()


_connection = _Connection()


def _import() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingExtra("the runner 'ray'", "ray") from None
    return ray


def _require_shared(settings: Settings) -> None:
    """Raise ``InvalidInput`` for a store that only this machine can open."""
    address = str(settings.url) if isinstance(settings.url, (str, Path)) else ""
    if "://" not in address or address.lower().startswith("file:"):
        raise InvalidInput(
            f"the runner 'ray' cannot open {address or 'this store'} on other machines: use a server such as "
            "neo4j://HOST:7687; `zettel export --format zettel` moves a memory there"
        )


def _connect(address: str | None) -> None:
    ray = _import()
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address in (None, "local"):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray's telemetry is on by default
        ray.init(address="local", include_dashboard=False, object_store_memory=OBJECT_STORE_BYTES, **quiet)
        return
    if address != "auto":
        _require_answer(str(address))
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise RunnerUnavailable(f"no Ray cluster at {address}: {_first_line(error)}") from None


def _require_answer(address: str) -> None:
    try:
        split = urlsplit(address if "://" in address else f"//{address}")
        host, port = split.hostname, split.port
    except ValueError:
        host, port = None, None
    if not host or not port:
        raise InvalidInput(f"address of the Ray cluster must be HOST:PORT, ray://HOST:PORT or auto, got {address!r}")
    try:
        with socket.create_connection((host, port), timeout=ANSWER_SECONDS) as link:
            link.sendall(HELLO)
            speaks = link.recv(FRAME_BYTES)[FRAME_TYPE : FRAME_TYPE + 1] == bytes([SETTINGS])
            why = "" if speaks or os.environ.get("RAY_USE_TLS") == "1" else "another program uses the port"
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        raise RunnerUnavailable(
            f"no Ray cluster answers at {address}: {why}; `ray start --head` starts one and prints its address"
        )


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _capacity(url: str, cpus: float) -> int:
    """Return how many batches fit the cluster. Raises ``InvalidInput`` if its nodes cannot reach the store."""
    ray = _import()
    nodes = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    host = urlsplit(url).hostname
    if len(nodes) > 1 and host in LOOPBACK:
        raise InvalidInput(f"{host} differs on each of the {len(nodes)} nodes: use the host name of the store")
    return max(1, int(ray.cluster_resources().get("CPU", 1.0) / cpus))
