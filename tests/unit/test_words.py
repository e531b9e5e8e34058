"""Counts of unclear words in code and docs never rise."""

from __future__ import annotations

import pytest

from tests import words


@pytest.mark.parametrize("area", words.AREAS)
def test_counts_never_rise(area: str) -> None:
    limits, counts = words.committed()[area], words.counted(area)
    more = {word: count - limits.get(word, 0) for word, count in counts.items() if count > limits.get(word, 0)}
    assert not more, "use the field's terms (CONTRIBUTING.md, Style)"
