"""In-memory vector indexes: exact, and with inverted lists."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zettel.graph.columnar import ivf
from zettel.graph.columnar.ivf import CompactIndex, IvfIndex
from zettel.graph.columnar.tables import RowSelection
from zettel.graph.columnar.vector_index import ExactIndex, at_least, products
from zettel.graph.embedded import ivf_lists

DIM, ROWS, TOPICS = 32, 6000, 60


def spread(rows: int = ROWS, seed: int = 0) -> np.ndarray:
    """Return unit vectors clustered around topics, like embeddings of texts."""
    chance = np.random.default_rng(seed)
    vectors = np.random.default_rng(99).standard_normal((TOPICS, DIM))[chance.integers(0, TOPICS, rows)]
    vectors = vectors + 0.7 * chance.standard_normal((rows, DIM))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def filled(kind: str, vectors: np.ndarray) -> Any:
    if kind == "flat":
        flat = ExactIndex(DIM)
        flat.put(np.arange(len(vectors)), vectors)
        return flat
    listed = empty(kind, vectors)
    listed.put(np.arange(len(vectors)), vectors)
    return listed


def empty(kind: str, vectors: np.ndarray) -> Any:
    """Return an empty index for these vectors, which a compact index reads as the stored ones."""
    if kind == "flat":
        return ExactIndex(DIM)
    centroids = vectors[np.random.default_rng(1).choice(len(vectors), 64, replace=False)]
    code_range = np.stack([vectors.min(0), vectors.max(0)])
    if kind == "inverted":
        return IvfIndex(centroids, code_range)
    index = CompactIndex(centroids, code_range)
    index.read = lambda rows: vectors[rows]
    return index


def best(vectors: np.ndarray, vector: np.ndarray, k: int, allowed: np.ndarray) -> list[int]:
    rows = np.flatnonzero(allowed)
    return rows[np.argsort(-(vectors[rows] @ vector), kind="stable")[:k]].tolist()


@pytest.fixture(params=["flat", "inverted", "compact"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("share", [1.0, 0.9, 0.01])
def test_nearest_returns_the_best_allowed_rows(kind: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recall of the ten nearest rows is at least 0.98 under any filter."""
    monkeypatch.setattr(ivf, "FEW_ALLOWED", 500)
    monkeypatch.setattr(ivf, "FEW_READ", 500)
    monkeypatch.setattr(ivf, "PROBED", 24)
    vectors, queries = spread(), spread(100, seed=5)
    index = filled(kind, vectors)
    allowed = np.append(np.random.default_rng(3).random(ROWS) < share, False)
    shared = 0
    for vector in queries:
        rows = index.nearest(vector, 40, allowed).tolist()
        assert len(rows) == len(set(rows)) == 40
        assert allowed[rows].all()
        shared += len({*rows} & {*best(vectors, vector, 10, allowed[:-1])})
    assert shared >= (1000 if kind == "flat" else 980)
    exact = filled("flat", vectors).nearest(queries[0], 10, allowed).tolist()
    assert exact == best(vectors, queries[0], 10, allowed[:-1])


def test_deleted_rows_are_never_returned(kind: str) -> None:
    vectors = spread()
    index = filled(kind, vectors)
    deleted = np.arange(0, ROWS, 2)
    index.drop(deleted)
    everything = np.ones(ROWS + 1, bool)
    for vector in vectors[:50]:
        assert not {*index.nearest(vector, 10, everything).tolist()} & {*deleted.tolist()}
    assert index.embedded.tolist() == [row % 2 == 1 for row in range(ROWS)]
    assert not index.take(deleted).any()


def test_deleted_rows_do_not_displace_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """All nearest rows are deleted; the next ones are still found."""
    monkeypatch.setattr(ivf, "FEW_ALLOWED", 100)
    vectors = spread()
    index = filled("inverted", vectors)
    deleted = best(vectors, vectors[0], 200, np.ones(ROWS, bool))
    index.drop(np.array(sorted(deleted)))
    rows = index.nearest(vectors[0], 40, np.ones(ROWS + 1, bool)).tolist()
    assert len(rows) == 40
    assert not {*rows} & {*deleted}


def test_outdated_lists_do_not_hide_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored lists may be older than some vectors; these vectors are still found."""
    monkeypatch.setattr(ivf, "FEW_ALLOWED", 100)
    monkeypatch.setattr(ivf, "PROBED", 16)
    monkeypatch.setattr(ivf, "_COMPARED", 8)
    vectors, former = spread(), spread(seed=7)
    former[: ROWS // 2] = vectors[: ROWS // 2]
    old = filled("inverted", former)
    old_lists = old.lists(np.arange(ROWS))
    index = IvfIndex(old._centroids, np.stack([vectors.min(0), vectors.max(0)]))
    index.put(np.arange(ROWS), vectors, old_lists.copy())
    everything = np.ones(ROWS + 1, bool)
    changed = range(ROWS // 2, ROWS // 2 + 200)
    assert sum(row in index.nearest(vectors[row], 5, everything).tolist() for row in changed) >= 198
    unchanged = np.arange(ROWS // 2)
    assert (index.lists(unchanged) == old_lists[: ROWS // 2]).all()


def test_codes_of_deleted_rows_are_compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivf, "FEW_DEAD", 100)
    vectors = spread(1000)
    index = filled("inverted", vectors)
    before, lists_before, copy = index.take(np.arange(1000)), index.lists(np.arange(1000)), index.copy()
    for _ in range(10):
        index.put(np.arange(200), vectors[:200])
    index.drop(np.arange(990, 1000))
    assert index._index.ntotal == index._slots.used < 2000
    assert (index.take(np.arange(990)) == before[:990]).all()
    assert (index.lists(np.arange(990)) == lists_before[:990]).all()
    assert (copy.take(np.arange(1000)) == before).all()


def test_compaction_of_2_bit_codes_keeps_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivf, "FEW_DEAD", 100)
    monkeypatch.setattr(ivf, "FEW_READ", 100)
    vectors, everything = spread(1000), np.ones(1001, bool)
    index, queries = filled("compact", vectors), spread(20, seed=5)
    before = [index.nearest(vector, 10, everything).tolist() for vector in queries]
    lists_before = index.lists(np.arange(1000))
    for _ in range(10):
        index.put(np.arange(200), vectors[:200])
    assert index._index.ntotal == index._slots.used < 2000
    assert (index.lists(np.arange(1000)) == lists_before).all()
    assert [index.nearest(vector, 10, everything).tolist() for vector in queries] == before


def test_2_bit_codes_take_a_tenth_of_floats() -> None:
    """The reported bytes are those of the arrays, and equal vectors are equally near."""
    vectors = np.repeat(spread(2000), 8, axis=1)  # as many numbers as a static vector
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index = CompactIndex(vectors[:64], np.stack([vectors.min(0), vectors.max(0)]))
    index.read = lambda rows: vectors[rows]
    index.reserve(2000)
    index.put(np.arange(2000), vectors)
    assert index.nbytes <= 0.1 * vectors.nbytes
    assert index.nbytes == 2000 * ivf.bytes_per_vector(256, ivf.COMPACT)
    assert index.cosines(np.arange(3), vectors[0]) == pytest.approx(vectors[:3] @ vectors[0], abs=1e-6)


def test_only_large_searched_scopes_have_2_bit_codes() -> None:
    lists = spread(64), spread(2)
    kinds = [
        type(ivf.index_with_lists(*lists, trained, searched=searched))
        for trained, searched in ((ivf.COMPACT - 1, True), (ivf.COMPACT, True), (ivf.COMPACT, False))
    ]
    assert kinds == [IvfIndex, CompactIndex, IvfIndex]


def test_nearest_before_handles_distant_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows between them are searched through the lists."""
    monkeypatch.setattr(ivf, "TOGETHER", 500)
    monkeypatch.setattr(ivf, "PROBED_BEFORE", 64)
    vectors = spread()
    index, read_counts = filled("inverted", vectors), list[int]()
    take = index.take
    monkeypatch.setattr(index, "take", lambda rows: (read_counts.append(len(rows)), take(rows))[1])
    queries = np.array([3, 9, 2000, 5990, 5999])
    for row, (near, _) in zip(queries.tolist(), index.nearest_before(queries, 5, np.ones(ROWS + 1, bool)), strict=True):
        exact = best(vectors[:row], vectors[row], 5, np.ones(row, bool))
        assert len(near) == min(row, 5)
        assert len({*near.tolist()} & {*exact}) >= min(row, 5) - 1
    assert max(read_counts) < 10


def test_replaced_vectors_are_found_at_their_new_position(kind: str) -> None:
    vectors = spread()
    index = filled(kind, vectors)
    former, vectors[7] = vectors[7].copy(), vectors[4000]
    index.put(np.array([7]), vectors[4000:4001])
    everything = np.ones(ROWS + 1, bool)
    assert index.nearest(vectors[4000], 2, everything).tolist() == [7, 4000]  # ties: the lower row first
    assert 7 not in index.nearest(former, 10, everything).tolist()
    assert index.cosines(np.array([7]), vectors[4000])[0] == pytest.approx(1, abs=0.02)
    index.put(np.array([8]), np.zeros((1, DIM), np.float32))  # no vector
    assert not index.embedded[8]
    assert 8 not in index.nearest(vectors[8], 10, everything).tolist()


def test_nearest_before_returns_earlier_rows_only(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivf, "PROBED_BEFORE", 32)
    vectors = spread()
    index, visible = filled(kind, vectors), np.ones(ROWS + 1, bool)
    visible[5900:5950] = False
    queries = np.arange(5890, ROWS, 3)
    shared = 0
    for row, (near, cosines) in zip(queries.tolist(), index.nearest_before(queries, 5, visible), strict=True):
        exact = best(vectors[:row], vectors[row], 5, visible[:row])
        shared += len({*near.tolist()} & {*exact})
        assert cosines.tolist() == sorted(cosines.tolist(), reverse=True)
        assert (near < row).all()
    assert shared >= (1.0 if kind == "flat" else 0.97) * 5 * len(queries)
    first = index.nearest_before(np.array([0]), 5, visible)[0]
    assert first[0].tolist() == []


def test_nearest_before_breaks_ties_by_age() -> None:
    """Of more equally near rows than requested, some hidden, the oldest visible ones are returned."""
    vectors = spread(1000)
    vectors[100:400] = vectors[100]
    index, visible = filled("flat", vectors), np.ones(1001, bool)
    visible[100:200:2] = False
    vectors[900] = vectors[100]
    index.put(np.array([900]), vectors[900:901])
    (near, cosines), (others, _) = index.nearest_before(np.array([900, 950]), 5, visible)
    assert near.tolist() == [101, 103, 105, 107, 109]
    assert cosines.tolist() == pytest.approx([1.0] * 5, abs=1e-6)
    assert others.tolist() == best(vectors[:950], vectors[950], 5, visible[:950])


@pytest.mark.parametrize(("rows", "dim"), [(0, 384), (1, 384), (22, 384), (1000, 384), (257, 2), (5, 20_000)])
def test_products_of_any_shape_equal_those_of_numpy(rows: int, dim: int) -> None:
    random = np.random.default_rng(rows)
    vectors = random.standard_normal((rows, dim), np.float32)
    vector = random.standard_normal(dim, np.float32)
    np.testing.assert_allclose(products(vectors, vector), vectors @ vector, rtol=1e-3, atol=1e-3)


def test_a_search_needs_one_thread() -> None:
    vectors, vector = np.ones((20_000, 384), np.float32), np.ones(384, np.float32)
    products(vectors, vector)
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(50):
        products(vectors, vector)
    assert time.process_time() - cpu < 1.3 * (time.perf_counter() - wall)


def test_at_least_keeps_all_candidates() -> None:
    values = np.random.default_rng(0).random(1000).astype(np.float32)
    values[:100] = -np.inf
    places = at_least(values, 10)
    assert {*np.argsort(-values)[:10].tolist()} <= {*places.tolist()}
    assert len(places) < 20
    assert len(at_least(values[:120], 50)) == 20


def test_adopted_lists_include_concurrent_changes() -> None:
    """The lists reflect rows that were added, changed or deleted while the lists were computed."""
    vectors = spread()
    numbers = np.arange(ROWS) * 2 + 1
    columns: Any = SimpleNamespace(
        vectors=filled("flat", vectors), ivf=None, notes={"number": numbers}, rows=ROWS, dim=DIM,
        rows_of=lambda requested: np.searchsorted(numbers, requested),
    )  # fmt: skip
    columns.vectors.changed_rows = []
    inverted = filled("inverted", vectors)
    inverted.drop(np.arange(5000, ROWS))
    listed = ivf_lists.IvfLists(1, ROWS, vectors[:64], vectors[:2], numbers, np.zeros(ROWS, np.int64))
    columns.vectors.put(np.array([3]), vectors[4000:4001])
    columns.vectors.put(np.arange(5000, ROWS), vectors[5000:])
    columns.vectors.drop(np.array([4]))
    before = columns.vectors
    ivf_lists.adopt(columns, listed, inverted)
    assert columns.vectors is inverted
    assert columns.vectors.embedded.tolist() == before.embedded.tolist()
    assert np.abs(columns.vectors.take(np.arange(ROWS)) - before.take(np.arange(ROWS))).max() < 0.02


def test_given_lists_are_used_and_missing_ones_computed() -> None:
    vectors = spread()
    index = filled("inverted", vectors)
    numbers = np.arange(ROWS) * 2
    known = ivf_lists.IvfLists(1, ROWS, vectors[:64], vectors[:2], numbers[:100], index.lists(np.arange(100)))
    first, fourth = index.lists(np.array([0, 3])).tolist()
    assert known.of(np.array([0, 1, 6, 5000])).tolist() == [first, -1, fourth, -1]


def test_the_number_of_lists_grows_with_the_scope() -> None:
    assert [ivf_lists.lists_for(n) for n in (50_000, 100_000, 1_000_000, 10_000_000)] == [512, 512, 2048, 2048]
    assert not ivf_lists.due(ivf_lists.LARGE - 1, None)
    assert ivf_lists.due(ivf_lists.LARGE, None)
    trained = ivf_lists.IvfLists(1, 150_000, spread(4), spread(2), np.arange(0), np.arange(0))
    assert not ivf_lists.due(ivf.COMPACT - 1, trained)
    assert ivf_lists.due(ivf.COMPACT, trained)


def saved_and_empty(kind: str, vectors: np.ndarray) -> tuple[dict[str, np.ndarray], Any, Any]:
    """Return the arrays of an index without every third row, the index, and an empty one of its kind."""
    index = filled(kind, vectors)
    index.drop(np.arange(0, len(vectors), 3))
    arrays = {name: np.array(array[:] if isinstance(array, RowSelection) else array) for name, array in index.save()}
    return arrays, index, empty(kind, vectors)


def test_a_saved_index_loads_with_the_same_neighbours(kind: str) -> None:
    vectors = spread(1000)
    arrays, index, loaded = saved_and_empty(kind, vectors)
    loaded.load(arrays, len(vectors))
    assert loaded.embedded.tolist() == index.embedded.tolist()
    allowed = np.ones(len(vectors), bool)
    for vector in spread(20, seed=5):
        assert loaded.nearest(vector, 10, allowed).tolist() == index.nearest(vector, 10, allowed).tolist()


def test_saved_arrays_contain_no_deleted_vector(kind: str) -> None:
    vectors = spread(1000)
    arrays, _, _ = saved_and_empty(kind, vectors)
    stored = arrays["vector"] if kind == "flat" else arrays["row"]
    deleted = np.arange(0, len(vectors), 3)
    assert not stored[deleted].any() if kind == "flat" else not {*stored.tolist()} & {*deleted.tolist()}


def test_damaged_saved_arrays_are_refused(kind: str) -> None:
    vectors = spread(1000)
    arrays, _, unfilled = saved_and_empty(kind, vectors)
    cut = next(iter(arrays))
    with pytest.raises(ValueError, match="inconsistent"):
        unfilled.load({**arrays, cut: arrays[cut][:-1]}, len(vectors))
