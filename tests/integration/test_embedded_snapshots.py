"""Snapshots of a large scope's columns: loaded columns answer as columns read from notes.

Deleted, damaged and outdated data is never answered from a snapshot.
"""

from __future__ import annotations

import itertools
import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.embedded import ANN, DIM, StoreWriter, opened, run, vector
from tests.integration.test_embedded_agreement import ANGLES, DAY_ZERO, WORDS, apply_step, filters, steps
from zettel.graph.columnar import ivf
from zettel.graph.columnar.columns import Columns
from zettel.graph.embedded import ivf_lists, loading, snapshots
from zettel.graph.embedded.connections import Connections
from zettel.graph.embedded.store import EmbeddedStore
from zettel.graph.keys import Keys
from zettel.model import LinkType, to_micros
from zettel.ports.operations import PutVector
from zettel.ports.query import Filter
from zettel.testing.store_comparison import candidate_rows
from zettel.text.tokens import tokenize

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]
NOTES = 48


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Lower the limits so that few notes count as many and a piece has few bytes."""
    patch.setattr(ivf_lists, "LARGE", 40)
    patch.setattr(ivf, "FEW_ALLOWED", 6)
    patch.setattr(snapshots, "PIECE_BYTES", 600)
    patch.setattr(snapshots, "TOGETHER", 3)


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        yield


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that records for every load whether a snapshot was usable."""
    results: list[bool] = []
    load = snapshots.load

    def watched(*arguments: Any) -> Any:
        columns = load(*arguments)
        results.append(columns.changed >= 0)
        return columns

    monkeypatch.setattr(snapshots, "load", watched)
    return results


async def fill(store: EmbeddedStore, notes: int = NOTES) -> tuple[StoreWriter, list[str]]:
    """Fill a scope that has inverted lists."""
    writer, chosen = await StoreWriter(store).begin(), random.Random(1)
    ids = []
    for number in range(notes):
        angle = chosen.choice(ANGLES)
        words = " and ".join(chosen.choices(WORDS, k=3))
        ids.append(
            await writer.add(
                f"The {words}.",
                vector=vector(np.cos(angle), np.sin(angle)),
                session=chosen.choice([None, "a", "b"]),
                speaker=chosen.choice([None, "Ann", "Bob"]),
                tags=("pet",) * (number % 3 == 0),
                title="Kestrel" if number == 5 else None,
                occurred_at=DAY_ZERO.date().isoformat() if number % 7 == 0 else None,
                source="a.txt" if number % 5 == 0 else None,
            )
        )
    await writer.change(ids[3], links=[(ids[1], LinkType.RELATES)])
    await writer.mention(ids[4], ids[5])
    await writer.ask("harbour")  # a store that only writes leaves no snapshot
    await store.optimize(ANN, writer.space)
    return writer, ids


def make_store(path: Path) -> list[str]:
    """Create a store with a snapshot of its only scope; return the ids of its notes."""

    async def work() -> list[str]:
        async with opened(path, fast_writes=True) as store:
            return (await fill(store))[1]

    ids = run(work())
    assert len(stored_snapshots(path)) == 1
    return ids


def stored_snapshots(path: Path) -> list[tuple[int, int]]:
    """Return token and change count of every stored snapshot."""
    with sqlite3.connect(path) as sql:
        rows = sql.execute("SELECT DISTINCT token, changed FROM snapshots").fetchall()
    sql.close()
    return rows


def ask_again(path: Path) -> None:
    """Open the store, ask one question, close it."""

    async def work() -> None:
        async with opened(path, fast_writes=True) as store:
            await (await StoreWriter(store).begin()).ask("harbour")

    run(work())


async def answers(writer: StoreWriter, ids: list[str], filter: Filter = Filter()) -> list[Any]:  # noqa: B008
    """Return the answers to questions of every kind, as plain values."""
    day = (to_micros(DAY_ZERO), to_micros(DAY_ZERO) + 1)
    rows: list[Any] = []
    for options in (
        {"vector": vector(1, 1), "names": ("kestrel", "oslo", "ferry"), "filter": filter, "times": (day,)},
        {"vector": vector(1, 3), "pool": 5},
        {"vector": vector(1, 3), "pool": 3, "filter": Filter(session="a")},
        {"as_of": day[0]},
        {"vector": vector(0, 1), "known_at": (await writer.store.state(ANN)).recorded_at - 1},
    ):
        candidates = await writer.ask("harbour", "cello", "ferri", **options)
        rows.append(candidate_rows(candidates, skip_cosines=set(), term_notes=set(candidates.ids)))
    near = await writer.store.near(ANN, ids, writer.space, 3)
    return [
        *rows,
        [(neighbours.note, [(id, round(cosine, 5)) for id, cosine in neighbours.others]) for neighbours in near],
    ]


async def answers_without_snapshot(path: Path, ids: list[str], filter: Filter = Filter()) -> list[Any]:  # noqa: B008
    """Return the answers of a store that reads all notes instead of a snapshot."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "load", lambda _, row, __, dim, listed: Columns(row.number, dim, listed))
        patch.setattr(snapshots, "due", lambda *_: False)
        async with opened(path, fast_writes=True) as store:
            return await answers(await StoreWriter(store).begin(), ids, filter)


@settings(max_examples=25, deadline=None)
@given(
    before=st.lists(steps, max_size=12),
    after=st.lists(st.tuples(steps, st.booleans()), max_size=12),
    purged=st.booleans(),
    filter=filters,
)
def test_loaded_columns_answer_as_columns_read_from_notes(
    before: list[Any], after: list[Any], purged: bool, filter: Filter, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Changes come before the snapshot is written and after it is loaded, from this store and another one."""
    path = tmp_path_factory.mktemp("snapshots") / "a.db"

    async def work() -> None:
        async with opened(path, fast_writes=True) as store:
            writer, present = await fill(store)
            versions = dict.fromkeys(present, 1) | {present[3]: 2}
            for step in before:
                await apply_step(writer, step, present, versions)
                await writer.ask("harbour")
            if purged:
                await store.purge()
        assert len(stored_snapshots(path)) == 1
        async with opened(path, fast_writes=True) as store, opened(path, fast_writes=True) as other:
            writers = [
                await StoreWriter(opened_store, first=1000 + 1000 * n).begin()
                for n, opened_store in enumerate((store, other))
            ]
            assert await answers(writers[0], present, filter) == await answers_without_snapshot(path, present, filter)
            for step, place in after:
                await apply_step(writers[place], step, present, versions)
                await writers[0].ask("harbour")
            assert await answers(writers[0], present, filter) == await answers_without_snapshot(path, present, filter)
            assert [line for line in await store.check(repair=False) if "no vector" not in line] == []

    run(work())


def test_a_snapshot_is_rewritten_after_many_changes(tmp_path: Path, loaded: list[bool]) -> None:
    path = tmp_path / "a.db"
    make_store(path)
    assert loaded == []  # the scope had no lists when it was read
    first = stored_snapshots(path)

    async def add(notes: int) -> None:
        async with opened(path, fast_writes=True) as store:
            writer = await StoreWriter(store, first=1000 + notes).begin()
            await writer.ask("harbour")
            for number in range(notes):
                await writer.add(f"A harbour with number {number}.")

    run(add(2))
    assert stored_snapshots(path) == first
    run(add(9))  # with the earlier two more than an eighth
    assert stored_snapshots(path) != first
    assert len(stored_snapshots(path)) == 1
    second = stored_snapshots(path)
    ask_again(path)
    assert stored_snapshots(path) == second
    assert loaded == [True, True, True]


DAMAGE = {
    "a piece is missing": "DELETE FROM snapshots WHERE piece = 7",
    "pieces are swapped": "UPDATE snapshots SET data = (SELECT data FROM snapshots WHERE piece = 3) WHERE piece = 2",
    "a piece is short": "UPDATE snapshots SET data = substr(data, 1, 5) WHERE piece = 4",
    "a piece is long": "UPDATE snapshots SET data = CAST(data || 'x' AS BLOB) WHERE piece = 4",
    "a piece is text": "UPDATE snapshots SET data = CAST(data || 'x' AS TEXT) WHERE piece = 6",
    "a piece is a number": "UPDATE snapshots SET data = 5 WHERE piece = 5",
    "a piece too many": "INSERT INTO snapshots SELECT scope, space, token, changed, 10000, x'00' FROM snapshots "
    "WHERE piece = 0",
    "no contents": "UPDATE snapshots SET data = '' WHERE piece = 0",
    "contents of another kind": "UPDATE snapshots SET data = '[1, 2]' WHERE piece = 0",
    "contents are a number": "UPDATE snapshots SET data = 3 WHERE piece = 0",
    "of the future": "UPDATE snapshots SET changed = 100000",
    "of a forgotten past": "UPDATE scopes SET changed = changed + 1, floor = changed + 1",
    "of other lists": "UPDATE lists SET epoch = 2",
    "of no space": "UPDATE snapshots SET space = 77",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_snapshot_is_not_used(damage: str, tmp_path: Path, loaded: list[bool]) -> None:
    path = tmp_path / "a.db"
    ids = make_store(path)
    with sqlite3.connect(path) as sql:
        sql.execute(DAMAGE[damage])
    sql.close()
    check_answers(path, ids)
    assert loaded == [False]
    assert len(stored_snapshots(path)) == 1 + (damage == "of no space")  # a new snapshot is stored
    ask_again(path)
    assert loaded[1:] == [True]


def check_answers(path: Path, ids: list[str]) -> None:
    async def work() -> None:
        async with opened(path, fast_writes=True) as store:
            assert await answers(await StoreWriter(store).begin(), ids) == await answers_without_snapshot(path, ids)

    run(work())


def snapshot_contents(path: Path) -> dict[str, Any]:
    with sqlite3.connect(path) as sql:
        (data,) = sql.execute("SELECT data FROM snapshots WHERE piece = 0").fetchone()
    sql.close()
    contents: dict[str, Any] = json.loads(data)
    return contents


def write_contents(path: Path, contents: dict[str, Any]) -> None:
    with sqlite3.connect(path) as sql:
        sql.execute("UPDATE snapshots SET data = ? WHERE piece = 0", (json.dumps(contents).encode(),))
    sql.close()


def part(contents: dict[str, Any], name: str) -> dict[str, Any]:
    match: dict[str, Any] = next(part for part in contents["parts"] if part["name"] == name)
    return match


FOREIGN: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another format": lambda contents: contents.update(format=snapshots.FORMAT + 1),
    "other kinds": lambda contents: contents.update(codes=["a"]),
    "another dimension": lambda contents: contents.update(dim=DIM + 1),
    "no names": lambda contents: contents.update(speakers=[]),
    "no sessions": lambda contents: contents.update(sessions=[]),
    "no parts": lambda contents: contents.update(parts=[]),
    "objects": lambda contents: part(contents, "notes.seq").update(dtype="|O"),
    "other bytes": lambda contents: part(contents, "notes.seq").update(dtype=">i8"),
    "numbers of another kind": lambda contents: part(contents, "notes.length").update(dtype="<f4"),
    "another name": lambda contents: part(contents, "notes.seq").update(name="notes.sequence"),
    "no segment": lambda contents: part(contents, "words.numbers").update(name="words.none"),
    "another shape": lambda contents: part(contents, "notes.seq").update(shape=[2, NOTES // 2]),
    "a shape below nothing": lambda contents: part(contents, "notes.seq").update(shape=[-1]),
    "a huge shape": lambda contents: part(contents, "notes.seq").update(shape=[10**15]),
    "another check": lambda contents: part(contents, "vectors.code").update(crc=1),
}


@pytest.mark.parametrize("change", FOREIGN)
def test_a_snapshot_with_foreign_contents_is_not_used(change: str, tmp_path: Path, loaded: list[bool]) -> None:
    path = tmp_path / "a.db"
    ids = make_store(path)
    contents = snapshot_contents(path)
    FOREIGN[change](contents)
    write_contents(path, contents)
    check_answers(path, ids)
    assert loaded == [False]
    ask_again(path)
    assert loaded[1:] == [True]


BEYOND: dict[str, Callable[[Any], None]] = {
    "notes.alive": lambda array: array.fill(2),
    "notes.number": lambda array: array.fill(1),
    "notes.kind": lambda array: array.fill(100),
    "notes.session": lambda array: array.fill(100),
    "ids.json": lambda array: array.fill(ord("[")),
    "order.rows": lambda array: array.fill(NOTES + 100),
    "words.1.rows": lambda array: array.fill(NOTES + 100),
    "words.1.keys": lambda array: array.fill(0),
    "words.1.starts": lambda array: array.fill(0),
    "terms.size": lambda array: array.fill(1),
    "terms.term": lambda array: array.fill(-1),
    "links.target": lambda array: array.fill(10_000),
    "term_numbers.number": lambda array: array.fill(10_000),
    "vectors.size": lambda array: array.fill(10**6),
    "vectors.row": lambda array: array.fill(1),
}


@pytest.mark.parametrize("name", BEYOND)
def test_a_snapshot_with_inconsistent_columns_is_not_used(
    name: str, tmp_path: Path, loaded: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, arrays = tmp_path / "a.db", snapshots._arrays

    def wrong(columns: Any) -> Any:
        replaced = False
        for part_name, array in arrays(columns):
            if part_name == name:
                array, replaced = np.array(array[:]), True
                BEYOND[name](array.view(np.uint8) if array.dtype == bool else array)
            yield part_name, array
        assert replaced

    monkeypatch.setattr(snapshots, "_arrays", wrong)
    ids = make_store(path)
    monkeypatch.setattr(snapshots, "_arrays", arrays)
    check_answers(path, ids)
    assert loaded == [False]


@pytest.mark.parametrize("written", ["before", "after"])
def test_a_purge_removes_deleted_data_from_snapshots(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snapshot is written before the delete, or after it by a store that had cached the note."""
    path = tmp_path / "a.db"
    make_store(path)
    embedding = np.array([-0.5, 0.4, -0.3, 0.2, 0.5, -0.4, 0.1, 0.6], np.float32)
    embedding /= np.linalg.norm(embedding)
    content = "Quetzalcoatl flies over Popocatepetl."

    async def work() -> None:
        async with opened(path, fast_writes=True) as store:
            writer = await StoreWriter(store, first=777777).begin()
            id = await writer.add(content, vector=embedding, session="Tenochtitlan", speaker="Moctezuma")
            await writer.change("n_2", content="Chapultepec is a hill.")
            await writer.ask("harbour")
            secret = (await store.state(ANN)).secret
            [(_, [columns])] = store._scopes._entries.values()
            assert isinstance(columns, Columns)
            row = columns.ids.index(id)
            stamp = int(columns.notes["stamp"][row]).to_bytes(8, "little", signed=True)
            code = columns.vectors._slots["code"][columns.vectors._rows["slot"][[row]]].tobytes()  # type: ignore[attr-defined]
        assert len(stored_snapshots(path)) == 1
        keys = Keys(secret)
        words = [keys.word(token) for token in tokenize(f"{content} Chapultepec")]
        terms = [keys.term(name) for name in ("quetzalcoatl", "popocatepetl", "chapultepec")]
        hashes = [key.to_bytes(8, "little", signed=True) for key in (*words, *terms)]
        traces = [b"n_777777", b"Tenochtitlan", b"Moctezuma", stamp, code, *hashes]
        traces = [trace for trace in traces if trace in path.read_bytes()]
        assert len(traces) > 8  # most traces are present before the delete
        async with opened(path, fast_writes=True) as store:
            writer = await StoreWriter(store, first=888888).begin()
            await writer.ask("harbour")
            await writer.erase(id)
            await writer.change("n_2", erased=(2,))
            monkeypatch.setattr(snapshots, "WRITTEN_AT", -1 if written == "after" else 1)
        assert len(stored_snapshots(path)) == 1
        async with opened(path, fast_writes=True) as store:
            assert await store.purge()
            assert len(stored_snapshots(path)) == (written == "after")
            assert [trace for trace in traces if trace in path.read_bytes()] == []
            assert await store.check(repair=False) == []

    monkeypatch.setattr(snapshots, "WRITTEN_AT", 0)
    run(work())
    assert [trace for trace in (b"n_777777", b"Tenochtitlan", b"Moctezuma") if trace in path.read_bytes()] == []


@pytest.mark.parametrize("action", ["erase", "add", "drop", "activate", "repair"])
def test_a_change_between_two_pieces_discards_the_snapshot(
    action: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write, number = tmp_path / "a.db", Connections.write, itertools.count(1)

    def between(connections: Connections) -> Any:
        if next(number) == 9:  # the ids are written by now
            assert len(stored_snapshots(path)) == 1
            monkeypatch.setattr(Connections, "write", write)
            run(change_store())
        return write(connections)

    async def change_store() -> None:
        async with opened(path, fast_writes=True) as other:
            writer = await StoreWriter(other, first=1000).begin()
            if action == "erase":
                await writer.erase("n_30")
            elif action == "add":
                await writer.add("One more.")
            elif action == "drop":
                await other.drop_scope(ANN)
            elif action == "activate":
                space = (await other.add_space("new", DIM, "sha", "/2")).id
                for id in [f"n_{number + 1}" for number in range(NOTES)]:
                    await writer.do(PutVector(id, space, vector(1)))
                assert await other.activate(space)
            else:
                await other.check(repair=True)

    async def work() -> None:
        async with opened(path, fast_writes=True) as store:
            await fill(store)
            monkeypatch.setattr(Connections, "write", between)
        assert next(number) > 9
        assert stored_snapshots(path) == []
        async with opened(path, fast_writes=True) as store:
            await store.purge()
            assert (b"n_30" in path.read_bytes()) == (action not in ("drop", "erase"))
            assert await store.check(repair=False) == []

    run(work())


@pytest.mark.parametrize("action", ["drop", "activate", "repair"])
def test_a_snapshot_is_deleted_with_its_scope_or_space(action: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    ids = make_store(path)

    async def work() -> None:
        async with opened(path, fast_writes=True) as store:
            writer = await StoreWriter(store).begin()
            if action == "drop":
                await store.drop_scope(ANN)
            elif action == "repair":
                assert await store.check(repair=True) == []
            else:
                space = (await store.add_space("new", DIM, "sha", "/2")).id
                for id in ids:
                    await writer.do(PutVector(id, space, vector(1)))
                assert await store.activate(space)
            with store._connections.writer() as sql:  # type: ignore[union-attr]
                assert sql.execute("PRAGMA secure_delete").fetchone() == (1,)

    run(work())
    assert stored_snapshots(path) == []


def test_closing_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "a.db"

    async def work() -> None:
        async with opened(path, fast_writes=True) as store:
            await fill(store)
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            started = time.monotonic()
        assert time.monotonic() - started < 2
        other.execute("ROLLBACK")
        other.close()

    run(work())
    assert stored_snapshots(path) == []
    ask_again(path)
    assert len(stored_snapshots(path)) == 1


def test_a_full_disk_writes_no_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "a.db"

    async def work() -> None:
        async with opened(path, fast_writes=True) as store:
            await fill(store)
            with store._connections.writer() as writer:  # type: ignore[union-attr]
                (pages,) = writer.execute("PRAGMA page_count").fetchone()
                writer.execute(f"PRAGMA max_page_count = {pages + 3}")

    run(work())
    assert stored_snapshots(path) == []
    ask_again(path)
    assert len(stored_snapshots(path)) == 1


def test_mostly_deleted_columns_are_read_again_from_notes(
    tmp_path: Path, loaded: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store reads the notes again instead of the old snapshot, and writes no snapshot of the old columns."""
    path = tmp_path / "a.db"
    ids = make_store(path)
    monkeypatch.setattr(loading, "FEW_ROWS", 4)

    async def work() -> None:
        async with opened(path, fast_writes=True) as store:
            writer = await StoreWriter(store).begin()
            await writer.ask("harbour")
            await writer.erase(*ids[:30])
            remaining = ids[30:]
            await writer.ask("harbour")
            assert loaded == [True]
            [(_, [columns])] = store._scopes._entries.values()
            assert columns.rows == NOTES
            assert await answers(writer, remaining) == await answers_without_snapshot(path, remaining)
            [(_, [columns])] = store._scopes._entries.values()
            assert columns.rows == NOTES - 30

    run(work())
    assert loaded == [True]
    assert snapshot_contents(path)["rows"] == NOTES - 30


def test_a_mostly_deleted_snapshot_is_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next store would otherwise read the scope again as well."""
    path = tmp_path / "a.db"
    ids = make_store(path)
    monkeypatch.setattr(loading, "FEW_ROWS", 4)

    async def ask(*deleted_ids: str) -> None:
        async with opened(path, fast_writes=True) as store:
            writer = await StoreWriter(store).begin()
            await writer.ask("harbour")
            await writer.erase(*deleted_ids)
            await writer.ask("harbour")
            await writer.ask("harbour")

    run(ask(*ids[:23]))
    assert snapshot_contents(path)["rows"] == NOTES  # less than half of them are deleted
    run(ask(*ids[23:25]))
    assert snapshot_contents(path)["rows"] == NOTES - 25


_CLOSER = """
import sys; sys.path.insert(0, ".")
from tests.integration.test_embedded_snapshots import *
shrink(pytest.MonkeyPatch())
snapshots.WRITTEN_AT, snapshots.TOGETHER, put = -1, 1, snapshots._put
def slow(*arguments):
    time.sleep(0.002)
    put(*arguments)
snapshots._put = slow
async def work():
    async with opened(sys.argv[1]) as store:
        await (await StoreWriter(store).begin()).ask("harbour")
        print("closing", flush=True)
run(work())
"""


def closing_process(path: Path) -> subprocess.Popen[str]:
    """Return a process that closes the store and slowly writes a snapshot."""
    process = subprocess.Popen([sys.executable, "-c", _CLOSER, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "closing\n"
    return process


@pytest.mark.soak
def test_a_kill_leaves_a_store_that_answers(tmp_path: Path, soak_scale: Callable[[int], int]) -> None:
    path, chosen = tmp_path / "a.db", random.Random(2)
    ids = make_store(path)
    for round_number in range(soak_scale(60)):
        with closing_process(path) as process:
            if round_number:
                time.sleep(chosen.random() * 0.3)
            else:
                while len(stored_snapshots(path)) < 2:  # wait for the first pieces beside those of the last snapshot
                    time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
        assert round_number or len(stored_snapshots(path)) == 2
        check_answers(path, ids)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "WRITTEN_AT", -1)
        ask_again(path)
    assert len(stored_snapshots(path)) == 1


def test_concurrently_closing_processes_leave_one_snapshot(tmp_path: Path, loaded: list[bool]) -> None:
    path = tmp_path / "a.db"
    ids = make_store(path)
    with closing_process(path) as first, closing_process(path) as second:
        pass
    assert (first.returncode, second.returncode) == (0, 0)
    check_answers(path, ids)
    assert loaded == [True]
    assert len(stored_snapshots(path)) == 1
