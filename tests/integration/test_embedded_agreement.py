"""The embedded store against the exhaustive one, after the same writes in any order, under both clocks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.reference import ReferenceStore
from tests.integration.embedded import ANN, Scribe, opened, run, vector
from zettel.annotate.index import vector_text
from zettel.batch import DropMentions
from zettel.fold import fold
from zettel.graph.columnar import shaping
from zettel.graph.columnar.columns import Columns
from zettel.graph.embedded import words
from zettel.model import LinkType, Scope, to_micros
from zettel.ports import Lookup
from zettel.query import Candidates, Filter
from zettel.search.pool import HUB_LINKS

pytestmark = pytest.mark.integration
WORDS = ["harbour", "Kestrel", "cello", "Oslo", "glacier", "bakery", "ferry", "Ida"]
ANGLES = [0, 0.31, 0.73, 1.27, 1.97, 2.71]  # no two pairs are equally far apart
DAY_ZERO = datetime(2024, 1, 1, tzinfo=timezone.utc)
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(lambda words: f"The {' and '.join(words)}.")
times = st.none() | st.integers(0, 9).map(lambda day: DAY_ZERO + timedelta(days=day))
vectors = st.none() | st.sampled_from([vector(np.cos(a), np.sin(a)) for a in ANGLES])
additions = st.fixed_dictionaries(
    {
        "content": sentences,
        "occurred_at": times,
        "session": st.sampled_from([None, "a", "b"]),
        "role": st.sampled_from([None, "Ann", "Bob"]),
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
    note.map(lambda which: ("undo", which)),
    st.tuples(note, note).map(lambda drawn: ("mention", drawn)),
    note.map(lambda which: ("forget", which)),
    note.map(lambda which: ("erase", which)),
    note.map(lambda which: ("erase revision", which)),
)
filters = st.builds(
    Filter,
    kinds=st.sampled_from([(), ("episodic",), ("semantic", "insight")]),
    tags=st.sampled_from([(), ("pet",), ("sea", "pet")]),
    session=st.sampled_from([None, "a", "nowhere"]),
    role=st.sampled_from([None, "Ann"]),
    since=st.none() | st.just(to_micros(DAY_ZERO + timedelta(days=2))),
    until=st.none() | st.just(to_micros(DAY_ZERO + timedelta(days=6))),
    metadata=st.sampled_from([(), ("room=1",), ("floor=2", "room=1")]),
    source=st.sampled_from([None, "a.txt"]),
)


@pytest.fixture(autouse=True, scope="module")
def short() -> Iterator[None]:
    """A few notes are a stretch here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "STRETCH_BITS", 3)
        yield


async def take(scribe: Scribe, step: tuple[str, Any], present: list[str], versions: dict[str, int]) -> None:
    what, drawn = step
    if what == "add":
        present.append(await scribe.add(**drawn))
        versions[present[-1]] = 1
        return
    if not present:
        return

    def pick(which: int) -> str:
        return present[which % len(present)]

    if what == "change":
        id = pick(drawn[0])
        versions[id] += 1
        await scribe.change(id, vector=drawn[2], **drawn[1])
    elif what == "link":
        id = pick(drawn[0])
        if id != pick(drawn[1]):
            versions[id] += 1
            await scribe.change(id, links=[(pick(drawn[1]), drawn[2])], inputs=[pick(drawn[1])])
    elif what == "undo" and versions[pick(drawn)] > 1:
        id = pick(drawn)
        versions[id] += 1
        await scribe.change(id, undoes=(versions[id] - 1,))
    elif what == "erase revision" and versions[pick(drawn)] > 1:
        id = pick(drawn)
        versions[id] += 1
        await scribe.change(id, erased=(versions[id] - 1,))
        versions[id] = 0  # what is erased cannot be taken back
    elif what == "mention" and pick(drawn[0]) != pick(drawn[1]):
        await scribe.mention(pick(drawn[0]), pick(drawn[1]))
    elif what == "forget":
        await scribe.do(DropMentions((pick(drawn),)))
    elif what == "erase":
        await scribe.erase(pick(drawn))
        del versions[pick(drawn)]
        present.remove(pick(drawn))


def rows(found: Candidates, *, without: set[str], here: set[str]) -> dict[str, Any]:
    """Candidates as plain values by note id; ``without``: notes whose vectors are not compared.

    Of the Terms of notes that are ``here`` those that the question names, and those that bind two of these.
    """
    ids, beside, stats = list(found.ids), [*found.ids, None], found.stats
    uses = list(zip(found.term_note.tolist(), found.term_index.tolist(), strict=True))
    holders = Counter(term for row, term in uses if ids[row] in here)
    links = defaultdict(list)
    for source, target, type, weight in zip(
        found.link_source, found.link_target, found.link_type, found.link_weight, strict=True
    ):
        links[ids[source]].append((ids[target], int(type), round(float(weight), 5)))
    told: dict[str, Any] = {
        "stats": (stats.notes, stats.tokens, stats.df.tolist(), stats.used, stats.archived),
        "order": found.seq.tolist(),
    }
    for row, id in enumerate(ids):
        session = found.session[row]
        told[id] = {
            "pool": bool(found.pool[row]),
            "said": (int(found.kind[row]), [*found.role_names, None][found.role[row]], int(found.length[row])),
            "asks": bool(found.is_question[row]),
            "times": [int(c[row]) for c in (found.occurred_at, found.valid_from, found.valid_to)],
            "beside": (beside[found.previous[row]], beside[found.next[row]]),
            "tf": found.tf[row].tolist(),
            "cosine": id in without or round(float(found.cosine[row]), 5),
            "links": sorted(links[id]),
            "terms": {
                found.term_keys[term]: (int(found.term_df[term]), bool(found.term_named[term]))
                for holder, term in uses
                if holder == row and id in here and (found.term_named[term] or holders[term] >= 2)
            },
            "session": None
            if session < 0
            else (
                found.session_tf[session].tolist(),
                int(found.session_length[session]),
            ),
            "parts": [other for place, other in enumerate(ids) if found.event[place] == found.event[row]],
        }
    return told


@settings(max_examples=400)
@given(
    plan=st.lists(steps, min_size=1, max_size=25),
    filter=filters,
    as_of=st.none() | st.integers(0, 9).map(lambda day: to_micros(DAY_ZERO + timedelta(days=day))),
    back=st.none() | st.integers(0, 24),
)
def test_same_state(
    plan: list[tuple[str, Any]],
    filter: Filter,
    as_of: int | None,
    back: int | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async def work(path: Path) -> None:
        async with opened(path, hasty=True) as embedded:
            reference = ReferenceStore()
            ours, theirs = await Scribe(embedded).begin(), await Scribe(reference).begin()
            held: list[tuple[Scribe, list[str], dict[str, int]]] = [(ours, [], {}), (theirs, [], {})]
            moments: list[tuple[int, int]] = []
            for step in plan:
                if step[0] == "change":  # whoever asks in between keeps the columns in step bit by bit
                    await ours.ask("harbour")
                for scribe, present, versions in held:
                    await take(scribe, step, present, versions)
                states = [await store.state(ANN) for store in (embedded, reference)]
                assert states[0].seq == states[1].seq
                assert states[0].latest == states[1].latest
                moments.append((states[0].recorded_at, states[1].recorded_at))
            ids = held[0][1]
            assert [line for line in await embedded.check(repair=False) if "no vector" not in line] == []
            await compare_reads(embedded, reference, ids, filter)
            known = (None, None) if back is None else moments[min(back, len(moments) - 1)]
            await compare_answers(ours, theirs, ids, filter, as_of, known)

    run(work(tmp_path_factory.mktemp("agreement") / "a.db"))


def untimed(value: Any) -> Any:
    """Without recorded times, which are each store's own."""
    if isinstance(value, (list, tuple)):
        return [untimed(one) for one in value]
    if isinstance(value, dict):
        return {key: untimed(one) for key, one in value.items()}
    if hasattr(value, "model_dump"):
        told = value.model_dump()
        told.pop("recorded_at", None)
        told.pop("valid_to", None)  # may be the recorded time of what replaced it
        return {key: untimed(one) for key, one in told.items() if not (key == "links" and not one)}
    return value


async def compare_reads(embedded: Any, reference: Any, ids: list[str], filter: Filter) -> None:
    asked = Lookup(
        identities=("x", "y", "identity 1"),
        names=("kestrel", "ferry", "nobody"),
        titles=(("ferry", ("ferri",)), ("kestrel", ("kestrel", "harbour")), ("nobody", ("nobodi",))),
        tokens=("harbour", "ferri", "nobodi"),
    )
    events = [id.replace("n_", "e_") for id in ids]
    assert await embedded.uses(ANN, ids) == await reference.uses(ANN, ids)
    shown = [note.id for note in await reference.page(ANN, Filter(), 0, 100)]
    vectored = any((1, id) in reference.of(ANN).vectors for id in shown)
    for method, arguments in (
        ("notes", (ids,)), ("events", (events,)), ("links", (ids[:3],)), ("page", (filter, 3, 5)),
        ("page", (Filter(), 0, 100)), ("near", (ids, 1, 3)),
    ):  # fmt: skip
        if method == "near" and not vectored:
            continue
        one, other = [await getattr(store, method)(ANN, *arguments) for store in (embedded, reference)]
        if method == "links":
            one, other = [sorted(map(str, untimed(links))) for links in (one, other)]
        if method == "near":
            one, other = [
                [(near.note, [(id, round(cosine, 5)) for id, cosine in near.others]) for near in sorted(found)]
                for found in (one, other)
            ]
        assert untimed(one) == untimed(other), method
    for id in ids:
        assert await embedded.terms(ANN, id) == await reference.terms(ANN, id)
    histories = [await store.histories(ANN, ids) for store in (embedded, reference)]
    for id in ids:
        assert untimed(histories[0][id].base) == untimed(histories[1][id].base)
        assert [(r.version, r.live, r.change) for r in histories[0][id].revisions] == [
            (r.version, r.live, r.change) for r in histories[1][id].revisions
        ]
    cited = [await store.citing(ANN, ids[:2]) for store in (embedded, reference)]
    assert {(r.note, r.version) for r in cited[0]} == {(r.note, r.version) for r in cited[1]}
    for method in ("events_like", "notes_of"):
        one, other = [await getattr(store, method)(ANN, events[:3]) for store in (embedded, reference)]
        assert set(one) == set(other)
    one, other = [await store.lookup(ANN, asked) for store in (embedded, reference)]
    assert (one.tombstones, one.has_titles, one.notes, dict(one.df)) == (
        other.tombstones,
        other.has_titles,
        other.notes,
        dict(other.df),
    )
    assert {name: ids for name, ids in one.named.items() if ids} == {n: ids for n, ids in other.named.items() if ids}
    naming = [{key: [n.id for n in notes] for key, notes in found.naming.items() if notes} for found in (one, other)]
    assert naming[0] == naming[1]
    assert untimed(dict(one.events)) == untimed(dict(other.events))
    dumped: list[list[Any]] = [[], []]
    for store, pairs in zip((embedded, reference), dumped, strict=True):
        async for pair in store.dump(ANN):
            pairs.append(pair)
    assert untimed(dumped[0]) == untimed(dumped[1])


async def compare_answers(
    ours: Scribe,
    theirs: Scribe,
    ids: list[str],
    filter: Filter,
    as_of: int | None,
    known: tuple[int | None, int | None],
) -> None:
    asked: dict[str, Any] = {
        "vector": vector(1, 1), "names": ("kestrel", "oslo", "ferry"), "filter": filter, "as_of": as_of,
        "times": ((to_micros(DAY_ZERO), to_micros(DAY_ZERO + timedelta(days=1))),),
    }  # fmt: skip
    for names in (asked["names"], ()):
        found = await ours.ask("harbour", "cello", "ferri", **{**asked, "names": names}, known_at=known[0])
        all_ = await theirs.ask("harbour", "cello", "ferri", **{**asked, "names": names}, known_at=known[1])
        # With so few notes every allowed one that a way of seeding reaches is in the pool, of the others only context.
        here = set(found.ids)
        pooled = {id for id, pool in zip(found.ids, found.pool.tolist(), strict=True) if pool}
        reached = {id for id, seeds in zip(all_.ids, all_.seeds.tolist(), strict=True) if seeds}
        allowed = {id for id, pool in zip(all_.ids, all_.pool.tolist(), strict=True) if pool}
        reworded = await reworded_since(theirs, ids, known[1])
        assert (reached & allowed) - reworded <= here
        assert pooled <= allowed
        one, other = [rows(told, without=reworded, here=pooled) for told in (found, all_)]
        assert one["stats"] == other["stats"]
        assert one["order"] == sorted(one["order"])
        for id in here:
            mine, full = one[id], other[id]
            full["pool"] = mine["pool"]
            full["beside"] = tuple(beside if beside in here else None for beside in full["beside"])
            full["links"] = [link for link in full["links"] if link[0] in here]
            full["parts"] = [part for part in full["parts"] if part in here]
            mine["times"][2] = full["times"][2] = mine["times"][2] if max(mine["times"][2], full["times"][2]) > 0 else 0
            assert mine == full


async def reworded_since(scribe: Scribe, ids: list[str], known_at: int | None) -> set[str]:
    """Notes that are embedded by other words now: the embedded store compares no vector then."""
    if known_at is None:
        return set()
    histories = await scribe.store.histories(scribe.scope, ids)
    return {
        id
        for id, history in histories.items()
        if vector_text(fold(history.base, history.revisions)[0])
        != vector_text(fold(history.base, history.revisions, known_at)[0])
    }


def test_a_scope_of_nothing(tmp_path: Path) -> None:
    """Right shapes and kinds of numbers, never an error."""

    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            scribe = await Scribe(store).begin()
            for again in range(2):
                found = await scribe.ask("harbour", "ferri", vector=vector(1), names=("kestrel",), times=((0, 9),))
                assert list(found.ids) == []
                assert found.tf.shape == (0, 2)
                assert found.cosine.shape == (0,)
                assert found.session_tf.shape == (0, 2)
                assert found.stats.df.tolist() == [0, 0]
                for name in (
                    "seeds",
                    "seq",
                    "event",
                    "kind",
                    "role",
                    "session",
                    "previous",
                    "next",
                    "length",
                    "valid_to",
                    "term_note",
                ):
                    assert getattr(found, name).dtype == np.int64
                    assert getattr(found, name).shape == (0,)
                for name in ("pool", "is_question", "term_named"):
                    assert getattr(found, name).dtype == bool
                if not again:
                    await scribe.erase(await scribe.add("The harbour."))
            assert await store.notes(ANN, ["n_9"]) == {}

    run(work())


def test_what_is_known_of_terms_is_called_by_their_names(tmp_path: Path) -> None:
    """Though no note holds them any more, and the file has forgotten them."""

    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            scribe = await Scribe(store).begin()
            ids = [await scribe.add(f"The Kestrel was {at}.") for at in ("here", "there")]
            known_at = (await store.state(ANN)).recorded_at
            before = list((await scribe.ask("kestrel", names=("kestrel",))).term_keys)
            for id in ids:
                await scribe.change(id, content="The ferry.")
            assert list((await scribe.ask("kestrel", names=("kestrel",))).term_keys) == []
            then = await scribe.ask("kestrel", names=("kestrel",), known_at=known_at)
            assert list(then.term_keys) == before == ["kestrel"]

    run(work())


def test_a_hub_is_reached_but_not_left(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db", hasty=True) as store:
            scribe = await Scribe(store).begin()
            hub = await scribe.add("The harbour.", vector=None)
            ids = [await scribe.add(f"Number {number}.", vector=None) for number in range(HUB_LINKS + 1)]
            await scribe.change(hub, links=[(id, LinkType.RELATES) for id in ids])
            assert list((await scribe.ask("harbour")).ids) == [hub]
            await scribe.change(hub, links=[(id, LinkType.RELATES) for id in ids[1:]], undoes=(2,))
            assert {*(await scribe.ask("harbour")).ids} == {hub, *ids[1:]}

    run(work())


def test_a_word_that_stands_in_a_note_very_often(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            scribe = await Scribe(store).begin()
            await scribe.add("glacier " * 65535)
            found = await scribe.ask("glacier")
            assert found.tf[0, 0] == 2**15 - 1

    run(work())


def test_work_that_is_broken_off_leaves_no_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise MemoryError

    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            scribe = await Scribe(store).begin()
            first = await scribe.add("The harbour and the ferry.", session="a")
            second = await scribe.add("The ferry and the glacier.", session="a")
            await scribe.change(first, links=[(second, LinkType.RELATES)])
            asked = {"vector": vector(1), "names": ("ferry",)}
            expected = rows(await scribe.ask("ferry", "harbour", **asked), without=set(), here={first, second})
            for part in ("_tf", "_links"):
                with monkeypatch.context() as patched:
                    patched.setattr(shaping, part, broken)
                    with pytest.raises(MemoryError):
                        await scribe.ask("ferry", "harbour", **asked)
                [(_, [columns])] = store._scopes._held.values()
                assert isinstance(columns, Columns)
                assert (columns.scratch() == -1).all()
                assert not columns.sums().any()
                found = rows(await scribe.ask("ferry", "harbour", **asked), without=set(), here={first, second})
                assert found == expected

    run(work())


def test_scopes_in_memory_are_counted_as_they_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            scribe = await Scribe(store).begin()
            for user in ("bo", "cy"):
                await Scribe(store, Scope(user=user)).ask("ferry")
            assert not store._scopes._held  # nothing was ever written there
            await scribe.add("The ferry.")
            await scribe.ask("ferry")
            held = store._scopes
            assert held._size == sum(columns.nbytes for _, cell in held._held.values() for columns in cell) > 0
            with held.locked(ANN.key, scribe.space):
                held._held.clear()  # as if others had needed the room
                held._sizes.clear()
                held._size = 0
            assert held._size == 0

    run(work())
