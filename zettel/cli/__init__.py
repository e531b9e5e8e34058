"""The command ``zettel``: the public face of a memory for people and scripts.

One file for each group of commands; none of them imports the engine before a command runs, so that help is
quick.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def main() -> None:
    """Run the command line that this process was started with."""
    from .app import run

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what the terminal or pipe has no letters for is escaped
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))
