"""Output that a docs page shows is compared with what its blocks print, except for what differs between runs."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from tests.pages import differences


def filled(text: str) -> str:
    """Return a text with the time of the test; parameters may not contain it, because each worker makes its own."""
    clock = datetime.now(timezone.utc)
    return text.format(now=datetime.now(), clock=clock, long_ago=clock - timedelta(hours=12))


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("a  b\n\nc", "a b\nc"),
        ("n_0123456789ab is new", "n_fedc… is new"),
        ("3 added in 0.1 s, 12 ms", "3 added in 2.5 s, 9 ms"),
        ("0.81 Ann moved.", "0.79 Ann moved."),
        ("{now:%Y-%m-%d %H:%M:%S} add ok", "2026-11-26 19:15:45 add ok"),
        ("seen {now:%Y-%m-%d}", "seen 2026-11-26"),
        ("{clock:%H:%M} user: Hi", "06:40 user: Hi"),
        ("2 calls, 2,797 tokens", "2 calls, 2,788 tokens"),
    ],
)
def test_output_may_differ_between_runs(printed: str, shown: str) -> None:
    assert differences(filled(printed), filled(shown)) == []


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("3 added", "2 added"),
        ("0.81 Ann moved.", "0.78 Ann moved."),
        ("2.01", "2.00"),
        ("2024-05-01", "2024-05-02"),
        ("{now:%Y-%m-%d}", "tomorrow"),
        ("{long_ago:%H:%M} Ann: Hi", "{clock:%H:%M} Ann: Hi"),
        ("version 1.2.3", "version 1.2.4"),
        ("2 calls, 3,000 tokens", "2 calls, 2,500 tokens"),
        ("one\ntwo", "one"),
    ],
)
def test_output_may_not_differ_otherwise(printed: str, shown: str) -> None:
    assert len(differences(filled(printed), filled(shown))) == 1
