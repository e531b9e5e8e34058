"""Searches over several scopes: one ranking, with statistics and links of each scope alone."""

from __future__ import annotations

import pytest

from zettel import Memory, Scope
from zettel.errors import InvalidInput

pytestmark = pytest.mark.over_http

ANN, BOB, TEAM = Scope(tenant="acme", user="ann"), Scope(tenant="acme", user="bob"), Scope(tenant="acme")
TEXTS = {
    ANN: ["I moor my boat, the Heron, at the north pier.", "I am allergic to walnuts."],
    BOB: ["My boat, the Gull, is at the south pier.", "I collect stamps."],
    TEAM: ["The harbour office opens at nine.", "The north pier is closed in May."],
}


def fill(memory: Memory) -> None:
    for scope, texts in TEXTS.items():
        memory.add_many([{"content": text} for text in texts], scope=scope)
        memory.flush(scope=scope)


def test_hits_of_several_scopes_are_one_ranking(memory: Memory) -> None:
    fill(memory)
    question = "Is the north pier closed?"
    alone = {scope: memory.search(question, scope=scope, log=False) for scope in TEXTS}
    hits = memory.search(question, scopes=[ANN, TEAM], log=False)
    assert hits[0].note.content == "The north pier is closed in May."
    assert hits[0].scope == TEAM
    assert {hit.scope for hit in hits} == {ANN, TEAM}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for scope in (ANN, TEAM):
        found = {hit.note.id: hit.score for hit in hits if hit.scope == scope}
        expected = {hit.note.id: hit.score for hit in alone[scope]}
        assert list(found) == list(expected)
        assert found == pytest.approx(expected, rel=1e-5), "another scope changes no score, but for rounding"
    assert len(memory.search(question, k=1, scopes=[ANN, TEAM])) == 1


def test_context_and_search_many_read_several_scopes(memory: Memory) -> None:
    fill(memory)
    text = memory.context("When does the harbour office open, and where is my boat?", scopes=[ANN, TEAM])
    assert "opens at nine" in text
    assert "Heron" in text
    assert "Gull" not in text
    first, second = memory.search_many(["Who collects stamps?", "What am I allergic to?"], scopes=[ANN, BOB])
    assert (first[0].scope, second[0].scope) == (BOB, ANN)


def test_feedback_belongs_to_the_scope_of_the_hit(memory: Memory) -> None:
    fill(memory)
    hit = memory.search("Who collects stamps?", scopes=[ANN, BOB])[0]
    assert hit.search_id is not None
    memory.feedback(hit.search_id, [hit.note.id], scope=hit.scope)
    assert [search.question for search in memory.searches(scope=BOB)] == ["Who collects stamps?"]


def test_faulty_scopes_are_refused(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="scopes has 0 scopes"):
        memory.search("boat", scopes=[])
    with pytest.raises(InvalidInput, match="51 scopes: a search reads 1 to 50"):
        memory.search("boat", scopes=[Scope(user=str(number)) for number in range(51)])
    with pytest.raises(InvalidInput, match="scopes must be a list of scopes, not int"):
        memory.context("boat", scopes=5)
    for place in ("acme", {"tenant": 5}):
        with pytest.raises(InvalidInput):
            memory.search("boat", scopes=[place])  # type: ignore[list-item]


def test_a_memory_opened_with_reads(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("reads") / "m.db"
    with Memory(path) as memory:
        fill(memory)
    with Memory(path, scope=ANN, reads=[TEAM]) as memory:
        assert {hit.scope for hit in memory.search("pier")} == {ANN, TEAM}
        assert {hit.scope for hit in memory.search("pier", scope=ANN)} == {None}
        assert "nine" in memory.context("When does the office open?")
        assert len(memory.list().notes) == 2
        memory.add("The Heron is sold.")
        assert memory.stats(scope=TEAM)["notes"] == 2


def test_faulty_reads_are_refused() -> None:
    with pytest.raises(InvalidInput, match="reads must be a list of scopes, not NoneType"):
        Memory(":memory:", reads=None)  # type: ignore[arg-type]
