"""The server process: detached start, identification by command line, stop by process id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from zettel.errors import LocalServerError

STOP_SECONDS = 60.0
"""Timeout of a stop, in which the server writes its data; a small one needs two seconds."""
POLL_SECONDS = 0.1


def start(command: list[str], log: Path) -> int:
    """Start a detached process that ignores this one's Ctrl-C and writes to ``log``; return its process id."""
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
        time.sleep(POLL_SECONDS)  # its command line is readable shortly after the start
    process.returncode = 0  # it outlives this process: suppress the warning about a process without wait()
    return process.pid


def runs(pid: int, mark: str) -> bool:
    """Return if the process exists and its command line contains ``mark``; other processes may reuse its id."""
    return mark in _command_line(pid)


def end(pid: int, mark: str, log: Path) -> None:
    """Stop a process and wait for its end. Raises ``LocalServerError`` if it still runs after STOP_SECONDS."""
    if not runs(pid, mark):
        return
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while runs(pid, mark):
        if time.monotonic() > deadline:
            raise LocalServerError(
                f"Neo4j (process {pid}) still runs {STOP_SECONDS:.0f} s after the stop signal: see its log {log}"
            )
        time.sleep(POLL_SECONDS)
    _reap(pid)


def _reap(pid: int) -> None:
    """Release the process if it was a child of this one."""
    if sys.platform != "win32":
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return  # another process started it


def _command_line(pid: int) -> str:
    """Return the command line of a process, or "" if it does not exist or has ended."""
    proc = Path("/proc")
    if (proc / "self").exists():
        try:
            return (proc / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return ""
    if sys.platform == "win32":
        command = ["powershell", "-NoProfile", "-Command"]
        command.append(f"(Get-CimInstance Win32_Process -Filter 'ProcessId={pid}').CommandLine")
    else:
        command = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False).stdout
