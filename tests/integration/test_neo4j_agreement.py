"""The Neo4j store against the exhaustive reference store after the same writes, at any valid or known time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import neo4j_servers
from tests.integration.embedded import ANN, StoreWriter, run, vector
from tests.integration.test_embedded_agreement import apply_step, filters, steps
from zettel.graph.neo4j import scope_cache
from zettel.graph.neo4j.store import Neo4jStore
from zettel.model import to_micros
from zettel.ports.query import Filter
from zettel.testing.reference_store import ReferenceStore
from zettel.testing.store_comparison import DAY_ZERO, compare_answers, compare_reads

pytestmark = [pytest.mark.integration, pytest.mark.every_release, pytest.mark.timeout(600)]


@pytest.mark.soak
@pytest.mark.parametrize("name", neo4j_servers.EVERY)
def test_the_neo4j_store_equals_the_reference_store(name: str, soak_scale: Callable[[int], int]) -> None:
    server = neo4j_servers.server(name)

    async def work(
        plan: list[tuple[str, Any]], filter: Filter, as_of: int | None, known_index: int | None
    ) -> None:
        neo4j_servers.forget_all(server)
        store, reference = Neo4jStore(server.url, server.auth), ReferenceStore()
        await store.open()
        try:
            ours, theirs = await StoreWriter(store).begin(), await StoreWriter(reference).begin()
            sides: list[tuple[StoreWriter, list[str], dict[str, int]]] = [(ours, [], {}), (theirs, [], {})]
            moments: list[tuple[int, int]] = []
            for step in plan:
                for writer, present, versions in sides:
                    await apply_step(writer, step, present, versions)
                await ours.ask("harbour", vector=vector(1, 1))  # the cached scope is updated step by step
                states = [await each.state(ANN) for each in (store, reference)]
                assert states[0].seq == states[1].seq
                assert states[0].latest == states[1].latest
                moments.append((states[0].recorded_at, states[1].recorded_at))
            ids = sides[0][1]
            assert [line for line in await store.check(repair=False) if "no vector" not in line] == []
            await compare_reads(store, reference, ids, filter)
            known = (None, None) if known_index is None else moments[min(known_index, len(moments) - 1)]
            await compare_answers(ours, theirs, ids, filter, as_of, known)
        finally:
            await store.close()

    @settings(max_examples=soak_scale(200))
    @given(
        plan=st.lists(steps, min_size=1, max_size=25),
        filter=filters,
        as_of=st.none() | st.integers(0, 9).map(lambda day: to_micros(DAY_ZERO + timedelta(days=day))),
        known_index=st.none() | st.integers(0, 24),
        cache_limit=st.sampled_from([scope_cache.MAX_NOTES, -1]),  # cached scopes, or queries of the database
    )
    def agree(
        plan: list[tuple[str, Any]], filter: Filter, as_of: int | None, known_index: int | None, cache_limit: int
    ) -> None:
        with patch.object(scope_cache, "MAX_NOTES", cache_limit):
            run(work(plan, filter, as_of, known_index))

    agree()
