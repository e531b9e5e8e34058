"""Bootstrap intervals and the paired randomization test, against enumeration and formulas."""

from __future__ import annotations

from itertools import product
from statistics import NormalDist, mean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.bench.significance import DRAWS, mean_interval, paired_p

shares = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40)


def enumerated_p(differences: list[float]) -> float:
    """Return the p-value by all sign patterns, zeros included."""
    measured = abs(sum(differences))
    sums = [abs(sum(sign * value for sign, value in zip(signs, differences, strict=True)))
            for signs in product((-1, 1), repeat=len(differences))]  # fmt: skip
    return mean(value >= measured - 1e-9 for value in sums)


@given(st.lists(st.tuples(*[st.sampled_from([0.0, 1 / 3, 0.5, 1.0])] * 2), min_size=1, max_size=9))
def test_few_differences_are_enumerated(pairs: list[tuple[float, float]]) -> None:
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    assert paired_p(first, second) == pytest.approx(enumerated_p([one - other for one, other in pairs]))
    assert paired_p(second, first) == paired_p(first, second)


def test_known_values() -> None:
    assert paired_p([1.0, 0.5], [1.0, 0.5]) == 1.0
    assert paired_p([1.0] * 3, [0.0] * 3) == 2 / 2**3
    assert paired_p([1.0] * 10, [0.0] * 10) == 2 / 2**10


def test_many_differences_agree_with_the_normal_approximation() -> None:
    """60 wins against 40: the sum is 20, its standard deviation 10 under chance."""
    first, second = [1.0] * 60 + [0.0] * 40 + [1.0] * 500, [0.0] * 60 + [1.0] * 40 + [1.0] * 500
    normal = 2 * (1 - NormalDist().cdf(19 / 10))  # the sums have the distance 2
    assert paired_p(first, second) == pytest.approx(normal, abs=0.01)
    assert paired_p([1.0] * 700, [0.0] * 700) == 1 / (1 + DRAWS), "never 0"


@given(shares)
def test_an_interval_contains_the_mean(values: list[float]) -> None:
    low, high = mean_interval(values)
    assert min(values) <= low <= mean(values) + 1e-9
    assert mean(values) - 1e-9 <= high <= max(values)
    assert mean_interval(values) == (low, high), "the same values give the same bounds"


def test_an_interval_agrees_with_the_standard_error() -> None:
    values = [1.0] * 150 + [0.0] * 50
    error = pstdev(values) / len(values) ** 0.5
    low, high = mean_interval(values)
    assert (low, high) == (pytest.approx(0.75 - 1.96 * error, abs=0.01), pytest.approx(0.75 + 1.96 * error, abs=0.01))
    assert mean_interval([0.4]) == (0.4, 0.4)
