"""``AsyncMemory``: the public API for code that runs in an event loop. ``Memory`` has the same methods without one."""

# mypy: disable-error-code="no-any-return"
# A backend answers every operation through one method, ``Backend.call``: its result types are those written here.

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from zettel.core.arguments import (
    Duration,
    Time,
    checked_events,
    expiry_of,
    head_of,
    list_of,
    require_one,
    require_scope,
    scopes_of,
    seconds_of,
)
from zettel.core.labels import note_labels
from zettel.core.messages import event_of_message
from zettel.core.own_names import explains_arguments, unexpected
from zettel.errors import InvalidInput, MemoryClosed
from zettel.model import (
    Conflict,
    EntityDetails,
    EntityKind,
    EntityPage,
    Event,
    EventRecord,
    Evolved,
    Example,
    Graph,
    Hit,
    Job,
    Kind,
    Link,
    LinkType,
    LoggedSearch,
    Neighbor,
    Note,
    OnConflict,
    Outcome,
    Page,
    Queried,
    QueryResult,
    Remembered,
    Retention,
    Revision,
    Role,
    Scope,
    Swept,
    Term,
    Then,
    Tuned,
    Usage,
)
from zettel.model.hits import DEFAULT_TOKENS
from zettel.ports import Annotator, Embedder, GraphStore
from zettel.ports.backend import Backend

if TYPE_CHECKING:
    from zettel.evolve.decay import Decay
    from zettel.exports.report import ExportReport
    from zettel.llm.budget import Budget
    from zettel.local.audit_log import AuditLog
    from zettel.local.runners import RunnerSpec
    from zettel.model import Estimate
    from zettel.ports.language_model import LLM, ModelAnnotator
    from zettel.ports.settings import Privacy
    from zettel.scoring import ScorerSpec
    from zettel.search.gather import Gathered
    from zettel.transcripts.importing import Progress
    from zettel.transcripts.report import ImportReport, OnRejected
    from zettel.transcripts.scopes import ScopeBy

List: TypeAlias = list
"""The builtin, inside a class that has a method of that name."""


@explains_arguments
class AsyncMemory:
    """A memory for code that runs in an event loop. ``Memory`` has the same methods for all other code.

    ``async with`` or the first call opens the memory.

    Args:
        url: A file (created if it is missing), ``:memory:``, a Neo4j address such as ``neo4j://localhost:7687``, a
            zettel server such as ``https://memory.example``, or a GraphStore.
        llm: A language model that writes notes and decides links in background jobs: a LiteLLM name such as
            ``openai/gpt-4o-mini``, a sequence of names to fall back on, or a ``LiteLLM``.
        annotator: Replaces the part that writes the fields of notes.
        budget: Limits the cost of the model.
        run_llm_jobs: False leaves the model's jobs to another process.
        decay: Makes ``evolve`` archive decayed notes; without it none decays.
        embedder: A name for ``zettel.embed.load_embedder``, a folder or an Embedder. None selects the shipped one
            that the store records, else the default.
        scorer: Ranks search results: a name, a Scorer or a Reranker, see ``zettel.scoring.load_scorer``.
        scope: Applies to every call that names no scope; ``Scope()`` by default.
        reads: Further scopes that searches read.
        auth: User and password of Neo4j; by default NEO4J_USERNAME and NEO4J_PASSWORD from the environment.
        database: The database of Neo4j; by default NEO4J_DATABASE or ``neo4j``.
        runner: Runs the jobs: ``"here"`` (default), ``"process"`` in a child process, ``"ray"`` on a Ray cluster, see
            ``zettel.local.runners.load_runner``.
        key: The access key of a zettel server; or encrypts the file (extra ``encryption``), by default with
            ZETTEL_STORE_KEY from the environment.
        privacy: What happens to texts with secrets, such as API keys, passwords and card numbers: ``"report"`` stores
            and reports them, ``"redact"`` replaces them by marks such as ``[redacted GitHub token]``, ``"block"``
            raises ``SecretRefused``, and ``"off"`` does not look for them. By default ZETTEL_PRIVACY decides, else
            ``report``.
        audit: A file to which every operation is appended: who read, wrote or deleted what, without content and
            questions. An operation fails if it cannot be recorded.
        webhooks: A YAML file with targets that are informed of added, changed and deleted notes.

    Raises:
        InvalidInput: An argument is invalid, or an option of a server is given together with its address.

    Examples:
        >>> async with AsyncMemory(":memory:") as memory:
        ...     id = await memory.add("We sail in June.")
    """

    def __init__(
        self,
        url: str | Path | GraphStore = "zettel.db",
        *,
        llm: LLM | None = None,
        annotator: Annotator | ModelAnnotator | None = None,
        budget: Budget | None = None,
        run_llm_jobs: bool = True,
        decay: Decay | None = None,
        embedder: str | Path | Embedder | None = None,
        scorer: ScorerSpec = None,
        scope: Scope | None = None,
        reads: Iterable[Scope] = (),
        auth: tuple[str, str] | None = None,
        database: str | None = None,
        runner: RunnerSpec = None,
        key: str | None = None,
        privacy: Privacy | None = None,
        audit: str | Path | AuditLog | None = None,
        webhooks: str | Path | None = None,
    ) -> None:
        require_scope(scope)
        self.scope = scope or Scope()
        self.reads = tuple(scopes_of([self.scope, *list_of("reads", reads, "scopes")])[1:])
        local: dict[str, Any] = {
            "llm": llm, "annotator": annotator, "budget": budget, "decay": decay, "embedder": embedder,
            "scorer": scorer, "auth": auth, "database": database, "runner": runner, "privacy": privacy,
            "audit": audit, "webhooks": webhooks,
        }  # fmt: skip
        self._backend: Backend
        if isinstance(url, str) and url.startswith(("http://", "https://")):
            from zettel.remote.backend import RemoteBackend

            for name, value in local.items():
                if value is not None:
                    raise InvalidInput(f"{name}= is an option of the server: start the server at {url} with it")
            self._backend = RemoteBackend(url, key, scope)
        else:
            from zettel.local.backend import LocalBackend

            if isinstance(key, str) and key.startswith("zk_"):  # nobody means to encrypt a file with it
                raise InvalidInput("this key= is for a zettel server, https://HOST:PORT: open a store without it")
            if key is not None and not isinstance(url, (str, Path)):
                raise InvalidInput("key= is for a file or a zettel server: open this store without it")
            self._backend = LocalBackend(url, self.scope, run_llm_jobs=run_llm_jobs, store_key=key, **local)
        self._pid = os.getpid()
        self._closed = False
        self._opening = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    # ------------------------------------------------------------------------------------------------- open and close

    async def open(self) -> AsyncMemory:
        """Open the store and start its jobs, or connect to the server.

        Returns:
            This memory.

        Raises:
            StoreError: The store cannot be opened; a subclass names the reason.
            InvalidInput: An argument of the memory is invalid.
            MissingExtra: A package of an option is not installed.
            EmbedderError: The embedder cannot be loaded.
            ScorerError: The scorer cannot be loaded.
            RunnerUnavailable: The runner of the jobs cannot be reached.
            ServerError: The zettel server refuses the connection or cannot be reached.
            MemoryClosed: The memory was closed, or belongs to another process or event loop.

        Examples:
            >>> memory = await AsyncMemory(":memory:").open()
            >>> await memory.close()
        """
        async with self._opening:
            self._require_usable()
            if self._loop is None:
                await self._backend.open()
                self._loop = asyncio.get_running_loop()
        return self

    async def close(self) -> None:
        """Stop the work and close the store. Unfinished jobs stay in it for the next process that opens it.

        Returns:
            None.

        Raises:
            StoreError: The store failed while it was closed.

        Examples:
            >>> memory = await AsyncMemory(":memory:").open()
            >>> await memory.close()
        """
        if not self._closed:
            self._closed = True
            await self._backend.close()

    async def __aenter__(self) -> AsyncMemory:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _require_usable(self) -> None:
        if self._pid != os.getpid():
            raise MemoryClosed("this memory was opened before a fork: open another one in this process")
        if self._closed:
            raise MemoryClosed("this memory was closed: open another one")
        if self._loop is not None and self._loop is not asyncio.get_running_loop():
            raise MemoryClosed("this memory was opened in another event loop: open one in this loop, or use Memory")

    async def _ready(self, scope: Scope | None) -> Backend:
        """Return the open backend. Raises ``MemoryClosed``, ``InvalidInput``."""
        self._require_usable()
        require_scope(scope)
        if self._loop is None:
            await self.open()
        return self._backend

    def _read_scopes(self, scopes: Iterable[Scope] | None, scope: Scope | None) -> List[Scope] | None:
        """Return the scopes that a search reads; None for one."""
        if scopes is None:
            return [self.scope, *self.reads] if scope is None and self.reads else None
        return list_of("scopes", scopes, "scopes")

    def _search_in(self, search: dict[str, Any], scope: Scope | None) -> dict[str, Any]:
        """Return the arguments of a search, with the scopes that it reads. Raises ``TypeError`` for unknown ones."""
        for name in search:
            if name not in _search_arguments():
                raise unexpected(name, (*_search_arguments(), "max_tokens", "scope"))
        scopes = self._read_scopes(search.get("scopes"), scope)
        return search if scopes is None else search | {"scopes": scopes}

    async def _call(self, operation: str, scope: Scope | None, /, **arguments: Any) -> Any:
        return await (await self._ready(scope)).call(operation, arguments, scope)

    # ------------------------------------------------------------------------------------------------------------- add

    async def add(
        self,
        content: str = "",
        *,
        id: str | None = None,
        title: str | None = None,
        speaker: str | None = None,
        role: Role | None = None,
        occurred_at: Time | None = None,
        session: str | None = None,
        source: Any = None,
        payload: Any = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Iterable[str] = (),
        importance: float | None = None,
        pinned: bool = False,
        expires_at: Time | None = None,
        ttl: Duration | None = None,
        on_conflict: OnConflict = "error",
        wait: bool = False,
        scope: Scope | None = None,
    ) -> str:
        """Add one event and return the id of its note. When the call returns, the event is durable and searchable.

        A long text becomes several notes. Then the id is that of the first part, and only the first part gets
        ``tags``, ``importance`` and ``pinned``. zettel sets these right after it has stored the event.

        Searches and lists leave out expired events. Within a minute zettel deletes an expired event with everything
        derived from it, or archives it, see ``set_retention``. If the event is stored already, its expiry does not
        change: call ``update(id, expires_at=…)``.

        Args:
            content: The text, verbatim; at most 1,000,000 bytes.
            id: Your own id of the event. Every method that takes an id accepts it.
            title: A title. Notes that mention it are linked to this one.
            speaker: The name of the speaker.
            role: ``user``, ``assistant``, ``system``, ``tool`` or ``document``.
            occurred_at: When it happened: a datetime or ISO 8601 text; without a zone it is UTC. None if unknown.
            session: The conversation to which the event belongs.
            source: The file or system of the event.
            payload: Any JSON value; ``get`` returns it exactly.
            metadata: Names and JSON values that ``filter`` can match.
            tags: Tags to add to those of the note.
            importance: 0 to 1; decides near-ties and decay.
            pinned: Whether the note belongs in every prompt (``core``) and never decays.
            expires_at: When the event expires.
            ttl: How long the event is stored, a timedelta or seconds; instead of ``expires_at``.
            on_conflict: ``error``, ``skip`` or ``revise``: what happens if the same identity is stored with other
                content.
            wait: Whether to run all pending jobs of the scope, too.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The id of the note. Of a text in several parts, the id of the first one.

        Raises:
            InvalidEvent: A field is invalid; nothing is stored.
            IdentityConflict: The ``id`` is stored with other content.
            EventDeleted: The event was deleted from this scope before.
            SecretRefused: The text contains a secret, and the memory was opened with ``privacy="block"``.
            JobFailed: With ``wait``: a job failed. The event is stored: call ``retry_jobs``, and do not add it again.

        Examples:
            >>> id = await memory.add("I moved to Oslo.", speaker="Ann", occurred_at="2024-05-01T18:00Z")
            >>> note = await memory.get(id)
            >>> note.speaker
            'Ann'
        """
        fields: dict[str, Any] = {
            "content": content, "id": id, "title": title, "speaker": speaker, "role": role,
            "occurred_at": occurred_at,
            "session": session, "source": source, "payload": payload, "metadata": {} if metadata is None else metadata,
            "expires_at": expiry_of(expires_at, ttl),
        }  # fmt: skip
        labels = note_labels(tags, importance, pinned)
        (added,) = await self.add_many([fields], on_conflict=on_conflict, wait=wait and not labels, scope=scope)
        if labels:
            note = await self.get(added, scope=scope)
            assert isinstance(note, Note)
            if changes := labels.changes(note):
                await self.update(added, **changes, scope=scope)
            if wait:
                await self.flush(scope=scope or self.scope)
        return added

    async def add_messages(
        self,
        messages: Iterable[Mapping[str, Any]],
        *,
        session: str | None = None,
        occurred_at: Time | None = None,
        metadata: Mapping[str, Any] | None = None,
        expires_at: Time | None = None,
        ttl: Duration | None = None,
        wait: bool = False,
        scope: Scope | None = None,
    ) -> List[str]:
        """Add messages of a chat API, one event for each, in one transaction, and return the ids of their notes.

        Other fields of a message, such as tool calls, become the event's payload.

        Args:
            messages: Messages such as ``{"role": "user", "content": "…"}``, with an optional ``name``, ``id`` and
                ``occurred_at``. Content may be a list of parts. The role ``human`` is stored as ``user``, ``ai`` and
                ``model`` as ``assistant``, ``developer`` as ``system``, and ``function`` as ``tool``.
            session: The session of all messages.
            occurred_at: The time of messages without one.
            metadata: Metadata of all messages.
            expires_at: When all messages expire.
            ttl: How long the messages are stored, a timedelta or seconds; instead of ``expires_at``.
            wait: Whether to run all pending jobs of the scope, too.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The ids of the notes, in order.

        Raises:
            InvalidInput: A message is not an object with a role and content.
            InvalidEvent: A field is invalid; nothing is stored.
            IdentityConflict: The ``id`` of a message is stored with other content.
            EventDeleted: A message was deleted from this scope before; the others are stored.
            JobFailed: With ``wait``: a job failed. The messages are stored.

        Examples:
            >>> ids = await memory.add_messages([{"role": "user", "content": "I moved to Oslo."}], session="s1")
            >>> len(ids)
            1
        """
        common = {
            "session": session, "occurred_at": occurred_at, "metadata": {} if metadata is None else metadata,
            "expires_at": expiry_of(expires_at, ttl),
        }  # fmt: skip
        given = list_of("messages", messages, "messages")
        events = [common | event_of_message(place, message) for place, message in enumerate(given)]
        return await self.add_many(events, wait=wait, scope=scope)

    async def add_many(
        self,
        events: Iterable[Event | Mapping[str, Any]],
        *,
        on_conflict: OnConflict = "error",
        wait: bool = False,
        scope: Scope | None = None,
    ) -> List[str]:
        """Add events in one transaction and return the ids of their notes, in order.

        Args:
            events: Events, or dicts of their fields.
            on_conflict: ``error``, ``skip`` or ``revise``: what happens if the same identity is stored with other
                content.
            wait: Whether to run all pending jobs of the scope, too.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The ids of the notes, in order.

        Raises:
            InvalidEvent: A field is invalid; nothing is stored.
            IdentityConflict: An ``id`` is stored with other content; nothing is stored.
            EventDeleted: An event was deleted from this scope before; the others are stored. ``add_many_report``
                reports it instead.
            SecretRefused: A text contains a secret, and the memory was opened with ``privacy="block"``.
            JobFailed: With ``wait``: a job failed. The events are stored.

        Examples:
            >>> from zettel import Event
            >>> ids = await memory.add_many([Event(content="Rain fell."), {"content": "Snow fell.", "id": "day/2"}])
            >>> len(ids)
            2
        """
        accepted = checked_events(events)
        outcomes = await self.add_many_report(accepted, on_conflict=on_conflict, scope=scope)
        if wait:
            await self.flush(scope=scope or self.scope)
        return [head_of(event, outcome) for event, outcome in zip(accepted, outcomes, strict=True)]

    async def add_many_report(
        self,
        events: Iterable[Event | Mapping[str, Any]],
        *,
        on_conflict: OnConflict = "error",
        scope: Scope | None = None,
    ) -> List[Remembered]:
        """Add events in one transaction and report the note id and status of each, in order.

        Args:
            events: Events, or dicts of their fields.
            on_conflict: ``error``, ``skip`` or ``revise``: what happens if the same identity is stored with other
                content.
            scope: The scope of the call; by default the memory's own.

        Returns:
            One ``Remembered`` for each event. Its status is ``added``, ``existing``, ``revised``, ``skipped`` or
                ``deleted``.

        Raises:
            InvalidEvent: A field is invalid; nothing is stored.
            IdentityConflict: An ``id`` is stored with other content; nothing is stored.
            SecretRefused: A text contains a secret, and the memory was opened with ``privacy="block"``.

        Examples:
            >>> events = [{"content": "Rain fell.", "id": "weather/1"}]
            >>> [report.status for report in await memory.add_many_report(events)]
            ['added']
            >>> [report.status for report in await memory.add_many_report(events)]
            ['existing']
        """
        accepted = checked_events(events)
        return await self._call("add_many_report", scope, events=accepted, on_conflict=on_conflict)

    async def add_fact(
        self,
        subject: str,
        attribute: str,
        value: str,
        *,
        valid_from: Time | None = None,
        valid_to: Time | None = None,
        id: str | None = None,
        session: str | None = None,
        sources: Iterable[str] = (),
        scope: Scope | None = None,
    ) -> str:
        """Add a fact that the caller extracted, and return the id of its semantic note.

        It supersedes earlier values of the same ``subject`` and ``attribute``, whose case does not matter. It only
        contradicts earlier values of more trust. The next later value supersedes it. ``revert(id, 1)`` undoes all
        effects.

        Args:
            subject: The person or thing that the fact is about.
            attribute: The property, such as ``home``.
            value: Its value.
            valid_from: Start of validity; None if unknown.
            valid_to: End of validity; None while it is valid.
            id: Your own id. A fact with an id or a time is stored once.
            session: The session of the fact.
            sources: Ids of the notes from which you extracted the fact. zettel links the fact to them, limits its
                trust to theirs, and deletes it with them.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The id of the note.

        Raises:
            InvalidInput: A name or a time is invalid.
            InvalidEvent: The fact cannot be stored.
            IdentityConflict: The ``id`` is stored with another fact.
            EventDeleted: The fact was deleted from this scope before.
            NotFound: A source is not in the scope.

        Examples:
            >>> old = await memory.add_fact("Ann", "home", "Bergen", valid_from="2024-05-01")
            >>> new = await memory.add_fact("Ann", "home", "Oslo", valid_from="2024-09-01")
            >>> note = await memory.get(old)
            >>> note.valid_to.date().isoformat()
            '2024-09-01'
        """
        return await self._call(
            "add_fact", scope, subject=subject, attribute=attribute, value=value, valid_from=valid_from,
            valid_to=valid_to, id=id, session=session, sources=sources,
        )  # fmt: skip

    # ---------------------------------------------------------------------------------------------------------- search

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
        speaker: str | None = None,
        role: Role | None = None,
        filter: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        min_trust: float | None = None,
        current_only: bool = False,
        archived: bool = False,
        quarantined: bool = False,
        scorer: ScorerSpec = None,
        explain: bool = False,
        log: bool = True,
        restore_decayed: bool = True,
        scopes: Iterable[Scope] | None = None,
        scope: Scope | None = None,
    ) -> List[Hit]:
        """Return the notes that answer a question, best first, each with a calibrated score and an explanation.

        All filters apply before ranking. Notes of doubtful writers, and notes that look like instructions, rank after
        notes of full trust that fit the question. ``why.trust`` marks them.

        If only decayed notes contain a rare word of the question, the search finds these notes, too. It also restores
        those among its hits, unless ``restore_decayed`` is False. They may decay again later.

        With several scopes, the hits of all scopes form one ranking, and each hit has its ``scope``. Each scope has its
        own statistics and log.

        Args:
            question: The question, in words; a zettel server takes at most 20,000 characters.
            k: The greatest number of hits.
            as_of: Valid time: leaves out notes that were not valid at that time.
            known_at: Transaction time: leaves out notes that were recorded later, and returns the text of that time.
            since: Earliest ``occurred_at``, inclusive.
            until: Latest ``occurred_at``, exclusive.
            now: The reference date for words such as "yesterday", in its time zone.
            kinds: Kinds of notes, such as ``"semantic"``.
            tags: Tags; a note must have one of them.
            session: The session of the event.
            speaker: The name of the speaker.
            role: ``user``, ``assistant``, ``system``, ``tool`` or ``document``.
            filter: Values of metadata and fields that must match.
            min_score: Leaves out hits of a lower score, 0 to 1.
            min_trust: Leaves out notes of less trust, 0 to 1.
            current_only: Leaves out outdated notes.
            archived: Includes archived notes; such a search reads page by page and takes longer.
            quarantined: Includes quarantined notes; such a search takes longer, too.
            scorer: The ranking, see ``zettel.scoring.load_scorer``.
            explain: Adds the path and all features to ``why``.
            log: Gives the hits a ``search_id`` for ``feedback``, and stores the question and the ids of its hits in
                the background, until one of these notes is deleted.
            restore_decayed: Whether the search restores decayed notes that it finds.
            scopes: Scopes to search; by default ``scope`` and ``reads`` of the memory.
            scope: The scope of the call; by default the memory's own.

        Returns:
            At most ``k`` hits.

        Raises:
            InvalidQuestion: The question is empty or not text.
            InvalidInput: An option is invalid.
            ScorerError: The scorer returned invalid scores.
            MissingExtra: A package of the scorer is not installed.
            EmbedderUnavailable: The service of a remote embedder does not answer.

        Examples:
            >>> hits = await memory.search("When do we sail?", k=1)
            >>> hits[0].note.content
            'We sail in June.'
        """
        (hits,) = await self.search_many(
            [question], k, as_of=as_of, known_at=known_at, since=since, until=until, now=now, kinds=kinds, tags=tags,
            session=session, speaker=speaker, role=role, filter=filter, min_score=min_score, min_trust=min_trust,
            current_only=current_only, archived=archived, quarantined=quarantined, scorer=scorer,
            explain=explain, log=log,
            restore_decayed=restore_decayed, scopes=scopes, scope=scope,
        )  # fmt: skip
        return hits

    async def search_many(
        self,
        questions: Iterable[str],
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
        speaker: str | None = None,
        role: Role | None = None,
        filter: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        min_trust: float | None = None,
        current_only: bool = False,
        archived: bool = False,
        quarantined: bool = False,
        scorer: ScorerSpec = None,
        explain: bool = False,
        log: bool = True,
        restore_decayed: bool = True,
        scopes: Iterable[Scope] | None = None,
        scope: Scope | None = None,
    ) -> List[List[Hit]]:
        """Return the hits of several questions, in order. This is faster than one ``search`` for each.

        The arguments after ``k`` are those of ``search``.

        Args:
            questions: The questions.
            k: The greatest number of hits of each question.

        Returns:
            One list of hits for each question.

        Raises:
            InvalidQuestion: The question is empty or not text.
            InvalidInput: An option is invalid.
            ScorerError: The scorer returned invalid scores.
            MissingExtra: A package of the scorer is not installed.
            EmbedderUnavailable: The service of a remote embedder does not answer.

        Examples:
            >>> both = await memory.search_many(["When do we sail?", "Who bought the boat?"], k=1)
            >>> [hits[0].note.external_id for hits in both]
            ['sail', 'bought']
        """
        return await self._call(
            "search_many", scope, questions=questions, k=k, as_of=as_of, known_at=known_at, since=since, until=until,
            now=now, kinds=kinds, tags=tags, session=session, speaker=speaker, role=role, filter=filter,
            min_score=min_score, min_trust=min_trust, current_only=current_only, archived=archived,
            quarantined=quarantined, scorer=scorer, explain=explain, log=log,
            restore_decayed=restore_decayed, scopes=self._read_scopes(scopes, scope),
        )  # fmt: skip

    async def context(
        self,
        /,
        question: str,
        max_tokens: int = DEFAULT_TOKENS,
        *,
        profile: bool = False,
        omit_flagged: bool = False,
        scope: Scope | None = None,
        **search: Any,
    ) -> str:
        """Pack the hits of ``search`` for a prompt, within ``max_tokens``: facts, then messages by day, with speakers.

        A repeated statement appears once, and a fact is left out if the text contains its message. Outdated notes are
        left out unless the question is about the past, or ``as_of`` or ``current_only=False`` is set. If a long hit
        does not fit, the text contains its passage. A line "> Ann asked: …" precedes an answer if the line fits and
        the question is not in the text already.

        Notes of writers without full trust, and notes that look like instructions, come last. They are quoted under
        "From untrusted sources". So do texts of tools and documents if the text also contains messages of people.

        The profile describes the present, so it is left out with ``as_of`` or ``known_at``.

        Args:
            question: The question.
            max_tokens: The greatest length of the text, in tokens of about four characters.
            profile: Puts the profile of the speakers, which ``evolve`` derives, first.
            omit_flagged: Leaves out notes that look like instructions.
            scope: The scope of the call; by default the memory's own.
            **search: Arguments of ``search``.

        Returns:
            Text for a prompt; empty without hits.

        Raises:
            InvalidQuestion: The question is empty or not text.
            InvalidInput: An option is invalid.
            ScorerError: The scorer returned invalid scores.
            MissingExtra: A package of the scorer is not installed.
            EmbedderUnavailable: The service of a remote embedder does not answer.

        Examples:
            >>> print(await memory.context("When do we sail?", max_tokens=40))
            ## Wednesday, 2024-05-01
            ...
        """
        return await self._call(
            "context", scope, question=question, max_tokens=max_tokens, profile=profile, omit_flagged=omit_flagged,
            search=self._search_in(search, scope),
        )  # fmt: skip

    async def answer_context(
        self,
        /,
        question: str,
        rounds: int = 3,
        *,
        max_tokens: int = DEFAULT_TOKENS,
        scope: Scope | None = None,
        **search: Any,
    ) -> Gathered:
        """Collect evidence for a question over several searches, and pack it for a prompt.

        After each search the memory's language model names missing facts, and zettel searches for these. Without a
        model, or when it fails or its budget is spent, the result contains the evidence so far; ``ended`` states the
        reason.

        Args:
            question: The question.
            rounds: The greatest number of searches.
            max_tokens: The greatest length of the text, in tokens.
            scope: The scope of the call; by default the memory's own.
            **search: Arguments of ``search``.

        Returns:
            A ``Gathered``: the text, its evidence, what is missing, and the model calls.

        Raises:
            InvalidQuestion: The question is empty or not text.
            InvalidInput: An option is invalid.
            ScorerError: The scorer returned invalid scores.
            MissingExtra: A package of the scorer is not installed.
            EmbedderUnavailable: The service of a remote embedder does not answer.

        Examples:
            >>> gathered = await memory.answer_context("When do we sail?")
            >>> gathered.ended
            'no language model to check what is missing'
        """
        return await self._call(
            "answer_context", scope, question=question, rounds=rounds, max_tokens=max_tokens,
            search=self._search_in(search, scope),
        )

    async def session_context(
        self, session: str, max_tokens: int = DEFAULT_TOKENS, *, scope: Scope | None = None
    ) -> str:
        """Return the short-term memory of a session for a prompt: a summary, and the last turns verbatim.

        The summary quotes sentences of earlier turns, above all statements of people about themselves. It is left out
        if the whole session fits. zettel calls no model, and leaves out archived, quarantined and deleted
        turns. The summary does not quote tools, untrusted writers or texts that look like instructions. It covers
        the last 500 turns.

        Args:
            session: The name of the session.
            max_tokens: The greatest length of the text, in tokens.
            scope: The scope of the call; by default the memory's own.

        Returns:
            Text for a prompt; "" for an unknown session.

        Raises:
            InvalidInput: ``session`` is not text, or ``max_tokens`` is not a positive number.

        Examples:
            >>> print(await memory.session_context("chat"))
            ## Last turns
            - 18:00 Ann: I bought the Blue Heron!
            - 18:01 Ben: We sail in June.
        """
        return await self._call("session_context", scope, session=session, max_tokens=max_tokens)

    async def examples(self, task: str, k: int = 3, *, scope: Scope | None = None) -> List[Example]:
        """Return up to ``k`` past episodes in which an agent succeeded at a similar task, the most similar first.

        An episode is a message of a user with the turns after it, up to the next task. The result contains at most one
        episode of each session. An episode succeeded if its last outcome is a success, of a tool (metadata
        ``outcome``, which imported traces have) or in a message ("That worked!").

        Args:
            task: The task, in words.
            k: The greatest number of episodes.
            scope: The scope of the call; by default the memory's own.

        Returns:
            Episodes; ``str(example)`` is text for a prompt.

        Raises:
            InvalidQuestion: The task is empty or not text.
            InvalidInput: ``k`` is not a positive number.

        Examples:
            >>> await memory.examples("Repair the sail")
            []
        """
        return await self._call("examples", scope, task=task, k=k)

    # ---------------------------------------------------------------------------------------------------- read by id

    async def get(self, id: str, *, scope: Scope | None = None) -> Note | EventRecord:
        """Return a note (``n_…``) or an event (``e_…``) by its id.

        Args:
            id: The id of a note (``n_…``) or of an event (``e_…``), or your own id of the event.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The note, or the event if the id is one of an event (``e_…``).

        Raises:
            NotFound: The id is not in the scope.

        Examples:
            >>> note = await memory.get("boat")
            >>> note.title
            'Blue Heron'
            >>> event = await memory.get(note.event_ids[0])
            >>> event.content
            'A cutter built in 1931, moored in Risør.'
        """
        return await self._call("get", scope, id=id)

    async def list(
        self,
        *,
        kinds: Iterable[Kind | str] | None = None,
        tags: Iterable[str] | None = None,
        session: str | None = None,
        speaker: str | None = None,
        role: Role | None = None,
        since: Time | None = None,
        until: Time | None = None,
        filter: Mapping[str, Any] | None = None,
        archived: bool = False,
        limit: int = 100,
        cursor: str | None = None,
        scope: Scope | None = None,
    ) -> Page:
        """Return a page of notes in the order of arrival. Pass the page's ``cursor`` to get the next page.

        Args:
            kinds: Kinds of notes, such as ``"semantic"``.
            tags: Tags; a note must have one of them.
            session: The session of the event.
            speaker: The name of the speaker.
            role: ``user``, ``assistant``, ``system``, ``tool`` or ``document``.
            since: Earliest ``occurred_at``, inclusive.
            until: Latest ``occurred_at``, exclusive.
            filter: Values of metadata and fields that must match.
            archived: Lists archived, merged and quarantined notes instead, newest first.
            limit: The greatest number of notes, at least 1.
            cursor: The ``cursor`` of the page before.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The notes, and a ``cursor``, None on the last page.

        Raises:
            InvalidInput: A condition, the limit or the cursor is invalid.

        Examples:
            >>> page = await memory.list(session="chat", limit=1)
            >>> [note.speaker for note in page.notes]
            ['Ann']
            >>> page = await memory.list(session="chat", limit=1, cursor=page.cursor)
            >>> [note.speaker for note in page.notes]
            ['Ben']
        """
        return await self._call(
            "list", scope, kinds=kinds, tags=tags, session=session, speaker=speaker, role=role, since=since,
            until=until, filter=filter,
            archived=archived, limit=limit, cursor=cursor,
        )  # fmt: skip

    async def query(
        self,
        of: Queried = "notes",
        *,
        words: Iterable[str] | None = None,
        terms: Iterable[str] | None = None,
        kinds: Iterable[Kind | str] | None = None,
        tags: Iterable[str] | None = None,
        session: str | None = None,
        speaker: str | None = None,
        role: Role | None = None,
        since: Time | None = None,
        until: Time | None = None,
        filter: Mapping[str, Any] | None = None,
        as_of: Time | None = None,
        archived: bool = False,
        group_by: Iterable[str] | None = None,
        tz: str | None = None,
        order: str | None = None,
        limit: int = 100,
        scope: Scope | None = None,
    ) -> QueryResult:
        """Count, group and list notes or events that meet all conditions, exactly and without ranking.

        An event counts if one of its episodic notes meets the conditions. ``since``, ``until`` and ``session`` then
        apply to the event, so each mention of a merged statement counts.

        Args:
            of: ``notes`` or ``events``.
            words: Words in the note's text, in any form ("run" matches "running"); one must match. An entry of
                several words requires all of them.
            terms: Names and tags, as ``terms()`` returns them; one must match.
            kinds: Kinds of notes, such as ``"semantic"``.
            tags: Tags; a note must have one of them.
            session: The session of the event.
            speaker: The name of the speaker.
            role: ``user``, ``assistant``, ``system``, ``tool`` or ``document``.
            since: Earliest ``occurred_at``, inclusive.
            until: Latest ``occurred_at``, exclusive.
            filter: Values of metadata and fields that must match.
            as_of: Selects notes that were valid at that time.
            archived: Includes the archive, except merged and quarantined notes; such a query reads every note.
            group_by: Fields of the groups, one or several: kind, speaker, role, session, tag or term, year, month,
                week, day, weekday.
            tz: The time zone of days, such as ``Europe/Oslo``; default UTC.
            order: Of groups ``count``, ``key``, ``first`` or ``last``, otherwise ``time`` or ``arrival``; "-" before
                it reverses it.
            limit: The greatest number of returned groups, notes or events; 0 for the count alone.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The count, the first and last time, and the groups, notes or events.

        Raises:
            InvalidInput: A condition, a group or an order is unknown or invalid.

        Examples:
            >>> result = await memory.query("events", words=["sail"], limit=0)
            >>> result.count
            1
        """
        return await self._call(
            "query", scope, of=of, words=words, terms=terms, kinds=kinds, tags=tags, session=session, speaker=speaker,
            role=role, since=since, until=until, filter=filter, as_of=as_of, archived=archived, group_by=group_by,
            tz=tz, order=order, limit=limit,
        )  # fmt: skip

    async def events(
        self, session: str, *, source: str | None = None, limit: int | None = None, scope: Scope | None = None
    ) -> List[EventRecord]:
        """Return the events of a session, verbatim and in the order of arrival; with ``limit`` only the last ones.

        Events of merged, archived and quarantined notes are included.

        Args:
            session: The name of the session.
            source: Only events of this file.
            limit: The greatest number of events, from the end.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The events; empty for an unknown session.

        Raises:
            InvalidInput: ``session`` is not text, or ``limit`` is not a positive number.

        Examples:
            >>> [event.content for event in await memory.events("chat", limit=1)]
            ['We sail in June.']
        """
        return await self._call("events", scope, session=session, source=source, limit=limit)

    async def links(self, id: str, *, scope: Scope | None = None) -> List[Link]:
        """Return the links that start or end at a note.

        Args:
            id: The id of a note (``n_…``), or your own id of the event.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The links, in both directions.

        Raises:
            NotFound: The id is not in the scope.

        Examples:
            >>> await memory.flush()
            >>> links = await memory.links("bought")
            >>> "MENTIONS" in {link.type.value for link in links}
            True
        """
        return await self._call("links", scope, id=id)

    async def neighbors(self, id: str, hops: int = 2, *, scope: Scope | None = None) -> List[Neighbor]:
        """Return the notes within ``hops`` links of a note, nearest first.

        Args:
            id: The id of a note (``n_…``), or your own id of the event.
            hops: The greatest number of links, 1 to 5.
            scope: The scope of the call; by default the memory's own.

        Returns:
            One ``Neighbor`` for each note: the note, its distance in links, and the last link.

        Raises:
            NotFound: The id is not in the scope.
            InvalidInput: ``hops`` is outside its limits.

        Examples:
            >>> [neighbor.note.title for neighbor in await memory.neighbors("bought", hops=1)]
            ['Blue Heron']
        """
        return await self._call("neighbors", scope, id=id, hops=hops)

    async def graph(
        self,
        around: str | None = None,
        hops: int = 2,
        *,
        limit: int = 2000,
        cursor: str | None = None,
        scope: Scope | None = None,
    ) -> Graph:
        """Return notes and the links between them.

        With ``around``, the notes within ``hops`` links of that note, nearest first. Otherwise a page of notes in the
        order of arrival.

        Args:
            around: The id of a note; None for all notes.
            hops: The greatest number of links from it, 1 to 5.
            limit: The greatest number of notes.
            cursor: The ``cursor`` of the page before.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The notes, their links, and a ``cursor``, None on the last page.

        Raises:
            NotFound: The id is not in the scope.
            InvalidInput: ``hops``, the limit or the cursor is invalid.

        Examples:
            >>> graph = await memory.graph(around="bought", hops=1)
            >>> len(graph.notes)
            2
        """
        return await self._call("graph", scope, around=around, hops=hops, limit=limit, cursor=cursor)

    async def conflicts(self, *, scope: Scope | None = None) -> List[Conflict]:
        """Return pairs of notes that contradict each other and that neither a later note nor a person settled.

        To settle a conflict, call ``resolve`` with the note to keep, or add a note that states the truth.

        Args:
            scope: The scope of the call; by default the memory's own.

        Returns:
            The pairs, each with the reason and the sources of both notes.

        Raises:
            StoreError: The store failed.

        Examples:
            >>> await memory.conflicts()
            []
        """
        return await self._call("conflicts", scope)

    async def terms(self, id: str, *, scope: Scope | None = None) -> List[Term]:
        """Return the terms of a note, each with the number of notes that contain it.

        Args:
            id: The id of a note (``n_…``), or your own id of the event.
            scope: The scope of the call; by default the memory's own.

        Returns:
            Keywords, tags and names.

        Raises:
            NotFound: The id is not in the scope.

        Examples:
            >>> terms = await memory.terms("bought")
            >>> [term.text for term in terms if term.kind == "name"]
            ['Blue Heron']
        """
        return await self._call("terms", scope, id=id)

    async def entities(
        self,
        *,
        kind: EntityKind | None = None,
        limit: int = 100,
        cursor: str | None = None,
        scope: Scope | None = None,
    ) -> EntityPage:
        """Return the persons, organisations, places and things that the notes name, the most frequent first.

        A name is left out if no text shows its kind. The first call after a write reads the whole scope.

        Args:
            kind: ``person``, ``organisation``, ``place`` or ``thing``; None for all.
            limit: The greatest number of entities.
            cursor: The ``cursor`` of the page before.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The entities, and a ``cursor``, None on the last page.

        Raises:
            InvalidInput: The kind, the limit or the cursor is invalid.

        Examples:
            >>> page = await memory.entities(kind="person")
            >>> [entity.name for entity in page.entities]
            ['Ann', 'Ben']
        """
        return await self._call("entities", scope, kind=kind, limit=limit, cursor=cursor)

    async def entity(self, name: str, *, limit: int = 50, scope: Scope | None = None) -> EntityDetails:
        """Return an entity by one of its names: its facts, its timeline and its neighbours.

        A first name also means the only full name that begins with it. ``"my wife"`` is a name, too.

        Args:
            name: One of its names.
            limit: The greatest number of facts, of dated notes (the latest, oldest first) and of neighbours (the
                closest).
            scope: The scope of the call; by default the memory's own.

        Returns:
            The entity with all its names.

        Raises:
            NotFound: No note contains the name.
            InvalidInput: It is the first name of several persons.

        Examples:
            >>> ann = await memory.entity("Ann")
            >>> ann.timeline[-1].content
            'I bought the Blue Heron!'
        """
        return await self._call("entity", scope, name=name, limit=limit)

    async def merge_entities(self, name: str, other: str, *, reason: str = "", scope: Scope | None = None) -> Note:
        """Decide that two names are one entity, and return the note that records it.

        ``memory.revert(note.id, 1)`` reverts the decision, and a later ``split_entity`` overrules it. Deleting the
        last note that contains one of the names deletes the decision.

        Args:
            name: A name that a note contains.
            other: Another name of the same entity. Notes need not contain it.
            reason: The reason, for people.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The note of the decision.

        Raises:
            NotFound: No note contains ``name``.
            InvalidInput: The names are equal or empty.

        Examples:
            >>> note = await memory.merge_entities("Ann", "Annie", reason="her nickname")
            >>> note.content
            'Ann is also called Annie.'
        """
        return await self._call("merge_entities", scope, name=name, other=other, reason=reason)

    async def split_entity(self, name: str, other: str, *, reason: str = "", scope: Scope | None = None) -> Note:
        """Decide that two names are two entities, and return the note that records it.

        No rule and no model merges them again. ``memory.revert(note.id, 1)`` reverts the decision, and a later
        ``merge_entities`` overrules it. Deleting the last note that contains one of the names deletes the decision.

        Args:
            name: A name that a note contains.
            other: The name of another entity.
            reason: The reason, for people.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The note of the decision.

        Raises:
            NotFound: No note contains ``name``.
            InvalidInput: The names are equal or empty.

        Examples:
            >>> note = await memory.split_entity("Ann", "Anna", reason="two sisters")
            >>> note.metadata["same_entity"]
            False
        """
        return await self._call("split_entity", scope, name=name, other=other, reason=reason)

    async def history(self, id: str, *, scope: Scope | None = None) -> List[Revision]:
        """Return every revision of a note: the change, its cause, and whether it is live.

        Args:
            id: The id of a note (``n_…``), or your own id of the event.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The revisions, oldest first.

        Raises:
            NotFound: The id is not in the scope.

        Examples:
            >>> note = await memory.update("sail", tags=["plan"])
            >>> [revision.cause.by.value for revision in await memory.history("sail")]
            ['add', 'user']
        """
        return await self._call("history", scope, id=id)

    # ---------------------------------------------------------------------------------------------------------- change

    async def update(self, id: str, /, *, scope: Scope | None = None, **fields: Any) -> Note:
        """Set fields of a note as a revision that can be reverted.

        Args:
            id: The id of a note (``n_…``), or your own id of the event.
            scope: The scope of the call; by default the memory's own.
            **fields: New values of ``content``, ``title``, ``caption``, ``context``, ``keywords``, ``tags``,
                ``importance``, ``confidence``, ``kind``, ``valid_from``, ``valid_to``, ``expires_at`` (of all notes
                of its event) or ``metadata``.

        Returns:
            The note in its new version.

        Raises:
            NotFound: The id is not in the scope.
            InvalidInput: A field is unknown or its value invalid.
            PermissionDenied: The caller has less trust than the note.

        Examples:
            >>> note = await memory.update("sail", importance=0.9)
            >>> note.importance
            0.9
        """
        return await self._call("update", scope, id=id, fields=fields)

    async def link(
        self,
        source: str,
        target: str,
        type: LinkType | str = LinkType.RELATES,
        *,
        reason: str = "",
        scope: Scope | None = None,
    ) -> Link:
        """Link two notes, as a revision of the ``source`` note. ``unlink`` removes the link.

        Jobs do not change this decision.

        Args:
            source: The id of the note that has the link.
            target: The id of the other note.
            type: ``RELATES``, ``SUPERSEDES`` (the target is outdated from then on), ``UPDATES`` (a part of the target
                is outdated) or ``CONTRADICTS``.
            reason: The reason, for people.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The link.

        Raises:
            NotFound: One of the ids is not in the scope.
            InvalidInput: The type is unknown, a note is archived, or both ids are the same note.
            PermissionDenied: The caller has less trust than the note.

        Examples:
            >>> link = await memory.link("sail", "boat", reason="the trip is on this boat")
            >>> link.type.value
            'RELATES'
        """
        return await self._call("link", scope, source=source, target=target, type=type, reason=reason)

    async def unlink(
        self, source: str, target: str, type: LinkType | str = LinkType.RELATES, *, scope: Scope | None = None
    ) -> Link:
        """Remove a link of any origin, as a revision of the note that has it, and return the link.

        Jobs do not make the link again; ``link`` can. A note without its SUPERSEDES link is valid again:
        ``memory.unlink(new, old, "SUPERSEDES")``.

        Args:
            source: The id of the note that has the link.
            target: The id of the other note.
            type: ``RELATES``, ``SUPERSEDES``, ``UPDATES`` or ``CONTRADICTS``.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The removed link.

        Raises:
            NotFound: One of the ids is not in the scope.
            InvalidInput: The link does not exist.
            PermissionDenied: The caller has less trust than the note.

        Examples:
            >>> link = await memory.link("sail", "boat")
            >>> removed = await memory.unlink("sail", "boat")
            >>> removed.target == link.target
            True
        """
        return await self._call("unlink", scope, source=source, target=target, type=type)

    async def resolve(self, keep: str, over: str, *, reason: str = "", scope: Scope | None = None) -> Link:
        """Settle a conflict: ``keep`` stays true, and ``over`` is outdated from then on.

        Then ``over`` ranks below ``keep``, ``current_only`` leaves ``over`` out, and ``conflicts`` does not list the
        pair. ``over`` is valid until ``keep`` begins, or never if it is the newer note. ``keep`` regains the
        confidence that it lost by the conflict. A second call with the notes swapped replaces the first, and
        ``unlink(keep, over, "SUPERSEDES")`` opens the conflict again.

        Args:
            keep: The id of the note that is true.
            over: The id of the note that is outdated.
            reason: The reason, for people.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The SUPERSEDES link.

        Raises:
            NotFound: One of the ids is not in the scope.
            InvalidInput: The notes do not contradict each other.
            PermissionDenied: The caller has less trust than the note.

        Examples:
            >>> oslo = await memory.add("Ann lives in Oslo.", speaker="Ann")
            >>> bergen = await memory.add("Ann lives in Bergen.", speaker="Ben")
            >>> link = await memory.link(bergen, oslo, "CONTRADICTS")
            >>> settled = await memory.resolve(oslo, bergen, reason="I asked Ann")
            >>> settled.type.value
            'SUPERSEDES'
        """
        return await self._call("resolve", scope, keep=keep, over=over, reason=reason)

    async def revert(self, id: str, version: int, *, scope: Scope | None = None) -> Note:
        """Restore an earlier version of a note.

        Args:
            id: The id of a note (``n_…``), or your own id of the event.
            version: The version to restore, from ``history``.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The note, in a new version with the content of the old one.

        Raises:
            NotFound: The id is not in the scope.
            InvalidInput: The note has no such version.
            PermissionDenied: The caller has less trust than the note.

        Examples:
            >>> before = await memory.get("sail")
            >>> changed = await memory.update("sail", content="We sail in July.")
            >>> note = await memory.revert("sail", before.version)
            >>> note.content
            'We sail in June.'
        """
        return await self._call("revert", scope, id=id, version=version)

    async def revert_effects(self, id: str, *, scope: Scope | None = None) -> List[Note]:
        """Revert all changes that one note caused in others, in one transaction, and return the changed notes.

        This deactivates revisions that jobs based on the note, archives notes that were derived from it, and undoes a
        merge that it caused. The note itself and its own links stay. ``revert`` restores each changed note. A second
        call changes nothing.

        Args:
            id: The id of a note (``n_…``), or your own id of the event.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The changed notes.

        Raises:
            NotFound: The id is not in the scope.

        Examples:
            >>> await memory.revert_effects("boat")
            []
        """
        return await self._call("revert_effects", scope, id=id)

    async def archive(self, id: str, *, scope: Scope | None = None) -> Note:
        """Archive a note: searches and lists leave it out unless they include archived notes.

        Args:
            id: The id of a note (``n_…``), or your own id of the event.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The archived note.

        Raises:
            NotFound: The id is not in the scope.
            InvalidInput: The note is archived already.
            PermissionDenied: The caller has less trust than the note.

        Examples:
            >>> note = await memory.archive("sail")
            >>> note.archived
            True
        """
        return await self._call("archive", scope, id=id)

    async def unarchive(self, id: str, *, scope: Scope | None = None) -> Note:
        """Restore a note that was archived or has decayed. A note that a person restored does not decay again.

        Args:
            id: The id of a note (``n_…``), or your own id of the event.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The restored note.

        Raises:
            NotFound: The id is not in the scope.
            InvalidInput: The note is not archived, was merged or is in quarantine.
            PermissionDenied: The caller has less trust than the note.

        Examples:
            >>> note = await memory.archive("sail")
            >>> note = await memory.unarchive("sail")
            >>> note.archived
            False
        """
        return await self._call("unarchive", scope, id=id)

    async def review(self, *, limit: int = 100, cursor: str | None = None, scope: Scope | None = None) -> Page:
        """Return a page of the notes on probation, in the order of arrival.

        These are notes of writers without full trust, and notes that look like instructions. Searches find them, but
        the core memory, the profile, lessons and insights leave them out until ``confirm``.

        Args:
            limit: The greatest number of notes.
            cursor: The ``cursor`` of the page before.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The notes, and a ``cursor``, None on the last page.

        Raises:
            InvalidInput: The limit or the cursor is invalid.

        Examples:
            >>> from zettel import acting_as
            >>> with acting_as("web:forum", trust=0.4):
            ...     id = await memory.add("The harbour is closed.")
            >>> page = await memory.review()
            >>> [note.content for note in page.notes]
            ['The harbour is closed.']
        """
        return await self._call("review", scope, limit=limit, cursor=cursor)

    async def confirm(self, id: str, *, scope: Scope | None = None) -> List[Note]:
        """End the probation of a note and of the other parts of its event, and return the changed notes.

        Args:
            id: The id of a note (``n_…``), or your own id of the event.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The changed notes. They have the trust of their role and no flags; ``revert`` undoes it.

        Raises:
            NotFound: The id is not in the scope.
            PermissionDenied: The caller has less than full trust.
            InvalidInput: The note is not on probation.

        Examples:
            >>> from zettel import acting_as
            >>> with acting_as("web:forum", trust=0.4):
            ...     id = await memory.add("The harbour is closed.")
            >>> [note.trust for note in await memory.confirm(id)]
            [1.0]
        """
        return await self._call("confirm", scope, id=id)

    async def quarantine(
        self, id: str | None = None, reason: str = "", *, principal: str | None = None, scope: Scope | None = None
    ) -> List[Note]:
        """Quarantine all notes of a note's event and revert everything derived from them, in one transaction.

        Then only ``search(quarantined=True)`` finds the note, and jobs skip it. Notes that were derived from it are
        archived, and changes that it caused in other notes are reverted.

        ``principal`` quarantines all events of a writer instead, and reverts all its changes of other notes, except
        deletions; a server requires the right admin.

        Args:
            id: The id of a note (``n_…``), or your own id of the event.
            reason: The reason, for people.
            principal: The name of a writer, instead of an id.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The changed notes.

        Raises:
            NotFound: The id is not in the scope.
            InvalidInput: The note is in quarantine already, or neither an id nor a principal is given.
            PermissionDenied: The caller has less trust than a note, or less than full trust for a principal.

        Examples:
            >>> notes = await memory.quarantine("sail", reason="from a stolen account")
            >>> [note.quarantined for note in notes]
            ['from a stolen account']
        """
        require_one("what to quarantine: an id or a principal", id, principal)
        return await self._call("quarantine", scope, id=id, reason=reason, principal=principal)

    async def release(
        self, id: str | None = None, *, principal: str | None = None, scope: Scope | None = None
    ) -> List[Note]:
        """Release a note from quarantine, restore what the quarantine reverted, and return the changed notes.

        Args:
            id: The id of a note (``n_…``), or your own id of the event.
            principal: The name of a writer whose quarantine ends, instead of an id.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The changed notes.

        Raises:
            NotFound: The id is not in the scope.
            InvalidInput: The note or the principal is not in quarantine.
            PermissionDenied: The caller has less than full trust.

        Examples:
            >>> notes = await memory.quarantine("sail")
            >>> [note.quarantined for note in await memory.release("sail")]
            [None]
        """
        require_one("what to release: an id or a principal", id, principal)
        return await self._call("release", scope, id=id, principal=principal)

    async def delete(
        self,
        id: str | None = None,
        *,
        source: str | None = None,
        session: str | None = None,
        scope: Scope | None = None,
    ) -> int:
        """Destroy a note or an event, or all events of a source file or a session, with everything derived from them.

        Args:
            id: The id of a note (``n_…``) or of an event (``e_…``), or your own id of the event.
            source: The path that a file was imported under (``./chat.txt`` equals ``chat.txt``), instead of an id.
            session: A session, instead of an id.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The number of deleted notes.

        Raises:
            NotFound: The id is not in the scope.
            InvalidInput: None or several of id, source and session are given.
            PermissionDenied: The caller has less trust than the note.

        Examples:
            >>> await memory.delete("sail")
            1
        """
        require_one("what to delete: an id, a source or a session", id, source, session)
        return await self._call("delete", scope, id=id, source=source, session=session)

    async def retention(self, *, scope: Scope | None = None) -> Retention | None:
        """Return the rule that limits how long the scope stores its notes, None without a rule.

        Args:
            scope: The scope of the call; by default the memory's own.

        Returns:
            The retention, or None.

        Raises:
            StoreError: The store failed.

        Examples:
            >>> print(await memory.retention())
            None
        """
        return await self._call("retention", scope)

    async def set_retention(
        self, max_age: Duration | None = None, then: Then = "delete", *, scope: Scope | None = None
    ) -> Retention:
        """Limit how long the scope stores its notes, and return the rule. It replaces an earlier one.

        Each day a job removes older notes and everything derived from them, except pinned notes.

        Args:
            max_age: The longest time since a note was stored, a timedelta or seconds; None for no limit.
            then: ``delete``, or ``archive``, which ``unarchive`` undoes. It also applies to notes whose ``expires_at``
                is over. Without a retention, zettel deletes these.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The new retention.

        Raises:
            InvalidInput: An argument is invalid.
            PermissionDenied: The caller has less than full trust.

        Examples:
            >>> from datetime import timedelta
            >>> retention = await memory.set_retention(timedelta(days=90), then="archive")
            >>> retention.then
            'archive'
        """
        return await self._call("set_retention", scope, max_age=seconds_of("max_age", max_age), then=then)

    async def remove_retention(self, *, scope: Scope | None = None) -> bool:
        """Remove the retention of the scope, and return whether there was one. This does not restore removed notes.

        Args:
            scope: The scope of the call; by default the memory's own.

        Returns:
            True if a retention was set.

        Raises:
            PermissionDenied: The caller has less than full trust.

        Examples:
            >>> await memory.remove_retention()
            False
        """
        return await self._call("remove_retention", scope)

    async def sweep(self, *, dry_run: bool = False, scope: Scope | None = None) -> Swept:
        """Delete or archive the expired notes of the scope now, instead of waiting for the job.

        Args:
            dry_run: Only counts what it would remove, and changes nothing.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The numbers of removed events.

        Raises:
            PermissionDenied: The caller has less than full trust.

        Examples:
            >>> await memory.sweep(dry_run=True)
            Swept(deleted=0, archived=0)
        """
        return await self._call("sweep", scope, dry_run=dry_run)

    async def delete_scope(self, *, scope: Scope | None = None) -> int:
        """Destroy a whole scope, tombstones included, and return the number of deleted notes.

        The texts disappear from the files at once, or as soon as no other reader uses them. ``flush`` waits for that.

        Args:
            scope: The scope of the call; by default the memory's own.

        Returns:
            The number of deleted notes.

        Raises:
            PermissionDenied: The caller has less than full trust, or a key lacks the right admin.

        Examples:
            >>> await memory.delete_scope()
            3
        """
        return await self._call("delete_scope", scope)

    # ----------------------------------------------------------------------------------------------------------- learn

    async def feedback(
        self,
        search_id: str,
        used: Iterable[str] | None = None,
        outcome: Outcome | None = None,
        *,
        answer: str | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Report which hits of a search were useful, and whether the task succeeded or failed.

        Useful notes decay later, see ``zettel.scoring.strength``, and the ranking learns from them. A second report
        replaces the first, but an ``answer`` never replaces ids that you passed.

        Args:
            search_id: The ``search_id`` of the hits.
            used: The ids of the useful notes.
            outcome: ``success`` or ``failure``.
            answer: The text of the answer, if you do not know the ids. Hits count as useful if the answer cites their
                ids or repeats their words.
            scope: The scope of the call; by default the memory's own.

        Returns:
            None.

        Raises:
            NotFound: The search is not in the log.
            InvalidInput: A note is not a hit of the search.
            PermissionDenied: The principal has less than full trust.

        Examples:
            >>> hits = await memory.search("When do we sail?", k=1)
            >>> await memory.feedback(hits[0].search_id, used=[hits[0].note.id], outcome="success")
        """
        await self._call("feedback", scope, search_id=search_id, used=used, outcome=outcome, answer=answer)

    async def searches(self, *, scope: Scope | None = None) -> List[LoggedSearch]:
        """Return the log of searches, oldest first: question, hits and feedback.

        Args:
            scope: The scope of the call; by default the memory's own.

        Returns:
            The logged searches.

        Raises:
            StoreError: The store failed.

        Examples:
            >>> hits = await memory.search("When do we sail?", k=1)
            >>> [search.question for search in await memory.searches()]
            ['When do we sail?']
        """
        return await self._call("searches", scope)

    async def tune(
        self,
        into: str | Path,
        *,
        decoder: str | Path | None = None,
        scopes: Iterable[Scope] | None = None,
        on_progress: Callable[[str, int, int], None] | None = None,
        scope: Scope | None = None,
    ) -> Tuned:
        """Train a memory decoder on the logged feedback, and write it into a folder if it ranks better.

        Training starts from the scorer in the folder, else from ``decoder``, else from the shipped one. zettel writes
        the new scorer only if it is better on held-out searches, see ``Tuned``. Search with
        ``scorer="decoder:FOLDER"``.

        Args:
            into: The folder to write.
            decoder: A folder with the scorer to start from.
            scopes: Train on the feedback of these scopes instead of one.
            on_progress: Receives the step, the number done and in all.
            scope: The scope of the call; by default the memory's own.

        Returns:
            Both qualities, and whether the scorer was written.

        Raises:
            InvalidInput: The log contains too little feedback.
            ScorerError: The folder contains something else.
            MissingExtra: torch is not installed.

        Examples:
            >>> from zettel.errors import InvalidInput
            >>> try:
            ...     tuned = await memory.tune("ranker")
            ... except InvalidInput as error:
            ...     print(error)
            too little feedback: 0 searches have a useful hit, and learning requires 30; report used notes with feedback
        """
        named = None if scopes is None else list_of("scopes", scopes, "scopes")
        return await self._call("tune", scope, into=into, decoder=decoder, scopes=named, on_progress=on_progress)

    # ----------------------------------------------------------------------------------------------- import and export

    async def import_transcript(
        self,
        path: str | Path,
        format: str = "auto",
        *,
        conversation: str | None = None,
        tz: str | None = None,
        columns: Mapping[str, str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        speakers: Iterable[str] | None = None,
        map_user: Mapping[str, str] | None = None,
        session_gap: float | None = None,
        redact: bool = False,
        redact_region: str | None = None,
        scope_by: ScopeBy | None = None,
        edits: bool = False,
        source: str | None = None,
        trust: float = 1.0,
        dry_run: bool = False,
        on_progress: Progress | None = None,
        on_rejected: OnRejected | None = None,
        scope: Scope | None = None,
    ) -> ImportReport:
        """Import a transcript, a folder or a zip of transcripts. A second import adds only new events.

        A file of the format ``zettel`` restores whole memories: a single one into ``scope`` or into this memory's own
        scope if that is named; otherwise each keeps its scope.

        Args:
            path: A file, a folder or a zip.
            format: The name of a format; ``auto`` recognises it.
            conversation: Imports only the conversation of this name.
            tz: The zone of times without one, and of ``since`` and ``until``, such as ``Europe/Oslo``.
            columns: Event fields and the columns of a table: ``{"content": "Text"}``.
            since: Earliest time, inclusive; skips undated records.
            until: Latest time, exclusive; skips undated records.
            speakers: Imports only these names.
            map_user: Renames speakers first: ``{"Bob": "Robert"}``.
            session_gap: Silent hours that end a session of messages without one; 0 for no sessions, 6 by default for
                chats.
            redact: Removes e-mail addresses, phone numbers, card numbers and keys before storing.
            redact_region: A country such as ``NO``: removes its phone numbers without its prefix, too.
            scope_by: Gives each speaker (``user``), place (``channel``) or project of a coding agent (``project``) a
                scope.
            edits: A record may change a stored event of another file, and the edited notes of an exported vault
                change theirs. Otherwise sender and file must be the same.
            source: Replaces the path in reports and events.
            trust: The highest trust in the records, 0 to 1, see ``acting_as``.
            dry_run: Stores nothing and reports what it would store.
            on_progress: Receives the number of records read and in all.
            on_rejected: Receives the rejected records as they come.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The numbers of added, existing, revised, deleted and rejected events, in all and by file.

        Raises:
            UnknownFormat: No format reads the file.
            BadRecord: The file is damaged or truncated.
            MissingExtra: ``redact`` without the extra ``redact``.
            InvalidInput: An option is invalid, or the scope of a whole memory is not empty.
            PermissionDenied: A caller below full trust restores a whole memory.

        Examples:
            >>> from pathlib import Path
            >>> written = Path("tides.txt").write_text("Ann: High tide is at six.")
            >>> report = await memory.import_transcript("tides.txt")
            >>> report.added
            1
        """
        return await self._call(
            "import_transcript", scope, path=path, format=format, conversation=conversation, tz=tz, columns=columns,
            since=since, until=until, speakers=speakers, map_user=map_user, session_gap=session_gap, redact=redact,
            redact_region=redact_region, scope_by=scope_by, edits=edits, source=source, trust=trust, dry_run=dry_run,
            on_progress=on_progress, on_rejected=on_rejected,
        )  # fmt: skip

    async def estimate_import(
        self,
        path: str | Path,
        format: str = "auto",
        *,
        conversation: str | None = None,
        tz: str | None = None,
        columns: Mapping[str, str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        speakers: Iterable[str] | None = None,
        map_user: Mapping[str, str] | None = None,
        session_gap: float | None = None,
        redact: bool = False,
        redact_region: str | None = None,
        scope_by: ScopeBy | None = None,
        edits: bool = False,
        source: str | None = None,
        trust: float = 1.0,
        scope: Scope | None = None,
    ) -> Estimate:
        """Estimate the language model calls of an import. Calls no model and stores nothing.

        zettel skips turns that it has annotated already, and counts turns of any scope that wait for the model. The
        arguments are those of ``import_transcript``.

        Args:
            path: A file, a folder or a zip.

        Returns:
            The model, the numbers of turns, calls and tokens, and the cost in USD.

        Raises:
            InvalidInput: The memory has no model, or the file is a whole memory.
            UnknownFormat: No format reads the file.
            BadRecord: The file is damaged or truncated.

        Examples:
            >>> from zettel.errors import InvalidInput
            >>> try:
            ...     estimate = await memory.estimate_import("tides.txt")
            ... except InvalidInput as error:
            ...     print(error)
            an import without a language model costs nothing: open the memory with llm=
        """
        return await self._call(
            "estimate_import", scope, path=path, format=format, conversation=conversation, tz=tz, columns=columns,
            since=since, until=until, speakers=speakers, map_user=map_user, session_gap=session_gap, redact=redact,
            redact_region=redact_region, scope_by=scope_by, edits=edits, source=source, trust=trust,
        )  # fmt: skip

    async def export(
        self,
        to: str | Path | BinaryIO,
        format: str = "auto",
        *,
        include: Iterable[str] = (),
        all_scopes: bool = False,
        on_progress: Progress | None = None,
        scope: Scope | None = None,
    ) -> ExportReport:
        """Write a scope to a file, an open binary file or a folder, and report how much was written.

        ``jsonl`` writes one event per line, importable as a transcript. ``markdown`` writes an Obsidian vault, one
        file per note; it never overwrites files of others or edited files. ``graphml`` writes notes and links for
        Gephi. ``zettel`` writes everything (histories, links, vectors, tombstones, the scope's secret) for
        ``import_transcript`` to restore in any store. A file is complete or absent.

        Args:
            to: A path, or a file opened for binary writing.
            format: ``jsonl``, ``markdown``, ``graphml`` or ``zettel``. By default the suffix .graphml or .zettel
                selects the format, else it is ``jsonl``.
            include: ``notes`` adds readable notes to ``jsonl``; ``terms`` and ``events`` add these to ``graphml``.
            all_scopes: Writes every scope; only for ``zettel``.
            on_progress: Receives the numbers done and in all.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The format, and the numbers of events and notes.

        Raises:
            UnknownFormat: The format is unknown.
            InvalidInput: An option does not fit the format, or the target cannot be written.

        Examples:
            >>> report = await memory.export("memory.jsonl")
            >>> report.events
            3
        """
        return await self._call(
            "export", scope, to=to, format=format, include=include, all_scopes=all_scopes, on_progress=on_progress
        )

    async def dump(self, *, scope: Scope | None = None) -> AsyncIterator[tuple[EventRecord, tuple[Note, ...]]]:
        """Stream every event of a scope with its notes, in the order of arrival.

        Args:
            scope: The scope of the call; by default the memory's own.

        Yields:
            Pairs of an event and its notes.

        Raises:
            StoreError: The store failed.

        Examples:
            >>> async for event, notes in memory.dump():
            ...     print(event.external_id, len(notes))
            boat 1
            bought 1
            sail 1
        """
        backend = await self._ready(scope)
        async for entry in backend.stream("dump", {}, scope):
            yield entry

    # -------------------------------------------------------------------------------------------------------- maintain

    async def scopes(self) -> List[Scope]:
        """Return the scopes that contain something.

        Returns:
            The scopes; with a zettel server those of the key.

        Raises:
            StoreError: The store failed.

        Examples:
            >>> len(await memory.scopes())
            1
        """
        return await self._call("scopes", None)

    async def flush(self, timeout: float | None = None, *, scope: Scope | None = None) -> None:
        """Run, or wait for, all pending jobs of the store, or of one scope.

        Args:
            timeout: Seconds to wait at most; None for no limit.
            scope: One scope; by default all scopes of the store.

        Returns:
            None.

        Raises:
            FlushTimeout: Jobs were still pending after ``timeout`` seconds. They continue.
            JobFailed: A job failed; ``jobs`` shows its error.

        Examples:
            >>> await memory.flush(timeout=60)
        """
        await self._call("flush", scope, timeout=timeout)

    async def evolve(self, timeout: float | None = None, *, scope: Scope | None = None) -> Evolved:
        """Run the pending jobs, let the notes of a scope improve each other, and count the changes.

        Notes get the keywords that their neighbours share, and an importance from their links. Duplicates are merged.
        zettel derives insights from topics and sessions, a profile of people (see ``context``), and lessons from
        outcomes. Each change is a revision, which ``history`` shows and ``revert`` reverts. A second run changes
        nothing until new notes arrive.

        Args:
            timeout: Seconds to wait at most; None for no limit.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The numbers of revised, merged, derived and archived notes.

        Raises:
            FlushTimeout: Jobs were still pending after ``timeout`` seconds. They continue.
            JobFailed: A job failed; ``jobs`` shows its error.

        Examples:
            >>> evolved = await memory.evolve()
            >>> evolved.merged
            0
        """
        return await self._call("evolve", scope, timeout=timeout)

    async def evolve_later(self, *, scope: Scope | None = None) -> bool:
        """Queue ``evolve`` for any process that runs jobs, after all pending jobs of single notes.

        Args:
            scope: The scope of the call; by default the memory's own.

        Returns:
            False if nothing was written in the scope since this memory queued it last: then nothing is queued.

        Raises:
            StoreError: The store failed.

        Examples:
            >>> await memory.evolve_later()
            True
        """
        return await self._call("evolve_later", scope)

    async def jobs(self, *, scope: Scope | None = None) -> List[Job]:
        """Return unfinished jobs: queued, running, or failed with their error.

        Args:
            scope: One scope; by default all scopes of the store.

        Returns:
            The jobs.

        Raises:
            StoreError: The store failed.

        Examples:
            >>> await memory.flush()
            >>> await memory.jobs()
            []
        """
        return await self._call("jobs", scope)

    async def retry_jobs(self, id: str | None = None, *, scope: Scope | None = None) -> int:
        """Queue failed jobs again, or only the job with this id, and return their number.

        Args:
            id: The id of a job (``j_…``); None for all.
            scope: One scope; by default all scopes of the store.

        Returns:
            The number of queued jobs.

        Raises:
            NotFound: No unfinished job has this id.

        Examples:
            >>> await memory.retry_jobs()
            0
        """
        return await self._call("retry_jobs", scope, id=id)

    async def cancel_job(self, id: str, *, scope: Scope | None = None) -> Job:
        """Remove a queued or failed job from the queue and return it.

        Args:
            id: The id of a job (``j_…``).
            scope: One scope; by default all scopes of the store.

        Returns:
            The job.

        Raises:
            NotFound: No unfinished job has this id.
            InvalidInput: The job is running, or is one that completes a delete or an expiry.

        Examples:
            >>> for job in await memory.jobs():
            ...     if job.state == "failed":
            ...         cancelled = await memory.cancel_job(job.id)
        """
        return await self._call("cancel_job", scope, id=id)

    async def reembed(self, *, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Embed every note with this memory's embedder, switch to it, and return the number of embedded notes.

        If it is interrupted, call it again, or open a memory with this embedder, which continues. Searches use the old
        vectors until the switch.

        Args:
            on_progress: Receives the numbers embedded and in all.

        Returns:
            The number of embedded notes; 0 if all vectors are from this embedder.

        Raises:
            JobFailed: A note could not be embedded.

        Examples:
            >>> await memory.reembed()
            0
        """
        return await self._call("reembed", None, on_progress=on_progress)

    async def stats(self, *, scope: Scope | None = None) -> dict[str, Any]:
        """Return the counts of a scope (None: of all), the store, embedder and annotator, and the cost of models.

        Args:
            scope: One scope; by default all scopes of the store.

        Returns:
            A dict with ``events``, ``notes``, ``archived``, ``links``, ``terms``, ``jobs``, ``failed``, ``store``,
                ``embedder``, ``annotator`` and more.

        Raises:
            StoreError: The store failed.

        Examples:
            >>> stats = await memory.stats()
            >>> stats["notes"]
            3
        """
        return await self._call("stats", scope)

    async def usage(self, limit: int = 10, *, scope: Scope | None = None) -> Usage:
        """Report how the notes of a scope are used.

        The report contains the most and the least used notes, duplicates, contradictions, derived notes with changed
        sources, the largest sessions and more. The call reads the whole scope.

        Args:
            limit: The greatest number of entries in each list.
            scope: The scope of the call; by default the memory's own.

        Returns:
            The report, see ``Usage``.

        Raises:
            InvalidInput: ``limit`` is not a positive number.

        Examples:
            >>> usage = await memory.usage(limit=3)
            >>> usage.notes
            3
        """
        return await self._call("usage", scope, limit=limit)

    async def check(self, repair: bool = False) -> List[str]:
        """Return the problems of the store, one line each; ``repair`` rebuilds derived data.

        Args:
            repair: Whether to rebuild derived data.

        Returns:
            The problems; empty if the store is sound.

        Raises:
            StoreError: The store cannot be read, for example because a page of the file is damaged.

        Examples:
            >>> await memory.check()
            []
        """
        return await self._call("check", None, repair=repair)

    async def cypher(self, query: str, /, **params: Any) -> List[dict[str, Any]]:
        """Run a read-only Cypher query on a memory in Neo4j, and return each row as a dict by column.

        The query sees the whole database, across scopes: use ``{scope: $scope}`` with ``scope=memory.scope.key`` to
        stay in one, and never put untrusted text into the query. Limits: 30 seconds, 10,000 rows, no LOAD CSV, and
        only procedures that list indexes and labels.

        Args:
            query: The query.
            **params: The parameters of the query.

        Returns:
            One dict for each row. Nodes and relationships become dicts of their properties, relationships also with
                their ``type``.

        Raises:
            InvalidQuestion: The query writes, is not valid Cypher or exceeds a limit.
            StoreError: The memory is not in Neo4j.

        Examples:
            >>> from zettel.errors import StoreError
            >>> query = "MATCH (note:Note {scope: $scope}) RETURN count(note) AS notes"
            >>> try:
            ...     rows = await memory.cypher(query, scope=memory.scope.key)
            ... except StoreError:  # the memory of this example is not in Neo4j
            ...     rows = []
            >>> rows
            []
        """
        return await self._call("cypher", None, query=query, params=params)


@cache
def _search_arguments() -> tuple[str, ...]:
    """Return the names of the arguments of ``search`` beside the question."""
    own = ("self", "question", "scope")
    return tuple(name for name in inspect.signature(AsyncMemory.search).parameters if name not in own)
