"""A real small model from ``add`` to ``search``: its words find notes, and its invalid answers lose none."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from zettel import Event, LiteLLM, LiteLLMAnnotator, Memory, Note
from zettel.errors import FlushTimeout, JobFailed
from zettel.model import JobKind
from zettel.text.tokens import tokenize

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TIMEOUT = 90
"""Seconds for the model; notes without an annotation by then keep their jobs."""
BEFORE = [
    Event(content="The ferry leaves at noon.", id="b1"),
    Event(content="Basil grows on the sill.", id="b2"),
    Event(content="The lighthouse was painted red.", id="b3"),
]
CHAT = [
    Event(
        content="I moved to Oslo last week, the flat looks over the harbour.",
        id="c1",
        speaker="Ann",
        session="chat",
        occurred_at="2024-05-01T09:00Z",
    ),
    Event(
        content="My sister Ida keeps bees behind the abbey.",
        id="c2",
        speaker="Ben",
        session="chat",
        occurred_at="2024-05-01T09:02Z",
    ),
]


def noted(memory: Memory, id: str) -> Note:
    note = memory.get(id)
    assert isinstance(note, Note)
    return note


def words(text: str) -> set[str]:
    return set(tokenize(text))


def test_annotations_of_a_small_model_are_searchable(small_model: str, tmp_path: Path) -> None:
    with Memory(tmp_path / "real.db") as memory:
        memory.add_many(BEFORE, wait=True)
    model = LiteLLM("openai/smollm2", api_base=small_model, timeout=TIMEOUT, concurrency=1)
    annotator = LiteLLMAnnotator("lean", batch=1, text_tokens=400)
    with Memory(tmp_path / "real.db", llm=model, annotator=annotator) as memory:
        ids = memory.add_many(CHAT)
        with suppress(FlushTimeout, JobFailed):  # it may fail for one note; the waiting jobs are checked below
            memory.flush(timeout=TIMEOUT)
        notes = [noted(memory, id) for id in ids]
        assert [note.content for note in notes] == [event.content for event in CHAT]
        assert memory.stats()["llm_calls"] > 0
        assert memory.stats()["llm_tokens"] > 0

        written = [note for note in notes if "context" in note.authored]
        waiting = {job.note for job in memory.jobs() if job.kind is JobKind.ANNOTATE}
        assert written, [job.error for job in memory.jobs()]
        assert waiting == {note.id for note in notes} - {note.id for note in written}, (
            "a note is neither done nor waiting"
        )

        for note in written:
            (by_model,) = [r for r in memory.history(note.id) if r.cause.by == JobKind.ANNOTATE.value]
            assert (by_model.cause.model, by_model.cause.prompt) == ("openai/smollm2", "annotate-lean/1")
            assert note.id in {source.note for source in by_model.inputs}
            hits = memory.search(" ".join((note.context, *note.keywords)), k=2)  # the model may name the other one too
            assert note.id in {hit.note.id for hit in hits}
        new = {note.id: words(" ".join((note.context, *note.keywords))) - words(note.content) for note in written}
        assert any(new.values()), "the model has added no word of its own"
        for id, added in new.items():
            if added:
                assert id in {hit.note.id for hit in memory.search(" ".join(sorted(added)), k=3)}
        assert memory.check() == []

        reverted = memory.revert(written[0].id, 1)
        assert reverted.authored == ()
