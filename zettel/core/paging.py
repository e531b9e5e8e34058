"""Reads all notes of a scope in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator

from zettel.model import TIME_MAX, Note, Scope
from zettel.ports import GraphStore
from zettel.ports.query import Filter


async def pages(store: GraphStore, scope: Scope, size: int, after: int = -1) -> AsyncIterator[list[Note]]:
    """Yield the notes of a scope with ``seq`` above ``after`` in order of arrival, ``size`` at a time.

    Without archived notes. Notes that arrive meanwhile are on a later page.
    """
    while page := await store.page(scope, Filter(), after, size):
        yield page
        after = page[-1].seq


async def archived_pages(
    store: GraphStore, scope: Scope, size: int, before: int = TIME_MAX
) -> AsyncIterator[list[Note]]:
    """Yield the archived notes of a scope with ``seq`` below ``before``, newest first, ``size`` at a time."""
    while page := await store.archived(scope, before, size):
        yield page
        before = page[-1].seq
