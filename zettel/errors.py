"""Every error zettel raises, as one tree.

The first line of a class's docstring is its message; raise with a text to say which thing it was and what to do
about it. Catch the class whose trouble you can do something about:

* ``ZettelError``
  x ``InvalidInput``       - what was handed in cannot be stored or asked
    - ``InvalidEvent``
    - ``InvalidQuestion``
    - ``UnknownFormat``
    - ``BadRecord``
    - ``BadRequest``
    - ``TooLarge``
  x ``NotFound``           - an id that this scope does not hold
  x ``IdentityConflict``   - the same identity with other content
  x ``EventDeleted``         - the same identity was deleted here before
  x ``StoreError``
    - ``NotAStore``
    - ``StoreTooNew``
    - ``StoreTooOld``
    - ``StoreReadOnly``
    - ``StoreFull``
    - ``StoreBusy``
    - ``StoreUnreachable``
    - ``StoreDenied``
    - ``EmbedderMismatch``
    - ``LocalServerError``
  x ``EmbedderError``
    - ``EmbedderUnavailable``
    - ``EmbedderUnreadable``
  x ``ScorerError``        - a scorer that answers rubbish, or whose weights do not fit
  x ``ModelError``
    - ``ModelUnavailable``
    - ``ModelDenied``
    - ``InvalidModelOutput``
      + ``InvalidModelItem``
    - ``BudgetSpent``
  x ``MissingExtra``       - a feature whose packages are not installed
  x ``MemoryClosed``       - used after close, or in a forked process
  x ``JobFailed``          - durable work that ended in an error
  x ``RunnerUnavailable``  - the processes that should do it cannot be reached, or ended
  x ``FlushTimeout``
  x ``ServerError``        - what a zettel server does not do, and a memory beside it would
    - ``ServerUnreachable``
    - ``InvalidKey``
    - ``PermissionDenied``
    - ``RequestTimeout``
    - ``ServerBusy``
      + ``TooManyRequests``
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from zettel.version import DISTRIBUTION

LONGEST = 4_000
"""Characters of a message that are told: what was handed in may be as long as it likes."""


class ZettelError(Exception):
    """Something in zettel went wrong."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(_shortened(message or (self.__doc__ or "").partition("\n")[0]))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by its message, for it may be raised in another process: some classes make theirs of other values."""
        return _again, (type(self), str(self)), self.__dict__


def _shortened(message: str) -> str:
    """A message that repeats something long keeps its beginning, which names the thing, and its end, the way out."""
    if len(message) <= LONGEST:
        return message
    return f"{message[: LONGEST // 2]} … {message[-LONGEST // 2 :]}"


def _again(kind: type[ZettelError], message: str) -> ZettelError:
    error = kind.__new__(kind)
    ZettelError.__init__(error, message)
    return error


class InvalidInput(ZettelError, ValueError):
    """That value cannot be used here."""


class InvalidEvent(InvalidInput):
    """That event cannot be stored."""


class InvalidQuestion(InvalidInput):
    """That question cannot be asked."""


class UnknownFormat(InvalidInput):
    """That transcript format is unknown."""


class BadRecord(InvalidInput):
    """That record of a transcript cannot be read."""


class BadRequest(InvalidInput):
    """That request to a server cannot be read."""


class TooLarge(InvalidInput):
    """That request is larger than the server takes."""


class NotFound(ZettelError, LookupError):
    """No note, event or job of that id is in this scope."""

    def __init__(self, scope: object, ids: Iterable[object], hint: str = "a search shows the ids that are") -> None:
        super().__init__(f"{', '.join(map(repr, ids))} is not in {scope}: {hint}")


class IdentityConflict(ZettelError):
    """An event of that identity is there already, with other content."""


class EventDeleted(ZettelError):
    """An event of that identity was deleted here, and is not revived."""


class StoreError(ZettelError):
    """The store could not do that."""


class NotAStore(StoreError):
    """That file is not a zettel store."""


class StoreTooNew(StoreError):
    """That store was written by a newer version of zettel."""


class StoreTooOld(StoreError):
    """The server of that store is too old for zettel."""


class StoreReadOnly(StoreError):
    """That store cannot be written."""


class StoreFull(StoreError):
    """There is no space left for the store."""


class StoreBusy(StoreError):
    """Another process is writing to that store and did not finish in time."""


class StoreUnreachable(StoreError):
    """The server of that store cannot be reached."""


class StoreDenied(StoreError):
    """The server of that store refused the user or the password."""


class EmbedderMismatch(StoreError):
    """The store's vectors were made by another embedder; ``zettel reembed`` changes over."""


class LocalServerError(StoreError):
    """A Neo4j on this machine could not be started or ended."""


class EmbedderError(ZettelError):
    """The embedder could not do that."""


class EmbedderUnavailable(EmbedderError):
    """The embedder did not answer."""


class EmbedderUnreadable(EmbedderError):
    """That folder or name holds no embedder that can be read."""


class ScorerError(ZettelError):
    """The scorer could not do that."""


class ModelError(ZettelError):
    """The language model could not do that."""

    spent: Any = None
    """The ``Answer`` without text that says what the failed call cost, or None where that is unknown."""


class ModelUnavailable(ModelError):
    """The language model did not answer."""

    retry_after: float | None = None

    def __init__(self, message: str | None = None, retry_after: float | None = None) -> None:
        """``retry_after``: seconds that the provider asked to wait for, if it did."""
        super().__init__(message)
        self.retry_after = retry_after


class ModelDenied(ModelError):
    """The language model's provider refused the key, or has no such model."""


class InvalidModelOutput(ModelError):
    """The language model's answers cannot be used."""


class InvalidModelItem(InvalidModelOutput):
    """The language model's answer has nothing valid for one note."""


class BudgetSpent(ModelError):
    """The budget for language models is spent."""

    until: datetime | None = None

    def __init__(self, message: str | None = None, until: datetime | None = None) -> None:
        """``until``: when there is a new one; None: not by itself."""
        super().__init__(message)
        self.until = until


class MissingExtra(ZettelError, ImportError):
    """That feature needs packages that are not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f'{feature} needs more packages: pip install "{DISTRIBUTION}[{extra}]"')


class MemoryClosed(ZettelError):
    """This memory was closed."""


class JobFailed(ZettelError):
    """A job failed; its error is kept with it."""


class RunnerUnavailable(ZettelError):
    """What should do the jobs cannot be reached."""


class FlushTimeout(ZettelError, TimeoutError):
    """Jobs were still pending when the time was up."""


class ServerError(ZettelError):
    """The zettel server could not do that."""


class ServerUnreachable(ServerError):
    """The zettel server cannot be reached."""


class InvalidKey(ServerError):
    """That key is not one of this server's, or no more."""


class PermissionDenied(ServerError):
    """That key does not allow this."""


class RequestTimeout(ServerError):
    """The request did not arrive in time."""


class ServerBusy(ServerError):
    """The server has too much to do, or is stopping."""

    retry_after: float | None = None
    """Seconds that it asked to wait for, if it did."""


class TooManyRequests(ServerBusy):
    """That key was used more often than it may be."""
