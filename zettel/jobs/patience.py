"""How many answers of no use a job takes before it asks a model nothing more."""

from __future__ import annotations

from types import TracebackType

from zettel.errors import ModelUnusable

GIVES_UP = 3
"""Answers of no use in a row after which no more is asked: one question may be the fault of its notes, so many are the
model's, and each is paid."""


class Patience:
    """Around each question of a job: one that got no answer of use keeps the others from nothing."""

    def __init__(self) -> None:
        self._last: ModelUnusable | None = None
        self._in_a_row = 0

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        """Let the next question be asked after an answer of no use, unless GIVES_UP came in a row."""
        if not isinstance(error, ModelUnusable):
            self._in_a_row = 0
            return False
        self._last = error
        self._in_a_row += 1
        return self._in_a_row < GIVES_UP

    def tell(self) -> None:
        """Raise the last ``ModelUnusable``, if there was any: what was asked to no use is still to be done."""
        if self._last is not None:
            raise self._last
