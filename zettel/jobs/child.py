"""A process that does jobs for the one that started it, see ``zettel.jobs.on_processes``: what runs there.

Requests come on stdin and answers go to stdout, each a pickled value behind its length: first what the memory was
opened with, then lists of jobs. It ends with an empty list, or with stdin: so also, after the batch that it is at, when
whoever started it was killed.
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
"""Said before the first answer: what stands before it, others have printed."""


def framed(value: Any) -> bytes:
    """A value as it goes from one process to the other."""
    pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(pickled)) + pickled


def main() -> None:
    """Do what is asked until nobody asks any more."""
    from zettel.jobs.elsewhere import close

    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else sys.stderr.fileno(), 1)  # whatever prints
    with suppress(BrokenPipeError):  # the other side ended: nobody waits for the answer
        answers.write(READY)
        answers.flush()
        opening = _opening(_next(requests))
        while jobs := _next(requests):
            answers.write(framed(_answer(opening, jobs)))
            answers.flush()
    close()


def _opening(sealed: bytes) -> Any:
    """What the memory was opened with, or why that cannot be had here."""
    try:
        return pickle.loads(sealed)
    except (AttributeError, ImportError) as error:
        return InvalidInput(f"other processes cannot have a part of this memory: {error}; put it into a module")


def _answer(opening: Any, jobs: list[Job]) -> Evolved | ZettelError:
    from zettel.jobs.elsewhere import do

    if isinstance(opening, ZettelError):
        return opening
    try:
        return do(opening, jobs)
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
