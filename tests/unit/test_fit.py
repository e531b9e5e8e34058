"""Fitting of the default scorer: planted preferences are found, and the inputs of a fit are as described."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from zettel.bench import chats, fitting
from zettel.bench.evaluation import Collection, Question
from zettel.errors import InvalidInput, ScorerError
from zettel.model import Event
from zettel.scoring.network_fit import (
    FitSettings,
    Judged,
    Labelled,
    example_weights,
    fit_calibration,
    fit_local,
    moments,
)
from zettel.scoring.networks import Networks

torch = pytest.importorskip("torch", reason="fitting requires torch")

QUICK = FitSettings(networks=2, hidden=8, epochs=12, batch=16, rate=1e-2, dropout=0.0)
NAMES = ("worth", "noise", "switch")
DATA = Path(__file__).parents[1] / "data"


def planted(questions: int, seed: int = 0) -> list[Labelled]:
    """Questions whose evidence has the highest "worth" if "switch" is 1, else the lowest: no weighted sum fits."""
    rng = np.random.default_rng(seed)
    examples = []
    for number in range(questions):
        values = rng.normal(size=(10, 3)).astype(np.float32)
        values[:, 2] = number % 2
        best = values[:, 0].argmax() if number % 2 else values[:, 0].argmin()
        evidence = np.zeros(10, np.float32)
        evidence[best] = 1.0
        examples.append(Labelled(values, np.arange(10), evidence, "chat"))
    return examples


def right(networks: Networks, examples: list[Labelled]) -> float:
    best = [networks.scores(networks.standardized(example.values)).argmax() for example in examples]
    return float(np.mean([example.evidence[row] > 0 for row, example in zip(best, examples, strict=True)]))


def test_a_planted_condition_is_learned() -> None:
    networks = fit_local(planted(300), NAMES, QUICK)
    assert right(networks, planted(100, seed=1)) > 0.9


def test_the_same_seed_gives_the_same_networks() -> None:
    first, second = (fit_local(planted(40), NAMES, QUICK) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first[1:], second[1:], strict=True))


def test_the_parts_of_an_event_count_as_the_best_of_them() -> None:
    """A bad part beside a good one of the same event does not make the event a bad one."""
    rng = np.random.default_rng(2)
    examples = []
    for _ in range(200):
        values = rng.normal(size=(6, 3)).astype(np.float32)
        values[:2, 0] = 2.5, -2.5  # two parts of the event that answers
        examples.append(Labelled(values, np.array([0, 0, 1, 2, 3, 4]), np.eye(5, dtype=np.float32)[0], "chat"))
    assert right_event(fit_local(examples, NAMES, QUICK), examples) > 0.9


def right_event(networks: Networks, examples: list[Labelled]) -> float:
    best = [networks.scores(networks.standardized(example.values)).argmax() for example in examples]
    return float(np.mean([example.event[row] == 0 for row, example in zip(best, examples, strict=True)]))


def test_the_chance_of_an_answer_is_learned() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(600, 3)).astype(np.float32)
    judged = [Judged(row, bool(row[0] > 0), "chat") for row in values]
    settings = FitSettings(networks=1, hidden=8, epochs=20, batch=64, rate=1e-2, dropout=0.0)
    networks = fit_calibration(judged, NAMES, settings)
    odds = networks.scores(networks.standardized(values))
    assert np.mean((odds > 0) == (values[:, 0] > 0)) > 0.95


def test_nothing_to_fit_is_an_error() -> None:
    (example,) = planted(1)
    for evidence in (np.zeros(10, np.float32), np.ones(10, np.float32)):
        with pytest.raises(InvalidInput, match="no question has evidence"):
            fit_local([example._replace(evidence=evidence)], NAMES, QUICK)
    with pytest.raises(InvalidInput, match="questions without one"):
        fit_calibration([Judged(np.zeros(3, np.float32), True, "chat")] * 2, NAMES)


def test_moments_count_every_question_equally() -> None:
    mean, scale = moments([np.zeros((1, 1), np.float32), np.full((99, 1), 2.0, np.float32)])
    assert mean == pytest.approx(1.0)
    assert scale == pytest.approx(1.0, abs=0.01)


def test_each_kind_of_memory_has_its_share() -> None:
    kinds = ["talk"] * 6 + ["chat"] * 2
    assert example_weights(kinds).reshape(2, -1).sum() == pytest.approx(8.0)
    weights = example_weights(kinds, {"talk": 1.0, "chat": 3.0})
    assert weights[:6].sum() * 3 == pytest.approx(weights[6:].sum())
    assert weights.mean() == pytest.approx(1.0)


def test_networks_are_saved_and_damage_is_refused(tmp_path: Path) -> None:
    networks = fit_local(planted(30), NAMES, QUICK)
    networks.save(tmp_path / "local.safetensors")
    loaded = Networks.load(tmp_path / "local.safetensors")
    assert loaded.names == NAMES
    assert right(loaded, planted(20)) == right(networks, planted(20))
    (tmp_path / "damaged.safetensors").write_bytes(b"not weights")
    for name in ("damaged.safetensors", "missing.safetensors"):
        with pytest.raises(ScorerError, match=name):
            Networks.load(tmp_path / name)


def test_contributions_add_up_and_ignore_what_has_no_effect() -> None:
    networks = fit_local(planted(200), NAMES, QUICK)
    inputs = networks.standardized(np.array([[1.5, 0.3, 1.0]], np.float32))[0]
    groups = {"worth": [0], "noise": [1]}
    parts = networks.contributions(inputs, groups)
    rest = inputs.copy()
    rest[:2] = 0.0
    whole, base = networks.scores(np.stack([inputs, rest]))
    assert sum(parts.values()) == pytest.approx(whole - base, abs=1e-4)
    assert abs(parts["noise"]) < abs(parts["worth"])


def test_questions_are_copied_with_another_speaker_name() -> None:
    turns = [("Ann Lee", "I bought a cello."), ("Bob", "I sold mine."), ("Cleo", "We met in May.")]
    events = [Event(id=str(n), speaker=speaker, content=content) for n, (speaker, content) in enumerate(turns)]
    questions = [
        Question("What did Ann buy?", "4", frozenset({"0"})),
        Question("What did Bob do, and Ann?", "1", frozenset({"0", "1"})),
        Question("When did Bob meet Cleo?", "2", frozenset({"2"})),
        Question("When did Cleo and the others meet?", "2", frozenset({"2"})),
        Question("What did Ann play?", "5", frozenset()),
    ]
    changed = fitting.swapped(Collection("talk", events, questions))
    assert [(question.text, question.group, question.needed) for question in changed] == [
        ("What did Bob buy?", "5", frozenset()),
        ("When did Ann Lee and the others meet?", "5", frozenset()),
    ]
    assert fitting.swapped(Collection("monologue", events[:1], questions[:1])) == []


def test_cuts_of_a_memory_know_which_questions_they_answer() -> None:
    (chat,) = chats.read(DATA / "chats" / "home-server.json")
    cuts = fitting.cuts(chat)
    assert {len(cut.events) for cut in cuts} == set(fitting.CUT_SIZES)
    assert cuts == fitting.cuts(chat), "the same cuts in every run"
    labels = {question.text: question.needed for question in chat.questions}
    for cut in cuts:
        inside = {event.external_id for event in cut.events}
        assert any(question.needed for question in cut.questions)
        for question in cut.questions:
            assert question.needed in (labels[question.text], frozenset())
            assert question.needed <= inside
            assert bool(question.needed) == bool(labels[question.text] & inside)


def test_the_kind_of_a_memory_follows_from_its_events() -> None:
    def kind(**event: str) -> str:
        return fitting.kind_of(Collection("x", [Event(content="Hi.", **event)], []))  # type: ignore[arg-type]

    assert kind(role="user", session="a") == "chat"
    assert kind(speaker="Ann", session="a") == "talk"
    assert kind(title="Hi") == "documents"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("chats/album-band.json", "chat"), ("small-memories/fit.jsonl", "chat"), ("conversations/choir.json", "talk")],
)
def test_every_layout_is_read(name: str, kind: str) -> None:
    collections = fitting.read(DATA / name)
    assert {fitting.kind_of(collection) for collection in collections} == {kind}
    assert any(fitting.is_answered(question) for question in collections[0].questions)
