"""A process that does jobs for the one that started it, see ``zettel.jobs.on_processes``: what runs there.

Requests come on stdin and answers go to stdout, each a pickled value behind its length: first what the memory was
opened with, then lists of jobs. It ends when stdin does, and so also when whoever started it was killed.
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


def framed(value: Any) -> bytes:
    """A value as it goes from one process to the other."""
    pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(pickled)) + pickled


def main() -> None:
    """Do what is asked until nobody asks any more."""
    from zettel.jobs.elsewhere import close

    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints shall not speak in between
    opening = _next(requests)
    with suppress(BrokenPipeError):  # the other side ended: nobody waits for the answer
        while jobs := _next(requests):
            answers.write(framed(_answer(opening, jobs)))
            answers.flush()
    close()


def _answer(opening: bytes, jobs: list[Job]) -> Evolved | ZettelError:
    from zettel.jobs.elsewhere import do

    try:
        opened = pickle.loads(opening)
    except (AttributeError, ImportError) as error:
        return InvalidInput(f"other processes cannot have a part of this memory: {error}; put it into a module")
    try:
        return do(opened, jobs)
    except ZettelError as error:
        return error


def _next(requests: BinaryIO) -> Any:
    """What is asked next; None at the end."""
    head = requests.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    pickled = requests.read(length)
    return pickle.loads(pickled) if len(pickled) == length else None
