"""The write-side index of a scope answers as columns do, and columns replace it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.embedded import ANN, StoreWriter, opened, run, vector
from tests.integration.test_embedded_agreement import apply_step, steps
from zettel.graph.columnar import ivf
from zettel.graph.columnar.columns import Columns
from zettel.graph.embedded import ivf_lists
from zettel.graph.embedded.store import EmbeddedStore
from zettel.graph.embedded.write_index import WriteIndex
from zettel.model import LinkType
from zettel.ports import LookupQuery

pytestmark = pytest.mark.integration
TOKENS = ("harbour", "kestrel", "ferri", "nobody")


@pytest.fixture(autouse=True, scope="module")
def low_limits() -> Iterator[None]:
    """Lower the limits so that few vectors count as many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ivf_lists, "LARGE", 20)
        patch.setattr(ivf, "FEW_DEAD", 4)
        yield


async def write_side_answers(store: EmbeddedStore, space: int, ids: list[str]) -> Any:
    """Return the answers to all queries of a writer."""
    neighbours = await store.near(ANN, ids, space, 3)
    lookup = await store.lookup(ANN, LookupQuery(tokens=TOKENS))
    return (
        [(row.note, [(id, round(cosine, 5)) for id, cosine in row.others]) for row in neighbours],
        lookup.notes,
        lookup.df,
    )


def angle_vector(number: float) -> Any:
    """Return a vector that is near those of near numbers."""
    return vector(np.cos(number / 13), np.sin(number / 13))


def cached_index(store: EmbeddedStore) -> Any:
    [(_, [cached_index])] = store._scopes._entries.values()
    return cached_index


@settings(max_examples=10, deadline=None)
@given(before=st.lists(steps, max_size=12), after=st.lists(steps, max_size=5), listed=st.booleans())
def test_the_write_index_answers_as_columns(
    before: list[Any], after: list[Any], listed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("outline") / "a.db"

    async def work() -> None:
        async with opened(path, fast_writes=True) as writes, opened(path, fast_writes=True) as searches:
            writer, asking = await StoreWriter(writes).begin(), await StoreWriter(searches).begin()
            present: list[str] = []
            versions: dict[str, int] = {}
            for number in range(20 * listed):
                present.append(await writer.add(f"A harbour with number {number}.", vector=angle_vector(number)))
                versions[present[-1]] = 1
            for step in before:
                await apply_step(writer, step, present, versions)
            if listed:
                await writes.optimize(ANN, writer.space)
            for step in [None, *after]:
                if step is not None:
                    await apply_step(writer, step, present, versions)
                await asking.ask("harbour")
                assert await write_side_answers(writes, writer.space, present) == await write_side_answers(
                    searches, writer.space, present
                )

    run(work())


def test_the_write_index_serves_writes_and_leaves_no_snapshot(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db", fast_writes=True) as store:
            writer = await StoreWriter(store).begin()
            first = await writer.add("The harbour.", vector=None)
            later_ids = [await writer.add(f"Ferry {number}.", vector=angle_vector(number)) for number in range(20)]
            assert await store.near(ANN, [first], writer.space, 3) == []
            await store.optimize(ANN, writer.space)
            await writer.change(later_ids[0], links=[(first, LinkType.RELATES)])
            await writer.change(first, vector=angle_vector(9))  # it had no vector before
            await writer.add("One more.", vector=angle_vector(9.1))
            (near,) = await store.near(ANN, [later_ids[9]], writer.space, 1)
            assert near.others[0][0] == first
            assert isinstance(cached_index(store), WriteIndex)
            assert cached_index(store).ivf is not None
            assert cached_index(store).nbytes < 20_000
        async with opened(tmp_path / "a.db", fast_writes=True) as store:
            with store._connections.read() as sql:  # type: ignore[union-attr]
                assert sql.execute("SELECT COUNT(*) FROM snapshots").fetchone() == (0,)
            assert await store.near(ANN, [later_ids[9]], writer.space, 1) == [near]
            await (await StoreWriter(store).begin()).ask("harbour")
            assert isinstance(cached_index(store), Columns)
            assert await store.near(ANN, [later_ids[9]], writer.space, 1) == [near]
            assert isinstance(cached_index(store), Columns)

    run(work())


def test_notes_without_vectors_have_no_neighbours(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            writer = await StoreWriter(store).begin()
            notes = [await writer.add("The harbour.", vector=angle_vector(1)) for _ in range(2)]
            notes += [await writer.add("The ferry.", vector=None) for _ in range(100)]
            rows = await store.near(ANN, notes, writer.space, 3)
            assert [(row.note, [other for other, _ in row.others]) for row in rows] == [
                (notes[0], []),
                (notes[1], [notes[0]]),
            ]

    run(work())


@pytest.mark.parametrize("change", ["reword", "delete", "archive"])
def test_rewording_deleting_and_archiving_load_columns(change: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db", fast_writes=True) as store:
            writer = await StoreWriter(store).begin()
            ids = [await writer.add(f"The harbour {number}.", vector=angle_vector(number)) for number in range(4)]
            await write_side_answers(store, writer.space, ids)
            assert isinstance(cached_index(store), WriteIndex)
            if change == "reword":
                await writer.change(ids[0], content="The ferry.")
            elif change == "delete":
                await writer.erase(ids[0])
            else:
                await writer.change(ids[0], archived=True)
            _, notes, df = await write_side_answers(store, writer.space, ids)
            assert (notes, df["harbour"]) == (4 - (change != "reword"), 3)
            assert isinstance(cached_index(store), Columns)

    run(work())
