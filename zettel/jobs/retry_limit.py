"""A limit of useless answers in a row that a job accepts from a model."""

from __future__ import annotations

from types import TracebackType

from zettel.errors import InvalidModelOutput

MAX_USELESS_ANSWERS = 3
"""A job stops after this many useless answers in a row: its notes may cause one, the model several, and each costs."""


class RetryLimit:
    """A context manager for each request of a job, so that a useless answer does not stop the other requests."""

    def __init__(self) -> None:
        self._last: InvalidModelOutput | None = None
        self._in_a_row = 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        """Suppress the error of a useless answer, unless it is number MAX_USELESS_ANSWERS in a row."""
        if not isinstance(error, InvalidModelOutput):
            self._in_a_row = 0
            return False
        self._last = error
        self._in_a_row += 1
        return self._in_a_row < MAX_USELESS_ANSWERS

    def raise_last(self) -> None:
        """Raise the last suppressed ``InvalidModelOutput``, if any, so that the job is tried again."""
        if self._last is not None:
            raise self._last
