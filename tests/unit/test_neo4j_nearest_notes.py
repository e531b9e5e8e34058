"""The vector cache of the Neo4j store, which returns the nearest older notes for any order of changes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zettel.graph.neo4j.nearest_notes import ScopeVectors

DIM, K = 4, 3

VectorChange = tuple[str, int, bool, bytes]


def vector(seed: int) -> bytes:
    row = np.random.default_rng(seed).standard_normal(DIM).astype("<f4")
    return (row / np.linalg.norm(row)).astype("<f4").tobytes()


@st.composite
def batches(draw: st.DrawFn) -> list[list[VectorChange]]:
    """Draw changes of a few numbered notes: each change shows a note with one of a few vectors, or hides it."""
    change = st.tuples(st.integers(0, 12), st.booleans(), st.integers(0, 5))
    batch_strategy = st.lists(change, max_size=8, unique_by=lambda item: item[0])
    return [
        [(f"n_{number}", 10 * number, shown, vector(seed)) for number, shown, seed in batch]
        for batch in draw(st.lists(batch_strategy, max_size=6))
    ]


def expected(shown: dict[str, tuple[int, bytes]], note: str) -> list[tuple[str, float]]:
    own = np.frombuffer(shown[note][1], "<f4").astype(np.float64)
    older = [
        (-float(own @ np.frombuffer(vector, "<f4").astype(np.float64)), seq, id)
        for id, (seq, vector) in shown.items()
        if seq < shown[note][0]
    ]
    return [(id, -cosine) for cosine, _, id in sorted(older)[:K]]


@given(batches())
def test_the_nearest_notes_do_not_depend_on_the_order_of_changes(batches_drawn: list[list[VectorChange]]) -> None:
    vectors = ScopeVectors()
    shown: dict[str, tuple[int, bytes]] = {}
    for batch in batches_drawn:
        vectors.take(batch)
        for id, seq, is_shown, row in batch:
            if is_shown:
                shown[id] = (seq, row)
            else:
                shown.pop(id, None)
        results = vectors.nearest_older([*shown, "n_unknown"], K)
        assert [near.note for near in results] == sorted(shown, key=lambda id: shown[id][0])
        for near in results:
            nearest = expected(shown, near.note)
            assert np.allclose([cosine for _, cosine in near.others], [cosine for _, cosine in nearest], atol=1e-6)
            assert len({id for id, _ in near.others}) == len(nearest)


def test_of_equally_near_notes_the_oldest_is_first() -> None:
    vectors = ScopeVectors()
    vectors.take([("n_2", 2, True, vector(1)), ("n_0", 0, True, vector(1))])
    vectors.take([("n_1", 1, True, vector(1))])
    (_, _, last) = vectors.nearest_older(["n_0", "n_1", "n_2"], 1)
    assert last.note == "n_2"
    assert [id for id, _ in last.others] == ["n_0"]
