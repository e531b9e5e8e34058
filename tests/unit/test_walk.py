"""The walk over links, terms and time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tiny import Row, Tiny
from zettel.model import LinkType
from zettel.scoring.walk import NEXT_WEIGHT, RESTART, STAY, WalkGraph, graph_of, walk


def one_hot(nodes: int, at: int) -> np.ndarray:
    start = np.zeros(nodes)
    start[at] = 1.0
    return start


def test_a_node_without_links_keeps_its_share() -> None:
    empty = np.zeros(0, np.int64)
    walked = walk(WalkGraph(2, empty, empty, np.zeros(0, np.float32)), np.array([0.25, 0.75]))
    assert walked.share.tolist() == pytest.approx([0.25, 0.75])
    assert [walked.sender(node) for node in range(2)] == [-1, -1]


def test_one_link_gives_the_closed_form() -> None:
    """a sends 1 / (1 + STAY) of its share to b; b sends nothing. The fixed point is solved by hand."""
    graph = WalkGraph(2, np.array([0]), np.array([1]), np.array([1.0], np.float32))
    walked = walk(graph, one_hot(2, 0))
    at_a = RESTART / (1 - (1 - RESTART) * STAY / (1 + STAY))
    assert walked.share.tolist() == pytest.approx([at_a, 1 - at_a], abs=1e-3)
    assert [walked.sender(node) for node in range(2)] == [-1, 0]


def test_a_mention_passes_on_share_and_the_path_is_recorded() -> None:
    tiny = Tiny([Row("a"), Row("b"), Row("c"), Row("d")], [(0, 1, LinkType.MENTIONS), (1, 2, LinkType.MENTIONS)])
    walked = walk(graph_of(tiny.about(tiny.ask("x"))), one_hot(4, 0))
    assert walked.share[0] > walked.share[1] > walked.share[2] > walked.share[3] == 0.0
    assert [walked.sender(node) for node in range(4)] == [-1, 0, 1, -1]


def test_a_merely_similar_note_gets_almost_nothing() -> None:
    tiny = Tiny([Row("a"), Row("b"), Row("c")], [(0, 1, LinkType.RELATES, 0.6), (0, 2, LinkType.RELATES, 1.0)])
    share = walk(graph_of(tiny.about(tiny.ask("x"))), one_hot(3, 0)).share
    assert share[1] < 0.05 * share[2]


def test_neighbours_in_time_are_steps_both_ways() -> None:
    tiny = Tiny([Row("a", session="s"), Row("b", session="s"), Row("c", session="t")])
    graph = graph_of(tiny.about(tiny.ask("x")))
    steps = set(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    assert steps == {(0, 1), (1, 0)}
    assert graph.weight.tolist() == pytest.approx([NEXT_WEIGHT] * 2)


def test_rare_terms_join_notes_and_common_ones_do_not() -> None:
    rows = [Row("a", terms=["cello", "day"]), Row("b", terms=["cello"]), Row("c", terms=["day"])]
    tiny = Tiny(rows, df={"cello": 2, "day": 400})
    candidates = tiny.about(tiny.ask("x"))
    walked = walk(graph_of(candidates), one_hot(5, 0))
    assert walked.share[1] > 0.0 == walked.share[2]
    assert candidates.term_keys[walked.sender(1) - 3] == "cello"
    assert walk(graph_of(candidates, terms=False), one_hot(5, 0)).share[1] == 0.0


@st.composite
def graphs(draw: st.DrawFn) -> tuple[WalkGraph, np.ndarray]:
    nodes = draw(st.integers(1, 8))
    edge = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1), st.floats(0.01, 5.0))
    edges = draw(st.lists(edge, max_size=20))
    start = np.array(draw(st.lists(st.floats(0.01, 1.0), min_size=nodes, max_size=nodes)))
    source, target, weight = (np.array([edge[i] for edge in edges]) for i in range(3))
    return WalkGraph(nodes, source.astype(int), target.astype(int), weight.astype(np.float32)), start / start.sum()


@given(graphs())
def test_shares_sum_to_one_and_every_node_has_a_sender(given_: tuple[WalkGraph, np.ndarray]) -> None:
    graph, start = given_
    walked = walk(graph, start)
    assert walked.share.sum() == pytest.approx(1.0)
    assert (walked.share >= 0).all()
    steps = set(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    for node in range(graph.nodes):
        sender = walked.sender(node)
        assert sender == -1 or (sender, node) in steps
