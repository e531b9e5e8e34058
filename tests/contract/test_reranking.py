"""Reranked: what orders the best hits anew gets the same on every store, and decides their order and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.contract.support import LIFE, decide, said
from tests.contract.test_reflection import KILN, region
from zettel import Hit, LinkType, Memory, Scope
from zettel.ports.query import Question, Shortlist
from zettel.testing.reference_store import ReferenceStore

ASKED = "Where does Ann live, and what about the cello?"


def brief(content: str) -> float:
    return -len(content)


class Asked:
    """Orders by what ``worth`` makes of a note's content, and keeps what it was given."""

    name = "asked"

    def __init__(self, worth: Callable[[str], float] = brief, reads: int = 100, wants_vectors: bool = False) -> None:
        self.worth, self.reads, self.wants_vectors = worth, reads, wants_vectors
        self.calls: list[list[tuple[str, Shortlist]]] = []

    async def rerank(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[np.ndarray]:
        self.calls.append([(question.text, one) for question, one in zip(questions, shortlists, strict=True)])
        return [np.array([self.worth(note.content) for note in one.notes], np.float32) for one in shortlists]

    @property
    def shown(self) -> list[str]:
        """What the notes of the last list say, in the order in which they were given."""
        return [note.content for note in self.calls[-1][0][1].notes]


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.note.id for hit in hits]


def scores(hits: Sequence[Hit]) -> list[float]:
    return [hit.score for hit in hits]


@pytest.fixture
def lived(memory: Memory) -> Memory:
    """Each store with a life in it."""
    memory.add_many(LIFE, wait=True)
    return memory


def test_the_order_is_the_rerankers_and_the_scores_are_dealt_out_anew(lived: Memory) -> None:
    before, asked = lived.search(ASKED), Asked()
    after = lived.search(ASKED, scorer=asked)
    assert asked.shown == [hit.note.content for hit in before]
    assert [len(hit.note.content) for hit in after] == sorted(len(text) for text in asked.shown)
    assert scores(after) == sorted(scores(before), reverse=True)
    assert len(set(scores(after))) > 1


def test_it_reads_the_best_and_the_others_stay_behind_them(lived: Memory) -> None:
    before = lived.search(ASKED)
    after = lived.search(ASKED, scorer=Asked(reads=3))
    assert set(ids(after[:3])) == set(ids(before[:3]))
    assert ids(after[:3]) != ids(before[:3])
    assert (ids(after[3:]), scores(after)) == (ids(before[3:]), scores(before))
    (best,) = lived.search(ASKED, k=1, scorer=Asked())
    assert len(best.note.content) == min(len(hit.note.content) for hit in before)  # from beyond the first k


def test_equal_values_leave_the_order(lived: Memory) -> None:
    before, after = lived.search(ASKED), lived.search(ASKED, scorer=Asked(lambda content: 0.5))
    assert [(hit.note, hit.score) for hit in after] == [(hit.note, hit.score) for hit in before]


def test_a_least_score_means_the_same(lived: Memory) -> None:
    before = lived.search(ASKED)
    least = scores(before)[2]
    after = lived.search(ASKED, scorer=Asked(), min_score=least)
    assert set(ids(after)) == set(ids(before[:3]))
    assert min(scores(after)) == least


def test_several_questions_are_one_call_and_answered_as_alone(lived: Memory) -> None:
    questions, asked = [ASKED, "Who studies glaciers?", "Kestrel"], Asked()
    found = lived.search_many(questions, k=2, scorer=asked)
    assert [[text for text, _ in call] for call in asked.calls] == [questions]
    alone = [lived.search(question, k=2, scorer=Asked()) for question in questions]
    assert [ids(hits) for hits in found] == [ids(hits) for hits in alone]


def test_a_hit_says_who_ordered_it_and_why(lived: Memory) -> None:
    for hit in lived.search(ASKED, scorer=Asked(), explain=True):
        assert hit.why.scorer == "fusion+asked"
        assert hit.why.features["asked"] == -len(hit.note.content)
    assert lived.search(ASKED, scorer=Asked())[0].why.scorer == "fusion+asked"


def test_with_less_than_two_notes_there_is_nothing_to_order(memory: Memory) -> None:
    asked = Asked()
    assert memory.search("Where is the key?", scorer=asked) == []
    memory.add("The key hangs behind the door.", wait=True)
    (hit,) = memory.search("Where is the key?", scorer=asked)
    assert (hit.why.scorer, asked.calls) == ("fusion", [])
    memory.add("The lamp stands behind the door.", wait=True)
    assert len(memory.search("Where is the key?", k=50, scorer=asked)) == 2
    assert len(asked.calls) == 1


def test_every_store_gives_the_same_rows(memory: Memory) -> None:
    with Memory(ReferenceStore()) as oracle:
        shown = []
        for one in (memory, oracle):
            one.add_many(LIFE, wait=True)
            asked = Asked(wants_vectors=True)
            one.search(ASKED, k=3, scorer=asked)
            ((_, given),) = asked.calls[0]
            shown.append(given)
    here, there = shown
    assert [note.content for note in here.notes] == [note.content for note in there.notes]
    np.testing.assert_array_equal(here.vectors, there.vectors)
    np.testing.assert_allclose(here.score, there.score, atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(here.vectors, axis=1), 1, atol=1e-3)
    asked = Asked()
    memory.search(ASKED, scorer=asked)
    assert asked.calls[0][0][1].vectors.shape == (len(asked.shown), 0)  # nobody wanted them


def test_vectors_are_those_of_the_scope_and_the_set(memory: Memory) -> None:
    added = memory.add_many(LIFE, wait=True)
    (other,) = memory.add_many(LIFE[:1], scope=Scope(user="ben"))
    memory.flush(scope=Scope(user="ben"))
    store: Any = memory._bridge.inner._backend.memory.engine.store
    (space,) = memory._bridge.call(store.spaces)

    def vectors(ids: Sequence[str], scope: Scope, number: int = space.id) -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = memory._bridge.call(partial(store.vectors, scope, ids, number))
        return found

    found = vectors([*added[::-1], "n_nothing", other], memory.scope)
    assert set(found) == set(added)
    assert {(row.shape, row.dtype) for row in found.values()} == {((space.dim,), np.dtype(np.float32))}
    np.testing.assert_array_equal(vectors([other], Scope(user="ben"))[other], found[added[0]])
    assert vectors(added, Scope(user="ben")) == {}
    assert vectors(added, memory.scope, space.id + 1) == {}
    assert vectors([], memory.scope) == {}


def test_no_other_scope_is_read(lived: Memory) -> None:
    ben, asked = Scope(user="ben"), Asked(wants_vectors=True)
    lived.add_many([{"content": "Ann lives in a lighthouse."}, {"content": "The cello is in the cellar."}], scope=ben)
    lived.flush(scope=ben)
    lived.search(ASKED, scorer=asked)
    assert sorted(asked.shown) == sorted(event["content"] for event in LIFE)
    assert len(lived.search(ASKED, scorer=asked, scope=ben)) == 2
    assert len(asked.shown) == 2


@pytest.mark.parametrize(
    "clause",
    [{"speaker": "Ann"}, {"session": "a"},
     {"since": "2024-02-01"}, {"as_of": "2024-03-01"}, {"known_at": "2001-01-01"}],
    ids=str,
)
def test_what_does_not_pass_is_not_shown(lived: Memory, clause: dict[str, Any]) -> None:
    asked = Asked()
    asked.calls.append([])
    hits = lived.search(ASKED, scorer=asked, **clause)
    assert set(ids(hits)) == set(ids(lived.search(ASKED, **clause)))
    assert len(hits) < len(LIFE)
    for one in asked.calls[1:]:
        assert len(one[0][1].notes) == len(hits)


def test_what_was_put_away_is_read_where_it_is_asked_for(lived: Memory) -> None:
    asked = Asked(wants_vectors=True)
    away = next(hit.note for hit in lived.search(ASKED) if "Oslo" in hit.note.content)
    lived.archive(away.id)
    lived.search(ASKED, scorer=asked)
    assert away.content not in asked.shown
    hits = lived.search(ASKED, scorer=asked, archived=True)
    assert away.content in asked.shown
    assert away.id in ids(hits)


def test_what_replaced_a_note_stands_above_it(memory: Memory) -> None:
    first = memory.add("Ann lives in Bergen, above the bakery in the long street.", occurred_at="2024-01-01")
    second = memory.add("Ann has moved to a flat in Voss.", occurred_at="2024-03-01")
    third = memory.add("Ann left for Oslo.", occurred_at="2024-05-01")
    beside = memory.add("The bakery in Bergen sells rye bread on Mondays, and Ann likes it.", occurred_at="2024-05-02")
    memory.flush()
    decide(memory, second, first, LinkType.SUPERSEDES)
    decide(memory, third, second, LinkType.SUPERSEDES)
    hits = memory.search("Ann in Bergen", scorer=Asked(len))
    assert ids(hits) == [beside, third, second, first]  # by length: beside, first, second, third
    assert ids(memory.search("Ann in Bergen", scorer=Asked(len), current_only=True)) == [beside, third]
    assert ids(memory.search("Ann in Bergen", scorer=Asked(len), as_of="2024-02-01")) == [first]


def test_an_insight_stays_after_what_it_was_made_from(memory: Memory) -> None:
    region(memory, KILN, speaker="Ann")
    memory.evolve()
    hits = memory.search("What about the kiln?", scorer=Asked(len), k=20)
    assert [hit.note.kind.value for hit in hits].count("insight") == 1
    assert hits[-1].note.kind.value == "insight"  # and it is the longest
    assert scores(hits) == sorted(scores(hits), reverse=True)
    (alone,) = said(memory, "What about the kiln?", scorer=Asked(), kinds=["insight"])
    assert alone == hits[-1].note.content
