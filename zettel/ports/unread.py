"""Turns without a model's annotation, the input of cost estimates."""

from __future__ import annotations

from typing import NamedTuple

from zettel.model import Scope
from zettel.ports.annotator import Passage


class Unread(NamedTuple):
    """A turn of a conversation that a model will annotate, with its session and scope."""

    session: str | None
    passage: Passage
    scope: Scope = Scope()
