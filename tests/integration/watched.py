"""A slow embedder that logs the process of each call, for tests about jobs in several processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import anyio

from zettel.embed.static import StaticEmbedder
from zettel.ports import EmbedderInfo

if TYPE_CHECKING:
    from zettel.ports.query import Floats


class Entry(NamedTuple):
    """A line of the log; ``node`` is the id of the Ray node, or empty."""

    action: str
    pid: int
    node: str


class Watched:
    """The static model, ``pause`` seconds slower, with a ``log`` of the begin and end of each call."""

    remote = False

    def __init__(self, log: Path, pause: float) -> None:
        self.log = log
        self.pause = pause

    @property
    def info(self) -> EmbedderInfo:
        return _static().info._replace(name="watched", fingerprint="watched")

    async def embed(self, texts: Sequence[str]) -> Floats:
        self._write("begin")
        await anyio.sleep(self.pause)
        rows = await _static().embed(texts)
        self._write("end")
        return rows

    def _write(self, action: str) -> None:
        with self.log.open("a") as file:
            file.write(f"{action} {os.getpid()} {_node()}\n")


def entries(log: Path) -> list[Entry]:
    """Return the entries of the log so far."""
    lines = [line.split(" ") for line in log.read_text().splitlines()] if log.exists() else []
    return [Entry(action, int(pid), node) for action, pid, node in lines]


@lru_cache
def _static() -> StaticEmbedder:
    return StaticEmbedder()


def _node() -> str:
    ray = sys.modules.get("ray")
    return str(ray.get_runtime_context().get_node_id()) if ray is not None and ray.is_initialized() else ""
