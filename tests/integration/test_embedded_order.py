"""The order of NEXT within a session, whatever comes late or goes."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.integration.embedded import StoreWriter, opened, run
from zettel.model import TIME_MIN, to_micros
from zettel.ports.query import Candidates

DAY_ZERO = datetime(2024, 1, 1, tzinfo=timezone.utc)


class Said(NamedTuple):
    id: str
    session: str
    day: int | None
    valid_day: int | None


def in_order(said: list[Said]) -> dict[str, list[str]]:
    """By the book: an undated one stands with the last dated one that came before it."""
    sessions: dict[str, list[tuple[int, int, str]]] = {}
    last: dict[str, int] = {}
    for arrival, one in enumerate(said):
        if one.day is not None:
            last[one.session] = one.day
        sessions.setdefault(one.session, []).append((last.get(one.session, TIME_MIN), arrival, one.id))
    return {session: [id for *_, id in sorted(rows)] for session, rows in sessions.items()}


def told_order(found: Candidates, said: list[Said]) -> dict[str, list[str]]:
    """What candidates say about it, followed from row to row."""
    told, sessions = {one.id: one.session for one in said}, dict[str, list[str]]()
    for row, before in enumerate(found.previous.tolist()):
        if before == -1 and found.session[row] >= 0:
            rows = [row]
            while (following := int(found.next[rows[-1]])) != -1:
                assert found.previous[following] == rows[-1]
                rows.append(following)
            name = told[found.ids[row]]
            assert name not in sessions
            assert {found.session[one] for one in rows} == {found.session[row]}
            sessions[name] = [found.ids[one] for one in rows]
    return sessions


arrivals = st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 4), st.none() | st.integers(0, 4))


@given(
    steps=st.lists(arrivals | st.integers(0, 30), min_size=1, max_size=25),
    as_of=st.integers(0, 4),
    looks=st.booleans(),
)
def test_order(steps: list[tuple[str, int | None, int | None] | int], as_of: int, looks: bool) -> None:
    async def work() -> None:
        async with opened(":memory:", hasty=True) as store:
            scribe = await StoreWriter(store).begin()
            said: list[Said] = []
            for step in steps:
                if looks:  # then the columns are mended, not read anew
                    await scribe.ask("harbour", window=30)
                if isinstance(step, int):
                    if said:
                        await scribe.erase(said.pop(step % len(said)).id)
                    continue
                session, day, valid = step
                id = await scribe.add(
                    "The harbour.",
                    session=session,
                    occurred_at=None if day is None else DAY_ZERO + timedelta(days=day),
                    valid_from=None if valid is None else DAY_ZERO + timedelta(days=valid),
                )
                said.append(Said(id, session, day, valid))
            assert told_order(await scribe.ask("harbour", window=30), said) == in_order(said)
            visible = {one.id for one in said if one.valid_day is None or one.valid_day <= as_of}
            then = await scribe.ask("harbour", as_of=to_micros(DAY_ZERO + timedelta(days=as_of)), window=30)
            told = told_order(then, said)
            expected = {session: [id for id in ids if id in visible] for session, ids in in_order(said).items()}
            assert told == {session: ids for session, ids in expected.items() if ids}

    run(work())


def test_parts_stand_one_after_the_other_and_neighbours_come_along() -> None:
    async def work() -> None:
        async with opened(":memory:") as store:
            scribe = await StoreWriter(store).begin()
            first = await scribe.add("Before it.", session="s", vector=None)
            second = await scribe.add("The harbour, at last.", session="s", vector=None)
            third = await scribe.add("After it.", session="s", vector=None)
            for n in range(5):
                await scribe.add(f"Long after it, {n}.", session="s", vector=None)
            await scribe.change(first, part=1)
            found = await scribe.ask("harbour", window=1)
            assert found.ids[:3] == (first, second, third)
            assert found.pool.tolist() == [True, True, True, False]  # an anchor's neighbours join the pool
            assert found.seeds.tolist() == [32, 2 | 32, 32, 0]
            wider = await scribe.ask("harbour", window=2)
            assert wider.pool.tolist() == [True] * 4 + [False] * 2  # theirs are context
            assert wider.next.tolist() == [1, 2, 3, 4, 5, -1]

    run(work())
