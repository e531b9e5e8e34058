"""Keywords and importance that spread from neighbours to a note."""

from __future__ import annotations

from zettel.evolve.neighborhood import MAX_SPREAD, importance, spread
from zettel.model import TermUse


def uses(*keys: str, kind: str = "keyword") -> dict[str, TermUse]:
    return {key: TermUse(key, key, kind, 1) for key in keys}


DF = {"kiln": 4, "glaze": 3, "clay": 12, "oslo": 5, "boat": 40}


def words(tokens: str, *neighbours: dict[str, TermUse], speakers: tuple[str, ...] = ()) -> list[str]:
    return [term.text for term in spread(tokens.split(), neighbours, DF, speakers)]


def test_keywords_shared_by_two_neighbours_spread_to_a_note() -> None:
    assert words("pot", uses("kiln", "glaze"), uses("kiln", "clay")) == ["kiln"]
    assert words("kiln", uses("kiln", "glaze"), uses("kiln", "clay")) == []
    assert words("pot", uses("kiln")) == []


def test_common_words_and_speakers_do_not_spread() -> None:
    assert words("pot", uses("boat"), uses("boat")) == []
    assert words("pot", uses("oslo", kind="name"), uses("oslo", kind="name"), speakers=("oslo",)) == []


def test_the_most_shared_then_the_rarest_keywords_are_first() -> None:
    neighbours = uses("kiln", "glaze", "clay"), uses("kiln", "glaze", "clay"), uses("clay")
    assert words("pot", *neighbours) == ["clay", "glaze", "kiln"]


def test_few_keywords_spread_and_none_twice() -> None:
    neighbour = uses("kiln", "kiln glaze", "glaze", "clay", "oslo")
    spread_words = words("pot", neighbour, neighbour)
    assert len(spread_words) == MAX_SPREAD
    tokens = " ".join(spread_words).split()
    assert len(tokens) == len(set(tokens))


def test_importance_moves_by_a_step_for_each_doubling() -> None:
    assert [importance(links) for links in (0, 1, 2, 3, 4, 7, 8, 15, 16, 1000)] == [
        0.5, 0.5, 0.6, 0.6, 0.7, 0.7, 0.8, 0.8, 0.9, 0.9,
    ]  # fmt: skip
