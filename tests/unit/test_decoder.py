"""The memory decoder: begins as the default scorer, looks at all notes, learns, and tells what is wrong with files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from zettel.errors import InvalidInput, ScorerError

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from zettel import Memory  # noqa: E402
from zettel.embed.static import StaticEmbedder  # noqa: E402
from zettel.scoring.attention import OPEN  # noqa: E402
from zettel.scoring.decoder import CONFIG, SHIPPED, WEIGHTS, MemoryDecoderScorer, batched  # noqa: E402
from zettel.scoring.decoder_model import MemoryDecoder, MemoryDecoderConfig, MemoryDecoderLayer  # noqa: E402
from zettel.scoring.slots import PAIR_FEATURES, QUESTION_FEATURES, SLOT_FEATURES, Shown  # noqa: E402
from zettel.scoring.training import Example, Settings, base, hold_back, recall, scores, talk_only, train  # noqa: E402

torch.set_num_threads(1)  # several of these tests run side by side
DIM = 8
EMBEDDER = "of a test"
SMALL = MemoryDecoderConfig(width=16, heads=2, vector=DIM, embedder=EMBEDDER)


def shown(m: int, seed: int = 0, embedder: str = EMBEDDER) -> Shown:
    """A question with m notes, in the default scorer's order."""
    chance = np.random.default_rng(seed)
    return Shown(
        slots=chance.normal(size=(m, len(SLOT_FEATURES))).astype(np.float32),
        question=chance.normal(size=len(QUESTION_FEATURES)).astype(np.float32),
        pairs=chance.normal(size=(m, m, len(PAIR_FEATURES))).astype(np.float32),
        vectors=chance.normal(size=(m, DIM)).astype(np.float32),
        vector=chance.normal(size=DIM).astype(np.float32),
        embedder=embedder,
        score=-np.sort(chance.random(m)).astype(np.float32),
    )


def restless(config: MemoryDecoderConfig = SMALL) -> MemoryDecoder:
    """A decoder whose last layer is not zero."""
    torch.manual_seed(1)
    model = MemoryDecoder(config).eval()
    torch.nn.init.normal_(model.out.weight)
    return model


def odds(model: MemoryDecoder, *questions: Shown) -> list[np.ndarray]:
    """What the model says of each."""
    with torch.inference_mode():
        told = model(batched(questions, model.config)).numpy()
    return [row[: len(one.score)] for row, one in zip(told, questions, strict=True)]


def test_untrained_it_is_the_default_scorer() -> None:
    one = shown(20)
    np.testing.assert_array_equal(odds(MemoryDecoder(SMALL).eval(), one)[0], one.score)


@given(m=st.integers(1, 12), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_the_order_of_the_notes_means_nothing(m: int, seed: int) -> None:
    model, one = restless(), shown(m, seed)
    order = np.random.default_rng(seed).permutation(m)
    moved = one._replace(
        slots=one.slots[order], pairs=one.pairs[order][:, order], vectors=one.vectors[order], score=one.score[order]
    )
    np.testing.assert_allclose(odds(model, moved)[0], odds(model, one)[0][order], rtol=1e-4, atol=1e-4)


def test_questions_side_by_side_are_scored_as_alone() -> None:
    model, short, long = restless(), shown(1), shown(30, 1)
    for alone, beside in zip([odds(model, short)[0], odds(model, long)[0]], odds(model, short, long), strict=True):
        np.testing.assert_allclose(beside, alone, rtol=1e-4, atol=1e-4)


def test_what_a_note_is_worth_depends_on_the_others() -> None:
    one = shown(5)
    other = one._replace(slots=one.slots.copy())
    other.slots[4] += 9
    changed = odds(restless(), one)[0] - odds(restless(), other)[0]
    assert abs(changed[0]) > 1e-4
    alone = restless(MemoryDecoderConfig(width=16, heads=2, vector=DIM, embedder=EMBEDDER, layers=1, setwise=False))
    for layer in alone.layers:
        torch.nn.init.zeros_(layer.cross_attention.out.weight)  # the question's states hear of the notes by this alone
        torch.nn.init.zeros_(layer.cross_attention.out.bias)
    assert abs((odds(alone, one)[0] - odds(alone, other)[0])[0]) < 1e-6


def test_pairs_count() -> None:
    one = shown(6)
    linked = one._replace(pairs=one.pairs * 0)
    assert np.abs(odds(restless(), one)[0] - odds(restless(), linked)[0]).max() > 1e-4
    deaf = MemoryDecoderConfig(width=16, heads=2, vector=DIM, embedder=EMBEDDER, biases=())
    np.testing.assert_array_equal(odds(restless(deaf), one)[0], odds(restless(deaf), linked)[0])


def test_the_gates_are_those_of_lm2() -> None:
    """M <- sigmoid(R W_in) * tanh(R) + sigmoid(R W_forget) * M: where R is 0, a slot keeps sigmoid(OPEN) of itself."""
    layer = MemoryDecoderLayer(MemoryDecoderConfig(width=16, heads=2)).eval()
    for part in (layer.slot_attention.out, layer.slot_network[3]):
        torch.nn.init.zeros_(part.weight)
        torch.nn.init.zeros_(part.bias)
    slots = torch.randn(1, 3, 16)
    absent = torch.zeros(1, 3, dtype=torch.bool)
    pairs, bank = torch.zeros(1, 3, 3, len(PAIR_FEATURES)), torch.zeros(1, 0, 16)
    _, after = layer(torch.randn(1, 2, 16), slots, pairs, absent, bank)
    torch.testing.assert_close(after, slots / (1 + np.exp(-OPEN)))


def test_vectors_of_another_embedder_are_not_read() -> None:
    model, other = restless(), shown(4, embedder="another")
    blank = other._replace(vectors=other.vectors * 0, vector=other.vector * 0, embedder=EMBEDDER)
    np.testing.assert_array_equal(odds(model, other)[0], odds(model, blank)[0])
    assert np.abs(odds(model, other)[0] - odds(model, other._replace(embedder=EMBEDDER))[0]).max() > 1e-4


def test_features_that_are_no_numbers_are_told() -> None:
    one = shown(3)
    one.slots[1, 2] = np.nan
    with pytest.raises(ScorerError, match="NaN"):
        batched([one], SMALL)


def test_saved_and_loaded(tmp_path: Path) -> None:
    model = restless()
    MemoryDecoderScorer(model).save(tmp_path / "new" / "decoder")
    again = MemoryDecoderScorer.load(tmp_path / "new" / "decoder")
    assert again.model.config == SMALL
    np.testing.assert_allclose(odds(again.model, shown(9))[0], odds(model, shown(9))[0], rtol=0.05, atol=0.05)


def _spoil(folder: Path, name: str, change: bytes | None) -> None:
    path = folder / name
    path.unlink() if change is None else path.write_bytes(change)


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        (CONFIG, None, "holds no memory decoder"),
        (CONFIG, b"{", "cannot be read"),
        (CONFIG, b"[]", "not that of a memory decoder"),
        (CONFIG, b'{"width": 16}', "not that of a memory decoder"),
        (WEIGHTS, None, "holds no memory decoder"),
        (WEIGHTS, b"rubbish", "holds no memory decoder"),
    ],
)
def test_broken_files_are_told(tmp_path: Path, name: str, change: bytes | None, told: str) -> None:
    MemoryDecoderScorer(restless()).save(tmp_path)
    _spoil(tmp_path, name, change)
    with pytest.raises(ScorerError, match=told):
        MemoryDecoderScorer.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"width": 32}, "not those that config.json tells of"), ({"features": 99}, "features of version 99"),
        ({"width": "wide"}, "cannot be read: width"), ({"biases": 3}, "cannot be read"), ({"gates": "no"}, "gates"),
        ({"heads": 10**9}, "heads is 1000000000"), ({"layers": 0}, "layers is 0"), ({"heads": 3}, "shared by 3 heads"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit_are_told(tmp_path: Path, change: dict[str, object], told: str) -> None:
    MemoryDecoderScorer(restless()).save(tmp_path)
    config = json.loads((tmp_path / CONFIG).read_text()) | change
    (tmp_path / CONFIG).write_text(json.dumps(config))
    with pytest.raises(ScorerError, match=told):
        MemoryDecoderScorer.load(tmp_path)


def test_weights_that_are_no_numbers_are_told(tmp_path: Path) -> None:
    model = restless()
    with torch.no_grad():
        model.trust.fill_(float("nan"))
    MemoryDecoderScorer(model).save(tmp_path)
    with pytest.raises(ScorerError, match="NaN"):
        MemoryDecoderScorer.load(tmp_path)


def test_what_cannot_be_asked_for() -> None:
    with pytest.raises(ScorerError, match="reads=0"):
        MemoryDecoderScorer(restless(), reads=0)
    with pytest.raises(ScorerError, match="abacus"):
        MemoryDecoderScorer(restless(), device="abacus")


# ------------------------------------------------------------------------------------------------------------- training


def lesson(seed: int, m: int = 15) -> Example:
    """The note with the largest first feature answers, wherever the default scorer has it."""
    one = shown(m, seed)
    return Example(one, np.arange(m) == one.slots[:, 0].argmax(), 1)


QUICK = Settings(epochs=6, rate=1e-2, batch=8)


def test_it_learns_what_can_be_learnt() -> None:
    examples, held = [lesson(seed) for seed in range(120)], [lesson(seed) for seed in range(500, 560)]
    trained = train(examples, held, SMALL, QUICK, lambda *_: None)
    unseen = [lesson(seed) for seed in range(900, 960)]
    before = recall([base(one) for one in unseen], unseen, k=3)
    assert recall(scores(trained.model, unseen), unseen, k=3) > before + 0.3
    assert max(one.recall for one in trained.epochs) == trained.epochs[trained.best].recall
    assert trained.epochs[-1].loss < trained.epochs[0].loss
    again = train(examples, held, SMALL, QUICK, lambda *_: None)
    assert again.epochs == trained.epochs, "the same seed, the same weights"


def test_where_nothing_can_be_learnt_it_stays_the_default_scorer() -> None:
    chance = np.random.default_rng(3)
    noise = [Example(shown(12, seed), np.arange(12) < 2, 2) for seed in range(40)]  # the default scorer has all of them
    trained = train(noise[:30], noise[30:], SMALL, Settings(epochs=9, patience=2), lambda *_: None)
    assert trained.best == -1
    assert len(trained.epochs) == 2, "nothing better came, so it ended"
    one = shown(12, int(chance.integers(100, 200)))
    np.testing.assert_array_equal(odds(trained.model, one)[0], one.score)


def test_nothing_to_learn_from() -> None:
    hopeless = lesson(1)._replace(answers=np.zeros(15, np.bool_))
    for examples, held in (([hopeless], [lesson(2)]), ([lesson(1)], [])):
        with pytest.raises(InvalidInput, match="nothing to learn from"):
            train(examples, held, SMALL, QUICK, lambda *_: None)


def test_whole_conversations_are_held_back() -> None:
    groups = ["a"] * 5 + ["b"] * 3 + ["c"] * 2
    for seed in range(5):
        held = hold_back(groups, 0.15, seed)
        assert len({groups[place] for place in np.flatnonzero(held)}) == 1
        assert len({groups[place] for place in np.flatnonzero(~held)}) == 2


# ----------------------------------------------------------------------------------------------------------- documents


def test_documents_can_be_left_as_they_are() -> None:
    talk, documents = shown(9, 1), shown(12, 2)._replace(talk=False)
    everything, talk_alone = restless(), restless(replace(SMALL, talk_only=True))
    for model in (everything, talk_alone):
        said, found = scores(model, [lesson(1)._replace(shown=one) for one in (talk, documents)])
        np.testing.assert_allclose(said, odds(everything, talk)[0], rtol=1e-4)
        assert (found == documents.score).all() == (model is talk_alone)
        assert [len(one) for one in scores(model, [lesson(1)._replace(shown=documents)])] == [12]


def test_what_it_gained_nothing_on_it_leaves_alone() -> None:
    def document(one: Example) -> Example:
        return one._replace(shown=one.shown._replace(talk=False))

    talk = [lesson(seed) for seed in range(60)]
    trained = train(talk, [lesson(seed) for seed in range(500, 540)], SMALL, QUICK, lambda *_: None).model
    alike, other = [document(one) for one in talk[:20]], [document(one) for one in map(unlike, range(20))]
    assert not talk_only(trained, [*talk, *alike], 3)
    assert talk_only(trained, [*talk, *other], 3)
    assert talk_only(trained, talk, 3), "it never saw a document"
    assert not talk_only(trained, other, 3), "it saw nothing else"


def unlike(seed: int) -> Example:
    """The default scorer's best note answers, whatever the features say."""
    return Example(shown(15, seed), np.arange(15) < 1, 1)


def test_a_decoder_that_was_saved_before_reads_documents(tmp_path: Path) -> None:
    MemoryDecoderScorer(restless()).save(tmp_path)
    told = json.loads((tmp_path / CONFIG).read_text())
    del told["talk_only"]
    (tmp_path / CONFIG).write_text(json.dumps(told))
    assert MemoryDecoderScorer.load(tmp_path).model.config == SMALL


# -------------------------------------------------------------------------------------------------------------- shipped


def test_the_one_that_is_shipped() -> None:
    scorer = MemoryDecoderScorer.load()
    assert scorer.model.config.embedder == StaticEmbedder().info.fingerprint, "it reads the default embedder's vectors"
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 4_000_000
    with Memory(":memory:", scorer="decoder") as memory:
        memory.add_many(
            [
                {"content": "Ida painted the boat house.", "role": "Ida", "session": "s"},
                {"content": "What did you do with the red paint?", "role": "Nils", "session": "s"},
                {"content": "Nothing yet, it is under the bench.", "role": "Ida", "session": "s"},
            ],
            wait=True,
        )
        hits = memory.search("Where is Ida's red paint?", explain=True)
        assert len(hits) == 3
        assert {hit.why.scorer for hit in hits} == {"fusion+decoder"}
        assert all(np.isfinite(hit.why.features["decoder"]) for hit in hits)
        assert memory.search_many(["Where is the paint?", "Who painted?"], effort="mid")[1]
        memory.delete_scope()
        assert memory.search("Where is the paint?") == []
