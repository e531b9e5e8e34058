"""Honest failure: a failed job keeps its error and can be retried. Errors are never swallowed."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.contract.support import LIFE, search_texts
from zettel import AsyncMemory, Memory, Note, Scope, ZettelError
from zettel.errors import (
    EmbedderError,
    FlushTimeout,
    InvalidEvent,
    InvalidInput,
    InvalidQuestion,
    JobFailed,
    MemoryClosed,
    NotFound,
)
from zettel.jobs.work import Work
from zettel.model import Job, JobState
from zettel.ports import EmbedderInfo


class RemoteWords:
    """A remote embedder that fails until it is repaired. Its vectors are hashes of words."""

    remote = True
    info = EmbedderInfo("words", 64, "words/1")
    error: Exception | None = EmbedderError("the embedder says no")

    async def embed(self, texts: Sequence[str]) -> Any:
        if self.error is not None:
            raise self.error
        rows = np.zeros((len(texts), 64), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.casefold().split():
                row[sum(word.encode()) % 64] += 1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def test_a_remote_embedder_that_fails_loses_nothing(url: Any) -> None:
    embedder = RemoteWords()
    with Memory(url, embedder=embedder) as memory:
        memory.add("The lighthouse keeper collects stamps.")
        with pytest.raises(JobFailed, match="the embedder says no"):
            memory.flush(timeout=30)
        (job,) = memory.jobs()
        assert job.state is JobState.FAILED
        assert job.error == "EmbedderError: the embedder says no"
        embedder.error = None
        assert "stamps" in search_texts(memory, "lighthouse")[0]  # by text: the vector is still missing
        assert memory.retry_jobs() == 1
        memory.flush(timeout=30)
        assert memory.jobs() == []
        assert memory.check() == []


def test_adding_waits_for_its_own_scope(url: Any) -> None:
    class Picky(RemoteWords):
        error = None

        async def embed(self, texts: Sequence[str]) -> Any:
            if any("Ben" in text for text in texts):
                raise EmbedderError("nothing of Ben's")
            return await super().embed(texts)

    with Memory(url, embedder=Picky(), scope=Scope(user="ann")) as memory:
        memory.add("Ben paints the fence.", scope=Scope(user="ben"))
        memory.add("Ann paints the gate.", wait=True)
        assert memory.jobs(scope=Scope(user="ann")) == []
        with pytest.raises(JobFailed, match="nothing of Ben's"):
            memory.flush(timeout=30)


def test_a_flush_timeout_raises(url: Any) -> None:
    class Slow(RemoteWords):
        error = None

        async def embed(self, texts: Sequence[str]) -> Any:
            import asyncio

            await asyncio.sleep(0.5)
            return await super().embed(texts)

    with Memory(url, embedder=Slow()) as memory:
        id = memory.add("Something slow.")
        with pytest.raises(FlushTimeout, match="pending"):
            memory.flush(timeout=0)
        memory.flush()
        assert memory.get(id).content == "Something slow."


def test_a_job_that_outlasts_its_lease_runs_once(url: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise other workers would take over the job and start again, one after another."""
    lanes, batch_sizes = Work.lanes, []
    monkeypatch.setattr(Work, "lanes", lambda work: [lane._replace(lease=1.5) for lane in lanes(work)])

    class Slow(RemoteWords):
        error = None

        async def embed(self, texts: Sequence[str]) -> Any:
            batch_sizes.append(len(texts))
            await asyncio.sleep(5)
            return await super().embed(texts)

    with Memory(url, embedder=Slow()) as first, Memory(url, embedder=Slow()) as second:
        first.add_many([{"content": f"Buoy number {n} is painted green."} for n in range(9)])
        first.flush(timeout=60)
        second.flush(timeout=60)
        assert batch_sizes == [9]
        assert first.stats()["vectors"] == 9


def test_a_clock_set_back_does_not_delay_jobs(url: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(days=3)

    with Memory(url) as memory:
        with monkeypatch.context() as patch:
            patch.setattr("zettel.core.commit.datetime", Ahead)
            first = memory.add("The ferry leaves at eight.")
        (late,) = memory.jobs()
        second = memory.add("The ferry leaves at nine.")
        memory.flush()
        assert memory.jobs() == [late]
        assert [link.target for link in memory.links(second)] == [first]
        assert memory.history(second)[-1].recorded_at > late.run_at - timedelta(minutes=1)  # the clock never goes back
        memory.delete(second)
        memory.flush()
        assert memory.jobs() == [late]


def nested(depth: int) -> Any:
    value: Any = "core"
    for _ in range(depth):
        value = [value]
    return value


def test_a_payload_of_a_hundred_levels_is_returned_unchanged(memory: Memory) -> None:
    id = memory.add(payload=nested(100), metadata={"a": nested(99)})
    note = memory.get(id)
    assert note.metadata == {"a": nested(99)}
    assert memory.get(note.event_ids[0]).payload == nested(100)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"content": "   \n\t"}, "the event is empty"),
        ({"content": ""}, "the event is empty"),
        ({"content": "x" * 1_000_001}, "1,000,001 bytes"),
        ({"payload": "x" * 1_000_000}, "1,000,002 bytes"),
        ({"content": "a\x00b"}, "content: contains a NUL"),
        ({"content": "a\ud800b"}, "content: contains a lone surrogate at character 1"),
        ({"content": "x", "speaker": "\x00"}, "speaker: contains a NUL"),
        ({"content": "x", "occurred_at": "2024-02-31"}, "occurred_at"),
        ({"content": "x", "occurred_at": "soon"}, "occurred_at"),
        ({"content": "x", "metadata": {"a": object()}}, "metadata"),
        ({"content": "x", "payload": {"a": {1, 2}}}, "payload"),
        ({"content": "x", "occurred_at": "2024"}, "is a number, not a time"),
        ({"content": "x", "payload": [float("nan")]}, "payload: contains nan"),
        ({"content": "x", "metadata": {"a": float("inf")}}, "metadata: contains inf"),
        ({"content": "x", "payload": 10**5000}, "payload: contains a number of more than"),
        ({"content": "x", "payload": nested(101)}, "payload: is nested more than 100 levels"),
        ({"content": "x", "payload": nested(5000)}, "payload: is nested more than"),
        ({"content": "x", "metadata": {"a": nested(100)}}, "metadata: is nested more than 100 levels"),
        ({"content": "x", "metadata": {"\ud800": 1}}, "metadata: contains a lone surrogate"),
        ({"content": "x", "metadata": {"a": "b\x00"}}, "metadata: contains a NUL"),
    ],
)
@pytest.mark.any_store
def test_an_invalid_event_is_refused_in_one_line(memory: Memory, fields: dict[str, Any], complaint: str) -> None:
    memory.add("Something good.", id="good", payload=nested(100), metadata={"a": nested(99)})
    with pytest.raises(InvalidEvent, match=complaint) as refused:
        memory.add(**fields)
    assert "\n" not in str(refused.value)
    with pytest.raises(InvalidEvent):
        memory.add_many([{"content": "fine"}, fields])
    assert [note.content for note in memory.list().notes] == ["Something good."]


@pytest.mark.any_store
def test_an_invalid_event_of_several_is_named_by_its_place(memory: Memory) -> None:
    for wrong, complaint in (
        ({"content": "b", "occurred_at": "soon"}, r"events\[2\] cannot be stored: occurred_at: 'soon'"),
        ({"content": " "}, r"events\[2\] is empty"),
        (None, r"events\[2\] must be an Event or a dict of its fields, not NoneType"),
    ):
        with pytest.raises(InvalidEvent, match=complaint):
            memory.add_many([{"content": "a"}, {"content": "c"}, wrong])  # type: ignore[list-item]
    assert memory.list().notes == ()


@pytest.mark.any_store
def test_values_of_wrong_types_are_refused(memory: Memory) -> None:
    with pytest.raises(InvalidEvent, match="the event must be an Event or a dict of its fields, not str"):
        memory.add_many(["abc"])  # type: ignore[list-item]
    with pytest.raises(InvalidInput, match="events must be a list of events, not str"):
        memory.add_many("abc")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="scope='ann' is not a Scope"):
        memory.search("x", scope="ann")  # type: ignore[arg-type]


@pytest.mark.any_store
def test_an_invalid_question_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidQuestion, match="empty"):
        memory.search("   ")
    with pytest.raises(InvalidInput, match="k=0"):
        memory.search("x", k=0)
    with pytest.raises(InvalidInput, match="'factual'"):
        memory.search("x", kinds=["factual"])
    with pytest.raises(InvalidInput, match="max_tokens"):
        memory.context("x", max_tokens=0)


    for wrong, complaint in (
        ({"k": "5"}, "k='5'"),
        ({"k": 2.5}, "k=2.5"),
        ({"tags": ["\ud800"]}, "tags: contains a lone surrogate"),
        ({"session": "a\x00"}, "session: contains a NUL"),
        ({"since": "2024"}, "since='2024'"),
    ):
        with pytest.raises(InvalidInput, match=complaint):
            memory.search("x", **wrong)
    for wrong in ({"cursor": "²"}, {"cursor": "9" * 30}, {"cursor": "9" * 5000}, {"limit": 0}):
        with pytest.raises(InvalidInput):
            memory.list(**wrong)
    with pytest.raises(InvalidInput, match="session: contains a lone surrogate"):
        memory.delete(session="\ud800")
    id = memory.add("Kept.")
    for several in ({"id": [id]}, {"session": ["a", "b"]}, {"source": 5}):
        with pytest.raises(InvalidInput, match="an id, a source or a session must be a str"):
            memory.delete(**several)
    assert memory.get(id).content == "Kept."


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"content": "a\x00b"}, "content: contains a NUL"),
        ({"title": "\ud800"}, "title: contains a lone surrogate"),
        ({"keywords": ["\ud800"]}, "keywords: contains a lone surrogate"),
        ({"metadata": {"a": float("nan")}}, "metadata: contains nan"),
        ({"content": "x" * 1_000_001}, "1,000,001 bytes"),
        ({"content": "  "}, "content is empty"),
        ({"valid_from": "2024"}, "is a number"),
        ({"occurred_at": "2024-01-01"}, "cannot be set"),
    ],
)
@pytest.mark.any_store
def test_an_invalid_change_is_refused(memory: Memory, fields: dict[str, Any], complaint: str) -> None:
    id = memory.add("Something good.")
    with pytest.raises(InvalidInput, match=complaint):
        memory.update(id, **fields)
    assert memory.get(id).version == 1


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (lambda memory: memory.search("x", min_score="0.5"), "min_score='0.5' must be a number"),
        (lambda memory: memory.search("x", min_score=2), "min_score=2 must be a number from 0 to 1"),
        (lambda memory: memory.search("x", filter=["team"]), r"filter=\['team'\]"),
        (lambda memory: memory.add("x", metadata=["team"]), "metadata"),
        (lambda memory: memory.get(None), "None is not in"),
        (lambda memory: memory.context(question="x", max_tokens=None), "max_tokens=None must be a whole number"),
        (lambda memory: memory.answer_context("x", rounds=0), "rounds=0 must be 1 or more"),
        (lambda memory: memory.update("n_1"), "name what to set"),
        (lambda memory: memory.cancel_job("j_1"), "'j_1' is not in the queue: `zettel jobs`"),
        (lambda memory: memory.get(["n_1"]), r"\['n_1'\] is not in .*: an id must be a str .* not list"),
        (lambda memory: memory.delete(["n_1"]), "must be a str, not list"),
        (lambda memory: memory.search(5), "a question must be a str, not int"),
        (lambda memory: memory.search(["x"]), "a question must be a str, not list"),
        (lambda memory: memory.events(None), "session must be a str, not NoneType"),
        (lambda memory: memory.graph(hops=9), "hops must be from 1 to 5, got 9"),
        (lambda memory: memory.graph("n_1", cursor="0"), "cursor= pages through all notes"),
        (lambda memory: memory.link("n_1", 2), "2 is not in .*: an id must be a str"),
        (lambda memory: memory.graph({"n_1"}), "an id must be a str"),
        (lambda memory: memory.feedback({"s_1"}, []), "an id must be a str"),
        (lambda memory: memory.feedback("s_1", None), "pass either used, the ids of the useful notes, or answer"),
        (lambda memory: memory.feedback("s_1", [["n_1"]]), "an id must be a str"),
        (lambda memory: memory.history("n_\ud800"), r"'n_\\ud800' is not in"),
        (lambda memory: memory.revert("n_1", "1"), "version='1' is not a whole number"),
        (lambda memory: memory.revert("n_1", True), "version=True is not a whole number"),
        (lambda memory: memory.search("x", k=True), "k=True is not a whole number"),
        (lambda memory: memory.search("x", kinds=5), "kinds must be a list of names, not int"),
        (lambda memory: memory.list(tags=[None]), "tags must be a str, not NoneType"),
        (lambda memory: memory.search_many(None), "questions must be a list of questions"),
        (lambda memory: memory.add_many(None), "events must be a list of events"),
        (lambda memory: memory.add_many_report(7), "events must be a list of events"),
        (lambda memory: memory.flush("5"), "timeout='5' must be a number of seconds"),
        (lambda memory: memory.evolve(float("nan")), "timeout=nan must be a number of seconds"),
        (lambda memory: memory.export(5), "to must be a path or an open binary file, not int"),
        (lambda memory: memory.export("x", ["jsonl"]), r"unknown export format \['jsonl'\]"),
        (lambda memory: memory.export("x", "jsonl", include=5), "include must be a list of names"),
        (lambda memory: memory.import_transcript([{"content": "private"}]), "path must be a path, not list: name"),
        (lambda memory: memory.import_transcript(None), "path must be a path, not NoneType: name a file"),
        (lambda memory: memory.import_transcript("{" * 5000), "cannot be read: File name too long"),
        (lambda memory: memory.import_transcript(__file__, ["text"]), "unknown transcript format of type list"),
        (lambda memory: memory.import_transcript(__file__, tz=2), "tz must be a str"),
        (lambda memory: memory.import_transcript(__file__, columns=["a"]), "columns must be a dict .* not list"),
        (lambda memory: memory.import_transcript(__file__, map_user="Bob"), "map_user must be a dict .* not str"),
        (lambda memory: memory.import_transcript(__file__, speakers=[1]), "speakers must be a str"),
        (lambda memory: memory.import_transcript(__file__, source=1), "source must be a str, not int"),
    ],
)
@pytest.mark.any_store
def test_an_invalid_argument_is_one_line(memory: Memory, wrong: Callable[[Memory], object], complaint: str) -> None:
    with pytest.raises(ZettelError, match=complaint) as caught:
        wrong(memory)
    assert "\n" not in str(caught.value)


def test_all_texts_of_a_note_have_a_maximum_length(memory: Memory) -> None:
    source, target = memory.add_many(LIFE[:2])
    text = "x" * 1_000_001
    for fields in ({"content": text}, {"title": text}, {"caption": text}, {"context": text}, {"tags": ["red", text]}):
        with pytest.raises(InvalidInput, match=f"the {next(iter(fields))} has 1,000,001 bytes, more than 1,000,000"):
            memory.update(source, **fields)
    for call in (lambda: memory.link(source, target, reason=text), lambda: memory.quarantine(source, text)):
        with pytest.raises(InvalidInput, match="the reason has 1,000,001 bytes, more than 1,000,000: make it shorter"):
            call()
    for name in ("external_id", "title", "speaker"):
        with pytest.raises(InvalidInput, match=f"the {name} has 1,000,001 bytes"):
            memory.add_many([{"content": "Something.", name: text}])
    assert [memory.get(id).version for id in (source, target)] == [1, 1]


@pytest.mark.parametrize("look", ["links", "neighbors", "terms", "graph"])
def test_an_event_id_is_not_a_note_id(memory: Memory, look: str) -> None:
    note = memory.get(memory.add("Something."))
    assert isinstance(note, Note)
    with pytest.raises(NotFound, match=r"is not in the notes of .*: the id of a note begins with n_"):
        getattr(memory, look)(note.event_ids[0])


@pytest.mark.parametrize("wrong", ["get", "search_many", "flush", "update"])
@pytest.mark.any_store
def test_errors_shorten_long_values(memory: Memory, wrong: str) -> None:
    text = "x" * 1_000_000
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: memory.get(text),
        "search_many": lambda: memory.search_many(["q"], since=text),
        "flush": lambda: memory.flush(text),  # type: ignore[arg-type]
        "update": lambda: memory.update(text, title="Title"),
    }
    with pytest.raises(ZettelError, match="xxx … xxx") as caught:
        calls[wrong]()
    assert len(str(caught.value)) < 5000
    assert str(caught.value).endswith(("to see valid ids", "2024-05-01T09:00Z", "no limit"))


def test_jobs_go_on_when_a_note_of_their_batch_is_deleted(memory: Memory) -> None:
    """The batch is dropped because it was planned with the note; the other jobs are soon done again."""

    async def delete_while_they_are_linked(inner: AsyncMemory) -> None:
        assert inner._backend.memory.engine is not None
        runner: Any = inner._backend.memory.engine.loop
        do, deleted = runner._work.do, []

        async def interrupted(jobs: Sequence[Job]) -> Any:
            if not deleted and len(jobs) > 1:
                deleted.append(jobs[0].note)
                await inner.delete(jobs[0].note)
            return await do(jobs)

        runner._work.do = interrupted
        await inner.add_many([{"content": f"Kestrel the dog howls, {n} times."} for n in range(9)])
        await inner.flush(timeout=20)
        assert deleted

    memory._bridge.call(partial(delete_while_they_are_linked, memory._bridge.inner))
    assert memory.jobs() == []
    assert len(memory.list().notes) == 8
    assert memory.check() == []


def test_a_memory_of_another_event_loop_raises(url: Any) -> None:
    memory = AsyncMemory(url)
    asyncio.run(memory.add("Said in one loop."))
    with pytest.raises(MemoryClosed, match="another event loop"):
        asyncio.run(memory.search("one loop"))
    asyncio.run(memory.close())
    with Memory(url) as reopened:
        assert search_texts(reopened, "one loop") == ["Said in one loop."]


@pytest.mark.parametrize(
    "question", ['a OR (b"', "NEAR/3 * ^", "'; DROP TABLE notes; --", "zzgrblfx", "?!", "🦉", "\\", "a" * 20_000]
)
def test_any_valid_question_is_answered(memory: Memory, question: str) -> None:
    memory.add_many([{"content": "The owl or the barn."}, {"content": "A table of notes."}], wait=True)
    assert len(memory.search(question)) <= 2


def test_a_closed_memory_raises(memory: Memory) -> None:
    memory.close()
    with pytest.raises(MemoryClosed, match="closed"):
        memory.add("too late")
    memory.close()  # a second close does nothing


def test_all_public_errors_are_zettel_errors() -> None:
    from zettel import errors

    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert all(issubclass(cls, ZettelError) for cls in classes)
    for cls in classes:
        assert cls.__doc__
        assert cls.__name__ in (errors.__doc__ or "")


def test_closing_releases_unfinished_jobs(url: Any) -> None:
    class Stuck(RemoteWords):
        error = None

        async def embed(self, texts: Sequence[str]) -> Any:
            import asyncio

            await asyncio.sleep(60)

    with Memory(url, embedder=Stuck()) as memory:
        memory.add("Something slow.")
        while memory.jobs()[0].state is not JobState.RUNNING:
            pass
    working = RemoteWords()
    working.error = None
    start = time.monotonic()
    with Memory(url, embedder=working) as memory:
        memory.flush(timeout=25)
        assert memory.jobs() == []
    assert time.monotonic() - start < 20  # does not wait for the 30 s lease of the abandoned job


def test_an_exit_of_the_program_is_not_logged(url: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Exiting(RemoteWords):
        async def embed(self, texts: Sequence[str]) -> Any:
            raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    with Memory(url, embedder=Exiting()) as memory:
        memory.add("The Heron is red.")
        with pytest.raises(JobFailed):
            memory.flush()
    assert [record for record in caplog.records if record.name == "zettel.jobs"] == []


def test_a_failed_background_job_is_logged_once(url: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "zettel.jobs")  # the command line, run by another test, raises it
    tries = itertools.count(1)

    class Down(RemoteWords):
        async def embed(self, texts: Sequence[str]) -> Any:
            raise InvalidInput(f"the embedder is down, try {next(tries)}")

    with Memory(url, embedder=Down()) as memory:
        for text in ("The Heron is red.", "The Gull is grey."):
            memory.add(text)
            with pytest.raises(JobFailed):
                memory.flush()
    (warned,) = [record.getMessage() for record in caplog.records if record.name == "zettel.jobs"]
    assert "(embed): InvalidInput: the embedder is down, try 1; `zettel jobs` shows all" in warned
