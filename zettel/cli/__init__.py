"""The command ``zettel``: the public face of a memory for people and scripts.

One file for each group of commands; none of them imports the engine before a command runs, so that help is
quick.
"""

from __future__ import annotations

import sys

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def main() -> None:
    """Run the command line that this process was started with."""
    from .app import run

    sys.exit(run(sys.argv[1:]))
