"""The order of NEXT within a session after late additions and deletes."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.integration.embedded import StoreWriter, opened, run
from zettel.model import TIME_MIN, to_micros
from zettel.ports.query import Candidates

DAY_ZERO = datetime(2024, 1, 1, tzinfo=timezone.utc)


class SessionNote(NamedTuple):
    id: str
    session: str
    day: int | None
    valid_day: int | None


def expected_order(notes: list[SessionNote]) -> dict[str, list[str]]:
    """Return the reference order: an undated note follows the last dated note that arrived before it."""
    sessions: dict[str, list[tuple[int, int, str]]] = {}
    last: dict[str, int] = {}
    for arrival, note in enumerate(notes):
        if note.day is not None:
            last[note.session] = note.day
        sessions.setdefault(note.session, []).append((last.get(note.session, TIME_MIN), arrival, note.id))
    return {session: [id for *_, id in sorted(rows)] for session, rows in sessions.items()}


def candidate_order(candidates: Candidates, notes: list[SessionNote]) -> dict[str, list[str]]:
    """Return the order in the candidates, by following their rows."""
    sessions_by_id, sessions = {note.id: note.session for note in notes}, dict[str, list[str]]()
    for row, before in enumerate(candidates.previous.tolist()):
        if before == -1 and candidates.session[row] >= 0:
            rows = [row]
            while (following := int(candidates.next[rows[-1]])) != -1:
                assert candidates.previous[following] == rows[-1]
                rows.append(following)
            name = sessions_by_id[candidates.ids[row]]
            assert name not in sessions
            assert {candidates.session[note] for note in rows} == {candidates.session[row]}
            sessions[name] = [candidates.ids[note] for note in rows]
    return sessions


arrivals = st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 4), st.none() | st.integers(0, 4))


@given(
    steps=st.lists(arrivals | st.integers(0, 30), min_size=1, max_size=25),
    as_of=st.integers(0, 4),
    searches=st.booleans(),
)
def test_candidates_follow_the_session_order(
    steps: list[tuple[str, int | None, int | None] | int], as_of: int, searches: bool
) -> None:
    async def work() -> None:
        async with opened(":memory:", fast_writes=True) as store:
            writer = await StoreWriter(store).begin()
            notes: list[SessionNote] = []
            for step in steps:
                if searches:  # then the columns are updated, not read again
                    await writer.ask("harbour", window=30)
                if isinstance(step, int):
                    if notes:
                        await writer.erase(notes.pop(step % len(notes)).id)
                    continue
                session, day, valid = step
                id = await writer.add(
                    "The harbour.",
                    session=session,
                    occurred_at=None if day is None else DAY_ZERO + timedelta(days=day),
                    valid_from=None if valid is None else DAY_ZERO + timedelta(days=valid),
                )
                notes.append(SessionNote(id, session, day, valid))
            assert candidate_order(await writer.ask("harbour", window=30), notes) == expected_order(notes)
            visible = {note.id for note in notes if note.valid_day is None or note.valid_day <= as_of}
            candidates = await writer.ask("harbour", as_of=to_micros(DAY_ZERO + timedelta(days=as_of)), window=30)
            order = candidate_order(candidates, notes)
            expected = {session: [id for id in ids if id in visible] for session, ids in expected_order(notes).items()}
            assert order == {session: ids for session, ids in expected.items() if ids}

    run(work())


def test_parts_are_adjacent_and_candidates_include_neighbours() -> None:
    async def work() -> None:
        async with opened(":memory:") as store:
            writer = await StoreWriter(store).begin()
            first = await writer.add("Before it.", session="s", vector=None)
            second = await writer.add("The harbour, at last.", session="s", vector=None)
            third = await writer.add("After it.", session="s", vector=None)
            for n in range(5):
                await writer.add(f"Long after it, {n}.", session="s", vector=None)
            await writer.change(first, part=1)
            candidates = await writer.ask("harbour", window=1)
            assert candidates.ids[:3] == (first, second, third)
            assert candidates.pool.tolist() == [True, True, True, False]  # an anchor's neighbours become candidates
            assert candidates.seeds.tolist() == [32, 2 | 32, 32, 0]
            wider = await writer.ask("harbour", window=2)
            assert wider.pool.tolist() == [True] * 4 + [False] * 2  # the outer neighbours are context only
            assert wider.next.tolist() == [1, 2, 3, 4, 5, -1]

    run(work())
