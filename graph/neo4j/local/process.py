"""A server's process: started so that it outlives its starter, recognised by its command line, ended by its id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from zettel.errors import LocalServerError

END_WITHIN = 60.0
"""Seconds a server may take to write out what it holds; a small one needs two."""
LOOK_EVERY = 0.1


def start(command: list[str], log: Path) -> int:
    """Start a process that does not end with this one, nor at its Ctrl-C; all it says goes to ``log``."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            creationflags=getattr(subprocess, "DETACHED_PROCESS", 0),
        )
    while process.poll() is None and not _command_line(process.pid):
        time.sleep(LOOK_EVERY)  # it is there a moment before its command line can be read
    process.returncode = 0  # it is meant to outlive us: do not warn that nobody waited for it
    return process.pid


def runs(pid: int, mark: str) -> bool:
    """Whether that process is there and its command line holds ``mark``: ids are used again for other processes."""
    return mark in _command_line(pid)


def end(pid: int, mark: str, log: Path) -> None:
    """Ask a process to end, and wait until it did. Raises ``LocalServerError`` if it does not."""
    if not runs(pid, mark):
        return
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + END_WITHIN
    while runs(pid, mark):
        if time.monotonic() > deadline:
            raise LocalServerError(
                f"Neo4j (process {pid}) was told to end and still runs after {END_WITHIN:.0f} s: its log is {log}"
            )
        time.sleep(LOOK_EVERY)
    _reap(pid)


def _reap(pid: int) -> None:
    """Let go of the process if it was a child of this one."""
    if sys.platform != "win32":
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return  # some other process started it


def _command_line(pid: int) -> str:
    """Empty if there is no such process, or one that has ended and that nobody waited for yet."""
    proc = Path("/proc")
    if (proc / "self").exists():
        try:
            return (proc / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return ""
    if sys.platform == "win32":
        ask = ["powershell", "-NoProfile", "-Command"]
        ask.append(f"(Get-CimInstance Win32_Process -Filter 'ProcessId={pid}').CommandLine")
    else:
        ask = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    return subprocess.run(ask, capture_output=True, text=True, errors="replace", check=False).stdout
