"""Jobs on a Ray cluster: a batch is a task, and Ray runs it again if the node or the process that had it is gone.

Jobs, their order and their leases are in the store, not in Ray: whatever ends in mid-run, another run goes on from
there. How a memory is opened goes along as an argument of each task, for names and environments of tasks stand in Ray's
logs.
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

from zettel.errors import DISTRIBUTION, InvalidInput, MissingExtra, RunnerUnavailable, ZettelError
from zettel.model import Evolved, Job
from zettel.opening import Opening, sealed

OBJECT_STORE_BYTES = 100 * 2**20
"""Shared memory of a Ray that is started here, which by itself takes 30 % of the machine. Only batches of jobs lie
there, some hundred kilobytes each."""
INLINE_BYTES = 100_000
"""Below this Ray sends an argument with its task. What is larger is put into the cluster once, not with each task."""
RETRIES = 3
"""How often Ray runs a batch again whose process or node ended. After that its jobs go back to the queue."""
ANSWER_SECONDS = 5.0
"""How long the head of a cluster may take to answer; Ray itself tries for minutes, and for ever where another program
answers."""
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""How every client of HTTP/2, which gRPC and so Ray speaks, begins (RFC 9113, 3.4); the server's first frame is a
SETTINGS one, too."""
FRAME_BYTES, FRAME_TYPE, SETTINGS = 9, 3, 4
"""Length of a frame's head, where in it the type stands, and which that is."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class RayRunner:
    """Does jobs as tasks of a Ray cluster, for a memory that is kept in Neo4j.

    ``address`` is the cluster's ``HOST:PORT``, ``"auto"`` for one on this machine, a Ray client's ``ray://…``,
    or None: RAY_ADDRESS of the environment, else a Ray is started here and ended with the memory. Where the program has
    called ``ray.init``, that one is used. ``cpus`` is what Ray sets aside for a batch, below 1 where it mostly waits
    for a language model. ``at_once`` batches of each lane may be under way: by default as many as the cluster has room
    for when the memory is opened.
    """

    away = True

    def __init__(self, address: str | None = None, *, at_once: int | None = None, cpus: float = 1.0) -> None:
        if (at_once is not None and at_once < 1) or not cpus > 0:
            raise InvalidInput(f"at_once={at_once} and cpus={cpus}: at least one batch, and something to run it on")
        self.at_once = at_once or 1
        self._address, self._wanted, self._cpus = address, at_once, cpus
        self._connected = False
        self._opening: Any = None
        self._task: Any = None

    async def start(self, opening: Opening) -> None:
        """Connect, or start a Ray here. Raises ``InvalidInput``, ``MissingExtra``, ``RunnerUnavailable``."""
        _require_shared(opening)
        ray = await anyio.to_thread.run_sync(_import)
        from ray import cloudpickle

        from zettel.graph.neo4j.connection import auth_of, database_of

        opening = replace(opening, auth=auth_of(opening.auth), database=database_of(opening.database))
        sent = sealed(opening, "ray", cloudpickle.dumps)
        await anyio.to_thread.run_sync(_connection.join, self._address or os.environ.get("RAY_ADDRESS"))
        self._connected = True
        room = await anyio.to_thread.run_sync(_room, str(opening.url), self._cpus)
        self.at_once = self._wanted or room
        self._opening = sent if len(sent) < INLINE_BYTES else ray.put(sent)
        remote = ray.remote(num_cpus=self._cpus, max_retries=RETRIES, scheduling_strategy="SPREAD")
        self._task = remote(_do)

    async def do(self, jobs: Sequence[Job]) -> Evolved:
        """Have a process of the cluster do a batch. Raises what opening the store there raises, and
        ``RunnerUnavailable``.
        """
        ray = _import()
        kind = jobs[0].kind.value
        under_way = self._task.options(name=f"zettel {kind}").remote(self._opening, list(jobs))
        try:
            done: Evolved = await asyncio.wrap_future(under_way.future())
            return done
        except asyncio.CancelledError:
            ray.cancel(under_way, force=True)  # nothing of it is written any more: its jobs are given back
            raise
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, ZettelError):
                raise error.cause from None
            raise RunnerUnavailable(
                f"a process of the cluster could not begin: {_first_line(error.cause)}; every node needs the same "
                f"{DISTRIBUTION}, and what the memory is opened with"
            ) from None
        except ray.exceptions.RayError as error:
            raise RunnerUnavailable(f"the cluster lost a batch: {_first_line(error)}") from None

    async def close(self) -> None:
        """Let go of the cluster; a Ray that was started here ends."""
        if self._connected:
            self._connected = False
            _connection.leave()


def _do(opening: bytes, jobs: list[Job]) -> Evolved:
    """The task: runs in a process of the cluster."""
    from zettel.jobs.elsewhere import do

    return do(pickle.loads(opening), jobs)


class _Connection:
    """The one connection to Ray that a process can have, shared by its memories."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._address: str | None = None
        self._stack = ExitStack()

    def join(self, address: str | None) -> None:
        """Connect, unless that is done already. Raises ``InvalidInput``, ``RunnerUnavailable``."""
        with self._lock:
            if self._users and address != self._address:
                raise InvalidInput(f"this process uses the Ray at {self._address or 'its own'}: it can use no other")
            if not self._users and not _import().is_initialized():
                with ExitStack() as stack:
                    # A Ray that is started ends with the thread that did it, so that thread has to last.
                    thread = stack.enter_context(start_blocking_portal())
                    thread.call(_connect, address)
                    stack.callback(_import().shutdown)
                    self._stack = stack.pop_all()
            self._users, self._address = self._users + 1, address

    def leave(self) -> None:
        """The last one disconnects, if it was not the program itself that connected."""
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


def _require_shared(opening: Opening) -> None:
    """Raise ``InvalidInput`` for a store that only this machine reaches."""
    address = str(opening.url) if isinstance(opening.url, (str, Path)) else ""
    if "://" not in address or address.lower().startswith("file:"):
        raise InvalidInput(
            f"{address or 'that store'} belongs to one machine: the runner 'ray' needs one that all nodes reach, as "
            "neo4j://HOST:7687 is; `zettel export --format zettel` moves a memory there"
        )


def _connect(address: str | None) -> None:
    ray = _import()
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address in (None, "local"):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # by itself Ray reports to its makers
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
        raise InvalidInput(f"{address!r} is no address of a Ray cluster: it is HOST:PORT, ray://HOST:PORT or auto")
    try:
        with socket.create_connection((host, port), timeout=ANSWER_SECONDS) as link:
            link.sendall(HELLO)
            speaks = link.recv(FRAME_BYTES)[FRAME_TYPE : FRAME_TYPE + 1] == bytes([SETTINGS])
            why = "" if speaks or os.environ.get("RAY_USE_TLS") == "1" else "another program is there"
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        raise RunnerUnavailable(
            f"no Ray cluster answers at {address}: {why}; `ray start --head` starts one and tells its address"
        )


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _room(url: str, cpus: float) -> int:
    """How many batches the cluster has room for. Raises ``InvalidInput`` if its nodes cannot reach the store."""
    ray = _import()
    nodes = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    host = urlsplit(url).hostname
    if len(nodes) > 1 and host in LOOPBACK:
        raise InvalidInput(f"{host} is another machine on each of the cluster's {len(nodes)}: name the store's host")
    return max(1, int(ray.cluster_resources().get("CPU", 1.0) / cpus))
