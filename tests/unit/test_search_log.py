"""The write buffer of the search log."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np
import pytest

from zettel.core import search_log as log
from zettel.core.privacy import SecretGuard
from zettel.core.search_log import BUFFERED, QUESTION_CHARACTERS, FoundNote, PendingSearch, SearchLogBuffer
from zettel.errors import StoreBusy
from zettel.model import LoggedSearch, Scope

NOW = datetime(2024, 5, 1, tzinfo=timezone.utc)
ANN, BEN = Scope(user="ann"), Scope(user="ben")


class Store:
    """Records searches, unless it is busy."""

    def __init__(self) -> None:
        self.logged: list[tuple[Scope, LoggedSearch]] = []
        self.busy = False

    async def log_searches(self, searches: Mapping[Scope, Sequence[LoggedSearch]]) -> None:
        if self.busy:
            raise StoreBusy
        self.logged += [(scope, search) for scope, pending in searches.items() for search in pending]


def pending_search(id: object, scope: Scope = ANN) -> PendingSearch:
    features = np.array([[0.25, 0.0, 1 / 3]], np.float32)
    found = [FoundNote("n_1", 3, 0.5)]
    return PendingSearch(scope, f"s_{id}", "Snow?", NOW, "fusion", found, features, ("text", "time", "vector"))


def ids(store: Store) -> list[str]:
    return [search.id for _, search in store.logged]


def run(work: Any) -> None:
    asyncio.run(work)


def test_the_buffer_is_written_after_a_delay_and_with_other_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "WRITTEN_AFTER", 0.01)

    async def work() -> None:
        store: Any = Store()
        waiting = SearchLogBuffer(store, SecretGuard("report"))
        waiting.add(pending_search(1))
        waiting.add(pending_search(2, BEN))
        assert store.logged == []
        await asyncio.sleep(0.3)
        assert [(scope, search.id) for scope, search in store.logged] == [(ANN, "s_1"), (BEN, "s_2")]
        (hit,) = store.logged[0][1].hits
        assert (hit.note, hit.version, hit.score) == ("n_1", 3, 0.5)
        assert hit.features == {"text": 0.25, "vector": 0.3333}
        await waiting.close()
        assert len(store.logged) == 2

    run(work())


def test_searches_wait_while_the_store_is_busy_and_the_oldest_are_dropped() -> None:
    async def work() -> None:
        store: Any = Store()
        waiting = SearchLogBuffer(store, SecretGuard("report"))
        store.busy = True
        for number in range(BUFFERED):
            waiting.add(pending_search(number))
        with pytest.raises(StoreBusy):
            await waiting.flush()
        waiting.add(pending_search("last"))
        store.busy = False
        await waiting.flush()
        assert ids(store) == [f"s_{number}" for number in range(1, BUFFERED)] + ["s_last"]
        await waiting.flush()
        assert len(store.logged) == BUFFERED

    run(work())


def test_closing_writes_the_buffer_if_possible() -> None:
    async def work() -> None:
        store: Any = Store()
        for busy in (True, False):
            store.busy = busy
            waiting = SearchLogBuffer(store, SecretGuard("report"))
            waiting.add(pending_search(busy))
            await waiting.close()
        assert ids(store) == ["s_False"]

    run(work())


def test_invalid_characters_of_a_question_are_replaced() -> None:
    async def work() -> None:
        store: Any = Store()
        waiting = SearchLogBuffer(store, SecretGuard("report"))
        waiting.add(pending_search(1)._replace(question="lone \ud800 sign"))
        await waiting.close()
        assert [search.question for _, search in store.logged] == ["lone ? sign"]

    run(work())


def test_only_the_beginning_of_a_pasted_document_is_logged() -> None:
    async def work() -> None:
        store: Any = Store()
        waiting = SearchLogBuffer(store, SecretGuard("report"))
        waiting.add(pending_search(1)._replace(question="Snow? " * 100_000))
        await waiting.flush()
        ((_, search),) = store.logged
        assert search.question == ("Snow? " * 100_000)[:QUESTION_CHARACTERS]

    run(work())
