"""Where a number was taken: the machine, the versions, the data."""

from __future__ import annotations

import hashlib
import os
import platform
import sqlite3
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeAlias

from pydantic import BaseModel

from zettel import __version__

PACKAGES = (
    "faiss-cpu", "litellm", "model2vec", "neo4j", "numpy", "pydantic", "PyStemmer", "scipy", "sentence-transformers",
    "torch",
)  # fmt: skip
"""Those whose version a result may depend on."""

_CPUINFO = Path("/proc/cpuinfo")
_DIGEST_CHARS = 16  # of the file's sha256: enough to tell two files apart

Cell: TypeAlias = "str | int | float | None"


class Machine(BaseModel):
    """What ran it."""

    system: str
    processor: str
    cores: int
    python: str
    packages: dict[str, str]


class Result(BaseModel):
    """One benchmark's outcome: a table, with all that is needed to judge and repeat it."""

    bench: str
    zettel: str = __version__
    taken_at: datetime
    machine: Machine
    ran_on: dict[str, Cell]
    settings: dict[str, Cell]
    columns: list[str]
    rows: list[list[Cell]]
    notes: list[str] = []
    curves: dict[str, list[float]] = {}
    """Per system, the measure in the first 1, 2, 3, … places."""

    def write(self, path: Path) -> None:
        """Write it to a file as JSON."""
        path.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")


def result(
    bench: str,
    ran_on: dict[str, Cell],
    settings: dict[str, Cell],
    columns: list[str],
    rows: list[list[Cell]],
    notes: list[str],
    curves: dict[str, list[float]] | None = None,
) -> Result:
    """A Result of this machine, now."""
    return Result(
        bench=bench,
        taken_at=datetime.now(timezone.utc).replace(microsecond=0),
        machine=this_machine(),
        ran_on=ran_on,
        settings=settings,
        columns=columns,
        rows=rows,
        notes=notes,
        curves=curves or {},
    )


def this_machine() -> Machine:
    """Its system, processor, the cores this process may use, and versions."""
    packages = {"SQLite": sqlite3.sqlite_version}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return Machine(
        system=f"{platform.system()} {platform.machine()}",
        processor=_processor(),
        cores=usable_cores(),
        python=platform.python_version(),
        packages=packages,
    )


def usable_cores() -> int:
    """Cores that this process may run on: in a container fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def data_file(path: Path) -> dict[str, Cell]:
    """The name and hash of a file that was measured on; not its folder, which is nobody's business."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"file": path.name, "sha256": digest[:_DIGEST_CHARS]}


def _processor() -> str:
    if _CPUINFO.exists():
        for line in _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
