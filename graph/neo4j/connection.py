"""The connection to one database of a Neo4j server: its release, reads and writes in managed transactions, and the
driver's errors in zettel's words."""

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
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import anyio

from zettel.cypher import load
from zettel.errors import (
    InvalidInput,
    MemoryClosed,
    NotAStore,
    StoreBusy,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooOld,
    StoreUnreachable,
)

if TYPE_CHECKING:
    from neo4j import AsyncBookmarkManager, AsyncDriver, AsyncManagedTransaction, AsyncResult, AsyncSession, Record

DEFAULT_DATABASE = "neo4j"
"""What a server's first database is called; the Community edition has no other."""
OLDEST = (5, 26)
"""The oldest release that knows all of our statements; the current long-term one."""
SEARCHING = 2026
"""From the releases of this year on, a vector index filters while it searches."""
CONNECT_SECONDS = 10.0
"""How long a server may take to accept a connection."""
RETRY_SECONDS = 20.0
"""How long a transaction that lost to another one, or whose connection broke, is tried again."""
FIRST_PAUSE = 0.05
"""Seconds before the first of these attempts, then twice as long each time: whoever won is mostly done by then."""
LOCK_SECONDS = 30.0
"""How long a write waits for the one before it in its scope: by itself the server would let it wait for ever."""

GIVEN = "given"
"""The one parameter of a statement as it is sent."""

Result = TypeVar("Result")
Work = Callable[["Transaction"], Awaitable[Result]]

_MADE_BY_OTHERS = tuple(
    f"Neo.ClientError.Schema.{rule}AlreadyExists"
    for rule in ("EquivalentSchemaRule", "Constraint", "Index", "ConstraintWithName", "IndexWithName")
)
_TERMINATED = "Neo.ClientError.Transaction."
"""What the error codes of a transaction that the server ended begin with; which one it is after too long depends on
what it was at."""
_PARAMETER = re.compile(r"\$(\w+)")
_AGENT = re.compile(r"Neo4j/(\d+)\.(\d+)")
_NEEDED = f"zettel needs Neo4j {OLDEST[0]}.{OLDEST[1]} or newer"
_NOBODY = logging.NullHandler()


class Transaction:
    """One transaction, in which statements are run by name. The first statement of one that writes takes a lock, for
    which it waits ``patience`` seconds."""

    def __init__(self, inner: AsyncManagedTransaction, release: int, patience: float | None) -> None:
        self._inner, self._release, self._patience = inner, release, patience

    async def run(
        self, name: str, /, *flags: str, fill: Mapping[str, str | int] | None = None, **values: Any
    ) -> list[Record]:
        """The rows that a statement answers. Raises ``StoreBusy`` if another transaction keeps the lock."""
        text = statement(name, *flags, release=self._release, **(fill or {}))
        patience, self._patience = self._patience, None
        try:
            with anyio.fail_after(patience):
                result = await self._inner.run(text, {GIVEN: values})
                return [record async for record in result]
        except TimeoutError:
            raise _kept_waiting(patience) from None


class Connection:
    """What is open on one database. ``auth`` is (user, password), or None for the environment's NEO4J_USERNAME and
    NEO4J_PASSWORD."""

    def __init__(self, url: str, auth: Any, database: str) -> None:
        self.url, self.database = _address(url), database
        auth = auth_of(auth)
        if isinstance(auth, (str, bytes)):
            raise InvalidInput("auth is (user, password), or an auth object of the neo4j driver")
        self._auth = tuple(auth) if isinstance(auth, list) else auth
        self._driver: AsyncDriver | None = None
        self._bookmarks: AsyncBookmarkManager | None = None
        self._keeper: asyncio.Task[None] | None = None
        self.release = 0

    async def open(self) -> None:
        """Connect. Raises ``StoreUnreachable``, ``StoreDenied``, ``StoreTooOld``, ``NotAStore``, ``InvalidInput``."""
        from neo4j import AsyncGraphDatabase
        from neo4j.exceptions import ConfigurationError

        # Our errors say what there is to say; the driver's log is for those who have set up logging.
        logging.getLogger("neo4j").addHandler(_NOBODY)
        try:
            driver = AsyncGraphDatabase.driver(
                self.url,
                auth=self._auth,
                connection_timeout=CONNECT_SECONDS,
                max_transaction_retry_time=RETRY_SECONDS,
                initial_retry_delay=FIRST_PAUSE,
                notifications_min_severity="OFF",
                fetch_size=-1,  # all rows with the answer: they are bounded, and a page costs a round trip
                user_agent="zettel",
            )
        except (ConfigurationError, ValueError, TypeError) as error:
            raise InvalidInput(f"{self.url}: {_line(error)}") from None
        try:
            async with self.translated(), driver.session(database=self.database) as session:
                told = await (await session.run("RETURN 1")).consume()
            self.release = self._release(told.server.agent)
        except BaseException:
            await driver.close()
            raise
        self._bookmarks = AsyncGraphDatabase.bookmark_manager()
        self._keeper = asyncio.create_task(_keep(driver), name="zettel neo4j")
        self._driver = driver

    async def close(self) -> None:
        """Close all. Closing twice does nothing."""
        keeper, self._keeper = self._keeper, None
        self._driver = None
        if keeper is not None and keeper.get_loop() is asyncio.get_running_loop():
            keeper.cancel()
            await asyncio.wait([keeper])

    @property
    def driver(self) -> AsyncDriver:
        """The driver. Raises ``MemoryClosed``."""
        if self._driver is None:
            raise MemoryClosed(f"{self.url} is not open")
        return self._driver

    @property
    def bookmarks(self) -> AsyncBookmarkManager | None:
        """What makes every transaction see those before it, in a cluster too."""
        return self._bookmarks

    @property
    def searches_in_scope(self) -> bool:
        """Whether a vector index can be asked for the vectors of one scope alone."""
        return self.release >= SEARCHING

    async def read(
        self, name: str, /, *flags: str, fill: Mapping[str, str | int] | None = None, **values: Any
    ) -> list[Record]:
        """The rows that one statement answers, in a transaction of its own."""
        text = statement(name, *flags, release=self.release, **(fill or {}))
        return await self._alone(text, values, write=False)

    async def in_batches(self, name: str, /, fill: Mapping[str, str | int], **values: Any) -> None:
        """A statement that commits by itself again and again; it may be run again, to go on with what is left."""
        await self._alone(statement(name, release=self.release, **fill), values, write=True)

    async def _alone(self, text: str, values: Mapping[str, Any], *, write: bool) -> list[Record]:
        from neo4j.exceptions import DriverError, IncompleteCommit, Neo4jError

        deadline, pause = time.monotonic() + RETRY_SECONDS, FIRST_PAUSE
        async with self.translated():
            while True:  # as the driver does with transactions of several statements, which take three round trips
                try:
                    async with self._session(write=write) as session:
                        return [record async for record in await session.run(text, {GIVEN: values})]
                except (DriverError, Neo4jError) as error:
                    again = error.is_retryable() or isinstance(error, IncompleteCommit)
                    if not again or time.monotonic() + pause > deadline:
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
        """One statement that takes a lock, writes little and answers one row, in a transaction of its own; it may be
        run again. What ``check`` raises undoes all.

        This takes two round trips, where several statements take one each and two more. Raises ``StoreBusy`` if the
        server ends it after LOCK_SECONDS.
        """
        from neo4j import Query, RoutingControl
        from neo4j.exceptions import ClientError

        text = statement(name, *flags, release=self.release, **(fill or {}))
        asked = Query(text, timeout=LOCK_SECONDS)

        async def checked(result: AsyncResult) -> None:
            check(await result.single(strict=True))

        async def attempt() -> None:
            began = time.monotonic()
            try:
                await self.driver.execute_query(
                    asked,
                    {GIVEN: values},
                    routing_=RoutingControl.WRITE,
                    database_=self.database,
                    bookmark_manager_=self._bookmarks,
                    result_transformer_=checked,
                )
            except ClientError as error:
                if not str(error.code).startswith(_TERMINATED) or time.monotonic() < began + LOCK_SECONDS:
                    raise
                raise _kept_waiting(LOCK_SECONDS) from error

        await self._unless_lost(attempt)

    async def reading(self, work: Work[Result]) -> Result:
        """Several statements in one transaction that only reads; it may be run again."""
        return await self._transact(work, write=False)

    async def writing(self, work: Work[Result]) -> Result:
        """Several statements in one transaction, all or nothing; it may be run again from its beginning."""
        return await self._transact(work, write=True)

    async def command(self, text: str) -> None:
        """A statement that changes the schema, or waits for it; it may be run again, for others may do the same."""

        async def run(inner: AsyncManagedTransaction) -> None:
            await (await inner.run(text)).consume()

        try:
            await self._managed(run, write=True)
        except StoreError as error:  # IF NOT EXISTS does not see what another transaction makes at this moment
            if getattr(error.__cause__, "code", None) not in _MADE_BY_OTHERS:
                raise

    async def _transact(self, work: Work[Result], *, write: bool) -> Result:
        async def run(inner: AsyncManagedTransaction) -> Result:
            return await work(Transaction(inner, self.release, LOCK_SECONDS if write else None))

        return await self._managed(run, write=write)

    async def _managed(self, run: Callable[[AsyncManagedTransaction], Awaitable[Result]], *, write: bool) -> Result:
        """A transaction that is run again after what may have passed by the next attempt."""

        async def attempt() -> Result:
            async with self._session(write=write) as session:
                return await (session.execute_write(run) if write else session.execute_read(run))

        return await self._unless_lost(attempt)

    async def _unless_lost(self, attempt: Callable[[], Awaitable[Result]]) -> Result:
        """What a transaction of the driver answers, which is run again if its end was lost.

        The driver leaves it at that when it asked for a commit and the connection broke before the answer, for it may
        have happened. All that is run here may be run again: what was written then is seen, or writes the same.
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
        found = _AGENT.search(agent)
        version = (int(found[1]), int(found[2])) if found else (0, 0)
        if version < OLDEST:
            raise StoreTooOld(f"{self.url} is {agent}: {_NEEDED}")
        return version[0]

    @asynccontextmanager
    async def translated(self) -> AsyncIterator[None]:
        """The driver's errors as ours."""
        from neo4j.exceptions import DriverError, Neo4jError, UnsupportedServerProduct

        try:
            yield
        except (DriverError, Neo4jError, UnsupportedServerProduct) as error:
            raise self._told(error) from error
        except OSError as error:  # while a name is looked up
            raise StoreUnreachable(f"{self.url} cannot be reached: {_line(error)}") from error

    def _told(self, error: Exception) -> StoreError | InvalidInput:
        from neo4j.exceptions import (
            AuthError,
            ConfigurationError,
            Forbidden,
            ServiceUnavailable,
            SessionExpired,
            TransientError,
            UnsupportedServerProduct,
        )

        code, said = str(getattr(error, "code", "")), _line(error)
        if isinstance(error, UnsupportedServerProduct):
            return StoreTooOld(f"{self.url} speaks no Bolt that the driver knows: {_NEEDED}")
        if isinstance(error, ConfigurationError):
            return InvalidInput(f"{self.url}: {said}")
        if isinstance(error, AuthError):
            return StoreDenied(
                f"{self.url} refused that user or password: give auth=(user, password), "
                "or set NEO4J_USERNAME and NEO4J_PASSWORD"
            )
        if "CredentialsExpired" in code:
            return StoreDenied(f"{self.url}: that password has to be changed before it can be used: Neo4j Browser asks")
        if "AuthenticationRateLimit" in code:
            return StoreDenied(f"{self.url} was told too many wrong passwords: try again in some seconds")
        if "DatabaseNotFound" in code:
            return NotAStore(
                f"{self.url} has no database {self.database!r}: name another one with database=… or NEO4J_DATABASE"
            )
        if isinstance(error, (ServiceUnavailable, SessionExpired)):
            return StoreUnreachable(f"{self.url} cannot be reached: {_reason(error)}")
        if isinstance(error, Forbidden) or "ReadOnly" in code or "NotALeader" in code:
            return StoreReadOnly(f"{self.url} cannot be written: {said}")
        if "NoSpaceLeft" in code or ("space" in said and "device" in said):
            return StoreFull(f"{self.url}: no space is left; nothing was written")
        if isinstance(error, TransientError):
            return StoreBusy(f"{self.url} was busy for {RETRY_SECONDS:g} s; try again ({said})")
        return StoreError(f"{self.url}: {said}")


def auth_of(auth: Any) -> Any:
    """What was given, or (user, password) of the environment, if it has them."""
    if auth is None and os.environ.get("NEO4J_PASSWORD"):
        return os.environ.get("NEO4J_USERNAME", "neo4j"), os.environ["NEO4J_PASSWORD"]
    return auth


def database_of(database: str | None) -> str:
    """What was given, or that of the environment, as Aura hands it out, or the server's first."""
    return database or os.environ.get("NEO4J_DATABASE") or DEFAULT_DATABASE


def _address(url: str) -> str:
    """An address, which may be shown. Raises ``InvalidInput`` if it holds a password or a database, or is none."""
    scheme, _, place = url.partition("://")
    if "@" in place:
        raise InvalidInput(
            f"{scheme}://{place.rpartition('@')[2]}: an address holds no user or password: "
            "give auth=(user, password), or set NEO4J_USERNAME and NEO4J_PASSWORD"
        )
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError as error:
        raise InvalidInput(f"{url} is no address of a server: {error}") from None
    if parts.path.strip("/") or "database" in parse_qs(parts.query):
        raise InvalidInput(f"{url}: an address holds no database: name it with database=… or NEO4J_DATABASE")
    return url


async def _keep(driver: AsyncDriver) -> None:
    """Close the driver when this task is cancelled, be it because the loop ends that its connections live in.

    Left open, they would hold the locks of what was begun.
    """
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await driver.close()


@lru_cache(maxsize=256)
def statement(name: str, /, *flags: str, release: int, **names: str | int) -> str:
    """A statement as it is sent: its language is named, whatever the database's default is, and what it takes comes in
    one map. A server keeps a plan for each mixture of types and rough sizes of parameters, and a map has but one."""
    text = _PARAMETER.sub(rf"${GIVEN}.\1", load(name, *flags, release=min(release, SEARCHING), **names))
    return text if text.startswith("CYPHER") else f"CYPHER 5 {text}"


def _kept_waiting(seconds: float | None) -> StoreBusy:
    return StoreBusy(f"another process was writing there for {seconds:g} s; nothing was written, try again")


def _line(error: BaseException) -> str:
    """The first line of what an error says. The driver's own errors say in ``message`` nothing."""
    from neo4j.exceptions import Neo4jError

    said = error.message if isinstance(error, Neo4jError) else None
    return str(said or error).strip().partition("\n")[0].rstrip(".")


def _reason(error: BaseException) -> str:
    """Why a server cannot be reached: the driver tells it in the innermost of its errors."""
    while inner := error.__cause__ or next(iter(getattr(error, "exceptions", ())), None):
        error = inner
    if "looks like HTTP" in str(error):
        return "that is its port for browsers; the one for drivers is usually 7687"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}); for one of your own write +ssc:// for +s://"
    if isinstance(error, OSError) and error.errno:  # below zero where a name could not be looked up
        why = os.strerror(error.errno) if error.errno > 0 else error.strerror
    else:
        why = "the connection broke"
    return f"{why}; is the server running?"
