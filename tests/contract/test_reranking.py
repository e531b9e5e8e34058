"""Reranking: a reranker reads the same candidates on every store, and decides only their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.contract.support import LIFE, decide, search_texts
from tests.contract.test_reflection import KILN, region
from zettel import Hit, LinkType, Memory, Scope
from zettel.ports.query import Question, Shortlist
from zettel.testing.reference_store import ReferenceStore

QUESTION = "Where does Ann live, and what about the cello?"


def brief(content: str) -> float:
    return -len(content)


class RecordingReranker:
    """A reranker that orders by ``worth`` of the content and records its inputs."""

    name = "asked"

    def __init__(self, worth: Callable[[str], float] = brief, reads: int = 100, wants_vectors: bool = False) -> None:
        self.worth, self.reads, self.wants_vectors = worth, reads, wants_vectors
        self.calls: list[list[tuple[str, Shortlist]]] = []

    async def rerank(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[np.ndarray]:
        self.calls.append([(question.text, item) for question, item in zip(questions, shortlists, strict=True)])
        return [np.array([self.worth(note.content) for note in item.notes], np.float32) for item in shortlists]

    @property
    def shown(self) -> list[str]:
        """The contents of the last candidate list, in the given order."""
        return [note.content for note in self.calls[-1][0][1].notes]


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.note.id for hit in hits]


def scores(hits: Sequence[Hit]) -> list[float]:
    return [hit.score for hit in hits]


@pytest.fixture
def filled(memory: Memory) -> Memory:
    """A memory on each store with sample events."""
    memory.add_many(LIFE, wait=True)
    return memory


def test_the_reranker_decides_the_order_and_scores_follow_it(filled: Memory) -> None:
    before, scorer = filled.search(QUESTION), RecordingReranker()
    after = filled.search(QUESTION, scorer=scorer)
    assert scorer.shown == [hit.note.content for hit in before]
    assert [len(hit.note.content) for hit in after] == sorted(len(text) for text in scorer.shown)
    assert scores(after) == sorted(scores(before), reverse=True)
    assert len(set(scores(after))) > 1


def test_only_the_best_hits_are_reranked_and_stay_first(filled: Memory) -> None:
    before = filled.search(QUESTION)
    after = filled.search(QUESTION, scorer=RecordingReranker(reads=3))
    assert set(ids(after[:3])) == set(ids(before[:3]))
    assert ids(after[:3]) != ids(before[:3])
    assert (ids(after[3:]), scores(after)) == (ids(before[3:]), scores(before))
    (best,) = filled.search(QUESTION, k=1, scorer=RecordingReranker())
    assert len(best.note.content) == min(len(hit.note.content) for hit in before)  # from beyond the first k


def test_equal_values_keep_the_order(filled: Memory) -> None:
    before, after = filled.search(QUESTION), filled.search(QUESTION, scorer=RecordingReranker(lambda content: 0.5))
    assert [(hit.note, hit.score) for hit in after] == [(hit.note, hit.score) for hit in before]


def test_min_score_has_the_same_meaning(filled: Memory) -> None:
    before = filled.search(QUESTION)
    least = scores(before)[2]
    after = filled.search(QUESTION, scorer=RecordingReranker(), min_score=least)
    assert set(ids(after)) == set(ids(before[:3]))
    assert min(scores(after)) == least


def test_several_questions_share_one_call_with_equal_results(filled: Memory) -> None:
    questions, scorer = [QUESTION, "Who studies glaciers?", "Kestrel"], RecordingReranker()
    results = filled.search_many(questions, k=2, scorer=scorer)
    assert [[text for text, _ in call] for call in scorer.calls] == [questions]
    alone = [filled.search(question, k=2, scorer=RecordingReranker()) for question in questions]
    assert [ids(hits) for hits in results] == [ids(hits) for hits in alone]


def test_hits_report_the_reranker(filled: Memory) -> None:
    for hit in filled.search(QUESTION, scorer=RecordingReranker(), explain=True):
        assert hit.why.scorer == "fusion+asked"
        assert hit.why.features["asked"] == -len(hit.note.content)
    assert filled.search(QUESTION, scorer=RecordingReranker())[0].why.scorer == "fusion+asked"


def test_a_single_hit_is_not_reranked(memory: Memory) -> None:
    scorer = RecordingReranker()
    assert memory.search("Where is the key?", scorer=scorer) == []
    memory.add("The key hangs behind the door.", wait=True)
    (hit,) = memory.search("Where is the key?", scorer=scorer)
    assert (hit.why.scorer, scorer.calls) == ("fusion", [])
    memory.add("The lamp stands behind the door.", wait=True)
    assert len(memory.search("Where is the key?", k=50, scorer=scorer)) == 2
    assert len(scorer.calls) == 1


def test_every_store_returns_the_same_candidates(memory: Memory) -> None:
    with Memory(ReferenceStore()) as oracle:
        shown = []
        for each in (memory, oracle):
            each.add_many(LIFE, wait=True)
            scorer = RecordingReranker(wants_vectors=True)
            each.search(QUESTION, k=3, scorer=scorer)
            ((_, candidates),) = scorer.calls[0]
            shown.append(candidates)
    actual, expected = shown
    assert [note.content for note in actual.notes] == [note.content for note in expected.notes]
    np.testing.assert_array_equal(actual.vectors, expected.vectors)
    np.testing.assert_allclose(actual.score, expected.score, atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(actual.vectors, axis=1), 1, atol=1e-3)
    scorer = RecordingReranker()
    memory.search(QUESTION, scorer=scorer)
    assert scorer.calls[0][0][1].vectors.shape == (len(scorer.shown), 0)  # not requested


def test_vectors_belong_to_the_scope_and_the_vector_set(memory: Memory) -> None:
    added = memory.add_many(LIFE, wait=True)
    (other,) = memory.add_many(LIFE[:1], scope=Scope(user="ben"))
    memory.flush(scope=Scope(user="ben"))
    store: Any = memory._bridge.inner._backend.memory.engine.store
    (space,) = memory._bridge.call(store.spaces)

    def vectors(ids: Sequence[str], scope: Scope, number: int = space.id) -> dict[str, np.ndarray]:
        rows: dict[str, np.ndarray] = memory._bridge.call(partial(store.vectors, scope, ids, number))
        return rows

    rows = vectors([*added[::-1], "n_nothing", other], memory.scope)
    assert set(rows) == set(added)
    assert {(row.shape, row.dtype) for row in rows.values()} == {((space.dim,), np.dtype(np.float32))}
    np.testing.assert_array_equal(vectors([other], Scope(user="ben"))[other], rows[added[0]])
    assert vectors(added, Scope(user="ben")) == {}
    assert vectors(added, memory.scope, space.id + 1) == {}
    assert vectors([], memory.scope) == {}


def test_no_other_scope_is_read(filled: Memory) -> None:
    ben, scorer = Scope(user="ben"), RecordingReranker(wants_vectors=True)
    filled.add_many([{"content": "Ann lives in a lighthouse."}, {"content": "The cello is in the cellar."}], scope=ben)
    filled.flush(scope=ben)
    filled.search(QUESTION, scorer=scorer)
    assert sorted(scorer.shown) == sorted(event["content"] for event in LIFE)
    assert len(filled.search(QUESTION, scorer=scorer, scope=ben)) == 2
    assert len(scorer.shown) == 2


@pytest.mark.parametrize(
    "clause",
    [{"speaker": "Ann"}, {"session": "a"},
     {"since": "2024-02-01"}, {"as_of": "2024-03-01"}, {"known_at": "2001-01-01"}],
    ids=str,
)
def test_filtered_notes_are_not_candidates(filled: Memory, clause: dict[str, Any]) -> None:
    scorer = RecordingReranker()
    scorer.calls.append([])
    hits = filled.search(QUESTION, scorer=scorer, **clause)
    assert set(ids(hits)) == set(ids(filled.search(QUESTION, **clause)))
    assert len(hits) < len(LIFE)
    for call in scorer.calls[1:]:
        assert len(call[0][1].notes) == len(hits)


def test_archived_notes_are_candidates_on_request(filled: Memory) -> None:
    scorer = RecordingReranker(wants_vectors=True)
    archived = next(hit.note for hit in filled.search(QUESTION) if "Oslo" in hit.note.content)
    filled.archive(archived.id)
    filled.search(QUESTION, scorer=scorer)
    assert archived.content not in scorer.shown
    hits = filled.search(QUESTION, scorer=scorer, archived=True)
    assert archived.content in scorer.shown
    assert archived.id in ids(hits)


def test_a_replacement_ranks_above_its_note(memory: Memory) -> None:
    first = memory.add("Ann lives in Bergen, above the bakery in the long street.", occurred_at="2024-01-01")
    second = memory.add("Ann has moved to a flat in Voss.", occurred_at="2024-03-01")
    third = memory.add("Ann left for Oslo.", occurred_at="2024-05-01")
    beside = memory.add("The bakery in Bergen sells rye bread on Mondays, and Ann likes it.", occurred_at="2024-05-02")
    memory.flush()
    decide(memory, second, first, LinkType.SUPERSEDES)
    decide(memory, third, second, LinkType.SUPERSEDES)
    hits = memory.search("Ann in Bergen", scorer=RecordingReranker(len))
    assert ids(hits) == [beside, third, second, first]  # by length: beside, first, second, third
    assert ids(memory.search("Ann in Bergen", scorer=RecordingReranker(len), current_only=True)) == [beside, third]
    assert ids(memory.search("Ann in Bergen", scorer=RecordingReranker(len), as_of="2024-02-01")) == [first]


def test_rerankers_order_the_notes_of_an_abstract_question(memory: Memory) -> None:
    region(memory, KILN, speaker="Ann")
    memory.evolve()
    reranker = RecordingReranker(len)
    hits = memory.search("Give me an overview of the kiln.", scorer=reranker, k=20)
    assert [hit.note.kind.value for hit in hits] == ["insight", *["episodic"] * len(KILN)]
    assert scores(hits) == sorted(scores(hits), reverse=True)
    concrete = memory.search("Is the kiln hot?", scorer=RecordingReranker(len), k=20)
    assert "insight" not in {hit.note.kind.value for hit in concrete}
    (alone,) = search_texts(memory, "Is the kiln hot?", scorer=RecordingReranker(), kinds=["insight"])
    assert alone == hits[0].note.content
