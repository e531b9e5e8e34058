"""A scorer tuned on the feedback of a real memory, and labelled questions taken from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from zettel import Memory, Scope
from zettel.bench import feedback, labelled_questions
from zettel.cli.app import run
from zettel.errors import InvalidInput
from zettel.model import Hit
from zettel.scoring import tuning
from zettel.scoring.preferences import Preferences

BEN = Scope(user="ben")
THINGS = (
    "ladder kettle drill lantern trowel anchor bucket violin compass blanket hammer teapot mirror barrel saddle"
    " whistle umbrella basket candle scarf shovel magnet pillow ribbon helmet wrench carpet funnel locket thimble"
    " rucksack toboggan accordion telescope typewriter wheelbarrow"
).split()
PLACES = "cellar attic shed kitchen garage boathouse pantry hall".split()
TOLD, LATER = THINGS[:32], THINGS[32:]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """Three people each say of every thing where it is, and never the same."""
    with Memory(str(tmp_path / "memory.db"), scope=BEN) as opened:
        opened.add_many(
            [
                {"content": f"The {thing} is in the {PLACES[(number + turn) % 8]}.", "speaker": speaker, "session": "s"}
                for number, thing in enumerate(THINGS)
                for turn, speaker in enumerate(("Ann", "Bob", "Cleo"))
            ],
            wait=True,
        )
        yield opened


def ask(memory: Memory, things: list[str], scorer: str = "decoder", log: bool = True) -> list[list[Hit]]:
    return memory.search_many([f"Where is the {thing}?" for thing in things], k=6, scorer=scorer, log=log)


def first_by(hits: list[list[Hit]], speaker: str) -> float:
    return float(np.mean([one[0].note.speaker == speaker for one in hits]))


def tell(memory: Memory, found: list[list[Hit]], speaker: str) -> None:
    for thing, hits in zip(TOLD, found, strict=True):
        used = [hit.note.id for hit in hits if hit.note.speaker == speaker and thing in hit.note.content]
        memory.feedback(str(hits[0].search_id), used)


def test_tuned_to_whose_words_are_of_use(memory: Memory, tmp_path: Path) -> None:
    tell(memory, ask(memory, TOLD), "Cleo")
    before = first_by(ask(memory, LATER, log=False), "Cleo")
    told = memory.tune(tmp_path / "tuned")
    assert told.accepted
    assert (told.searches, told.useful, told.uses) == (32, 32, 32)
    assert told.after > told.before + told.error
    assert {file.name for file in (tmp_path / "tuned").iterdir()} == {
        "config.json", "model.safetensors", "taste.safetensors"
    }  # fmt: skip
    after = ask(memory, LATER, f"decoder:{tmp_path / 'tuned'}", log=False)
    assert first_by(after, "Cleo") == 1.0 > before
    assert {hit.why.scorer for hits in after for hit in hits} == {"fusion+tuned"}
    again = tmp_path / "again"
    assert memory.tune(again) == told
    one, two = Preferences.load(tmp_path / "tuned"), Preferences.load(again)
    assert one is not None
    assert two is not None
    np.testing.assert_array_equal(one.weights, two.weights)
    with pytest.raises(InvalidInput, match="0 searches since the last tuning"):
        memory.tune(tmp_path / "tuned")
    with pytest.raises(InvalidInput, match="0 searches have a useful hit, and learning requires 30"):
        memory.tune(tmp_path / "other", scopes=[Scope(user="ann")])


def test_refused_where_chance_told(
    memory: Memory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = np.random.default_rng(1)
    for hits in ask(memory, TOLD):
        memory.feedback(str(hits[0].search_id), [hits[chance.integers(len(hits))].note.id])
    told = memory.tune(tmp_path / "tuned")
    assert not told.accepted
    assert not (tmp_path / "tuned").exists()
    memory.close()
    store = ["--store", str(tmp_path / "memory.db"), "--user", "ben"]
    assert run(["scorer", "tune", "--into", str(tmp_path / "tuned"), *store]) == 1
    said = capsys.readouterr().err
    assert f"gain {told.before:.3f} before, {told.after:.3f} tuned" in said
    assert not (tmp_path / "tuned").exists()


def test_an_erased_note_has_no_utility(memory: Memory, tmp_path: Path) -> None:
    tell(memory, ask(memory, TOLD), "Ann")
    store = memory._bridge.inner._backend.memory.engine.store
    found = ask(memory, TOLD[:1], log=False)[0]
    ids = [hit.note.id for hit in found]
    proved = memory._bridge.call(lambda: store.proved(BEN, ids))
    assert max(one.good for one in proved.values()) >= 1
    (used,) = [hit.note.id for hit in found if hit.note.speaker == "Ann" and TOLD[0] in hit.note.content]
    memory.delete(used)
    left = memory._bridge.call(lambda: store.proved(BEN, ids))
    assert used not in left
    assert all(left[id].shown < proved[id].shown for id in left if id in ids[:3]), "its searches went with it"


def test_questions_taken_out_and_trained_on(
    memory: Memory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(memory, ask(memory, TOLD), "Cleo")
    memory.close()
    store = ["--store", str(tmp_path / "memory.db")]
    one = tmp_path / "ben.jsonl"
    assert run(["scorer", "export", "--to", str(one), "--user", "ben", *store]) == 0
    assert "32 questions" in capsys.readouterr().out
    (collection,) = labelled_questions.read(one)
    contents = {str(event.external_id): (event.speaker, event.content) for event in collection.events}
    assert len(contents) == 3 * len(THINGS)
    for thing, asked in zip(TOLD, collection.questions, strict=True):
        (speaker, content), = [contents[id] for id in asked.needed]
        assert speaker == "Cleo"
        assert thing in str(content)
    lines = [json.loads(line) for line in one.read_text().splitlines()]
    question = next(line for line in lines if "question" in line)
    assert set(question) == {"in", "question", "answers", "asked_at", "shown"}
    assert set(question["answers"]) <= set(question["shown"])

    two = tmp_path / "two.jsonl"
    two.write_text(one.read_text().replace("ben", "zoe"))
    assert run(["scorer", "export", str(one), str(two), "--to", str(tmp_path / "both.jsonl"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["to"] == str(tmp_path / "both.jsonl")
    assert len(labelled_questions.read(tmp_path / "both.jsonl")) == 2
    trained = ["scorer", "train", str(tmp_path / "both.jsonl"), "--out", str(tmp_path / "decoder"), "--epochs", "1"]
    assert run(trained) == 0
    assert (tmp_path / "decoder" / "model.safetensors").exists()


def test_a_file_of_questions_that_is_not_utf_8_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.jsonl").write_bytes(b'{"in": "a", "note": "n_1", "content": "caf\xe9"}\n')
    assert run(["scorer", "fit", str(tmp_path / "bad.jsonl")]) == 1
    told = capsys.readouterr().err
    assert "bad.jsonl, line 1: no note and no labelled question" in told
    assert told.count("\n") == 1


def test_what_cannot_be_taken_out(memory: Memory, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    memory.close()
    store = ["--store", str(tmp_path / "memory.db"), "--user", "ben"]
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"in": "a", "note": "n_1"}\n')
    empty = tmp_path / "empty.jsonl"
    empty.write_text('{"in": "a", "note": "n_1", "content": "Hello."}\n')
    for arguments, said in (
        (["export", "--to", str(tmp_path / "x.json")], "must end in .jsonl"),
        (["export", "--to", str(tmp_path / "x.jsonl")], "the log has no search with feedback"),
        (["tune", "--into", str(tmp_path / "tuned")], "0 searches have a useful hit, and learning requires 30"),
        (["eval", str(broken)], "line 1"),
        (["eval", str(empty)], "no question with an answer"),
    ):
        assert run(["scorer", *arguments, *store]) != 0
        assert said in capsys.readouterr().err


def test_simulated_users(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Far too few uses to learn from; what is measured is measured."""
    monkeypatch.setattr(tuning, "MIN_SEARCHES", 1)
    everybody = feedback.preferences
    monkeypatch.setattr(feedback, "preferences", lambda *how: {"one speaker": everybody(*how)["one speaker"]})
    told = tmp_path / "told.json"
    file = str(Path(__file__).parents[1] / "data" / "conversations" / "choir.json")
    assert run(["bench", "feedback", file, "--uses", "45", "--seeds", "1", "--json", str(told)]) == 0
    rows = {row[0]: row[1:] for row in json.loads(told.read_text())["rows"]}
    assert list(rows) == ["one speaker, seed 0", "one speaker, mean", "all, mean"]
    for name, (used, later, untuned, tuned, difference, _, _, accepted) in rows.items():
        assert used >= 1, name
        assert later >= 1, name
        assert 0 <= untuned <= 1
        assert difference == pytest.approx(tuned - untuned, abs=2e-4)
        assert accepted or not difference
    capsys.readouterr()
    assert run(["bench", "feedback", file, "--uses", "900"]) != 0
    assert "leave none for later" in capsys.readouterr().err
