"""Phrases of a text that may name a title."""

from __future__ import annotations

import pytest

from zettel.core.mentions import phrases
from zettel.text.index import titles_of


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("She sang in The Glass Orchard last year.", "The Glass Orchard"),
        ("we met in tarn hollow, near the mill", "Tarn Hollow"),
        ("Ann's brother read 1984 twice.", "1984"),
        ("Lambert, Margrave of Tuscany, died.", "Lambert, Margrave of Tuscany"),
        ("He drove to Zürich.", "Zürich (town)"),
        ("昨日は東京の塔を見た", "東京の塔"),
        ("Вчера в Осло шёл снег", "Осло"),
        ("Read O’Neill’s Rest first", "O'Neill's Rest"),
    ],
)
def test_phrases_that_name_a_title_are_found(text: str, title: str) -> None:
    assert titles_of(title).keys() & phrases(text)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("we went up the hill", "Up"),  # a single word requires a capital letter
        ("the orchard of glass", "Glass Orchard"),
        ("Glasgow Orchards", "Glass Orchard"),
        ("The end.", "The"),
        ("", "Anything"),
    ],
)
def test_other_phrases_are_not_mentions(text: str, title: str) -> None:
    assert not titles_of(title).keys() & phrases(text)
