"""The command line ``zettel``.

Each module contains one group of commands. No module imports the engine before a command runs, so that help is fast.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

BLAS_THREADS = "OPENBLAS_NUM_THREADS"
"""Environment variable that numpy reads when imported. With more than one, its threads wait busily for each other:
an import then takes a fifth more processor time, and as long as before."""
INTERRUPTED = 130  # 128 + SIGINT, the convention of shells


def main() -> None:
    """Run the command line of this process."""
    if sys.argv[1:2] == ["hook"] and "--help" not in sys.argv:  # an agent waits for it at each prompt
        from zettel.integrations.coding_agents import hook

        sys.exit(hook.main(sys.argv[2:]))
    from .app import run

    os.environ.setdefault(BLAS_THREADS, "1")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # escape characters that the terminal or pipe cannot encode
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))
