"""Learning what is of use: what position does not say, what chance does not teach, and files that do not fit."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

pytest.importorskip("torch")

from zettel.errors import InvalidInput, ScorerError
from zettel.evolve.feedback import count, told_of
from zettel.model import LoggedHit, LoggedSearch, Proved
from zettel.scoring import taste
from zettel.scoring.decoder import MemoryDecoderScorer
from zettel.scoring.decoder_model import MemoryDecoder, MemoryDecoderConfig
from zettel.scoring.taste import Taste, traits_count, utilities
from zettel.scoring.tuned import TunedScorer, continued, load
from zettel.scoring.tuning import CLIP, WANTED, Lesson, judge, learn, propensity, tuned

if TYPE_CHECKING:
    from zettel.query import Floats

TRAITS, SHOWN = 6, 10


def places() -> Floats:
    return np.arange(1, SHOWN + 1, dtype=np.float32)


def lessons(searches: int, seed: int, liking: float, looks: bool = True) -> list[Lesson]:
    """Hits of which half have the first trait; half of what was looked at is of use, by the liking more those."""
    chance = np.random.default_rng(seed)
    found = []
    for number in range(searches):
        traits = chance.normal(size=(SHOWN, TRAITS)).astype(np.float32)
        traits[:, 0] = chance.random(SHOWN) < 0.5
        odds = 2 * np.log(propensity(places()))
        fits = chance.random(SHOWN) < 1 / (1 + np.exp(-liking * (2 * traits[:, 0] - 1)))
        seen = chance.random(SHOWN) < propensity(places()) if looks else np.ones(SHOWN, np.bool_)
        weight = np.float32(1.0) / propensity(places())
        found.append(Lesson(f"question {number}", traits, odds, fits & seen, weight))
    return found


def search(id: str, notes: list[str], used: list[str] | None, outcome: str | None = None) -> LoggedSearch:
    hits = tuple(LoggedHit(note=note, version=1, score=0.5, features={}) for note in notes)
    now = datetime(2025, 1, 1, tzinfo=timezone.utc)
    return LoggedSearch.model_validate(
        {"id": id, "question": id, "asked_at": now, "scorer": "fusion", "hits": hits, "used": used, "outcome": outcome}
    )


def test_propensities_fall_and_are_clipped() -> None:
    np.testing.assert_allclose(propensity(np.array([1.0, 4.0, 25.0, 10_000.0])), [1.0, 0.5, 0.2, 1 / CLIP], rtol=1e-5)


def test_a_liking_is_learned_and_accepted() -> None:
    some = lessons(150, 1, liking=2.0)
    weights = learn(some)
    assert weights[0] > 0.5 > 2 * np.abs(weights[1:]).max()
    assert judge(some).better


def test_chance_is_refused() -> None:
    for seed in range(5):
        told = judge(lessons(150, seed, liking=0.0))
        assert not told.better
        assert 0 < told.before <= 1


def test_the_place_alone_is_not_learned() -> None:
    """A trait of the first hits that means nothing gets no weight; if all uses counted alike, it would."""
    some = []
    for one in lessons(400, 3, liking=0.0):
        at = one.traits.copy()
        at[:, 1] = places() <= 3
        some.append(one._replace(traits=at, odds=np.zeros(SHOWN, np.float32)))
    alike = [one._replace(weight=np.ones_like(one.weight)) for one in some]
    assert abs(learn(some)[1]) < 0.3 * learn(alike)[1]


def test_too_little_is_told() -> None:
    config = MemoryDecoderConfig(width=16, heads=2)
    scorer = TunedScorer(MemoryDecoderScorer(MemoryDecoder(config)), Taste.none(0, ""))
    with pytest.raises(InvalidInput, match=f"of use in 5 searches, {WANTED} are wanted"):
        tuned(scorer, [one for one in lessons(200, 1, 0.0, looks=False) if one.used.any()][:5], 0)
    again = TunedScorer(scorer.decoder, scorer.taste._replace(searches=40))
    with pytest.raises(InvalidInput, match="0 searches since it was last tuned"):
        tuned(again, [], 0)


def test_utility_is_bounded_and_forgets_nothing_it_was_told() -> None:
    proved: dict[str, Proved] = {}
    for number in range(3):
        count(proved, search(f"s_{number}", ["a", "b"], ["a"]))
    count(proved, search("s_4", ["a", "c"], ["a"], "failure"))
    count(proved, search("s_5", ["d"], None))
    assert proved == {"a": Proved(4, 3), "b": Proved(3, 0), "c": Proved(1, 0)}
    used, shown, failed, never = utilities(["a", "b", "c", "d"], proved)
    assert -taste.USUAL < shown < failed < never == 0.0 < used < 1.0
    assert utilities(["a"], {"a": Proved(10**6, 10**6)}) < 1.0


def test_what_failed_teaches_no_liking() -> None:
    some = [search("s_1", ["a"], ["a"], "failure"), search("s_2", ["a"], []), search("s_3", ["a"], None)]
    assert [one.id for one in told_of(some)] == ["s_2"]


def test_saved_loaded_and_gone_on_from(tmp_path: Path) -> None:
    config = MemoryDecoderConfig(width=16, heads=2)
    weights = np.arange(traits_count(0), dtype=np.float32)
    TunedScorer(MemoryDecoderScorer(MemoryDecoder(config)), Taste(weights, 0, "", 7, 99)).save(tmp_path / "mine")
    found = load(tmp_path / "mine")
    assert isinstance(found, TunedScorer)
    np.testing.assert_array_equal(found.taste.weights, weights)
    assert found.taste[1:] == (0, "", 7, 99)
    assert continued(tmp_path / "mine").taste.searches == 7
    assert continued(tmp_path / "new").taste.searches == 0
    with pytest.raises(ScorerError, match="is there already"):
        continued(tmp_path / "mine", tmp_path / "other")
    (tmp_path / "stray").write_text("mine")
    with pytest.raises(ScorerError, match="holds no memory decoder"):
        continued(tmp_path)


def test_files_that_do_not_fit_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Taste.load(tmp_path) is None
    (tmp_path / taste.FILE).write_bytes(b"rubbish")
    with pytest.raises(ScorerError, match="holds no taste"):
        Taste.load(tmp_path)
    Taste.none(0, "")._replace(weights=np.full(traits_count(0), np.nan, np.float32)).save(tmp_path)
    with pytest.raises(ScorerError, match="not those of a taste"):
        Taste.load(tmp_path)
    Taste.none(0, "")._replace(weights=np.zeros(3, np.float32)).save(tmp_path)
    with pytest.raises(ScorerError, match="not those of a taste"):
        Taste.load(tmp_path)
    monkeypatch.setattr(taste, "VERSION", 99)
    Taste.none(0, "").save(tmp_path)
    monkeypatch.undo()
    with pytest.raises(ScorerError, match="traits of version 99"):
        Taste.load(tmp_path)


