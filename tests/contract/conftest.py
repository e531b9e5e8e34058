"""The stores that the promises are tested on. To test another store, add one line to BACKENDS.

The exhaustive in-memory store is the oracle of the promises about answers; those about keeping and destroying are for
stores that persist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.reference import ReferenceStore
from zettel import Memory

BACKENDS: dict[str, Callable[[Path], Any]] = {
    "embedded": lambda folder: folder / "memory.db",
    "reference": lambda folder: ReferenceStore(),
}
PERSISTENT = ["embedded"]


@pytest.fixture(params=BACKENDS)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    """An empty memory on each store."""
    with Memory(BACKENDS[request.param](tmp_path)) as opened:
        yield opened


@pytest.fixture(params=PERSISTENT)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Where an empty memory may be opened, several times and by several processes, on each store that persists."""
    return BACKENDS[request.param](tmp_path)
