"""``Memory``: the public face for code without an event loop.

There is one implementation, ``AsyncMemory``. Here is only the bridge to it: a private loop in a thread of its own, and
one hop for each call.
"""

from __future__ import annotations

import asyncio
import functools
import os
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import anyio
from anyio.from_thread import BlockingPortal

from zettel.async_memory import AsyncMemory as AsyncMemory
from zettel.errors import MemoryClosed
from zettel.face.wrapping import Wrapping
from zettel.model import Scope
from zettel.ports import Annotator, Embedder, GraphStore

if TYPE_CHECKING:
    from zettel.evolve.decay import Decay
    from zettel.jobs.runners import RunnerSpec
    from zettel.llm.budget import Budget
    from zettel.llm.ports import LLM, ModelAnnotator
    from zettel.scoring import ScorerSpec

P = ParamSpec("P")
R = TypeVar("R")


class Bridge:
    """An object that lives in a loop of its own. Made by ``make`` inside that loop, ended by ``end``."""

    def __init__(self, make: Callable[[], Awaitable[Any]], end: Callable[[Any], Awaitable[None]]) -> None:
        self._pid = os.getpid()
        self._open = True
        self._portal, thread = _loop()
        try:
            self.inner = self._portal.call(make)
        except BaseException:
            _stop(self._portal, thread)
            raise
        # Also when nobody closes it: at the latest when the interpreter ends.
        self._finish = weakref.finalize(self, _finish, self._portal, thread, end, self.inner, self._pid)

    def call(self, work: Callable[[], Awaitable[R]]) -> R:
        """Run ``work`` in the loop and wait for it; Ctrl-C cancels it there."""
        future = self._start(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    async def reach(self, work: Callable[[], Awaitable[R]]) -> R:
        """The same, awaited in another loop; what is cancelled there is cancelled here."""
        return await asyncio.wrap_future(self._start(work))

    def _start(self, work: Callable[[], Awaitable[R]]) -> Future[R]:
        if self._pid != os.getpid():
            raise MemoryClosed("this memory was opened before a fork: open another one in this process")
        if not self._open:
            raise MemoryClosed("this memory was closed: open another one")
        return self._portal.start_task_soon(work)

    def close(self) -> None:
        """End the object and its loop. Safe to call again, and in a forked process, where it does nothing."""
        self._open = False
        self._finish()


def _loop() -> tuple[BlockingPortal, Thread]:
    """A loop in a thread of its own, and the way into it.

    Nothing but ``_stop`` ends it: a forked process, which has the loop but not the thread, only lets go of them, and
    would wait for ever at the end of a ``start_blocking_portal``.
    """
    started: Future[BlockingPortal] = Future()

    async def serve() -> None:
        async with BlockingPortal() as portal:
            started.set_result(portal)
            await portal.sleep_until_stopped()

    def run() -> None:
        try:
            anyio.run(serve)
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)  # no loop could be made

    thread = Thread(target=run, name="zettel", daemon=True)
    thread.start()
    return started.result(), thread


def _stop(portal: BlockingPortal, thread: Thread, *, cancel: bool = False) -> None:
    portal.call(portal.stop, cancel)
    thread.join()


def _finish(
    portal: BlockingPortal, thread: Thread, end: Callable[[Any], Awaitable[None]], inner: Any, pid: int
) -> None:
    if pid != os.getpid():
        return
    try:
        portal.call(end, inner)
    except BaseException:
        _stop(portal, thread, cancel=True)
        raise
    _stop(portal, thread)


class blocking(Generic[P, R]):  # a decorator, named like one
    """A method of the async class, waiting for its answer: ``add = blocking(AsyncMemory.add)``."""

    def __init__(self, method: Callable[Concatenate[Any, P], Awaitable[R]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Callable[Concatenate[Any, P], R]: ...
    @overload
    def __get__(self, owner: Any, kind: type) -> Callable[P, R]: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return _of_class(self, self._method)
        bridge: Bridge = owner._bridge

        @functools.wraps(self._method)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            # By its name, for a memory on a server has its own.
            method: Callable[P, Awaitable[R]] = getattr(bridge.inner, self._method.__name__)
            return bridge.call(functools.partial(method, *args, **kwargs))

        return _bound(call, self._method)


class streaming(Generic[P, R]):
    """The same for a method that yields: each item is one hop."""

    def __init__(self, method: Callable[Concatenate[Any, P], AsyncIterator[R]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Callable[Concatenate[Any, P], Iterator[R]]: ...
    @overload
    def __get__(self, owner: Any, kind: type) -> Callable[P, Iterator[R]]: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return _of_class(self, self._method)
        bridge: Bridge = owner._bridge

        @functools.wraps(self._method)
        def iterate(*args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
            items = getattr(bridge.inner, self._method.__name__)(*args, **kwargs)
            while True:
                try:
                    yield bridge.call(items.__anext__)
                except StopAsyncIteration:
                    return

        return _bound(iterate, self._method)


def _of_class(found: Any, method: Callable[..., Any]) -> Callable[..., Any]:
    """The method as the class has it: with the signature that ``help`` and editors show."""

    @functools.wraps(method)
    def unbound(owner: Any, *args: Any, **kwargs: Any) -> Any:
        return found.__get__(owner, type(owner))(*args, **kwargs)

    return unbound


def _bound(call: Callable[P, R], method: Callable[..., Any]) -> Callable[P, R]:
    """The same with a signature that has no ``self``."""
    vars(call)["__wrapped__"] = functools.partial(method, None)
    return call


class Memory(Wrapping):
    """A memory, for any code: the methods of ``AsyncMemory``, each waiting for its answer.

    Works from several threads, in notebooks and under Ctrl-C. Opened when made; close it, or use it as a context
    manager. After a fork, open another one.
    """

    def __init__(
        self,
        url: str | Path | GraphStore = "zettel.db",
        *,
        llm: LLM | None = None,
        annotator: Annotator | ModelAnnotator | None = None,
        budget: Budget | None = None,
        asks: bool = True,
        decay: Decay | None = None,
        embedder: str | Path | Embedder | None = None,
        scorer: ScorerSpec = None,
        scope: Scope | None = None,
        auth: tuple[str, str] | None = None,
        database: str | None = None,
        runner: RunnerSpec = None,
        key: str | None = None,
    ) -> None:
        async def make() -> AsyncMemory:
            memory = AsyncMemory(
                url, llm=llm, annotator=annotator, budget=budget, asks=asks, decay=decay, embedder=embedder,
                scorer=scorer, scope=scope, auth=auth, database=database, runner=runner, key=key,
            )  # fmt: skip
            return await memory.open()

        self.scope = scope or Scope()
        self._bridge = Bridge(make, lambda memory: memory.close())

    add = blocking(AsyncMemory.add)
    add_many = blocking(AsyncMemory.add_many)
    remember = blocking(AsyncMemory.remember)
    import_transcript = blocking(AsyncMemory.import_transcript)
    estimate_import = blocking(AsyncMemory.estimate_import)
    export = blocking(AsyncMemory.export)
    search = blocking(AsyncMemory.search)
    search_many = blocking(AsyncMemory.search_many)
    context = blocking(AsyncMemory.context)
    answer_context = blocking(AsyncMemory.answer_context)
    feedback = blocking(AsyncMemory.feedback)
    searches = blocking(AsyncMemory.searches)
    tune = blocking(AsyncMemory.tune)
    get = blocking(AsyncMemory.get)
    list = blocking(AsyncMemory.list)
    events = blocking(AsyncMemory.events)
    links = blocking(AsyncMemory.links)
    neighbors = blocking(AsyncMemory.neighbors)
    graph = blocking(AsyncMemory.graph)
    conflicts = blocking(AsyncMemory.conflicts)
    terms = blocking(AsyncMemory.terms)
    history = blocking(AsyncMemory.history)
    update = blocking(AsyncMemory.update)
    link = blocking(AsyncMemory.link)
    revert = blocking(AsyncMemory.revert)
    take_back = blocking(AsyncMemory.take_back)
    archive = blocking(AsyncMemory.archive)
    unarchive = blocking(AsyncMemory.unarchive)
    quarantine = blocking(AsyncMemory.quarantine)
    release = blocking(AsyncMemory.release)
    delete = blocking(AsyncMemory.delete)
    delete_scope = blocking(AsyncMemory.delete_scope)
    scopes = blocking(AsyncMemory.scopes)
    flush = blocking(AsyncMemory.flush)
    evolve = blocking(AsyncMemory.evolve)
    evolve_later = blocking(AsyncMemory.evolve_later)
    jobs = blocking(AsyncMemory.jobs)
    retry_jobs = blocking(AsyncMemory.retry_jobs)
    cancel_job = blocking(AsyncMemory.cancel_job)
    reembed = blocking(AsyncMemory.reembed)
    write_slots = blocking(AsyncMemory.write_slots)
    stats = blocking(AsyncMemory.stats)
    check = blocking(AsyncMemory.check)
    cypher = blocking(AsyncMemory.cypher)
    dump = streaming(AsyncMemory.dump)

    def close(self) -> None:
        """Close the store. Jobs that are not done stay in it, for whoever opens it next."""
        self._bridge.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
