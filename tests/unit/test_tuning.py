"""Learning of preferences from feedback, and their files."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

pytest.importorskip("torch")

from zettel.core.feedback import count_search, training_searches
from zettel.errors import InvalidInput, ScorerError
from zettel.model import LoggedHit, LoggedSearch, Proved
from zettel.scoring import preferences
from zettel.scoring.decoder import MemoryDecoderScorer
from zettel.scoring.decoder_model import MemoryDecoder, MemoryDecoderConfig
from zettel.scoring.preferences import Preferences, traits_count, utilities
from zettel.scoring.tuned import TunedScorer, load, load_for_tuning, save
from zettel.scoring.tuning import (
    CLIP,
    MIN_SEARCHES,
    RatedSearch,
    cross_validate,
    fit_weights,
    propensity,
    update_preferences,
)

if TYPE_CHECKING:
    from zettel.ports.query import Floats

TRAITS, SHOWN = 6, 10


def places() -> Floats:
    return np.arange(1, SHOWN + 1, dtype=np.float32)


def rated_searches(n: int, seed: int, preference: float, position_bias: bool = True) -> list[RatedSearch]:
    """Searches whose hits have the first trait half of the time. ``preference`` makes those useful more often."""
    rng = np.random.default_rng(seed)
    searches = []
    for number in range(n):
        traits = rng.normal(size=(SHOWN, TRAITS)).astype(np.float32)
        traits[:, 0] = rng.random(SHOWN) < 0.5
        odds = 2 * np.log(propensity(places()))
        fits = rng.random(SHOWN) < 1 / (1 + np.exp(-preference * (2 * traits[:, 0] - 1)))
        examined = rng.random(SHOWN) < propensity(places()) if position_bias else np.ones(SHOWN, np.bool_)
        weight = np.float32(1.0) / propensity(places())
        searches.append(RatedSearch(f"question {number}", traits, odds, fits & examined, weight))
    return searches


def search(id: str, notes: list[str], used: list[str] | None, outcome: str | None = None) -> LoggedSearch:
    hits = tuple(LoggedHit(note=note, version=1, score=0.5, features={}) for note in notes)
    now = datetime(2025, 1, 1, tzinfo=timezone.utc)
    return LoggedSearch.model_validate(
        {"id": id, "question": id, "asked_at": now, "scorer": "fusion", "hits": hits, "used": used, "outcome": outcome}
    )


def test_propensities_fall_and_are_clipped() -> None:
    np.testing.assert_allclose(propensity(np.array([1.0, 4.0, 25.0, 10_000.0])), [1.0, 0.5, 0.2, 1 / CLIP], rtol=1e-5)


def test_a_preference_is_learned_and_accepted() -> None:
    searches = rated_searches(150, 1, preference=2.0)
    weights = fit_weights(searches)
    assert weights[0] > 0.5 > 2 * np.abs(weights[1:]).max()
    assert cross_validate(searches).is_significant


def test_chance_is_rejected() -> None:
    for seed in range(5):
        gain = cross_validate(rated_searches(150, seed, preference=0.0))
        assert not gain.is_significant
        assert 0 < gain.before <= 1


def test_position_bias_is_not_learned() -> None:
    """An irrelevant feature of the first hits gets no weight; without propensities it would."""
    searches = []
    for item in rated_searches(400, 3, preference=0.0):
        at = item.traits.copy()
        at[:, 1] = places() <= 3
        searches.append(item._replace(traits=at, odds=np.zeros(SHOWN, np.float32)))
    unweighted = [item._replace(weight=np.ones_like(item.weight)) for item in searches]
    assert abs(fit_weights(searches)[1]) < 0.3 * fit_weights(unweighted)[1]


def test_too_little_feedback_raises() -> None:
    config = MemoryDecoderConfig(width=16, heads=2)
    scorer = TunedScorer(MemoryDecoderScorer(MemoryDecoder(config)), Preferences.empty(0, ""))
    useful = [item for item in rated_searches(200, 1, 0.0, position_bias=False) if item.used.any()]
    with pytest.raises(InvalidInput, match=f"5 searches have a useful hit, and learning requires {MIN_SEARCHES}"):
        update_preferences(scorer, useful[:5], 0)
    tuned = TunedScorer(scorer.decoder, scorer.preferences._replace(searches=40))
    with pytest.raises(InvalidInput, match="0 searches since the last tuning"):
        update_preferences(tuned, [], 0)


def test_utility_is_a_bounded_mean_of_the_log() -> None:
    proved: dict[str, Proved] = {}
    for number in range(3):
        count_search(proved, search(f"s_{number}", ["a", "b"], ["a"]))
    count_search(proved, search("s_4", ["a", "c"], ["a"], "failure"))
    count_search(proved, search("s_5", ["d"], None))
    assert proved == {"a": Proved(4, 3, 4), "b": Proved(3, 0, 3), "c": Proved(1, 0, 1), "d": Proved(0, 0, 1)}
    used, shown, failed, never = utilities(["a", "b", "c", "d"], proved)
    assert -preferences.USEFUL_SHARE < shown < failed < never == 0.0 < used < 1.0
    assert utilities(["a"], {"a": Proved(10**6, 10**6)}) < 1.0


def test_failures_are_not_learned_from() -> None:
    searches = [search("s_1", ["a"], ["a"], "failure"), search("s_2", ["a"], []), search("s_3", ["a"], None)]
    assert [item.id for item in training_searches(searches)] == ["s_2"]


def test_a_saved_scorer_loads_and_tuning_continues(tmp_path: Path) -> None:
    config = MemoryDecoderConfig(width=16, heads=2)
    weights = np.arange(traits_count(0), dtype=np.float32)
    save(TunedScorer(MemoryDecoderScorer(MemoryDecoder(config)), Preferences(weights, 0, "", 7, 99)), tmp_path / "mine")
    searches = load(tmp_path / "mine")
    assert isinstance(searches, TunedScorer)
    np.testing.assert_array_equal(searches.preferences.weights, weights)
    assert searches.preferences[1:] == (0, "", 7, 99)
    assert load_for_tuning(tmp_path / "mine").preferences.searches == 7
    assert load_for_tuning(tmp_path / "new").preferences.searches == 0
    with pytest.raises(ScorerError, match="already contains"):
        load_for_tuning(tmp_path / "mine", tmp_path / "other")
    (tmp_path / "stray").write_text("mine")
    with pytest.raises(ScorerError, match="does not contain a memory decoder"):
        load_for_tuning(tmp_path)


def test_mismatched_files_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Preferences.load(tmp_path) is None
    (tmp_path / preferences.FILE).write_bytes(b"rubbish")
    with pytest.raises(ScorerError, match="cannot be read"):
        Preferences.load(tmp_path)
    Preferences.empty(0, "")._replace(weights=np.full(traits_count(0), np.nan, np.float32)).save(tmp_path)
    with pytest.raises(ScorerError, match="wrong weights"):
        Preferences.load(tmp_path)
    Preferences.empty(0, "")._replace(weights=np.zeros(3, np.float32)).save(tmp_path)
    with pytest.raises(ScorerError, match="wrong weights"):
        Preferences.load(tmp_path)
    monkeypatch.setattr(preferences, "VERSION", 99)
    Preferences.empty(0, "").save(tmp_path)
    monkeypatch.undo()
    with pytest.raises(ScorerError, match="traits of version 99"):
        Preferences.load(tmp_path)


