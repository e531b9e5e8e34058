"""The memory decoder: model, weight files and training."""

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
from zettel.embed import load_embedder  # noqa: E402
from zettel.scoring.decoder import CONFIG, SHIPPED, WEIGHTS, MemoryDecoderScorer, to_batch  # noqa: E402
from zettel.scoring.decoder_inputs import (  # noqa: E402
    NOTE_FEATURES,
    PAIR_FEATURES,
    QUESTION_FEATURES,
    DecoderInput,
)
from zettel.scoring.decoder_model import (  # noqa: E402
    FORGET_BIAS_INIT,
    MemoryDecoder,
    MemoryDecoderConfig,
    MemoryDecoderLayer,
)
from zettel.scoring.training import (  # noqa: E402
    Example,
    TrainingSettings,
    base_scores,
    is_conversations_only,
    recall,
    scores,
    train,
    validation_mask,
)

torch.set_num_threads(1)  # these tests run in parallel processes
DIM = 8
EMBEDDER = "of a test"
SMALL = MemoryDecoderConfig(width=16, heads=2, vector_dim=DIM, embedder=EMBEDDER)


def decoder_input(m: int, seed: int = 0, embedder: str = EMBEDDER) -> DecoderInput:
    """A question with m notes, in the default scorer's order."""
    rng = np.random.default_rng(seed)
    return DecoderInput(
        notes=rng.normal(size=(m, len(NOTE_FEATURES))).astype(np.float32),
        question=rng.normal(size=len(QUESTION_FEATURES)).astype(np.float32),
        pairs=rng.normal(size=(m, m, len(PAIR_FEATURES))).astype(np.float32),
        note_vectors=rng.normal(size=(m, DIM)).astype(np.float32),
        question_vector=rng.normal(size=DIM).astype(np.float32),
        embedder=embedder,
        base_score=-np.sort(rng.random(m)).astype(np.float32),
    )


def nonzero_decoder(
    config: MemoryDecoderConfig = SMALL, model_class: type[MemoryDecoder] = MemoryDecoder
) -> MemoryDecoder:
    """A decoder whose last layer is not zero."""
    torch.manual_seed(1)
    model = model_class(config).eval()
    torch.nn.init.normal_(model.out.weight)
    return model


def log_odds(model: MemoryDecoder, *questions: DecoderInput) -> list[np.ndarray]:
    """Return the model's log-odds of each note."""
    with torch.inference_mode():
        rows = model(to_batch(questions, model.config)).numpy()
    return [row[: len(input.base_score)] for row, input in zip(rows, questions, strict=True)]


def test_an_untrained_decoder_equals_the_default_scorer() -> None:
    input = decoder_input(20)
    np.testing.assert_array_equal(log_odds(MemoryDecoder(SMALL).eval(), input)[0], input.base_score)


@given(m=st.integers(1, 12), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_scores_do_not_depend_on_the_order_of_the_notes(m: int, seed: int) -> None:
    model, input = nonzero_decoder(), decoder_input(m, seed)
    order = np.random.default_rng(seed).permutation(m)
    moved = input._replace(
        notes=input.notes[order], pairs=input.pairs[order][:, order], note_vectors=input.note_vectors[order],
        base_score=input.base_score[order],
    )
    np.testing.assert_allclose(log_odds(model, moved)[0], log_odds(model, input)[0][order], rtol=1e-4, atol=1e-4)


def test_a_batch_gives_the_scores_of_single_questions() -> None:
    model, short, long = nonzero_decoder(), decoder_input(1), decoder_input(30, 1)
    separate = [log_odds(model, short)[0], log_odds(model, long)[0]]
    for alone, beside in zip(separate, log_odds(model, short, long), strict=True):
        np.testing.assert_allclose(beside, alone, rtol=1e-4, atol=1e-4)


def test_a_score_depends_on_the_other_notes() -> None:
    input = decoder_input(5)
    other = input._replace(notes=input.notes.copy())
    other.notes[4] += 9
    changed = log_odds(nonzero_decoder(), input)[0] - log_odds(nonzero_decoder(), other)[0]
    assert abs(changed[0]) > 1e-4


def test_pair_features_change_the_scores() -> None:
    input = decoder_input(6)
    linked = input._replace(pairs=input.pairs * 0)
    assert np.abs(log_odds(nonzero_decoder(), input)[0] - log_odds(nonzero_decoder(), linked)[0]).max() > 1e-4


def test_the_gates_are_those_of_lm2() -> None:
    """Where the attention output is 0, a note keeps sigmoid(FORGET_BIAS_INIT) of its state."""
    layer = MemoryDecoderLayer(MemoryDecoderConfig(width=16, heads=2)).eval()
    for part in (layer.note_attention.out, layer.note_mlp[3]):
        torch.nn.init.zeros_(part.weight)
        torch.nn.init.zeros_(part.bias)
    notes = torch.randn(1, 3, 16)
    padding_mask = torch.zeros(1, 3, dtype=torch.bool)
    pairs = torch.zeros(1, 3, 3, len(PAIR_FEATURES))
    _, after = layer(torch.randn(1, 2, 16), notes, pairs, padding_mask)
    torch.testing.assert_close(after, notes / (1 + np.exp(-FORGET_BIAS_INIT)))


def test_vectors_of_another_embedder_are_ignored() -> None:
    model, other = nonzero_decoder(), decoder_input(4, embedder="another")
    zeros = {"note_vectors": other.note_vectors * 0, "question_vector": other.question_vector * 0}
    blank = other._replace(**zeros, embedder=EMBEDDER)
    np.testing.assert_array_equal(log_odds(model, other)[0], log_odds(model, blank)[0])
    assert np.abs(log_odds(model, other)[0] - log_odds(model, other._replace(embedder=EMBEDDER))[0]).max() > 1e-4


def test_nan_features_raise() -> None:
    input = decoder_input(3)
    input.notes[1, 2] = np.nan
    with pytest.raises(ScorerError, match="NaN"):
        to_batch([input], SMALL)


def test_a_saved_decoder_loads(tmp_path: Path) -> None:
    model = nonzero_decoder()
    MemoryDecoderScorer(model).save(tmp_path / "new" / "decoder")
    loaded = MemoryDecoderScorer.load(tmp_path / "new" / "decoder")
    assert loaded.model.config == SMALL
    input = decoder_input(9)
    np.testing.assert_allclose(log_odds(loaded.model, input)[0], log_odds(model, input)[0], rtol=0.05, atol=0.05)


def test_the_shipped_weights_give_the_same_scores() -> None:
    shipped = MemoryDecoderScorer.load()
    config = shipped.model.config
    rng = np.random.default_rng(5)
    question = decoder_input(5, 5)._replace(
        note_vectors=rng.normal(size=(5, config.vector_dim)).astype(np.float32),
        question_vector=rng.normal(size=config.vector_dim).astype(np.float32),
        embedder=config.embedder,
    )
    expected = [-0.38436, -0.01617, -0.57708, 0.28933, -1.63278]
    np.testing.assert_allclose(shipped.predict([question])[0], expected, atol=1e-4)


def _spoil(folder: Path, name: str, change: bytes | None) -> None:
    path = folder / name
    path.unlink() if change is None else path.write_bytes(change)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (CONFIG, None, "does not contain a memory decoder"),
        (CONFIG, b"{", "cannot be read"),
        (CONFIG, b"[]", "cannot be read"),
        (CONFIG, b'{"width": 16}', "wrong fields"),
        (WEIGHTS, None, "does not contain a memory decoder"),
        (WEIGHTS, b"rubbish", "does not contain a memory decoder"),
    ],
)
def test_damaged_files_raise(tmp_path: Path, name: str, change: bytes | None, message: str) -> None:
    MemoryDecoderScorer(nonzero_decoder()).save(tmp_path)
    _spoil(tmp_path, name, change)
    with pytest.raises(ScorerError, match=message):
        MemoryDecoderScorer.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 32}, "does not match config.json"), ({"feature_version": 99}, "features of version 99"),
        ({"width": "wide"}, "cannot be read: width"), ({"embedder": 3}, "cannot be read"),
        ({"gates": True}, "wrong fields"),
        ({"heads": 10**9}, "heads=1000000000"), ({"layers": 0}, "layers=0"), ({"heads": 3}, "multiple of heads=3"),
    ],
)  # fmt: skip
def test_mismatched_files_raise(tmp_path: Path, change: dict[str, object], message: str) -> None:
    MemoryDecoderScorer(nonzero_decoder()).save(tmp_path)
    config = json.loads((tmp_path / CONFIG).read_text()) | change
    (tmp_path / CONFIG).write_text(json.dumps(config))
    with pytest.raises(ScorerError, match=message):
        MemoryDecoderScorer.load(tmp_path)


def test_nan_weights_raise(tmp_path: Path) -> None:
    model = nonzero_decoder()
    with torch.no_grad():
        model.base_weight.fill_(float("nan"))
    MemoryDecoderScorer(model).save(tmp_path)
    with pytest.raises(ScorerError, match="NaN"):
        MemoryDecoderScorer.load(tmp_path)


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ScorerError, match="reads=0"):
        MemoryDecoderScorer(nonzero_decoder(), reads=0)
    with pytest.raises(ScorerError, match="abacus"):
        MemoryDecoderScorer(nonzero_decoder(), device="abacus")


# ------------------------------------------------------------------------------------------------------------- training


def test_a_device_and_compiling_are_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []

    def fake_compile(model: torch.nn.Module, dynamic: bool) -> torch.nn.Module:
        compiled.append(dynamic)
        return model

    monkeypatch.setattr(torch, "compile", fake_compile)
    examples = [labelled(seed) for seed in range(20)]
    train(examples, examples, SMALL, TrainingSettings(epochs=1, device=None, compile=True), lambda *_: None)
    assert compiled == [True]


def labelled(seed: int, m: int = 15) -> Example:
    """The note with the largest first feature is the answer, whatever its default rank."""
    input = decoder_input(m, seed)
    return Example(input, np.arange(m) == input.notes[:, 0].argmax(), 1)


QUICK = TrainingSettings(epochs=6, rate=1e-2, batch=8)


def test_training_improves_recall() -> None:
    examples, held_out = [labelled(seed) for seed in range(120)], [labelled(seed) for seed in range(500, 560)]
    trained = train(examples, held_out, SMALL, QUICK, lambda *_: None)
    unseen = [labelled(seed) for seed in range(900, 960)]
    before = recall([base_scores(example) for example in unseen], unseen, k=3)
    assert recall(scores(trained.model, unseen), unseen, k=3) > before + 0.3
    assert max(epoch.recall for epoch in trained.epochs) == trained.epochs[trained.best].recall
    assert trained.epochs[-1].loss < trained.epochs[0].loss
    repeated = train(examples, held_out, SMALL, QUICK, lambda *_: None)
    assert repeated.epochs == trained.epochs, "the same seed, the same weights"


def test_training_on_noise_keeps_the_default_scorer() -> None:
    rng = np.random.default_rng(3)
    answers = np.arange(12) < 2  # the default scorer finds all answers
    noise = [Example(decoder_input(12, seed), answers, 2) for seed in range(40)]
    trained = train(noise[:30], noise[30:], SMALL, TrainingSettings(epochs=9, patience=2), lambda *_: None)
    assert trained.best == -1
    assert len(trained.epochs) == 2, "nothing better came, so it ended"
    input = decoder_input(12, int(rng.integers(100, 200)))
    np.testing.assert_array_equal(log_odds(trained.model, input)[0], input.base_score)


def test_training_needs_answers_and_held_out_questions() -> None:
    hopeless = labelled(1)._replace(answers=np.zeros(15, np.bool_))
    for examples, held_out in (([hopeless], [labelled(2)]), ([labelled(1)], [])):
        with pytest.raises(InvalidInput, match="training requires questions with answers"):
            train(examples, held_out, SMALL, QUICK, lambda *_: None)


def test_whole_conversations_are_held_out() -> None:
    groups = ["a"] * 5 + ["b"] * 3 + ["c"] * 2
    for seed in range(5):
        held_out = validation_mask(groups, 0.15, seed)
        assert len({groups[place] for place in np.flatnonzero(held_out)}) == 1
        assert len({groups[place] for place in np.flatnonzero(~held_out)}) == 2


# ----------------------------------------------------------------------------------------------------------- documents


def test_a_decoder_can_skip_documents() -> None:
    talk, documents = decoder_input(9, 1), decoder_input(12, 2)._replace(is_conversation=False)
    everything, talk_alone = nonzero_decoder(), nonzero_decoder(replace(SMALL, conversations_only=True))
    for model in (everything, talk_alone):
        conversation, document = scores(model, [labelled(1)._replace(input=input) for input in (talk, documents)])
        np.testing.assert_allclose(conversation, log_odds(everything, talk)[0], rtol=1e-4)
        assert (document == documents.base_score).all() == (model is talk_alone)
        assert [len(input) for input in scores(model, [labelled(1)._replace(input=documents)])] == [12]


def test_a_decoder_without_gain_on_documents_skips_them() -> None:
    def document(input: Example) -> Example:
        return input._replace(input=input.input._replace(is_conversation=False))

    talk = [labelled(seed) for seed in range(60)]
    trained = train(talk, [labelled(seed) for seed in range(500, 540)], SMALL, QUICK, lambda *_: None).model
    alike, other = [document(input) for input in talk[:20]], [document(input) for input in map(unlike, range(20))]
    assert not is_conversations_only(trained, [*talk, *alike], 3)
    assert is_conversations_only(trained, [*talk, *other], 3)
    assert is_conversations_only(trained, talk, 3), "it never saw a document"
    assert not is_conversations_only(trained, other, 3), "it saw nothing else"


def unlike(seed: int) -> Example:
    """The default scorer's best note is the answer, whatever its features."""
    return Example(decoder_input(15, seed), np.arange(15) < 1, 1)


# -------------------------------------------------------------------------------------------------------------- shipped


def test_the_shipped_decoder_ranks_notes() -> None:
    scorer = MemoryDecoderScorer.load()
    assert scorer.model.config.embedder == load_embedder().info.fingerprint, "it reads the default embedder's vectors"
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 4_000_000
    with Memory(":memory:", scorer="decoder") as memory:
        memory.add_many(
            [
                {"content": "Ida painted the boat house.", "speaker": "Ida", "session": "s"},
                {"content": "What did you do with the red paint and the brush?", "speaker": "Nils", "session": "s"},
                {"content": "Nothing yet, it is under the bench.", "speaker": "Ida", "session": "s"},
            ],
            wait=True,
        )
        hits = memory.search("Where is Ida's red paint?", explain=True)
        assert len(hits) == 3
        assert {hit.why.scorer for hit in hits} == {"fusion+decoder"}
        assert all(np.isfinite(hit.why.features["decoder"]) for hit in hits)
        assert memory.search_many(["Where is the paint?", "Who painted?"])[1]
        memory.delete_scope()
        assert memory.search("Where is the paint?") == []
