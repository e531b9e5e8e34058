"""The hook service: a process of one user that keeps memories open and answers ``hook.py``.

``python -m zettel.integrations.coding_agents.service SOCKET`` serves the socket in the current folder, which only this
user may enter, and first handles the request on stdin, if any. One process serves a socket; another one passes its
request on and ends. The service ends after IDLE_SECONDS without requests, or after an upgrade of zettel. Problems go to
stderr, which is the log.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import fcntl
import getpass
import json
import logging
import os
import shlex
import shutil
import sys
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

import zettel.version
from zettel.async_memory import AsyncMemory
from zettel.core.private_files import FOLDER_MODE, private
from zettel.errors import InvalidInput, StoreError, ZettelError
from zettel.model import Scope
from zettel.transcripts.projects import project_name

from . import hook as client
from .capture import Capture, turn_of
from .protocols import Action, Agent, Hook, agent_named
from .recall import prompt_memory, session_memory

IDLE_SECONDS = 3_600.0
"""Seconds without a request after which the service ends."""
LATE_SECONDS = 2.0
"""Seconds after which a transcript is read again: agents may write the last reply after the event."""
RETRY_SECONDS, PASS_ON_SECONDS = 0.1, 60.0
"""Pause before another attempt to reach a service that starts or ends, and the wait for its answer."""
DEFAULT_STORE = "~/.zettel/agents.db"

_log = logging.getLogger("zettel.hooks")


class Request(NamedTuple):
    """The arguments of ``zettel hook``, parsed, and the input of the event."""

    agent: Agent
    hook: Hook
    store: str
    scope: Scope


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidInput(f"zettel hook: {message}")


def _parser() -> _Parser:
    parser = _Parser(prog="zettel hook", add_help=False)
    parser.add_argument("agent")
    parser.add_argument("event")
    parser.add_argument("--store", default=DEFAULT_STORE)
    parser.add_argument("--tenant")
    parser.add_argument("--user")
    parser.add_argument("--shared", action="store_true")
    return parser


def parse(request: bytes) -> Request:
    """Parse a request of ``hook.py``. Raises ``InvalidInput``."""
    arguments, folder, data = ast.literal_eval(request.decode())
    options = _parser().parse_args(arguments)
    agent = agent_named(options.agent)
    try:
        input = json.loads(data)
    except (ValueError, RecursionError):
        raise InvalidInput(f"{options.event}: expected JSON on stdin") from None
    hook = agent.hook(options.event, input, folder)
    store = options.store if "://" in options.store else os.path.expanduser(options.store)
    return Request(agent, hook, store, scope_of(hook, options.tenant, options.user, options.shared))


def scope_of(hook: Hook, tenant: str | None, user: str | None, is_shared: bool) -> Scope:
    """Return the scope of an event: the user of the system, and as agent the project; ``is_shared``: all projects.

    Raises ``InvalidInput`` if the agent names no folder.
    """
    if not is_shared and not hook.folder:
        raise InvalidInput(f"{hook.event}: the agent names no folder of a project: pass --shared for one memory of all")
    project = None if is_shared or hook.folder is None else project_name(hook.folder)
    return Scope(tenant=tenant, user=user or getpass.getuser(), agent=project)


def _search_command(request: Request) -> str:
    """Return the shell command that searches the memory of a request."""
    scope = request.scope
    parts = {"--store": request.store, "--tenant": scope.tenant, "--user": scope.user, "--agent": scope.agent}
    program = ["zettel"] if shutil.which("zettel") else [sys.executable, "-m", "zettel"]
    options = [word for name, value in parts.items() if value is not None for word in (name, value)]
    return shlex.join([*program, "search", *options, "QUESTION"])


class HookService:
    """Answers events; each store is opened once."""

    def __init__(self) -> None:
        self._memories: dict[str, tuple[AsyncMemory, Capture]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._writing: dict[str, asyncio.Lock] = {}

    async def answer(self, request: Request) -> str:
        """Return the text for stdout; turns are stored in the background. Raises ``ZettelError``, ``OSError``."""
        hook = request.hook
        memory, capture = await self._memory(request.store)
        if hook.action is Action.START:
            text = await session_memory(memory, request.scope, hook.session, _search_command(request))
        elif hook.action is Action.PROMPT:
            text = await prompt_memory(memory, request.scope, hook.prompt, hook.session)
        else:
            text = ""
            self._start(self._store(capture, request))
        return request.agent.answer(hook.event, text)

    async def close(self) -> None:
        """Wait for what is being stored and close the memories."""
        while self._tasks:
            await asyncio.gather(*self._tasks)
        for memory, _ in self._memories.values():
            await memory.close()
        self._memories.clear()

    async def _memory(self, store: str) -> tuple[AsyncMemory, Capture]:
        if store not in self._memories:
            is_remote = store.startswith(("http://", "https://"))
            if "://" not in store:
                Path(store).parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            key = os.environ.get("ZETTEL_KEY") or None
            memory = AsyncMemory(store, key=key) if is_remote else AsyncMemory(store, privacy="redact")
            self._memories[store] = (memory, Capture(memory))
        memory, capture = self._memories[store]
        await memory.open()
        return memory, capture

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _store(self, capture: Capture, request: Request) -> None:
        hook, scope = request.hook, request.scope
        if hook.action is Action.TURN:
            with _logged(hook.event):
                turn = turn_of(hook)
                await capture.add([turn] if turn else [], scope)
            return
        for path in hook.transcripts:
            async with self._writing.setdefault(path, asyncio.Lock()):
                with _logged(hook.event):
                    await capture.store(path, request.agent.format or "", scope)
                    size = os.stat(path).st_size
                    await asyncio.sleep(LATE_SECONDS)
                    if os.stat(path).st_size != size:
                        await capture.store(path, request.agent.format or "", scope)


class _logged:
    """Logs the expected errors of a block, which nobody waits for."""

    def __init__(self, event: str) -> None:
        self._event = event

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, (ZettelError, OSError)):
            return False
        _log.warning("%s: %s", self._event, error)
        return True


class _Server:
    """Serves the socket until it is idle or outdated."""

    def __init__(self, service: HookService, idle_seconds: float) -> None:
        self._service = service
        self._idle_seconds = idle_seconds
        self._version = _version_time()
        self._ended = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._open = 0

    async def run(self, socket: str, first: bytes) -> None:
        former = os.umask(0o177)
        try:
            server = await asyncio.start_unix_server(self._handle, socket, limit=2**20)
        finally:
            os.umask(former)
        async with server:
            if first:
                await self.reply(first)
            self._wait()
            await self._ended.wait()
        await self._service.close()

    async def reply(self, request: bytes) -> bytes:
        """Return the texts for stdout and stderr, separated by a NUL."""
        try:
            return (await self._service.answer(parse(request))).encode() + b"\0"
        except (ZettelError, OSError) as error:
            message = " ".join(str(error).split())
            _log.warning("%s", message)
            return b"\0" + f"zettel: {message}\n".encode(errors="replace")

    async def _handle(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._open += 1
        answer = b"\0zettel: the hook failed: see its log\n"  # unless the next line succeeds
        try:
            answer = await self.reply(await reader.read(-1))
        finally:
            writer.write(answer)
            writer.close()
            self._open -= 1
            self._wait()

    def _wait(self) -> None:
        """Plan the end: after the idle time, or now if zettel was upgraded."""
        if self._timer is not None:
            self._timer.cancel()
        seconds = 0.0 if _version_time() != self._version else self._idle_seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self._end)

    def _end(self) -> None:
        if self._open:
            self._wait()
        else:
            self._ended.set()


def _version_time() -> float:
    try:
        return os.stat(zettel.version.__file__).st_mtime
    except OSError:
        return 0.0


def main() -> int:
    """Run the service in the current folder; returns the exit status."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s: %(message)s")
    socket = sys.argv[1]
    status = os.stat(".")
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise StoreError(f"{os.getcwd()} must belong to you alone: chmod 700 it")
    first = sys.stdin.buffer.read()
    with open(f"{socket}.lock", "ab", opener=private) as lock:
        while not _is_locked(lock):  # another service is running, starting or ending
            if not first or client.ask(os.getcwd(), first, PASS_ON_SECONDS) is not None:
                return 0
            time.sleep(RETRY_SECONDS)
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n".encode())
        lock.flush()
        Path(socket).unlink(missing_ok=True)  # of a service that was killed
        asyncio.run(_Server(HookService(), IDLE_SECONDS).run(socket, first))
        Path(socket).unlink(missing_ok=True)
    return 0


def _is_locked(lock: BinaryIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
