"""The forgetting curve and its effect on scores."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.model import NoteUse
from zettel.scoring.strength import FAINTEST, FRESH, STABILITY_DAYS, strength, weights

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


@given(st.lists(st.floats(0, 1), min_size=1))
def test_weights_are_bounded_and_in_the_order_of_strength(strengths: list[float]) -> None:
    factors = weights(sorted(strengths))
    assert factors.dtype == np.float32
    assert (np.diff(factors) >= 0).all()
    assert factors.min() >= np.float32(FAINTEST)
    assert factors.max() <= 1.0


def test_fresh_notes_have_weight_one() -> None:
    assert weights([1.0, 0.7, FRESH]).tolist() == [1.0, 1.0, 1.0]
    assert weights([0.0, FRESH / 2]).tolist() == pytest.approx([FAINTEST, (1 + FAINTEST) / 2])
