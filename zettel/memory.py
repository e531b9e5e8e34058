"""The public face: ``AsyncMemory``, and ``Memory``, which drives it from any thread.

Everything a memory does is one method here, checked, and handed on to the file that does it; the order of an event's
way is: remember, the jobs' work (embed, link), search.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from zettel.annotate.extractive import ExtractiveAnnotator
from zettel.blocking import Bridge, blocking, streaming
from zettel.commit import Commits
from zettel.edit import Editing
from zettel.embed import load_embedder
from zettel.embed.vectors import Vectors
from zettel.erase import Erasing, not_found
from zettel.errors import InvalidInput, MemoryClosed, WasDeleted
from zettel.graph import open_store
from zettel.identity import Ordinals
from zettel.jobs.runner import InProcessRunner
from zettel.jobs.work import Work
from zettel.link.neighbors import neighbors
from zettel.model import (
    Event,
    EventRecord,
    Hit,
    Job,
    Kind,
    Link,
    Moment,
    Neighbor,
    Note,
    Page,
    Revision,
    Scope,
    Term,
    as_metadata_pairs,
    to_micros,
)
from zettel.ports import Annotator, Embedder, Filter, GraphStore, Runner, Scorer
from zettel.remember import OnConflict, Remembered, Remembering, checked
from zettel.search.find import Asked, Finding
from zettel.search.pack import pack

if TYPE_CHECKING:
    from zettel.transcripts.importing import ImportReport, Progress

DEFAULT_TOKENS = 800
"""Size of a packed context, in tokens, unless another is asked for."""
ERASE_PAGE = 500
"""Notes destroyed in one transaction when a whole session or file is deleted."""
PURGE_SECONDS = 5.0
"""How long ``delete_scope`` waits for readers that still hold the old pages."""

_moment: TypeAdapter[datetime] = TypeAdapter(Moment)
Time = datetime | str
"""A moment: a datetime or an ISO 8601 text; a naive one is taken as UTC."""


class AsyncMemory:
    """A memory, for code that runs in an event loop. ``Memory`` has the same methods for all other code.

    ``url`` is a file (made when it is not there), or a GraphStore. ``embedder`` is None for the static model that is
    shipped, a sentence-transformers name or folder, a LiteLLM embedding name, or an Embedder. ``scope`` is used
    wherever a call names none. Opened by ``async with`` or by its first use.
    """

    def __init__(
        self,
        url: str | Path | GraphStore = "zettel.db",
        *,
        annotator: Annotator | None = None,
        embedder: str | Path | Embedder | None = None,
        scorer: Scorer | None = None,
        scope: Scope | None = None,
    ) -> None:
        self.scope = scope or Scope()
        self._url = url
        self._annotator = annotator or ExtractiveAnnotator()
        self._embedder = embedder
        self._scorer = scorer
        self._pid = os.getpid()
        self._opened = False
        self._closed = False
        self._opening = asyncio.Lock()

    # ------------------------------------------------------------------------------------------------ open and close

    async def open(self) -> AsyncMemory:
        """Open the store and begin to work off its jobs. Raises what the store's ``open`` raises."""
        async with self._opening:
            self._require_usable()
            if not self._opened:
                url = self._url
                store = open_store(str(url)) if isinstance(url, (str, Path)) else url
                await store.open()
                self._wire(store)
                await self._runner.start()
                self._opened = True
        return self

    def _wire(self, store: GraphStore) -> None:
        self._store = store
        self._vectors = Vectors(store, load_embedder(self._embedder))
        commits = Commits(store)
        self._remembering = Remembering(store, commits, self._annotator, self._vectors)
        self._editing = Editing(store, commits, self._annotator, self._vectors)
        self._erasing = Erasing(store, commits, self._vectors)
        self._finding = Finding(store, self._vectors)
        self._work = Work(store, commits, self._vectors)
        self._runner: Runner = InProcessRunner(store, self._work)

    async def close(self) -> None:
        """Stop working and close the store. Jobs that are not done stay in it, for whoever opens it next."""
        if self._opened and not self._closed:
            self._closed = True
            await self._runner.close()
            await self._store.close()
        self._closed = True

    async def __aenter__(self) -> AsyncMemory:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _require_usable(self) -> None:
        if self._pid != os.getpid():
            raise MemoryClosed("this memory was opened before a fork: open another one in this process")
        if self._closed:
            raise MemoryClosed("this memory was closed: open another one")

    async def _use(self, scope: Scope | None) -> Scope:
        self._require_usable()
        if not self._opened:
            await self.open()
        return scope or self.scope

    # ------------------------------------------------------------------------------------------------------ remember

    async def add(
        self,
        content: str = "",
        *,
        id: str | None = None,
        title: str | None = None,
        role: str | None = None,
        occurred_at: Time | None = None,
        session: str | None = None,
        source: Any = None,
        payload: Any = None,
        metadata: Mapping[str, Any] | None = None,
        on_conflict: OnConflict = "error",
        wait: bool = False,
        scope: Scope | None = None,
    ) -> str:
        """Remember one event and return the id of its (head) note; from then on it is durable and searchable.

        ``wait`` also does the jobs that follow. Raises ``InvalidEvent``, ``IdentityConflict``.
        """
        fields: dict[str, Any] = {
            "content": content, "id": id, "title": title, "role": role, "occurred_at": occurred_at,
            "session": session, "source": source, "payload": payload, "metadata": dict(metadata or {}),
        }  # fmt: skip
        (added,) = await self.add_many([fields], on_conflict=on_conflict, wait=wait, scope=scope)
        return added

    async def add_many(
        self,
        events: Iterable[Event | Mapping[str, Any]],
        *,
        on_conflict: OnConflict = "error",
        wait: bool = False,
        scope: Scope | None = None,
    ) -> list[str]:
        """Remember events in one transaction; the ids of their head notes, in order.

        An event that was deleted from this scope before is not revived: ``WasDeleted`` names it, after the others
        were stored; ``remember`` reports it instead of raising. Raises what ``add`` raises.
        """
        accepted = [checked(event if isinstance(event, Event) else dict(event)) for event in events]
        done = await self.remember(accepted, on_conflict=on_conflict, scope=scope)
        if wait:
            await self.flush(scope=scope)
        return [_head(event, outcome) for event, outcome in zip(accepted, done, strict=True)]

    async def remember(
        self,
        events: Sequence[Event],
        *,
        on_conflict: OnConflict = "error",
        ordinals: Ordinals | None = None,
        scope: Scope | None = None,
    ) -> list[Remembered]:
        """Like ``add_many``, but tells of each event what became of it: what an importer needs.

        ``ordinals`` counts identical events over several calls of one file.
        """
        scope = await self._use(scope)
        events = [checked(event) for event in events]
        done = await self._remembering.remember(scope, events, on_conflict, ordinals or Ordinals())
        self._runner.wake()
        return done

    async def import_transcript(
        self,
        path: str | Path,
        format: str = "auto",
        *,
        on_progress: Progress | None = None,
        scope: Scope | None = None,
    ) -> ImportReport:
        """Remember all of a transcript; running it again adds only what is new. Raises ``UnknownFormat``, ``BadRecord``."""
        from zettel.transcripts.importing import import_file

        scope = await self._use(scope)
        return await import_file(self, Path(path), format, on_progress=on_progress, scope=scope)

    # ---------------------------------------------------------------------------------------------------------- find

    async def search(
        self,
        question: str,
        k: int = 10,
        *,
        as_of: Time | None = None,
        known_at: Time | None = None,
        since: Time | None = None,
        until: Time | None = None,
        now: Time | None = None,
        kinds: Iterable[Kind | str] | None = None,
        tags: Iterable[str] | None = None,
        session: str | None = None,
        role: str | None = None,
        filter: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        scorer: Scorer | None = None,
        explain: bool = False,
        scope: Scope | None = None,
    ) -> list[Hit]:
        """The notes that answer a question, best first, each with its calibrated score and why it was found.

        ``as_of``: what was true then; ``known_at``: what had been recorded by then; ``since`` (included) and ``until``
        (excluded) bound ``occurred_at``; ``now`` is what "yesterday" in the question counts from; ``filter`` asks for
        metadata values. All of them hold before anything is ranked. ``explain`` adds the path and all features.
        Raises ``InvalidQuestion``, ``InvalidInput``.
        """
        scope = await self._use(scope)
        asked = Asked(
            text=question,
            k=k,
            as_of=_time("as_of", as_of),
            known_at=_time("known_at", known_at),
            now=_time("now", now),
            filter=_filter(kinds, tags, session, role, since, until, filter),
            min_score=min_score,
            explain=explain,
        )
        return await self._finding.search(scope, asked, scorer or self._default_scorer())

    async def context(
        self, question: str, max_tokens: int = DEFAULT_TOKENS, *, scope: Scope | None = None, **search: Any
    ) -> str:
        """What ``search`` finds, packed for a prompt: in time order, with dates and speakers, within ``max_tokens``."""
        if max_tokens < 1:
            raise InvalidInput(f"max_tokens={max_tokens} leaves no room for a word")
        hits = await self.search(question, scope=scope, **({"k": 50} | search))
        return pack(hits, max_tokens)

    def _default_scorer(self) -> Scorer:
        if self._scorer is None:
            from zettel.scoring.fusion import FusionScorer

            self._scorer = FusionScorer()
        return self._scorer

    # ---------------------------------------------------------------------------------------------------------- look

    async def get(self, id: str, *, scope: Scope | None = None) -> Note | EventRecord:
        """A note (``n_…``) or an event (``e_…``) by its id. Raises ``NotFound``."""
        scope = await self._use(scope)
        found: Mapping[str, Note | EventRecord]
        if id.startswith("e_"):
            found = await self._store.events(scope, [id])
        else:
            found = await self._store.notes(scope, [id])
        if id not in found:
            raise not_found(scope, [id])
        return found[id]

    async def list(
        self,
        *,
        kinds: Iterable[Kind | str] | None = None,
        tags: Iterable[str] | None = None,
        session: str | None = None,
        role: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        filter: Mapping[str, Any] | None = None,
        limit: int = 100,
        cursor: str | None = None,
        scope: Scope | None = None,
    ) -> Page:
        """Notes in the order of arrival, a page at a time: hand the page's ``cursor`` in again for the next one."""
        scope = await self._use(scope)
        if limit < 1:
            raise InvalidInput(f"limit={limit} asks for no notes: use 1 or more")
        if cursor is not None and not cursor.isdigit():
            raise InvalidInput(f"{cursor!r} is not a cursor: hand in the one of the page before")
        asked = _filter(kinds, tags, session, role, since, until, filter)
        notes = await self._store.page(scope, asked, int(cursor or 0), limit + 1)
        more = len(notes) > limit
        return Page(notes=tuple(notes[:limit]), cursor=str(notes[limit - 1].seq) if more else None)

    async def links(self, id: str, *, scope: Scope | None = None) -> list[Link]:
        """The links that start or end at a note. Raises ``NotFound``."""
        await self.get(id, scope=scope)
        return await self._store.links(scope or self.scope, [id])

    async def neighbors(self, id: str, hops: int = 2, *, scope: Scope | None = None) -> list[Neighbor]:
        """Notes within ``hops`` links of a note, the nearest first. Raises ``NotFound``."""
        await self.get(id, scope=scope)
        return await neighbors(self._store, scope or self.scope, id, hops)

    async def terms(self, id: str, *, scope: Scope | None = None) -> list[Term]:
        """The Terms of a note, with how many notes hold each. Raises ``NotFound``."""
        await self.get(id, scope=scope)
        return await self._store.terms(scope or self.scope, id)

    async def history(self, id: str, *, scope: Scope | None = None) -> list[Revision]:
        """Every version of a note: what changed, why, and whether it still counts. Raises ``NotFound``."""
        return await self._editing.history(await self._use(scope), id)

    # -------------------------------------------------------------------------------------------------------- change

    async def update(self, id: str, *, scope: Scope | None = None, **fields: Any) -> Note:
        """Set fields of a note, as a revision that can be taken back. Raises ``NotFound``, ``InvalidInput``."""
        scope = await self._use(scope)
        note = await self._editing.update(scope, id, fields)
        self._runner.wake()
        return note

    async def revert(self, id: str, version: int, *, scope: Scope | None = None) -> Note:
        """Bring a note back to a version it had. Raises ``NotFound``, ``InvalidInput``."""
        scope = await self._use(scope)
        note = await self._editing.revert(scope, id, version)
        self._runner.wake()
        return note

    async def delete(
        self,
        id: str | None = None,
        *,
        source: str | None = None,
        session: str | None = None,
        scope: Scope | None = None,
    ) -> int:
        """Destroy a note or an event, or all of a source file or a session, with everything derived from it.

        Returns how many notes went. Raises ``NotFound`` for an unknown id.
        """
        scope = await self._use(scope)
        if [id, source, session].count(None) != 2:
            raise InvalidInput("say what to delete: an id, a source or a session, one of them")
        if id is not None:
            gone = await self._erasing.erase(scope, [id])
        else:
            gone = 0
            chosen = Filter(source=source, session=session)
            while notes := await self._store.page(scope, chosen, 0, ERASE_PAGE):
                gone += await self._erasing.erase(scope, [note.id for note in notes])
        self._runner.wake()
        return gone

    async def delete_scope(self, *, scope: Scope | None = None) -> int:
        """Destroy all of a scope, with the tombstones of what was deleted from it before; how many notes went."""
        scope = await self._use(scope)
        gone = await self._store.drop_scope(scope)
        deadline = asyncio.get_running_loop().time() + PURGE_SECONDS
        while not await self._store.purge() and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.1)
        return gone

    # ---------------------------------------------------------------------------------------------------- look after

    async def scopes(self) -> list[Scope]:
        """The scopes that hold something."""
        await self._use(None)
        return await self._store.scopes()

    async def flush(self, timeout: float | None = None, *, scope: Scope | None = None) -> None:
        """Run, or wait for, all pending jobs of the store (of one scope, if given).

        Raises ``FlushTimeout`` after ``timeout`` seconds, ``JobFailed`` if one ended in an error.
        """
        await self._use(scope)
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        await self._runner.drain(scope, deadline)

    async def jobs(self, *, scope: Scope | None = None) -> list[Job]:
        """Jobs that are not done: queued, running, or failed with their error."""
        await self._use(scope)
        return await self._store.jobs(scope)

    async def retry_jobs(self, *, scope: Scope | None = None) -> int:
        """Queue failed jobs again; how many."""
        await self._use(scope)
        count = await self._store.retry(scope)
        self._runner.wake()
        return count

    async def reembed(self) -> int:
        """Embed every note with this memory's embedder and change over to it; how many notes were embedded.

        Can be interrupted and run again; searches use the old vectors until the change.
        """
        await self._use(None)
        return await self._work.reembed()

    async def stats(self, *, scope: Scope | None = None) -> dict[str, Any]:
        """Counts of a scope (None: of all), and by which store, embedder and annotator they came about."""
        await self._use(scope)
        active = next((space for space in await self._store.spaces() if space.active), None)
        info = self._vectors.embedder.info
        return {
            "store": self._store.name,
            "annotator": self._annotator.name,
            "embedder": active.name if active else info.name,
            "dimension": active.dim if active else info.dim,
            **await self._store.counts(scope),
        }

    async def check(self, repair: bool = False) -> list[str]:
        """What is wrong in the store, one line each; with ``repair`` what is derived is made anew."""
        await self._use(None)
        return await self._store.check(repair)

    async def dump(self, *, scope: Scope | None = None) -> AsyncIterator[tuple[EventRecord, tuple[Note, ...]]]:
        """Every event of a scope with its notes, in the order of arrival, streaming."""
        scope = await self._use(scope)
        async for entry in self._store.dump(scope):
            yield entry


def _head(event: Event, outcome: Remembered) -> str:
    if outcome.id is None:
        raise WasDeleted(
            f"the event with id {event.id!r} was deleted from this scope and is not revived: "
            "give it another id to remember it again"
        )
    return outcome.id


def _time(name: str, value: Time | None) -> datetime | None:
    if value is None:
        return None
    try:
        return _moment.validate_python(value)
    except ValidationError:
        raise InvalidInput(f"{name}={value!r} is not a time: use a datetime or ISO 8601 such as 2024-05-01T09:00Z") from None


def _filter(
    kinds: Iterable[Kind | str] | None,
    tags: Iterable[str] | None,
    session: str | None,
    role: str | None,
    since: Time | None,
    until: Time | None,
    metadata: Mapping[str, Any] | None,
) -> Filter:
    try:
        chosen = tuple(Kind(kind).value for kind in kinds or ())
    except ValueError as error:
        raise InvalidInput(f"{error}: use {', '.join(kind.value for kind in Kind)}") from None
    start, end = _time("since", since), _time("until", until)
    return Filter(
        kinds=chosen,
        tags=tuple(tags or ()),
        session=session,
        role=role,
        since=None if start is None else to_micros(start),
        until=None if end is None else to_micros(end),
        metadata=as_metadata_pairs(metadata or {}),
    )


class Memory:
    """A memory, for any code: the methods of ``AsyncMemory``, each waiting for its answer.

    Works from several threads, in notebooks and under Ctrl-C. Opened when made; close it, or use it as a context
    manager. After a fork, open another one.
    """

    def __init__(
        self,
        url: str | Path | GraphStore = "zettel.db",
        *,
        annotator: Annotator | None = None,
        embedder: str | Path | Embedder | None = None,
        scorer: Scorer | None = None,
        scope: Scope | None = None,
    ) -> None:
        async def make() -> AsyncMemory:
            memory = AsyncMemory(url, annotator=annotator, embedder=embedder, scorer=scorer, scope=scope)
            return await memory.open()

        self.scope = scope or Scope()
        self._bridge = Bridge(make, AsyncMemory.close)

    add = blocking(AsyncMemory.add)
    add_many = blocking(AsyncMemory.add_many)
    remember = blocking(AsyncMemory.remember)
    import_transcript = blocking(AsyncMemory.import_transcript)
    search = blocking(AsyncMemory.search)
    context = blocking(AsyncMemory.context)
    get = blocking(AsyncMemory.get)
    list = blocking(AsyncMemory.list)
    links = blocking(AsyncMemory.links)
    neighbors = blocking(AsyncMemory.neighbors)
    terms = blocking(AsyncMemory.terms)
    history = blocking(AsyncMemory.history)
    update = blocking(AsyncMemory.update)
    revert = blocking(AsyncMemory.revert)
    delete = blocking(AsyncMemory.delete)
    delete_scope = blocking(AsyncMemory.delete_scope)
    scopes = blocking(AsyncMemory.scopes)
    flush = blocking(AsyncMemory.flush)
    jobs = blocking(AsyncMemory.jobs)
    retry_jobs = blocking(AsyncMemory.retry_jobs)
    reembed = blocking(AsyncMemory.reembed)
    stats = blocking(AsyncMemory.stats)
    check = blocking(AsyncMemory.check)
    dump = streaming(AsyncMemory.dump)

    def close(self) -> None:
        """Close the store. Jobs that are not done stay in it, for whoever opens it next."""
        self._bridge.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
