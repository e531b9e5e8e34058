"""The program that a coding agent runs at each event: it asks the hook service and prints the answer.

A person waits for it at each prompt, so it imports almost nothing and agents run it with ``python -I -S``. Without a
service it starts one: at the start of a session it waits for the answer, otherwise the service handles the event after
its start. It never blocks the agent: the exit status is 0, problems are lines on stderr and in the log of the service.

The request is the ``repr`` of ``(arguments, folder, data)``; the answer is the text for stdout, a NUL, and the one for
stderr.
"""

import sys

SERVICE = "zettel.integrations.coding_agents.service"
FOLDER = ".zettel/hooks"
"""Folder of the socket and the log in the home folder of the user."""
LOG = "hooks.log"
MAX_LOG = 1_000_000
"""Bytes of the log from which a new service begins another one."""
STARTS = ("SessionStart", "sessionStart")
"""Events whose answer is worth waiting for the start of the service."""
START_SECONDS, SECONDS = 10.0, 0.3
"""Longest wait for the answer to the start of a session, and to any other event."""
PROJECT_FOLDERS = {"claude-code": b"CLAUDE_PROJECT_DIR", "gemini-cli": b"GEMINI_PROJECT_DIR"}
"""The environment variables in which agents pass the folder of the project; the current folder may be inside it."""


def main(arguments: "list[str]") -> int:
    """Handle one event; ``arguments`` are those of ``zettel hook``. Returns the exit status, always 0."""
    try:
        import posix
        from _socket import AF_UNIX  # noqa: F401 - absent on Windows
    except ImportError:
        sys.stderr.write("zettel: hooks require Unix sockets, which this system lacks\n")
        return 0
    data = sys.stdin.buffer.read()
    project = posix.environ.get(PROJECT_FOLDERS.get(arguments[0] if arguments else "", b""), b"")
    request = repr((arguments, project.decode(errors="surrogateescape"), data)).encode()
    is_start = any(event in arguments for event in STARTS)
    folder = posix.environ.get(b"HOME", b".").decode(errors="surrogateescape") + "/" + FOLDER
    try:
        answer = ask(folder, request, START_SECONDS if is_start else SECONDS)
        if answer is None:
            answer = start(folder, request, is_start)
    except OSError as error:
        answer = b"\0" + f"zettel: the hook has no answer: {error} (see {folder}/{LOG})\n".encode()
    out, _, problem = answer.partition(b"\0")
    sys.stdout.buffer.write(out)
    sys.stdout.flush()
    sys.stderr.buffer.write(problem)
    return 0


def socket_name() -> str:
    """Return the name of the socket in FOLDER: each installation of zettel has a service of its own."""
    from zlib import crc32

    return f"{crc32(__file__.encode(errors='surrogateescape')):08x}.sock"


def ask(folder: str, request: bytes, seconds: float) -> "bytes | None":
    """Return the answer of the service, or None if none is running or it ends before it answers.

    Raises ``OSError``, also after ``seconds`` without an answer.
    """
    from _socket import AF_UNIX, SHUT_WR, SOCK_STREAM, socket
    from posix import chdir

    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.settimeout(seconds)
    try:
        chdir(folder)  # the address of a socket may have about a hundred characters
        connection.connect(socket_name())
        sent = 0
        while sent < len(request):
            sent += connection.send(request[sent : sent + 65_536])
        connection.shutdown(SHUT_WR)
        parts = []
        while part := connection.recv(65_536):
            parts.append(part)
    except (FileNotFoundError, ConnectionError):
        return None
    finally:
        connection.close()
    answer = b"".join(parts)
    return answer if b"\0" in answer else None


def start(folder: str, request: bytes, is_start: bool) -> bytes:
    """Start the service, which handles the request; return its answer if ``is_start``. Raises ``OSError``."""
    import os
    import subprocess
    import time

    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    log = os.open(f"{folder}/{LOG}", os.O_APPEND | os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    if os.fstat(log).st_size > MAX_LOG:
        os.ftruncate(log, 0)
    # From the private folder, because Python also imports modules from the current one. With one thread for matrices:
    # several would wait for each other in a loop, for a multiple of the time of a search.
    process = subprocess.Popen(
        [sys.executable, "-m", SERVICE, socket_name()], cwd=folder, start_new_session=True,
        env={"OMP_NUM_THREADS": "1", **os.environ}, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log,
    )  # fmt: skip
    os.close(log)
    assert process.stdin is not None
    if not is_start:
        process.stdin.write(request)
    process.stdin.close()
    process.returncode = 0  # not waited for: it outlives this program
    until = time.monotonic() + START_SECONDS
    while is_start and time.monotonic() < until:
        time.sleep(0.02)
        answer = ask(folder, request, until - time.monotonic())
        if answer is not None:
            return answer
    return b""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
