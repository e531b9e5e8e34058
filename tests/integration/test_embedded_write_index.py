"""What is held of a scope for who only writes tells what columns tell, and gives way to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.embedded import ANN, StoreWriter, opened, run, vector
from tests.integration.test_embedded_agreement import steps, take
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
def small() -> Iterator[None]:
    """Few vectors are many here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ivf_lists, "LARGE", 20)
        patch.setattr(ivf, "FEW_DEAD", 4)
        yield


async def told(store: EmbeddedStore, space: int, ids: list[str]) -> Any:
    """All that who writes asks of a scope."""
    near = await store.near(ANN, ids, space, 3)
    found = await store.lookup(ANN, LookupQuery(tokens=TOKENS))
    return [(one.note, [(id, round(cosine, 5)) for id, cosine in one.others]) for one in near], found.notes, found.df


def at(number: float) -> Any:
    """A vector that is near those of numbers near this one."""
    return vector(np.cos(number / 13), np.sin(number / 13))


def held(store: EmbeddedStore) -> Any:
    [(_, [held])] = store._scopes._entries.values()
    return held


@settings(max_examples=10, deadline=None)
@given(before=st.lists(steps, max_size=12), after=st.lists(steps, max_size=5), listed=st.booleans())
def test_it_tells_what_columns_tell(
    before: list[Any], after: list[Any], listed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("outline") / "a.db"

    async def work() -> None:
        async with opened(path, hasty=True) as writes, opened(path, hasty=True) as searches:
            scribe, asking = await StoreWriter(writes).begin(), await StoreWriter(searches).begin()
            present: list[str] = []
            versions: dict[str, int] = {}
            for number in range(20 * listed):
                present.append(await scribe.add(f"A harbour with number {number}.", vector=at(number)))
                versions[present[-1]] = 1
            for step in before:
                await take(scribe, step, present, versions)
            if listed:
                await writes.optimize(ANN, scribe.space)
            for step in [None, *after]:
                if step is not None:
                    await take(scribe, step, present, versions)
                await asking.ask("harbour")
                assert await told(writes, scribe.space, present) == await told(searches, scribe.space, present)

    run(work())


def test_it_is_taken_for_writing_and_leaves_no_snapshot(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db", hasty=True) as store:
            scribe = await StoreWriter(store).begin()
            first = await scribe.add("The harbour.", vector=None)
            late = [await scribe.add(f"Ferry {number}.", vector=at(number)) for number in range(20)]
            assert await store.near(ANN, [first], scribe.space, 3) == []
            await store.optimize(ANN, scribe.space)
            await scribe.change(late[0], links=[(first, LinkType.RELATES)])
            await scribe.change(first, vector=at(9))  # which it had none of before
            await scribe.add("One more.", vector=at(9.1))
            (near,) = await store.near(ANN, [late[9]], scribe.space, 1)
            assert near.others[0][0] == first
            assert isinstance(held(store), WriteIndex)
            assert held(store).ivf is not None
            assert held(store).nbytes < 20_000
        async with opened(tmp_path / "a.db", hasty=True) as store:
            with store._connections.read() as sql:  # type: ignore[union-attr]
                assert sql.execute("SELECT COUNT(*) FROM snapshots").fetchone() == (0,)
            assert await store.near(ANN, [late[9]], scribe.space, 1) == [near]
            await (await StoreWriter(store).begin()).ask("harbour")
            assert isinstance(held(store), Columns)
            assert await store.near(ANN, [late[9]], scribe.space, 1) == [near]
            assert isinstance(held(store), Columns)

    run(work())


def test_notes_after_the_last_vector_are_near_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            scribe = await StoreWriter(store).begin()
            notes = [await scribe.add("The harbour.", vector=at(1)) for _ in range(2)]
            notes += [await scribe.add("The ferry.", vector=None) for _ in range(100)]
            found = await store.near(ANN, notes, scribe.space, 3)
            assert [(one.note, [other for other, _ in one.others]) for one in found] == [
                (notes[0], []),
                (notes[1], [notes[0]]),
            ]

    run(work())


@pytest.mark.parametrize("what", ["reworded", "gone", "put away"])
def test_what_it_cannot_take_in_brings_the_columns(what: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db", hasty=True) as store:
            scribe = await StoreWriter(store).begin()
            ids = [await scribe.add(f"The harbour {number}.", vector=at(number)) for number in range(4)]
            await told(store, scribe.space, ids)
            assert isinstance(held(store), WriteIndex)
            if what == "reworded":
                await scribe.change(ids[0], content="The ferry.")
            elif what == "gone":
                await scribe.erase(ids[0])
            else:
                await scribe.change(ids[0], archived=True)
            _, notes, df = await told(store, scribe.space, ids)
            assert (notes, df["harbour"]) == (4 - (what != "reworded"), 3)
            assert isinstance(held(store), Columns)

    run(work())
