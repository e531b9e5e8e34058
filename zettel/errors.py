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
    - ``AuditError``
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
    """The base class of all errors of zettel.

    Cause: any failure that zettel reports itself.

    Cure: catch a subclass if you can handle its cause, and this class to report the message.
    """

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
    """That value cannot be used here.

    Cause: an argument has the wrong type or a value outside its limits.

    Cure: change the argument as the message states. A repeated call fails again.
    """


class InvalidEvent(InvalidInput):
    """That event cannot be stored.

    Cause: a field of the event is missing, has the wrong type or is too large. Nothing of the call was stored.

    Cure: correct the field that the message names, and add the events again.
    """


class SecretRefused(InvalidInput):
    """That text contains a secret, which this memory does not store.

    Cause: the memory was opened with ``privacy="block"``, and the text contains an API key, a password or a card
    number.

    Cure: remove the secret from the text, or open the memory with ``privacy="redact"``.
    """


class InvalidQuestion(InvalidInput):
    """That question cannot be asked.

    Cause: the question is empty or not text, or a Cypher query is not read-only.

    Cure: pass a text with words, or a query that only reads.
    """


class UnknownFormat(InvalidInput):
    """That transcript format is unknown.

    Cause: zettel does not recognise the file, or no format has the given name.

    Cure: pass ``format=`` with one of the names in the message, or ``columns=`` for a table with other column names.
    """


class BadRecord(InvalidInput):
    """That record of a transcript cannot be read.

    Cause: the file is damaged or truncated, so that zettel cannot read it to its end.

    Cure: export the file again from its program. Records before the damage may be stored; a second import skips
    these.
    """


class BadRequest(InvalidInput):
    """That request to a server cannot be read.

    Cause: a client sent invalid JSON or contradictory headers to a zettel server.

    Cure: send one JSON object with the content type ``application/json``.
    """


class TooLarge(InvalidInput):
    """That request is larger than the server takes.

    Cause: the request exceeds a size limit of the server.

    Cure: send fewer events or a smaller file in each request, or start the server with higher limits.
    """


class NotFound(ZettelError, LookupError):
    """No note, event or job with that id is in this scope.

    Cause: the id is mistyped, belongs to another scope, or was deleted.

    Cure: pass the ``scope=`` of the note, or run a search to see valid ids.
    """

    scope: object = None
    """Where the ids were looked up: usually a ``Scope``."""
    ids: tuple[object, ...] = ()
    """The ids that are unknown there; empty if the error comes from a server."""

    def __init__(
        self,
        scope: object,
        ids: Iterable[object],
        hint: str = "pass the scope of its note, or run a search to see valid ids",
    ) -> None:
        self.scope, self.ids = scope, tuple(ids)
        super().__init__(f"{', '.join(map(repr, self.ids))} is not in {scope}: {hint}")


class IdentityConflict(ZettelError):
    """An event with that identity is already stored with other content.

    Cause: an event with the same ``id`` is stored, and its content differs.

    Cure: pass ``on_conflict="revise"`` to store the new content as a version, ``"skip"`` to ignore it, or choose
    another id.
    """


class EventDeleted(ZettelError):
    """An event with that identity was deleted before, and zettel does not add it again.

    Cause: somebody deleted this event from the scope, and a tombstone prevents that an import restores it.

    Cure: leave the event out. To store it anyway, add it with another ``id``.
    """


class StoreError(ZettelError):
    """The store failed.

    Cause: the database of the store reported an error that no subclass describes.

    Cure: read the message. ``zettel doctor`` checks a store; a damaged file needs a backup.
    """


class NotAStore(StoreError):
    """That file is not a zettel store.

    Cause: the path is a folder, is in a missing folder, or names a file of another program.

    Cure: name a file that zettel created, or a new one in an existing folder. An encrypted file needs ``key=``.
    """


class StoreTooNew(StoreError):
    """That store was written by a newer version of zettel.

    Cause: a newer zettel changed the layout of the store, which this version cannot read.

    Cure: upgrade zettel, or restore a backup that this version wrote.
    """


class StoreTooOld(StoreError):
    """The database server of that store is too old for zettel.

    Cause: the Neo4j server is older than the releases that zettel supports.

    Cure: upgrade the server to a release that the message names.
    """


class StoreReadOnly(StoreError):
    """That store is read-only.

    Cause: the permissions of the file or of the database user forbid to write.

    Cure: change the permissions, or open the store as another user.
    """


class StoreFull(StoreError):
    """The disk of the store is full.

    Cause: no space is left on the disk. The failed transaction wrote nothing. An import has stored its earlier batches.

    Cure: free space, then repeat the call.
    """


class StoreBusy(StoreError):
    """Another process is writing to that store and did not finish in time.

    Cause: one process at a time writes to a file, and another one did not finish in time.

    Cure: repeat the call. For many writers, use a zettel server or Neo4j.
    """


class StoreUnreachable(StoreError):
    """The database server of that store cannot be reached.

    Cause: the Neo4j server is stopped, or a network or TLS problem blocks the way to it.

    Cure: check the address and the server, then repeat the call. Jobs continue by themselves.
    """


class StoreDenied(StoreError):
    """That store refused the user, the password or the key.

    Cause: the user, the password or the encryption key is wrong, or the password has expired.

    Cure: pass ``auth=`` or ``key=``, or set ``NEO4J_USERNAME``, ``NEO4J_PASSWORD`` or ``ZETTEL_STORE_KEY``.
    """


class EmbedderMismatch(StoreError):
    """The store contains vectors of another embedder; run ``zettel reembed`` to switch.

    Cause: the memory was opened with another embedder than the one that made the stored vectors.

    Cure: open the memory with the stored embedder, or call ``reembed``.
    """


class LocalServerError(StoreError):
    """zettel could not start or stop a Neo4j on this machine.

    Cause: ``zettel neo4j up`` lacks Java or Maven, its port is in use, or the server did not stop.

    Cure: follow the message; the log that it names contains the server's own words.
    """


class AuditError(StoreError):
    """The audit log cannot be written, and nothing is done without it.

    Cause: the disk is full, or another process writes the same audit log.

    Cure: name another file with ``audit=``, or make the file writable. A message that starts with the operation
    reports that it was carried out.
    """


class EmbedderError(ZettelError):
    """The embedder failed.

    Cause: the embedder raised this error, or returned no array, one of the wrong shape, or vectors whose length is not
    1.

    Cure: read the message; correct the embedder if it is your own.
    """


class EmbedderUnavailable(EmbedderError):
    """The embedder did not answer.

    Cause: the service of a remote embedder is down, slow or limits the rate.

    Cure: repeat the call later. Vectors of stored events follow by a job, and words find the notes until then.
    """


class EmbedderUnreadable(EmbedderError):
    """That folder or name does not contain a readable embedder.

    Cause: the folder lacks a file, a file is damaged, or the name is unknown.

    Cure: export or download the embedder again, or pass the name of another one.
    """


class ScorerError(ZettelError):
    """The scorer failed.

    Cause: a scorer returned an array of the wrong shape or infinite numbers, or its weights belong to other
    features.

    Cure: correct the scorer, or train it again with this version of zettel.
    """


class ModelError(ZettelError):
    """The language model failed.

    Cause: a call of the language model failed. Its job stores the error.

    Cure: remove the cause, then call ``retry_jobs``. All events are stored.
    """

    spent: Any = None
    """The cost of the failed call, as an ``Answer`` without text, or None if unknown."""


class ModelUnavailable(ModelError):
    """The language model did not answer.

    Cause: the provider is down, slow or limits the rate.

    Cure: wait: jobs retry by themselves, after ``retry_after`` seconds if the provider states them.
    """

    retry_after: float | None = None

    def __init__(self, message: str | None = None, retry_after: float | None = None) -> None:
        """``retry_after``: seconds to wait, if the provider states them."""
        super().__init__(message)
        self.retry_after = retry_after


class ModelDenied(ModelError):
    """The language model's provider refused the key, or does not offer the model.

    Cause: the API key is missing or wrong, or the account has no access to the model.

    Cure: set the key of the provider or choose another model, then call ``retry_jobs``.
    """


class InvalidModelOutput(ModelError):
    """The language model's answer is invalid.

    Cause: the answer of the model is not JSON of the requested form.

    Cure: call ``retry_jobs``. If it fails again, use a larger model.
    """


class InvalidModelItem(InvalidModelOutput):
    """The language model's answer contains nothing valid for one note.

    Cause: the model answered for other notes of the batch, but its entry for this one is missing or invalid.

    Cure: call ``retry_jobs``. The other notes of the batch are done.
    """


class BudgetSpent(ModelError):
    """The budget for language models is spent.

    Cause: the calls, tokens or cost of the budget are used up.

    Cure: wait until ``until``, when jobs continue by themselves, or open the memory with a higher ``budget=``.
    """

    until: datetime | None = None

    def __init__(self, message: str | None = None, until: datetime | None = None) -> None:
        """``until``: start of the next budget period; None if the budget does not renew."""
        super().__init__(message)
        self.until = until


class MissingExtra(ZettelError, ImportError):
    """That feature needs packages that are not installed.

    Cause: the feature needs packages that the core does not install.

    Cure: run the ``pip install`` command of the message.
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f'{feature} needs more packages: pip install "{DISTRIBUTION}[{extra}]"')


class MemoryClosed(ZettelError):
    """This memory was closed.

    Cause: the memory was closed, was opened before a fork, or belongs to another event loop.

    Cure: open another memory in this process and this loop.
    """


class JobFailed(ZettelError):
    """A background job failed; ``zettel jobs`` shows its error.

    Cause: a background job ended in an error. All events are stored.

    Cure: ``zettel jobs`` shows the error. Remove its cause, then call ``retry_jobs``.
    """


class RunnerUnavailable(ZettelError):
    """The runner of the jobs cannot be reached.

    Cause: a worker process or the Ray cluster could not start, ended, or lost a batch.

    Cure: start the cluster or free memory. The jobs stay queued and run when a runner is available.
    """


class FlushTimeout(ZettelError, TimeoutError):
    """Jobs were still pending at the timeout.

    Cause: the pending jobs took longer than ``timeout`` seconds.

    Cure: call ``flush`` again with more time. The jobs continue.
    """


class ServerError(ZettelError):
    """The zettel server failed.

    Cause: the server had an internal error, or a program between client and server answered in its place.

    Cure: check the address; the log of the server contains the class and the place of the error.
    """


class ServerUnreachable(ServerError):
    """The zettel server cannot be reached.

    Cause: the server is stopped, or a network or TLS problem blocks the way to it.

    Cure: check the address, then repeat the call. A repeated ``add`` with an ``id`` stores the event once.
    """


class InvalidKey(ServerError):
    """That key is unknown to the server, revoked or expired.

    Cause: the key is mistyped, revoked, expired or of another server.

    Cure: create a key with ``zettel keys create``, and pass it as ``key=`` or ``ZETTEL_KEY``.
    """


class PermissionDenied(ServerError):
    """That key does not allow this.

    Cause: the right of the key is too low, the scope is not one of the key's, or the writer has less than full
    trust.

    Cure: use a key with the right that the message names, or another scope.
    """


class RequestTimeout(ServerError):
    """The request did not arrive in time.

    Cause: the client sent the body too slowly.

    Cure: send the body at once, over a faster connection or in smaller requests.
    """


class ServerBusy(ServerError):
    """The server is overloaded or stopping.

    Cause: too many requests are running, or the server is stopping.

    Cure: repeat the request after ``retry_after`` seconds.
    """

    retry_after: float | None = None
    """Seconds to wait, if the server states them."""


class TooManyRequests(ServerBusy):
    """That key exceeded its rate limit.

    Cause: the key sends more requests in a second than its limit.

    Cure: wait ``retry_after`` seconds, send events in batches, or start the server with a higher ``--rate``.
    """
