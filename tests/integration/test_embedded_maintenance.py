"""Jobs, vector sets, and the check that finds and repairs damage."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.integration.embedded import ANN, DIM, StoreWriter, a_job, opened, run, vector
from zettel.errors import EmbedderMismatch, InvalidInput, StoreError, StoreTooNew
from zettel.graph.embedded import integrity
from zettel.model import JobKind, JobState, LinkType, LoggedHit, LoggedSearch, Scope
from zettel.ports.operations import EraseNotes, FinishJob, PutAnswer, PutJob, PutVector, StaleLease
from zettel.text.tokens import TOKENS_VERSION

pytestmark = pytest.mark.integration
BOB = Scope(user="bob")
ALL = list(JobKind)


def test_failed_jobs_store_their_error_and_can_be_retried() -> None:
    async def work() -> None:
        async with opened(":memory:") as store:
            writer = await StoreWriter(store).begin()
            await writer.do(PutJob(a_job("j_1")))
            (job,) = await store.claim(ALL, 1, 60, None)
            soon = datetime.now(timezone.utc) + timedelta(milliseconds=20)
            await store.fail([job], "no answer", soon)
            (queued,) = await store.jobs(ANN, JobState.QUEUED)
            assert (queued.error, queued.run_at, queued.attempts, queued.token) == ("no answer", soon, 1, None)
            assert await store.claim(ALL, 1, 60, None) == []
            await asyncio.sleep(0.03)
            (job,) = await store.claim(ALL, 1, 60, None)
            assert job.attempts == 2
            await store.fail([job], "it cannot be done", None)
            assert await store.claim(ALL, 1, 60, None) == []
            assert (await store.counts(ANN))["failed"] == 1
            assert await store.retry(BOB) == 0
            assert await store.retry(ANN) == 1
            (job,) = await store.claim(ALL, 1, 60, None)
            assert (job.attempts, job.error) == (1, "it cannot be done")

    run(work())


def test_deleting_a_note_deletes_its_jobs() -> None:
    async def work() -> None:
        async with opened(":memory:") as store:
            writer = await StoreWriter(store).begin()
            id = await writer.add("Short-lived.", job=True)
            (job,) = await store.claim(ALL, 1, 60, None)
            await writer.erase(id)
            assert await store.jobs(None) == []
            with pytest.raises(StaleLease):
                await writer.do(FinishJob(job.id, job.token or ""))

    run(work())


def test_a_new_vector_set_replaces_the_old_one() -> None:
    async def work() -> None:
        async with opened(":memory:") as store:
            writer = await StoreWriter(store).begin()
            old = await store.add_space("test", DIM, "sha", "/1")
            assert (old.id, old.active) == (writer.space, True)
            ids = [await writer.add(f"Pier {n}.", vector=vector(1, n)) for n in range(5)]
            new = await store.add_space("better", 3, "sha", "/1")
            assert not new.active
            assert [note.id for _, note in await store.without_vector(new.id, 3)] == ids[:3]
            with pytest.raises(EmbedderMismatch):
                await writer.do(PutVector(ids[0], new.id, vector(1)))
            with pytest.raises(EmbedderMismatch):
                await writer.ask("pier", vector=np.ones(3, np.float32))
            await writer.do(*(PutVector(id, new.id, np.eye(3, dtype=np.float32)[n % 3]) for n, id in enumerate(ids)))
            assert await store.without_vector(new.id, 3) == []
            assert (await writer.ask(vector=vector(1))).cosine.shape == (5,)
            await store.activate(new.id)
            assert [space.id for space in await store.spaces()] == [new.id]
            with pytest.raises(EmbedderMismatch, match="deleted"):
                await writer.ask(vector=vector(1))
            with pytest.raises(EmbedderMismatch, match="replaced"):
                await writer.do(PutVector(ids[0], old.id, vector(1)))
            with pytest.raises(InvalidInput):
                await store.activate(old.id)
            writer.space = new.id
            found = await writer.ask(vector=np.eye(3, dtype=np.float32)[1], pool=2)
            seeded = [id for id, seeds in zip(found.ids, found.seeds.tolist(), strict=True) if seeds & 1]
            assert seeded == [ids[1], ids[4]]
            assert (await store.counts(ANN))["vectors"] == 5

    run(work())


def test_near_returns_the_nearest_earlier_notes() -> None:
    async def work() -> None:
        async with opened(":memory:") as store:
            writer = await StoreWriter(store).begin()
            rng = np.random.default_rng(1)
            rows = rng.standard_normal((60, DIM)).astype(np.float32)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            rows[40] = rows[10]  # equally near to all others
            ids = [await writer.add(f"Number {n}.", vector=row) for n, row in enumerate(rows)]
            blank = await writer.add("Without a known word.", vector=np.zeros(DIM, np.float32))
            near = {
                neighbours.note: neighbours.others
                for neighbours in await store.near(ANN, [*ids, blank, "n_missing"], writer.space, 4)
            }
            assert near.keys() == set(ids)
            cosines = rows.astype(np.float64) @ rows.T.astype(np.float64)
            for n, id in enumerate(ids):
                expected = sorted(range(n), key=lambda m: (-round(cosines[n, m], 9), m))[:4]
                assert [other for other, _ in near[id]] == [ids[m] for m in expected]
                assert [cosine for _, cosine in near[id]] == pytest.approx([cosines[n, m] for m in expected], abs=1e-6)

    run(work())


async def small_memory(store: Any) -> StoreWriter:
    writer = await StoreWriter(store).begin()
    first = await writer.add("Kestrel, my dog, howls.", title="Kestrel", tags=("pet",), session="a")
    second = await writer.add("The harbour is closed.", metadata={"room": 1}, source="a.txt", session="a")
    third = await writer.add("The cello plays on.")
    await writer.change(second, content="The harbour is open.", links=[(first, LinkType.RELATES)])
    await writer.change(third, links=[(second, LinkType.SUPERSEDES)], inputs=[second])
    await writer.mention(second, first)
    await writer.do(PutAnswer("key", "Music.", (third,)))
    found = (LoggedHit(note=third, version=1, score=0.5, features={}),)
    search = LoggedSearch(id="s_1", question="Music?", asked_at=datetime.now(timezone.utc), scorer="fusion", hits=found)
    await store.log_searches({ANN: [search]})
    return writer


DAMAGE = {
    "a word too few": "DELETE FROM words WHERE note = 2 AND key = (SELECT MIN(key) FROM words WHERE note = 2)",
    "a word too many": "INSERT INTO words SELECT scope, 0, 12345, 2 FROM notes WHERE number = 2",
    "a word in the wrong stretch": "UPDATE words SET stretch = 5 WHERE note = 1",
    "a posting too few": "DELETE FROM facets WHERE note = 2",
    "a posting too many": "INSERT INTO facets SELECT scope, 12345, 2, 0 FROM notes WHERE number = 2",
    "a title with a wrong count": "UPDATE facets SET count = 0 WHERE note = 1 AND count < 0",
    "an index": "UPDATE notes SET entries = x'' WHERE number = 1",
    "a term's name": "DELETE FROM terms",
    "a column": "UPDATE notes SET session = 'nowhere', occurred_at = 5 WHERE number = 1",
    "a state": "UPDATE texts SET body = REPLACE(body, 'open', 'shut') WHERE note = 2",
    "a link too few": "DELETE FROM links WHERE owner = 2",
    "a link to nothing": "UPDATE links SET target = 999 WHERE owner = 0",
    "an orphan vector": "UPDATE vectors SET note = 999 WHERE note = 1",
    "an orphan revision": "INSERT INTO revisions (scope, note, version, seq, recorded_at, body) "
    "VALUES (1, 999, 2, 1, 1, '{}')",
    "an answer about nothing": "UPDATE answer_notes SET note = 999",
    "a search that found nothing": "UPDATE search_notes SET note = 999",
    "a use of nothing": "INSERT INTO note_uses VALUES (999, 1, 1, 1, 0, 0)",
    "a scope's seq": "UPDATE scopes SET seq = 1",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_check_finds_and_repairs_damage(damage: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store, opened(tmp_path / "a.db") as other:
            writer = await small_memory(store)
            reader = await StoreWriter(other).begin()
            assert await store.check(repair=False) == []
            ids = ["n_1", "n_2", "n_3"]

            async def read_all() -> list[Any]:
                return [await other.notes(ANN, ids), await other.links(ANN, ids), (await reader.ask("harbour")).ids]

            expected = await read_all()
            assert store._connections is not None
            with store._connections.write() as sql:
                sql.execute(DAMAGE[damage])
            problems = await store.check(repair=False)
            assert problems
            assert await store.check(repair=False) == problems  # a check without repair changes nothing
            assert await store.check(repair=True) == problems
            assert await store.check(repair=False) == []
            after = await read_all()
            if damage == "a link to nothing":  # the mentioned note is unknown
                expected[1] = [link for link in expected[1] if link.type is not LinkType.MENTIONS]
            assert after == expected
            jobs = [(job.kind, job.note) for job in await store.jobs(ANN)]
            assert jobs == ([(JobKind.EMBED, "n_1")] if damage == "an orphan vector" else [])
            assert (await reader.ask("kestrel")).ids == (await writer.ask("kestrel")).ids

    run(work())


def test_a_damaged_text_is_reported_and_restored_from_its_history() -> None:
    async def work() -> None:
        async with opened(":memory:") as store:
            writer = await StoreWriter(store).begin()
            changed, plain, sound = [await writer.add(f"Heron {number}.") for number in range(3)]
            await writer.change(changed, content="A kestrel.")
            assert store._connections is not None
            with store._connections.write() as sql:
                sql.execute("UPDATE texts SET body = '{' || body WHERE note < 3")
            for damaged in (changed, plain):
                with pytest.raises(StoreError, match="a stored Note is damaged"):
                    await store.notes(ANN, [damaged])
            assert len(await store.notes(ANN, [sound])) == 1
            problems = [
                f"{ANN.model_dump_json()}: note {changed}: its state differs from its history",
                f"{ANN.model_dump_json()}: note {plain}: its text or a revision is damaged: restore a copy",
            ]
            assert await store.check(repair=False) == problems
            assert await store.check(repair=True) == problems
            assert (await store.notes(ANN, [changed]))[changed].content == "A kestrel."
            assert await store.check(repair=False) == problems[1:]

    run(work())


def test_a_replacement_ends_the_validity_of_a_note() -> None:
    async def work() -> None:
        async with opened(":memory:") as store:
            writer = await StoreWriter(store).begin()
            old = await writer.add("She lives in Bergen.", occurred_at="2024-01-01")
            new = await writer.add("She lives in Oslo.", occurred_at="2024-05-01")
            timeless = await writer.add("She lives in Rome.")
            await writer.change(new, links=[(old, LinkType.SUPERSEDES)])
            assert (await store.notes(ANN, [old]))[old].valid_to == datetime(2024, 5, 1, tzinfo=timezone.utc)
            await writer.change(timeless, links=[(new, LinkType.SUPERSEDES)])
            (link,) = [link for link in await store.links(ANN, [timeless]) if link.source == timeless]
            assert (await store.notes(ANN, [new]))[new].valid_to == link.recorded_at
            await writer.do(EraseNotes((new,)))
            assert (await store.notes(ANN, [old]))[old].valid_to is None

    run(work())


def test_an_older_tokenizer_version_is_reindexed_and_a_newer_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        path = tmp_path / "a.db"
        async with opened(path) as store:
            writer = await StoreWriter(store).begin()
            id = await writer.add("The harbour.")
        with closing(sqlite3.connect(path)) as sql:
            assert sql.execute("SELECT version FROM tokens").fetchall() == [(TOKENS_VERSION,)]
        index = integrity.index_note
        monkeypatch.setattr(integrity, "TOKENS_VERSION", TOKENS_VERSION + 1)
        monkeypatch.setattr(
            integrity, "index_note", lambda note: index(note.model_copy(update={"content": "The ferry."}))
        )
        async with opened(path) as store:
            writer = await StoreWriter(store).begin()
            assert list((await writer.ask("ferri")).ids) == [id]
            assert list((await writer.ask("harbour")).ids) == []
        monkeypatch.undo()
        with pytest.raises(StoreTooNew, match="tokens version"):
            async with opened(path):
                pass

    run(work())
