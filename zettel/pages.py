"""A whole scope, some notes at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator

from zettel.model import TIME_MAX, Note, Scope
from zettel.ports import GraphStore
from zettel.query import Filter


async def pages(store: GraphStore, scope: Scope, size: int) -> AsyncIterator[list[Note]]:
    """All notes of a scope in the order of arrival, ``size`` at a time; archived ones are left out.

    Each page is of the store's state when it is read: a note that comes meanwhile is in a later one.
    """
    after = -1
    while page := await store.page(scope, Filter(), after, size):
        yield page
        after = page[-1].seq


async def archived_pages(
    store: GraphStore, scope: Scope, size: int, before: int = TIME_MAX
) -> AsyncIterator[list[Note]]:
    """All notes in the archive of a scope (of lower ``seq`` than ``before``), the newest first, ``size`` at a time."""
    while page := await store.archived(scope, before, size):
        yield page
        before = page[-1].seq
