"""Explanations: every hit reports why it was found, and scores are calibrated."""

from __future__ import annotations

from tests.contract.support import LIFE
from zettel import Memory


def test_every_hit_is_explained(memory: Memory) -> None:
    memory.add_many(LIFE, wait=True)
    hits = memory.search("What does Kestrel do?", explain=True)
    assert hits
    for hit in hits:
        assert 0 <= hit.score <= 1
        assert hit.why.scorer == "fusion"
        assert hit.why.features
        assert abs(sum(hit.why.features.values()) - hit.why.local_score) < 1e-3
    assert "Kestrel" in hits[0].note.content
    assert "text" in hits[0].why.seeds
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_path_leads_from_the_question_to_the_hit(memory: Memory) -> None:
    memory.add("The Glass Orchard is a film by Mira Solveng.", title="The Glass Orchard")
    memory.add("She was born in Tarn Hollow, the youngest of nine.", title="Mira Solveng")
    for n in range(30):
        memory.add(f"Plain filler number {n} about births, towns and other films.", title=f"Filler {n}")
    memory.flush()
    hits = memory.search("Where was the director of The Glass Orchard born?", k=3, explain=True)
    answer = next(hit for hit in hits if hit.note.title == "Mira Solveng")
    assert any("MENTIONS" in step.over for step in answer.why.path)
    assert any("Glass Orchard" in step.name for step in answer.why.path)


def test_dates_in_a_question_match(memory: Memory) -> None:
    memory.add_many(LIFE, wait=True)
    (best, *_) = memory.search("What did Ann say in May 2024?", explain=True)
    assert best.note.session == "b"
    assert best.why.time


def test_an_unanswerable_question_may_yield_nothing(memory: Memory) -> None:
    memory.add_many(LIFE, wait=True)
    answerable = memory.search("Where did Ann move to in May?")[0].score
    unanswerable = memory.search("What is the boiling point of tungsten hexafluoride?")
    assert answerable > max((hit.score for hit in unanswerable), default=0.0)
    between = (answerable + max((hit.score for hit in unanswerable), default=0.0)) / 2
    assert memory.search("What is the boiling point of tungsten hexafluoride?", min_score=between) == []
    assert memory.search("Where did Ann move to in May?", min_score=between)
