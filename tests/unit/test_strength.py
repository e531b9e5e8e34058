"""The forgetting curve and its effect on scores."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.model import NoteUse, Proved
from zettel.scoring.strength import FOUND_PER_USE, FRESH, STABILITY_DAYS, strength, with_weak_use

BEGIN = datetime(2024, 5, 1, tzinfo=timezone.utc)
days = st.floats(0, 3650)
counts = st.integers(0, 100)


def after(since: float, times: int = 0, failures: int = 0) -> float:
    """Return the strength this many days after the last use or, without use, after recording."""
    return strength(NoteUse(BEGIN, times, failures=failures), BEGIN + timedelta(days=since))


def test_strength_has_the_known_values() -> None:
    assert after(0) == after(-100) == 1.0
    assert after(STABILITY_DAYS) == pytest.approx(1 / math.e)
    assert after(4 * STABILITY_DAYS, times=3) == pytest.approx(1 / math.e)
    assert after(4 * STABILITY_DAYS, times=5, failures=2) == pytest.approx(1 / math.e)
    assert after(61) > FRESH > after(63)


@given(days, days, counts)
def test_strength_falls_with_time(first: float, second: float, times: int) -> None:
    sooner, later = sorted((first, second))
    assert 0.0 <= after(later, times) <= after(sooner, times) <= 1.0


@given(days, counts, counts)
def test_strength_rises_with_successful_use(since: float, times: int, failures: int) -> None:
    failures = min(times, failures)
    assert after(since, times, failures) <= after(since, times + 1, failures)
    assert after(since, times, failures) == after(since, times + 1, failures + 1)


def test_searches_that_found_a_note_are_weak_use() -> None:
    use = NoteUse(BEGIN, 2, 1, 1)
    assert with_weak_use(use, None) == with_weak_use(use, Proved(0, 0, FOUND_PER_USE - 1)) == use
    assert with_weak_use(use, Proved(3, 3, 2 * FOUND_PER_USE)) == use._replace(times=4)
