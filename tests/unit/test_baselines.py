"""Rankings of the baseline systems on texts with an obvious right order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import zettel.bench.baselines as baselines_module
from zettel.bench.baselines import (
    ALL,
    QUICK,
    RRF_K,
    CachingEmbedder,
    _fuse,
    _links,
    _with_linked,
    amem,
    bm25,
    fused,
    indexed_text,
    load_baselines,
    vectors,
)
from zettel.embed.static import StaticEmbedder
from zettel.errors import InvalidInput, MissingExtra
from zettel.model import Event

EVENTS = [
    Event(content="The heron came back to the pond.", speaker="Ann"),
    Event(content="I mended the oak boat on Friday.", speaker="Ben"),
    Event(content="The boat, the boat, always the boat!", speaker="Ann"),
    Event(content="A lake in the north.", title="Tarn Hollow"),
]

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def static() -> StaticEmbedder:
    return StaticEmbedder()


def test_indexed_text_contains_speaker_or_title() -> None:
    assert indexed_text(EVENTS[0]) == "Ann: The heron came back to the pond."
    assert indexed_text(EVENTS[3]) == "Tarn Hollow: A lake in the north."
    assert indexed_text(Event(content="Snow.")) == "Snow."


async def test_bm25_weighs_rare_words_and_skips_texts_without_matches() -> None:
    ranks = await bm25(EVENTS, ["Which boat was mended?", "the boat", "zebra"], 10)
    assert ranks == [[1, 2], [2, 1], []]


async def test_bm25_returns_only_texts_with_the_token() -> None:
    """Two texts of one token each: the score is the rarity of a token that occurs in one of two texts, times 1."""
    assert await bm25([Event(content="heron"), Event(content="boat")], ["heron"], 5) == [[0]]


async def test_vectors_rank_all_events_by_distance(static: StaticEmbedder) -> None:
    (ranks,) = await vectors(static)(EVENTS, ["a bird at the water"], 10)
    assert sorted(ranks) == [0, 1, 2, 3]
    rows, query = static.encode([indexed_text(event) for event in EVENTS]), static.encode(["a bird at the water"])[0]
    assert ranks == sorted(range(4), key=lambda place: -float(rows[place] @ query))
    assert len((await vectors(static)(EVENTS, ["boat"], 2))[0]) == 2


def test_fusion_adds_the_inverse_of_the_ranks() -> None:
    # 7: 1/61 + 1/62, 8: 1/62 + 1/61, 9: 1/63
    assert _fuse([[8, 7], [7, 8, 9]], 5) == [7, 8, 9]
    assert _fuse([[1, 2], [3, 2]], 5) == [2, 1, 3], "second twice is more than first once"
    assert 2 / (RRF_K + 2) > 1 / (RRF_K + 1)


async def test_fused_retrieves_more_than_it_returns() -> None:
    async def backwards(events: Sequence[Event], questions: Sequence[str], k: int) -> list[list[int]]:
        assert k >= 100
        return [list(range(len(events)))[::-1]] * len(questions)

    assert await fused(backwards, bm25)(EVENTS, ["mended"], 2) == [[1, 3]]


def test_links_lead_to_earlier_neighbours_only() -> None:
    near = np.array([[1, 0], [0, 1], [0.9, np.sqrt(1 - 0.81)], [1, 0]], np.float32)
    assert _links(near) == [[], [], [0], [0, 2]]


def test_linked_notes_follow_a_hit_once() -> None:
    assert _with_linked([2, 0, 3], [[], [], [1, 0], [2]], 10) == [2, 1, 0, 3]
    assert _with_linked([2, 0, 3], [[], [], [1, 0], [2]], 2) == [2, 1]


async def test_amem_searches_its_notes(static: StaticEmbedder) -> None:
    ranks = await amem(static)(EVENTS, ["Who mended the oak boat?"], 3)
    assert ranks[0][0] == 1
    assert len(ranks[0]) == 3


async def test_a_shared_embedder_embeds_each_text_once() -> None:
    embedded: list[str] = []

    class Counting(StaticEmbedder):
        async def embed(self, texts: Sequence[str]) -> Any:
            embedded.extend(texts)
            return await super().embed(texts)

    cache = CachingEmbedder(Counting())
    rows = await cache.embed(["a boat", "a heron", "a boat"])
    assert np.array_equal(rows[0], rows[2])
    assert np.array_equal(await cache.embed(["a heron"]), rows[1:2])
    assert embedded == ["a boat", "a heron"]
    assert cache.info.dim == rows.shape[1]


def test_systems_are_loaded_by_name(static: StaticEmbedder) -> None:
    assert list(load_baselines(QUICK, static).systems) == ["BM25", "vectors"]
    assert load_baselines((), static) == ({}, [])
    with pytest.raises(InvalidInput, match="'luck'"):
        load_baselines(["luck"], static)


def test_without_torch_the_other_systems_are_measured_and_the_gap_is_reported(
    static: StaticEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(spec: str) -> None:
        raise MissingExtra(f"the embedder {spec}", "torch")

    monkeypatch.setattr(baselines_module, "load_embedder", missing)
    systems, notes = load_baselines(ALL, static)
    assert list(systems) == ["BM25", "vectors", "RRF", "A-MEM search"]
    assert "[torch]" in notes[0]
    assert notes[1] == f"A-MEM's search used {static.info.name}."
