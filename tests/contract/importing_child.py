"""An import that the tests kill: `python importing_child.py URL FLAG ACKNOWLEDGED EVENTS`.

The first byte of the file FLAG is 1 during the write of a batch; it shows whether a kill hit a write.
ACKNOWLEDGED gets a line for each event of a completed `add_many` call before the next call begins.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
from pathlib import Path
from typing import Any

from zettel import Memory
from zettel.ports.operations import Batch

BATCH = 5


def main(url: str, flag: str, acknowledged: str, events: str) -> None:
    turns = [json.loads(line) for line in Path(events).read_text().splitlines()]
    log = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with open(flag, "r+b") as file, mmap.mmap(file.fileno(), 1) as inside, Memory(url) as memory:
        store: Any = memory._bridge.inner._backend.memory.engine.store
        apply = store.apply

        async def watched(batch: Batch) -> None:
            inside[0] = 1
            await apply(batch)
            inside[0] = 0

        store.apply = watched
        for start in range(0, len(turns), BATCH):
            batch = turns[start : start + BATCH]
            memory.add_many(batch)
            os.write(log, "".join(event["id"] + "\n" for event in batch).encode())
        memory.flush()
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
