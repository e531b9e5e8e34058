"""The embedded store against the exhaustive reference store after the same writes, at any valid or known time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.embedded import ANN, StoreWriter, opened, run, vector
from zettel.graph.columnar import candidate_columns
from zettel.graph.columnar.columns import Columns
from zettel.graph.embedded import words
from zettel.model import LinkType, Scope, to_micros
from zettel.ports.candidate_rules import HUB_LINKS
from zettel.ports.operations import DropMentions
from zettel.ports.query import Filter
from zettel.testing.reference_store import ReferenceStore
from zettel.testing.store_comparison import DAY_ZERO, candidate_rows, compare_answers, compare_reads

pytestmark = pytest.mark.integration
WORDS = ["harbour", "Kestrel", "cello", "Oslo", "glacier", "bakery", "ferry", "Ida"]
ANGLES = [0, 0.31, 0.73, 1.27, 1.97, 2.71]  # all distances differ
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(lambda words: f"The {' and '.join(words)}.")
times = st.none() | st.integers(0, 9).map(lambda day: DAY_ZERO + timedelta(days=day))
vectors = st.none() | st.sampled_from([vector(np.cos(a), np.sin(a)) for a in ANGLES])
additions = st.fixed_dictionaries(
    {
        "content": sentences,
        "occurred_at": times,
        "session": st.sampled_from([None, "a", "b"]),
        "speaker": st.sampled_from([None, "Ann", "Bob"]),
        "title": st.sampled_from([None, None, "Kestrel", "The Ferry (boat)"]),
        "tags": st.sampled_from([(), ("pet",), ("pet", "sea")]),
        "metadata": st.sampled_from([{}, {"room": "1"}, {"room": "1", "floor": 2}]),
        "source": st.sampled_from([None, "a.txt", "b.txt"]),
        "identity": st.none() | st.sampled_from(["x", "y"]),
        "vector": vectors,
    }
)
changes = st.fixed_dictionaries(
    {},
    optional={
        "content": sentences,
        "tags": st.sampled_from([["pet"], []]),
        "metadata": st.just({"room": "2"}),
        "archived": st.booleans(),
        "valid_from": times.map(lambda moment: moment.isoformat() if moment else None),
        "valid_to": times.map(lambda moment: moment.isoformat() if moment else None),
        "kind": st.sampled_from(["semantic", "episodic"]),
        "session": st.sampled_from([None, "a", "c"]),
    },
)
note = st.integers(0, 99)
steps = st.one_of(
    additions.map(lambda fields: ("add", fields)),
    additions.map(lambda fields: ("add", fields)),
    st.tuples(note, changes, vectors).map(lambda drawn: ("change", drawn)),
    st.tuples(note, note, st.sampled_from(LinkType)).map(lambda drawn: ("link", drawn)),
    note.map(lambda number: ("undo", number)),
    st.tuples(note, note).map(lambda drawn: ("mention", drawn)),
    note.map(lambda number: ("forget", number)),
    note.map(lambda number: ("erase", number)),
    note.map(lambda number: ("erase revision", number)),
)
filters = st.builds(
    Filter,
    kinds=st.sampled_from([(), ("episodic",), ("semantic", "insight")]),
    tags=st.sampled_from([(), ("pet",), ("sea", "pet")]),
    session=st.sampled_from([None, "a", "nowhere"]),
    speaker=st.sampled_from([None, "Ann"]),
    since=st.none() | st.just(to_micros(DAY_ZERO + timedelta(days=2))),
    until=st.none() | st.just(to_micros(DAY_ZERO + timedelta(days=6))),
    metadata=st.sampled_from([(), ("room=1",), ("floor=2", "room=1")]),
    source=st.sampled_from([None, "a.txt"]),
)


@pytest.fixture(autouse=True, scope="module")
def short_stretches() -> Iterator[None]:
    """Make a stretch of few notes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "STRETCH_BITS", 3)
        yield


async def apply_step(writer: StoreWriter, step: tuple[str, Any], present: list[str], versions: dict[str, int]) -> None:
    action, drawn = step
    if action == "add":
        present.append(await writer.add(**drawn))
        versions[present[-1]] = 1
        return
    if not present:
        return

    def pick(number: int) -> str:
        return present[number % len(present)]

    if action == "change":
        id = pick(drawn[0])
        versions[id] += 1
        await writer.change(id, vector=drawn[2], **drawn[1])
    elif action == "link":
        id = pick(drawn[0])
        if id != pick(drawn[1]):
            versions[id] += 1
            await writer.change(id, links=[(pick(drawn[1]), drawn[2])], inputs=[pick(drawn[1])])
    elif action == "undo" and versions[pick(drawn)] > 1:
        id = pick(drawn)
        versions[id] += 1
        await writer.change(id, undoes=(versions[id] - 1,))
    elif action == "erase revision" and versions[pick(drawn)] > 1:
        id = pick(drawn)
        versions[id] += 1
        await writer.change(id, erased=(versions[id] - 1,))
        versions[id] = 0  # an erased revision cannot be reverted
    elif action == "mention" and pick(drawn[0]) != pick(drawn[1]):
        await writer.mention(pick(drawn[0]), pick(drawn[1]))
    elif action == "forget":
        await writer.do(DropMentions((pick(drawn),)))
    elif action == "erase":
        await writer.erase(pick(drawn))
        del versions[pick(drawn)]
        present.remove(pick(drawn))


@settings(max_examples=400)
@given(
    plan=st.lists(steps, min_size=1, max_size=25),
    filter=filters,
    as_of=st.none() | st.integers(0, 9).map(lambda day: to_micros(DAY_ZERO + timedelta(days=day))),
    past_step=st.none() | st.integers(0, 24),
)
def test_the_embedded_store_equals_the_reference_store(
    plan: list[tuple[str, Any]],
    filter: Filter,
    as_of: int | None,
    past_step: int | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async def work(path: Path) -> None:
        async with opened(path, fast_writes=True) as embedded:
            reference = ReferenceStore()
            ours, theirs = await StoreWriter(embedded).begin(), await StoreWriter(reference).begin()
            writers: list[tuple[StoreWriter, list[str], dict[str, int]]] = [(ours, [], {}), (theirs, [], {})]
            moments: list[tuple[int, int]] = []
            for step in plan:
                if step[0] == "change":  # searches in between update the columns step by step
                    await ours.ask("harbour")
                for writer, present, versions in writers:
                    await apply_step(writer, step, present, versions)
                states = [await store.state(ANN) for store in (embedded, reference)]
                assert states[0].seq == states[1].seq
                assert states[0].latest == states[1].latest
                moments.append((states[0].recorded_at, states[1].recorded_at))
            ids = writers[0][1]
            assert [line for line in await embedded.check(repair=False) if "no vector" not in line] == []
            await compare_reads(embedded, reference, ids, filter)
            known = (None, None) if past_step is None else moments[min(past_step, len(moments) - 1)]
            await compare_answers(ours, theirs, ids, filter, as_of, known)

    run(work(tmp_path_factory.mktemp("agreement") / "a.db"))


def test_an_empty_scope_has_candidates_of_the_right_shapes(tmp_path: Path) -> None:
    """All arrays have the right shape and dtype."""

    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            writer = await StoreWriter(store).begin()
            for repetition in range(2):
                candidates = await writer.ask("harbour", "ferri", vector=vector(1), names=("kestrel",), times=((0, 9),))
                assert list(candidates.ids) == []
                assert candidates.tf.shape == (0, 2)
                assert candidates.cosine.shape == (0,)
                assert candidates.session_tf.shape == (0, 2)
                assert candidates.stats.df.tolist() == [0, 0]
                for name in (
                    "seeds",
                    "seq",
                    "event",
                    "kind",
                    "speaker",
                    "session",
                    "previous",
                    "next",
                    "length",
                    "valid_to",
                    "term_note",
                ):
                    assert getattr(candidates, name).dtype == np.int64
                    assert getattr(candidates, name).shape == (0,)
                for name in ("pool", "is_question", "term_named"):
                    assert getattr(candidates, name).dtype == bool
                if not repetition:
                    await writer.erase(await writer.add("The harbour."))
            assert await store.notes(ANN, ["n_9"]) == {}

    run(work())


def test_past_candidates_have_term_names(tmp_path: Path) -> None:
    """Also when no note contains the terms any more and the file has deleted them."""

    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            writer = await StoreWriter(store).begin()
            ids = [await writer.add(f"The Kestrel was {at}.") for at in ("here", "there")]
            known_at = (await store.state(ANN)).recorded_at
            before = list((await writer.ask("kestrel", names=("kestrel",))).term_keys)
            for id in ids:
                await writer.change(id, content="The ferry.")
            assert list((await writer.ask("kestrel", names=("kestrel",))).term_keys) == []
            past_candidates = await writer.ask("kestrel", names=("kestrel",), known_at=known_at)
            assert list(past_candidates.term_keys) == before == ["kestrel"]

    run(work())


def test_candidates_are_not_expanded_through_a_hub(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db", fast_writes=True) as store:
            writer = await StoreWriter(store).begin()
            hub = await writer.add("The harbour.", vector=None)
            ids = [await writer.add(f"Number {number}.", vector=None) for number in range(HUB_LINKS + 1)]
            await writer.change(hub, links=[(id, LinkType.RELATES) for id in ids])
            assert list((await writer.ask("harbour")).ids) == [hub]
            await writer.change(hub, links=[(id, LinkType.RELATES) for id in ids[1:]], undoes=(2,))
            assert {*(await writer.ask("harbour")).ids} == {hub, *ids[1:]}

    run(work())


def test_a_very_high_term_frequency_is_capped(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            writer = await StoreWriter(store).begin()
            await writer.add("glacier " * 65535)
            candidates = await writer.ask("glacier")
            assert candidates.tf[0, 0] == 2**15 - 1

    run(work())


def test_a_failed_search_leaves_clean_scratch_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise MemoryError

    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            writer = await StoreWriter(store).begin()
            first = await writer.add("The harbour and the ferry.", session="a")
            second = await writer.add("The ferry and the glacier.", session="a")
            await writer.change(first, links=[(second, LinkType.RELATES)])
            options = {"vector": vector(1), "names": ("ferry",)}
            candidates = await writer.ask("ferry", "harbour", **options)
            expected = candidate_rows(candidates, skip_cosines=set(), term_notes={first, second})
            for part in ("_tf", "_links"):
                with monkeypatch.context() as patched:
                    patched.setattr(candidate_columns, part, fail)
                    with pytest.raises(MemoryError):
                        await writer.ask("ferry", "harbour", **options)
                [(_, [columns])] = store._scopes._entries.values()
                assert isinstance(columns, Columns)
                assert (columns.scratch() == -1).all()
                candidates = await writer.ask("ferry", "harbour", **options)
                rows = candidate_rows(candidates, skip_cosines=set(), term_notes={first, second})
                assert rows == expected

    run(work())


def test_the_size_of_cached_scopes_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            writer = await StoreWriter(store).begin()
            for user in ("bo", "cy"):
                await StoreWriter(store, Scope(user=user)).ask("ferry")
            assert not store._scopes._entries  # these scopes are empty
            await writer.add("The ferry.")
            await writer.ask("ferry")
            cache = store._scopes
            assert cache._size == sum(columns.nbytes for _, cell in cache._entries.values() for columns in cell) > 0
            with cache.locked(ANN.key, writer.space):
                cache._entries.clear()  # as if other scopes had evicted it
                cache._sizes.clear()
                cache._size = 0
            assert cache._size == 0

    run(work())
