"""A scorer tuned on feedback, and labelled questions exported from a memory."""

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
RATED, UNRATED = THINGS[:32], THINGS[32:]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """Return a memory in which three people name different places for every thing."""
    with Memory(str(tmp_path / "memory.db"), scope=BEN) as instance:
        instance.add_many(
            [
                {"content": f"The {thing} is in the {PLACES[(number + turn) % 8]}.", "speaker": speaker, "session": "s"}
                for number, thing in enumerate(THINGS)
                for turn, speaker in enumerate(("Ann", "Bob", "Cleo"))
            ],
            wait=True,
        )
        yield instance


def search_things(memory: Memory, things: list[str], scorer: str = "decoder", log: bool = True) -> list[list[Hit]]:
    return memory.search_many([f"Where is the {thing}?" for thing in things], k=6, scorer=scorer, log=log)


def first_by(results: list[list[Hit]], speaker: str) -> float:
    return float(np.mean([hits[0].note.speaker == speaker for hits in results]))


def give_feedback(memory: Memory, results: list[list[Hit]], speaker: str) -> None:
    for thing, hits in zip(RATED, results, strict=True):
        used = [hit.note.id for hit in hits if hit.note.speaker == speaker and thing in hit.note.content]
        memory.feedback(str(hits[0].search_id), used)


def test_tuning_prefers_the_useful_speaker(memory: Memory, tmp_path: Path) -> None:
    give_feedback(memory, search_things(memory, RATED), "Ann")
    before = first_by(search_things(memory, UNRATED, log=False), "Ann")
    report = memory.tune(tmp_path / "tuned")
    assert report.accepted
    assert (report.searches, report.useful, report.uses) == (32, 32, 32)
    assert report.after > report.before + report.error
    assert {file.name for file in (tmp_path / "tuned").iterdir()} == {
        "config.json", "model.safetensors", "taste.safetensors"
    }  # fmt: skip
    after = search_things(memory, UNRATED, f"decoder:{tmp_path / 'tuned'}", log=False)
    assert first_by(after, "Ann") == 1.0 > before
    assert {hit.why.scorer for hits in after for hit in hits} == {"fusion+tuned"}
    again = tmp_path / "again"
    assert memory.tune(again) == report
    first, second = Preferences.load(tmp_path / "tuned"), Preferences.load(again)
    assert first is not None
    assert second is not None
    np.testing.assert_array_equal(first.weights, second.weights)
    with pytest.raises(InvalidInput, match="0 searches since the last tuning"):
        memory.tune(tmp_path / "tuned")
    with pytest.raises(InvalidInput, match="0 searches have a useful hit, and learning requires 30"):
        memory.tune(tmp_path / "other", scopes=[Scope(user="ann")])


def test_tuning_on_random_feedback_is_rejected(
    memory: Memory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = np.random.default_rng(1)
    for hits in search_things(memory, RATED):
        memory.feedback(str(hits[0].search_id), [hits[chance.integers(len(hits))].note.id])
    report = memory.tune(tmp_path / "tuned")
    assert not report.accepted
    assert not (tmp_path / "tuned").exists()
    memory.close()
    store = ["--store", str(tmp_path / "memory.db"), "--user", "ben"]
    assert run(["scorer", "tune", "--into", str(tmp_path / "tuned"), *store]) == 1
    errors = capsys.readouterr().err
    assert f"gain {report.before:.3f} before, {report.after:.3f} tuned" in errors
    assert not (tmp_path / "tuned").exists()


def test_an_erased_note_has_no_utility(memory: Memory, tmp_path: Path) -> None:
    give_feedback(memory, search_things(memory, RATED), "Ann")
    store = memory._bridge.inner._backend.memory.engine.store
    hits = search_things(memory, RATED[:1], log=False)[0]
    ids = [hit.note.id for hit in hits]
    before = memory._bridge.call(lambda: store.proved(BEN, ids))
    assert max(utility.good for utility in before.values()) >= 1
    (used,) = [hit.note.id for hit in hits if hit.note.speaker == "Ann" and RATED[0] in hit.note.content]
    memory.delete(used)
    after = memory._bridge.call(lambda: store.proved(BEN, ids))
    assert used not in after
    assert all(after[id].shown < before[id].shown for id in after if id in ids[:3]), "its searches went with it"


def test_exported_questions_can_train_a_decoder(
    memory: Memory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    give_feedback(memory, search_things(memory, RATED), "Cleo")
    memory.close()
    store = ["--store", str(tmp_path / "memory.db")]
    bens_file = tmp_path / "ben.jsonl"
    assert run(["scorer", "export", "--to", str(bens_file), "--user", "ben", *store]) == 0
    assert "32 questions" in capsys.readouterr().out
    (collection,) = labelled_questions.read(bens_file)
    contents = {str(event.external_id): (event.speaker, event.content) for event in collection.events}
    assert len(contents) == 3 * len(THINGS)
    for thing, question_record in zip(RATED, collection.questions, strict=True):
        ((speaker, content),) = [contents[id] for id in question_record.needed]
        assert speaker == "Cleo"
        assert thing in str(content)
    lines = [json.loads(line) for line in bens_file.read_text().splitlines()]
    question = next(line for line in lines if "question" in line)
    assert set(question) == {"in", "question", "answers", "asked_at", "shown"}
    assert set(question["answers"]) <= set(question["shown"])

    zoes_file = tmp_path / "two.jsonl"
    zoes_file.write_text(bens_file.read_text().replace("ben", "zoe"))
    assert (
        run(["scorer", "export", str(bens_file), str(zoes_file), "--to", str(tmp_path / "both.jsonl"), "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["to"] == str(tmp_path / "both.jsonl")
    assert len(labelled_questions.read(tmp_path / "both.jsonl")) == 2
    trained = ["scorer", "train", str(tmp_path / "both.jsonl"), "--out", str(tmp_path / "decoder"), "--epochs", "1"]
    assert run(trained) == 0
    assert (tmp_path / "decoder" / "model.safetensors").exists()


def test_a_question_file_that_is_not_utf_8_is_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.jsonl").write_bytes(b'{"in": "a", "note": "n_1", "content": "caf\xe9"}\n')
    assert run(["scorer", "fit", str(tmp_path / "bad.jsonl")]) == 1
    errors = capsys.readouterr().err
    assert "bad.jsonl, line 1: no note and no labelled question" in errors
    assert errors.count("\n") == 1


def test_wrong_scorer_commands_are_errors(memory: Memory, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    memory.close()
    store = ["--store", str(tmp_path / "memory.db"), "--user", "ben"]
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"in": "a", "note": "n_1"}\n')
    empty = tmp_path / "empty.jsonl"
    empty.write_text('{"in": "a", "note": "n_1", "content": "Hello."}\n')
    for arguments, error_text in (
        (["export", "--to", str(tmp_path / "x.json")], "must end in .jsonl"),
        (["export", "--to", str(tmp_path / "x.jsonl")], "the log has no search with feedback"),
        (["tune", "--into", str(tmp_path / "tuned")], "0 searches have a useful hit, and learning requires 30"),
        (["eval", str(broken)], "line 1"),
        (["eval", str(empty)], "no question with an answer"),
    ):
        assert run(["scorer", *arguments, *store]) != 0
        assert error_text in capsys.readouterr().err


def test_the_feedback_benchmark_reports_each_simulated_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The uses are too few to learn from, but the report has every measure."""
    monkeypatch.setattr(tuning, "MIN_SEARCHES", 1)
    all_preferences = feedback.preferences
    monkeypatch.setattr(
        feedback, "preferences", lambda *arguments: {"one speaker": all_preferences(*arguments)["one speaker"]}
    )
    report = tmp_path / "report.json"
    file = str(Path(__file__).parents[1] / "data" / "conversations" / "choir.json")
    assert run(["bench", "feedback", file, "--uses", "45", "--seeds", "1", "--json", str(report)]) == 0
    rows = {row[0]: row[1:] for row in json.loads(report.read_text())["rows"]}
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
