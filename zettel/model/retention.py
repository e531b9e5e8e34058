"""Retention: how long a scope keeps its notes, and the action on those whose time is over."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, NamedTuple

from pydantic import ConfigDict

from zettel.model.base import Frozen

Then = Literal["delete", "archive"]
"""The action on notes whose time is over: destroy them with everything derived from them, or archive them."""


class Retention(Frozen):
    """The retention of a scope.

    ``max_age`` is the longest time that a note stays after it was stored, None for no limit. Pinned notes stay longer.
    ``then`` applies to them and to notes whose ``expires_at`` is over.

    Example: ``Retention(max_age=timedelta(days=90), then="archive")``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_timedelta="float")  # seconds

    max_age: timedelta | None = None
    then: Then = "delete"


class Swept(NamedTuple):
    """The effect of a sweep: numbers of events that it deleted and archived, with all their notes."""

    deleted: int = 0
    archived: int = 0
