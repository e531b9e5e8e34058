"""Benchmark results with the machine, versions and data that they were measured on."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeAlias

from pydantic import BaseModel, Field

from zettel.version import VERSION

PACKAGES = (
    "faiss-cpu", "litellm", "model2vec", "neo4j", "numpy", "onnxruntime", "pydantic", "PyStemmer", "ray", "scipy",
    "sentence-transformers", "torch",
)  # fmt: skip
"""Packages whose version may affect a result."""

_CPUINFO = Path("/proc/cpuinfo")
_BLOCK = 1 << 20

Cell: TypeAlias = "str | int | float | None"
UnitRows: TypeAlias = "dict[str, tuple[Cell, str]]"
"""Row name to (value, unit)."""


class Machine(BaseModel):
    system: str
    processor: str
    cores: int
    python: str
    packages: dict[str, str]


def this_machine() -> Machine:
    """Return this process's system, processor, usable cores and package versions."""
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


class DataFile(BaseModel):
    """A data file that a benchmark read: its name, its size in bytes, and its SHA-256 in hexadecimal digits."""

    name: str
    size: int
    sha256: str


class Result(BaseModel):
    """A benchmark's table with the data needed to judge and repeat it; by default of this machine, now."""

    bench: str
    zettel: str = VERSION
    commit: str | None = Field(default_factory=lambda: checkout_commit())
    """The git commit of the checkout that was measured, with "+" for uncommitted changes; None outside a checkout."""
    taken_at: datetime = Field(default_factory=lambda: datetime.now(timezone.utc).replace(microsecond=0))
    machine: Machine = Field(default_factory=this_machine)
    data: list[DataFile]
    """The data files that the benchmark read, from ``data_files``; empty for made-up messages."""
    ran_on: dict[str, Cell]
    """Counts and names of the parts of the data that were used."""
    settings: dict[str, Cell]
    columns: list[str]
    rows: list[list[Cell]]
    notes: list[str] = []
    curves: dict[str, list[float]] = {}
    """Per system the measure in the first 1, 2, 3, … places."""

    def write(self, path: Path) -> None:
        """Write the result to a file as JSON."""
        path.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")


def checkout_commit() -> str | None:
    """Return the short commit of the checkout that contains zettel, with "+" for uncommitted changes of its code."""
    folder = Path(__file__).resolve().parents[2]
    if not (folder / ".git").exists() or (git := shutil.which("git")) is None:
        return None

    def output(*arguments: str) -> str:
        done = subprocess.run([git, "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    commit = output("rev-parse", "--short=10", "HEAD")
    return f"{commit}{'+' if output('status', '--porcelain', '--', 'zettel', 'graph', 'cypher') else ''}" or None


def usable_cores() -> int:
    """Return the number of cores that this process may use; a container may have fewer than the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def data_files(paths: Iterable[Path]) -> list[DataFile]:
    """Describe data files, each once, in their order.

    A name is a file's name, without its folder. Files of the same name have as many of their folders in front as
    distinguish them.
    """
    files = list(dict.fromkeys(path.resolve() for path in paths))
    ends = Counter(end for file in files for end in _ends(file))
    return [_described(next(end for end in _ends(file) if ends[end] == 1), file) for file in files]


def ratio(dividend: Cell, divisor: Cell) -> Cell:
    """Divide two numeric cells."""
    assert isinstance(dividend, (int, float))
    assert isinstance(divisor, (int, float))
    return round(dividend / divisor, 2)


def _ends(file: Path) -> Iterator[str]:
    """Yield a file's name, its name with its folder, and so on, up to its whole path."""
    for start in range(len(file.parts) - 1, -1, -1):
        yield "/".join(file.parts[start:])


def _described(name: str, path: Path) -> DataFile:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return DataFile(name=name, size=size, sha256=digest.hexdigest())


def _processor() -> str:
    if _CPUINFO.exists():
        for line in _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
