"""``zettel.bench.flame``: from stacks to shares of modules."""

from __future__ import annotations

from collections import Counter

from zettel.bench.flame import _rows, busy, by_module
from zettel.bench.flame_plot import bars, tree

STACKS = [
    "main (x.py:1);search (zettel/search/searcher.py:9);rank (zettel/scoring/ranking.py:40);dot (numpy/core.py:3) 6",
    "main (x.py:1);search (zettel/search/searcher.py:12) 3",
    "run (threading.py:3);wait (threading.py:327) 50",
    "search (zettel/search/searcher.py:9);_find_and_load (<frozen importlib._bootstrap>:1176) 70",
    "loop (asyncio/base_events.py:1) 1",
]


def test_samples_count_for_the_innermost_module_of_zettel() -> None:
    assert by_module(busy(STACKS)) == {
        "zettel.scoring.ranking": 6, "zettel.search.searcher": 3, "other libraries and Python": 1,
    }  # fmt: skip


def test_rows_are_shares_of_each_activity() -> None:
    shares = {"search": Counter(a=3, b=1), "add": Counter(b=2)}
    assert _rows(shares) == [["b", 0.25, 1.0], ["a", 0.75, 0.0], ["all others", 0.0, 0.0]]


def test_bars_are_shares_of_all_samples() -> None:
    root = tree([(["main", "search"], 3), (["main", "add", "commit"], 1), (["loop"], 1000)])
    assert list(bars(root)) == [("loop", 0, 0.0, 1000 / 1004)]  # narrower ones are left out
    root = tree([(["main", "search"], 3), (["main", "add", "commit"], 1)])
    assert list(bars(root)) == [
        ("main", 0, 0.0, 1.0), ("search", 1, 0.0, 0.75), ("add", 1, 0.75, 0.25), ("commit", 2, 0.75, 0.25),
    ]  # fmt: skip
