"""Comparison of a store with the reference store: the same reads and the same candidates."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from zettel.core.fold import fold
from zettel.model import to_micros
from zettel.ports import LookupQuery
from zettel.ports.query import Candidates, Filter, Selection
from zettel.testing.store_writer import ANN, StoreWriter, vector
from zettel.text.index import vector_text

DAY_ZERO = datetime(2024, 1, 1, tzinfo=timezone.utc)


def candidate_rows(candidates: Candidates, *, skip_cosines: set[str], term_notes: set[str]) -> dict[str, Any]:
    """Candidates as plain values by note id, without the cosines of ``skip_cosines``.

    Terms are those of ``term_notes`` that the question names or that two of these notes share.
    """
    ids, stats = list(candidates.ids), candidates.stats
    neighbours = [*ids, None]  # row -1
    uses = list(zip(candidates.term_note.tolist(), candidates.term_index.tolist(), strict=True))
    df = Counter(term for row, term in uses if ids[row] in term_notes)
    links = defaultdict(list)
    for source, target, type, weight in zip(
        candidates.link_source, candidates.link_target, candidates.link_type, candidates.link_weight, strict=True
    ):
        links[ids[source]].append((ids[target], int(type), round(float(weight), 5)))
    rows: dict[str, Any] = {
        "stats": (stats.notes, stats.tokens, stats.df.tolist(), stats.used, stats.archived),
        "order": candidates.seq.tolist(),
    }
    for row, id in enumerate(ids):
        session = candidates.session[row]
        rows[id] = {
            "pool": bool(candidates.pool[row]),
            "kind": int(candidates.kind[row]),
            "speaker": [*candidates.speaker_names, None][candidates.speaker[row]],
            "role": int(candidates.role[row]),
            "length": int(candidates.length[row]),
            "is_question": bool(candidates.is_question[row]),
            "times": [int(c[row]) for c in (candidates.occurred_at, candidates.valid_from, candidates.valid_to)],
            "neighbours": (neighbours[candidates.previous[row]], neighbours[candidates.next[row]]),
            "tf": candidates.tf[row].tolist(),
            "cosine": 0.0 if id in skip_cosines else float(candidates.cosine[row]),
            "links": sorted(links[id]),
            "terms": {
                candidates.term_keys[term]: (int(candidates.term_df[term]), bool(candidates.term_named[term]))
                for note_row, term in uses
                if note_row == row and id in term_notes and (candidates.term_named[term] or df[term] >= 2)
            },
            "session": session >= 0
            and (candidates.session_tf[session].tolist(), int(candidates.session_length[session])),
            "parts": [other for place, other in enumerate(ids) if candidates.event[place] == candidates.event[row]],
        }
    return rows


def without_times(value: Any) -> Any:
    """Plain values without recorded times, which differ between stores."""
    if isinstance(value, (list, tuple)):
        return [without_times(item) for item in value]
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items()}
    if hasattr(value, "model_dump"):
        fields = value.model_dump()
        fields.pop("recorded_at", None)
        fields.pop("valid_to", None)  # may be the recorded time of the replacement
        return {key: without_times(item) for key, item in fields.items() if not (key == "links" and not item)}
    return value


def selections_of(filter: Filter) -> list[Selection]:
    """Return selections of exact queries, of notes and of events, with each condition."""
    day = to_micros(DAY_ZERO + timedelta(days=2))
    filter = replace(filter, source=None)
    conditions: list[dict[str, Any]] = [
        {"filter": filter, "tokens": (("ferri",), ("cello", "harbour"))},
        {"filter": Filter(since=day, session="a"), "as_of": day},
        {"filter": Filter(), "tokens": (("harbour",), ("ferri",)), "terms": ("kestrel", "nobody")},
    ]
    return [Selection(**chosen, of_events=of_events) for chosen in conditions for of_events in (False, True)]


async def compare_reads(store: Any, reference: Any, ids: list[str], filter: Filter) -> None:
    """Assert that both stores return equal results for every read of these notes."""
    query = LookupQuery(
        identities=("x", "y", "identity 1"),
        names=("kestrel", "ferry", "nobody"),
        titles=(("ferry", ("ferri",)), ("kestrel", ("kestrel", "harbour")), ("nobody", ("nobodi",))),
        tokens=("harbour", "ferri", "nobodi"),
    )
    events = [id.replace("n_", "e_") for id in ids]
    assert await store.uses(ANN, ids) == await reference.uses(ANN, ids)
    page = [note.id for note in await reference.page(ANN, Filter(), 0, 100)]
    has_vectors = any((1, id) in reference.tables(ANN).vectors for id in page)
    for method, arguments in (
        ("notes", (ids,)), ("events", (events,)), ("links", (ids[:3],)), ("page", (filter, 3, 5)),
        ("page", (Filter(), 0, 100)), ("near", (ids, 1, 3)),
    ):  # fmt: skip
        if method == "near" and not has_vectors:
            continue
        ours, theirs = [await getattr(each, method)(ANN, *arguments) for each in (store, reference)]
        if method == "links":
            ours, theirs = [sorted(map(str, without_times(links))) for links in (ours, theirs)]
        if method == "near":
            ours, theirs = [
                [(near.note, [(id, round(cosine, 5)) for id, cosine in near.others]) for near in sorted(result)]
                for result in (ours, theirs)
            ]
        assert without_times(ours) == without_times(theirs), method
    for selection in selections_of(filter):
        for by in (), ("kind", "speaker", "role", "tag"), ("session", "day", "slot", "term"):
            tallies = [sorted(map(str, await each.tally(ANN, selection, by))) for each in (store, reference)]
            assert tallies[0] == tallies[1], (selection, by)
        for order in ("time", "-time", "-arrival"):
            chosen = [await each.select(ANN, selection, order, 3) for each in (store, reference)]
            assert chosen[0] == chosen[1], (selection, order)
    for id in ids:
        assert await store.terms(ANN, id) == await reference.terms(ANN, id)
    histories = [await each.histories(ANN, ids) for each in (store, reference)]
    for id in ids:
        assert without_times(histories[0][id].base) == without_times(histories[1][id].base)
        assert [(r.version, r.live, r.change) for r in histories[0][id].revisions] == [
            (r.version, r.live, r.change) for r in histories[1][id].revisions
        ]
    cited = [await each.citing(ANN, ids[:2]) for each in (store, reference)]
    assert {(r.note, r.version) for r in cited[0]} == {(r.note, r.version) for r in cited[1]}
    for method in ("events_like", "notes_of"):
        ours, theirs = [await getattr(each, method)(ANN, events[:3]) for each in (store, reference)]
        assert set(ours) == set(theirs)
    ours, theirs = [
        {
            "counts": (result.tombstones, result.has_titles, result.notes, dict(result.df)),
            "named": {name: ids for name, ids in result.named.items() if ids},
            "naming": {key: [note.id for note in notes] for key, notes in result.naming.items() if notes},
            "events": without_times(dict(result.events)),
        }
        for result in [await each.lookup(ANN, query) for each in (store, reference)]
    ]
    assert ours == theirs
    dumped: list[list[Any]] = [[], []]
    for each, pairs in zip((store, reference), dumped, strict=True):
        async for pair in each.dump(ANN):
            pairs.append(pair)
    assert without_times(dumped[0]) == without_times(dumped[1])


async def compare_answers(
    ours: StoreWriter,
    theirs: StoreWriter,
    ids: list[str],
    filter: Filter,
    as_of: int | None,
    known: tuple[int | None, int | None],
    cosine_tolerance: float = 1e-5,
) -> None:
    """Assert that both stores return equal candidates."""
    query: dict[str, Any] = {
        "vector": vector(1, 1), "names": ("kestrel", "oslo", "ferry"), "filter": filter, "as_of": as_of,
        "times": ((to_micros(DAY_ZERO), to_micros(DAY_ZERO + timedelta(days=1))),),
    }  # fmt: skip
    for names in (query["names"], ()):
        chosen = await ours.ask("harbour", "cello", "ferri", **{**query, "names": names}, known_at=known[0])
        all_ = await theirs.ask("harbour", "cello", "ferri", **{**query, "names": names}, known_at=known[1])
        # With so few notes, the pool has every allowed note that a source reaches. Other rows are context.
        ids_chosen = set(chosen.ids)
        pooled = {id for id, pool in zip(chosen.ids, chosen.pool.tolist(), strict=True) if pool}
        reached = {id for id, seeds in zip(all_.ids, all_.seeds.tolist(), strict=True) if seeds}
        allowed = {id for id, pool in zip(all_.ids, all_.pool.tolist(), strict=True) if pool}
        changed = await changed_since(theirs, ids, known[1])
        assert (reached & allowed) - changed <= ids_chosen
        assert pooled <= allowed
        rows, all_rows = [candidate_rows(c, skip_cosines=changed, term_notes=pooled) for c in (chosen, all_)]
        assert rows["stats"] == all_rows["stats"]
        assert rows["order"] == sorted(rows["order"])
        for id in ids_chosen:
            mine, full = rows[id], all_rows[id]
            full["pool"] = mine["pool"]
            full["neighbours"] = tuple(other if other in ids_chosen else None for other in full["neighbours"])
            full["links"] = [link for link in full["links"] if link[0] in ids_chosen]
            full["parts"] = [part for part in full["parts"] if part in ids_chosen]
            mine["times"][2] = full["times"][2] = mine["times"][2] if max(mine["times"][2], full["times"][2]) > 0 else 0
            assert abs(mine.pop("cosine") - full.pop("cosine")) <= cosine_tolerance
            assert mine == full, {name: (mine[name], full[name]) for name in full if mine[name] != full[name]}


async def changed_since(writer: StoreWriter, ids: list[str], known_at: int | None) -> set[str]:
    """Notes whose text changed since ``known_at``: stores may ignore their vectors."""
    if known_at is None:
        return set()
    histories = await writer.store.histories(writer.scope, ids)
    return {
        id
        for id, history in histories.items()
        if vector_text(fold(history.base, history.revisions)[0])
        != vector_text(fold(history.base, history.revisions, known_at)[0])
    }
