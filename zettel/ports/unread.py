"""Turns that wait for an annotation, as the cost of an import is estimated from them."""

from __future__ import annotations

from typing import NamedTuple

from zettel.model import Scope
from zettel.ports.annotator import Passage


class Unread(NamedTuple):
    """A turn that no model has annotated yet."""

    session: str | None
    passage: Passage
    scope: Scope = Scope()
