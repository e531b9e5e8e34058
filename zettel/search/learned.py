"""The preferences of a scope that the tune job learned, as a reranker on top of the default scorer."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from zettel.core.feedback import PREFERENCES
from zettel.scoring.preferences import Preferences
from zettel.scoring.tuned import DefaultOdds, TunedScorer

if TYPE_CHECKING:
    from zettel.model import Scope
    from zettel.ports import GraphStore

_CACHED = 256
"""Scopes whose decoded preferences are cached."""


async def learned_preferences(store: GraphStore, scope: Scope) -> Preferences | None:
    """Return the preferences that the tune job stored for a scope; None if it has none."""
    text = await store.answer(scope, PREFERENCES)
    return _preferences(text) if text else None


async def learned_stages(store: GraphStore, scope: Scope) -> tuple[TunedScorer, ...]:
    """Return the reranker with the learned preferences of a scope; () if it has none."""
    preferences = await learned_preferences(store, scope)
    return () if preferences is None else (TunedScorer(DefaultOdds(), preferences),)


@lru_cache(maxsize=_CACHED)
def _preferences(text: str) -> Preferences | None:
    return Preferences.from_text(text)
