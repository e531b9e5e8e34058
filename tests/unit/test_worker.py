"""Worker processes: one engine per memory, a bounded number of idle ones, and none is closed while it runs a batch."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from zettel.local import worker
from zettel.ports.settings import Settings

MEMORIES = [Settings(f"{n}.db", key=str(n)) for n in range(3)]


class Opened:
    """A fake bridge to an engine."""

    log: list[str]

    def __init__(self, make: Any, end: Any) -> None:
        self.url = make.args[0].url
        self.log.append(f"open {self.url}")

    def close(self) -> None:
        self.log.append(f"close {self.url}")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    Opened.log = []
    monkeypatch.setattr(worker, "Bridge", Opened)
    monkeypatch.setattr(worker, "MAX_IDLE", 2)
    return Opened.log


def test_each_memory_has_its_own_engine(log: list[str]) -> None:
    engines = worker._Engines()
    for settings in MEMORIES[:2] * 3:
        with engines.engine(settings):
            pass
    assert log == ["open 0.db", "open 1.db"]
    engines.close()
    assert log[2:] == ["close 0.db", "close 1.db"]


def test_only_idle_engines_are_closed(log: list[str]) -> None:
    engines = worker._Engines()
    with ExitStack() as running:
        for settings in MEMORIES:
            running.enter_context(engines.engine(settings))
        assert len(log) == 3
    assert log[3:] == ["close 0.db"], "the least recently used"
