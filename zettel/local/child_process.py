"""The main function of a child process that runs jobs, see ``zettel.local.process_runner``.

Requests arrive on stdin and answers go to stdout, each a pickled value after its length: first the settings of the
memory, then lists of jobs. The process ends at an empty list or at the end of stdin, so it also ends, after its current
batch, when its parent was killed.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
from contextlib import suppress
from typing import Any, BinaryIO

from zettel.errors import InvalidInput, ZettelError
from zettel.model import Evolved, Job

LENGTH = struct.Struct("<Q")
READY = b"\0zettel\n"
"""Sent before the first answer: everything before it was printed by other code."""


def framed(value: Any) -> bytes:
    """Return a value as it is sent between the processes."""
    pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(pickled)) + pickled


def main() -> None:
    """Serve requests until stdin ends."""
    from zettel.local.worker import close

    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else sys.stderr.fileno(), 1)  # for print()
    with suppress(BrokenPipeError):  # the parent ended
        answers.write(READY)
        answers.flush()
        settings = _load_settings(_next(requests))
        while jobs := _next(requests):
            answers.write(framed(_answer(settings, jobs)))
            answers.flush()
    close()


def _load_settings(sealed: bytes) -> Any:
    """Return the settings of the memory, or the error if this process cannot load them."""
    try:
        return pickle.loads(sealed)
    except (AttributeError, ImportError) as error:
        return InvalidInput(f"other processes cannot import a part of this memory: {error}; put it into a module")


def _answer(settings: Any, jobs: list[Job]) -> Evolved | ZettelError:
    from zettel.local.worker import do

    if isinstance(settings, ZettelError):
        return settings
    try:
        return do(settings, jobs)
    except ZettelError as error:
        return error


def _next(requests: BinaryIO) -> Any:
    """Return the next request; None at the end."""
    head = requests.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    pickled = requests.read(length)
    return pickle.loads(pickled) if len(pickled) == length else None
