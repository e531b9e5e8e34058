"""The connection to one database of a Neo4j server: its release, reads and writes in managed transactions, and the
driver's errors in zettel's words."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

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
    from neo4j import AsyncBookmarkManager, AsyncDriver, AsyncManagedTransaction, Record
    from neo4j.exceptions import DriverError, Neo4jError

OLDEST = (5, 26)
"""The oldest release that knows all of our statements; the current long-term one."""
SEARCHING = 2026
"""From the releases of this year on, a vector index filters while it searches."""
CONNECT_SECONDS = 10.0
"""How long a server may take to accept a connection."""
RETRY_SECONDS = 20.0
"""How long a transaction that lost to another one, or whose connection broke, is tried again."""

Result = TypeVar("Result")
Work = Callable[["Transaction"], Awaitable[Result]]

_AGENT = re.compile(r"Neo4j/(\d+)\.(\d+)")


class Transaction:
    """One transaction, in which statements are run by name."""

    def __init__(self, inner: AsyncManagedTransaction, release: int) -> None:
        self._inner, self._release = inner, release

    async def run(
        self, name: str, /, *flags: str, fill: Mapping[str, str | int] | None = None, **values: Any
    ) -> list[Record]:
        """The rows that a statement answers."""
        result = await self._inner.run(statement(name, *flags, release=self._release, **(fill or {})), values)
        return [record async for record in result]


class Connection:
    """What is open on one database. ``auth`` is (user, password), or None for the environment's NEO4J_USERNAME and
    NEO4J_PASSWORD."""

    def __init__(self, url: str, auth: Any, database: str) -> None:
        self.url, self.database = url, database
        if auth is None and os.environ.get("NEO4J_PASSWORD"):
            auth = (os.environ.get("NEO4J_USERNAME", "neo4j"), os.environ["NEO4J_PASSWORD"])
        self._auth = tuple(auth) if isinstance(auth, list) else auth
        self._driver: AsyncDriver | None = None
        self._bookmarks: AsyncBookmarkManager | None = None
        self._keeper: asyncio.Task[None] | None = None
        self.release = 0

    async def open(self) -> None:
        """Connect. Raises ``StoreUnreachable``, ``StoreDenied``, ``StoreTooOld``, ``NotAStore``, ``InvalidInput``."""
        from neo4j import AsyncGraphDatabase
        from neo4j.exceptions import ConfigurationError

        try:
            driver = AsyncGraphDatabase.driver(
                self.url,
                auth=self._auth,
                connection_timeout=CONNECT_SECONDS,
                max_transaction_retry_time=RETRY_SECONDS,
                notifications_min_severity="OFF",
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

        async def work(transaction: Transaction) -> list[Record]:
            return await transaction.run(name, *flags, fill=fill, **values)

        return await self.reading(work)

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

        async with (
            self.translated(),
            self.driver.session(database=self.database, bookmark_manager=self._bookmarks) as session,
        ):
            await session.execute_write(run)

    async def _transact(self, work: Work[Result], *, write: bool) -> Result:
        async def run(inner: AsyncManagedTransaction) -> Result:
            return await work(Transaction(inner, self.release))

        async with self.translated(), self.driver.session(
            database=self.database,
            default_access_mode="WRITE" if write else "READ",
            bookmark_manager=self._bookmarks,
            fetch_size=-1,  # all rows with the answer: what is asked for is bounded, and a page costs a round trip
        ) as session:
            return await (session.execute_write(run) if write else session.execute_read(run))

    def _release(self, agent: str) -> int:
        found = _AGENT.search(agent)
        version = (int(found[1]), int(found[2])) if found else (0, 0)
        if version < OLDEST:
            raise StoreTooOld(f"{self.url} is {agent}: zettel needs Neo4j {OLDEST[0]}.{OLDEST[1]} or newer")
        return version[0]

    @asynccontextmanager
    async def translated(self) -> AsyncIterator[None]:
        """The driver's errors as ours."""
        from neo4j.exceptions import DriverError, Neo4jError

        try:
            yield
        except (DriverError, Neo4jError) as error:
            raise self._told(error) from error
        except OSError as error:  # while a name is looked up
            raise StoreUnreachable(f"{self.url} cannot be reached: {_line(error)}") from error

    def _told(self, error: DriverError | Neo4jError) -> StoreError | InvalidInput:
        from neo4j.exceptions import (
            AuthError,
            ConfigurationError,
            Forbidden,
            ServiceUnavailable,
            SessionExpired,
            TransientError,
        )

        code, said = str(getattr(error, "code", "")), _line(error)
        if isinstance(error, ConfigurationError):
            return InvalidInput(f"{self.url}: {said}")
        if isinstance(error, AuthError):
            return StoreDenied(
                f"{self.url} refused that user or password: give auth=(user, password), "
                "or set NEO4J_USERNAME and NEO4J_PASSWORD"
            )
        if "DatabaseNotFound" in code:
            return NotAStore(f"{self.url} has no database {self.database!r}: name another one with database=…")
        if isinstance(error, (ServiceUnavailable, SessionExpired)):
            return StoreUnreachable(f"{self.url} cannot be reached: {said}; is the server running?")
        if isinstance(error, Forbidden) or "ReadOnly" in code or "NotALeader" in code:
            return StoreReadOnly(f"{self.url} cannot be written: {said}")
        if "NoSpaceLeft" in code or ("space" in said and "device" in said):
            return StoreFull(f"{self.url}: no space is left; nothing was written")
        if isinstance(error, TransientError):
            return StoreBusy(f"{self.url} was busy for {RETRY_SECONDS:g} s; try again ({said})")
        return StoreError(f"{self.url}: {said}")


async def _keep(driver: AsyncDriver) -> None:
    """Close the driver when this task is cancelled, be it because the loop ends that its connections live in.

    Left open, they would hold the locks of what was begun.
    """
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await driver.close()


def statement(name: str, /, *flags: str, release: int, **names: str | int) -> str:
    """A statement as it is sent: its language is named, whatever the database's default is."""
    text = load(name, *flags, release=min(release, SEARCHING), **names)
    return text if text.startswith("CYPHER") else f"CYPHER 5 {text}"


def _line(error: BaseException) -> str:
    """The first line of what an error says."""
    return str(getattr(error, "message", None) or error).strip().partition("\n")[0].rstrip(".")
