"""Limits how many useless answers in a row a job accepts from a model."""

from __future__ import annotations

from types import TracebackType

from zettel.errors import InvalidModelOutput

MAX_USELESS_ANSWERS = 3
"""Useless answers in a row after which a job stops: one may be caused by its notes, several by the model, and each one
costs."""


class RetryLimit:
    """A context manager around each request of a job: a useless answer does not stop the other requests."""

    def __init__(self) -> None:
        self._last: InvalidModelOutput | None = None
        self._in_a_row = 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        """Suppress the error of a useless answer, unless MAX_USELESS_ANSWERS came in a row."""
        if not isinstance(error, InvalidModelOutput):
            self._in_a_row = 0
            return False
        self._last = error
        self._in_a_row += 1
        return self._in_a_row < MAX_USELESS_ANSWERS

    def raise_last(self) -> None:
        """Raise the last suppressed ``InvalidModelOutput``, if any: its request has to be repeated."""
        if self._last is not None:
            raise self._last
