"""``zettel bench features`` with few messages and calls."""

from __future__ import annotations

import pytest

from zettel import Memory
from zettel.bench import features

pytestmark = pytest.mark.integration
pytest.importorskip("sqlcipher3", reason="encryption is not installed: pip install 'zettel-graph[encryption]'")


def test_each_feature_is_compared_with_a_memory_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FILLED": 10, "CALLS": 4, "CALLS_BEFORE": 1, "BATCH": 3, "BATCHES": 2, "OPENINGS": 2}.items():
        monkeypatch.setattr(features, name, value)
    result = features.run(lambda *_: None, "static", notes=50)
    rows = {str(row[0]): row[1:] for row in result.rows}
    calls = {f"{feature}: {call}" for feature in features.FEATURES for call in ("add", "add_many", "search")}
    assert rows.keys() == calls | {"encryption: open", "search of 5 scopes"}
    for name, (ours, plain, ratio, difference, unit) in rows.items():
        assert (ratio, unit) == (pytest.approx(ours / plain, abs=0.01), "ms"), name
        assert isinstance(difference, float)
    ours, plain = rows["encryption: open"][:2]
    assert ours > plain, "SQLCipher derives the key from the passphrase"


def test_memories_take_turns() -> None:
    called: list[tuple[str, str]] = []

    class Fake:
        def __init__(self, name: str) -> None:
            self.name = name

        def flush(self) -> None:
            called.append(("flush", self.name))

    memories: dict[str, Memory] = {name: Fake(name) for name in "ab"}  # type: ignore[misc]
    seconds = features._turns(memories, lambda memory, word: called.append((word, memory.name)), ["one", "two"])  # type: ignore[attr-defined]
    assert called == [
        ("one", "a"), ("flush", "a"), ("one", "b"), ("flush", "b"),
        ("two", "b"), ("flush", "b"), ("two", "a"), ("flush", "a"),
    ]  # fmt: skip
    assert [len(spent) for spent in seconds.values()] == [2, 2]
