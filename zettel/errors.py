"""All errors that zettel raises, as one tree.

Every message states what is wrong and what to do. Without an explicit message, the message is the first line of the
class docstring. Catch the most specific class that you can handle:

* ``ZettelError``
  x ``InvalidInput``       - an argument that zettel cannot store or search for
    - ``InvalidEvent``
    - ``SecretRefused``
    - ``InvalidQuestion``
    - ``UnknownFormat``
    - ``BadRecord``
    - ``BadRequest``
    - ``TooLarge``
  x ``NotFound``           - an id that is not in the scope
  x ``IdentityConflict``   - the same identity is stored with other content
  x ``EventDeleted``         - the same identity was deleted before
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
  x ``ScorerError``        - a scorer with invalid scores or incompatible weights
  x ``ModelError``
    - ``ModelUnavailable``
    - ``ModelDenied``
    - ``InvalidModelOutput``
      + ``InvalidModelItem``
    - ``BudgetSpent``
  x ``MissingExtra``       - a feature whose packages are not installed
  x ``MemoryClosed``       - use after close, or in a forked process
  x ``JobFailed``          - a background job that ended in an error
  x ``RunnerUnavailable``  - the worker processes cannot be reached, or ended
  x ``FlushTimeout``
  x ``ServerError``        - an error of a zettel server that a local memory does not have
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

MAX_MESSAGE_CHARS = 4_000
"""Maximum length of a message, because messages may quote long arguments."""


class ZettelError(Exception):
    """The base class of all errors of zettel."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(_shortened(message or (self.__doc__ or "").partition("\n")[0]))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the message instead of the arguments, which differ between classes."""
        return _restore, (type(self), str(self)), self.__dict__


def _shortened(message: str) -> str:
    """Cut the middle of a long message: its beginning states the problem, and its end what to do."""
    if len(message) <= MAX_MESSAGE_CHARS:
        return message
    return f"{message[: MAX_MESSAGE_CHARS // 2]} … {message[-MAX_MESSAGE_CHARS // 2 :]}"


def _restore(kind: type[ZettelError], message: str) -> ZettelError:
    error = kind.__new__(kind)
    ZettelError.__init__(error, message)
    return error


class InvalidInput(ZettelError, ValueError):
    """That value cannot be used here."""


class InvalidEvent(InvalidInput):
    """That event cannot be stored."""


class SecretRefused(InvalidInput):
    """That text contains a secret, which this memory does not store."""


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
    """No note, event or job with that id is in this scope."""

    def __init__(self, scope: object, ids: Iterable[object], hint: str = "run a search to see valid ids") -> None:
        super().__init__(f"{', '.join(map(repr, ids))} is not in {scope}: {hint}")


class IdentityConflict(ZettelError):
    """An event with that identity is already stored with other content."""


class EventDeleted(ZettelError):
    """An event with that identity was deleted before, and zettel does not add it again."""


class StoreError(ZettelError):
    """The store failed."""


class NotAStore(StoreError):
    """That file is not a zettel store."""


class StoreTooNew(StoreError):
    """That store was written by a newer version of zettel."""


class StoreTooOld(StoreError):
    """The database server of that store is too old for zettel."""


class StoreReadOnly(StoreError):
    """That store is read-only."""


class StoreFull(StoreError):
    """The disk of the store is full."""


class StoreBusy(StoreError):
    """Another process is writing to that store and did not finish in time."""


class StoreUnreachable(StoreError):
    """The database server of that store cannot be reached."""


class StoreDenied(StoreError):
    """That store refused the user, the password or the key."""


class EmbedderMismatch(StoreError):
    """The store contains vectors of another embedder; run ``zettel reembed`` to switch."""


class LocalServerError(StoreError):
    """zettel could not start or stop a Neo4j on this machine."""


class EmbedderError(ZettelError):
    """The embedder failed."""


class EmbedderUnavailable(EmbedderError):
    """The embedder did not answer."""


class EmbedderUnreadable(EmbedderError):
    """That folder or name does not contain a readable embedder."""


class ScorerError(ZettelError):
    """The scorer failed."""


class ModelError(ZettelError):
    """The language model failed."""

    spent: Any = None
    """The cost of the failed call, as an ``Answer`` without text, or None if unknown."""


class ModelUnavailable(ModelError):
    """The language model did not answer."""

    retry_after: float | None = None

    def __init__(self, message: str | None = None, retry_after: float | None = None) -> None:
        """``retry_after``: seconds to wait, if the provider states them."""
        super().__init__(message)
        self.retry_after = retry_after


class ModelDenied(ModelError):
    """The language model's provider refused the key, or does not offer the model."""


class InvalidModelOutput(ModelError):
    """The language model's answer is invalid."""


class InvalidModelItem(InvalidModelOutput):
    """The language model's answer contains nothing valid for one note."""


class BudgetSpent(ModelError):
    """The budget for language models is spent."""

    until: datetime | None = None

    def __init__(self, message: str | None = None, until: datetime | None = None) -> None:
        """``until``: start of the next budget period; None if the budget does not renew."""
        super().__init__(message)
        self.until = until


class MissingExtra(ZettelError, ImportError):
    """That feature needs packages that are not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f'{feature} needs more packages: pip install "{DISTRIBUTION}[{extra}]"')


class MemoryClosed(ZettelError):
    """This memory was closed."""


class JobFailed(ZettelError):
    """A background job failed; ``zettel jobs`` shows its error."""


class RunnerUnavailable(ZettelError):
    """The runner of the jobs cannot be reached."""


class FlushTimeout(ZettelError, TimeoutError):
    """Jobs were still pending at the timeout."""


class ServerError(ZettelError):
    """The zettel server failed."""


class ServerUnreachable(ServerError):
    """The zettel server cannot be reached."""


class InvalidKey(ServerError):
    """That key is unknown to the server, revoked or expired."""


class PermissionDenied(ServerError):
    """That key does not allow this."""


class RequestTimeout(ServerError):
    """The request did not arrive in time."""


class ServerBusy(ServerError):
    """The server is overloaded or stopping."""

    retry_after: float | None = None
    """Seconds to wait, if the server states them."""


class TooManyRequests(ServerBusy):
    """That key exceeded its rate limit."""
