"""Values of rerankers, their effect, and loading of scorers by name."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.tiny import Row, Tiny
from zettel import Memory
from zettel.errors import BudgetSpent, InvalidInput, MissingExtra, ModelUnavailable, ScorerError
from zettel.model import TIME_MAX, LinkType
from zettel.ports.query import Scores, Shortlist
from zettel.scoring import Cascade, load_scorer
from zettel.scoring.fusion import FusionScorer
from zettel.search.rerank import reordered, rerank

TEXTS = ("The red boat lies in the harbour.", "The boat was red.", "A blue boat came.", "No boat at all.")


class Answers:
    """Returns the given values for every list, or raises the given error."""

    name = "answers"
    wants_vectors = False

    def __init__(self, *given: Any, name: str = "answers", reads: int = 100) -> None:
        self.given, self.name, self.reads = given, name, reads
        self.shown: list[int] = []

    async def rerank(self, questions: Sequence[Any], shortlists: Sequence[Shortlist]) -> Any:
        self.shown += [len(item.notes) for item in shortlists]
        if len(self.given) == 1 and isinstance(self.given[0], Exception):
            raise self.given[0]
        return list(self.given)


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:") as opened:
        opened.add_many([{"content": text} for text in TEXTS], wait=True)
        yield opened


def found_ids(memory: Memory, scorer: Any, **search: Any) -> list[str]:
    return [hit.note.content for hit in memory.search("the red boat", scorer=scorer, **search)]


def scorer_names(memory: Memory, scorer: Any) -> set[str]:
    return {hit.why.scorer for hit in memory.search("the red boat", scorer=scorer)}


# ------------------------------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1, 2, float("nan"), 4]], "answers returned nan for a note"),
        ([[1, 2, float("inf"), 4]], "answers returned inf for a note"),
        ([[1, 2, 3]], r"answers returned shape \(3,\) for 4 notes"),
        ([[[1], [2], [3], [4]]], r"answers returned shape \(4, 1\) for 4 notes"),
        ([7.0], r"answers returned shape \(\) for 4 notes"),
        ([["best", "good", "poor", "none"]], "answers returned list: return an array of 4 numbers"),
        ([None], r"answers returned shape .* for 4 notes|answers returned NoneType"),
        ([], "answers returned 0 arrays for 1 questions"),
        ([[1, 2, 3, 4], [1, 2, 3, 4]], "answers returned 2 arrays for 1 questions"),
    ],
)
def test_invalid_values_are_one_clear_error(memory: Memory, values: list[Any], message: str) -> None:
    with pytest.raises(ScorerError, match=message):
        memory.search("the red boat", scorer=Answers(*values))


def test_an_answer_that_is_not_a_list_is_an_error(memory: Memory) -> None:
    class Silent(Answers):
        async def rerank(self, questions: Sequence[Any], shortlists: Sequence[Shortlist]) -> Any:
            return None

    with pytest.raises(ScorerError, match="answers returned NoneType"):
        memory.search("the red boat", scorer=Silent())


@pytest.mark.parametrize("error", [ModelUnavailable("the model sleeps"), BudgetSpent("no calls left")], ids=repr)
def test_a_model_error_keeps_the_order_and_hits_report_it(memory: Memory, error: Exception) -> None:
    before = found_ids(memory, None)
    for scorer in (Answers(error), Cascade([Answers(error)])):
        assert found_ids(memory, scorer) == before
        assert scorer_names(memory, scorer) == {f"fusion (not answers: {error})"}
    assert found_ids(memory, Answers(error), explain=True) == before


def test_one_question_may_fail_and_another_not(memory: Memory) -> None:
    scorer = Answers([0, 1, 2, 3], ModelUnavailable("the model sleeps"))
    first, second = memory.search_many(["the red boat", "a blue boat"], scorer=scorer)
    assert {hit.why.scorer for hit in first} == {"fusion+answers"}
    assert {hit.why.scorer for hit in second} == {"fusion (not answers: the model sleeps)"}


def test_other_errors_are_raised(memory: Memory) -> None:
    with pytest.raises(ZeroDivisionError):
        memory.search("the red boat", scorer=Answers(ZeroDivisionError()))


# --------------------------------------------------------------------------------------------------------------- order


def shortlist(tiny: Tiny, rows: Sequence[int]) -> Shortlist:
    question = tiny.ask("boat")
    candidates = tiny.about(question)
    first: Scores = FusionScorer().score(question, candidates)
    score = np.linspace(0.9, 0.5, len(rows), dtype=np.float32)
    scores = first.score.copy()
    scores[list(rows)] = score
    first = Scores(scores, first.local_score, first.graph_score, first.features, first.feature_names, first.sender)
    return Shortlist(candidates, first, np.array(rows, np.int64), score, (), np.zeros((len(rows), 0)), "", None)


def ordered(candidates: Shortlist, values: Sequence[float]) -> list[int]:
    rows, score = reordered(candidates, np.array(values, np.float32), None)
    assert score[rows].tolist() == sorted(candidates.score.tolist(), reverse=True)
    others = np.setdiff1d(np.arange(len(score)), rows)
    np.testing.assert_array_equal(score[others], candidates.first.score[others])
    return rows


def test_larger_values_rank_first_and_ties_keep_their_order() -> None:
    candidates = shortlist(Tiny([Row("boat")] * 5), [3, 0, 4, 1])
    assert ordered(candidates, [1, 2, 2, 3]) == [1, 0, 4, 3]
    assert ordered(candidates, [0, 0, 0, 0]) == [3, 0, 4, 1]


def test_a_replacement_ranks_above_its_note() -> None:
    """Row 0 was replaced by 1 and that by 2; 3 and 4 replaced each other."""
    ends = (5, 6, TIME_MAX, 7, 7)
    links = [(newer, older, LinkType.SUPERSEDES) for newer, older in ((1, 0), (2, 1), (3, 4), (4, 3))]
    tiny = Tiny([Row("boat", valid_to=end) for end in ends], links)
    assert ordered(shortlist(tiny, [0, 1, 2]), [3, 2, 1]) == [2, 1, 0]
    assert ordered(shortlist(tiny, [0, 2]), [3, 1]) == [0, 2]  # its replacement is not a candidate
    assert sorted(ordered(shortlist(tiny, [3, 4, 2]), [3, 2, 1])) == [2, 3, 4]


def test_rerankers_are_called_for_two_notes_or_more() -> None:
    tiny, scorer = Tiny([Row("boat")] * 3), Answers([1, 2, 3])
    lists = [shortlist(tiny, rows) for rows in ([], [1], [0, 1, 2])]
    outcomes = asyncio.run(rerank(scorer, [tiny.ask("boat")] * 3, lists))
    assert outcomes[:2] == [None, None]
    assert outcomes[2] is not None
    assert len(scorer.shown) == 1
    assert asyncio.run(rerank(Answers(ValueError()), [tiny.ask("boat")], lists[:1])) == [None]


# ------------------------------------------------------------------------------------------------------------- cascade


def test_each_stage_of_a_cascade_reads_the_order_before_it(memory: Memory) -> None:
    before = found_ids(memory, None)
    first, second = Answers([1, 2, 3, 4], name="one"), Answers([1, 2], name="two", reads=2)
    hits = memory.search("the red boat", scorer=Cascade([first, Cascade([second])]), explain=True)
    assert [hit.note.content for hit in hits] == [before[2], before[3], before[1], before[0]]
    assert (first.shown, second.shown) == ([4], [2])
    assert {hit.why.scorer for hit in hits} == {"fusion+one+two"}
    assert [hit.why.features.get("one") for hit in hits] == [3, 4, 2, 1]
    assert [hit.why.features.get("two") for hit in hits] == [2, 1, None, None]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_cascade_continues_after_a_model_error(memory: Memory) -> None:
    stages = [Answers(ModelUnavailable("it sleeps"), name="one"), Answers([1, 2, 3, 4], name="two")]
    assert scorer_names(memory, Cascade(stages)) == {"fusion (not one: it sleeps)+two"}
    assert found_ids(memory, Cascade(stages)) == found_ids(memory, None)[::-1]


def test_an_empty_cascade_or_one_of_scorers_raises() -> None:
    for rerankers in ([], ["fusion"], [FusionScorer()]):
        with pytest.raises(InvalidInput, match="cascade"):
            Cascade(rerankers)


# --------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        ("luck", "unknown scorer 'luck': use one of fusion, decoder, cross-encoder, llm"),
        ("", "unknown scorer ''"),
        (7, "scorer=7 has neither score nor rerank"),
        (FusionScorer, "FusionScorer is a class: pass an instance"),
        (type("Half", (), {"rerank": None, "name": "half"})(), "has no reads and no wants_vectors"),
        (Answers(reads=0), "the scorer answers has reads=0"),
    ],
)
def test_an_invalid_scorer_raises(memory: Memory, scorer: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        memory.search("the red boat", scorer=scorer)
    with pytest.raises(InvalidInput, match=message):
        Memory(":memory:", scorer=scorer)  # on opening


@pytest.mark.parametrize(
    "options",
    [{"scorer": name} for name in ("decoder", "decoder:folder", "cross-encoder", "cross-encoder:some/model")],
    ids=str,
)
def test_without_torch_the_error_names_the_extra(
    memory: Memory, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("torch", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r'pip install "zettel-graph\[torch\]"') as raised:
        memory.search("the red boat", **options)
    assert "\n" not in str(raised.value)
    assert memory.search("the red boat", scorer="fusion")


def test_the_models_scorer_needs_a_model(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match=r"open the memory with llm=\.\.\."):
        memory.search("the red boat", scorer="llm")


class Mine(Answers):
    """A scorer of another package."""

    def __init__(self, argument: str = "") -> None:
        super().__init__(name=f"mine{argument}")


@pytest.mark.parametrize(("spec", "name"), [("mine", "mine"), ("mine:large", "minelarge")])
def test_other_packages_register_scorers(spec: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = tmp_path / "other-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[zettel.scorers]\nmine = other_scorer:Mine\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = type(sys)("other_scorer")
    module.__dict__["Mine"] = Mine
    monkeypatch.setitem(sys.modules, "other_scorer", module)
    importlib.invalidate_caches()
    first, stages = load_scorer(spec)
    assert first.name == "fusion"
    assert [stage.name for stage in stages] == [name]
    with pytest.raises(InvalidInput, match="llm, mine"):
        load_scorer("yours")
