"""The bank of slots: a pure function of the notes before, read beside the shortlist, and learned with the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from zettel.errors import InvalidInput, ScorerError

torch = pytest.importorskip("torch")

from tests.unit.test_decoder import DIM, EMBEDDER, QUICK, odds, restless, shown  # noqa: E402
from zettel.scoring.bank import CHUNK, SlotBank  # noqa: E402
from zettel.scoring.decoder import MemoryDecoderScorer  # noqa: E402
from zettel.scoring.decoder_model import BIASES, MemoryDecoderConfig  # noqa: E402
from zettel.scoring.slots import PAIR_FEATURES  # noqa: E402
from zettel.scoring.training import Example, recall, scores, train  # noqa: E402

BANKED = MemoryDecoderConfig(width=16, heads=2, vector=DIM, embedder=EMBEDDER, bank=3)


def vectors(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, DIM)).astype(np.float32)


@pytest.fixture(params=[True, False], ids=["gates", "no gates"])
def bank(request: pytest.FixtureRequest) -> SlotBank:
    torch.manual_seed(0)
    return SlotBank(slots=3, vector=DIM, width=16, heads=2, gates=request.param)


def written(bank: SlotBank, *histories: np.ndarray) -> np.ndarray:
    with torch.inference_mode():
        told: np.ndarray = bank.of_scopes(histories).numpy()
    return told


def test_written_at_once_or_one_after_the_other(bank: SlotBank) -> None:
    notes = torch.from_numpy(vectors(3 * CHUNK + 5))[None]
    absent = torch.zeros(notes.shape[:2], dtype=torch.bool)
    with torch.inference_mode():
        whole = bank(notes, absent)
        first = bank(notes[:, : 2 * CHUNK], absent[:, : 2 * CHUNK])
        torch.testing.assert_close(bank(notes[:, 2 * CHUNK :], absent[:, 2 * CHUNK :], first), whole)


def test_scopes_side_by_side_are_written_as_alone(bank: SlotBank) -> None:
    short, long = vectors(2), vectors(2 * CHUNK + 1, 1)
    beside = written(bank, short, long)
    np.testing.assert_allclose(beside[0], written(bank, short)[0], atol=1e-5)
    np.testing.assert_allclose(beside[1], written(bank, long)[0], atol=1e-5)


def test_the_order_of_arrival_counts_from_chunk_to_chunk(bank: SlotBank) -> None:
    notes = vectors(2 * CHUNK)
    after = written(bank, notes)
    assert np.abs(written(bank, np.roll(notes, CHUNK, axis=0)) - after).max() > 1e-3
    within = np.concatenate([notes[:CHUNK][::-1], notes[CHUNK:]])
    np.testing.assert_allclose(written(bank, within), after, atol=1e-5)


def test_what_stands_in_them_is_read() -> None:
    model, one = restless(BANKED), shown(6)
    assert model.bank is not None
    start = model.bank.start.detach().numpy()
    unknown = odds(model, one)[0]
    np.testing.assert_allclose(odds(model, one._replace(bank=start))[0], unknown, atol=1e-6)
    told = one._replace(bank=written(model.bank, vectors(40))[0])
    both = odds(model, told, one)
    assert np.abs(both[0] - unknown).max() > 1e-3
    np.testing.assert_allclose(both[1], unknown, atol=1e-4)
    without = one._replace(bank=told.bank)
    np.testing.assert_array_equal(odds(restless(), without)[0], odds(restless(), one)[0])


def test_it_learns_what_only_the_bank_knows() -> None:
    """Which half of the notes answers stands in the scope's history alone."""
    sides = np.eye(2, DIM, dtype=np.float32)
    histories = [np.repeat(side[None], 5, axis=0) for side in sides]

    def example(seed: int) -> Example:
        one = shown(20, seed)
        half = np.random.default_rng(seed).permutation(20) % 2
        slots = np.zeros_like(one.slots)
        slots[:, 0] = 2 * half - 1
        blank = one._replace(
            slots=slots, pairs=one.pairs * 0, vectors=one.vectors * 0, vector=one.vector * 0, score=one.score * 0
        )
        return Example(blank, half == seed % 2, 10, history=histories[seed % 2])

    examples, held = [example(seed) for seed in range(96)], [example(seed) for seed in range(100, 132)]
    long = replace(QUICK, epochs=12, patience=12)
    trained = train(examples, held, BANKED, long, lambda *_: None)
    assert recall(scores(trained.model, held), held) > 0.95
    foreign = held[0]._replace(shown=held[0].shown._replace(embedder="another"), history=vectors(3)[:, :2])
    assert np.isfinite(scores(trained.model, [foreign])[0]).all()
    with pytest.raises(InvalidInput, match="an example has none"):
        scores(trained.model, [held[0]._replace(history=None)])


def test_the_search_writes_what_training_wrote(tmp_path: Path) -> None:
    MemoryDecoderScorer(restless(BANKED)).save(tmp_path)
    scorer, again = MemoryDecoderScorer.load(tmp_path), MemoryDecoderScorer.load(tmp_path)
    assert scorer.bank is not None
    assert again.bank is not None
    assert scorer.model.bank is not None
    assert scorer.bank.name == again.bank.name, "slots are those of these weights"
    assert scorer.bank.embedder == EMBEDDER
    notes = vectors(CHUNK + 3)
    whole = scorer.bank.write(notes[:CHUNK], None)
    np.testing.assert_allclose(
        scorer.bank.write(notes[CHUNK:], whole), written(scorer.model.bank, notes)[0], atol=1e-5
    )
    np.testing.assert_array_equal(scorer.bank.write(notes[:0], whole), whole)
    assert MemoryDecoderScorer(restless()).bank is None


def test_what_a_decoder_can_be_built_of() -> None:
    assert sorted(name for names in BIASES.values() for name in names) == sorted(PAIR_FEATURES)
    with pytest.raises(ScorerError, match="no bias 'smell'"):
        MemoryDecoderConfig(biases=("smell",))
    with pytest.raises(ScorerError, match="has no bank"):
        MemoryDecoderConfig(bank=4)
    one = shown(5)
    for group, names in BIASES.items():
        changed = one._replace(pairs=one.pairs.copy())
        changed.pairs[..., [PAIR_FEATURES.index(name) for name in names]] *= -2
        rest = tuple(name for name in BIASES if name != group)
        deaf = restless(MemoryDecoderConfig(width=16, heads=2, vector=DIM, embedder=EMBEDDER, biases=rest))
        np.testing.assert_allclose(odds(deaf, changed)[0], odds(deaf, one)[0], atol=1e-6)
        assert np.abs(odds(restless(), changed)[0] - odds(restless(), one)[0]).max() > 1e-4
