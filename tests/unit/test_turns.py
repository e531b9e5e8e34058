"""A question and the answer after it are found in the order of their session."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from zettel.ports.query import Candidates
from zettel.search.turns import ASSISTANT, USER, Turns, turns_of

TOOL = 3


def session(*turns: tuple[int, int], missing: Sequence[int] = ()) -> Candidates:
    """A session of (event, role); the rows beside ``missing`` ones have no neighbour there."""
    rows = range(len(turns))
    previous = [row - 1 if row - 1 not in missing else -1 for row in rows]
    following = [row + 1 if row + 1 < len(turns) and row + 1 not in missing else -1 for row in rows]
    columns: dict[str, Any] = {
        "ids": [f"n_{row}" for row in rows],
        "event": [event for event, _ in turns],
        "role": [role for _, role in turns],
        "previous": previous,
        "next": following,
    }
    return cast("Candidates", SimpleNamespace(**columns))


CHAT = session((1, USER), (1, USER), (2, ASSISTANT), (2, ASSISTANT), (3, ASSISTANT), (4, USER), (5, TOOL), (6, -1))


@pytest.mark.parametrize(
    ("row", "answers", "answered_by"),
    [
        (0, None, "n_2"),
        (1, None, "n_2"),
        (2, "n_1", None),
        (3, "n_1", None),
        (4, None, None),
        (5, None, None),
        (6, None, None),
        (7, None, None),
    ],
)
def test_turns_are_right_beside_each_other(row: int, answers: str | None, answered_by: str | None) -> None:
    assert turns_of(row, CHAT) == Turns(answers, answered_by)


def test_turns_that_are_not_candidates_are_unknown() -> None:
    chat = session((1, USER), (2, ASSISTANT), missing=[0])
    assert turns_of(1, chat) == Turns(None, None)
