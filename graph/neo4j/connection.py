"""The connection to one Neo4j database: release, managed transactions, translation of the driver's errors."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import anyio

from zettel.cypher import load
from zettel.errors import (
    InvalidInput,
    MemoryClosed,
    MissingExtra,
    NotAStore,
    StoreBusy,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooOld,
    StoreUnreachable,
)
from zettel.graph.neo4j.opener import Opener

if TYPE_CHECKING:
    from neo4j import AsyncBookmarkManager, AsyncDriver, AsyncManagedTransaction, AsyncResult, AsyncSession, Record

    from zettel.model import Scope

DEFAULT_DATABASE = "neo4j"
"""The name of a server's first database, the only one in the Community edition."""
OLDEST = (5, 26)
"""The oldest supported release, the long-term one."""
FILTERING_INDEX = 2026
"""The first release whose vector index filters while it searches."""
CONNECT_SECONDS = 10.0
"""Timeout of a connection attempt."""
RETRY_SECONDS = 20.0
"""Time limit for retries after a deadlock or a lost connection."""
FIRST_PAUSE = 0.05
"""Seconds before the first retry; each later pause is twice as long."""
LOCK_SECONDS = 30.0
"""Timeout of the wait for a scope's lock; the server itself has no limit."""

PARAMETERS = "given"
"""The single parameter of a statement: a map of its values."""

Result = TypeVar("Result")
Work = Callable[["Transaction"], Awaitable[Result]]

_ALREADY_EXISTS = tuple(
    f"Neo.ClientError.Schema.{rule}AlreadyExists"
    for rule in ("EquivalentSchemaRule", "Constraint", "Index", "ConstraintWithName", "IndexWithName")
)
_TERMINATED = "Neo.ClientError.Transaction."
"""Prefix of the error codes of a transaction that the server ended; after a timeout the rest of the code varies."""
_PARAMETER = re.compile(r"\$(\w+)")
_AGENT = re.compile(r"Neo4j/(\d+)\.(\d+)")
_NEEDED = f"zettel needs Neo4j {OLDEST[0]}.{OLDEST[1]} or newer"
_NULL_HANDLER = logging.NullHandler()


def require_driver() -> None:
    """Raise ``MissingExtra`` if the Neo4j driver is not installed, without importing it."""
    if find_spec("neo4j") is None:
        raise MissingExtra("a memory in Neo4j", "neo4j")


class Transaction:
    """One transaction that runs statements by name.

    The first statement of a write takes a lock and waits at most ``lock_timeout`` seconds for it.
    """

    def __init__(self, inner: AsyncManagedTransaction, release: int, lock_timeout: float | None) -> None:
        self._inner, self._release, self._lock_timeout = inner, release, lock_timeout

    async def run(
        self, name: str, /, *flags: str, fill: Mapping[str, str | int] | None = None, **values: Any
    ) -> list[Record]:
        """Return the rows of a statement. Raises ``StoreBusy`` if another transaction has the lock for too long."""
        text = statement(name, *flags, release=self._release, **(fill or {}))
        timeout, self._lock_timeout = self._lock_timeout, None
        try:
            with anyio.fail_after(timeout):
                result = await self._inner.run(text, {PARAMETERS: values})
                return [record async for record in result]
        except TimeoutError:
            raise _lock_timeout_error(timeout) from None


class Neo4jConnection:
    """The driver of one database, and its transactions.

    ``auth`` is (user, password), or None for the environment's NEO4J_USERNAME and NEO4J_PASSWORD.
    """

    def __init__(self, url: str, auth: Any, database: str) -> None:
        self.url, self.database = _checked_url(url), database
        require_driver()
        auth = auth_of(auth)
        if isinstance(auth, (str, bytes)):
            raise InvalidInput("auth must be (user, password) or an auth object of the neo4j driver")
        self._auth = tuple(auth) if isinstance(auth, list) else auth
        self._driver: AsyncDriver | None = None
        self._opener: Opener | None = None
        self._bookmarks: AsyncBookmarkManager | None = None
        self._closer: asyncio.Task[None] | None = None
        self.release = 0

    async def open(self) -> None:
        """Connect. Raises ``StoreUnreachable``, ``StoreDenied``, ``StoreTooOld``, ``NotAStore``, ``InvalidInput``."""
        from neo4j import AsyncGraphDatabase
        from neo4j.exceptions import ConfigurationError

        # zettel's errors contain the reasons; the driver's log appears only if the program configures logging.
        logging.getLogger("neo4j").addHandler(_NULL_HANDLER)
        try:
            driver = AsyncGraphDatabase.driver(
                self.url,
                auth=self._auth,
                connection_timeout=CONNECT_SECONDS,
                max_transaction_retry_time=RETRY_SECONDS,
                initial_retry_delay=FIRST_PAUSE,
                notifications_min_severity="OFF",
                fetch_size=-1,  # all rows at once: they are few, and each page costs a round trip
                user_agent="zettel",
            )
        except (ConfigurationError, ValueError, TypeError) as error:
            raise InvalidInput(f"{self.url}: {_line(error)}") from None
        opener = Opener(driver, self.url)
        try:
            async with self.translated(), driver.session(database=self.database) as session:
                summary = await (await session.run("RETURN 1")).consume()
            self.release = self._release(summary.server.agent)
        except BaseException:
            await opener.close_driver()
            raise
        self._bookmarks = AsyncGraphDatabase.bookmark_manager()
        self._closer = asyncio.create_task(_close_on_cancel(opener), name="zettel neo4j")
        self._driver, self._opener = driver, opener

    async def close(self) -> None:
        """Close the driver. Closing twice does nothing."""
        closer, self._closer = self._closer, None
        opener, self._opener = self._opener, None
        self._driver = None
        if closer is None or opener is None or closer.get_loop() is not asyncio.get_running_loop():
            return
        closer.cancel()
        await asyncio.wait([closer])
        await opener.close_driver()  # a task that is cancelled before it starts does nothing

    @property
    def driver(self) -> AsyncDriver:
        """The driver. Raises ``MemoryClosed``."""
        if self._driver is None:
            raise MemoryClosed(f"{self.url} is not open")
        return self._driver

    @property
    def bookmarks(self) -> AsyncBookmarkManager | None:
        """The bookmarks with which a transaction sees all earlier ones, in a cluster too."""
        return self._bookmarks

    @property
    def searches_in_scope(self) -> bool:
        """True if the vector index can search in one scope alone."""
        return self.release >= FILTERING_INDEX

    async def read(
        self, name: str, /, *flags: str, fill: Mapping[str, str | int] | None = None, **values: Any
    ) -> list[Record]:
        """Return the rows of one statement, in its own transaction."""
        text = statement(name, *flags, release=self.release, **(fill or {}))
        return await self._alone(text, values, write=False)

    async def read_scoped(self, name: str, scope: Scope | None, **values: Any) -> list[Record]:
        """Return the rows of one statement about one scope, or about all scopes (None)."""
        flags = () if scope is None else ("scoped",)
        return await self.read(name, *flags, scope=None if scope is None else scope.key, **values)

    async def in_batches(self, name: str, /, fill: Mapping[str, str | int], **values: Any) -> None:
        """Run a statement that commits in batches. After an error it runs again and processes the rest."""
        await self._alone(statement(name, release=self.release, **fill), values, write=True)

    async def _alone(self, text: str, values: Mapping[str, Any], *, write: bool) -> list[Record]:
        from neo4j.exceptions import DriverError, IncompleteCommit, Neo4jError

        deadline, pause = time.monotonic() + RETRY_SECONDS, FIRST_PAUSE
        async with self.translated():
            while True:  # the retries of the driver's managed transactions, without their two extra round trips
                try:
                    async with self._session(write=write) as session:
                        return [record async for record in await session.run(text, {PARAMETERS: values})]
                except (DriverError, Neo4jError) as error:
                    retryable = error.is_retryable() or isinstance(error, IncompleteCommit)
                    if not retryable or time.monotonic() + pause > deadline:
                        raise
                await anyio.sleep(pause)
                pause *= 2

    async def write(
        self,
        name: str,
        /,
        *flags: str,
        check: Callable[[Record], None],
        fill: Mapping[str, str | int] | None = None,
        **values: Any,
    ) -> None:
        """Run one small write that returns one row, in its own transaction, which may run again.

        An error of ``check`` rolls it back. This takes two round trips; ``writing`` takes one for each statement and
        two more. Raises ``StoreBusy`` if the server ends it after LOCK_SECONDS.
        """
        from neo4j import Query, RoutingControl
        from neo4j.exceptions import ClientError

        text = statement(name, *flags, release=self.release, **(fill or {}))
        query = Query(text, timeout=LOCK_SECONDS)

        async def checked(result: AsyncResult) -> None:
            check(await result.single(strict=True))

        async def attempt() -> None:
            started = time.monotonic()
            try:
                await self.driver.execute_query(
                    query,
                    {PARAMETERS: values},
                    routing_=RoutingControl.WRITE,
                    database_=self.database,
                    bookmark_manager_=self._bookmarks,
                    result_transformer_=checked,
                )
            except ClientError as error:
                if not str(error.code).startswith(_TERMINATED) or time.monotonic() < started + LOCK_SECONDS:
                    raise
                raise _lock_timeout_error(LOCK_SECONDS) from error

        await self._until_committed(attempt)

    async def reading(self, work: Work[Result]) -> Result:
        """Run several statements in one read transaction, which may run again."""
        return await self._transact(work, write=False)

    async def writing(self, work: Work[Result]) -> Result:
        """Run several statements in one write transaction, which may run again."""
        return await self._transact(work, write=True)

    async def command(self, text: str) -> None:
        """Run a schema statement, which may run again. Other processes may run the same one at the same time."""

        async def run(inner: AsyncManagedTransaction) -> None:
            await (await inner.run(text)).consume()

        try:
            await self._managed(run, write=True)
        except StoreError as error:  # IF NOT EXISTS does not see uncommitted schema changes
            if getattr(error.__cause__, "code", None) not in _ALREADY_EXISTS:
                raise

    async def _transact(self, work: Work[Result], *, write: bool) -> Result:
        async def run(inner: AsyncManagedTransaction) -> Result:
            return await work(Transaction(inner, self.release, LOCK_SECONDS if write else None))

        return await self._managed(run, write=write)

    async def _managed(self, run: Callable[[AsyncManagedTransaction], Awaitable[Result]], *, write: bool) -> Result:
        """Run a transaction that the driver retries after transient errors."""

        async def attempt() -> Result:
            async with self._session(write=write) as session:
                return await (session.execute_write(run) if write else session.execute_read(run))

        return await self._until_committed(attempt)

    async def _until_committed(self, attempt: Callable[[], Awaitable[Result]]) -> Result:
        """Run a transaction of the driver again if the connection broke during its commit.

        The driver does not retry then, because the commit may have succeeded. All transactions here may run twice:
        they see that they were written, or write the same values.
        """
        from neo4j.exceptions import IncompleteCommit

        deadline = time.monotonic() + RETRY_SECONDS
        async with self.translated():
            while True:
                try:
                    return await attempt()
                except IncompleteCommit:
                    if time.monotonic() > deadline:
                        raise

    def _session(self, *, write: bool) -> AsyncSession:
        return self.driver.session(
            database=self.database,
            default_access_mode="WRITE" if write else "READ",
            bookmark_manager=self._bookmarks,
        )

    def _release(self, agent: str) -> int:
        match = _AGENT.search(agent)
        version = (int(match[1]), int(match[2])) if match else (0, 0)
        if version < OLDEST:
            raise StoreTooOld(f"{self.url} is {agent}: {_NEEDED}")
        return version[0]

    @asynccontextmanager
    async def translated(self) -> AsyncIterator[None]:
        """Raise the driver's errors as zettel's."""
        from neo4j.exceptions import DriverError, Neo4jError, UnsupportedServerProduct

        try:
            yield
        except (DriverError, Neo4jError, UnsupportedServerProduct) as error:
            raise self._translate(error) from error
        except OSError as error:  # from the name lookup
            raise StoreUnreachable(f"{self.url} cannot be reached: {_line(error)}") from error

    def _translate(self, error: Exception) -> StoreError | InvalidInput:
        from neo4j.exceptions import (
            AuthError,
            ConfigurationError,
            Forbidden,
            ServiceUnavailable,
            SessionExpired,
            TransientError,
            UnsupportedServerProduct,
        )

        code, message = str(getattr(error, "code", "")), _line(error)
        if isinstance(error, UnsupportedServerProduct):
            return StoreTooOld(f"{self.url} speaks a version of Bolt that the driver does not know: {_NEEDED}")
        if isinstance(error, ConfigurationError):
            return InvalidInput(f"{self.url}: {message}")
        if isinstance(error, AuthError):
            return StoreDenied(
                f"{self.url} refused that user or password: give auth=(user, password), "
                "or set NEO4J_USERNAME and NEO4J_PASSWORD"
            )
        if "CredentialsExpired" in code:
            return StoreDenied(f"{self.url}: the password has expired: change it, for example in Neo4j Browser")
        if "AuthenticationRateLimit" in code:
            return StoreDenied(f"{self.url} received too many wrong passwords: try again in some seconds")
        if "DatabaseNotFound" in code:
            return NotAStore(
                f"{self.url} has no database {self.database!r}: name another one with database=… or NEO4J_DATABASE"
            )
        if isinstance(error, (ServiceUnavailable, SessionExpired)):
            return StoreUnreachable(f"{self.url} cannot be reached: {_reason(error)}")
        if isinstance(error, Forbidden) or "ReadOnly" in code or "NotALeader" in code:
            return StoreReadOnly(f"{self.url} cannot be written: {message}")
        if "NoSpaceLeft" in code or ("space" in message and "device" in message):
            return StoreFull(f"{self.url}: no space is left; nothing was written")
        if isinstance(error, TransientError):
            return StoreBusy(f"{self.url} was busy for {RETRY_SECONDS:g} s; try again ({message})")
        return StoreError(f"{self.url}: {message}")


def auth_of(auth: Any) -> Any:
    """Return ``auth``, or the environment's (user, password) if it has them."""
    if auth is None and os.environ.get("NEO4J_PASSWORD"):
        return os.environ.get("NEO4J_USERNAME", "neo4j"), os.environ["NEO4J_PASSWORD"]
    return auth


def database_of(database: str | None) -> str:
    """Return ``database``, or the environment's NEO4J_DATABASE, or the server's first one."""
    return database or os.environ.get("NEO4J_DATABASE") or DEFAULT_DATABASE


def _checked_url(url: str) -> str:
    """Return a URL without secrets. Raises ``InvalidInput`` if it contains a password or a database."""
    scheme, _, host = url.partition("://")
    if "@" in host:
        raise InvalidInput(
            f"{scheme}://{host.rpartition('@')[2]}: an address must not contain a user or password: "
            "give auth=(user, password), or set NEO4J_USERNAME and NEO4J_PASSWORD"
        )
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError as error:
        raise InvalidInput(f"{url} is not the address of a server: {error}") from None
    if parts.path.strip("/") or "database" in parse_qs(parts.query):
        raise InvalidInput(f"{url}: an address must not contain a database: name it with database=… or NEO4J_DATABASE")
    return url


async def _close_on_cancel(opener: Opener) -> None:
    """Close the driver when this task is cancelled, also by the end of its event loop.

    Open connections would hold the locks of their transactions.
    """
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await opener.close_driver()


@lru_cache(maxsize=256)
def statement(name: str, /, *flags: str, release: int, **names: str | int) -> str:
    """Return the text of a statement with its Cypher version, and with its parameters as entries of one map.

    A server caches a plan for each combination of parameter types and sizes; one map has only one combination.
    """
    text = _PARAMETER.sub(rf"${PARAMETERS}.\1", load(name, *flags, release=min(release, FILTERING_INDEX), **names))
    return text if text.startswith("CYPHER") else f"CYPHER 5 {text}"


def _lock_timeout_error(seconds: float | None) -> StoreBusy:
    return StoreBusy(f"another process was writing there for {seconds:g} s; nothing was written, try again")


def _line(error: BaseException) -> str:
    """Return the first line of an error's message. The driver's own errors have an empty ``message``."""
    from neo4j.exceptions import Neo4jError

    message = error.message if isinstance(error, Neo4jError) else None
    return str(message or error).strip().partition("\n")[0].rstrip(".")


def _reason(error: BaseException) -> str:
    """Return the reason why a server cannot be reached, from the innermost error."""
    while inner := error.__cause__ or next(iter(getattr(error, "exceptions", ())), None):
        error = inner
    if "looks like HTTP" in str(error):
        return "this is its HTTP port; the port for drivers is usually 7687"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}); if it is self-signed, write +ssc:// for +s://"
    if isinstance(error, OSError) and error.errno:  # negative after a failed name lookup
        why = os.strerror(error.errno) if error.errno > 0 else error.strerror
    else:
        why = "the connection broke"
    return f"{why}; is the server running?"
