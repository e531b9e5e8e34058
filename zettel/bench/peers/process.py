"""The parent's side of a peer: its child process, and the embedder that all children share."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import dropwhile
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from zettel.errors import ZettelError

if TYPE_CHECKING:
    from zettel.ports.query import Floats

SERVE = Path(__file__).with_name("serve.py")
TIMEOUT = 600.0
"""Seconds that a peer may take for one answer."""
END_TIMEOUT = 10.0
"""Seconds that a peer may take to end after ``close``."""
BACKLOG = 8
QUIET = {
    "ANONYMIZED_TELEMETRY": "False", "COGNEE_TELEMETRY": "false", "DO_NOT_TRACK": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1", "LANGCHAIN_TRACING_V2": "false", "LANGSMITH_TRACING": "false", "MEM0_TELEMETRY": "False",
    "ORT_DISABLE_TELEMETRY": "1", "POSTHOG_DISABLED": "1", "TELEMETRY_DISABLED": "1", "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_OFFLINE": "1",
}  # fmt: skip
"""Environment that switches off the peers' telemetry and downloads."""
_STATUS = "/proc/{}/status"
_ERROR_CHARS = 160
_TRACEBACK = "Traceback (most recent call last):"


class PeerFailed(ZettelError):
    """A peer ended, did not answer, or answered nonsense; the message is one line."""


class Timed(NamedTuple):
    """The result of a call, and the seconds that it took in the child."""

    result: Any
    seconds: float


@contextmanager
def shared_vectors(encode: Callable[[Sequence[str]], Floats]) -> Iterator[str]:
    """Answer requests of children for vectors while the context is open; yields the address for ``PeerProcess``.

    ``encode`` returns (n, dim) float32 rows of n texts. It runs in threads, one for each child.
    """
    with Listener(backlog=BACKLOG) as listener:
        ended = threading.Event()
        accepting = threading.Thread(target=_accept, args=(listener, encode, ended))
        accepting.start()
        try:
            yield str(listener.address)
        finally:
            ended.set()
            Client(listener.address).close()  # wakes the thread, which waits for a connection
            accepting.join()


def _accept(listener: Listener, encode: Callable[[Sequence[str]], Floats], ended: threading.Event) -> None:
    while True:
        connection = listener.accept()
        if ended.is_set():
            connection.close()
            return
        threading.Thread(target=_answer, args=(connection, encode), daemon=True).start()


def _answer(connection: Connection, encode: Callable[[Sequence[str]], Floats]) -> None:
    with connection, suppress(EOFError, OSError):  # the child ended or was killed
        while True:
            connection.send_bytes(encode(json.loads(connection.recv_bytes())).tobytes())


class PeerProcess:
    """A driver in a child process. Usable as a context manager, which kills a child that still runs.

    ``python`` is the interpreter of the peer's environment, ``driver`` the driver's file. The peer opens in ``folder``,
    which is also its home; its output goes to the file ``log``. Every method raises ``PeerFailed``.
    """

    def __init__(
        self, python: Path, driver: Path, folder: Path, address: str, log: Path, timeout: float = TIMEOUT
    ) -> None:
        self._log, self._timeout = log, timeout
        with log.open("ab") as errors:
            self._log_start = errors.tell()
            self._process = subprocess.Popen(
                [str(python), "-I", str(SERVE), str(driver), str(folder), address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env={**os.environ, **QUIET, "HOME": str(folder)},
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests: IO[bytes] = self._process.stdin
        self._answers: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()

    def __enter__(self) -> PeerProcess:
        try:
            self.receive()
        except PeerFailed:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def call(self, method: str, **arguments: Any) -> Timed:
        """Call a method of the driver and wait for its answer."""
        self.send(method, **arguments)
        return self.receive()

    def send(self, method: str, **arguments: Any) -> None:
        """Send a request without waiting for the answer."""
        try:
            self._requests.write(json.dumps({"do": method, "arguments": arguments}).encode() + b"\n")
            self._requests.flush()
        except OSError:
            raise PeerFailed(self._death()) from None

    def receive(self) -> Timed:
        """Wait for the next answer."""
        try:
            line = self._answers.get(timeout=self._timeout)
        except queue.Empty:
            raise PeerFailed(f"no answer within {self._timeout:g} s") from None
        if not line:
            raise PeerFailed(self._death())
        try:
            answer = json.loads(line)
            return Timed(answer["result"], float(answer["seconds"]))
        except (ValueError, TypeError, KeyError):
            raise PeerFailed(f"an answer that is not understood: {_shortened(line.decode(errors='replace'))}") from None

    def search(self, question: str, k: int) -> tuple[list[str], float]:
        """Return the ids of the hits, best first, and the seconds of the search."""
        found = self.call("search", question=question, k=k)
        if not isinstance(found.result, list) or not all(isinstance(id, str) for id in found.result):
            raise PeerFailed(f"hits that are not a list of ids: {_shortened(str(found.result))}")
        return found.result[:k], found.seconds

    def resident_bytes(self) -> int | None:
        """Return the child's memory in RAM; None without ``/proc``."""
        try:
            status = Path(_STATUS.format(self._process.pid)).read_text(encoding="utf-8")
        except OSError:
            return None
        sizes = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
        return int(sizes[0]) * 1024 if sizes else None  # /proc counts in KiB

    def close(self) -> None:
        """Close the peer and wait for the end of its process."""
        self.call("close")
        try:
            self._process.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the process at once (SIGKILL) and wait for its end."""
        self._process.kill()
        self._process.wait()
        with suppress(BrokenPipeError):  # a request that the child did not read
            self._requests.close()

    def _read(self, stdout: IO[bytes]) -> None:
        with stdout:
            for line in stdout:
                self._answers.put(line)
        self._answers.put(b"")

    def _death(self) -> str:
        try:
            status = self._process.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            return "it closed its output"
        with self._log.open("rb") as log:
            log.seek(self._log_start)
            output = log.read().decode(errors="replace")
        return _shortened(f"it ended with status {status}: {_error(output) or 'without a message'}")


def _error(output: str) -> str:
    """Return the exception of the last traceback in a process's output, or its last line without a traceback."""
    lines = [line for line in output.splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines, 1) if line == _TRACEBACK]
    exception = dropwhile(lambda line: line[0].isspace(), lines[starts[-1] :] if starts else [])
    return " ".join(exception) or "".join(lines[-1:])


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _ERROR_CHARS else f"{line[: _ERROR_CHARS - 1]}…"
